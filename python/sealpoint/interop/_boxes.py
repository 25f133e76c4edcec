# SPDX-License-Identifier: Apache-2.0
"""Boxes of tensors: offsets and extents, in elements per dimension."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from sealpoint._errors import LimitExceededError

Extents = tuple[int, ...]
_LOOKS_MAX = 20_000_000


class Box(NamedTuple):
    offset: Extents
    extent: Extents

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.extent)


def whole(shape: Extents) -> Box:
    return Box((0,) * len(shape), shape)


def common(a: Box, b: Box) -> Box | None:
    """Returns the intersection of two boxes, or None if the intersection is empty."""
    offset = tuple(max(x, y) for x, y in zip(a.offset, b.offset, strict=True))
    ends = (min(x + n, y + m) for x, n, y, m in zip(*a, *b, strict=True))
    extent = tuple(end - begin for begin, end in zip(offset, ends, strict=True))
    return Box(offset, extent) if all(n > 0 for n in extent) else None


def within(inner: Box, outer: Box) -> Box:
    """Returns the box ``inner`` with offsets relative to the box ``outer``."""
    return Box(tuple(x - y for x, y in zip(inner.offset, outer.offset, strict=True)), inner.extent)


def slabs(box: Box, count_max: int) -> Iterator[Box]:
    """Cuts a box into consecutive boxes in row-major order. Each of them has at most ``count_max`` elements."""
    inner, dim = 1, len(box.extent)
    while dim > 0 and inner * box.extent[dim - 1] <= count_max:
        dim -= 1
        inner *= box.extent[dim]
    if dim == 0:
        yield box
        return
    step = max(1, count_max // inner)
    dim -= 1
    for index in itertools.product(*(range(n) for n in box.extent[:dim])):
        for begin in range(0, box.extent[dim], step):
            local = (*index, begin, *(0 for _ in box.extent[dim + 1 :]))
            extent = (*(1 for _ in index), min(step, box.extent[dim] - begin), *box.extent[dim + 1 :])
            yield Box(tuple(x + y for x, y in zip(box.offset, local, strict=True)), extent)


def run_of(slab: Box, outer: Box) -> tuple[int, int]:
    """Returns (begin, end): the range of the elements of ``slab`` within ``outer``, in row-major order."""
    begin = position(within(slab, outer).offset, outer.extent)
    return begin, begin + slab.size


def position(index: Sequence[int], extent: Extents) -> int:
    """Returns the row-major position of the element with this index."""
    at = 0
    for i, n in zip(index, extent, strict=True):
        at = at * n + i
    return at


def runs(local: Box, extent: Extents) -> Iterator[tuple[int, int]]:
    """Yields the contiguous runs of a box ``local`` within a larger box with this extent, as (position, count), in order."""
    inner, dim = 1, len(extent)
    while dim > 0 and local.extent[dim - 1] == extent[dim - 1]:
        dim -= 1
        inner *= extent[dim]
    if dim == 0:
        yield 0, inner
        return
    dim -= 1
    count = inner * local.extent[dim]
    rest = (0,) * (len(extent) - dim - 1)
    for index in itertools.product(*(range(x, x + n) for x, n in zip(local.offset[:dim], local.extent[:dim], strict=True))):
        yield position((*index, local.offset[dim], *rest), extent), count


def gap_of(boxes: Sequence[Box], shape: Extents) -> str | None:
    """Explains why these boxes do not tile a tensor of this shape (hole, overlap, box outside). Returns None if they tile it."""
    for box in boxes:
        if len(box.offset) != len(shape) or any(x < 0 or n < 0 or x + n > m for x, n, m in zip(*box, shape, strict=True)):
            return f"box {list(box.extent)} at {list(box.offset)} lies outside of {list(shape)}"
    found = sum(box.size for box in boxes)
    if found < math.prod(shape):
        return f"{found} elements of {math.prod(shape)} are stored"
    overlap = _overlap_of([box for box in boxes if box.size > 0])
    return f"two boxes share the element at {list(overlap)}" if overlap is not None else None


def _overlap_of(boxes: list[Box]) -> Extents | None:
    """Returns an element that two boxes share, or None. Sweeps along the dimension with the largest number of distinct offsets.

    Raises LimitExceededError if the search would take too long.
    """
    if boxes and not boxes[0].extent:
        return () if len(boxes) > 1 else None
    if _is_grid(boxes):
        return None
    dim = max(range(len(boxes[0].extent)), key=lambda dim: len({box.offset[dim] for box in boxes})) if boxes else 0
    active: list[Box] = []
    looks = 0
    for box in sorted(boxes, key=lambda box: box.offset[dim]):
        active = [other for other in active if other.offset[dim] + other.extent[dim] > box.offset[dim]]
        looks += len(active)
        if looks > _LOOKS_MAX:
            raise LimitExceededError(
                f"{len(boxes)} boxes of a tensor are irregular, expected a grid or fewer boxes"
            )
        for other in active:
            shared = common(box, other)
            if shared is not None:
                return shared.offset
        active.append(box)
    return None


def _is_grid(boxes: list[Box]) -> bool:
    """Tells whether the boxes are the cells of a grid, each exactly once. Most tensors have such a grid."""
    if len({box.offset for box in boxes}) != len(boxes):
        return False
    ends: list[dict[int, int]] = [{} for _ in boxes[0].extent] if boxes else []
    for box in boxes:
        for cut, x, n in zip(ends, *box, strict=True):
            if cut.setdefault(x, x + n) != x + n:
                return False
    for cut in ends:
        begins = sorted(cut)
        if any(cut[a] > b for a, b in itertools.pairwise(begins)):
            return False
    return True
