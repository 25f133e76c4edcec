# SPDX-License-Identifier: Apache-2.0
"""Memory of arrays: new and aligned, or mapped and verified."""

from __future__ import annotations

import importlib
import math
import os
from typing import TYPE_CHECKING, Any

from sealpoint import _sealpoint
from sealpoint._dtypes import numpy, numpy_dtype

if TYPE_CHECKING:
    from sealpoint._dtypes import Array

_ALIGNMENT = 64  # bytes; a cache line


def aligned_array(shape: tuple[int, ...], dtype: Any) -> Any:
    """A new array at an address that is a multiple of 64. numpy's own are 16 bytes off, and the system then takes twice
    the time to copy a file's bytes to it; the CPU client of JAX takes over memory of this alignment without a copy."""
    size = math.prod(shape) * numpy().dtype(dtype).itemsize
    memory = numpy().empty(size + _ALIGNMENT, dtype="uint8")
    begin = -memory.__array_interface__["data"][0] % _ALIGNMENT
    return memory[begin : begin + size].view(dtype).reshape(shape)


def with_dlpack(array: Any) -> Any:
    """The same array, such that ``__dlpack__`` knows its dtype."""
    if array.dtype.kind in "biufc":  # those that numpy's own gives out; ml_dtypes has others
        return array
    return array.view(importlib.import_module("sealpoint._dlpack_array").DlpackArray)


class _Memory:
    """What numpy makes an array of, which keeps it, and with it the mapping."""

    def __init__(self, mapped: _sealpoint.MappedTensor, address: int, size: int) -> None:
        self._mapped = mapped
        self.__array_interface__ = {"version": 3, "data": (address, True), "shape": (size,), "typestr": "|u1"}


def arrays_of(mapped: _sealpoint.MappedTensor, dtype_name: str, itemsize: int, shapes: list[tuple[int, ...]]) -> list[Array]:
    """An array of each shard, which cannot be written; its shape is one of ``shapes``."""
    arrays: list[Any] = []
    for (address, size), shape in zip(mapped.shards, shapes, strict=True):
        flat = numpy().asarray(_Memory(mapped, address, size))
        dtype = numpy_dtype(dtype_name)
        arrays.append(flat.reshape(*shape, itemsize) if dtype is None else with_dlpack(flat.view(dtype).reshape(shape)))
    return arrays


class HostCopy:
    """A tensor in memory that no process can change, which the processes of a host share: see ``Tensor.host_copy``.

    Attributes:
        array: the tensor, read-only. It keeps the memory by itself.
        path: what ``Tensor.map_host_copy`` of another process takes, as long as this object lives.
    """

    def __init__(self, mapped: _sealpoint.MappedTensor, array: Array) -> None:
        self._mapped, self.array = mapped, array
        self.path = f"/proc/{os.getpid()}/fd/{mapped.descriptor}"

    def __repr__(self) -> str:
        return f"<sealpoint.HostCopy {self.path}>"
