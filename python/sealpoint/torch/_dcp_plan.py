# SPDX-License-Identifier: Apache-2.0
"""What a plan of torch.distributed.checkpoint has a rank save."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch.distributed.checkpoint.planner import SavePlan, SavePlanner, WriteItem, WriteItemType
from torch.distributed.tensor import DTensor

from sealpoint import _tree
from sealpoint._errors import InvalidArgumentError, UnsupportedError
from sealpoint._tree import KIND, Node
from sealpoint.torch import _shards
from sealpoint.torch._dcp_names import nest
from sealpoint.torch._state import Gathered


def path_of(name: str, planner_data: Any) -> _tree.Path:
    path = planner_data.get(name) if isinstance(planner_data, Mapping) else None
    return tuple(path) if path else (name,)


def value_of(item: WriteItem, planner: SavePlanner) -> Any:
    """The object itself, before anything pickled it."""
    lookup = getattr(planner, "lookup_object", None)
    if lookup is None:
        raise UnsupportedError(
            f"the planner {type(planner).__name__} has no lookup_object(), by which DefaultSavePlanner gives values",
            object=item.index.fqn,
        )
    return lookup(item.index)


def memory_of(item: WriteItem, planner: SavePlanner) -> tuple[_shards.Numbers, _shards.Box, torch.Tensor]:
    """(the whole tensor's shape, the box that the rank has, its elements)."""
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
    """What the state that the planner flattened has there, or None."""
    state = getattr(planner, "state_dict", None)
    return state.get(name) if isinstance(state, Mapping) else None


def is_in_boxes(value: Any) -> bool:
    """Whether a rank holds several boxes of the tensor; the plans of DCP have one of each DTensor."""
    return isinstance(value, DTensor) and len(_shards.boxes_of(value)) > 1


def _is_elsewhere(value: Any) -> bool:
    """Whether a sharded tensor has no part on this rank."""
    if isinstance(value, DTensor):
        return value.device_mesh.get_coordinate() is None
    return hasattr(value, "local_shards") and not value.local_shards()


class PlannedState(Gathered):
    """A plan whose items are to be saved."""

    def __init__(self, plan: SavePlan, planner: SavePlanner, rank: int, size: int, allow_pickle: bool) -> None:
        super().__init__()
        encoder = _tree.Encoder(_shards.is_tensor, self._add_inner, rank, size, allow_pickle)
        nodes: dict[str, Node] = {}
        for item in plan.items:
            name = item.index.fqn
            if item.type == WriteItemType.BYTE_IO:
                nodes[name] = encoder.encode(value_of(item, planner), path_of(name, plan.planner_data))
                continue
            value = live_value(planner, name)
            if not is_in_boxes(value):
                self._add(item, planner)
            elif name not in nodes:
                self.slots.extend(_shards.source_slots(value, name, self.kept.append))
            nodes[name] = {KIND: "tensor", "name": name}
        for name in plan.planner_data if isinstance(plan.planner_data, Mapping) else ():
            # Places of lists count, also if this rank has no part of what is there.
            if name not in nodes and _is_elsewhere(live_value(planner, name)):
                nodes[name] = {KIND: "tensor", "name": name}
        self.node = nest((path_of(name, plan.planner_data), node) for name, node in nodes.items())
        self.rank_values = encoder.rank_values

    def _add(self, item: WriteItem, planner: SavePlanner) -> None:
        name = item.index.fqn
        shape, box, memory = memory_of(item, planner)
        dtype = _shards.check_storable(memory, name)
        if _shards.count_of(shape) == 0:
            self.slots.append((name, dtype, shape, None, None))
        elif memory.numel() > 0:
            self.kept.append(memory)
            self.slots.append(_shards.slot_of(name, dtype, shape, box, memory))

    def _add_inner(self, name: str, value: Any) -> str:
        """Of a tensor within a value, such as a tuple."""
        if not isinstance(value, torch.Tensor) or isinstance(value, DTensor):
            raise UnsupportedError("a sharded tensor within a value; DCP flattens mappings and lists only", tensor=name)
        self.slots.extend(_shards.source_slots(value, name, self.kept.append))
        return name
