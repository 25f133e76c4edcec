# SPDX-License-Identifier: Apache-2.0
"""Tensor indices: converts ``ck["w"][0:4, ..., -1]`` into a box and a selection within the box."""

from __future__ import annotations

import operator
from typing import Any, NamedTuple


class Selection(NamedTuple):
    """A box of a tensor, in elements per dimension, and the selected elements within the box."""

    offset: tuple[int, ...]
    extent: tuple[int, ...]
    # False for dimensions removed by an integer index.
    kept: tuple[bool, ...]
    # One step per dimension. Step 1 selects every position of the box.
    steps: tuple[int, ...]

    @property
    def counts(self) -> tuple[int, ...]:
        """The number of selected positions in each dimension."""
        return tuple(-(-n // step) for n, step in zip(self.extent, self.steps, strict=True))

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the selection, without the dimensions that are indexed by integers."""
        return tuple(n for n, kept in zip(self.counts, self.kept, strict=True) if kept)

    @property
    def is_empty(self) -> bool:
        return 0 in self.extent


def select(index: Any, shape: tuple[int, ...]) -> Selection:
    """Converts integers, slices and Ellipsis as numpy does. Raises TypeError for any other index."""
    entries = _expand(index if isinstance(index, tuple) else (index,), len(shape))
    offset, extent, kept, steps = [], [], [], []
    for dim, (entry, size) in enumerate(zip(entries, shape, strict=True)):
        if isinstance(entry, slice):
            start, stop, step = entry.indices(size) if _step_of(entry) > 0 else (0, 0, 1)
            count = max(0, -((start - stop) // step))
            offset.append(start if count else 0)
            extent.append((count - 1) * step + 1 if count else 0)
            kept.append(True)
            steps.append(step)
        else:
            offset.append(_position(entry, size, dim))
            extent.append(1)
            kept.append(False)
            steps.append(1)
    return Selection(tuple(offset), tuple(extent), tuple(kept), tuple(steps))


def whole(shape: tuple[int, ...]) -> Selection:
    return Selection((0,) * len(shape), shape, (True,) * len(shape), (1,) * len(shape))


def _expand(entries: tuple[Any, ...], ndim: int) -> list[Any]:
    """Returns the index with one entry per dimension."""
    dots = [i for i, entry in enumerate(entries) if entry is Ellipsis]
    if len(dots) > 1:
        raise IndexError("an index has at most one ellipsis ('...')")
    missing = ndim - (len(entries) - len(dots))
    if missing < 0:
        raise IndexError(f"{len(entries) - len(dots)} indices for a tensor of {ndim} dimensions")
    at = dots[0] if dots else len(entries)
    return [*entries[:at], *[slice(None)] * missing, *entries[at + 1 :]]


def _step_of(entry: slice) -> int:
    step = 1 if entry.step is None else operator.index(entry.step)
    if step < 1:
        raise ValueError(f"the step of a slice is {step}, expected at least 1; reverse the result instead")
    return step


def _position(entry: Any, size: int, dim: int) -> int:
    if entry is None or isinstance(entry, bool):
        raise TypeError(f"{entry} is not an index of a tensor, expected integers, slices and '...'")
    try:
        position = operator.index(entry)
    except TypeError:
        name = type(entry).__name__
        raise TypeError(f"{name} is not an index of a tensor, expected integers, slices and '...'") from None
    if not -size <= position < size:
        raise IndexError(f"index {position} is out of bounds for dimension {dim} of {size} elements")
    return position + size if position < 0 else position
