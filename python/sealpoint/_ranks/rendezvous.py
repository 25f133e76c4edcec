# SPDX-License-Identifier: Apache-2.0
"""Where ranks connect to each other, again after each error."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from typing import Generic, NamedTuple, Protocol, TypeVar

from sealpoint._errors import CommError
from sealpoint._ranks.background import run_with_deadline
from sealpoint._ranks.communicator import Communicator

FOREVER_SECONDS = 10 * 365 * 86400.0
# How long after a deadline the store may take to answer.
STORE_SECONDS = 1.0
C_co = TypeVar("C_co", bound=Communicator, covariant=True)


class MovedError(CommError):
    """Other ranks left the generation that this rank uses, or waits for."""


class Group(Protocol[C_co]):
    """Ranks of one framework: the store that they share, and how they are connected.

    Functions may be called on any thread, and wait as long as the store does.
    """

    rank: int
    size: int
    store_name: str  # in errors

    def put(self, key: str, value: str) -> None:
        """Sets the key, unless it is set. A key is seen by these ranks alone."""

    def get(self, key: str) -> str | None: ...

    def forget_connection(self) -> None:
        """Local: the store did not answer by this connection."""

    def connect(self, generation: int, end: float, check: Callable[[], None]) -> C_co:
        """A communicator of its own for each generation. All ranks call it. ``end``: by the monotonic clock.

        A rank that waits for others calls ``check`` now and then. Errors: those of check(); TimeoutError (names the ranks
        that did not come), CommError; MovedError (keys of an earlier job are in the store).
        """


class Left(NamedTuple):
    """Why a generation ended."""

    call: str  # key of the call that a rank left; "": it left between calls
    why: str
    is_late: bool  # that rank only waited too long


class Rendezvous(Generic[C_co]):
    """The communicators of a group, one after the other, counted by generations.

    A rank that leaves a call by an error ends the generation before it raises. So all other ranks notice, and meet in the
    next generation. All functions but ``connect`` wait for the store, so they are for ``run_with_deadline``.
    """

    def __init__(self, group: Group[C_co]) -> None:
        self.group = group

    def end_of(self, generation: int) -> Left | None:
        """None: this generation has not ended."""
        found = self.group.get(f"left/{generation}")
        return None if found is None else Left(*json.loads(found))

    def leave(self, generation: int, left: Left) -> None:
        """This rank will not use the generation again."""
        while True:
            self.group.put(f"left/{generation}", json.dumps(left))
            first = self.end_of(generation)
            if not left.call or first is None or first.call == left.call:
                return
            generation += 1  # it had ended before this call; ranks that make this call meet in the next one

    def current(self, generation: int, call: str) -> int:
        """The first generation from this one on that has not ended. Errors: CommError (another rank left this very call)."""
        while (left := self.end_of(generation)) is not None:
            if call and left.call == call:
                raise CommError(left.why)
            generation += 1
        return generation

    def connect(self, generation: int, call: str, seconds: float) -> tuple[C_co, int]:
        """A communicator of the current generation, and that. All ranks call it.

        Errors: CommError (another rank left this very call), TimeoutError (names the ranks that did not come).
        """
        stop, end = threading.Event(), time.monotonic() + seconds
        try:
            return run_with_deadline(
                lambda: self._connect(generation, call, end, stop), seconds + STORE_SECONDS, "making groups of the ranks"
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
                    raise MovedError("the ranks make other groups")

            try:
                return self.group.connect(generation, end, check), generation
            except MovedError:
                if stop.is_set():
                    raise
                self.leave(generation, Left("", "", False))
