# SPDX-License-Identifier: Apache-2.0
"""Megatron-Bridge without what it trains: its own module of checkpoints, with stand-ins for models, data sets and settings.

To be imported behind mcore_shim.install(). Megatron-Bridge requires packages of gigabytes, and Python 3.12.
"""

import importlib.machinery
import importlib.util
import json
import pathlib
import sys
import types
import typing

import framework_stubs
import megatron
import typing_extensions

_REAL = "megatron.training.config.instantiate_utils"  # the classes that settings may name
_STANDS_IN = (
    "megatron.bridge.data", "megatron.bridge.models", "megatron.bridge.training.config", "megatron.bridge.training.tokenizers",
    "megatron.training", "torch.utils.tensorboard",
)


class _Finder:
    def find_spec(self, name, path=None, target=None):
        if name == _REAL:
            found = [folder / "training/config/instantiate_utils.py" for folder in map(pathlib.Path, megatron.__path__)]
            return importlib.util.spec_from_file_location(name, next(file for file in found if file.exists()))
        if any(name == one or name.startswith(f"{one}.") for one in _STANDS_IN):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        return framework_stubs.Nothing(spec.name)

    def exec_module(self, module):
        pass


class Settings(types.SimpleNamespace):
    """Stands in for ConfigContainer and its parts: what a test does not set is None."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return None

    def to_yaml(self, path):
        pathlib.Path(path).write_text(json.dumps({"model": vars(self.model), "checkpoint": vars(self.checkpoint)}))


def install():
    """Imports Bridge's module of checkpoints, and returns it."""
    typing.override = typing_extensions.override
    framework_stubs.install("modelopt", "transformers", "omegaconf", "wandb", "nvidia_resiliency_ext")
    yaml = sys.modules["yaml"] = types.ModuleType("yaml")  # of the settings that Settings.to_yaml writes
    yaml.safe_load = lambda text: json.loads(text if isinstance(text, str) else text.read())
    folders = [folder for folder in map(pathlib.Path, megatron.__path__) if (folder / "bridge").is_dir()]
    for name in ("bridge", "bridge.training", "bridge.peft"):  # these packages import all models
        module = types.ModuleType(f"megatron.{name}")
        module.__path__ = [str(folders[0] / name.replace(".", "/"))]
        sys.modules[module.__name__] = module
    sys.meta_path.insert(0, _Finder())
    found = importlib.import_module("megatron.bridge.training.checkpointing")
    files = sys.modules["megatron.bridge.training.utils.checkpoint_utils"]
    files.apply_run_config_backward_compat = lambda config: config  # that of Megatron's training is a stand-in
    return found
