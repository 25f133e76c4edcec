# SPDX-License-Identifier: Apache-2.0
"""torchtitan 0.3 or 0.2 trains its smallest Llama on CPUs and gloo:  torchrun ... titan_train.py STEPS ASYNC_MODE

Runs in a folder with tests/assets, and prints what torchtitan does.
"""

import importlib.util
import pathlib
import sys

import titan_cpu

steps, async_mode = int(sys.argv[1]), sys.argv[2]
sys.argv[1:] = ["--job.config_file", "debug.toml"]  # 0.2 looks at it when it is imported
titan_cpu.install()


def train_0_3():
    from sealpoint.torchtitan import SealpointCheckpointManager
    from torchtitan.models.llama3 import config_registry
    from torchtitan.train import main

    make = config_registry.llama3_debugmodel

    def configured():
        config = make()
        config.checkpoint = SealpointCheckpointManager.Config(
            enable=True, interval=2, last_save_model_only=False, keep_latest_k=0, async_mode=async_mode)
        return config

    config_registry.llama3_debugmodel = configured
    sys.argv[1:] = ["--module", "llama3", "--config", "llama3_debugmodel", "--training.steps", str(steps),
                    "--training.local_batch_size", "2", "--training.seq_len", "64", "--parallelism.spmd_backend",
                    "full_dtensor", "--dump_folder", "out", "--debug.seed", "1"]
    main()


def train_0_2():
    import runpy

    import sealpoint.torchtitan

    sealpoint.torchtitan.enable()
    pathlib.Path("debug.toml").write_text(f"""
[job]
dump_folder = "out"
[metrics]
log_freq = 1
[model]
name = "llama3"
flavor = "debugmodel"
hf_assets_path = "./tests/assets/tokenizer"
[optimizer]
implementation = "for-loop"
[lr_scheduler]
warmup_steps = 2
[training]
local_batch_size = 2
seq_len = 64
steps = {steps}
dataset = "c4_test"
[checkpoint]
enable = true
interval = 2
keep_latest_k = 0
last_save_model_only = false
async_mode = "{async_mode}"
[debug]
seed = 1
""")
    runpy.run_module("torchtitan.train", run_name="__main__")


if importlib.util.find_spec("torchtitan.trainer") is not None:
    train_0_3()
else:
    train_0_2()
