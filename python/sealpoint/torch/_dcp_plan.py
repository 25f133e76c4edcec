# SPDX-License-Identifier: Apache-2.0
"""Items that a torch.distributed.checkpoint plan assigns to a rank."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch.distributed.checkpoint.default_planner import DefaultSavePlanner
from torch.distributed.checkpoint.planner import SavePlan, SavePlanner, WriteItem, WriteItemType
from torch.distributed.tensor import DTensor

from sealpoint import _tree
from sealpoint._errors import InvalidArgumentError, UnsupportedError
from sealpoint._tree import KIND, Node
from sealpoint._tree_paths import nest
from sealpoint.torch import _shards
from sealpoint.torch._aliases import FirstNames, identity_of, memory_key
from sealpoint.torch._state import Gathered


def path_of(name: str, planner_data: Any) -> _tree.Path:
    path = planner_data.get(name) if isinstance(planner_data, Mapping) else None
    return tuple(path) if path else (name,)


def value_of(item: WriteItem, planner: SavePlanner) -> Any:
    """Returns the original object, before pickling."""
    lookup = getattr(planner, "lookup_object", None)
    if lookup is None:
        raise UnsupportedError(
            f"the planner {type(planner).__name__} has no lookup_object(), by which DefaultSavePlanner gives values",
            object=item.index.fqn,
        )
    return lookup(item.index)


def memory_of(item: WriteItem, planner: SavePlanner) -> tuple[_shards.Numbers, _shards.Box, torch.Tensor]:
    """Returns (shape of the whole tensor, box on this rank, elements of the box)."""
    name, data = item.index.fqn, item.tensor_data
    memory = planner.resolve_data(item)
    if data is None or not isinstance(memory, torch.Tensor):
        raise InvalidArgumentError(f"the planner gave a {type(memory).__name__}, expected a tensor", tensor=name)
    offset, extent = tuple(data.chunk.offsets), tuple(data.chunk.sizes)
    plain = _shards.plain_memory(memory)
    if tuple(plain.shape) != extent:
        if plain.numel() != _shards.count_of(extent):
            raise InvalidArgumentError(
                f"the planner gave elements of shape {tuple(plain.shape)}, its plan says {extent}", tensor=name
            )
        plain = plain.reshape(extent)
    return tuple(data.size), (offset, extent), plain


def live_value(planner: Any, name: str) -> Any:
    """Returns the value with this name in the planner's state before flattening, or None."""
    state = getattr(planner, "state_dict", None)
    return state.get(name) if isinstance(state, Mapping) else None


def is_in_boxes(value: Any) -> bool:
    """Tells whether a DCP plan may be wrong about a DTensor. It has one box per rank, at the place by the mesh's own order."""
    return isinstance(value, DTensor) and (len(_shards.boxes_of(value)) > 1 or _shards.shares_dim(value))


_DEFAULTS = ("resolve_data", "lookup_object", "transform_object")


def _gives_state(planner: SavePlanner) -> bool:
    """Tells whether the planner returns the values in its state unchanged."""
    return all(getattr(type(planner), name, None) is getattr(DefaultSavePlanner, name) for name in _DEFAULTS)


def _is_whole(items: list[WriteItem], boxes: list[_shards.LocalBox]) -> bool:
    """Tells whether a rank has exactly one box of a tensor, and whether the plan contains this box."""
    data = items[0].tensor_data
    if len(boxes) != 1 or len(items) != 1 or data is None:
        return False
    offset, extent, _ = boxes[0]
    return offset == data.chunk.offsets and extent == data.chunk.sizes


def _is_elsewhere(value: Any) -> bool:
    """Tells whether a sharded tensor has no part on this rank."""
    if isinstance(value, DTensor):
        return value.device_mesh.get_coordinate() is None
    return hasattr(value, "local_shards") and not value.local_shards()


def _by_name(items: list[WriteItem]) -> dict[str, list[WriteItem]]:
    found: dict[str, list[WriteItem]] = {}
    for item in items:
        found.setdefault(item.index.fqn, []).append(item)
    return found


class PlannedState(Gathered):
    """The items of a plan, as a state to save."""

    def __init__(
        self, plan: SavePlan, planner: SavePlanner, rank: int, size: int, allow_pickle: bool, names: FirstNames
    ) -> None:
        super().__init__(names)
        self._gives_state = _gives_state(planner)
        encoder = _tree.Encoder(_shards.is_tensor, self._add_inner, rank, size, allow_pickle)
        nodes: dict[str, Node] = {}
        for name, items in _by_name(plan.items).items():
            if items[0].type == WriteItemType.BYTE_IO:
                nodes[name] = encoder.encode(value_of(items[0], planner), path_of(name, plan.planner_data))
            else:
                nodes[name] = {KIND: "tensor", "name": self._add(name, items, planner)}
        for name in plan.planner_data if isinstance(plan.planner_data, Mapping) else ():
            # A list keeps its positions on this rank, even if this rank has no part of an item.
            if name not in nodes and _is_elsewhere(live_value(planner, name)):
                nodes[name] = {KIND: "tensor", "name": name}
        self.node = nest((path_of(name, plan.planner_data), node) for name, node in nodes.items())
        self.rank_values = encoder.rank_values

    def _add(self, name: str, items: list[WriteItem], planner: SavePlanner) -> str:
        """Returns the name under which the tensor is stored."""
        value = live_value(planner, name)
        boxes = _shards.boxes_of(value) if isinstance(value, DTensor) else []
        if is_in_boxes(value) or (self._gives_state and _is_whole(items, boxes)):
            stored = self.names.name_of(name, identity_of(value))
            if stored == name:
                self.slots.extend(_shards.source_slots(value, name, self.kept.append))
            return stored
        parts = [memory_of(item, planner) for item in items]
        self.kept.extend(memory for _, _, memory in parts)
        keys = [(shape, box, memory_key(memory)) for shape, box, memory in parts]
        stored = self.names.name_of(name, None if any(key is None for _, _, key in keys) else tuple(keys))
        if stored == name:
            for shape, box, memory in parts:
                self._add_part(name, shape, box, memory)
        return stored

    def _add_part(self, name: str, shape: _shards.Numbers, box: _shards.Box, memory: torch.Tensor) -> None:
        dtype = _shards.check_storable(memory, name)
        if _shards.count_of(shape) == 0:
            self.slots.append(_shards.Slot(name, dtype, shape))
        elif memory.numel() > 0:
            self.slots.append(_shards.slot_of(name, dtype, shape, box, memory))

    def _add_inner(self, name: str, value: Any) -> str:
        """Adds a tensor that is nested in a value, such as a tuple."""
        if not isinstance(value, torch.Tensor) or isinstance(value, DTensor):
            raise UnsupportedError("a sharded tensor within a value; DCP flattens mappings and lists only", tensor=name)
        self.slots.extend(_shards.source_slots(value, name, self.kept.append))
        return name
