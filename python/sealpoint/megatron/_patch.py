# SPDX-License-Identifier: Apache-2.0
"""Replaces members of Megatron-core, and restores them."""

from __future__ import annotations

import contextlib
import enum
import importlib
from collections.abc import Callable
from typing import Any

import torch.distributed as dist

from sealpoint import _paths, _url_files
from sealpoint._errors import InvalidArgumentError, UnsupportedError
from sealpoint._native import BACKEND
from sealpoint._tree import register_enum
from sealpoint.megatron import _experts, _load, _mcore, _optimizer, _save
from sealpoint.megatron._newest import VERSION, write_config
from sealpoint.megatron._options import Options
from sealpoint.megatron._tensors import RunTensor

_ENUMS = ("megatron.core.transformer.enums", "megatron.core.enums")
_Save = Callable[[Any, Any], None]
_undo: list[Callable[[], None]] = []
_patched: list[tuple[Any, str, Any]] = []  # (owner, name, replacement)
_chosen: list[Options] = []
# The common state of rank 0, by directory. Megatron versions with a registry pass the common state before the sharded state.
_common: dict[str, Any] = {}


def _set(owner: Any, name: str, value: Any) -> Any:
    """Replaces a member of ``owner`` and returns the previous member."""
    is_own = name in vars(owner)
    before = getattr(owner, name, None)  # None: the name is a builtin function
    _undo.append(lambda: setattr(owner, name, before) if is_own else delattr(owner, name))
    setattr(owner, name, value)
    _patched.append((owner, name, value))
    return before


def _with_common(state: Any, directory: Any) -> Any:
    """Returns the state with the common state added. Some Megatron versions pass the two separately."""
    if (common := _common.pop(_save.path_of(directory), None)) is None:
        return state
    return {**state, _save.COMMON_KEY: _mcore.mapping.ShardedObject(_save.COMMON_KEY, common, (1,), (0,))}


def _request_class(strategy: str) -> Any:
    if strategy != "mcore" and hasattr(_mcore.torch_dist, "get_async_strategy"):
        with contextlib.suppress(ModuleNotFoundError):  # without NVRx, no queue of NVRx exists
            return _mcore.torch_dist.get_async_strategy(strategy)[1]["AsyncRequest"]
    return _mcore.async_utils.AsyncRequest


def _patch_saving(options: Options) -> None:
    def save(self: Any, sharded_state_dict: Any, checkpoint_dir: Any) -> None:
        _save.save(_with_common(sharded_state_dict, checkpoint_dir), checkpoint_dir, options)

    def async_save(self: Any, sharded_state_dict: Any, checkpoint_dir: Any, async_strategy: str = "mcore") -> Any:
        state = _with_common(sharded_state_dict, checkpoint_dir)
        future = _save.save_async(state, checkpoint_dir, options)
        return _save.request_of(future, checkpoint_dir, options, _request_class(async_strategy))

    _set(_mcore.torch_dist.TorchDistSaveShardedStrategy, "save", save)
    _set(_mcore.torch_dist.TorchDistSaveShardedStrategy, "async_save", async_save)
    save_common = _mcore.common.TorchCommonSaveStrategy.save_common if _mcore.has_registry else None

    def save_natively(common: Any, checkpoint_dir: Any) -> None:
        assert save_common is not None
        save_common(_mcore.common.TorchCommonSaveStrategy("torch", 1), common, checkpoint_dir)

    _set(_mcore.serialization, "save_config", _save_config(_mcore.serialization.save_config, save_natively))


def _save_config(native: _Save, save_natively: _Save) -> _Save:
    """Returns the replacement of save_config, which Megatron calls on rank 0.

    The replacement writes metadata.json atomically. This file names the backend for loads.
    """

    def save_config(config: Any, checkpoint_dir: Any) -> None:
        if (common := _common.pop(_save.path_of(checkpoint_dir), None)) is not None:
            save_natively(common, checkpoint_dir)  # a different strategy has saved the sharded state
        if not _save.is_ours_or_on_its_way(_save.path_of(checkpoint_dir)):
            return native(config, checkpoint_dir)
        config.sharded_backend, config.sharded_backend_version = BACKEND, VERSION
        write_config(config, _save.path_of(checkpoint_dir))
        return None

    return save_config


def _refuse_runs(state: Any, directory: Any) -> None:
    for sharded in _mcore.dict_utils.nested_values(state):
        if isinstance(sharded, RunTensor):
            raise InvalidArgumentError(
                "this checkpoint of Megatron's own format is loaded with its own metadata; pass the result of "
                "load_content_metadata(directory) to DistributedOptimizer.sharded_state_dict",
                path=_save.path_of(directory),
            )


def _patch_loading(options: Options) -> None:
    strategy = _mcore.torch_dist.TorchDistLoadShardedStrategy

    def load(self: Any, sharded_state_dict: Any, checkpoint_dir: Any, *more: Any) -> Any:
        if _load.are_ours(checkpoint_dir, options):
            return _load.load(sharded_state_dict, checkpoint_dir, options)
        _refuse_runs(sharded_state_dict, checkpoint_dir)
        return load_native(self, sharded_state_dict, checkpoint_dir, *more)

    def load_tensors_metadata(self: Any, checkpoint_dir: Any, metadata: Any = None) -> Any:
        if metadata is None and _load.is_ours(checkpoint_dir):
            return _load.tensors_metadata(checkpoint_dir)
        return tensors_native(self, checkpoint_dir, metadata)

    def load_sharded_metadata(self: Any, checkpoint_dir: Any) -> Any:
        if _load.is_ours(checkpoint_dir):
            return _load.sharded_metadata(checkpoint_dir)
        return sharded_native(self, checkpoint_dir)

    def remove_sharded_tensors(self: Any, checkpoint_dir: Any, key_prefix: str) -> Any:
        if _load.is_ours(checkpoint_dir):
            raise UnsupportedError("a committed checkpoint is never changed", path=_save.path_of(checkpoint_dir))
        return remove_native(self, checkpoint_dir, key_prefix)

    def load_together(self: Any, sharded_state_dict: Any, checkpoint_dir: Any, *more: Any) -> Any:
        if isinstance(self.base_strategy, strategy) and _load.are_ours(checkpoint_dir, options):
            return self.base_strategy.load(sharded_state_dict, checkpoint_dir)  # this load reads each byte only once
        return together_native(self, sharded_state_dict, checkpoint_dir, *more)

    load_native = _set(strategy, "load", load)
    tensors_native = _set(strategy, "load_tensors_metadata", load_tensors_metadata)
    sharded_native = _set(strategy, "load_sharded_metadata", load_sharded_metadata)
    remove_native = _set(strategy, "remove_sharded_tensors", remove_sharded_tensors)
    together_native = _set(_mcore.fully_parallel.FullyParallelLoadStrategyWrapper, "load", load_together)


def _patch_common(options: Options) -> None:
    def load_ours(checkpoint_dir: Any) -> Any:
        _save.finish_staged(_paths.split(_save.path_of(checkpoint_dir))[0], options)
        return _load.common_state(checkpoint_dir, options) if _load.is_ours(checkpoint_dir) else None

    if not _mcore.has_registry:

        def load_common_state_dict(checkpoint_dir: Any) -> Any:
            _mcore.serialization.verify_checkpoint(_save.path_of(checkpoint_dir))
            found = load_ours(checkpoint_dir)
            return _optimizer.mark(load_native(checkpoint_dir) if found is None else found, _load.is_ours(checkpoint_dir))

        load_native = _set(_mcore.serialization, "load_common_state_dict", load_common_state_dict)
        _set(_mcore.dist_checkpointing, "load_common_state_dict", load_common_state_dict)
        return

    def save_common(self: Any, common_state_dict: Any, checkpoint_dir: Any) -> None:
        if dist.get_rank() == 0:
            _common[_save.path_of(checkpoint_dir)] = common_state_dict

    def load_common(self: Any, checkpoint_dir: Any) -> Any:
        found = load_ours(checkpoint_dir)
        common = common_native(self, checkpoint_dir) if found is None else found
        return _optimizer.mark(common, _load.is_ours(checkpoint_dir))

    _set(_mcore.common.TorchCommonSaveStrategy, "save_common", save_common)
    common_native = _set(_mcore.common.TorchCommonLoadStrategy, "load_common", load_common)


def _patch_files() -> None:
    """Replaces the file system functions that Megatron uses for its checkpoint directories, so that the directories may be URLs."""
    _set(_mcore.serialization, "Path", _url_files.path_class(_mcore.serialization.Path))
    if _mcore.has_registry:
        for module in (_mcore.core, _mcore.validation):
            _set(module, "os", _url_files.Os())
        _set(_mcore.core, "open", _url_files.opener())
        return
    kind = type(_mcore.msc_utils.maybe_msc)
    make = {"open": _url_files.opener, "os": _url_files.Os, "Path": _url_files.path_class}

    def find(self: Any, name: str) -> Any:
        native = find_native(self, name)
        return make[name](native) if name in make else native

    def path_isdir(self: Any, path: Any, strict: bool = True) -> Any:
        return _url_files.is_folder(path) if _url_files.is_url(path) else isdir_native(self, path, strict)

    find_native = _set(kind, "__getattr__", find)
    isdir_native = _set(kind, "path_isdir", path_isdir)


def _register() -> None:
    """Registers the name of the backend, for Megatron versions that look up strategies by name."""
    base: Any = importlib.import_module("megatron.core.dist_checkpointing.strategies.base")
    for action, make in (
        (base.StrategyAction.LOAD_SHARDED, _mcore.torch_dist.TorchDistLoadShardedStrategy),
        (base.StrategyAction.SAVE_SHARDED, lambda: _mcore.torch_dist.TorchDistSaveShardedStrategy(BACKEND, VERSION)),
    ):
        base.register_default_strategy(action, BACKEND, VERSION, make())


def enable(options: Options) -> None:
    """Implements ``sealpoint.megatron.enable``."""
    disable()
    _chosen.append(options)
    for module in _ENUMS:
        for value in vars(importlib.import_module(module)).values():
            if isinstance(value, type) and issubclass(value, enum.Enum) and value.__module__ == module:
                register_enum(value)
    _patch_files()
    _patch_saving(options)
    _patch_loading(options)
    _patch_common(options)
    if _mcore.has_registry:
        _register()
    if options.optimizer_regions:
        for owner, patch in ((_mcore.optimizer_class(), _optimizer.patch), (_mcore.chained_class(), _experts.patch)):
            for name, value in patch(owner).items():
                _set(owner, name, value)


def disable() -> None:
    """Restores Megatron's own saves and loads in this process. Raises nothing.

    Does nothing if ``enable`` was not called.

    Collective: all ranks call it, like ``enable``.

    Examples:
        >>> import sealpoint.megatron
        >>> sealpoint.megatron.enable()
        >>> sealpoint.megatron.disable()
        >>> sealpoint.megatron.status().is_enabled
        False
    """
    while _undo:
        _undo.pop()()
    _patched.clear()
    _chosen.clear()
    _common.clear()


def chosen() -> Options | None:
    """Returns the options of ``enable``, or None if it was not called."""
    return _chosen[0] if _chosen else None


def patched() -> dict[str, bool]:
    """Returns, for each replaced member, whether the replacement is still in place."""
    return {
        f"{getattr(owner, '__module__', owner.__name__)}.{getattr(owner, '__qualname__', '')}.{name}".replace("..", "."):
            getattr(owner, name) is value
        for owner, name, value in _patched
    }
