# SPDX-License-Identifier: Apache-2.0
"""Imports from any supported version of Megatron-core. Megatron-core has no type annotations, so the types here are Any."""

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
# Versions before 0.17 look up strategies in a registry, and use a separate strategy for the common state.
has_registry: bool = hasattr(serialization, "get_default_strategy")


def optimizer_class() -> Any:
    """Returns the class of the distributed optimizer. The class is imported lazily, because its module imports most of Megatron."""
    return import_module("megatron.core.optimizer.distrib_optimizer").DistributedOptimizer


def chained_class() -> Any:
    """Returns the class of chained optimizers, which contain a separate optimizer for each kind of parameters, such as experts."""
    return import_module("megatron.core.optimizer.optimizer").ChainedOptimizer


def group_keys() -> tuple[str, ...]:
    """Returns the members by which Megatron identifies optimizer parameter groups."""
    return tuple(import_module("megatron.core.optimizer.optimizer").param_group_identifier_keys)
