# SPDX-License-Identifier: Apache-2.0
"""A small model trains, saves in the background, and goes on from its newest checkpoint on other ranks in another layout.

  torchrun --nproc-per-node 4 examples/python/resume.py RUN --layout fsdp --steps 40
  torchrun --nproc-per-node 2 examples/python/resume.py RUN --layout tp --steps 60

--die-at 30 kills the last rank when the others save step 30.
"""

import argparse
import hashlib
import os
import signal

import sealpoint.torch as sp
import torch
import torch.distributed as dist
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module


def make_model(layout):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(64, 250), torch.nn.GELU(), torch.nn.Linear(250, 64))
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    if layout == "tp":
        return parallelize_module(model, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    return fully_shard(model, mesh=mesh)


def train(model, optimizer, step):
    torch.manual_seed(step)
    batch = torch.randn(32, 64)
    loss = (model(batch) - batch.roll(1, 1)).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss.item()


def state_of(model, optimizer):
    return dict(zip(("model", "optimizer"), get_state_dict(model, optimizer), strict=True))


def fingerprint(value):
    """Of the whole tensors, so that it does not depend on the layout. All ranks call it."""
    if isinstance(value, dict):
        return hashlib.sha256("".join(k + fingerprint(value[k]) for k in sorted(value)).encode()).hexdigest()[:16]
    if hasattr(value, "full_tensor"):
        value = value.full_tensor()
    return hashlib.sha256(value.numpy().tobytes()).hexdigest() if isinstance(value, torch.Tensor) else repr(value)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", help="directory of the checkpoints")
    parser.add_argument("--layout", choices=("fsdp", "tp"), default="fsdp")
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--die-at", type=int)
    options = parser.parse_args()
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    say = print if rank == 0 else lambda *_: None
    model = make_model(options.layout)
    optimizer = torch.optim.AdamW(model.parameters())
    with sp.Checkpointer(options.run, every=10, keep=3) as checkpoints:
        state = state_of(model, optimizer)
        first = (checkpoints.resume(state) or 0) + 1
        set_state_dict(model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
        say(f"{options.layout} on {size} ranks, from step {first}")
        say(f"step {first - 1:3}  state {fingerprint(state)}  {'resumed' if first > 1 else 'new'}")
        for step in range(first, options.steps + 1):
            loss = train(model, optimizer, step)
            if step % 10 > 0:
                continue
            if step == options.die_at and rank == size - 1:
                os.kill(os.getpid(), signal.SIGKILL)
            state = state_of(model, optimizer)
            checkpoints.step(step, state)  # in the background, while the training goes on
            say(f"step {step:3}  state {fingerprint(state)}  loss {loss:.6f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
