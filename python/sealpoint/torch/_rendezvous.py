# SPDX-License-Identifier: Apache-2.0
"""How ranks of a process group find each other, and who waits for whom: by the store of torch.distributed."""

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

# How long a rank that waited too long waits for the store to say for whom.
_ABSENT_SECONDS = 0.5


class StoreOfRanks:
    """The store as some ranks share it; see ``_ranks.rendezvous.Group``."""

    store_name = STORE_NAME

    def __init__(self, name: str, rank: int, size: int) -> None:
        """``name``: the same on all of the ranks, and on no others."""
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
        """Connections between all of the ranks, and a name that no others have. All ranks call it.

        Errors: those of check(); TimeoutError (names the ranks that did not come), CommError, MovedError.
        """
        store = self._store()
        arrived = [f"{generation}/rank{rank}" for rank in range(self.size)]
        complete = f"{generation}/complete"
        # Not that of an earlier job, which had the same store.
        token = secrets.token_hex(8)
        store.set(arrived[self.rank], token)
        self._wait(arrived if self.rank == 0 else [complete], end, check, arrived)
        if self.rank == 0:
            store.set(complete, " ".join(store.get(one).decode() for one in arrived))
        tokens = store.get(complete).decode()
        if tokens.split()[self.rank : self.rank + 1] != [token]:
            raise MovedError("these connections are those of an earlier job")
        name = f"{self.name}{generation}/{hashlib.blake2b(tokens.encode(), digest_size=8).hexdigest()}/"
        return make_links(name, self.rank, self.size, end, check), name

    def _wait(self, keys: list[str], end: float, check: Callable[[], None], arrived: list[str]) -> None:
        pause = LOOK_FIRST_SECONDS
        while not self._store().check(keys):
            check()
            if time.monotonic() > end:
                all_came = "a rank that came to make the groups went no further"
                raise TimeoutError(text_of_absent(self._store(), arrived, all_came), rank=self.rank)
            time.sleep(min(pause, max(0.0, end - time.monotonic())))
            pause = min(2 * pause, look_max_seconds(self.size))


class WaitReports:
    """Which ranks of a group wait in which of its exchanges, as each reports to the store. So a time-out can name the
    ranks that did not come.

    A rank reports it once it waits, and when that is over: exchanges that end soon cost nothing.
    """

    def __init__(self, name: str, rank: int, size: int) -> None:
        self._name, self._rank, self._size = f"{name}waits/", rank, size
        self._writing: BackgroundCall[None] | None = None
        self._number = 0  # of the exchange, as the store has it; negative once it is over

    def tell(self, number: int) -> None:
        """This rank waits in the exchange of this number. Local; does not wait for the store."""
        if self._number == number:
            return
        before, self._number = self._writing, number
        self._writing = BackgroundCall(lambda: self._write(before, number))

    def tell_end(self, number: int) -> None:
        """It waits no longer, if it reported that it does."""
        if self._number == number:
            self.tell(-number)

    def _write(self, before: BackgroundCall[None] | None, number: int) -> None:
        if before is None or before.wait(STORE_SECONDS):  # else the store does not answer
            PrefixStore(self._name, own_store()).set(str(self._rank), str(number))

    def absent(self, number: int) -> list[int]:
        """Other ranks that neither wait nor have passed that exchange, as far as they reported. For ``run_with_deadline``."""
        store = PrefixStore(self._name, own_store())
        others = [rank for rank in range(self._size) if rank != self._rank]
        reported = {rank: int(store.get(str(rank))) if store.check([str(rank)]) else 0 for rank in others}
        return [rank for rank in others if -number < reported[rank] <= 0]

    def text_of_absent(self, number: int) -> str:
        """"rank 2 of 3", or "a rank" if the store does not answer, or all came."""
        with contextlib.suppress(Error):
            if absent := run_with_deadline(lambda: self.absent(number), _ABSENT_SECONDS, STORE_NAME):
                return named(absent, self._size)
        return "a rank"
