# SPDX-License-Identifier: Apache-2.0
"""Megatron-Bridge's own saves and loads through the manager, on four ranks; run by test_megatron_bridge.py.

Its checkpointing module runs as it is; its settings, and what it imports besides Megatron-core, are stand-ins (bridge_shim.py).
"""

import os
import pathlib
import re
import types

import mcore_shim

mcore_shim.install()

import bridge_shim  # noqa: E402
import docstring_examples  # noqa: E402
import pytest  # noqa: E402
import sealpoint  # noqa: E402
import torch  # noqa: E402
from mcore_training import Training  # noqa: E402
from megatron.core.dist_checkpointing.strategies.async_utils import AsyncCallsQueue  # noqa: E402
from megatron.core.num_microbatches_calculator import init_num_microbatches_calculator  # noqa: E402

mcore_shim.fork_helpers()
torch.cuda.get_rng_state = torch.get_rng_state
checkpointing = bridge_shim.install()

import sealpoint.megatron.bridge  # noqa: E402
from megatron.bridge.training.state import FaultToleranceState, TrainState  # noqa: E402

init_num_microbatches_calculator(0, None, 8, 1, 1)
_PAGE = pathlib.Path(os.environ["SEALPOINT_SOURCE_DIR"], "docs/guides/megatron.md").read_text()
(MANAGER,) = re.findall(r"^checkpoint:\n  custom_manager_class: (\S+)$", _PAGE, re.M)
Settings = bridge_shim.Settings


class Compressed(sealpoint.megatron.bridge.SealpointCheckpointManager):
    options = {"codec": "zstd"}  # noqa: RUF012


def settings(folder, tp=2, pp=1, **more):
    checkpoint = Settings(**{
        "custom_manager_class": MANAGER, "ckpt_format": "torch_dist", "save": str(folder), "load": str(folder), "save_optim": True,
        "load_optim": True, "save_rng": True, "load_rng": False, "fully_parallel_save": True, "fully_parallel_load": True,
        "async_save": False, "async_strategy": "mcore", "most_recent_k": -1, "dist_ckpt_strictness": "assume_ok_unexpected",
        "finetune": False, **more,
    })
    model = Settings(tensor_model_parallel_size=tp, pipeline_model_parallel_size=pp, bf16=True)
    return Settings(checkpoint=checkpoint, model=model, rng=Settings(), optimizer=Settings(use_distributed_optimizer=True),
                    logger=Settings(), ddp=Settings(use_megatron_fsdp=False), dataset=Settings())


def global_state(config, step=0):
    return types.SimpleNamespace(
        cfg=config, train_state=TrainState(step=step), async_calls_queue=AsyncCallsQueue(), rank_monitor_client=None,
        fault_tolerance_state=FaultToleranceState(), wandb_logger=None, comet_logger=None, mlflow_logger=None)


def saving(config, training, step):
    return checkpointing.CheckpointSaveContext(global_state(config, step), [training.wrapped], training.optimizer, None, 12)


def loading(config, training):
    return checkpointing.CheckpointLoadContext(global_state(config), [training.wrapped], training.optimizer, None)


def assert_same(first, second):
    assert first.keys() == second.keys()
    assert all(torch.equal(first[key], second[key]) for key in first), [k for k in first if not torch.equal(first[k], second[k])]


def case_a_run_resumes_on_any_mesh(job):
    config = settings(job.path("run"))
    manager = checkpointing.create_checkpoint_manager(config.checkpoint)
    assert type(manager) is sealpoint.megatron.bridge.SealpointCheckpointManager
    training = Training(2, 1)
    assert manager.load(loading(config, training)) == (0, 0), "there is none"
    training.step(1)
    manager.save(saving(config, training, 3), None)
    path = job.path("run") / "iter_0000003"
    assert sealpoint.verify(path).ok and (path / "train_state.pt").exists()
    whole = training.whole()
    for tp, pp in ((2, 1), (4, 1), (1, 1)):
        other = Training(tp, pp, seed=9)
        config = settings(job.path("run"), tp, pp)
        manager = checkpointing.create_checkpoint_manager(config.checkpoint)
        assert manager.load(loading(config, other)) == (3, 12.0)
        assert_same(whole, other.whole())
        assert job.all_agree(other.step(5)) if tp == 4 else True


def case_background_saves_are_recorded_once_durable(job):
    config = settings(job.path("run"), async_save=True)
    manager = checkpointing.create_checkpoint_manager(config.checkpoint)
    training = Training(2, 1)
    training.step(1)
    whole = training.whole()
    context = saving(config, training, 4)
    manager.save(context, None)
    training.step(2)
    assert not (job.path("run") / "latest_train_state.pt").exists()
    manager.finalize_async_saves(context.state, blocking=True, terminate=True)
    assert (job.path("run") / "latest_train_state.pt").exists() and sealpoint.verify(job.path("run") / "iter_0000004").ok
    other = Training(2, 1, seed=9)
    assert manager.load(loading(config, other))[0] == 4
    assert_same(whole, other.whole())


def case_a_failed_background_save_is_not_recorded(job):
    config = settings(job.path("run"), async_save=True)
    manager = checkpointing.create_checkpoint_manager(config.checkpoint)
    training = Training(2, 1)
    context = saving(config, training, 4)
    path = job.path("run") / "iter_0000004"
    if job.rank == 0:
        path.mkdir(parents=True)
        (path / "COMMIT").mkdir()  # no marker can be published
    torch.distributed.barrier()
    with pytest.raises(sealpoint.Error):
        manager.save(context, None)
        manager.finalize_async_saves(context.state, blocking=True, terminate=True)
    torch.distributed.barrier()
    assert not (job.path("run") / "latest_train_state.pt").exists()


def case_options_of_a_subclass(job):
    config = settings(job.path("run"), custom_manager_class=f"{__name__}.Compressed")
    with pytest.raises(Exception, match="allow"):  # Bridge's own rule
        checkpointing.create_checkpoint_manager(config.checkpoint)
    checkpointing_manager = Compressed(config.checkpoint)
    training = Training(2, 1)
    checkpointing_manager.save(saving(config, training, 1), None)
    assert sealpoint.megatron.status().options.codec == "zstd"
    sealpoint.megatron.enable()


def case_what_bridge_would_write_elsewhere_is_refused(job):
    for more in ({"ckpt_format": "fsdp_dtensor"}, {"save": "s3://bucket/run"}):
        with pytest.raises(sealpoint.UnsupportedError, match="checkpoint."):
            checkpointing.create_checkpoint_manager(settings(job.path("run"), **more).checkpoint)
    config = settings(job.path("run"))
    manager = checkpointing.create_checkpoint_manager(config.checkpoint)
    config.checkpoint.ckpt_format = "fsdp_dtensor"  # Bridge reads its settings anew
    with pytest.raises(sealpoint.UnsupportedError, match="fsdp_dtensor"):
        manager.save(saving(config, Training(2, 1), 1), None)
    assert not pathlib.Path(job.path("run")).exists() or not os.listdir(job.path("run"))


def alone_docstrings(place):
    docstring_examples.run(sealpoint.megatron.bridge, place)
