# SPDX-License-Identifier: Apache-2.0
"""Memory for arrays: newly allocated and aligned, or mapped and verified."""

from __future__ import annotations

import importlib
import math
import os
from typing import TYPE_CHECKING, Any

from sealpoint import _sealpoint
from sealpoint._dtypes import numpy, numpy_dtype

if TYPE_CHECKING:
    from sealpoint._dtypes import Array

_ALIGNMENT = 64  # one cache line, in bytes


def aligned_array(shape: tuple[int, ...], dtype: Any) -> Any:
    """Allocates an array aligned to 64 bytes.

    numpy allocates memory that is misaligned by 16 bytes. The system takes twice as long to copy file bytes into misaligned memory.
    The CPU client of JAX cannot use misaligned memory without a copy.
    """
    size = math.prod(shape) * numpy().dtype(dtype).itemsize
    memory = numpy().empty(size + _ALIGNMENT, dtype="uint8")
    begin = -memory.__array_interface__["data"][0] % _ALIGNMENT
    return memory[begin : begin + size].view(dtype).reshape(shape)


def with_dlpack(array: Any) -> Any:
    """Returns the array, or a view of the array whose ``__dlpack__`` supports the dtype."""
    if array.dtype.kind in "biufc":  # numpy can export these kinds, but not those of ml_dtypes
        return array
    return array.view(importlib.import_module("sealpoint._dlpack_array").DlpackArray)


class _Memory:
    """Base object of an array. The array keeps this object alive, and this object keeps the mapping alive."""

    def __init__(self, mapped: _sealpoint.MappedTensor, address: int, size: int) -> None:
        self._mapped = mapped
        self.__array_interface__ = {"version": 3, "data": (address, True), "shape": (size,), "typestr": "|u1"}


def arrays_of(mapped: _sealpoint.MappedTensor, dtype_name: str, itemsize: int, shapes: list[tuple[int, ...]]) -> list[Array]:
    """Returns a read-only array for each shard. ``shapes`` lists the shapes of the arrays."""
    arrays: list[Any] = []
    for (address, size), shape in zip(mapped.shards, shapes, strict=True):
        arrays.append(array_of(numpy().asarray(_Memory(mapped, address, size)), dtype_name, itemsize, shape))
    return arrays


def array_of(flat: Any, dtype_name: str, itemsize: int, shape: tuple[int, ...]) -> Any:
    """Returns an array over bytes. If neither numpy nor ml_dtypes has the dtype, the array is of bytes, with one more axis."""
    dtype = numpy_dtype(dtype_name)
    return flat.reshape(*shape, itemsize) if dtype is None else with_dlpack(flat.view(dtype).reshape(shape))


class HostCopy:
    """A tensor in immutable memory that the processes of a host can share. See ``Tensor.host_copy``.

    Attributes:
        array: The tensor as a read-only array. The array keeps the memory alive, even without this object.
        path: Argument for ``Tensor.map_host_copy`` in a different process. Valid during the lifetime of this object.
    """

    def __init__(self, mapped: _sealpoint.MappedTensor, array: Array) -> None:
        self._mapped, self.array = mapped, array
        self.path = f"/proc/{os.getpid()}/fd/{mapped.descriptor}"

    def __repr__(self) -> str:
        return f"<sealpoint.HostCopy {self.path}>"
