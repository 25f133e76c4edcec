# SPDX-License-Identifier: Apache-2.0
"""Estimate of the staging memory that the background save of a state needs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import torch

from sealpoint import _tree
from sealpoint.torch._dtensor import is_dtensor


def _tensors_in(state: Any) -> Iterator[Any]:
    """Yields the tensors in a state. Calls no ``state_dict`` method, because such a call may be collective."""
    if isinstance(state, (torch.Tensor, _tree.PerRank)):
        yield state
    elif isinstance(state, torch.nn.Module):
        yield from state.parameters()
        yield from state.buffers()
    elif isinstance(state, torch.optim.Optimizer):
        yield from _tensors_in(state.state)
    elif isinstance(state, Mapping):
        for value in state.values():
            yield from _tensors_in(value)
    elif isinstance(state, (list, tuple)):
        for value in state:
            yield from _tensors_in(value)


def bytes_to_stage(state: Any, writer_count: int) -> int:
    """Estimates how many bytes of a state this rank copies in a save. Local.

    Assumes that the ``writer_count`` writing ranks hold equal plain tensors, which they divide among themselves. Values of types
    other than mappings, lists, tensors, modules and optimizers are not counted.
    """
    tensors = {id(tensor): tensor for tensor in _tensors_in(state)}
    total = 0
    for tensor in tensors.values():
        if isinstance(tensor, _tree.PerRank):
            total += bytes_to_stage(tensor.value, 1)
        elif is_dtensor(tensor):
            mesh, placements = tensor.device_mesh, tensor.placements
            copies = math.prod(mesh.size(dim) for dim, placement in enumerate(placements) if placement.is_replicate())
            total += tensor._local_tensor.nbytes // copies  # to_local() is slow with autograd
        else:
            total += tensor.nbytes // writer_count
    return total
