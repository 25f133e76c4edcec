# SPDX-License-Identifier: Apache-2.0
"""Lossless casts of floating-point tensors to a different dtype."""

from __future__ import annotations

import dataclasses
from functools import cache
from typing import Any

from sealpoint._dtypes import numpy
from sealpoint._errors import InvalidArgumentError, MismatchError
from sealpoint.interop._boxes import Box
from sealpoint.interop._dtypes import ITEM_SIZE, OF_TORCH
from sealpoint.interop._source import Reader, State, Tensor

_BLOCK = 1 << 16  # elements that are cast together, to bound temporary memory
_OF_NUMPY = {"f16": "f2", "f32": "f4", "f64": "f8"}
# 8-bit dtypes: exponent bits, bias, and whether the only NaN takes the place of -0.
_OF_8_BITS = {
    "f8_e4m3fn": (4, 7, False),
    "f8_e5m2": (5, 15, False),
    "f8_e4m3fnuz": (4, 8, True),
    "f8_e5m2fnuz": (5, 16, True),
}
FLOATS = ("f16", "bf16", "f32", "f64", *_OF_8_BITS)


@cache
def _values(dtype: str) -> Any:
    """Returns the f32 value of each of the 256 elements of an 8-bit dtype."""
    np = numpy()
    exponent_bits, bias, is_unsigned_zero = _OF_8_BITS[dtype]
    mantissa_bits = 7 - exponent_bits
    table = np.empty(256, "f4")
    for code in range(256):
        sign, exponent = code >> 7, (code & 127) >> mantissa_bits
        mantissa = code & ((1 << mantissa_bits) - 1)
        scale = 2.0 ** (max(exponent, 1) - bias - mantissa_bits)
        table[code] = (-1) ** sign * scale * (mantissa + ((1 << mantissa_bits) if exponent else 0))
        if code == 128:
            table[code] = np.nan if is_unsigned_zero else -0.0
    if dtype == "f8_e4m3fn":
        _bits(table)[[0x7F, 0xFF]] = 0x7FC00000, 0xFFC00000
    if dtype == "f8_e5m2":
        _bits(table)[0x7C:0x80] = 0x7F800000 + (np.arange(4, dtype="u4") << 21)
        _bits(table)[0xFC:] = 0xFF800000 + (np.arange(4, dtype="u4") << 21)
    return table


def _bits(array: Any) -> Any:
    return array.view(f"u{array.itemsize}")


def decode(data: Any, dtype: str, wide: str) -> Any:
    """Converts elements to the numpy dtype ``wide`` ("f4" or "f8"), which represents all their values and NaN payloads."""
    np = numpy()
    if dtype in _OF_NUMPY:
        return data.view(_OF_NUMPY[dtype]).astype(wide)
    if dtype == "bf16":
        return (data.view("u2").astype("u4") << np.uint32(16)).view("f4").astype(wide)
    return _values(dtype)[data].astype(wide)


def encode(values: Any, dtype: str) -> Any:
    """Encodes elements as bytes. The result is exact for values that the dtype represents, and arbitrary for all other values."""
    np = numpy()
    if dtype in _OF_NUMPY:
        return values.astype(_OF_NUMPY[dtype]).view("u1")
    bits = _bits(values.astype("f4"))
    if dtype == "bf16":
        return (bits >> np.uint32(16)).astype("u2").view("u1")
    table = _bits(_values(dtype))
    order = np.argsort(table, kind="stable")
    return order[np.searchsorted(table[order], bits).clip(0, 255)].astype("u1")


@dataclasses.dataclass(frozen=True, eq=False)
class _Cast:
    tensor: Tensor
    dtype: str

    def __getattr__(self, attribute: str) -> Any:
        return getattr(self.tensor, attribute)

    def reader(self, memory_bytes: int) -> Reader:
        return _CastReader(self.tensor, self.dtype, self.tensor.reader(memory_bytes))


class _CastReader:
    def __init__(self, tensor: Tensor, dtype: str, reader: Reader) -> None:
        self._tensor, self._dtype, self._reader = tensor, dtype, reader

    def read(self, box: Box, out: memoryview) -> None:
        np = numpy()
        data = np.empty(box.size * ITEM_SIZE[self._tensor.dtype], "u1")
        self._reader.read(box, memoryview(data))
        target = np.frombuffer(out, "u1")
        sizes = ITEM_SIZE[self._tensor.dtype], ITEM_SIZE[self._dtype]
        for at in range(0, box.size, _BLOCK):
            end = min(at + _BLOCK, box.size)
            target[at * sizes[1] : end * sizes[1]] = self._cast(data[at * sizes[0] : end * sizes[0]], at, box)

    def _cast(self, data: Any, at: int, box: Box) -> Any:
        np = numpy()
        wide = "f8" if "f64" in (self._tensor.dtype, self._dtype) else "f4"
        with np.errstate(all="ignore"):
            values = decode(data, self._tensor.dtype, wide)
            made = encode(values, self._dtype)
            same = _bits(decode(made, self._dtype, wide)) == _bits(values)
        if not same.all():
            first = int(same.argmin())
            index = [int(i) for i in np.unravel_index(at + first, box.extent)]
            raise MismatchError(
                f"element {index} of the box at {list(box.offset)} is {values[first]!s}, which {self._dtype} does not have",
                tensor=self._tensor.name,
            )
        return made

    def finish(self) -> None:
        self._reader.finish()


def cast(state: State, dtype: str) -> State:
    """Converts all floating-point tensors to this dtype. Torch's name for the dtype is accepted as well.

    Raises InvalidArgumentError for any other dtype name.
    """
    name = OF_TORCH.get(dtype, dtype)
    if name not in FLOATS:
        raise InvalidArgumentError(f"dtype is {dtype!r}, expected one of {', '.join(FLOATS)}, or torch's name of one")
    tensors: dict[str, Tensor] = {
        key: _Cast(tensor, name) if tensor.dtype in FLOATS and tensor.dtype != name else tensor
        for key, tensor in state.tensors.items()
    }
    return dataclasses.replace(state, tensors=tensors)
