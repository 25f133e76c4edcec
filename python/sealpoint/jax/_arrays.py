# SPDX-License-Identifier: Apache-2.0
"""Converts JAX arrays into slots of the library. A slot describes a box on the devices of this process, and its memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from sealpoint import _sealpoint
from sealpoint._dtypes import name_of, numpy_dtype
from sealpoint._errors import MismatchError, UnsupportedError
from sealpoint._mapped import aligned_array
from sealpoint.jax._jax import jax

Slot = _sealpoint.Slot
Numbers = tuple[int, ...]
Box = tuple[Numbers, Numbers]  # offset and extent, in elements


def is_array(value: Any) -> bool:
    """Tells whether the value is stored as a tensor."""
    return isinstance(value, (jax.Array, np.ndarray))


def is_key(value: Any) -> bool:
    """Tells whether a value is an array of ``jax.random`` keys, or describes such an array."""
    dtype = getattr(value, "dtype", None)
    return dtype is not None and jax.dtypes.issubdtype(dtype, jax.dtypes.prng_key)


def name_of_dtype(dtype: Any, key: str) -> str:
    """Returns the name of the dtype in the format specification. Raises UnsupportedError."""
    name = name_of(np.dtype(dtype))
    if np.dtype(dtype).byteorder == ">":
        raise UnsupportedError(f"dtype is {np.dtype(dtype).str}, which is not little-endian", tensor=key)
    if name is None:
        raise UnsupportedError(f"dtype is {dtype}, which the format does not have", tensor=key)
    return name


def _box_of(index: tuple[slice, ...], shape: Numbers) -> Box:
    ranges = [item.indices(size)[:2] for item, size in zip(index, shape, strict=True)]
    return tuple(begin for begin, _ in ranges), tuple(end - begin for begin, end in ranges)


def _memory_of(array: np.ndarray[Any, Any]) -> _sealpoint.MemoryView:
    return _sealpoint.MemoryView(array.ctypes.data, array.nbytes)


def _slot(key: str, dtype: str, shape: Numbers, box: Box | None, memory: np.ndarray[Any, Any] | None) -> Slot:
    if memory is None or memory.size == 0:
        return Slot(key, dtype, shape, None, _sealpoint.MemoryView(0, 0))
    return Slot(key, dtype, shape, None if box is None else _sealpoint.Region(*box, None), _memory_of(memory))


def source_slots(value: Any, key: str, keep: Callable[[Any], None]) -> list[Slot]:
    """Returns the slots of an array to save.

    Each box on this process's devices has exactly one slot, even if several devices have the box.

    Waits for pending computations of the array. ``keep`` is called with the memory of each slot; this memory must outlive the slot.
    Raises UnsupportedError, which names the key.
    """
    shape, dtype = tuple(value.shape), name_of_dtype(value.dtype, key)
    if 0 in shape:
        return [Slot(key, dtype, shape)]
    if isinstance(value, np.ndarray):
        memory = np.ascontiguousarray(value)
        keep(memory)
        return [_slot(key, dtype, shape, None, memory.reshape(-1))]
    boxes: dict[Box, Any] = {}
    for shard in value.addressable_shards:
        boxes.setdefault(_box_of(shard.index, shape), shard.data)
    slots = []
    for box, data in boxes.items():
        memory = np.ascontiguousarray(np.asarray(data))  # a view of host memory
        keep(memory)
        slots.append(_slot(key, dtype, shape, box, memory.reshape(-1)))
    return slots


class Target(NamedTuple):
    """An array to load: the destination of each box of this process, and the devices that receive the box."""

    shape: Numbers
    sharding: Any  # None: a numpy array
    boxes: dict[Box, np.ndarray[Any, Any]]
    devices: list[tuple[Any, Box]]

    def array(self) -> Any:
        """Returns the array after the load."""
        if self.sharding is None:
            return next(iter(self.boxes.values()))
        parts = [jax.device_put(self.boxes[box], device, may_alias=True) for device, box in self.devices]
        return jax.make_array_from_single_device_arrays(self.shape, self.sharding, parts)


def target_of(like: Any, key: str) -> tuple[Target, list[Slot]]:
    """Returns the destination of an array like ``like``, which is an array or a jax.ShapeDtypeStruct. Raises UnsupportedError."""
    shape, dtype = tuple(like.shape), np.dtype(like.dtype)
    name = name_of_dtype(dtype, key)
    sharding = getattr(like, "sharding", None)
    devices: list[tuple[Any, Box]] = []
    if isinstance(like, np.ndarray):
        boxes = {((0,) * len(shape), shape): aligned_array(shape, dtype)}
    else:
        sharding = sharding or jax.sharding.SingleDeviceSharding(jax.local_devices()[0])
        indices = sharding.addressable_devices_indices_map(shape)
        devices = [(device, _box_of(index or (slice(None),) * len(shape), shape)) for device, index in indices.items()]
        boxes = {box: aligned_array(box[1], dtype) for box in dict.fromkeys(box for _, box in devices)}
    slots = [_slot(key, name, shape, box, memory) for box, memory in boxes.items()]
    if 0 in shape:
        slots = [Slot(key, name, shape, None, _sealpoint.MemoryView(0, 0))]
    return Target(shape, sharding, boxes, devices), slots


def stored_like(shape: Numbers, dtype: str, key: str) -> Any:
    """Returns the default template of a stored tensor, for callers that pass no template. Raises MismatchError."""
    found = numpy_dtype(dtype)
    if found is None:
        raise MismatchError(f"dtype is {dtype}, which JAX does not have", tensor=key)
    return jax.ShapeDtypeStruct(shape, found)
