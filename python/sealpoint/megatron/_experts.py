# SPDX-License-Identifier: Apache-2.0
"""Optimizer state across a change of expert parallelism.

If a job uses expert parallelism, Megatron creates a separate optimizer for expert parameters; if not, one optimizer has all
parameters. Per-parameter state is stored in the same way in both cases. The parameter groups (learning rate, step, ...) are stored
differently, so this module converts them. It identifies a group by its settings, regardless of whether the group contains expert
parameters.
"""

from __future__ import annotations

from typing import Any

from sealpoint._errors import MismatchError
from sealpoint.megatron import _mcore
from sealpoint.megatron._optimizer import OF_STATE, is_in_runs

_IS_EXPERT = "is_expert_parallel"


def _stored(state: Any) -> list[Any]:
    """Returns the common state (parameter groups and settings) of each stored optimizer."""
    if "optimizer" in state:
        return [state]
    return [state[key] for key in sorted(key for key in state if type(key) is int) if "optimizer" in state[key]]


def _differs(count: int, stored: list[Any], more: str) -> MismatchError:
    return MismatchError(
        f"the checkpoint has the state of {len(stored)} optimizer{'s' * (len(stored) != 1)}, this job has {count}: expert "
        "parallelism (--expert-model-parallel-size) is 1 in one of them, and greater in the other; " + more,
        object="optimizer",
    )


def _key(group: Any) -> tuple[Any, ...]:
    return tuple(
        group.get(key, group.get(f"pre_{key}")) for key in _mcore.group_keys() if key != _IS_EXPERT
    )


def _group(live: Any, groups: list[Any], count: int, stored: list[Any]) -> Any:
    found = [group for group in groups if _key(group) == _key(live)]
    if not found:
        settings = {key: live.get(key) for key in _mcore.group_keys()}
        raise _differs(count, stored, f"no parameter group of the checkpoint is that of {settings}")
    # If separate groups for experts and for other parameters match, the first match is the group for other parameters.
    return {**found[0], _IS_EXPERT: live.get(_IS_EXPERT)}


def _regrouped(optimizer: Any, parameters: Any, count: int, stored: list[Any]) -> Any:
    """Builds the common state of one optimizer of this job from the stored parameter groups."""
    groups = [group for item in stored for group in item["optimizer"]["param_groups"]]
    live_groups = optimizer.state_dict()["optimizer"]["param_groups"]
    rest = {key: value for key, value in stored[0].items() if type(key) is not int}
    inner = {**stored[0]["optimizer"], "param_groups": [_group(group, groups, count, stored) for group in live_groups]}
    return {**rest, "optimizer": inner, "param_state": parameters, OF_STATE: stored[0].get(OF_STATE)}


def patch(chained_class: Any) -> dict[str, Any]:
    """Returns replacements for members of the class. The replacements call the current members."""
    load_native = chained_class.load_state_dict

    def load_state_dict(self: Any, state_dict: Any) -> None:
        optimizers = self.chained_optimizers
        count = len(optimizers)
        if not isinstance(state_dict, dict) or len(stored := _stored(state_dict)) == count:
            return load_native(self, state_dict)  # type: ignore[no-any-return]
        states = [state_dict] if count == 1 else [state_dict.get(number, {}) for number in range(count)]
        parameters = [state.get("param_state") for state in states]
        if not stored or not all(map(is_in_runs, parameters)):
            raise _differs(count, stored, "expected equal values, because Megatron's own state formats depend on it (convert the "
                                          "checkpoint first, or pass --no-load-optim)")
        pairs = zip(optimizers, parameters, strict=True)
        found = [_regrouped(optimizer, parameter, count, stored) for optimizer, parameter in pairs]
        return load_native(self, found[0] if count == 1 else dict(enumerate(found)))  # type: ignore[no-any-return]

    return {"load_state_dict": load_state_dict}
