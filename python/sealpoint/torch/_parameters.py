# SPDX-License-Identifier: Apache-2.0
"""Matches stored optimizer state to parameters, by name if checkpoint and job have names, and never by number alone."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, NamedTuple

import torch

from sealpoint import _tree
from sealpoint._tree import Node, Path, text_of
from sealpoint._tree_paths import entries_of, kind_of
from sealpoint.torch._outline import LEAVES

OBJECT = _tree.PARAMETERS
# Parameter names of each group, by the path of the optimizer.
Parameters = dict[str, list[list[str]]]
_NAMES = "param_names"  # key of a group if the optimizer was given named_parameters()
# Per-parameter optimizer state with the shape of the parameter.
_MOMENTS = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq", "exp_inf", "momentum_buffer", "square_avg")
_SHOWN_MAX = 3
_WRAPPERS = re.compile(r"(^|(?<=\.))(_orig_mod|_checkpoint_wrapped_module|_fsdp_wrapped_module)\.")
_OTHER_GROUPS = ("the same parameters are in other groups, so their hyper-parameters are ambiguous: create the groups of the "
                 "optimizer as they were saved")


class Names(NamedTuple):
    """The names of a parameter in the modules of a state."""

    full: str  # including the path of the module in the state
    short: str  # within its module, without wrappers, as in get_state_dict()


def names_in(state: Any) -> dict[int, Names]:
    """Returns the names of the parameters of all modules in a state, by id of the parameter."""
    found: dict[int, Names] = {}
    owners: dict[str, int] = {}
    is_unique = True
    for path, module in _modules(state, ()):
        for name, parameter in module.named_parameters(remove_duplicate=False):
            short = _WRAPPERS.sub("", name.removeprefix("module.") if _is_replicated(module) else name)
            is_unique &= owners.setdefault(short, id(parameter)) == id(parameter)
            found.setdefault(id(parameter), Names(".".join(filter(None, (text_of(path), short))), short))
    return found if is_unique else {number: Names(full, full) for number, (full, _) in found.items()}


def _is_replicated(module: torch.nn.Module) -> bool:
    return isinstance(module, torch.nn.parallel.DistributedDataParallel)


def _modules(state: Any, path: Path) -> Iterator[tuple[Path, torch.nn.Module]]:
    if isinstance(state, torch.nn.Module):
        yield path, state
    elif isinstance(state, Mapping):
        for key, value in state.items():
            if type(value) not in LEAVES:
                yield from _modules(value, (*path, _tree.part_of(key)))
    elif isinstance(state, (list, tuple)):
        for number, item in enumerate(state):
            yield from _modules(item, (*path, number))


def groups_of(optimizer: Any) -> list[dict[str, Any]] | None:
    """Returns the parameter groups of an optimizer, or None for other objects."""
    groups = getattr(optimizer, "param_groups", None)
    is_one = isinstance(groups, list) and all(isinstance(group, dict) and "params" in group for group in groups)
    return groups if is_one else None


def named_groups(optimizer: Any, names: Mapping[int, Names]) -> list[list[Names]] | None:
    """Returns the parameter names of each group, or None if a name is missing or the object is not an optimizer."""
    groups = groups_of(optimizer)
    if not groups or any(id(item) not in names for group in groups for item in group["params"]):
        return None
    return [[names[id(item)] for item in group["params"]] for group in groups]


def numbers_of(groups: list[Any]) -> dict[int, Any]:
    """Returns the parameters of an optimizer, by the numbers that its state_dict() uses."""
    seen: dict[int, Any] = {}
    for group in groups:
        for parameter in group["params"]:
            seen.setdefault(id(parameter), parameter)
    return dict(enumerate(seen.values()))


def _zero() -> Any:
    module = sys.modules.get("torch.distributed.optim.zero_redundancy_optimizer")
    return getattr(module, "ZeroRedundancyOptimizer", None)


def of_rank(value: Any) -> Any:
    """Returns the rank-local optimizer of a ZeroRedundancyOptimizer, or any other object unchanged."""
    kind = _zero()
    return value.optim if kind is not None and isinstance(value, kind) else value


def note_load(value: Any) -> None:
    """Copies loaded hyper-parameters from the rank-local optimizer to its ZeroRedundancyOptimizer."""
    kind = _zero()
    if kind is not None and isinstance(value, kind):
        kind._sync_param_groups(value.optim.param_groups, value.param_groups)


def flat_state(optimizer: Any, names: list[list[Names]]) -> dict[str, Any]:
    """Flattens the state of an optimizer into one mapping by parameter name, as get_state_dict() does.

    Ranks with different parameters, such as pipeline stages, have different keys in the mapping.
    """
    state, flat = optimizer.state_dict(), {}
    for group, of_group in zip(state["param_groups"], names, strict=True):
        for number, name in zip(group["params"], of_group, strict=True):
            for key, value in state["state"].get(number, {}).items():
                flat[f"state.{name.short}.{key}"] = value
            for key, value in group.items():
                if key not in ("params", _NAMES):
                    flat[f"param_groups.{name.short}.{key}"] = value
    return flat


class _Stored:
    """Stored optimizer state by parameter name."""

    def __init__(self) -> None:
        self.states: dict[str, dict[Any, Node]] = {}
        self.groups: dict[str, Mapping[Any, Node]] = {}
        self.number_of_group: dict[str, int] = {}  # empty: groups are not stored
        self.places: dict[str, list[tuple[Path, Node]]] = {}  # stored nodes of a name, with paths relative to the optimizer


def _of_groups(entries: Mapping[Any, Node], names: list[list[str]]) -> _Stored:
    """Reads the result of state_dict() or get_state_dict()."""
    stored = _Stored()
    states = entries_of(entries.get("state")) or {}
    for i, (group, of_group) in enumerate(zip(stored_groups(entries), names, strict=True)):
        for key, name in zip(group["params"], of_group, strict=True):
            stored.groups[name], stored.number_of_group[name] = group, i
            stored.places[name] = [(("param_groups",), entries["param_groups"])]
            found = key if key in states else str(key)
            if found in states:
                stored.states[name] = entries_of(states[found]) or {}
                stored.places[name].append((("state", found), states[found]))
    return stored


def _of_flat(entries: Mapping[Any, Node]) -> _Stored:
    stored = _Stored()
    groups: dict[str, dict[Any, Node]] = {}
    for key, node in entries.items():
        kind, _, rest = str(key).partition(".")
        name, _, last = rest.rpartition(".")
        if kind in ("state", "param_groups") and name:
            (stored.states if kind == "state" else groups).setdefault(name, {})[last] = node
            stored.places.setdefault(name, []).append(((key,), node))
    stored.groups.update(groups)
    return stored


def stored_groups(entries: Mapping[Any, Node]) -> list[Mapping[Any, Node]]:
    """Returns the entries of each parameter group, from the entries of a stored optimizer."""
    groups = entries.get("param_groups")
    return [entries_of(group) or {} for group in groups] if isinstance(groups, list) else []


def _own_names(groups: list[Any]) -> list[list[str]] | None:
    """Returns the names stored in the groups themselves, or None if a group lacks them."""
    names = [group.get(_NAMES) for group in groups]
    is_whole = all(isinstance(name, list) and isinstance(group.get("params"), list) and len(name) == len(group["params"])
                   for name, group in zip(names, groups, strict=True))  # fmt: skip
    every = [name for item in names for name in item] if groups and is_whole else []
    return names if every and len(set(every)) == len(every) and all(isinstance(item, str) for item in every) else None


class Matched(NamedTuple):
    """Stored optimizer state, rearranged to the parameter numbers and groups of the live optimizer."""

    node: Node
    places: list[tuple[Path, Node]]  # the corresponding stored nodes, with paths relative to the optimizer


def by_names(optimizer: Any, node: Node, names: Mapping[int, Names], stored_names: list[list[str]] | None,
             is_alone: bool) -> Matched | str | None:
    """Selects the stored state of this rank's parameters.

    Args:
        names: Result of ``names_in``.
        stored_names: Full parameter names of each stored group, if the checkpoint has them.
        is_alone: Only this rank loads, so no other rank can have further parameters.

    Returns:
        The state, or the reason why the state cannot be matched. None if the checkpoint or the job has no parameter names, or if
        stored and live numbers agree.
    """
    groups, entries = groups_of(optimizer), entries_of(node) or {}
    if not groups:
        return None
    of_modules, there = named_groups(optimizer, names), stored_groups(entries)
    own, stored_own = _own_names(groups), _own_names(there)
    if not there:
        short = [[item.short for item in of_group] for of_group in of_modules] if of_modules else own
        is_flat = any(str(key).startswith("param_groups.") for key in entries)
        return _matched(groups, short, _of_flat(entries), is_alone) if short and is_flat else None
    sizes = [len(group["params"]) if isinstance(group.get("params"), list) else -1 for group in there]
    if of_modules and all(isinstance(name, str) for group in there for name in group.get("params", [])) and max(sizes) > 0:
        short = [[item.short for item in of_group] for of_group in of_modules]
        return _matched(groups, short, _of_groups(entries, [list(group["params"]) for group in there]), is_alone)
    live, stored = own, stored_own
    if of_modules and stored_names and [len(name) for name in stored_names] == sizes:
        live, stored = [[item.full for item in of_group] for of_group in of_modules], stored_names
    if live is None or stored is None or live == stored:
        return None
    return _matched(groups, live, _of_groups(entries, stored), is_alone)


def _matched(groups: list[Any], live: list[list[str]], stored: _Stored, is_alone: bool) -> Matched | str:
    here, there = {name for item in live for name in item}, set(stored.groups)
    if here - there or (is_alone and there - here):
        return (f"its parameters differ from the checkpoint: only here {_some(here - there) or 'none'}, only in the "
                f"checkpoint {_some(there - here) or 'none'}; load the model alone, or create the optimizer with the same "
                "parameters")
    if stored.number_of_group and not _has_same_groups(live, stored.number_of_group):
        return _OTHER_GROUPS
    states, new_groups, places, number = {}, [], [], 0
    for i, (names, group) in enumerate(zip(live, groups, strict=True)):
        values = _values_of_group(i, names, stored)
        if values is None:
            return _OTHER_GROUPS
        params = list(range(number, number + len(names)))
        new_groups.append({**values, "params": params, **({_NAMES: list(group[_NAMES])} if _NAMES in group else {})})
        for own, name in zip(params, names, strict=True):
            if name in stored.states:
                states[own] = stored.states[name]
            places += stored.places[name]
        number += len(names)
    return Matched({"state": dict_node(states), "param_groups": new_groups}, places)


def _has_same_groups(live: list[list[str]], number_of: Mapping[str, int]) -> bool:
    """Tells whether the stored groups divide the parameters in the same way as the live groups do."""
    found = [{number_of[name] for name in names} for names in live if names]
    return all(len(item) == 1 for item in found) and len(set.union(set(), *found)) == len(found)


def _values_of_group(number: int, names: list[str], stored: _Stored) -> dict[Any, Node] | None:
    """Returns the hyper-parameters of a group, or None if they differ between its parameters.

    A group may have no parameters on this rank.
    """
    of_group = [name for name, value in stored.number_of_group.items() if value == number]
    every = [_values(stored.groups[name]) for name in names or of_group[:1] or list(stored.groups)[:1]]
    return every[0] if every and all(_compared(item) == _compared(every[0]) for item in every) else None


def _values(group: Mapping[Any, Node]) -> dict[Any, Node]:
    return {key: node for key, node in group.items() if key not in ("params", _NAMES)}


def _compared(values: Mapping[Any, Node]) -> str:
    return json.dumps({str(key): node for key, node in values.items() if kind_of(node) != "tensor"}, sort_keys=True)


def _some(names: Collection[str]) -> str:
    shown = ", ".join(sorted(names)[:_SHOWN_MAX])
    return shown + (f" and {len(names) - _SHOWN_MAX} more" if len(names) > _SHOWN_MAX else "")


def dict_node(entries: Mapping[Any, Node]) -> Node:
    return {_tree.KIND: "dict", "items": [[key, value] for key, value in entries.items()]}


def misfits(optimizer: Any, node: Node, shape_of: Callable[[str], tuple[int, ...]]) -> Iterator[str]:
    """Yields a message for each optimizer moment that differs in shape from its parameter.

    Such a moment belongs to a different parameter.
    """
    groups, entries = groups_of(optimizer), entries_of(node) or {}
    sizes = [len(group.get("params") or ()) for group in stored_groups(entries)]
    if groups is None or sizes != [len(group["params"]) for group in groups]:
        return  # another check reports this
    names = {id(parameter): name for group in groups for name, parameter in
             zip(group.get(_NAMES) or (), group["params"], strict=False)}  # fmt: skip
    states = entries_of(entries.get("state")) or {}
    for number, parameter in numbers_of(groups).items():
        moments = entries_of(states.get(number, states.get(str(number)))) or {}
        for key in _MOMENTS:
            if kind_of(moments.get(key)) != "tensor":
                continue
            shape = shape_of(moments[key]["name"])
            if shape != tuple(parameter.shape):
                of = f"parameter {number}" + (f" ({names[id(parameter)]})" if id(parameter) in names else "")
                yield (f"{key} of {of} is stored with shape {list(shape)}, and the parameter has {list(parameter.shape)}: the "
                       "order of the optimizer's parameters has changed; pass named_parameters() to it, also before the save, to "
                       "match by name, or keep the order")
                break
