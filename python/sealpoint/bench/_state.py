# SPDX-License-Identifier: Apache-2.0
"""The saved states: float32 matrices with rows divided over the ranks, or many small vectors, each on one rank."""

from __future__ import annotations

import dataclasses
import zlib
from typing import Any, NamedTuple

COLUMNS = 1024
BIG_TENSORS = 8
_ELEMENT_BYTES = 4
_SMALL_ELEMENTS = 64


class Spec(NamedTuple):
    """Describes a state.

    ``kind`` "big" has ``tensor_count`` matrices; "small" has ``tensor_count`` vectors of ``columns`` elements.
    """

    kind: str
    tensor_count: int
    rows: int
    columns: int

    @property
    def nbytes(self) -> int:
        return self.tensor_count * self.rows * self.columns * _ELEMENT_BYTES

    def rows_of(self, rank: int, ranks: int) -> range:
        """Returns the rows of a matrix that a rank has."""
        return range(self.rows * rank // ranks, self.rows * (rank + 1) // ranks)

    def names(self) -> list[str]:
        return [f"{self.kind}.{number:05}" for number in range(self.tensor_count)]

    def names_of(self, rank: int, ranks: int) -> list[str]:
        return self.names()[rank::ranks] if self.kind == "small" else self.names()


def big(size_bytes: int, rows_multiple: int) -> Spec:
    """Specifies a state of about this size. The number of rows of each matrix is a multiple of ``rows_multiple``."""
    row_bytes = BIG_TENSORS * COLUMNS * _ELEMENT_BYTES
    return Spec("big", BIG_TENSORS, size_bytes // row_bytes // rows_multiple * rows_multiple, COLUMNS)


def least_size_bytes(rows_multiple: int) -> int:
    return BIG_TENSORS * COLUMNS * _ELEMENT_BYTES * rows_multiple


def small(count: int) -> Spec:
    return Spec("small", count, 1, _SMALL_ELEMENTS)


def seed_of(name: str, generation: int) -> int:
    """Returns the seed of a tensor's values."""
    return zlib.crc32(f"{name}/{generation}".encode())


@dataclasses.dataclass
class State:
    """The state of a rank.

    ``tensors``: the rank's own parts. ``given``: the same memory, in the form that is passed to libraries that support several
    ranks.
    """

    spec: Spec
    rank: int
    ranks: int
    tensors: dict[str, Any]
    given: dict[str, Any]
