# SPDX-License-Identifier: Apache-2.0
"""A small policy trains under FSDP, and publishes its weights after each step. engine.py follows them. A trainer that starts again
goes on from the newest version.

  torchrun --nproc-per-node 4 examples/weights/trainer.py WEIGHTS --versions 20
  torchrun --nproc-per-node 2 examples/weights/engine.py WEIGHTS --versions 20
"""

import argparse

import sealpoint.torch
import torch
import torch.distributed as dist
from policy import make_policy, output_of
from sealpoint.weights import publish
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard


def train(policy, optimizer, step):
    torch.manual_seed(step)
    batch = torch.randn(32, 64).to(torch.bfloat16)
    policy(batch).float().square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()


def resume(policy, place):
    """Loads the newest version on all ranks, and returns its number; 0 if there is none."""
    found = [None]
    if dist.get_rank() == 0:
        newest = sealpoint.Series(place).newest()
        found = [newest and (newest.entry.step, newest.entry.path)]
    dist.broadcast_object_list(found)
    if found[0] is None:
        return 0
    version, path = found[0]
    sealpoint.torch.load(policy.state_dict(), path)
    return version


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("weights", help="directory or URL of the versions")
    parser.add_argument("--versions", type=int, default=20)
    options = parser.parse_args()
    dist.init_process_group("gloo")
    policy = fully_shard(make_policy(), mesh=init_device_mesh("cpu", (dist.get_world_size(),)))
    optimizer = torch.optim.SGD(policy.parameters(), lr=1e-2)
    for version in range(resume(policy, options.weights) + 1, options.versions + 1):
        train(policy, optimizer, version)
        published = publish(policy.state_dict(), options.weights, version, full_every=5)
        output = output_of({name: tensor.full_tensor() for name, tensor in policy.state_dict().items()})
        if dist.get_rank() == 0:
            kind = "full" if published.base is None else f"delta to {published.base}"
            print(f"version {version:3}  output {output}  {kind}, {published.bytes_written} bytes", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
