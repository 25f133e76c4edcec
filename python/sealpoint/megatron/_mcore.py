# SPDX-License-Identifier: Apache-2.0
"""Megatron-core, whichever version is there. It has no types, so everything is Any."""

from __future__ import annotations

from importlib import import_module
from typing import Any

try:
    _core: Any = import_module("megatron.core")
except ImportError as error:
    raise ImportError(f"sealpoint.megatron needs megatron-core, which cannot be imported: {error}") from error

version: str = _core.__version__
_PACKAGE = "megatron.core.dist_checkpointing"
dist_checkpointing: Any = import_module(_PACKAGE)
core: Any = import_module(f"{_PACKAGE}.core")
validation: Any = import_module(f"{_PACKAGE}.validation")
msc_utils: Any = import_module("megatron.core.msc_utils")
mapping: Any = import_module(f"{_PACKAGE}.mapping")
dict_utils: Any = import_module(f"{_PACKAGE}.dict_utils")
serialization: Any = import_module(f"{_PACKAGE}.serialization")
utils: Any = import_module(f"{_PACKAGE}.utils")
common: Any = import_module(f"{_PACKAGE}.strategies.common")
torch_dist: Any = import_module(f"{_PACKAGE}.strategies.torch")
fully_parallel: Any = import_module(f"{_PACKAGE}.strategies.fully_parallel")
async_utils: Any = import_module(f"{_PACKAGE}.strategies.async_utils")
# Until 0.17 strategies are looked up in a registry, and the common state has one of its own.
has_registry: bool = hasattr(serialization, "get_default_strategy")


def optimizer_class() -> Any:
    """The distributed optimizer. Imported when it is needed, as it imports most of Megatron."""
    return import_module("megatron.core.optimizer.distrib_optimizer").DistributedOptimizer


def chained_class() -> Any:
    """What holds one optimizer per kind of parameters: those of experts are apart if there is expert parallelism."""
    return import_module("megatron.core.optimizer.optimizer").ChainedOptimizer


def group_keys() -> tuple[str, ...]:
    """By these members Megatron knows the parameter groups of an optimizer."""
    return tuple(import_module("megatron.core.optimizer.optimizer").param_group_identifier_keys)
