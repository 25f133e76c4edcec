# SPDX-License-Identifier: Apache-2.0
"""Stand-ins for the interfaces by which engines take weights; neither vLLM nor verl is installed here.

They have the names and signatures of these files, and do what these do as far as the adapters see it:
- vLLM 0.32.0: vllm/distributed/weight_transfer/base.py and factory.py, vllm/model_executor/model_loader/reload/layerwise.py; and
  v1/worker/gpu_worker.py, which calls them.
- verl 0.9.1: verl/checkpoint_engine/base.py, of which CheckpointEngineManager calls the engines; verl/utils/device.py.
- SGLang needs none: its release 0.5.23 calls a custom loader with a model and named tensors
  (srt/model_executor/model_runner_components/weight_updater.py), and its repository has srt/weight_sync/local_checkpoint.py, which
  calls the hook with a folder and a version.
"""

import abc
import dataclasses
import sys
import types

import torch


@dataclasses.dataclass
class WeightTransferInitInfo(abc.ABC):  # noqa: B024
    pass


@dataclasses.dataclass
class WeightTransferUpdateInfo(abc.ABC):  # noqa: B024
    pass


class WeightTransferEngine(abc.ABC):
    supports_draft_weight_update = True

    def __init__(self, config, vllm_config, device, model):
        self.config, self.vllm_config, self.device, self.model = config, vllm_config, device, model
        self.model_config = vllm_config.model_config

    def parse_init_info(self, init_dict):
        try:
            return self.init_info_cls(**init_dict)
        except TypeError as error:
            raise ValueError(str(error)) from error

    def update_weights(self, update_info):
        self.receive_weights(self.update_info_cls(**update_info))

    for _name in ("init_transfer_engine", "start_weight_update", "finish_weight_update", "receive_weights", "shutdown"):
        locals()[_name] = abc.abstractmethod(lambda self, *args: None)


class WeightTransferEngineFactory:
    _registry = {}

    @classmethod
    def register_engine(cls, name, module_path_or_cls, class_name=None):
        if name in cls._registry:
            raise ValueError(f"{name!r} is already registered")
        cls._registry[name] = lambda: module_path_or_cls

    @classmethod
    def create_engine(cls, config, vllm_config, device, model):
        return cls._registry[config.backend]()(config, vllm_config, device, model)


def initialize_layerwise_reload(model):
    """Until the reload is finished, the model is not what it was."""
    model.reloads = [*getattr(model, "reloads", []), "begun"]


def finalize_layerwise_reload(model, model_config):
    assert model_config == "model config"
    model.reloads.append("done")


class CheckpointEngine(abc.ABC):
    wire_format = "named_tensors"

    for _name in ("prepare", "build_topology", "init_process_group", "finalize", "send_weights", "receive_weights"):
        locals()[_name] = abc.abstractmethod(lambda self, *args: None)


class CheckpointEngineWithCache(CheckpointEngine):
    @abc.abstractmethod
    async def get_weights(self):
        raise NotImplementedError


class CheckpointEngineRegistry:
    _registry = {}

    def register(backend):
        def wrapper(cls):
            CheckpointEngineRegistry._registry[backend] = cls
            return cls

        return wrapper

    @classmethod
    def new(cls, backend, *args, **kwargs):
        return cls._registry[backend](*args, **kwargs)


def get_device_name():
    return "cpu"


MODULES = {
    "vllm.distributed.weight_transfer.base": (WeightTransferInitInfo, WeightTransferUpdateInfo, WeightTransferEngine),
    "vllm.distributed.weight_transfer.factory": (WeightTransferEngineFactory,),
    "vllm.model_executor.model_loader.reload": (initialize_layerwise_reload, finalize_layerwise_reload),
    "verl.checkpoint_engine.base": (CheckpointEngineWithCache, CheckpointEngineRegistry),
    "verl.utils.device": (get_device_name,),
}


def install():
    for path, items in MODULES.items():
        parts = path.split(".")
        for count in range(1, len(parts) + 1):
            sys.modules.setdefault(".".join(parts[:count]), types.ModuleType(parts[count - 1]))
        for item in items:
            setattr(sys.modules[path], item.__name__, item)


def vllm_worker(model, **init_info):
    """The weight transfer engine of a worker, as vLLM makes it."""
    config = types.SimpleNamespace(backend="sealpoint")
    vllm_config = types.SimpleNamespace(model_config="model config", parallel_config=None)
    engine = WeightTransferEngineFactory.create_engine(config, vllm_config, torch.device("cpu"), model)
    engine.init_transfer_engine(engine.parse_init_info(init_info))
    return engine


async def verl_update(engine, weights, after, step):
    """What a worker does in CheckpointEngineManager.update_weights: a trainer has weights, a rollout worker none."""
    engine.init_process_group(after=after)
    result = await engine.send_weights(weights, global_steps=step) if weights is not None else {
        name: tensor.clone() async for name, tensor in engine.receive_weights(global_steps=step)}  # fmt: skip
    engine.finalize()
    return result
