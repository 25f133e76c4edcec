# SPDX-License-Identifier: Apache-2.0
"""The policy of trainer.py and engine.py, and what it says about one batch."""

import hashlib

import torch
import torch.distributed as dist
import torch.nn.functional as F


def make_policy():
    torch.manual_seed(0)
    layers = torch.nn.Linear(64, 250), torch.nn.GELU(), torch.nn.Linear(250, 16)
    return torch.nn.Sequential(*layers).to(torch.bfloat16)


def linear(weights, name, inputs, ranks):
    """A layer whose output elements are divided among the ranks (tensor parallelism), and gathered."""
    weight, bias = (weights[f"{name}.{kind}"].chunk(ranks)[dist.get_rank() if ranks > 1 else 0] for kind in ("weight", "bias"))
    output = F.linear(inputs, weight, bias)
    if ranks == 1:
        return output
    parts = [torch.empty_like(output) for _ in range(ranks)]
    dist.all_gather(parts, output)
    return torch.cat(parts, dim=-1)


@torch.no_grad()
def output_of(weights, ranks=1):
    """A digest of the output with these weights, which are whole tensors by name. Equal weights have equal outputs, bit for bit.

    With several ranks, all of them call it, and each computes its part of each layer.
    """
    torch.manual_seed(1)
    batch = torch.randn(8, 64).to(torch.bfloat16)
    output = linear(weights, "2", F.gelu(linear(weights, "0", batch, ranks)), ranks)
    return hashlib.sha256(output.contiguous().view(torch.int16).numpy().tobytes()).hexdigest()[:16]
