# SPDX-License-Identifier: Apache-2.0
"""Outlines of states. A save compares outlines to decide whether it can reuse the description of the preceding save.

An outline contains everything that determines names, dtypes, shapes, regions and memory of the tensors in a state. A comparison of
outlines runs no Python code per tensor. The description of a tensor takes many times as long as its comparison.
"""

from __future__ import annotations

import array
import sys
from collections.abc import Iterable, Iterator
from itertools import tee
from operator import attrgetter
from typing import Any, NamedTuple

import torch

from sealpoint._tree import KIND, Node, PerRank
from sealpoint.torch._dtypes import NAME_OF
from sealpoint.torch._shards import order_of

_KEYS = frozenset({str, int})
_VALUES = frozenset({int, float, str, bool, type(None)})
TENSORS = frozenset({torch.Tensor, torch.nn.Parameter})
LEAVES = _VALUES | TENSORS
_SHAPE, _DTYPE, _DEVICE, _LAYOUT = map(attrgetter, ("shape", "dtype", "device", "layout"))
_MESH = attrgetter("device_mesh")


class Outline(NamedTuple):
    """The outline of a state without stateful objects (see ``plain_state``). Does not keep its tensors alive."""

    containers: list[Any]  # type, keys and types of the items of each container
    shapes: list[Any]  # these five lists describe the memory of each tensor
    strides: list[Any]
    dtypes: list[Any]
    devices: list[Any]
    layouts: list[Any]
    placements: list[Any]  # one entry per DTensor
    meshes: list[Any]  # compared by identity, because an equal mesh may belong to another job
    streams: dict[Any, int]  # current CUDA stream of each device
    addresses: bytes  # 8 bytes per tensor
    values: list[Any]  # numbers, strings and None

    def is_like(self, other: Outline) -> bool:
        """Tells whether both states have the same names, dtypes, shapes, regions and kinds of values."""
        return self[:7] == other[:7] and self.streams == other.streams and list(map(id, self.meshes)) == list(map(id, other.meshes))

    def has_aliases(self) -> bool:
        """Tells whether two tensors begin at the same address."""
        placed = [address for address in array.array("Q", self.addresses) if address != 0]
        return len(set(placed)) < len(placed)

    def is_plain(self) -> bool:
        """Tells whether all tensors are storable, not empty, not DTensors, in host memory, and begin at different addresses."""
        is_storable = NAME_OF.keys() >= set(self.dtypes) and {torch.strided}.issuperset(self.layouts)
        is_local = not self.placements and {torch.device("cpu")}.issuperset(self.devices)
        return is_storable and is_local and 0 not in array.array("Q", self.addresses) and not self.has_aliases()


class _Walk:
    def __init__(self) -> None:
        self.containers: list[Any] = []
        self.tensors: list[Any] = []
        self.spread: list[Any] = []  # DTensors
        self.values: list[Any] = []
        self._dtensor = getattr(sys.modules.get("torch.distributed.tensor"), "DTensor", None)

    def add(self, container: Any) -> bool:
        """Adds a container. Returns False if the container has an item of a different type."""
        kind, keys = type(container), None
        if kind is dict:
            keys, items = list(container), list(container.values())
            if not _KEYS.issuperset(map(type, keys)):
                return False
        elif kind is PerRank:
            items = [container.value]
        elif kind is list or kind is tuple:
            items = list(container)
        else:
            return False
        kinds = list(map(type, items))
        self.containers += (kind, keys, kinds)
        if TENSORS.issuperset(kinds):
            self.tensors += items
            return True
        return all(map(self._add_item, items, kinds))

    def _add_item(self, item: Any, kind: type) -> bool:
        if kind in TENSORS:
            self.tensors.append(item)
        elif kind in _VALUES:
            self.values.append(item)
        elif kind is self._dtensor:
            self.spread.append(item)
            self.tensors.append(item._local_tensor)
        else:
            return self.add(item)
        return True


def _placement_of(tensor: Any) -> Any:
    chunks = vars(tensor._local_tensor).get("__create_chunk_list__")  # Megatron-FSDP adds it to tensors
    kinds = tuple(map(type, tensor.placements))  # a strided shard equals a plain shard
    return tensor.shape, tensor.placements, kinds, order_of(tensor), chunks and repr(chunks())


def _shared(values: Iterable[Any]) -> list[Any]:
    """Replaces equal values by one object, because a new tuple for each tensor would cause many garbage collections."""
    return list(map(dict[Any, Any]().setdefault, *tee(values)))


def outline_of(state: Any) -> Outline | None:
    """Returns the outline of a state, or None if the state has values that can change without a change of the outline."""
    walk, tensor = _Walk(), torch.Tensor
    if not walk.add(state) or not TENSORS.issuperset(map(type, walk.tensors)):
        return None
    try:
        if any(map(tensor.is_conj, walk.tensors)) or any(map(tensor.is_neg, walk.tensors)):
            return None  # a save stores copies of these tensors
        devices = _shared(map(_DEVICE, walk.tensors))
        streams = {device: torch.cuda.current_stream(device).cuda_stream for device in set(devices) if device.type == "cuda"}
        return Outline(
            walk.containers, _shared(map(_SHAPE, walk.tensors)), _shared(map(tensor.stride, walk.tensors)),
            list(map(_DTYPE, walk.tensors)), devices, list(map(_LAYOUT, walk.tensors)), _shared(map(_placement_of, walk.spread)),
            list(map(_MESH, walk.spread)), streams, array.array("Q", map(tensor.data_ptr, walk.tensors)).tobytes(), walk.values,
        )  # fmt: skip
    except (RuntimeError, ValueError, AttributeError):  # a tensor without strides or memory
        return None


def places_of_values(value: Any, node: Node, rank_values: dict[str, Node]) -> Iterator[tuple[Any, Any]]:
    """Returns, for each item of ``Outline.values``, the container and the key of its node in the tree of this state."""
    return _places(value, node, rank_values, iter(rank_values))


def _places(value: Any, node: Node, rank_values: dict[str, Node], names: Iterator[str]) -> Iterator[tuple[Any, Any]]:
    if type(value) is PerRank:
        items: Any = [value.value]
        nodes: Any = [(rank_values, next(names))]
    elif type(value) is dict:
        items = value.values()
        nodes = [(pair, 1) for pair in node["items"]] if KIND in node else [(node, key) for key in node]
    else:
        items, inner = value, node if isinstance(node, list) else node["items"]
        nodes = [(inner, i) for i in range(len(inner))]
    for item, (container, key) in zip(items, nodes, strict=True):
        if type(item) in _VALUES:
            yield container, key
        elif type(item) in (dict, list, tuple, PerRank):
            yield from _places(item, container[key], rank_values, names)
