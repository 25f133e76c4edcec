# SPDX-License-Identifier: Apache-2.0
"""Megatron-core on a machine without a GPU: what it asks of torch.cuda while it is imported and while it saves.

To be imported before Megatron. Devices called cuda are the CPU.
"""

import sys
import types
import typing

import framework_stubs
import torch
import typing_extensions
from torch.overrides import TorchFunctionMode


def _is_cuda(device):
    return str(device).startswith("cuda") or type(device) is int


class _OnCpu(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if _is_cuda(kwargs.get("device", "")):
            kwargs["device"] = "cpu"
        if func is torch.Tensor.cuda:
            return args[0]
        if func is torch.Tensor.to:
            args = (args[0], *("cpu" if isinstance(item, (str, torch.device)) and _is_cuda(item) else item for item in args[1:]))
        return func(*args, **kwargs)


class _Stream:
    def __init__(self, *args, **kwargs):
        pass

    def __getattr__(self, name):
        return lambda *args, **kwargs: None

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass


def have_emerging_optimizers():
    """Muon; before Megatron is imported. It is written for Python 3.12, and compiles kernels that are used on GPUs alone."""
    typing.override = typing_extensions.override
    kernels = "emerging_optimizers.triton_kernels"
    sys.modules[kernels] = framework_stubs.Nothing(kernels)


def install():
    framework_stubs.install("triton")
    for name, value in {
        "synchronize": None, "current_device": "cpu", "is_current_stream_capturing": False, "empty_cache": None,
        "current_stream": _Stream(), "stream": _Stream(), "set_device": None, "device_count": 1,
    }.items():
        setattr(torch.cuda, name, lambda *args, value=value, **kwargs: value)
    torch.cuda.Stream = torch.cuda.Event = _Stream  # Megatron-FSDP annotates with them
    for name in ("Float", "Int", "Half", "BFloat16"):
        setattr(torch.cuda, f"{name}Tensor", getattr(torch, f"{name}Tensor"))
    type_of = torch.Tensor.type

    def type_on_cuda(self, *args, **kwargs):
        found = type_of(self, *args, **kwargs)
        is_name = isinstance(found, str) and "cuda" not in found
        return found.replace("torch.", "torch.cuda.") if is_name else found

    torch.Tensor.type = type_on_cuda
    _OnCpu().__enter__()


class Adam(torch.optim.Optimizer):
    """Counts steps in its groups, as the fused ones of Transformer Engine and Apex do."""

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0, **_):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            group["step"] = group.get("step", 0) + 1
            first, second = group["betas"]
            for parameter in (item for item in group["params"] if item.grad is not None):
                state = self.state[parameter]
                if not state:
                    state.update(exp_avg=torch.zeros_like(parameter), exp_avg_sq=torch.zeros_like(parameter))
                state["exp_avg"].mul_(first).add_(parameter.grad, alpha=1 - first)
                state["exp_avg_sq"].mul_(second).addcmul_(parameter.grad, parameter.grad, value=1 - second)
                size = state["exp_avg"] / (1 - first ** group["step"])
                scale = (state["exp_avg_sq"] / (1 - second ** group["step"])).sqrt_().add_(group["eps"])
                parameter.mul_(1 - group["lr"] * group["weight_decay"]).addcdiv_(size, scale, value=-group["lr"])


def fork_helpers():
    """Megatron's own saves start a process for a queue; one that is spawned imports torch anew, which takes seconds."""
    from megatron.core.dist_checkpointing.strategies import filesystem_async

    own = filesystem_async.mp
    filesystem_async.mp = types.SimpleNamespace(**{**vars(own), "get_context": lambda _: own.get_context("fork")})


def have_routers():
    """0.16 asks for a name that is there only with Transformer Engine."""
    from megatron.core.transformer.moe import moe_utils

    moe_utils.te_general_gemm = getattr(moe_utils, "te_general_gemm", None)


def use_own_adam():
    import megatron.core.optimizer
    from megatron.core.optimizer import distrib_optimizer

    megatron.core.optimizer.Adam = distrib_optimizer.Adam = Adam
    megatron.core.optimizer.USING_PYTORCH_OPTIMIZER = False
    distrib_optimizer.HAVE_APEX_OR_TE = distrib_optimizer.USING_APEX_OPTIMIZER = True
