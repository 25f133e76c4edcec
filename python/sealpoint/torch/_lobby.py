# SPDX-License-Identifier: Apache-2.0
"""Where ranks meet to link themselves, and say that they left: the store of torch.distributed."""

from __future__ import annotations

import contextlib
import hashlib
import secrets
import threading
import time
from collections.abc import Callable
from typing import Any

from torch._C._distributed_c10d import PrefixStore

from sealpoint._errors import CommError, Error, TimeoutError
from sealpoint.torch._links import Links, make_links
from sealpoint.torch._store import (
    LOOK_FIRST_SECONDS,
    STORE_SECONDS,
    Aside,
    look_max_seconds,
    named,
    own_store,
    run_aside,
    text_of_absent,
)

# How long a rank that waited too long waits for the store to say for whom.
_ABSENT_SECONDS = 0.5


class MovedError(CommError):
    """Other ranks gave up the group that this rank uses, or waits for."""


class Lobby:
    """The groups of some ranks, one after the other, counted by generations.

    A rank that leaves a call by an error makes the next generation the one to be used, before it raises. So those that
    wait in the old one, or for it, find out, and all meet in the new one, whoever noticed what.

    All functions but ``meet`` wait for the store, so they are for ``run_aside``.
    """

    def __init__(self, name: str, rank: int, size: int) -> None:
        """``name``: the same on all of the ranks, and of nobody else."""
        self._name, self._rank, self._size = f"sealpoint/{name}/", rank, size
        self._connection: Any = None

    def _store(self) -> Any:
        if self._connection is None:
            self._connection = PrefixStore(self._name, own_store())
        return self._connection

    def forget_connection(self) -> None:
        """One that does not answer."""
        self._connection = None

    def newest(self) -> int:
        """The generation to be used."""
        return int(self._store().compare_set("generation", "", "1"))

    def leave(self, generation: int, call: str | None, why: str, is_late: bool = False) -> None:
        """This rank will not use that generation again, since ``call`` (None: nothing that others may be in) failed.
        ``is_late``: it waited too long."""
        if call is not None:
            self._store().compare_set(f"left/{call}", "", f"{'late' if is_late else 'left'} {why}")
        self._store().compare_set("generation", str(generation), str(generation + 1))

    def why_left(self, call: str) -> tuple[bool, str] | None:
        """Whether the first rank that gave up this call only waited too long, and why it did so; or None."""
        key = f"left/{call}"
        if not self._store().check([key]):
            return None
        kind, why = self._store().get(key).decode().split(" ", 1)
        return kind == "late", why

    def meet(self, call: str, seconds: float) -> tuple[Links, int, str]:
        """The links of a new group, its generation, and a name that no other group has. All ranks call it, and it ends in time.

        Errors: CommError (another rank gave up this very call), TimeoutError (names the ranks that did not come).
        """
        stop, end = threading.Event(), time.monotonic() + seconds
        try:
            return run_aside(lambda: self._join(call, end, stop), seconds + STORE_SECONDS, "making groups of the ranks")
        except BaseException:
            stop.set()
            self.forget_connection()
            raise

    def _join(self, call: str, end: float, stop: threading.Event) -> tuple[Links, int, str]:
        while True:
            generation = self.newest()
            why = self.why_left(call)
            if why is not None:
                raise CommError(why[1])
            try:
                links, name = self._meet(generation, end, stop)
            except MovedError:
                if stop.is_set():
                    raise
                continue
            return links, generation, name

    def _meet(self, generation: int, end: float, stop: threading.Event) -> tuple[Links, str]:
        store = self._store()
        arrived = [f"{generation}/rank{rank}" for rank in range(self._size)]
        complete = f"{generation}/complete"
        # Not that of a job before, which had the same store.
        token = secrets.token_hex(8)
        store.set(arrived[self._rank], token)

        def check() -> None:
            if stop.is_set() or self.newest() != generation:
                raise MovedError("the ranks make other groups")

        self._wait(arrived if self._rank == 0 else [complete], end, check, arrived)
        if self._rank == 0:
            store.set(complete, " ".join(store.get(one).decode() for one in arrived))
        tokens = store.get(complete).decode()
        if tokens.split()[self._rank : self._rank + 1] != [token]:
            self.leave(generation, None, "")
            raise MovedError("that of a job before")
        name = f"{self._name}{generation}/{hashlib.blake2b(tokens.encode(), digest_size=8).hexdigest()}/"
        return make_links(name, self._rank, self._size, end, check), name

    def _wait(self, keys: list[str], end: float, check: Callable[[], None], arrived: list[str]) -> None:
        pause = LOOK_FIRST_SECONDS
        while not self._store().check(keys):
            check()
            if time.monotonic() > end:
                all_came = "a rank that came to make the groups went no further"
                raise TimeoutError(text_of_absent(self._store(), arrived, all_came), rank=self._rank)
            time.sleep(min(pause, max(0.0, end - time.monotonic())))
            pause = min(2 * pause, look_max_seconds(self._size))


class Waiters:
    """Which ranks of a group wait in which of its exchanges, as each reports to the store. So a time-out can name the
    ranks that did not come.

    A rank reports it once it waits, and when that is over: exchanges that end soon cost nothing.
    """

    def __init__(self, name: str, rank: int, size: int) -> None:
        self._name, self._rank, self._size = f"{name}waits/", rank, size
        self._writing: Aside[None] | None = None
        self._number = 0  # of the exchange, as the store has it; negative once it is over

    def tell(self, number: int) -> None:
        """This rank waits in the exchange of this number. Local; does not wait for the store."""
        self._tell(number)

    def tell_end(self, number: int) -> None:
        """It waits no longer, if it reported that it does."""
        if self._number == number:
            self._tell(-number)

    def _tell(self, number: int) -> None:
        if self._number == number:
            return
        before, self._number = self._writing, number
        self._writing = Aside(lambda: self._write(before, number))

    def _write(self, before: Aside[None] | None, number: int) -> None:
        if before is None or before.wait(STORE_SECONDS):  # else the store does not answer
            PrefixStore(self._name, own_store()).set(str(self._rank), str(number))

    def absent(self, number: int) -> list[int]:
        """Other ranks that neither wait nor have passed that exchange, as far as they reported. For ``run_aside``."""
        store = PrefixStore(self._name, own_store())
        others = [rank for rank in range(self._size) if rank != self._rank]
        reported = {rank: int(store.get(str(rank))) if store.check([str(rank)]) else 0 for rank in others}
        return [rank for rank in others if -number < reported[rank] <= 0]

    def text_of_absent(self, number: int) -> str:
        """"rank 2 of 3", or "a rank" if the store does not answer, or all came."""
        with contextlib.suppress(Error):
            if absent := run_aside(lambda: self.absent(number), _ABSENT_SECONDS, "the store of torch.distributed"):
                return named(absent, self._size)
        return "a rank"
