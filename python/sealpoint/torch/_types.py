# SPDX-License-Identifier: Apache-2.0
"""Nodes of a tree for torch values other than tensors."""

from __future__ import annotations

import torch

from sealpoint import _tree
from sealpoint._tree import KIND, Node


def _dtype_of(node: Node) -> object:
    dtype = getattr(torch, str(node["name"]), None)
    return dtype if isinstance(dtype, torch.dtype) else _tree.Foreign("dtype", {"name": node["name"]})


def register_types() -> None:
    _tree.register_type(
        lambda value: isinstance(value, torch.Size),
        lambda value: {KIND: "size", "items": list(value)},
        "size",
        lambda node: torch.Size(node["items"]),
    )
    _tree.register_type(
        lambda value: isinstance(value, torch.dtype),
        lambda value: {KIND: "dtype", "name": str(value).removeprefix("torch.")},
        "dtype",
        _dtype_of,
    )
    _tree.register_type(
        lambda value: isinstance(value, torch.device),
        lambda value: {KIND: "device", "name": str(value)},
        "device",
        lambda node: torch.device(node["name"]),
    )
