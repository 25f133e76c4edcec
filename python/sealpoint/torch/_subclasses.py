# SPDX-License-Identifier: Apache-2.0
"""Tensor subclasses composed of other tensors, such as quantized weights and moments. A save stores the parts.

See spec/tree-additions.md. A class lists its parts in ``__tensor_flatten__``. Each part is loaded into the memory of
the corresponding live part.
"""

from __future__ import annotations

import enum
import json
import sys
from collections.abc import Collection
from typing import Any

import torch

from sealpoint import _tree
from sealpoint._errors import Error, UnsupportedError
from sealpoint._tree import KIND, Node, TensorParts, kind_of_parts
from sealpoint.torch import _shards
from sealpoint.torch._dtensor import is_dtensor


def _local_of(value: torch.Tensor) -> Any:
    return value._local_tensor if is_dtensor(value) else value


def is_one(value: Any) -> bool:
    """Tells whether a tensor, or the local part of a DTensor, is composed of other tensors."""
    if not isinstance(value, torch.Tensor):
        return False
    local = _local_of(value)
    return hasattr(type(local), "__tensor_flatten__") and not is_dtensor(local) and not local.is_nested


def prepared(value: Any) -> Any:
    """Prepares a value for a save.

    Waits for an asynchronous collective, and splits a composed tensor into its parts. Returns any other value unchanged. Raises
    UnsupportedError for a tensor that keeps a part of its value in attributes.
    """
    module = sys.modules.get("torch.distributed._functional_collectives")
    kind = getattr(module, "AsyncCollectiveTensor", None)
    if kind is not None and isinstance(value, kind):
        value = value.wait()
    if isinstance(value, torch.nn.Parameter) and getattr(value, "quant_state", None) is not None:
        raise UnsupportedError("a quantized weight of bitsandbytes, whose scales are attributes; save the state_dict of its "
                               "module, which has them as tensors")
    return _taken(value) if is_one(value) else value


def _class_name(value: Any) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"


def _context_node(context: Any) -> Node:
    """Encodes the flatten context of a tensor subclass, so that two contexts can be compared.

    Values that have no node form are represented by their type.
    """
    if type(context) in (list, tuple):
        items = [_context_node(item) for item in context]
        return items if isinstance(context, list) else {KIND: "tuple", "items": items}
    if isinstance(context, dict):
        return {KIND: "dict", "items": [[_context_node(key), _context_node(value)] for key, value in context.items()]}
    try:
        return _tree.Encoder(lambda one: False, lambda path, one: "").encode(context)
    except Error:
        return {KIND: "type", "name": _class_name(context)}


def _comparable(context: Node, local: torch.Tensor, live: Any) -> Node:
    """Returns a context without the differences between a context of the class and a context that was read from a pickle.

    A pickle lists the attributes in the order of their creation, has empty attributes, too, and always has the dtype. A member of
    an enumeration is in it as an object of its class.
    """
    if not isinstance(context, dict) or context.get(KIND) != "dict":
        return context
    entries = {json.dumps(key): value for key, value in context["items"] if value is not None}
    entries.setdefault(json.dumps("dtype"), _context_node(local.dtype))
    for key, value in live.items() if isinstance(live, dict) else ():
        if isinstance(value, enum.Enum) and entries.get(json.dumps(key)) == {KIND: "type", "name": _class_name(value)}:
            entries[json.dumps(key)] = _context_node(value)
    return entries


def _box_of(value: torch.Tensor) -> str:
    """Returns the offset of the box that the parts form in the whole tensor, or "" if the box is the whole tensor."""
    if not is_dtensor(value):
        return ""
    boxes = _shards.boxes_of(value)
    if len(boxes) == 1 and boxes[0][1] == tuple(value.shape):
        return ""
    return "+".join(",".join(map(str, offset)) for offset, _, _ in boxes)


def _parts_of(local: Any) -> dict[str, Any]:
    """Returns the parts by attribute name. A part may itself be composed of other tensors."""
    names, _ = local.__tensor_flatten__()
    return {name: getattr(local, name) for name in names}


def _taken(value: torch.Tensor) -> TensorParts:
    local = _local_of(value)
    _, context = local.__tensor_flatten__()
    parts = {name: prepared(child) for name, child in _parts_of(local).items()}
    is_held = not is_dtensor(value) or len(_shards.boxes_of(value)) > 0
    return TensorParts(_class_name(local), list(value.shape), _context_node(context), {_box_of(value): parts} if is_held else {})


def why_differs(value: Any, node: Node) -> str | None:
    """Explains why the stored tensor cannot be loaded into the live tensor."""
    if not is_one(value):
        return (f"the checkpoint has {_tree.brief(node)}, the state a value of type {type(value).__name__}; an optimizer gets its "
                "state from one step before the load")
    local = _local_of(value)
    if not kind_of_parts(node):
        return f"the state has a tensor of {_class_name(local)}, the checkpoint {_tree.brief(node)}"
    _, context = local.__tensor_flatten__()
    if node["class"] != _class_name(local):
        return f"the state has a tensor of {_class_name(local)}, the checkpoint has a tensor of {node['class']}"
    if node["shape"] != list(value.shape):
        return f"the shape is {list(value.shape)} in the state, {node['shape']} in the checkpoint"
    here, there = (json.dumps(_comparable(child, local, context), sort_keys=True)
                   for child in (_context_node(context), node["context"]))  # fmt: skip
    if here != there:
        return f"its class describes it as {here}, but the class in the checkpoint describes it as {there}"
    if _box_of(value) not in node["parts"]:
        return (f"the state has the box {_box_of(value) or 'of all'} of it, the checkpoint the boxes "
                f"{', '.join(part or 'of all' for part in node['parts'])}: parts are loaded in the layout in which they were saved")
    return None


def pairs(value: torch.Tensor, node: Node) -> list[tuple[str, Any, Node]]:
    """Returns (name, live part, stored node) of each part. Precondition: ``why_differs`` found no difference."""
    stored = node["parts"][_box_of(value)]
    return [(name, item, stored[name]) for name, item in _parts_of(_local_of(value)).items() if name in stored]


def make_like(node: Node, parameter: Any, look: Any, packages: Collection[str]) -> torch.Tensor | None:
    """Creates a composed tensor to load stored parts into, if the optimizer does not have the tensor yet.

    Returns None if the stored class belongs to none of the packages.

    Args:
        look: Returns shape and dtype of a stored tensor, by name.
        packages: Packages of the optimizer. Only modules that the program has already imported are searched for the
            class.
    """
    module, _, name = str(node["class"]).rpartition(".")
    kind = getattr(sys.modules.get(module), name, None) if module.partition(".")[0] in packages else None
    if not isinstance(kind, type) or not issubclass(kind, torch.Tensor) or not hasattr(kind, "__tensor_unflatten__"):
        return None
    box = _box_of(parameter) if is_dtensor(parameter) else ""
    if box not in node["parts"]:
        return None
    device = _local_of(parameter).device
    parts = {}
    for name, child in node["parts"][box].items():
        shape, dtype = look(child["name"])
        parts[name] = torch.zeros(shape, dtype=dtype, device=device)
    context = _tree.Decoder(str).decode(node["context"])
    outer = _local_of(parameter)
    made: Any = kind.__tensor_unflatten__(parts, context, outer.shape, outer.stride())
    if not is_dtensor(parameter):
        return made  # type: ignore[no-any-return]
    return parameter.from_local(made, parameter.device_mesh, parameter.placements, run_check=False, shape=parameter.shape,
                                stride=parameter.stride())
