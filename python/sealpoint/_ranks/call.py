# SPDX-License-Identifier: Apache-2.0
"""A collective call on all ranks."""

from __future__ import annotations

import contextlib
import hashlib
import os
import struct
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, cast

from sealpoint import _sealpoint, _tree
from sealpoint._errors import CommError, Error, InvalidArgumentError, TimeoutError
from sealpoint._ranks.background import BackgroundCall
from sealpoint._ranks.communicator import Communicator, Message
from sealpoint._ranks.connection import Connection
from sealpoint._ranks.rendezvous import Left, MovedError, seconds_of

# A waiting rank checks at these intervals whether another rank has left.
_LOOK_FIRST_SECONDS, _LOOK_MAX_SECONDS = 0.05, 1.0
_WHY_MAX = 1000  # maximum number of characters of the reason sent to other ranks
# Precedes the first message of a call: number of calls by this rank, digest of the call, and digest of the rank's host.
_HEAD = struct.Struct("<Q16s16s")
# First byte of an answer.
_ERROR, _ANSWER = b"E", b"A"
T = TypeVar("T")


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=16).digest()


class Call:
    """A collective call. Its first exchange is ``agree``.

    ``agree`` compares the calls of the ranks, so that the library does not need to compare them (see
    ``Communicator::calls_are_compared``). ``agree`` also reconnects the ranks if other ranks left the previous connections. If an
    exception occurs only on this rank, it is sent to the other ranks immediately. Errors name the purpose of the failed exchange,
    such as "compared what they save".
    """

    def __init__(
        self, connection: Connection, kind: str, path: Any, step: Any, same: Mapping[str, Any], deadline: float | None
    ) -> None:
        """Begins the call. ``same`` contains the arguments that must be equal on all ranks."""
        self._connection, self._deadline = connection, deadline
        self.rank, self.size, self.host = connection.rank, connection.size, connection.host
        self.memory = connection.memory
        self._path = "" if path is None else os.fsdecode(path)
        target = f" {self._path!r}" if self._path else ""
        self.text = f"{kind}{'' if step is None else f' of step {step}'}{target}"
        self._same = [(name, repr(value)) for name, value in same.items()]
        self._has_begun = False
        self._doing: str | None = None  # purpose of the current exchange; None: an exchange by the library
        self._calls: list[bytes] = []  # calls of all ranks, if they differ
        self._next_look, self._look_every = 0.0, _LOOK_FIRST_SECONDS
        self._looking: BackgroundCall[Left | None] | None = None

    @property
    def _key(self) -> str:
        """The key of this call.

        After the first exchange, the key is equal on all ranks. Before the first exchange, it is equal unless a rank missed a call.
        """
        return f"{self._connection.call_count}/{hashlib.blake2b(self.text.encode(), digest_size=8).hexdigest()}"

    @property
    def communicator(self) -> Communicator:
        """The communicator. Valid after the first exchange."""
        communicator = self._connection.communicator
        assert communicator is not None
        return communicator

    def agree(self, make: Callable[[], tuple[T, bytes]], what: str) -> tuple[T, list[bytes]]:
        """Calls make() on each rank, and exchanges the results. Collective.

        make() returns a value for this rank and bytes for all ranks. The call returns the value of this rank, and the bytes of
        all ranks.

        If make() fails on one rank, all ranks raise the error, which names that rank. All ranks also raise an error if their calls
        differ.
        """
        made: T | None = None
        error: Exception | None = None
        try:
            made, answer = make()
            message = _ANSWER + answer
        except Exception as failed:  # other ranks must not wait for this rank, whatever the error
            error, message = failed, _ERROR + self._encoded(failed)
        answers = [bytes(item) for item in self.all_gather(message, what)]
        for item in answers:
            if item[:1] == _ERROR:
                raise _sealpoint.decode_error(item[1:]) from error
        if self._calls:
            _sealpoint.compare_calls(self._calls)
        return cast(T, made), [item[1:] for item in answers]

    def _encoded(self, raised: Exception) -> bytes:
        """Encodes an error for other ranks. Errors from the caller's code or from a framework become InvalidArgumentError."""
        if not isinstance(raised, Error):
            text = f"{type(raised).__name__}: {' '.join(str(raised).split())}"
            raised = InvalidArgumentError(text.encode("utf-8", "backslashreplace").decode())
        return _sealpoint.encode_error(raised, self.rank, self.host)

    def run_on_first(self, make: Callable[[], Any]) -> Any:
        """Calls make() on rank 0. Returns its result or raises its error on all ranks. Collective."""
        _, answers = self.agree(
            lambda: (None, _tree.dump(make()) if self.rank == 0 else b""), "waited for the result of rank 0"
        )
        return _tree.parse(answers[0])

    def all_gather(self, message: Message, what: str) -> Sequence[Message]:
        self._doing = what
        messages = self.communicator.all_gather(message) if self._has_begun else self._begin(bytes(message))
        self._doing = None
        return messages

    def gather(self, message: Message, root: int, what: str) -> Sequence[Message] | None:
        """Gathers one message per rank. Valid after the first exchange."""
        self._doing = what
        messages = self.communicator.gather(message, root)
        self._doing = None
        return messages

    def spans_hosts(self) -> bool:
        """Tells whether the ranks span several hosts. Valid after the first exchange. Local."""
        return len(set(self._connection.hosts)) > 1

    def _begin(self, message: bytes) -> list[bytes]:
        """Runs the first exchange.

        If a rank has made fewer calls than others, makes the call counts equal.
        """
        named = _digest(_sealpoint.encode_call(self.text, self._same, ""))
        message = _HEAD.pack(self._connection.call_count, named, _digest(self.host.encode())) + message
        seconds = seconds_of(self._deadline)
        end = time.monotonic() + seconds
        while True:
            communicator = self._connection.communicator_for(self._key, self._look, end)
            communicator.set_deadline(max(0.001, end - time.monotonic()))
            try:
                answers = [bytes(answer) for answer in communicator.all_gather(message)]
                heads = [_HEAD.unpack_from(answer) for answer in answers]
                # Checked within this loop, because a rank may leave the group in the call to which its answer belongs.
                if any(digest != named for _, digest, _ in heads):
                    own = _sealpoint.encode_call(self.text, self._same, self.host)
                    self._calls = [bytes(answer) for answer in communicator.all_gather(own)]
                break
            except (CommError, TimeoutError) as error:
                if time.monotonic() >= end or not self._was_left(error):
                    raise
                self._connection.drop()
        communicator.set_deadline(self._deadline)
        self._has_begun = True
        self._connection.call_count = max(count for count, _, _ in heads)
        self._connection.hosts = [host for _, _, host in heads]
        return [answer[_HEAD.size :] for answer in answers]

    def _was_left(self, error: Error) -> bool:
        """Tells whether other ranks left the group before this call, which explains the error.

        If they left during this call, raises CommError with their reason.
        """
        if isinstance(error, MovedError):
            return True
        left = self._connection.end_of_generation()
        if left is not None and left.call == self._key:
            raise CommError(left.why) from error
        return left is not None

    def _look(self) -> None:
        """Checks whether another rank has left. Called from time to time while this rank waits."""
        now, rendezvous, generation = time.monotonic(), self._connection.rendezvous, self._connection.generation
        assert rendezvous is not None
        if self._looking is None:
            if now >= self._next_look:
                self._looking = BackgroundCall(lambda: rendezvous.end_of(generation))
        elif self._looking.wait(0):
            looked, self._looking = self._looking, None
            self._next_look, self._look_every = now + self._look_every, min(2 * self._look_every, _LOOK_MAX_SECONDS)
            with contextlib.suppress(RuntimeError):  # the store's host is gone; the exchange detects this, too
                left = looked.result()
                if left is not None and left.call == self._key:
                    raise CommError(left.why)
                if left is not None and not self._has_begun:
                    raise MovedError("other ranks left this group")

    def end(self, error: BaseException) -> None:
        """Ends the call with an error on this rank. If not all ranks have the same error, the group can no longer be used."""
        if not isinstance(error, Error):
            text = self._named(" ".join(f"{type(error).__name__}: {error}".split()))
            return self._leave(text, False)
        if error.code not in ("Comm", "Timeout"):
            return
        is_late, text = error.code == "Timeout", self._named(error.message)
        left, can_tell = None, True
        try:
            left = self._connection.end_of_generation()
        except Error:
            can_tell = False
        if left is not None and left.call == self._key and not (is_late and left.is_late):  # else, both waited for a third rank
            text = left.why  # the cause of this rank's error
        error.message, error.args = text, (text, *error.args[1:])
        if can_tell:
            self._leave(text, is_late)
        else:
            self._connection.drop()

    def _leave(self, text: str, is_late: bool) -> None:
        self._connection.leave(Left(self._key, f"rank {self.rank} left {text}"[:_WHY_MAX], is_late))

    def _named(self, text: str) -> str:
        """Prefixes the text of an error with the name of the call and the purpose of the current exchange.

        Errors from the library's own exchanges already contain both.
        """
        if self._doing is None and self._path and self._path in text:
            return text
        return f"{self.text}{'' if self._doing is None else f', while the ranks {self._doing}'}: {text}"
