# SPDX-License-Identifier: Apache-2.0
"""Values without tensors.

A load replaces such values as a whole, because data loaders and histories change the form of their values after the first step.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Mapping, MutableMapping
from pathlib import PurePath
from typing import Any, Literal

import torch
from torch.optim.lr_scheduler import LRScheduler

from sealpoint import _tree
from sealpoint._tree import Node
from sealpoint._tree_paths import entries_of, kind_of
from sealpoint.torch import _parameters, _shards
from sealpoint.torch._state import is_stateful

EXTRA_STATE = "_extra_state"
_CONTAINERS = (Mapping, list, tuple, deque)


def kind_of_object(value: Any) -> Literal["strict", "optimizer", "other"]:
    """Tells whether the names in the state of an object are known before its first step.

    If the names are known, different names mean a different object.
    """
    if _parameters.groups_of(value) is not None:
        return "optimizer"
    return "strict" if isinstance(value, (torch.nn.Module, LRScheduler, torch.amp.GradScaler)) else "other"


def are_of_other_kinds(live: Any, node: Node) -> bool:
    """Tells whether one value is a tensor and the other a number or None.

    LBFGS turns some values into tensors in a later step.
    """
    is_local, is_stored = type(live) is torch.Tensor, kind_of(node) == "tensor"
    is_value, is_stored_value = isinstance(live, (type(None), int, float)), isinstance(node, (type(None), int, float))
    return (is_local and is_stored_value) or (is_value and is_stored)


def is_of_own_kind(value: Any) -> bool:
    """Tells whether a value is a mapping of values that is not a plain dict, such as a Counter."""
    return isinstance(value, MutableMapping) and type(value) not in (dict, OrderedDict) and not _has_places(value)


def are_replaced(live: Any, node: Node, *, has_strict_keys: bool) -> bool:
    """Tells whether the live value is replaced as a whole by the stored value, instead of part by part.

    A container never replaces a number, and a number never replaces a container.
    """
    if has_strict_keys and not _has_other_keys(live):
        return False
    if not (live is None or isinstance(live, _CONTAINERS)) or _has_places(live) or _kinds_in(node):
        return False
    return is_empty(live) or node is None or (entries_of(node) is not None) == isinstance(live, Mapping)


def _has_other_keys(live: Any) -> bool:
    return isinstance(live, Mapping) and any(type(key) is not str for key in live)


def is_empty(live: Any) -> bool:
    return live is None or (isinstance(live, _CONTAINERS) and len(live) == 0)


def _has_places(live: Any) -> bool:
    if is_stateful(live) or _shards.is_tensor(live) or isinstance(live, _tree.PerRank):
        return True
    if isinstance(live, Mapping):
        return any(_has_places(value) for value in live.values())
    return isinstance(live, (list, tuple, deque)) and any(_has_places(item) for item in live)


def _kinds_in(node: Node) -> set[str]:
    """Returns the kinds of the nodes within a node that are loaded separately."""
    return {child[_tree.KIND] for child in _tree.nodes_of(node, ("tensor", "per_rank", "tensor_parts"))}


def makes_tensors(node: Node) -> bool:
    """Tells whether a node has tensors but no per-rank values."""
    return _kinds_in(node) == {"tensor"}


def in_container_of(live: Any, value: Any) -> Any:
    """Converts a value to the container type of the state.

    A Counter stays a Counter, and text becomes a path if the state has a path.
    """
    if isinstance(live, MutableMapping) and isinstance(value, dict):
        is_by_number = len(live) > 0 and all(type(key) is int for key in live) and all(_is_number(key) for key in value)
        made = {int(key) if is_by_number else key: in_container_of(live.get(key), item) for key, item in value.items()}
        live.clear()
        live.update(made)
        return live
    if isinstance(live, deque) and isinstance(value, list):
        live.clear()
        live.extend(value)
        return live
    if _tree.is_named_tuple(live) and isinstance(value, tuple) and len(live) == len(value):
        return type(live)(*value)
    if isinstance(live, PurePath) and isinstance(value, str):
        return type(live)(value)
    return value


def _is_number(key: Any) -> bool:
    """Tells whether a key is an integer or the text of an integer. Integers occur as texts because all DCP keys are strings."""
    return type(key) is int or (isinstance(key, str) and key.removeprefix("-").isdecimal())


def why_scaler_differs(live: Any, node: Node) -> str | None:
    """Explains why this GradScaler cannot load the stored state.

    Either the live or the stored scaler is disabled and therefore has no state.
    """
    if not isinstance(live, torch.amp.GradScaler):
        return None
    if entries_of(node) and not live.is_enabled():
        return ("the scaler is disabled here, so its stored state has no place: leave it out of the state, with "
                'Contract(unexpected="allow")')
    if live.is_enabled() and not entries_of(node):
        return "the scaler was disabled when it was saved, so it has no stored state: leave it out of the state"
    return None
