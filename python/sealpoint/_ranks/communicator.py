# SPDX-License-Identifier: Apache-2.0
"""A group of processes, as saves and loads of many ranks need it."""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from typing import Protocol

Message = bytes | bytearray | memoryview


class Communicator(Protocol):
    """A group of ranks, through which metadata travels, and in a load the parts of one chunk that several ranks request.

    All functions below ``set_deadline``, but ``interrupt``, are collective: all ranks call them in the same order.
    Each returns within the deadline; after an exception the group must not be used again. They are called on one
    thread at a time, which need not be the main one, and never by two threads at once. Messages may be empty, may
    differ in size from rank to rank, and may exceed 2 GiB; they are readable only during the call.
    """

    # Called now and then while a rank waits for others; its exception becomes that of the exchange.
    look: Callable[[], None] | None

    @property
    def rank(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def host(self) -> str: ...

    def set_deadline(self, seconds: float | None) -> None:
        """How long one call may take; None: no limit. Local."""

    def barrier(self) -> None: ...

    def broadcast(self, message: Message | None, root: int) -> Message | None:
        """The root's message; the root itself may return None."""

    def gather(self, message: Message, root: int) -> Sequence[Message] | None:
        """One message per rank on the root."""

    def all_gather(self, message: Message) -> Sequence[Message]: ...

    def all_to_all(self, messages: Sequence[Message]) -> Sequence[Message]:
        """``messages`` has one per destination; the result has one per source."""

    def all_reduce_max(self, values: Sequence[int]) -> Sequence[int]:
        """Element-wise maxima of numbers in [0, 2**64)."""

    def duplicate_for_background(self) -> Communicator:
        """The same ranks once more, for a thread in the background; messages of the two never meet."""

    def interrupt(self, reason: str) -> None:
        """The call that is under way, and all later ones, raise an exception soon. Local, from any thread."""


class SelfCommunicator:
    """One rank."""

    rank = 0
    size = 1

    def __init__(self) -> None:
        self.host = socket.gethostname()
        self.look: Callable[[], None] | None = None

    def set_deadline(self, seconds: float | None) -> None:
        pass

    def barrier(self) -> None:
        pass

    def broadcast(self, message: Message | None, root: int) -> Message | None:
        return message

    def gather(self, message: Message, root: int) -> Sequence[Message] | None:
        return [message]

    def all_gather(self, message: Message) -> Sequence[Message]:
        return [message]

    def all_to_all(self, messages: Sequence[Message]) -> Sequence[Message]:
        return messages

    def all_reduce_max(self, values: Sequence[int]) -> Sequence[int]:
        return values

    def duplicate_for_background(self) -> SelfCommunicator:
        return self

    def interrupt(self, reason: str) -> None:
        pass
