# SPDX-License-Identifier: Apache-2.0
"""Tensors of floating-point numbers in another dtype, if that has each of their values."""

from __future__ import annotations

import dataclasses
from typing import Any

from sealpoint._dtypes import numpy, numpy_dtype
from sealpoint._errors import InvalidArgumentError, MismatchError
from sealpoint.convert._boxes import Box
from sealpoint.convert._dtypes import ITEM_SIZE
from sealpoint.convert._source import Reader, State, Tensor

FLOATS = ("f16", "bf16", "f32", "f64", "f8_e4m3fn", "f8_e5m2", "f8_e4m3fnuz", "f8_e5m2fnuz")


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
        data = memoryview(bytearray(box.size * ITEM_SIZE[self._tensor.dtype]))
        self._reader.read(box, data)
        np = numpy()
        source = np.frombuffer(data, numpy_dtype(self._tensor.dtype))
        target = np.frombuffer(out, numpy_dtype(self._dtype))
        with np.errstate(all="ignore"):
            target[...] = source.astype(target.dtype)
            back = target.astype(source.dtype)
        same = (back.view("u1") == source.view("u1")).reshape(box.size, -1).all(axis=1)
        if not same.all():
            at = int(same.argmin())
            index = [int(i) for i in np.unravel_index(at, box.extent)]
            raise MismatchError(
                f"element {index} of the box at {list(box.offset)} is {source[at]!s}, which {self._dtype} does not have",
                tensor=self._tensor.name,
            )

    def finish(self) -> None:
        self._reader.finish()


def cast(state: State, dtype: str) -> State:
    """With all tensors of floating-point numbers in this dtype. Errors: InvalidArgumentError (another dtype)."""
    if dtype not in FLOATS:
        raise InvalidArgumentError(f"dtype is {dtype!r}, expected one of {', '.join(FLOATS)}")
    if numpy_dtype(dtype) is None or any(t.dtype in FLOATS and numpy_dtype(t.dtype) is None for t in state.tensors.values()):
        raise InvalidArgumentError("another dtype needs ml_dtypes, which is not installed")
    tensors: dict[str, Tensor] = {
        name: _Cast(tensor, dtype) if tensor.dtype in FLOATS and tensor.dtype != dtype else tensor
        for name, tensor in state.tensors.items()
    }
    return dataclasses.replace(state, tensors=tensors)
