# SPDX-License-Identifier: Apache-2.0
"""A communicator over the key-value store of jax.distributed."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable, Sequence
from typing import Any

from sealpoint._errors import CommError, TimeoutError
from sealpoint._ranks.communicator import Message
from sealpoint._ranks.rendezvous import seconds_of
from sealpoint.jax._jax import distributed, jax

# Each value in the store is one gRPC message. Longer values are split into parts of this size.
_PART_BYTES = 4 << 20
# A waiting process checks at this interval whether the call was interrupted or another process left the call.
_LOOK_EVERY_SECONDS = 0.2
STORE_NAME = "the store of jax.distributed"
_LENGTH = struct.Struct("<Q")


def client_of_store() -> Any:
    """Returns the client of the coordination service, or None if this process is alone and jax.distributed is not initialized."""
    return distributed.global_state.client


def _pack(messages: Sequence[bytes]) -> bytes:
    return b"".join([*(_LENGTH.pack(len(message)) for message in messages), *messages])


def _unpack(data: bytes, count: int) -> list[bytes]:
    sizes = [_LENGTH.unpack_from(data, i * _LENGTH.size)[0] for i in range(count)]
    at, found = count * _LENGTH.size, []
    for size in sizes:
        found.append(data[at : at + size])
        at += size
    return found


class JaxCommunicator:
    """A communicator for the processes of ``jax.distributed``. They exchange metadata through its key-value store.

    The communicator uses neither devices nor JAX collectives, so training can continue. Each exchange takes some milliseconds.
    Messages pass through the process that runs the coordination service; payload does not pass through this process. After an
    error, the communicator must not be used again.

    Args:
        name: Prefix of all keys. Must be equal on all processes, and unique in this job.
        deadline: Timeout for each call, in seconds. None: no timeout.

    Examples:
        >>> import jax, sealpoint.jax as sp
        >>> def connect(address, number, count):  # on each process
        ...     jax.distributed.initialize(address, count, number)
        ...     return sp.JaxCommunicator()
    """

    def __init__(self, name: str, deadline: float | None = None) -> None:
        self.rank, self.size = jax.process_index(), jax.process_count()
        self.host = socket.gethostname()
        self.look: Callable[[], None] | None = None
        self._client, self._name = client_of_store(), name
        self._interrupted: str | None = None
        self._call_count = 0
        self._duplicate_count = 0
        # New keys: set by this process since the last call in which all processes took part. Old keys: set before that call, and
        # deleted in the next such call.
        self._new_keys: list[str] = []
        self._old_keys: list[str] = []
        self.set_deadline(deadline)

    def __repr__(self) -> str:
        return f"<sealpoint.jax.JaxCommunicator: rank {self.rank} of {self.size}>"

    def set_deadline(self, seconds: float | None) -> None:
        """Sets the timeout for each later call, in seconds. None: no timeout."""
        self._seconds = seconds_of(seconds)

    def interrupt(self, reason: str) -> None:
        """Makes the running call and all later calls on this rank raise CommError with the text ``reason``.

        Callable from any thread.
        """
        self._interrupted = reason

    def duplicate_for_background(self) -> JaxCommunicator:
        self._duplicate_count += 1
        return JaxCommunicator(f"{self._name}/background{self._duplicate_count}", self._seconds)

    def _check(self) -> None:
        if self._interrupted is not None:
            raise CommError(f"the communicator was interrupted: {self._interrupted}", rank=self.rank)
        if self.look is not None:
            self.look()

    def _begin(self) -> str:
        """Returns the key prefix of this call."""
        if self._interrupted is not None:
            raise CommError(f"the communicator was interrupted: {self._interrupted}", rank=self.rank)
        self._end = time.monotonic() + self._seconds
        self._call_count += 1
        return f"{self._name}/{self._call_count}"

    def _all_took_part(self) -> None:
        """Deletes the keys of earlier calls.

        Every process takes part in this call, and has therefore finished all earlier calls.
        """
        for key in self._old_keys:
            self._client.key_value_delete(key)
        self._old_keys, self._new_keys = self._new_keys, []

    def _put(self, key: str, message: Message) -> None:
        data = memoryview(message)
        first = _LENGTH.pack(len(data)) + bytes(data[:_PART_BYTES])
        values = [first, *(bytes(data[at : at + _PART_BYTES]) for at in range(_PART_BYTES, len(data), _PART_BYTES))]
        try:
            for number, value in enumerate(values):
                self._new_keys.append(f"{key}.{number}")
                self._client.key_value_set_bytes(f"{key}.{number}", value)
        except jax.errors.JaxRuntimeError as error:
            raise self._failed(error) from error

    def _get(self, key: str, source: int) -> bytes:
        first = self._get_value(f"{key}.0", source)
        size, parts = _LENGTH.unpack_from(first)[0], [first[_LENGTH.size :]]
        for number in range(1, -(-size // _PART_BYTES)):
            parts.append(self._get_value(f"{key}.{number}", source))
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _get_value(self, key: str, source: int) -> bytes:
        while True:
            left = self._end - time.monotonic()
            wait = max(0.001, min(_LOOK_EVERY_SECONDS, left))
            try:
                return bytes(self._client.blocking_key_value_get_bytes(key, max(1, int(1000 * wait))))
            except jax.errors.JaxRuntimeError as error:
                if "DEADLINE_EXCEEDED" not in str(error):
                    raise self._failed(error) from error
            self._check()
            if left <= 0:
                raise TimeoutError(f"rank {source} did not arrive within {self._seconds:.4g} s", rank=self.rank)

    def _failed(self, error: Exception) -> CommError:
        return CommError(f"{STORE_NAME}: {' '.join(str(error).split())[:500]}", rank=self.rank)

    def broadcast(self, message: Message | None, root: int) -> Message | None:
        key = self._begin()
        if self.rank != root:
            return self._get(key, root)
        assert message is not None
        self._put(key, message)
        return message

    def gather(self, message: Message, root: int) -> Sequence[Message] | None:
        key = self._begin()
        if self.rank != root:
            self._put(f"{key}/{self.rank}", message)
            return None
        return [message if rank == root else self._get(f"{key}/{rank}", rank) for rank in range(self.size)]

    def all_gather(self, message: Message) -> Sequence[Message]:
        """Gathers the messages on rank 0, which sends them to all ranks.

        This needs two requests per process, not one per pair of processes.
        """
        key = self._begin()
        if self.rank == 0:
            messages = [bytes(message), *(self._get(f"{key}/{rank}", rank) for rank in range(1, self.size))]
            self._put(f"{key}/all", _pack(messages))
        else:
            self._put(f"{key}/{self.rank}", message)
            messages = _unpack(self._get(f"{key}/all", 0), self.size)
        self._all_took_part()
        return messages

    def all_to_all(self, messages: Sequence[Message]) -> Sequence[Message]:
        key = self._begin()
        for rank, message in enumerate(messages):
            if rank != self.rank:
                self._put(f"{key}/{self.rank}/{rank}", message)
        received = [
            message if rank == self.rank else self._get(f"{key}/{rank}/{self.rank}", rank)
            for rank, message in enumerate(messages)
        ]
        self._all_took_part()
        return received

    def barrier(self) -> None:
        self.all_gather(b"")

    def all_reduce_max(self, values: Sequence[int]) -> list[int]:
        form = struct.Struct(f"<{len(values)}Q")
        gathered = [form.unpack(value) for value in self.all_gather(form.pack(*values))]
        return [max(column) for column in zip(*gathered, strict=True)]
