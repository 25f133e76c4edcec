# SPDX-License-Identifier: Apache-2.0
"""The tensor-parallel ranks of an engine follow the weights that trainer.py publishes. One of them fetches; all share its memory.

  torchrun --nproc-per-node 2 examples/weights/engine.py WEIGHTS --versions 20
"""

import argparse
import time

import torch.distributed as dist
from policy import output_of
from sealpoint.weights import Follower


def newest_of_rank_0(follower):
    """The newest version, the same on all ranks."""
    found = [follower.poll() if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(found)
    return found[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("weights", help="directory or URL of the versions")
    parser.add_argument("--versions", type=int, default=20, help="version after which the engine ends")
    options = parser.parse_args()
    dist.init_process_group("gloo")
    with Follower(options.weights) as follower:
        while (follower.version or 0) < options.versions:
            newest = newest_of_rank_0(follower)
            if newest is None:
                time.sleep(0.1)
                continue
            for version in range((follower.version or 0) + 1, newest + 1):  # to show each; an engine takes the newest
                update = follower.update(version)
                follower.verify()
                output = output_of(follower.torch_tensors(), dist.get_world_size())
                if update.is_leader:
                    print(f"version {version:3}  output {output}  chain {update.chain}, {update.bytes_fetched} bytes in "
                          f"{update.seconds:.3f} s", flush=True)
            dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
