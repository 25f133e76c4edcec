# SPDX-License-Identifier: Apache-2.0
"""The connections of a group of ranks. After an error the ranks connect again."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import Any, TypeVar

from sealpoint._errors import Error, TimeoutError
from sealpoint._ranks.background import run_with_deadline
from sealpoint._ranks.communicator import Communicator, SelfCommunicator
from sealpoint._ranks.rendezvous import Group, Left, Rendezvous

# Maximum time for which a failing rank waits for the store. The store has to accept only a short message.
_LEAVE_SECONDS = 2.0
T = TypeVar("T")


class Connection:
    """The communicator of a group, and the rendezvous that creates the next communicator.

    All calls of the group share the connection.
    """

    def __init__(self, group: Group[Communicator] | None) -> None:
        """Connects lazily. ``group`` is None if this process is alone."""
        self.rank, self.size, self.host = 0, 1, SelfCommunicator().host
        self.rendezvous: Rendezvous[Communicator] | None = None
        if group is not None:
            self.rank, self.size, self.rendezvous = group.rank, group.size, Rendezvous(group)
        self.communicator: Communicator | None = None
        self.generation = 0  # generation of the communicator
        self.call_count = 0
        self.hosts: list[bytes] = []  # digests of the host names of all ranks, known after the first call
        self.is_broken = False
        self.memory: dict[str, Any] = {}  # values that a call keeps for later calls of this group, on this rank

    def _ask(self, question: Callable[[Rendezvous[Communicator]], T]) -> T | None:
        """Returns question(rendezvous). Raises TimeoutError and CommError if the store does not answer."""
        rendezvous = self.rendezvous
        if rendezvous is None:
            return None
        try:
            return run_with_deadline(lambda: question(rendezvous), _LEAVE_SECONDS, rendezvous.group.store_name)
        except TimeoutError:
            rendezvous.group.forget_connection()
            raise

    def end_of_generation(self) -> Left | None:
        """Returns why another rank left the generation of this connection, or None. A generation ends when a rank leaves it.

        Propagates TimeoutError and CommError from the store.
        """
        return self._ask(lambda rendezvous: rendezvous.end_of(self.generation))

    def communicator_for(self, key: str, look: Callable[[], None], end: float) -> Communicator:
        """Returns the group's communicator.

        Collective if a communicator must be created.
        """
        if self.is_broken:
            self._ask(lambda rendezvous: rendezvous.leave(self.generation, Left("", "a save in the background failed", False)))
            self.drop()
        if self.communicator is None and self.rendezvous is None:
            self.communicator = SelfCommunicator()
        elif self.communicator is None:
            assert self.rendezvous is not None
            seconds = end - time.monotonic()
            self.communicator, self.generation = self.rendezvous.connect(self.generation, key, seconds)
        assert self.communicator is not None
        self.communicator.look = look
        return self.communicator

    def drop(self) -> None:
        """Drops the reference to the communicator. Local."""
        self.communicator, self.is_broken = None, False

    def leave(self, left: Left) -> None:
        """Closes the connections and tells other ranks the reason. Local."""
        with contextlib.suppress(Error):  # unreachable ranks notice at their deadline
            self._ask(lambda rendezvous: rendezvous.leave(self.generation, left))
        self.drop()  # last, because other ranks notice closed connections immediately, and ask for the reason
