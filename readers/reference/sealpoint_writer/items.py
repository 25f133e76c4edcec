# SPDX-License-Identifier: Apache-2.0
"""Tensors and objects as a writer declares them, and their tables (schema/index.fbs; R-IDX-05, 09 to 12)."""

import collections
import dataclasses
import math
import unicodedata

from sealpoint_reference.registries import DTYPES

from .flatbuffer import List, Scalar, Table, Text, Vector, shard_ref, u8, u16, u64

# A box of a tensor, and of its elements in row-major order those of the run [begin, end).
Region = collections.namedtuple("Region", "offset extent begin end")


def whole(shape):
    return Region((0,) * len(shape), tuple(shape), 0, math.prod(shape))


def check_text(text, bytes_max=1024):
    """R-IDX-05. Returns the bytes."""
    data = text.encode()
    if not 0 < len(data) <= bytes_max or any(unicodedata.category(character) == "Cc" for character in text):
        raise ValueError(f"{text!r} has {len(data)} bytes or a control character; a name is 1 to {bytes_max} bytes without")
    return data


@dataclasses.dataclass(frozen=True)
class Tensor:
    """What all that hold a part of a tensor declare alike. Sizes are in bytes; the chunk size is a power of two."""
    name: str
    shape: tuple
    dtype: int
    element_size: int
    chunk_size: int = 2**22
    placement: tuple = ()

    def __post_init__(self):
        for text in (self.name, *self.placement):
            check_text(text)
        registered = DTYPES.get(self.dtype, (None, self.element_size))[1]
        if self.dtype == 0 or self.element_size != registered or self.element_size not in {2**n for n in range(9)}:
            raise ValueError(f"{self.name}: elements of {self.element_size} bytes of dtype {self.dtype}")
        if len(self.shape) > 32 or len(self.placement) > 32 or self.raw_bytes >= 2**64:
            raise ValueError(f"{self.name}: more than 32 dimensions, 32 placements or 2^64 bytes")
        check_chunk_size(self)

    @property
    def raw_bytes(self):
        return math.prod(self.shape) * self.element_size

    def table(self, grid, boxes, refs, fingerprint=None):
        """Exactly one of grid and boxes is a table, neither if the tensor is empty."""
        placement = List([Text(text.encode()) for text in self.placement]) if self.placement else None
        return Table([Text(self.name.encode()), Vector("Q", list(self.shape)), grid, boxes, Vector("II", refs),
                      u16(self.dtype), u16(self.element_size), u8(self.chunk_size.bit_length() - 1), placement,
                      *([Scalar("QQ", *fingerprint, align=1)] if fingerprint else [])])


@dataclasses.dataclass(frozen=True)
class Object:
    name: str
    media_type: str
    raw_bytes: int
    chunk_size: int = 2**22

    element_size = 1

    def __post_init__(self):
        check_text(self.name)
        check_text(self.media_type, 255)
        check_chunk_size(self)

    @property
    def shape(self):
        return (self.raw_bytes,)

    def table(self, ref):
        """An empty object has the shard (0, 0), which is none (R-IDX-22)."""
        return Table([Text(self.name.encode()), Text(self.media_type.encode()), u64(self.raw_bytes), shard_ref(*ref),
                      u8(self.chunk_size.bit_length() - 1)])


def check_chunk_size(item):
    """R-IDX-10."""
    if item.chunk_size not in {2**n for n in range(12, 28)}:
        raise ValueError(f"{item.name}: chunks of {item.chunk_size} bytes; a power of two from 2^12 to 2^27 is expected")


def in_order(items):
    """By the bytes of the names (R-IDX-06)."""
    return sorted(items, key=lambda item: item.name.encode())
