# SPDX-License-Identifier: Apache-2.0
"""torchtitan 0.3 trains its smallest Llama, saves in the background, and goes on on another mesh.

  torchrun --nproc-per-node 4 examples/python/torchtitan_run.py RUN --steps 40
  torchrun --nproc-per-node 4 examples/python/torchtitan_run.py RUN --steps 60 --tp 2

in a folder with torchtitan's tests/assets. --die-at 30 kills the last rank in that step.
"""

import argparse
import os
import pathlib
import signal

import torch.distributed as dist
from sealpoint.torchtitan import SealpointCheckpointManager
from torchtitan.models.llama3.config_registry import llama3_debugmodel
from torchtitan.tools.logging import init_logger


def configured(options):
    config = llama3_debugmodel()
    config.dump_folder = str(options.run)
    config.training.steps = options.steps
    config.training.local_batch_size, config.training.seq_len = 2, 64
    config.parallelism.tensor_parallel_degree = options.tp
    config.parallelism.data_parallel_replicate_degree = options.replicas
    config.parallelism.spmd_backend = "full_dtensor"
    config.validator.enable = False
    config.debug.seed = 1
    config.checkpoint = SealpointCheckpointManager.Config(
        enable=True, interval=options.every, keep_latest_k=3, async_mode="async", last_save_model_only=False,
        # Its state is that of a number of data-parallel ranks. With the same number of them leave this out.
        exclude_from_loading=["dataloader"],
    )
    return config


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=pathlib.Path, help="directory; the checkpoints are in its folder checkpoint")
    parser.add_argument("--tp", type=int, default=1, help="tensor-parallel ranks")
    parser.add_argument("--replicas", type=int, default=1, help="of the sharded model: HSDP")
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--every", type=int, default=10, help="steps between checkpoints")
    parser.add_argument("--die-at", type=int)
    options = parser.parse_args()
    init_logger()
    trainer = configured(options).build()
    train_step = trainer.train_step

    def step(*arguments):
        if trainer.step == options.die_at and dist.get_rank() == dist.get_world_size() - 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return train_step(*arguments)

    trainer.train_step = step
    try:
        trainer.train()
    finally:
        trainer.close()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
