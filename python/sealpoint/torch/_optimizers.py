# SPDX-License-Identifier: Apache-2.0
"""Loads into optimizers that have no state yet: torch creates the state in the first step, after the load."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import torch

from sealpoint import _tree
from sealpoint._tree import Node
from sealpoint._tree_paths import entries_of, kind_of
from sealpoint.torch import _parameters, _subclasses
from sealpoint.torch._dtensor import is_dtensor

if TYPE_CHECKING:
    from torch.distributed.tensor import DTensor

# Returns shape and dtype of a stored tensor.
Look = Callable[[str], tuple[tuple[int, ...], torch.dtype]]
_PARTS = {"state", "param_groups"}
NO_STATE = (
    "it has no state yet, and the result of state_dict() has no places for it: pass the optimizer itself, "
    '{"optimizer": optimizer}, which gets state and hyper-parameters; or leave it out of the state'
)
NO_PLACES = (
    "none of its stored state would be loaded, because an optimizer has no places for it before its first step: load into the "
    "result of get_state_dict(model, optimizer), then call set_state_dict(); if it was saved by state_dict(), pass the optimizer "
    "itself to sealpoint.torch.load()"
)
_GET_STATE = "load into what get_state_dict(model, optimizer{}) of torch.distributed.checkpoint.state_dict returns"
_FLAT = ", options=StateDictOptions(flatten_optimizer_state_dict=True)"
# Advice by the form of the stored state.
_WAYS_OUT = {
    "numbers": "the checkpoint has its state by parameter number, the state by name: pass the optimizer itself, "
               '{"optimizer": optimizer}, which gets state and hyper-parameters',
    "names": "the checkpoint has its state by parameter name, as get_state_dict() returns it: "
             f"{_GET_STATE.format('')}, then call set_state_dict() with it",
    "flat": "the checkpoint has its state by parameter name in one flat mapping: add its modules to the state, to provide the "
            f"names; or {_GET_STATE.format(_FLAT)}, then call set_state_dict() with it and these options",
}  # fmt: skip
# Group entries that a scheduler changes, by the entry that reveals the scheduler.
_SCHEDULED = {"initial_lr": ("lr",), "max_momentum": ("momentum", "betas"), "base_momentum": ("momentum", "betas")}
_OF_STATE = re.compile(r"((?:.*\.)?)state\.")


def complete(optimizer: Any, state: Any, node: Node, look: Look) -> Any:
    """Returns an optimizer's state dict with new tensors for the stored state of its parameters and groups.

    The tensors are placed where the optimizer would place them: state with the parameter's shape is on the parameter's device and
    mesh. Stored state of unknown parameters gets no tensor. The optimizer and ``state`` are not changed. A state of a different
    kind of object is returned unchanged. Local.
    """
    groups, live_groups = getattr(optimizer, "param_groups", None), _groups_of(state)
    if live_groups is None or not isinstance(groups, list) or len(groups) != len(live_groups):
        return state
    stored = entries_of(node) or {}
    stored_states = entries_of(stored.get("state")) or {}
    states = dict(state["state"])
    bases = [item for item in type(optimizer).__mro__ if issubclass(item, torch.optim.Optimizer)]
    packages = {base.__module__.partition(".")[0] for base in bases} - {"torch"}
    for group, live in zip(groups, live_groups, strict=True):
        for parameter, number in zip(group["params"], live["params"], strict=False):
            entries = entries_of(stored_states.get(number, stored_states.get(str(number))))  # all DCP keys are strings
            if entries:
                states[number] = _with_places(states.get(number, {}), entries, parameter, look, packages)
    new_groups = list(live_groups)
    if isinstance(stored.get("param_groups"), list):
        for i, (live, stored_group) in enumerate(zip(live_groups, stored["param_groups"], strict=False)):
            new_groups[i] = _with_places(live, entries_of(stored_group) or {}, None, look)
    return {**state, "state": states, "param_groups": new_groups}


def _groups_of(state: Any) -> list[Any] | None:
    """Returns the parameter groups in the result of an optimizer's state_dict(), or None for a different kind of state."""
    if not isinstance(state, Mapping) or not _PARTS <= state.keys() or not isinstance(state["state"], Mapping):
        return None
    groups = state["param_groups"]
    is_one = isinstance(groups, list) and all(isinstance(group, Mapping) and "params" in group for group in groups)
    return groups if is_one else None


def _with_places(live: Mapping[Any, Any], entries: Mapping[Any, Node], parameter: Any, look: Look,
                 packages: Collection[str] = ()) -> dict[Any, Any]:
    return {**live, **{key: _place(key, entry, parameter, look, packages) for key, entry in entries.items() if key not in live}}


def _place(key: Any, node: Node, parameter: Any, look: Look, packages: Collection[str] = ()) -> Any:
    """Returns a destination for a tensor node. Returns None for a value node, which needs no destination."""
    if kind_of(node) == "tensor":
        shape, dtype = look(node["name"])
        if parameter is None or (key == "step" and shape == ()):  # torch keeps step counters on the host, and moves them itself
            return torch.zeros(shape, dtype=dtype, device="cpu")
        if shape == tuple(parameter.shape):
            return torch.zeros_like(parameter, dtype=dtype, requires_grad=False)
        if is_dtensor(parameter) and _fits_placements(shape, parameter):
            mesh, placements = parameter.device_mesh, parameter.placements
            return torch.distributed.tensor.zeros(shape, dtype=dtype, device_mesh=mesh, placements=placements)
        return parameter.detach().new_zeros(shape, dtype=dtype)
    if _tree.kind_of_parts(node):
        return None if parameter is None else _subclasses.make_like(node, parameter, look, packages)
    entries = entries_of(node)
    if entries is not None:
        return _with_places({}, entries, parameter, look, packages)
    items = node if isinstance(node, list) else node["items"] if kind_of(node) == "tuple" else None
    if items is None:
        return None
    places = [_place(None, item, parameter, look, packages) for item in items]
    return places if isinstance(node, list) else tuple(places)


def _fits_placements(shape: tuple[int, ...], parameter: DTensor) -> bool:
    """Tells whether state with this shape, such as one value per row, can be sharded in the same way as its parameter."""
    from torch.distributed.tensor import Replicate, Shard

    dims = [placement.dim for placement in parameter.placements if isinstance(placement, Shard)]
    is_plain = all(isinstance(placement, (Shard, Replicate)) for placement in parameter.placements)
    return is_plain and all(dim < len(shape) and shape[dim] == parameter.shape[dim] for dim in dims)


def lacks_all_state(state: Any, node: Node) -> bool:
    """Tells whether a live state_dict() comes from an optimizer before its first step, although the checkpoint has state for it."""
    groups = _groups_of(state)
    if groups is None or state["state"]:
        return False
    stored = entries_of((entries_of(node) or {}).get("state")) or {}
    return any(number in stored or str(number) in stored for group in groups for number in group["params"])


def way_out_of_other_form(state: Any, node: Node) -> str | None:
    """Returns advice if state and checkpoint use different forms of names for optimizer state.

    In this case the checkpoint has none of the live names.
    """
    live, stored = _form_of(state), _form_of(entries_of(node) or {})
    return None if live is None or stored is None or live == stored else _WAYS_OUT[stored]


def _form_of(state: Mapping[Any, Any]) -> str | None:
    """Returns the form of names in a state dict, or in the entries of its node."""
    if _PARTS <= state.keys():
        groups = state["param_groups"]
        entries = [entries_of(group) or {} for group in groups] if isinstance(groups, list) else []
        names = [name for group in entries if isinstance(group.get("params"), list) for name in group["params"]]
        return None if not names else "names" if isinstance(names[0], str) else "numbers"
    is_flat = any(isinstance(key, str) and key.startswith("param_groups.") for key in state)
    return "flat" if is_flat else None


def without_state(names: Collection[str], unmatched: Collection[str]) -> list[str]:
    """Returns the paths of stored optimizers that have parameter groups on some rank, but no live state on any rank.

    Args:
        names: Stored names.
        unmatched: Stored names that are in no rank's state.
    """
    lost = {match[1] for name in unmatched if (match := _OF_STATE.match(name))}
    matched = set(names).difference(unmatched) if lost else set()
    return [path for path in sorted(lost) if any(name.startswith(f"{path}param_groups") for name in matched)
            and not any(name.startswith(f"{path}state.") for name in matched)]  # fmt: skip


def group_sizes_that_differ(state: Any, node: Node) -> Iterator[tuple[int, int, int]]:
    """Yields (group number, number of live parameters, number of stored parameters) for each difference.

    torch itself would notice the difference only after the bytes were read.
    """
    groups = _groups_of(state)
    stored = (entries_of(node) or {}).get("param_groups")
    if groups is None or not isinstance(stored, list):
        return
    for i, (live, stored_group) in enumerate(zip(groups, stored, strict=False)):
        params = (entries_of(stored_group) or {}).get("params")
        if isinstance(params, list) and len(params) != len(live["params"]):
            yield i, len(live["params"]), len(params)


def changed_hyper_parameters(optimizer: Any, node: Node) -> Iterator[tuple[int, str, str]]:
    """Yields (group number, hyper-parameter, live and stored value) for each live value that the load changes.

    If a scheduler changes a value in each step, the initial value is compared instead.
    """
    groups = _parameters.groups_of(optimizer) or []
    for i, (live, entries) in enumerate(zip(groups, _parameters.stored_groups(entries_of(node) or {}), strict=False)):
        skipped = {"params", "param_names", *(item for name, moved in _SCHEDULED.items() if name in entries for item in moved)}
        for key, entry in entries.items():
            if key not in live or key in skipped or kind_of(entry) == "tensor" or isinstance(live[key], torch.Tensor):
                continue
            value = _tree.Decoder(str).decode(entry)
            if value != live[key] and type(value) in (bool, int, float, str, tuple, type(None)):
                yield i, str(key), f"it was {live[key]!r}, and is {value!r} now, as stored"


class Copies:
    """State dicts that the caller passed instead of the optimizers.

    The optimizer does not notice changes to the groups in its state dict.
    """

    def __init__(self) -> None:
        self._found: list[tuple[str, Any, list[dict[Any, str]]]] = []  # (path, state dict, values of its groups)

    def note(self, path: str, state: Any) -> None:
        """Records a state dict before the load. Skips state dicts with parameter names, because get_state_dict made them."""
        groups = _groups_of(state)
        if groups is not None and all(type(number) is int for group in groups for number in group["params"]):
            self._found.append((path, state, _values_of(groups)))

    def changed(self) -> list[str]:
        """Returns the paths of state dicts with changed hyper-parameters."""
        return [path for path, state, before in self._found if _values_of(_groups_of(state) or []) != before]


def _values_of(groups: list[Any]) -> list[dict[Any, str]]:
    """Returns the non-tensor values of the groups.

    Tensors need no comparison: they are loaded in place, so the optimizer receives them.
    """
    return [{key: repr(value) for key, value in group.items() if not isinstance(value, torch.Tensor)} for group in groups]
