# SPDX-License-Identifier: Apache-2.0
"""Where ranks meet to make a group of gloo, and say that they left it: the store of torch.distributed."""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import secrets
import threading
import time
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from torch._C._distributed_c10d import PrefixStore, ProcessGroupGloo
from torch.distributed.distributed_c10d import _get_default_store

from sealpoint._errors import CommError, Error, TimeoutError

FOREVER_SECONDS = 10 * 365 * 86400.0
T = TypeVar("T")

_LOOK_FIRST_SECONDS, _LOOK_MAX_SECONDS = 0.002, 0.2
_NAMED_MAX = 8
# How long after the end of what waits for other ranks the store may take to answer.
_STORE_SECONDS = 1.0
# How long a rank that waited too long waits for the store to say for whom.
_ABSENT_SECONDS = 0.5


class Aside(Generic[T]):
    """A call on a thread of its own: what waits in C++ hears neither Ctrl-C nor a deadline of ours.

    A thread that nobody waits for any longer is left behind; it does not keep the process alive.
    """

    def __init__(self, call: Callable[[], T]) -> None:
        self._call = call
        self._ended = threading.Event()
        self._result: list[T] = []
        self._error: BaseException | None = None
        threading.Thread(target=self._run, name="sealpoint-aside", daemon=True).start()

    def _run(self) -> None:
        try:
            self._result.append(self._call())
        except BaseException as error:
            self._error = error
        self._ended.set()

    def wait(self, seconds: float) -> bool:
        """Whether it is over, after so long at most."""
        return self._ended.wait(max(0.0, seconds))

    def result(self) -> T:
        """Once it is over."""
        if self._error is not None:
            raise self._error
        return self._result[0]


def run_aside(call: Callable[[], T], seconds: float, what: str) -> T:
    """What call() returns. Errors: TimeoutError (of ``what``); those of the store are CommErrors."""
    aside = Aside(call)
    if not aside.wait(seconds):
        raise TimeoutError(f"{what} did not end within {seconds:.4g} s")
    try:
        return aside.result()
    except Error:
        raise
    except RuntimeError as error:  # of torch, as a store's host that died has it
        raise CommError(f"{what}: {' '.join(str(error).split())}") from error


def own_store() -> Any:
    """The store of torch.distributed by a connection of our own: a call that waits on it holds up no other."""
    store = _get_default_store()
    return store.clone() if hasattr(store, "clone") else store


def make_group(name: str, rank: int, size: int, end: float, check: Callable[[], None]) -> Any:
    """A group that torch knows nothing of, of those who give the same name. ``check`` is called meanwhile.

    torch.distributed.new_group is for all ranks of the job, or names the group by how many others the process has.
    """
    timeout = datetime.timedelta(seconds=max(0.001, end - time.monotonic()))
    came = [f"came{one}" for one in range(size)]

    def make() -> Any:
        store = PrefixStore(name, own_store())
        store.set(came[rank], "")
        return ProcessGroupGloo(store, rank, size, timeout)

    def text() -> str:
        all_came = f"{size} ranks came to make their groups, but could not connect in time"
        return _text_of_absent(PrefixStore(name, own_store()), came, all_came)

    made = Aside(make)
    while not made.wait(_LOOK_MAX_SECONDS):
        check()
        if time.monotonic() > end:
            raise TimeoutError(run_aside(text, _STORE_SECONDS, "the store of torch.distributed"), rank=rank)
    try:
        return made.result()
    except RuntimeError as error:
        check()
        if time.monotonic() > end:
            raise TimeoutError(run_aside(text, _STORE_SECONDS, "the store of torch.distributed"), rank=rank) from error
        raise CommError(f"gloo: {' '.join(str(error).split())}", rank=rank) from error


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

    def meet(self, call: str, seconds: float) -> tuple[Any, int, str]:
        """A new group, its generation, and a name that no other group has. All ranks call it, and it ends in time.

        Errors: CommError (another rank gave up this very call), TimeoutError (names the ranks that did not come).
        """
        stop, end = threading.Event(), time.monotonic() + seconds
        try:
            return run_aside(lambda: self._join(call, end, stop), seconds + _STORE_SECONDS, "making groups of the ranks")
        except BaseException:
            stop.set()
            self.forget_connection()
            raise

    def _join(self, call: str, end: float, stop: threading.Event) -> tuple[Any, int, str]:
        while True:
            generation = self.newest()
            why = self.why_left(call)
            if why is not None:
                raise CommError(why[1])
            try:
                group, name = self._meet(generation, end, stop)
            except MovedError:
                if stop.is_set():
                    raise
                continue
            return group, generation, name

    def _meet(self, generation: int, end: float, stop: threading.Event) -> tuple[Any, str]:
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
        return make_group(name, self._rank, self._size, end, check), name

    def _wait(self, keys: list[str], end: float, check: Callable[[], None], arrived: list[str]) -> None:
        pause = _LOOK_FIRST_SECONDS
        while not self._store().check(keys):
            check()
            if time.monotonic() > end:
                all_came = "a rank that came to make the groups went no further"
                raise TimeoutError(_text_of_absent(self._store(), arrived, all_came), rank=self._rank)
            time.sleep(min(pause, max(0.0, end - time.monotonic())))
            pause = min(2 * pause, _LOOK_MAX_SECONDS)


def _text_of_absent(store: Any, arrived: list[str], all_came: str) -> str:
    """Which ranks did not set their keys, or ``all_came``."""
    absent = [rank for rank, key in enumerate(arrived) if not store.check([key])]
    return f"{_named(absent, len(arrived))} did not come to make the groups" if absent else all_came


def _named(absent: list[int], size: int) -> str:
    named = ", ".join(map(str, absent[:_NAMED_MAX]))
    more = f" and {len(absent) - _NAMED_MAX} more" if len(absent) > _NAMED_MAX else ""
    return f"{'rank' if len(absent) == 1 else 'ranks'} {named}{more} of {size}"


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
        if before is None or before.wait(_STORE_SECONDS):  # else the store does not answer
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
                return _named(absent, self._size)
        return "a rank"
