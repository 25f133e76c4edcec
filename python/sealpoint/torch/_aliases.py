# SPDX-License-Identifier: Apache-2.0
"""Tensors at several places of a state, such as tied weights: stored once and read once."""

from __future__ import annotations

import bisect
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch.distributed.tensor import DTensor

from sealpoint._errors import MismatchError
from sealpoint.torch import _shards

Key = tuple[Any, ...]


def memory_key(tensor: torch.Tensor) -> Key | None:
    """Returns a key that is equal for tensors with the same elements in the same memory; None without plain memory.

    Valid during the lifetime of the tensors. Each empty tensor has its own key.
    """
    try:
        place = (tensor.untyped_storage()._cdata, tensor.storage_offset(), tuple(tensor.shape), tuple(tensor.stride()))
    except (NotImplementedError, RuntimeError, ValueError):  # ValueError: raised by a lazy module
        return None
    return (*place, tensor.dtype, tensor.is_conj(), tensor.is_neg())


def identity_of(value: Any) -> Key | None:
    """Returns a key that is equal for identical tensors on this rank: same memory, same part of the whole."""
    if isinstance(value, DTensor):
        local = memory_key(value.to_local())
        return local and ("mesh", tuple(value.shape), value.device_mesh, value.placements, local)
    if hasattr(value, "local_shards") and not hasattr(value, "__create_chunk_list__"):
        shards = [
            (tuple(one.metadata.shard_offsets), tuple(one.metadata.shard_sizes), memory_key(one.tensor))
            for one in value.local_shards()
        ]
        return ("shards", tuple(value.metadata().size), *shards) if shards else None
    is_in_parts = hasattr(value, "__create_chunk_list__") or _shards.is_local(value)
    return memory_key(value) if isinstance(value, torch.Tensor) and not is_in_parts else None


class FirstNames:
    """Maps tensors to stored names: the first place of a tensor.

    Args:
        is_used: False stores a tensor at each of its places.
        is_by_name: Store optimizer state by parameter name instead of number.
    """

    def __init__(self, is_used: bool, is_by_name: bool = False) -> None:
        self.found = 0  # number of places of tensors already found elsewhere
        self.is_by_name = is_by_name
        self._is_used = is_used
        self._names: dict[Key, str] = {}

    def name_of(self, name: str, identity: Key | None) -> str:
        if identity is None or not self._is_used:
            return name
        first = self._names.setdefault(identity, name)
        self.found += first != name
        return first


class _Placed(NamedTuple):
    """Destination memory, and the bytes of its storage that it spans."""

    begin: int
    end: int
    name: str
    memory: torch.Tensor


class _Spans:
    """The reads into each storage: spans that do not overlap."""

    def __init__(self) -> None:
        self._placed: dict[int, list[_Placed]] = {}  # by storage, ascending

    def over(self, memory: torch.Tensor) -> list[_Placed]:
        """Returns the placements that overlap with this memory."""
        begin, end = _span_of(memory)
        placed = self._placed.get(memory.untyped_storage()._cdata, [])
        at = max(bisect.bisect_right(placed, begin, key=lambda one: one.begin) - 1, 0)
        last = bisect.bisect_left(placed, end, key=lambda one: one.begin)
        return [one for one in placed[at:last] if one.end > begin]

    def memories(self) -> Iterator[torch.Tensor]:
        return (one.memory for placed in self._placed.values() for one in placed)

    def add(self, name: str, memory: torch.Tensor) -> None:
        placed = self._placed.setdefault(memory.untyped_storage()._cdata, [])
        bisect.insort(placed, _Placed(*_span_of(memory), name, memory), key=lambda one: one.begin)


def _span_of(memory: torch.Tensor) -> tuple[int, int]:
    reach = sum((size - 1) * stride for size, stride in zip(memory.shape, memory.stride(), strict=True))
    begin = int(memory.storage_offset()) * memory.element_size()
    return begin, begin + (int(reach) + 1) * memory.element_size()


class Destinations:
    """Destinations of tensors. Memory at several places is read into once.

    If the checkpoint has separate tensors for these places, all but the first are read into temporary memory, and ``compare``
    checks that they are equal. The same applies to overlapping views, such as a transposed weight.
    """

    def __init__(self) -> None:
        self.slots: list[_shards.Slot] = []
        self._names: dict[Key, tuple[str, Key]] = {}  # stored name and region
        self._others: list[tuple[str, torch.Tensor, torch.Tensor]] = []  # (name, memory, copy)
        self._spans = _Spans()

    @property
    def must_compare(self) -> bool:
        return len(self._others) > 0

    def add(self, value: Any, name: str) -> None:
        """Adds a destination. Raises as ``_shards.pieces_of`` does."""
        shape, dtype, parts = _shards.pieces_of(value, name)
        if _shards.count_of(shape) == 0:
            self.slots.append(_shards.empty_slot(name, _shards.name_of(dtype, name), shape))
            return
        for part in parts:
            self.add_part(name, shape, part)

    def add_part(self, name: str, shape: _shards.Numbers, part: _shards.Part) -> None:
        memory, region = part.memory, (part.box, part.run)
        key = memory_key(memory) if memory.numel() > 0 else None
        if key is not None and self._names.get(key) == (name, region):
            return
        if key is not None and self._spans.over(memory):
            copy = torch.empty_like(memory, memory_format=torch.contiguous_format)
            self._others.append((name, memory, copy))
            memory = copy
        elif key is not None:
            self._names[key] = (name, region)
            self._spans.add(name, memory)
        self.slots.extend(_shards.part_slots(name, shape, part.box, memory, part.run))

    def mark_changed(self) -> None:
        """Marks the tensors as changed, so that autograd rejects a backward pass over their previous values."""
        for memory in self._spans.memories():
            if not memory.is_inference():
                torch.autograd.graph.increment_version(memory)

    def compare(self) -> int:
        """Compares after the read; returns the number of equal copies. Raises MismatchError, which names the tensor."""
        for name, memory, copy in self._others:
            placed = self._spans.over(memory)
            before = [one.memory.detach().clone() for one in placed]
            memory.detach().copy_(copy)
            for one, content in zip(placed, before, strict=True):
                if not torch.equal(_bytes_of(one.memory), _bytes_of(content)):
                    raise MismatchError(
                        f"the state has one tensor here and at {one.name}, the checkpoint has two that differ", tensor=name
                    )
        return len(self._others)


def _bytes_of(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().contiguous().reshape(-1).view(torch.uint8)
