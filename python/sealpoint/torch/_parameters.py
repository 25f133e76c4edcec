# SPDX-License-Identifier: Apache-2.0
"""Which stored state of an optimizer belongs to which parameter: by names where both sides have them, never by number alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from sealpoint._tree import Node
from sealpoint._tree_paths import entries_of, kind_of

_NAMES = "param_names"  # of a group, if the optimizer was given named_parameters()
# What optimizers keep beside a parameter that has its shape.
_MOMENTS = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq", "exp_inf", "momentum_buffer", "square_avg")
_SHOWN_MAX = 3


def _some(names: set[str]) -> str:
    shown = ", ".join(sorted(names)[:_SHOWN_MAX])
    return shown + (f" and {len(names) - _SHOWN_MAX} more" if len(names) > _SHOWN_MAX else "")


def _stored_groups(node: Node) -> list[Mapping[Any, Node]]:
    groups = (entries_of(node) or {}).get("param_groups")
    return [entries_of(group) or {} for group in groups] if isinstance(groups, list) else []


def numbers_of(groups: list[Any]) -> dict[int, Any]:
    """The parameters of an optimizer by the numbers that its state_dict() gives them."""
    seen: dict[int, Any] = {}
    for group in groups:
        for parameter in group["params"]:
            seen.setdefault(id(parameter), parameter)
    return dict(enumerate(seen.values()))


def _names(groups: list[Any], count: Callable[[Any], int]) -> list[list[str]] | None:
    """The names of the parameters of each group; None: not all groups have them."""
    names = [group.get(_NAMES) for group in groups]
    is_whole = all(isinstance(one, list) and len(one) == count(group) for one, group in zip(names, groups, strict=True))
    every = [name for one in names for name in one] if groups and is_whole else []
    return names if every and len(set(every)) == len(every) and all(isinstance(one, str) for one in every) else None


def by_names(optimizer: Any, node: Node) -> tuple[Node, str | None]:
    """The stored state of an optimizer with the live optimizer's numbers and order of groups, and why it cannot be.

    What is no optimizer, or has no names on one of the two sides, is returned as it is.
    """
    live_groups, stored_groups = getattr(optimizer, "param_groups", None), _stored_groups(node)
    if not isinstance(live_groups, list) or not all(isinstance(group, dict) for group in live_groups):
        return node, None
    live = _names(live_groups, lambda group: len(group["params"]))
    stored = _names(stored_groups, lambda group: len(group["params"]) if isinstance(group.get("params"), list) else -1)
    if live is None or stored is None or live == stored:
        return node, None
    at = {frozenset(names): i for i, names in enumerate(stored)}
    if len(at) != len(stored) or {frozenset(names) for names in live} != set(at):
        here, there = {name for one in live for name in one}, {name for one in stored for name in one}
        if here == there:
            return node, ("the same parameters are in other groups, so that it is not known which hyper-parameters each is "
                          "to have: make the groups of the optimizer as they were saved")
        return node, (f"it has other parameters than the checkpoint: only here {_some(here - there) or 'none'}, only in the "
                      f"checkpoint {_some(there - here) or 'none'}; load the model alone, or make the optimizer of the same "
                      "parameters")
    number_of = {name: number for names, group in zip(stored, stored_groups, strict=True)
                 for name, number in zip(names, group["params"], strict=True)}  # fmt: skip
    states = entries_of((entries_of(node) or {}).get("state")) or {}
    renumbered, groups, number = {}, [], 0
    for names in live:
        group = stored_groups[at[frozenset(names)]]
        params = list(range(number, number + len(names)))
        groups.append({**group, "params": params, _NAMES: list(names)})
        for own, name in zip(params, names, strict=True):
            there = number_of[name]
            if there in states or str(there) in states:
                renumbered[own] = states.get(there, states.get(str(there)))
        number += len(names)
    return {**(entries_of(node) or {}), "state": dict_node(renumbered), "param_groups": groups}, None


def dict_node(entries: Mapping[Any, Node]) -> Node:
    return {"$": "dict", "items": [[key, value] for key, value in entries.items()]}


def misfits(optimizer: Any, node: Node, shape_of: Callable[[str], tuple[int, ...]]) -> Iterator[str]:
    """Moments whose parameter has another shape: they are those of another parameter."""
    groups = getattr(optimizer, "param_groups", None)
    sizes = [len(group.get("params") or ()) for group in _stored_groups(node)]
    if not isinstance(groups, list) or sizes != [len(group["params"]) for group in groups]:
        return  # for another check
    names = {id(parameter): name for group in groups for name, parameter in
             zip(group.get(_NAMES) or (), group["params"], strict=False)}  # fmt: skip
    states = entries_of((entries_of(node) or {}).get("state")) or {}
    for number, parameter in numbers_of(groups).items():
        entries = entries_of(states.get(number, states.get(str(number)))) or {}
        for key in _MOMENTS:
            if kind_of(entries.get(key)) != "tensor":
                continue
            shape = shape_of(entries[key]["name"])
            if shape != tuple(parameter.shape):
                of = f"parameter {number}" + (f" ({names[id(parameter)]})" if id(parameter) in names else "")
                yield (f"{key} of {of} is stored with shape {list(shape)}, and the parameter has {list(parameter.shape)}: the "
                       "optimizer has its parameters in another order than it was saved with; give it named_parameters(), "
                       "before the save too, by which they are matched, or the parameters in that order")
                break
