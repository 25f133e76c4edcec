# SPDX-License-Identifier: Apache-2.0
"""Tensors at several places of a state, such as tied weights. Each such tensor is stored once and read once."""

from __future__ import annotations

import bisect
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch

from sealpoint._errors import MismatchError
from sealpoint.torch import _shards
from sealpoint.torch._dtensor import is_dtensor

Key = tuple[Any, ...]


def memory_key(tensor: torch.Tensor) -> Key | None:
    """Returns a key that is equal for tensors with the same elements in the same memory.

    The key of a tensor without plain memory is None.

    A key is valid during the lifetime of the tensors. Each empty tensor has its own key.
    """
    try:
        place = (tensor.untyped_storage()._cdata, tensor.storage_offset(), tuple(tensor.shape), tuple(tensor.stride()))
    except (NotImplementedError, RuntimeError, ValueError):  # ValueError: raised by a lazy module
        return None
    return (*place, tensor.dtype, tensor.is_conj(), tensor.is_neg())


def identity_of(value: Any) -> Key | None:
    """Returns a key. Tensors on this rank have equal keys if they share their memory and are the same part of the whole tensor."""
    if is_dtensor(value):
        local = memory_key(value.to_local())
        return local and ("mesh", tuple(value.shape), value.device_mesh, value.placements, local)
    if hasattr(value, "local_shards") and not hasattr(value, "__create_chunk_list__"):
        shards = [
            (tuple(shard.metadata.shard_offsets), tuple(shard.metadata.shard_sizes), memory_key(shard.tensor))
            for shard in value.local_shards()
        ]
        return ("shards", tuple(value.metadata().size), *shards) if shards else None
    is_in_parts = hasattr(value, "__create_chunk_list__") or _shards.is_local(value)
    return memory_key(value) if isinstance(value, torch.Tensor) and not is_in_parts else None


class FirstNames:
    """Maps tensors to stored names. A tensor is stored under the name of its first place in the state.

    Args:
        is_used: If False, a tensor is stored at each of its places.
        is_by_name: Store optimizer state by parameter name instead of parameter number.
    """

    def __init__(self, is_used: bool, is_by_name: bool = False) -> None:
        self.found = 0  # number of places with a tensor that was already found at another place
        self.is_by_name = is_by_name
        self.is_first = is_used and not is_by_name  # true only for the first pass over the state
        self._is_used = is_used
        self._names: dict[Key, str] = {}

    def name_of(self, name: str, identity: Key | None) -> str:
        if identity is None or not self._is_used:
            return name
        first = self._names.setdefault(identity, name)
        self.found += first != name
        return first


class _Placed(NamedTuple):
    """The memory of a destination, and the byte range that this memory spans in its torch storage."""

    begin: int
    end: int
    name: str
    memory: torch.Tensor


class _Spans:
    """The destinations in each torch storage. Their byte ranges do not overlap."""

    def __init__(self) -> None:
        self._placed: dict[int, list[_Placed]] = {}  # by storage, ascending

    def over(self, memory: torch.Tensor) -> list[_Placed]:
        """Returns the placements that overlap with this memory."""
        begin, end = _span_of(memory)
        placed = self._placed.get(memory.untyped_storage()._cdata, [])
        at = max(bisect.bisect_right(placed, begin, key=lambda one: one.begin) - 1, 0)
        last = bisect.bisect_left(placed, end, key=lambda one: one.begin)
        return [item for item in placed[at:last] if item.end > begin]

    def memories(self) -> Iterator[torch.Tensor]:
        return (item.memory for placed in self._placed.values() for item in placed)

    def add(self, name: str, memory: torch.Tensor) -> None:
        placed = self._placed.setdefault(memory.untyped_storage()._cdata, [])
        bisect.insort(placed, _Placed(*_span_of(memory), name, memory), key=lambda one: one.begin)


def _span_of(memory: torch.Tensor) -> tuple[int, int]:
    reach = sum((size - 1) * stride for size, stride in zip(memory.shape, memory.stride(), strict=True))
    begin = int(memory.storage_offset()) * memory.element_size()
    return begin, begin + (int(reach) + 1) * memory.element_size()


class Destinations:
    """Destinations of tensors. If several places of the state share memory, the memory is filled only once.

    The checkpoint may have separate tensors for these places. In this case, all tensors except the first are read into temporary
    memory, and ``compare`` checks that they are equal to the first. Overlapping views, such as a weight and its transpose, are
    treated in the same way.
    """

    def __init__(self) -> None:
        self.slots: list[_shards.Slot] = []
        self._names: dict[Key, tuple[str, Key]] = {}  # stored name and region
        self._others: list[tuple[str, torch.Tensor, torch.Tensor]] = []  # (name, memory, copy)
        self._spans = _Spans()
        self._plain_names: list[str] = []
        self._plain: list[torch.Tensor] = []
        self._placed: list[torch.Tensor] = []  # tensors placed by place_plain; they are not in _spans

    @property
    def must_compare(self) -> bool:
        return len(self._others) > 0

    def add(self, value: Any, name: str) -> None:
        """Adds a destination. Raises the errors of ``_shards.pieces_of``."""
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

    def add_plain(self, value: torch.Tensor, name: str) -> None:
        """Adds a destination of the type Tensor or Parameter. Call ``place_plain`` after all calls of this method."""
        self._plain_names.append(name)
        self._plain.append(value)

    def place_plain(self) -> None:
        """Places the tensors passed to ``add_plain``.

        If each tensor is dense and has its own host memory, all tensors are placed at once. Otherwise, they are placed one by one.
        """
        slots = None if self.slots else _shards.plain_slots(self._plain_names, self._plain)
        if slots is not None:
            self.slots, self._placed = slots, self._plain
            return
        for name, tensor in zip(self._plain_names, self._plain, strict=True):
            self.add(tensor, name)

    def mark_changed(self) -> None:
        """Marks the tensors as changed, so that autograd rejects a backward pass over their previous values."""
        memories = [memory for memory in (*self._spans.memories(), *self._placed) if not memory.is_inference()]
        torch.autograd.graph.increment_version(memories)

    def compare(self) -> int:
        """Compares the temporary copies with the first tensors after the read. Returns the number of copies.

        Raises MismatchError, which names the tensor, if a copy differs.
        """
        for name, memory, copy in self._others:
            placed = self._spans.over(memory)
            before = [item.memory.detach().clone() for item in placed]
            memory.detach().copy_(copy)
            for element, content in zip(placed, before, strict=True):
                if not torch.equal(_bytes_of(element.memory), _bytes_of(content)):
                    raise MismatchError(
                        f"the state has the same tensor here and at {element.name}, but the checkpoint has two different "
                        "ones", tensor=name
                    )
        return len(self._others)


def _bytes_of(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().contiguous().reshape(-1).view(torch.uint8)
