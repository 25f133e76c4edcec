# SPDX-License-Identifier: Apache-2.0
"""Rendezvous of a process group, and reports of waiting ranks, via the store of torch.distributed."""

from __future__ import annotations

import contextlib
import hashlib
import secrets
import time
from collections.abc import Callable
from typing import Any

from torch._C._distributed_c10d import PrefixStore

from sealpoint._errors import Error, TimeoutError
from sealpoint._ranks.background import BackgroundCall, run_with_deadline
from sealpoint._ranks.rendezvous import STORE_SECONDS, MovedError
from sealpoint.torch._links import Links, make_links
from sealpoint.torch._store import LOOK_FIRST_SECONDS, STORE_NAME, look_max_seconds, named, own_store, text_of_absent

# Time that a timed-out rank waits for the store to name the absent ranks.
_ABSENT_SECONDS = 0.5


class StoreOfRanks:
    """The store that some ranks share; see ``_ranks.rendezvous.Group``."""

    store_name = STORE_NAME

    def __init__(self, name: str, rank: int, size: int) -> None:
        """Opens the store. ``name`` is the same on all of these ranks and unique to them."""
        self.name, self.rank, self.size = f"sealpoint/{name}/", rank, size
        self._connection: Any = None

    def _store(self) -> Any:
        if self._connection is None:
            self._connection = PrefixStore(self.name, own_store())
        return self._connection

    def forget_connection(self) -> None:
        self._connection = None

    def put(self, key: str, value: str) -> None:
        self._store().compare_set(key, "", value)

    def get(self, key: str) -> str | None:
        return str(self._store().get(key).decode()) if self._store().check([key]) else None

    def meet(self, generation: int, end: float, check: Callable[[], None]) -> tuple[Links, str]:
        """Waits for all ranks and returns a unique name. Collective.

        Raises CommError, MovedError, the errors of check(), and TimeoutError, which names the absent ranks.
        """
        store = self._store()
        arrived = [f"{generation}/rank{rank}" for rank in range(self.size)]
        complete = f"{generation}/complete"
        # Distinguishes this job from an earlier one with the same store.
        token = secrets.token_hex(8)
        store.set(arrived[self.rank], token)
        self._wait(arrived if self.rank == 0 else [complete], end, check, arrived)
        if self.rank == 0:
            store.set(complete, " ".join(store.get(item).decode() for item in arrived))
        tokens = store.get(complete).decode()
        if tokens.split()[self.rank : self.rank + 1] != [token]:
            raise MovedError("these connections belong to an earlier job")
        name = f"{self.name}{generation}/{hashlib.blake2b(tokens.encode(), digest_size=8).hexdigest()}/"
        return make_links(name, self.rank, self.size, end, check), name

    def _wait(self, keys: list[str], end: float, check: Callable[[], None], arrived: list[str]) -> None:
        pause = LOOK_FIRST_SECONDS
        while not self._store().check(keys):
            check()
            if time.monotonic() > end:
                all_came = "a rank arrived but did not finish connecting"
                raise TimeoutError(text_of_absent(self._store(), arrived, all_came), rank=self.rank)
            time.sleep(min(pause, max(0.0, end - time.monotonic())))
            pause = min(2 * pause, look_max_seconds(self.size))


class WaitReports:
    """Reports in which exchange each rank waits, so that a timeout can name the absent ranks.

    A rank reports only after it has waited for a while, so short exchanges cost nothing.
    """

    def __init__(self, name: str, rank: int, size: int) -> None:
        self._name, self._rank, self._size = f"{name}waits/", rank, size
        self._writing: BackgroundCall[None] | None = None
        self._number = 0  # number of the exchange in the store; negative once it has ended

    def tell(self, number: int) -> None:
        """Reports that this rank waits in this exchange. Local; does not wait for the store."""
        if self._number == number:
            return
        before, self._number = self._writing, number
        self._writing = BackgroundCall(lambda: self._write(before, number))

    def tell_end(self, number: int) -> None:
        """Reports the end of the wait, if ``tell`` reported its beginning."""
        if self._number == number:
            self.tell(-number)

    def _write(self, before: BackgroundCall[None] | None, number: int) -> None:
        if before is None or before.wait(STORE_SECONDS):  # if the wait fails, the store does not answer
            PrefixStore(self._name, own_store()).set(str(self._rank), str(number))

    def absent(self, number: int) -> list[int]:
        """Returns the other ranks that have not reached the exchange. Call it via ``run_with_deadline``."""
        store = PrefixStore(self._name, own_store())
        others = [rank for rank in range(self._size) if rank != self._rank]
        reported = {rank: int(store.get(str(rank))) if store.check([str(rank)]) else 0 for rank in others}
        return [rank for rank in others if -number < reported[rank] <= 0]

    def text_of_absent(self, number: int) -> str:
        """Formats the absent ranks: "rank 2 of 3", or "a rank" if the store does not answer or all ranks have arrived."""
        with contextlib.suppress(Error):
            if absent := run_with_deadline(lambda: self.absent(number), _ABSENT_SECONDS, STORE_NAME):
                return named(absent, self._size)
        return "a rank"
