# SPDX-License-Identifier: Apache-2.0
"""torchtitan on a machine without a GPU: what it asks of an accelerator is answered here. To be imported before it.

As a program it runs another one:  torchrun ... titan_cpu.py PROGRAM ARGUMENTS
"""

import collections
import importlib.util
import runpy
import sys
import types

import framework_stubs
import torch
import torch._utils
import torch.distributed

MEMORY = types.SimpleNamespace(total_memory=1 << 34, name="cpu")


def install():
    framework_stubs.install("triton")
    torch._utils._get_available_device_type = lambda: "cpu"
    torch.set_num_threads(1)
    for name, value in {
        "set_device": None, "memory_stats": collections.defaultdict(int), "reset_peak_memory_stats": None,
        "empty_cache": None, "get_device_name": "cpu", "get_device_properties": MEMORY, "max_memory_reserved": 0,
        "memory_allocated": 0, "mem_get_info": (1 << 34, 1 << 34), "max_memory_allocated": 0, "memory_reserved": 0,
        "manual_seed_all": None, "current_device": 0,
    }.items():
        setattr(torch.cpu, name, lambda *args, value=value, **kwargs: value)
    if not hasattr(torch.distributed, "set_timeout"):  # since torch 2.14
        torch.distributed.set_timeout = lambda *args, **kwargs: None
    sys.modules.setdefault("wandb", types.ModuleType("wandb"))
    _divide_on_gloo()
    if importlib.util.find_spec("torchtitan.trainer") is not None:
        _attend_without_flex()


def _divide_on_gloo():
    """Which has no sum with a factor."""
    from torch.distributed.fsdp import FSDPModule

    divide = FSDPModule.set_gradient_divide_factor

    def divide_on_gloo(self, factor):
        self.set_force_sum_reduction_for_comms(True)
        return divide(self, factor)

    FSDPModule.set_gradient_divide_factor = divide_on_gloo


def _attend_without_flex():
    """Flexible attention has no gradient on CPUs."""
    import torchtitan.models.common.attention as attention

    def attend(q, k, v, *, enable_gqa, scale=None, **_):
        out = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True, scale=scale, enable_gqa=enable_gqa)
        return out, None

    attention.FlexAttention.compiled_flex_attn = staticmethod(attend)


if __name__ == "__main__":
    install()
    sys.argv = sys.argv[1:]
    runpy.run_path(sys.argv[0], run_name="__main__")
