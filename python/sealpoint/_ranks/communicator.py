# SPDX-License-Identifier: Apache-2.0
"""The interface of process groups for collective saves and loads."""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from typing import Protocol

Message = bytes | bytearray | memoryview


class Communicator(Protocol):
    """A group of ranks that can exchange messages.

    Messages contain metadata and, in a load, parts of chunks that several ranks need.

    All functions after ``set_deadline`` except ``interrupt`` are collective: all ranks call them in the same order. Each function
    returns within the deadline. After an exception the group must not be used again. Only one thread at a time calls these
    functions, not necessarily the main thread. Messages may be empty, may differ in size between ranks, and may exceed 2 GiB. An
    argument is readable only during the call.
    """

    # Called from time to time while a rank waits for others; its exception becomes the error of the exchange.
    look: Callable[[], None] | None

    @property
    def rank(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def host(self) -> str: ...

    def set_deadline(self, seconds: float | None) -> None:
        """Sets the timeout for each call, in seconds. None: no timeout. Local."""

    def barrier(self) -> None: ...

    def broadcast(self, message: Message | None, root: int) -> Message | None:
        """Sends the root's message to all ranks and returns it. On the root, the result may be None."""

    def gather(self, message: Message, root: int) -> Sequence[Message] | None:
        """Returns one message per rank on the root."""

    def all_gather(self, message: Message) -> Sequence[Message]: ...

    def all_to_all(self, messages: Sequence[Message]) -> Sequence[Message]:
        """Sends ``messages``, one per destination rank. Returns one message per source rank."""

    def all_reduce_max(self, values: Sequence[int]) -> Sequence[int]:
        """Returns the element-wise maxima of ``values`` over all ranks. The values are in [0, 2**64)."""

    def duplicate_for_background(self) -> Communicator:
        """Returns a second communicator with the same ranks, for a background thread.

        Messages of the two communicators never mix.
        """

    def interrupt(self, reason: str) -> None:
        """Makes the current call and all later calls raise an exception soon. Local; callable from any thread."""


class SelfCommunicator:
    """A communicator with one rank."""

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
