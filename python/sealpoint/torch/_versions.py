# SPDX-License-Identifier: Apache-2.0
"""Versions of modules. torch keeps them as an attribute of state dicts, and uses them to convert older weights.

The object ``sealpoint.tree.versions`` (spec/tree.md) stores the versions. It maps the path of each state to the metadata of the
modules in this state. Metadata equal to ``{"version": 1}`` is omitted.
"""

from __future__ import annotations

import collections
from collections.abc import Iterable, Mapping
from typing import Any

import torch

from sealpoint import _tree

OBJECT = _tree.VERSIONS
_ATTRIBUTE = "_metadata"
_PLAIN = {"version": 1}
Versions = dict[str, dict[str, Any]]  # by path, then by module name in that state


def of(state: Any) -> Mapping[str, Any] | None:
    """Returns the module metadata of a state dict, or None if the state dict does not come from a module."""
    found = getattr(state, _ATTRIBUTE, None)
    return found if isinstance(found, Mapping) else None


def compact(found: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the stored form. Drops values other than numbers and strings, because torch itself records only numbers."""
    kept = {}
    for name, entry in found.items():
        plain = {key: value for key, value in entry.items() if isinstance(key, str) and type(value) in (int, str, bool)}
        if plain != _PLAIN:
            kept[str(name)] = plain
    return kept


def attached(state: Mapping[Any, Any], stored: Mapping[str, Any] | None, live: Mapping[str, Any] | None) -> Any:
    """Returns the state with the stored module metadata attached. If none is stored, the live metadata is attached."""
    made = collections.OrderedDict(state)
    found = live if stored is None else {name: stored.get(name, dict(_PLAIN)) for name in live or _modules_of(state)}
    if live is not None and stored is not None and compact(live) != {name: value for name, value in stored.items() if name in live}:
        # The modules convert their input in place, so the input must not be the modules' own memory.
        made.update({key: torch.empty_like(value) for key, value in state.items() if isinstance(value, torch.Tensor)})
    setattr(made, _ATTRIBUTE, collections.OrderedDict(found or {}))
    return made


def _modules_of(keys: Iterable[Any]) -> list[str]:
    """Returns the names of the modules with these parameters, and of their enclosing modules."""
    names = {""}
    for key in keys:
        parts = str(key).split(".")[:-1]
        names.update(".".join(parts[: i + 1]) for i in range(len(parts)))
    return sorted(names)


def attach_all(value: Any, versions: Versions, path: _tree.Path = ()) -> Any:
    """Attaches the stored module metadata to a whole state."""
    if type(value) is list:
        return [attach_all(item, versions, (*path, i)) for i, item in enumerate(value)]
    if type(value) is not dict:
        return value
    made = {key: attach_all(item, versions, (*path, _tree.part_of(key))) for key, item in value.items()}
    stored = versions.get(_tree.text_of(path))
    return made if stored is None else attached(made, stored, None)
