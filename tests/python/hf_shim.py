# SPDX-License-Identifier: Apache-2.0
"""Hugging Face's libraries in ranks that were forked, on a machine without a GPU and without a network.

To be imported before them. accelerate has FSDP on accelerators alone; here it has it on CPUs, too.
"""

import contextlib
import os
import warnings

os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="error", TOKENIZERS_PARALLELISM="false")
warnings.filterwarnings("ignore", message=".*(shard_weight_decay|lr_scheduler.step|weights_only|sharding_strategy).*")


@contextlib.contextmanager
def ranks_of(rank, size):
    """As torchrun says it; what accelerate keeps of the process is forgotten before and behind it."""
    from accelerate.state import AcceleratorState, GradientState, PartialState

    def forget():
        AcceleratorState._reset_state(True)
        GradientState._reset_state()
        PartialState._reset_state()

    of_a_job = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": size, "LOCAL_WORLD_SIZE": size, "MASTER_ADDR": "localhost",
                "MASTER_PORT": "29500"}
    names = [*of_a_job, "ACCELERATE_USE_FSDP", "ACCELERATE_USE_CPU"]
    before = {name: os.environ.get(name) for name in names}
    os.environ.update({name: str(value) for name, value in of_a_job.items()} if size > 1 else {})
    if size == 1:
        for name in of_a_job:
            os.environ.pop(name, None)
    forget()
    try:
        yield
    finally:
        forget()
        for name, value in before.items():
            os.environ.pop(name, None) if value is None else os.environ.update({name: value})


def have_fsdp_on_cpus():
    """What AcceleratorState does for GPUs when it is given a plugin."""
    from accelerate import state
    from accelerate.utils import DistributedType

    own = state.AcceleratorState.__init__

    def __init__(self, *args, fsdp_plugin=None, **kwargs):
        is_first = not self.initialized
        own(self, *args, fsdp_plugin=fsdp_plugin, **kwargs)
        if is_first and fsdp_plugin is not None and self.distributed_type == DistributedType.MULTI_CPU:
            self.distributed_type = DistributedType.FSDP
            self.fsdp_plugin = fsdp_plugin

    state.AcceleratorState.__init__ = __init__
