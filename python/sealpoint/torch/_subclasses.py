# SPDX-License-Identifier: Apache-2.0
"""Tensors composed of others, such as quantized weights and moments: their parts are stored (spec/tree-additions.md).

A class lists its parts in ``__tensor_flatten__``. A part is loaded into the memory of the live part.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Collection
from typing import Any

import torch
from torch.distributed.tensor import DTensor

from sealpoint import _tree
from sealpoint._errors import Error
from sealpoint._tree import KIND, Node, TensorParts, kind_of_parts
from sealpoint.torch import _shards


def _local_of(value: torch.Tensor) -> Any:
    return value._local_tensor if isinstance(value, DTensor) else value


def is_one(value: Any) -> bool:
    """Tells whether a tensor, or the local part of a DTensor, is composed."""
    if not isinstance(value, torch.Tensor):
        return False
    local = _local_of(value)
    return hasattr(type(local), "__tensor_flatten__") and not isinstance(local, DTensor) and not local.is_nested


def prepared(value: Any) -> Any:
    """Prepares a value for a save: waits for a collective, splits a composed tensor, and returns any other value unchanged."""
    module = sys.modules.get("torch.distributed._functional_collectives")
    kind = getattr(module, "AsyncCollectiveTensor", None)
    if kind is not None and isinstance(value, kind):
        value = value.wait()
    return _taken(value) if is_one(value) else value


def _class_name(value: Any) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"


def _context_node(context: Any) -> Node:
    """Encodes the context of a class in a comparable form. Values without a form are represented by their type."""
    if type(context) in (list, tuple):
        items = [_context_node(one) for one in context]
        return items if isinstance(context, list) else {KIND: "tuple", "items": items}
    if isinstance(context, dict):
        return {KIND: "dict", "items": [[_context_node(key), _context_node(one)] for key, one in context.items()]}
    try:
        return _tree.Encoder(lambda one: False, lambda path, one: "").encode(context)
    except Error:
        return {KIND: "type", "name": _class_name(context)}


def _box_of(value: torch.Tensor) -> str:
    """Returns the offset of the parts' box in the whole; empty if the parts are all of it."""
    if not isinstance(value, DTensor):
        return ""
    boxes = _shards.boxes_of(value)
    if len(boxes) == 1 and boxes[0][1] == tuple(value.shape):
        return ""
    return "+".join(",".join(map(str, offset)) for offset, _, _ in boxes)


def _parts_of(local: Any) -> dict[str, Any]:
    """Returns the parts by attribute name. A part may be composed itself."""
    names, _ = local.__tensor_flatten__()
    return {name: getattr(local, name) for name in names}


def _taken(value: torch.Tensor) -> TensorParts:
    local = _local_of(value)
    _, context = local.__tensor_flatten__()
    parts = {name: prepared(one) for name, one in _parts_of(local).items()}
    is_held = not isinstance(value, DTensor) or len(_shards.boxes_of(value)) > 0
    return TensorParts(_class_name(local), list(value.shape), _context_node(context), {_box_of(value): parts} if is_held else {})


def why_differs(value: Any, node: Node) -> str | None:
    """Explains why the stored tensor cannot be loaded into the live one."""
    if not is_one(value):
        return (f"the checkpoint has {_tree.brief(node)}, the state a value of type {type(value).__name__}; an optimizer gets its "
                "state by one step before the load")
    local = _local_of(value)
    if not kind_of_parts(node):
        return f"the state has a tensor of {_class_name(local)}, the checkpoint {_tree.brief(node)}"
    _, context = local.__tensor_flatten__()
    if node["class"] != _class_name(local):
        return f"the state has a tensor of {_class_name(local)}, the checkpoint one of {node['class']}"
    if node["shape"] != list(value.shape):
        return f"the shape is {list(value.shape)} in the state, {node['shape']} in the checkpoint"
    here, there = (json.dumps(one, sort_keys=True) for one in (_context_node(context), node["context"]))
    if here != there:
        return f"its class describes it as {here}, the one in the checkpoint as {there}"
    if _box_of(value) not in node["parts"]:
        return (f"the state has the box {_box_of(value) or 'of all'} of it, the checkpoint the boxes "
                f"{', '.join(one or 'of all' for one in node['parts'])}: parts are loaded in the layout in which they were saved")
    return None


def pairs(value: torch.Tensor, node: Node) -> list[tuple[str, Any, Node]]:
    """Returns (name, live part, stored node) of each part. Precondition: nothing differs."""
    stored = node["parts"][_box_of(value)]
    return [(name, one, stored[name]) for name, one in _parts_of(_local_of(value)).items() if name in stored]


def make_like(node: Node, parameter: Any, look: Any, packages: Collection[str]) -> torch.Tensor | None:
    """Creates a tensor for stored parts without a place in the optimizer, or None for a class of another package.

    Args:
        look: Returns shape and dtype of a stored tensor, by name.
        packages: Packages of the optimizer. Only names already imported by the program are looked up.
    """
    module, _, name = str(node["class"]).rpartition(".")
    kind = getattr(sys.modules.get(module), name, None) if module.partition(".")[0] in packages else None
    if not isinstance(kind, type) or not issubclass(kind, torch.Tensor) or not hasattr(kind, "__tensor_unflatten__"):
        return None
    box = _box_of(parameter) if isinstance(parameter, DTensor) else ""
    if box not in node["parts"]:
        return None
    device = _local_of(parameter).device
    parts = {}
    for name, one in node["parts"][box].items():
        shape, dtype = look(one["name"])
        parts[name] = torch.zeros(shape, dtype=dtype, device=device)
    context = _tree.Decoder(str).decode(node["context"])
    outer = _local_of(parameter)
    made: Any = kind.__tensor_unflatten__(parts, context, outer.shape, outer.stride())
    if not isinstance(parameter, DTensor):
        return made  # type: ignore[no-any-return]
    return DTensor.from_local(made, parameter.device_mesh, parameter.placements, run_check=False, shape=parameter.shape,
                              stride=parameter.stride())
