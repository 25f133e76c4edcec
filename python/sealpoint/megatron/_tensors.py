# SPDX-License-Identifier: Apache-2.0
"""Converts sharded tensors of Megatron-core into regions of whole tensors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from sealpoint._errors import InvalidArgumentError, MismatchError, UnsupportedError
from sealpoint.megatron import _mcore
from sealpoint.torch._regions import Region, Regions

Numbers = tuple[int, ...]


@dataclass
class RunTensor(_mcore.mapping.ShardedTensor):  # type: ignore[misc]
    """A flat tensor of the distributed optimizer. It contains a run of a box of a model parameter.

    To Megatron, the object is a part of a two-dimensional tensor with parts of irregular sizes. The position of the part is unique
    to the run. The additional members describe the real region. The key is the key of the parameter. The key has no prefix of a
    chained optimizer, because each parameter belongs to only one optimizer.

    Args:
        tensor_shape: Shape of the whole tensor.
        box: Offset and extent of the box in the tensor.
        run: Row-major elements [begin, end) of the box.
        is_owner: Whether this rank writes the run of elements. Other ranks may have replicas of the run.
    """

    tensor_shape: Numbers = ()
    box: tuple[Numbers, Numbers] = ((), ())
    run: tuple[int, int] = (0, 0)
    is_owner: bool = False

    def __setattr__(self, name: str, value: Any) -> None:
        if name != "key" or "key" not in self.__dict__:
            super().__setattr__(name, value)


def is_main(sharded: Any) -> bool:
    """Tells whether Megatron expects this rank to store the tensor."""
    if isinstance(sharded, RunTensor):
        return sharded.is_owner
    return bool(_mcore.mapping.is_main_replica(sharded.replica_id))


def shape_of(sharded: Any) -> Numbers:
    """Returns the shape of the whole tensor, including prepended axes."""
    return tuple(sharded.tensor_shape if isinstance(sharded, RunTensor) else sharded.global_shape)


def _box_of(sharded: Any) -> tuple[Numbers, Numbers]:
    if isinstance(sharded, RunTensor):
        return sharded.box
    return tuple(sharded.global_offset), (1,) * sharded.prepend_axis_num + tuple(sharded.local_shape)


def region_of(sharded: Any, memory: torch.Tensor | None = None) -> Region:
    """Returns this rank's region. Raises InvalidArgumentError and UnsupportedError, which name the key."""
    data = sharded.data if memory is None else memory
    if data is None:
        raise InvalidArgumentError("the ShardedTensor has no data", tensor=sharded.key)
    offset, extent = _box_of(sharded)
    if isinstance(sharded, RunTensor):
        return Region(data, offset, extent, sharded.run)
    if getattr(sharded, "flattened_range", None) is not None:
        raise UnsupportedError("the ShardedTensor has a flattened_range, which Megatron no longer uses", tensor=sharded.key)
    return Region(data[(None,) * sharded.prepend_axis_num], offset, extent)


def regions_to_save(sharded: Any) -> Regions:
    """Returns this rank's regions of a tensor to save."""
    return Regions(shape_of(sharded), sharded.dtype, [region_of(sharded)])


def regions_to_load(sharded: Any, stored_shape: Numbers, memory: torch.Tensor) -> Regions:
    """Returns the regions of a tensor to load. ``memory`` is the tensor's local data, or temporary memory.

    If the tensor allows a shape mismatch, elements that the checkpoint lacks become zero. Raises MismatchError and
    UnsupportedError.
    """
    region, shape = region_of(sharded, memory), shape_of(sharded)
    if shape == stored_shape:
        return Regions(shape, memory.dtype, [region])
    if not sharded.allow_shape_mismatch or len(shape) != len(stored_shape):
        raise MismatchError(f"shape: the checkpoint has {list(stored_shape)}, the state {list(shape)}", tensor=sharded.key)
    memory.zero_()
    clipped = _clip_run(region, stored_shape, sharded.key) if region.run is not None else _clip(region, stored_shape)
    return Regions(stored_shape, memory.dtype, [] if clipped is None else [clipped])


def _clip(region: Region, shape: Numbers) -> Region | None:
    """Clips a box to a tensor of a different shape. Returns None if no element remains."""
    memory = region.tensor
    for dim, (begin, size) in enumerate(zip(region.offset, shape, strict=True)):
        length = min(memory.shape[dim], size - begin)
        if length <= 0:
            return None
        memory = memory.narrow(dim, 0, length)
    return Region(memory, region.offset)


def _clip_run(region: Region, shape: Numbers, key: str) -> Region | None:
    """Clips a run as ``_clip`` clips a box. Only the last rows may be missing, so the remaining elements keep their numbers."""
    assert region.extent is not None and region.run is not None
    extent, inner, is_row = list(region.extent), 1, True
    for dim in reversed(range(len(extent))):
        length = min(extent[dim], shape[dim] - region.offset[dim])
        if length <= 0:
            return None
        is_row = all(size == 1 for size in extent[:dim])
        if length < extent[dim] and not is_row:
            raise UnsupportedError(
                f"optimizer state of a tensor of shape {list(shape)} is requested in a box {list(region.extent)} at "
                f"{list(region.offset)}; expected a difference in rows only", tensor=key,
            )
        extent[dim] = length
        inner *= length
    begin, end = region.run[0], min(region.run[1], inner)
    return None if begin >= end else Region(region.tensor[: end - begin], region.offset, extent, (begin, end))
