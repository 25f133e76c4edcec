# SPDX-License-Identifier: Apache-2.0
"""Sharded state dicts of Megatron-core as weights to publish."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from sealpoint.megatron import _mcore
from sealpoint.megatron._save import ShardedState
from sealpoint.torch._aliases import FirstNames
from sealpoint.torch._options import SaveOptions


def is_sharded(state: Any) -> bool:
    """Tells whether a state is a sharded state dict. After ``sharded_part``, it has no factories and no values of other kinds."""
    return isinstance(state, Mapping) and any(
        isinstance(value, _mcore.mapping.ShardedBase) for value in _mcore.dict_utils.nested_values(state)
    )


def sharded_part(state: Any) -> Any:
    """Returns the tensors and objects as Megatron saves them. Local. Megatron's factories are replaced in the state, too."""
    return import_module("megatron.core.dist_checkpointing.state_dict_utils").save_preprocess(state, False)[0]


def gathered(state: Any, rank: int, size: int, options: SaveOptions, names: FirstNames) -> ShardedState:
    """Returns the part of a rank of the result of ``sharded_part``."""
    return ShardedState(state, rank, size, options, names)
