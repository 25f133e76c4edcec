# SPDX-License-Identifier: Apache-2.0
"""Tensors that are at several places of a state, such as tied weights: stored once, and read once."""

from __future__ import annotations

from typing import Any

import torch
from torch.distributed.tensor import DTensor

from sealpoint._errors import MismatchError
from sealpoint.torch import _shards

Key = tuple[Any, ...]


def memory_key(tensor: torch.Tensor) -> Key | None:
    """Equal for tensors that are the same elements in the same memory. None: it has no plain memory.

    Valid as long as the tensors live. An empty tensor has a storage of its own, too.
    """
    try:
        place = (tensor.untyped_storage()._cdata, tensor.storage_offset(), tuple(tensor.shape), tuple(tensor.stride()))
    except (NotImplementedError, RuntimeError):
        return None
    return (*place, tensor.dtype, tensor.is_conj(), tensor.is_neg())


def identity_of(value: Any) -> Key | None:
    """Equal for tensors that are the same ones on this rank: memory, and what it is of the whole."""
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
    """Under which name a tensor is stored: that of the first place where it is."""

    def __init__(self, is_used: bool) -> None:
        self.found = 0  # places of tensors that have another place
        self._is_used = is_used
        self._names: dict[Key, str] = {}

    def name_of(self, name: str, identity: Key | None) -> str:
        if identity is None or not self._is_used:
            return name
        first = self._names.setdefault(identity, name)
        self.found += first != name
        return first


class Destinations:
    """Where tensors are read to. Memory at several places is read into once.

    If these places have tensors of their own in the checkpoint, all but the first are read into memory that is made
    for it, and ``compare`` finds out whether they are equal.
    """

    def __init__(self) -> None:
        self.slots: list[_shards.Slot] = []
        self._names: dict[Key, tuple[str, Key]] = {}  # stored name and region
        self._others: list[tuple[str, str, torch.Tensor, torch.Tensor]] = []  # (name, first name, memory, copy)
        self._memories: list[torch.Tensor] = []

    @property
    def must_compare(self) -> bool:
        return len(self._others) > 0

    def add(self, value: Any, name: str) -> None:
        """Errors: those of ``_shards.pieces_of``."""
        shape, dtype, parts = _shards.pieces_of(value, name)
        if _shards.count_of(shape) == 0:
            self.slots.append(_shards.empty_slot(name, _shards.name_of(dtype, name), shape))
            return
        for part in parts:
            self.add_part(name, shape, part)

    def add_part(self, name: str, shape: _shards.Numbers, part: _shards.Part) -> None:
        memory, region = part.memory, (part.box, part.run)
        key = memory_key(memory) if memory.numel() > 0 else None
        if key is not None and key in self._names:
            first, first_region = self._names[key]
            if (first, first_region) == (name, region):
                return
            copy = torch.empty_like(memory, memory_format=torch.contiguous_format)
            self._others.append((name, first, memory, copy))
            memory = copy
        elif key is not None:
            self._names[key] = (name, region)
            self._memories.append(memory)
        self.slots.extend(_shards.part_slots(name, shape, part.box, memory, part.run))

    def mark_changed(self) -> None:
        """For autograd, so that a backward pass over the values of before is an error."""
        for memory in self._memories:
            if not memory.is_inference():
                torch.autograd.graph.increment_version(memory)

    def compare(self) -> int:
        """Once all was read; the number of copies that are equal. Errors: MismatchError, which names the tensor."""
        for name, first, memory, copy in self._others:
            if not torch.equal(_bytes_of(memory), _bytes_of(copy)):
                raise MismatchError(
                    f"the state has one tensor here and at {first}, the checkpoint has two that differ", tensor=name
                )
        return len(self._others)


def _bytes_of(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().contiguous().reshape(-1).view(torch.uint8)
