# SPDX-License-Identifier: Apache-2.0
"""Converts torch tensors into slots of the library: finds the parts that a rank has, and their memory."""

from __future__ import annotations

import array
import operator
import sys
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch.nn.parameter import UninitializedBuffer, UninitializedParameter

from sealpoint import _sealpoint
from sealpoint._errors import InvalidArgumentError, UnsupportedError
from sealpoint.torch._dtensor import is_dtensor
from sealpoint.torch._dtypes import NAME_OF
from sealpoint.torch._regions import Regions

if TYPE_CHECKING:
    from torch.distributed.device_mesh import DeviceMesh
    from torch.distributed.tensor import DTensor

Numbers = tuple[int, ...]
# Offset and extent in the whole tensor, in elements. None stands for the whole tensor.
Box = tuple[Numbers, Numbers] | None
Slot = _sealpoint.Slot
_IS_CPU, _LAYOUT, _DTYPE, _SHAPE = map(attrgetter, ("is_cpu", "layout", "dtype", "shape"))
Ranges = list[tuple[int, int]]  # [begin, end) each, in one dimension
_REMEDY = "preprocess_state_dict_for_uneven_dtensor(state) of Megatron-FSDP adds the true offsets"


class Part(NamedTuple):
    """A box of a tensor, and its memory. The memory has all elements of the box, or only its elements [begin, end)."""

    box: Box
    memory: torch.Tensor
    run: tuple[int, int] | None = None


class Pieces(NamedTuple):
    """The parts of a tensor on a rank. Empty if the rank is outside the tensor's mesh."""

    shape: Numbers
    dtype: torch.dtype
    parts: list[Part]


def is_tensor(value: Any) -> bool:
    """Tells whether the value is stored as a tensor, in one or several parts."""
    if isinstance(value, (torch.Tensor, Regions)):
        return True
    # Some mappings claim to have every attribute.
    return not isinstance(value, Mapping) and (hasattr(value, "local_shards") or hasattr(value, "__create_chunk_list__"))


def _chunk(ranges: Ranges, count: int, index: int) -> Ranges:
    """Returns part ``index`` of ``count``, divided as by torch.chunk. Trailing parts may be empty."""
    total = sum(end - begin for begin, end in ranges)
    size = -(-total // count)
    return _cut(ranges, min(index * size, total), min((index + 1) * size, total))


def _cut(ranges: Ranges, first: int, last: int) -> Ranges:
    """Returns the elements [first, last) of the concatenated ranges."""
    found: Ranges = []
    for begin, end in ranges:
        low, high = max(first, 0), min(last, end - begin)
        if low < high:
            found.append((begin + low, begin + high))
        first, last = first - (end - begin), last - (end - begin)
    return found


def _joined(ranges: Ranges) -> Ranges:
    joined: Ranges = []
    for begin, end in ranges:
        if joined and joined[-1][1] == begin:
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((begin, end))
    return joined


def shares_dim(tensor: DTensor) -> bool:
    """Tells whether several dimensions of the mesh divide one dimension of the tensor, and no strided shard says in which order."""
    placements = tensor.placements
    if len(placements) == 1:
        return False
    dims = [placement.dim for placement in placements if hasattr(placement, "dim")]
    return len(set(dims)) < len(dims) and not any(hasattr(placement, "split_factor") for placement in placements)


def order_of(tensor: DTensor) -> Numbers | None:
    """Returns the dimensions of the mesh in the order in which they divide the tensor, or None for their own order.

    torch records the order in the specification of the tensor, and Megatron-FSDP in the mesh.
    """
    if not shares_dim(tensor):
        return None
    entries = getattr(getattr(tensor, "_spec", None), "shard_order", None) or ()
    order = getattr(tensor.device_mesh, "_shard_order", None) or [dim for entry in entries for dim in entry.mesh_dims]
    return (*order, *(dim for dim in range(len(tensor.placements)) if dim not in order))


def _check_order(tensor: DTensor, key: str) -> None:
    """Refuses a DTensor of fully_shard of Megatron-FSDP, which divides in another order than torch and records no order."""
    if shares_dim(tensor) and getattr(tensor.device_mesh, "_shard_order", None) is None:
        if any(name.endswith("megatron_fsdp.experimental") for name in sys.modules):
            raise InvalidArgumentError(
                f"the order of the placements {tensor.placements} is unknown, because Megatron-FSDP may have made the tensor; "
                f"{_REMEDY}", tensor=key,
            )


def ranges_of(
    shape: Sequence[int], mesh_shape: Sequence[int], coordinate: Sequence[int], placements: Any, order: Numbers | None = None
) -> list[Ranges]:
    """Returns, for each dimension, the elements that a rank of a mesh holds, in the order of its local tensor.

    A strided shard is split into ``split_factor`` parts, and each part is then divided among the ranks.
    """
    from torch.distributed.tensor import Shard

    held: list[Ranges] = [[(0, size)] if size > 0 else [] for size in shape]
    for mesh_dim in range(len(placements)) if order is None else order:
        placement = placements[mesh_dim]
        if not hasattr(placement, "dim"):
            continue
        count, index = mesh_shape[mesh_dim], coordinate[mesh_dim]
        dim = placement.dim
        factor = 1 if isinstance(placement, Shard) else int(getattr(placement, "split_factor", 1))
        taken: Ranges = []
        for part in range(factor):
            taken += _chunk(_chunk(held[dim], factor, part), count, index)
        held[dim] = _joined(taken)
    return held


LocalBox = tuple[Numbers, Numbers, Numbers]
_layouts: dict[Any, list[LocalBox]] = {}
_LAYOUTS_MAX = 100_000
_Place = tuple[Numbers, Numbers | None]
_places: dict[int, tuple[weakref.ref[DeviceMesh], _Place]] = {}  # by id, because an equal mesh may belong to another job


def _place_of(mesh: DeviceMesh) -> _Place:
    """Returns the mesh's shape and this rank's coordinate, or None. Cached, because mesh properties are slow and never change."""
    found = _places.get(id(mesh))
    if found is not None and found[0]() is mesh:
        return found[1]
    coordinate = mesh.get_coordinate()
    place = (tuple(mesh.shape), None if coordinate is None else tuple(coordinate))
    if len(_places) >= _LAYOUTS_MAX:
        _places.clear()
    _places[id(mesh)] = (weakref.ref(mesh), place)
    return place


def boxes_of(tensor: DTensor) -> list[LocalBox]:
    """Returns (offset in the whole tensor, extent, offset in the local tensor) of each box on this rank."""
    mesh_shape, coordinate = _place_of(tensor.device_mesh)
    if coordinate is None:
        return []
    order = order_of(tensor)
    key = (tuple(tensor.shape), mesh_shape, coordinate, tensor.placements, order)
    boxes = _layouts.get(key)
    if boxes is not None:
        return boxes
    per_dim = []
    for ranges in ranges_of(tensor.shape, mesh_shape, coordinate, tensor.placements, order):
        starts, at = [], 0
        for begin, end in ranges:
            starts.append((begin, end - begin, at))
            at += end - begin
        per_dim.append(starts)
    boxes = [
        (tuple(item[0] for item in box), tuple(item[1] for item in box), tuple(item[2] for item in box))
        for box in product(*per_dim)
    ]
    if len(_layouts) >= _LAYOUTS_MAX:
        _layouts.clear()
    _layouts[key] = boxes
    return boxes


def _parts_of_dtensor(tensor: DTensor, key: str) -> list[Part]:
    for placement in tensor.placements:
        if placement.is_partial():
            raise InvalidArgumentError(
                f"placement is {placement}, so no rank has its values; expected replicated or sharded", tensor=key
            )
    _check_order(tensor, key)
    local = tensor.to_local()
    boxes = boxes_of(tensor)
    held = tuple(map(operator.add, *boxes[-1][1:])) if boxes else None
    if (local.numel() if held is None else tuple(local.shape) != held):
        raise InvalidArgumentError(
            f"the local tensor has shape {list(local.shape)}, expected {list(held or [0])} by the placements {tensor.placements}; "
            f"if Megatron-FSDP made it, {_REMEDY}", tensor=key,
        )
    if len(boxes) == 1:
        offset, extent, _ = boxes[0]
        return [Part((offset, extent), local)]
    parts = []
    for offset, extent, at in boxes:
        memory = local
        for dim, (begin, size) in enumerate(zip(at, extent, strict=True)):
            memory = memory.narrow(dim, begin, size)
        parts.append(Part((offset, extent), memory))
    return parts


def count_of(extent: Sequence[int]) -> int:
    count = 1
    for size in extent:
        count *= size
    return count


def _parts_of_chunks(value: Any, key: str) -> list[Part]:
    from torch.distributed.checkpoint.metadata import MetadataIndex

    parts = []
    for number, chunk in enumerate(value.__create_chunk_list__()):
        offset, extent = tuple(chunk.offsets), tuple(chunk.sizes)
        memory = value.__get_tensor_shard__(MetadataIndex(key, chunk.offsets, number))
        if memory.numel() != count_of(extent):
            raise InvalidArgumentError(
                f"the tensor's chunk list has a chunk {list(extent)} at {list(offset)}, its memory is {list(memory.shape)}",
                tensor=key,
            )
        parts.append(Part((offset, extent), memory.reshape(extent) if tuple(memory.shape) != extent else memory))
    return parts


def is_local(value: Any) -> bool:
    """Tells whether a tensor that is not a DTensor describes its own boxes, as DCP's CheckpointableTensor does."""
    return isinstance(value, torch.Tensor) and all(hasattr(value, name) for name in _LOCAL)


_LOCAL = ("global_offsets", "global_shape", "local_offsets", "local_sizes")


def _parts_of_local(value: Any, key: str) -> list[Part]:
    offsets, places, extents = (list(getattr(value, name)) for name in ("global_offsets", "local_offsets", "local_sizes"))
    if not len(offsets) == len(places) == len(extents):
        raise InvalidArgumentError(
            f"{len(offsets)} global_offsets, {len(places)} local_offsets and {len(extents)} local_sizes, "
            "expected as many of each", tensor=key,
        )
    parts = []
    for offset, place, extent in zip(offsets, places, extents, strict=True):
        memory: torch.Tensor = value
        if not len(place) == len(extent) == value.dim() or any(
            begin < 0 or begin + size > dim_size for begin, size, dim_size in zip(place, extent, value.shape, strict=True)
        ):
            raise InvalidArgumentError(
                f"local box {list(place)} + {list(extent)} is not within the tensor's {list(value.shape)}", tensor=key
            )
        for dim, (begin, size) in enumerate(zip(place, extent, strict=True)):
            memory = memory.narrow(dim, begin, size)
        parts.append(Part((tuple(offset), tuple(extent)), memory))
    return parts


def _parts_of_regions(value: Regions, key: str) -> list[Part]:
    parts = []
    for tensor, offset, extent, run in value.regions:
        box = (tuple(offset), tuple(tensor.shape if extent is None else extent))
        expected = box[1] if run is None else (run[1] - run[0],)
        if tuple(tensor.shape) != expected or tensor.dtype != value.dtype:
            of = f"box {list(box[1])}" if run is None else f"run {run[0]}:{run[1]}"
            raise InvalidArgumentError(
                f"the memory of {of} is {tensor.dtype} {list(tensor.shape)}, expected {value.dtype} {list(expected)}",
                tensor=key,
            )
        parts.append(Part(box, tensor, run))
    return parts


def pieces_of(value: Any, key: str) -> Pieces:
    """Returns the parts of a tensor on this rank. Raises InvalidArgumentError and UnsupportedError, which name the key."""
    if isinstance(value, (UninitializedParameter, UninitializedBuffer)):
        raise InvalidArgumentError("the parameter of a lazy module has no shape yet, expected a forward pass first", tensor=key)
    if isinstance(value, Regions):
        return Pieces(value.shape, value.dtype, _parts_of_regions(value, key))
    if is_dtensor(value) and not hasattr(value._local_tensor, "__create_chunk_list__"):
        return Pieces(tuple(value.shape), value.dtype, _parts_of_dtensor(value, key))
    if hasattr(value, "__create_chunk_list__"):
        return Pieces(tuple(value.size()), value.dtype, _parts_of_chunks(value, key))
    if hasattr(value, "local_shards"):  # a ShardedTensor of FSDP1
        parts = [
            Part((tuple(shard.metadata.shard_offsets), tuple(shard.metadata.shard_sizes)), shard.tensor)
            for shard in value.local_shards()
        ]
        return Pieces(tuple(value.metadata().size), value.metadata().tensor_properties.dtype, parts)
    if is_local(value):
        return Pieces(tuple(value.global_shape), value.dtype, _parts_of_local(value, key))
    check_storable(value, key)  # this fails for nested tensors, which have no shape
    return Pieces(tuple(value.shape), value.dtype, [Part(None, value)])


def check_storable(tensor: torch.Tensor, key: str) -> str:
    """Returns the dtype name. If the memory has no plain elements, raises UnsupportedError, which names the key."""
    what = None
    if tensor.layout != torch.strided:
        what = f"layout is {tensor.layout}, expected torch.strided"
    elif tensor.is_quantized:
        what = f"quantized tensor ({tensor.dtype}), expected its int_repr() and parameters"
    elif tensor.is_nested:
        what = "nested tensor, expected its values and offsets"
    elif tensor.device.type == "meta":
        what = "device is meta, without memory; call to_empty(device=...) of the module first, and create its optimizer then"
    elif tensor.device.type not in ("cpu", "cuda"):
        what = f"device is {tensor.device}, expected cpu or cuda"
    elif hasattr(type(tensor), "__tensor_flatten__"):
        what = f"tensor of type {type(tensor).__name__}, whose inner tensors are unknown"
    elif tensor.dtype not in NAME_OF:
        what = f"dtype is {tensor.dtype}, which the format does not have"
    if what is not None:
        raise UnsupportedError(what, tensor=key)
    return NAME_OF[tensor.dtype]


def memory_of(tensor: torch.Tensor, dtype: str | None = None) -> _sealpoint.MemoryView:
    """Returns the memory of a storable tensor, valid during the tensor's lifetime.

    ``dtype``: name of the dtype, if already known.
    """
    if tensor.numel() == 0:
        return _sealpoint.MemoryView(0, 0, dtype)
    size = tensor.element_size()
    strides = None
    if tensor.is_contiguous():
        size_bytes = tensor.numel() * size
    else:
        strides = tuple(stride * size for stride in tensor.stride())
        reach = sum((n - 1) * stride for n, stride in zip(tensor.shape, strides, strict=True))
        size_bytes = reach + size
    if tensor.device.type == "cuda":
        stream = torch.cuda.current_stream(tensor.device)
        return _sealpoint.MemoryView(tensor.data_ptr(), size_bytes, dtype, strides, stream.device_index, stream.cuda_stream)
    return _sealpoint.MemoryView(tensor.data_ptr(), size_bytes, dtype, strides)


def destination_of(tensor: torch.Tensor) -> _sealpoint.MemoryView:
    """Returns the memory of a whole tensor to load into. Raises UnsupportedError."""
    return memory_of(tensor, check_storable(tensor, ""))


def plain_memory(tensor: torch.Tensor) -> torch.Tensor:
    plain = tensor.detach()
    return plain.resolve_conj().resolve_neg() if plain.is_conj() or plain.is_neg() else plain


def slot_of(
    key: str, dtype: str, shape: Numbers, box: Box, memory: torch.Tensor, run: tuple[int, int] | None = None
) -> Slot:
    region = None if box is None else _sealpoint.Region(*box, run)
    return Slot(key, dtype, shape, region, memory_of(memory))


def plain_slots(names: list[str], tensors: list[torch.Tensor]) -> list[Slot] | None:
    """Returns the slots of whole tensors, or None if a tensor is not dense in host memory or two tensors share memory.

    No Python code runs per tensor.
    """
    kind = torch.Tensor
    try:
        is_dense = all(map(_IS_CPU, tensors)) and {torch.strided}.issuperset(map(_LAYOUT, tensors))
        is_dense = is_dense and all(map(kind.is_contiguous, tensors))
        if not is_dense or any(map(kind.is_conj, tensors)) or any(map(kind.is_neg, tensors)):
            return None
        addresses = array.array("Q", map(kind.data_ptr, tensors))
        dtypes = list(map(NAME_OF.get, map(_DTYPE, tensors)))
        return _sealpoint.dense_slots(names, dtypes, list(map(_SHAPE, tensors)), addresses.tobytes())
    except (RuntimeError, ValueError, AttributeError):  # a tensor without strides or memory
        return None


def empty_slot(key: str, dtype: str, shape: Numbers) -> Slot:
    """Returns the destination of an empty tensor."""
    return Slot(key, dtype, shape, None, _sealpoint.MemoryView(0, 0))


def source_slots(value: Any, key: str, keep: Callable[[torch.Tensor], None]) -> Iterator[Slot]:
    """Returns the slots of a tensor to save. ``keep`` receives temporary memory, which must outlive the slots.

    Conjugated and negated views share the elements of another tensor and only set a flag, so they are materialized.
    """
    shape, dtype, parts = pieces_of(value, key)
    if count_of(shape) == 0:
        yield Slot(key, name_of(dtype, key), shape)
        return
    for box, memory, run in parts:
        name = check_storable(memory, key)
        if memory.numel() == 0:
            continue
        plain = plain_memory(memory)
        keep(plain)
        yield slot_of(key, name, shape, box, plain, run)


def part_slots(
    key: str, shape: Numbers, box: Box, memory: torch.Tensor, run: tuple[int, int] | None = None
) -> Iterator[Slot]:
    """Returns the slot of a tensor part to load, or no slot if the part is empty."""
    name = check_storable(memory, key)
    if memory.numel() == 0:
        if count_of(shape) == 0:
            yield empty_slot(key, name, shape)
    elif memory.is_conj() or memory.is_neg():
        raise UnsupportedError("destination is a conjugated or negated view, expected plain memory", tensor=key)
    else:
        yield slot_of(key, name, shape, box, memory.detach(), run)


def name_of(dtype: torch.dtype, key: str) -> str:
    if dtype not in NAME_OF:
        raise UnsupportedError(f"dtype is {dtype}, which the format does not have", tensor=key)
    return NAME_OF[dtype]
