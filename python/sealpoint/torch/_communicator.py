# SPDX-License-Identifier: Apache-2.0
"""A communicator over private gloo groups."""

from __future__ import annotations

import atexit
import collections
import ctypes
import datetime
import hashlib
import socket
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import torch
import torch.distributed as dist

from sealpoint._errors import CommError, TimeoutError
from sealpoint._ranks.communicator import Message
from sealpoint._ranks.rendezvous import Rendezvous, seconds_of
from sealpoint.torch._links import Links, Run, make_links
from sealpoint.torch._rendezvous import StoreOfRanks, WaitReports

# Time by which gloo's own timeout exceeds the deadline of a call. Before gloo closes connections, other ranks must learn the
# reason.
_LATER = datetime.timedelta(seconds=10)
# Interval of checks for interruption.
_LOOK_EVERY = datetime.timedelta(milliseconds=50)
_DEFAULT_SECONDS = 1800.0
# Offset that is subtracted from unsigned 64-bit numbers, because torch reduces only signed numbers.
_SIGN = 1 << 63
# Messages of different sizes are padded to the size of the largest one, unless padding would more than double the volume.
_PADDING_FREE_BYTES = 1 << 16
# A first message has the same size on all ranks: two numbers, then as many payload bytes as fit. A small message needs
# no second message. The first messages of all ranks add up to at most 64 KiB on one rank.
_HEAD_BYTES = 16
_ROOM_MAX_BYTES = 4096
_ROOM_TOGETHER_BYTES = 1 << 16
T = TypeVar("T")


def _bytes_of(message: Message) -> torch.Tensor:
    if len(message) == 0:
        return torch.empty(0, dtype=torch.uint8)
    with warnings.catch_warnings():
        # torch only reads this memory, although it could write to it.
        warnings.filterwarnings("ignore", "The given buffer is not writable")
        return torch.frombuffer(memoryview(message), dtype=torch.uint8)


def _view(tensor: torch.Tensor) -> memoryview:
    array: Any = tensor.numpy()
    return memoryview(array)


# Number of communicators that this process created for a set of ranks. The number is equal on all of these ranks.
_counts: collections.Counter[tuple[str, str]] = collections.Counter()


# Links with an abandoned call in progress. Destroying their group would wait for the call while holding the GIL.
_abandoned: list[tuple[Any, Any]] = []


def _forget_ended() -> None:
    _abandoned[:] = [(links, work) for links, work in _abandoned if not work.is_completed()]


@atexit.register
def _leave_abandoned() -> None:
    """Keeps abandoned links from being destroyed when the process exits."""
    _forget_ended()
    for links, _ in _abandoned:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(links))


def name_of_ranks(process_group: dist.ProcessGroup, ranks: Sequence[int]) -> str:
    """Returns a name that is the same on all ranks of the group."""
    digest = hashlib.blake2b(repr(tuple(ranks)).encode(), digest_size=8).hexdigest()
    return f"{getattr(process_group, 'group_name', '')}/{digest}"


class TorchCommunicator:
    """The ranks of a torch process group, connected by private gloo groups.

    Construction is collective over ``process_group`` (None: the default group). Afterwards ``process_group`` is never used,
    regardless of its backend. Messages of two threads in one group would be mixed up, and NCCL would use device memory. Any thread
    may drive a gloo group, so background saves complete without polling. After an error the communicator must not be used again.

    Args:
        process_group: Ranks to connect.
        purpose: Name of the communicator. Pass different names if several threads connect the same ranks concurrently.
        deadline: Timeout in seconds for the construction and for each call. None: no timeout.

    Raises:
        TimeoutError: some ranks did not arrive. The error names these ranks.
        CommError: the ranks could not be connected.

    Examples:
        >>> import torch.distributed as dist
        >>> from sealpoint.torch import TorchCommunicator
        >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        >>> comm = TorchCommunicator()
        >>> comm.rank, comm.size
        (0, 1)
        >>> dist.destroy_process_group()
    """

    def __init__(
        self, process_group: dist.ProcessGroup | None = None, purpose: str = "", deadline: float | None = _DEFAULT_SECONDS
    ) -> None:
        whole = process_group or dist.group.WORLD
        assert whole is not None
        ranks = dist.get_process_group_ranks(whole)
        name = name_of_ranks(whole, ranks)
        _counts[purpose, name] += 1
        rank, size = ranks.index(dist.get_rank()), len(ranks)
        group = GlooGroup(f"{purpose}/{name}/{_counts[purpose, name]}", rank, size)
        made, _ = Rendezvous(group).connect(0, "", seconds_of(deadline))
        self._set_up(made._links, made._name, rank, size, deadline)

    def _set_up(self, links: Links, name: str, rank: int, size: int, deadline: float | None) -> None:
        _forget_ended()
        self._links, self._name, self.rank, self.size = links, name, rank, size
        self.look: Callable[[], None] | None = None
        self._reports = WaitReports(name, rank, size)
        self._exchange_count = 0
        self._duplicate_count = 0
        self.host = socket.gethostname()
        self._interrupted: str | None = None
        self.set_deadline(deadline)

    @classmethod
    def of_links(cls, links: Links, name: str, rank: int, size: int, deadline: float | None) -> TorchCommunicator:
        """Creates a communicator. ``name`` must be unique and equal on all ranks."""
        made = cls.__new__(cls)
        made._set_up(links, name, rank, size, deadline)
        return made

    def __repr__(self) -> str:
        return f"<sealpoint.torch.TorchCommunicator: rank {self.rank} of {self.size}>"

    def set_deadline(self, seconds: float | None) -> None:
        """Sets the timeout for each later call, in seconds. None: no timeout."""
        self._seconds = seconds_of(seconds)

    def interrupt(self, reason: str) -> None:
        """Makes the running call and all later calls on this rank raise CommError with ``reason``. Callable from any thread."""
        self._interrupted = reason

    def duplicate_for_background(self) -> TorchCommunicator:
        self._duplicate_count += 1
        name = f"{self._name}{self._duplicate_count}/"
        links = make_links(name, self.rank, self.size, time.monotonic() + self._seconds, self._check)
        return TorchCommunicator.of_links(links, name, self.rank, self.size, self._seconds)

    def _check(self) -> None:
        if self._interrupted is not None:
            raise CommError(f"the communicator was interrupted: {self._interrupted}")
        if self.look is not None:
            self.look()

    def _do(self, exchange: Callable[[Run], T]) -> T:
        """Returns the result of exchange(run).

        All uses of ``run`` by ``exchange`` share one deadline.
        """
        self._exchange_count += 1
        started = time.monotonic()
        return exchange(lambda options, begin: self._run(options, begin, started))

    def _run(self, options: Any, begin: Callable[[Any], Any], started: float) -> None:
        """Starts a collective and waits for it. The wait has short intervals, to notice signals, interrupt() and the deadline."""
        if self._interrupted is not None:
            raise CommError(f"the communicator was interrupted: {self._interrupted}")
        work = None
        options.timeout = datetime.timedelta(seconds=self._seconds) + _LATER
        try:
            work = begin(options)
            while True:
                try:
                    work.wait(_LOOK_EVERY)
                    return
                except RuntimeError:
                    if work.is_completed():
                        work.wait()  # the collective failed, or ended just after the interval
                        return
                self._reports.tell(self._exchange_count)
                self._check()
                if time.monotonic() - started >= self._seconds:  # gloo limits each message, not the call
                    raise self._late(started)
        except RuntimeError as error:
            if time.monotonic() - started >= self._seconds:
                raise self._late(started) from error
            raise CommError(f"gloo: {' '.join(str(error).split())}", rank=self.rank) from error
        finally:
            if work is None or work.is_completed():
                self._reports.tell_end(self._exchange_count)
            else:
                _abandoned.append((self._links, work))

    def _late(self, started: float) -> TimeoutError:
        passed = time.monotonic() - started
        who = self._reports.text_of_absent(self._exchange_count)
        return TimeoutError(f"{who} did not arrive within {self._seconds:.4g} s ({passed:.1f} s passed)", rank=self.rank)

    def barrier(self) -> None:
        self._do(self._links.barrier)

    def all_reduce_max(self, values: Sequence[int]) -> list[int]:
        tensor = torch.tensor([value - _SIGN for value in values], dtype=torch.int64)
        self._do(lambda run: self._links.all_reduce_max(run, tensor))
        return [value + _SIGN for value in tensor.tolist()]

    def _broadcast(self, tensor: torch.Tensor, root: int) -> None:
        self._do(lambda run: self._links.broadcast(run, tensor, root))

    def _first_message(self, messages: Sequence[Message]) -> torch.Tensor:
        """Builds one row per message: the size of the message, the size of the longest message, and the first bytes of the message.

        All rows have the same size on all ranks.
        """
        room = min(_ROOM_MAX_BYTES, _ROOM_TOGETHER_BYTES // self.size)
        rows = torch.zeros((len(messages), _HEAD_BYTES + room), dtype=torch.uint8)
        longest = max(len(message) for message in messages)
        sizes = torch.tensor([(len(message), longest) for message in messages], dtype=torch.int64)
        rows[:, :_HEAD_BYTES] = sizes.view(torch.uint8).reshape(len(messages), _HEAD_BYTES)
        for row, message in zip(rows, messages, strict=True):
            begin = _bytes_of(memoryview(message)[:room])
            row[_HEAD_BYTES : _HEAD_BYTES + begin.numel()] = begin
        return rows

    @staticmethod
    def _head_of(rows: torch.Tensor) -> tuple[list[int], int]:
        """Returns the sizes of the messages, and the size of the longest message on any rank."""
        numbers = rows[:, :_HEAD_BYTES].contiguous().view(torch.int64)
        return numbers[:, 0].tolist(), int(numbers[:, 1].max().item())

    @staticmethod
    def _begins(rows: torch.Tensor, sizes: list[int]) -> list[Message]:
        return [_view(row[_HEAD_BYTES : _HEAD_BYTES + size]) for row, size in zip(rows, sizes, strict=True)]

    def broadcast(self, message: Message | None, root: int) -> Message | None:
        first = self._first_message([b"" if message is None else message])
        self._broadcast(first, root)
        sizes, size = self._head_of(first)
        if size <= first.shape[1] - _HEAD_BYTES:
            return self._begins(first, sizes)[0] if message is None else message
        tensor = torch.empty(size, dtype=torch.uint8) if message is None else _bytes_of(message)
        self._broadcast(tensor, root)
        return _view(tensor) if message is None else message

    def _gather_first(self, message: Message) -> tuple[torch.Tensor, list[int], bool]:
        """Gathers the first bytes of all messages.

        Returns these bytes, the sizes of the messages, and whether the bytes contain all messages completely.
        """
        first = self._first_message([message])
        rows = self._gather_equal(first.reshape(-1))
        sizes, longest = self._head_of(rows)
        return rows, sizes, longest <= first.shape[1] - _HEAD_BYTES

    def _gather_equal(self, tensor: torch.Tensor) -> torch.Tensor:
        return self._do(lambda run: self._links.all_gather(run, tensor))

    def all_gather(self, message: Message) -> list[Message]:
        rows, sizes, is_all = self._gather_first(message)
        if is_all:
            return self._begins(rows, sizes)
        data, longest = _bytes_of(message), max(sizes)
        if longest * self.size > 2 * sum(sizes) + _PADDING_FREE_BYTES:
            return self._all_gather_in_turn(data, sizes)
        padded = torch.zeros(longest, dtype=torch.uint8)
        padded[: data.numel()] = data
        gathered = self._gather_equal(padded)
        return [_view(item[:size]) for item, size in zip(gathered, sizes, strict=True)]

    def _all_gather_in_turn(self, data: torch.Tensor, sizes: list[int]) -> list[Message]:
        gathered: list[Message] = []
        for rank, size in enumerate(sizes):
            tensor = data if rank == self.rank else torch.empty(size, dtype=torch.uint8)
            if size > 0:
                self._broadcast(tensor, rank)
            gathered.append(_view(tensor))
        return gathered

    def _exchange(self, outgoing: torch.Tensor, sent: list[int], received: list[int]) -> list[Message]:
        incoming = self._do(lambda run: self._links.all_to_all(run, outgoing, sent, received))
        return [_view(item) for item in torch.split(incoming, received)]

    def gather(self, message: Message, root: int) -> list[Message] | None:
        rows, sizes, is_all = self._gather_first(message)
        data, is_root = _bytes_of(message), self.rank == root
        if is_all:
            return self._begins(rows, sizes) if is_root else None
        sent = [len(message) if rank == root else 0 for rank in range(self.size)]
        received = self._exchange(data, sent, sizes if is_root else [0] * self.size)
        return received if is_root else None

    def all_to_all(self, messages: Sequence[Message]) -> list[Message]:
        first = self._first_message(messages)
        equal = [first.shape[1]] * self.size
        rows = self._do(lambda run: self._links.all_to_all(run, first.reshape(-1), equal, equal)).reshape(first.shape)
        received, longest = self._head_of(rows)
        if longest <= first.shape[1] - _HEAD_BYTES:
            return self._begins(rows, received)
        sent = [len(message) for message in messages]
        parts = [_bytes_of(message) for message in messages if len(message) > 0]
        outgoing = torch.cat(parts) if parts else torch.empty(0, dtype=torch.uint8)
        return self._exchange(outgoing, sent, received)


class GlooGroup(StoreOfRanks):
    """Ranks connected by gloo; see ``_ranks.rendezvous.Group``."""

    def connect(self, generation: int, end: float, check: Callable[[], None]) -> TorchCommunicator:
        links, name = self.meet(generation, end, check)
        return TorchCommunicator.of_links(links, name, self.rank, self.size, None)
