# SPDX-License-Identifier: Apache-2.0
"""A communicator over a gloo group of its own."""

from __future__ import annotations

import collections
import datetime
import socket
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import (
    AllgatherOptions,
    AllreduceOptions,
    AllToAllOptions,
    BarrierOptions,
    BroadcastOptions,
    PrefixStore,
    ProcessGroupGloo,
    ReduceOp,
)
from torch.distributed.distributed_c10d import _get_default_store

from sealpoint._communicator import Message
from sealpoint._errors import CommError, TimeoutError

# Between looks at whether a call was interrupted.
_LOOK_EVERY = datetime.timedelta(milliseconds=50)
_FOREVER_SECONDS = 10 * 365 * 86400.0
_DEFAULT_SECONDS = 1800.0
# Numbers of 64 bits without a sign, as torch has none to reduce.
_SIGN = 1 << 63
# Messages of several sizes are padded to the largest, unless that would more than double what is sent.
_PADDING_FREE_BYTES = 1 << 16


def _bytes_of(message: Message) -> torch.Tensor:
    if len(message) == 0:
        return torch.empty(0, dtype=torch.uint8)
    with warnings.catch_warnings():
        # Of memory that torch could write to; it only reads this.
        warnings.filterwarnings("ignore", "The given buffer is not writable")
        return torch.frombuffer(memoryview(message), dtype=torch.uint8)


def _view(tensor: torch.Tensor) -> memoryview:
    array: Any = tensor.numpy()
    return memoryview(array)


# How often a group of these ranks was made here: the same on all of them.
_group_counts: collections.Counter[tuple[str, tuple[int, ...]]] = collections.Counter()


def _new_group(ranks: tuple[int, ...], purpose: str) -> Any:
    """A group that torch knows nothing of. Collective over its ranks alone.

    torch.distributed.new_group is for all ranks of the job, or names the group by how many others the process has.
    """
    _group_counts[purpose, ranks] += 1
    name = f"sealpoint/{purpose}/{_group_counts[purpose, ranks]}/{'_'.join(map(str, ranks))}"
    store = PrefixStore(name, _get_default_store())
    timeout = datetime.timedelta(seconds=_DEFAULT_SECONDS)
    return ProcessGroupGloo(store, ranks.index(dist.get_rank()), len(ranks), timeout)


class TorchCommunicator:
    """The ranks of a process group of torch, over gloo groups that belong to this object.

    Making one is collective over the ranks of ``process_group`` (None: the default group). The training's own group is
    never used afterwards, whichever backend it has: two threads on one group exchange each other's messages, and NCCL
    takes memory of the device. Each group of gloo may be driven by any thread, so saves in the background end though
    nobody polls. After an error the object must not be used again.

    Args:
        purpose: threads that make communicators of the same ranks at a time give different ones, as they have no order.
    """

    def __init__(self, process_group: dist.ProcessGroup | None = None, purpose: str = "") -> None:
        self._ranks = tuple(dist.get_process_group_ranks(process_group or dist.group.WORLD))
        self._purpose = purpose
        self._group = _new_group(self._ranks, purpose)
        self.host = socket.gethostname()
        self._seconds = _DEFAULT_SECONDS
        self._interrupted: str | None = None

    @property
    def rank(self) -> int:
        return int(self._group.rank())

    @property
    def size(self) -> int:
        return int(self._group.size())

    def set_deadline(self, seconds: float | None) -> None:
        self._seconds = _FOREVER_SECONDS if seconds is None else seconds

    def interrupt(self, reason: str) -> None:
        self._interrupted = reason

    def duplicate_for_background(self) -> TorchCommunicator:
        duplicate = TorchCommunicator.__new__(TorchCommunicator)
        duplicate._ranks, duplicate.host, duplicate._interrupted = self._ranks, self.host, None
        duplicate._purpose = self._purpose
        duplicate._group = _new_group(self._ranks, self._purpose)
        duplicate.set_deadline(self._seconds)
        return duplicate

    def _run(self, options: Any, begin: Callable[[Any], Any]) -> None:
        """Runs one collective call: waits for it in slices, so that interrupt() is noticed."""
        if self._interrupted is not None:
            raise CommError(f"the communicator was interrupted: {self._interrupted}")
        started = time.monotonic()
        options.timeout = datetime.timedelta(seconds=self._seconds)
        try:
            work = begin(options)
            while True:
                try:
                    work.wait(_LOOK_EVERY)
                    return
                except RuntimeError:
                    if work.is_completed():
                        work.wait()  # it failed, or it ended just behind the slice
                        return
                if self._interrupted is not None:
                    raise CommError(f"the communicator was interrupted: {self._interrupted}")
        except RuntimeError as error:
            elapsed = time.monotonic() - started
            if elapsed >= self._seconds:
                raise TimeoutError(
                    f"a rank did not come within {self._seconds:g} s ({elapsed:.1f} s passed)", rank=self.rank
                ) from error
            raise CommError(f"gloo: {' '.join(str(error).split())}", rank=self.rank) from error

    def barrier(self) -> None:
        self._run(BarrierOptions(), lambda options: self._group.barrier(options))

    def all_reduce_max(self, values: Sequence[int]) -> list[int]:
        tensor = torch.tensor([value - _SIGN for value in values], dtype=torch.int64)
        options = AllreduceOptions()
        options.reduceOp = ReduceOp(ReduceOp.MAX)
        self._run(options, lambda options: self._group.allreduce([tensor], options))
        return [value + _SIGN for value in tensor.tolist()]

    def _broadcast(self, tensor: torch.Tensor, root: int) -> None:
        options = BroadcastOptions()
        options.rootRank = root
        options.rootTensor = 0
        self._run(options, lambda options: self._group.broadcast([tensor], options))

    def broadcast(self, message: Message | None, root: int) -> Message | None:
        size = torch.tensor([0 if message is None else len(message)], dtype=torch.int64)
        self._broadcast(size, root)
        if message is None:
            tensor = torch.empty(int(size.item()), dtype=torch.uint8)
        else:
            tensor = _bytes_of(message)
        if tensor.numel() > 0:
            self._broadcast(tensor, root)
        return _view(tensor) if message is None else message

    def _sizes(self, size: int) -> list[int]:
        return [int(one.item()) for one in self._gather_equal(torch.tensor([size], dtype=torch.int64))]

    def _gather_equal(self, tensor: torch.Tensor) -> list[torch.Tensor]:
        gathered = [torch.empty_like(tensor) for _ in range(self.size)]
        self._run(AllgatherOptions(), lambda options: self._group.allgather([gathered], [tensor], options))
        return gathered

    def all_gather(self, message: Message) -> list[Message]:
        sizes = self._sizes(len(message))
        own, longest = _bytes_of(message), max(sizes)
        if longest == 0:
            return [b""] * self.size
        if longest * self.size > 2 * sum(sizes) + _PADDING_FREE_BYTES:
            return self._all_gather_in_turn(own, sizes)
        padded = torch.zeros(longest, dtype=torch.uint8)
        padded[: own.numel()] = own
        gathered = self._gather_equal(padded)
        return [_view(one[:size]) for one, size in zip(gathered, sizes, strict=True)]

    def _all_gather_in_turn(self, own: torch.Tensor, sizes: list[int]) -> list[Message]:
        gathered: list[Message] = []
        for rank, size in enumerate(sizes):
            tensor = own if rank == self.rank else torch.empty(size, dtype=torch.uint8)
            if size > 0:
                self._broadcast(tensor, rank)
            gathered.append(_view(tensor))
        return gathered

    def _exchange(self, outgoing: torch.Tensor, sent: list[int], received: list[int]) -> list[Message]:
        incoming = torch.empty(sum(received), dtype=torch.uint8)
        self._run(
            AllToAllOptions(),
            lambda options: self._group.alltoall_base(incoming, outgoing, received, sent, options),
        )
        return [_view(one) for one in torch.split(incoming, received)]

    def gather(self, message: Message, root: int) -> list[Message] | None:
        sizes = self._sizes(len(message))
        own, is_root = _bytes_of(message), self.rank == root
        sent = [len(message) if rank == root else 0 for rank in range(self.size)]
        received = self._exchange(own, sent, sizes if is_root else [0] * self.size)
        return received if is_root else None

    def all_to_all(self, messages: Sequence[Message]) -> list[Message]:
        sent = [len(message) for message in messages]
        received = torch.empty(self.size, dtype=torch.int64)
        ones = [1] * self.size
        counts = torch.tensor(sent, dtype=torch.int64)
        self._run(
            AllToAllOptions(), lambda options: self._group.alltoall_base(received, counts, ones, ones, options)
        )
        parts = [_bytes_of(message) for message in messages if len(message) > 0]
        outgoing = torch.cat(parts) if parts else torch.empty(0, dtype=torch.uint8)
        return self._exchange(outgoing, sent, received.tolist())
