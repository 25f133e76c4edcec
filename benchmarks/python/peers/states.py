# SPDX-License-Identifier: Apache-2.0
"""A rank's state, and the same as a state dict of torch."""

import functools

# The first DTensor imports it, which takes a second: here it is done before processes are forked.
import torch._dynamo  # noqa: F401
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Shard


class State(list):
    """The tensors that a rank holds."""

    @functools.cached_property
    def as_dict(self):
        """By name, in the same memory: what is cut over the ranks as DTensors. All ranks together."""
        return {held.tensor.name: value_of(held) for held in self}


def value_of(held):
    layout = held.tensor.layout
    if layout not in ("rows", "columns"):
        return held.local
    return DTensor.from_local(held.local, mesh_of_all(), [Shard(0 if layout == "rows" else 1)], run_check=False)


@functools.cache
def mesh_of_all():
    return init_device_mesh("cpu", (dist.get_world_size(),))
