# SPDX-License-Identifier: Apache-2.0
"""Optimizer state across a change of expert parallelism.

With expert parallelism Megatron has a separate optimizer for expert parameters, otherwise one for all. Per-parameter state is
stored by parameter and is the same in both cases. This module converts the parameter groups (learning rate, step, ...), which
are identified by their settings and by whether they are of experts.
"""

from __future__ import annotations

from typing import Any

from sealpoint._errors import MismatchError
from sealpoint.megatron import _mcore
from sealpoint.megatron._optimizer import OF_STATE, is_in_runs

_IS_EXPERT = "is_expert_parallel"


def _stored(state: Any) -> list[Any]:
    """Returns the stored optimizer states without per-parameter state."""
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
    found = [one for one in groups if _key(one) == _key(live)]
    if not found:
        settings = {key: live.get(key) for key in _mcore.group_keys()}
        raise _differs(count, stored, f"no parameter group of the checkpoint is that of {settings}")
    # Separate groups of experts and of others are loaded into one optimizer: the others come first.
    return {**found[0], _IS_EXPERT: live.get(_IS_EXPERT)}


def _regrouped(optimizer: Any, parameters: Any, count: int, stored: list[Any]) -> Any:
    """Returns the state of one optimizer of this job."""
    groups = [group for one in stored for group in one["optimizer"]["param_groups"]]
    live_groups = optimizer.state_dict()["optimizer"]["param_groups"]
    rest = {key: value for key, value in stored[0].items() if type(key) is not int}
    inner = {**stored[0]["optimizer"], "param_groups": [_group(one, groups, count, stored) for one in live_groups]}
    return {**rest, "optimizer": inner, "param_state": parameters, OF_STATE: stored[0].get(OF_STATE)}


def patch(chained_class: Any) -> dict[str, Any]:
    """Returns the replacement members of the class, which delegate to its current ones."""
    load_native = chained_class.load_state_dict

    def load_state_dict(self: Any, state_dict: Any) -> None:
        optimizers = self.chained_optimizers
        count = len(optimizers)
        if not isinstance(state_dict, dict) or len(stored := _stored(state_dict)) == count:
            return load_native(self, state_dict)  # type: ignore[no-any-return]
        states = [state_dict] if count == 1 else [state_dict.get(number, {}) for number in range(count)]
        parameters = [one.get("param_state") for one in states]
        if not stored or not all(map(is_in_runs, parameters)):
            raise _differs(count, stored, "expected the same one: states in a form of Megatron's own belong to it (convert "
                           "the checkpoint first, or leave the optimizer out by --no-load-optim)")
        found = [_regrouped(one, parameter, count, stored) for one, parameter in zip(optimizers, parameters, strict=True)]
        return load_native(self, found[0] if count == 1 else dict(enumerate(found)))  # type: ignore[no-any-return]

    return {"load_state_dict": load_state_dict}
