# SPDX-License-Identifier: Apache-2.0
"""One rank of a training whose series is in an object store: URL, last step, step in whose save it is killed (or 0)."""
import os
import signal
import sys

import sealpoint.torch as sp
import torch
import torch.distributed as dist
from torch.distributed.tensor import DeviceMesh, Shard, distribute_tensor


def main(url, last, killed_at):
    dist.init_process_group("gloo")
    mesh = DeviceMesh("cpu", list(range(dist.get_world_size())))
    state = {"w": distribute_tensor(torch.zeros(12, 1 << 16), mesh, [Shard(0)]), "step": 0}
    with sp.Checkpointer(url, every=2, keep=3) as checkpoints:
        begin = checkpoints.resume(state) or 0
        for step in range(begin + 1, last + 1):
            state["w"].to_local().mul_(0.5).add_(step)
            state["step"] = step
            if step == killed_at:
                pending = checkpoints.save(step, state)
                if dist.get_rank() == dist.get_world_size() - 1:
                    os.kill(os.getpid(), signal.SIGKILL)
                del pending
            checkpoints.step(step, state)
    whole = state["w"].full_tensor()
    assert torch.equal(whole, torch.full_like(whole, whole[0, 0].item()))
    if dist.get_rank() == 0:
        print(begin, whole[0, 0].item(), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
