# SPDX-License-Identifier: Apache-2.0
"""Rendezvous: connects ranks to each other, and reconnects them after each error."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from typing import Generic, NamedTuple, Protocol, TypeVar

from sealpoint._errors import CommError
from sealpoint._ranks.background import run_with_deadline
from sealpoint._ranks.communicator import Communicator

_FOREVER_SECONDS = 10 * 365 * 86400.0
# Additional time after a deadline, for an answer of the store.
STORE_SECONDS = 1.0
C_co = TypeVar("C_co", bound=Communicator, covariant=True)


def seconds_of(deadline: float | None) -> float:
    """Returns a deadline as a number of seconds. None becomes a very large number."""
    return _FOREVER_SECONDS if deadline is None else deadline


class MovedError(CommError):
    """Other ranks left the generation that this rank uses or waits for."""


class Group(Protocol[C_co]):
    """The ranks of a framework's process group, their shared store, and a method that connects them.

    Callable from any thread. Each call waits until the store has answered.
    """

    rank: int
    size: int
    store_name: str  # for errors

    def put(self, key: str, value: str) -> None:
        """Sets a key of the store, unless the key is already set. Only the ranks of this group see the key."""

    def get(self, key: str) -> str | None: ...

    def forget_connection(self) -> None:
        """Drops the connection to the store, because the store did not answer. Local."""

    def connect(self, generation: int, end: float, check: Callable[[], None]) -> C_co:
        """Connects the ranks and returns the communicator of a generation. Collective. ``end``: time limit on the monotonic clock.

        While a rank waits, it calls ``check`` from time to time. Raises the errors of check(), CommError, and TimeoutError, which
        names the absent ranks. Raises MovedError if the store still has the keys of an earlier job.
        """


class Left(NamedTuple):
    """The reason why a generation ended."""

    call: str  # key of the call that a rank left; "": it left between calls
    why: str
    is_late: bool  # the rank left because its wait took too long


class Rendezvous(Generic[C_co]):
    """Creates the communicators of a group, one after another. The number of a communicator is its generation.

    If a rank leaves a call with an error, it first ends the generation. All other ranks notice this and meet in the next
    generation. All methods except ``connect`` wait for the store without a limit, so call them via ``run_with_deadline``.
    """

    def __init__(self, group: Group[C_co]) -> None:
        self.group = group

    def end_of(self, generation: int) -> Left | None:
        """Returns why a generation ended, or None if it has not ended."""
        found = self.group.get(f"left/{generation}")
        return None if found is None else Left(*json.loads(found))

    def leave(self, generation: int, left: Left) -> None:
        """Tells other ranks that this rank will not use the generation again."""
        while True:
            self.group.put(f"left/{generation}", json.dumps(left))
            first = self.end_of(generation)
            if not left.call or first is None or first.call == left.call:
                return
            generation += 1  # the generation ended before this call; ranks in this call meet in the next generation

    def current(self, generation: int, call: str) -> int:
        """Returns the first generation that has not ended, starting the search at ``generation``.

        Raises CommError if a different rank left during this call.
        """
        while (left := self.end_of(generation)) is not None:
            if call and left.call == call:
                raise CommError(left.why)
            generation += 1
        return generation

    def connect(self, generation: int, call: str, seconds: float) -> tuple[C_co, int]:
        """Returns the communicator of the current generation, and the number of the generation. Collective.

        Raises CommError if a different rank left during this call, and TimeoutError, which names the absent ranks.
        """
        stop, end = threading.Event(), time.monotonic() + seconds
        try:
            return run_with_deadline(
                lambda: self._connect(generation, call, end, stop), seconds + STORE_SECONDS, "connecting the ranks"
            )
        except BaseException:
            stop.set()
            self.group.forget_connection()
            raise

    def _connect(self, generation: int, call: str, end: float, stop: threading.Event) -> tuple[C_co, int]:
        while True:
            generation = self.current(generation, call)

            def check(generation: int = generation) -> None:
                if stop.is_set() or self.end_of(generation) is not None:
                    raise MovedError("the ranks create different groups")

            try:
                return self.group.connect(generation, end, check), generation
            except MovedError:
                if stop.is_set():
                    raise
                self.leave(generation, Left("", "", False))
