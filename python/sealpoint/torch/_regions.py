# SPDX-License-Identifier: Apache-2.0
"""Tensors whose regions the caller names, such as the runs of a distributed optimizer."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import torch

from sealpoint import _arguments
from sealpoint._errors import ArgumentTypeError


class Region(NamedTuple):
    """A box of a tensor, or a run of its elements, and the memory that holds it.

    Args:
        tensor: the elements: of the box's shape; flat, if there is a run.
        offset: of the box in the whole tensor, in elements per dimension.
        extent: of the box; None: the shape of ``tensor``.
        run: ``tensor`` holds the row-major elements [begin, end) of the box; None: all of them.
    """

    tensor: torch.Tensor
    offset: Sequence[int]
    extent: Sequence[int] | None = None
    run: tuple[int, int] | None = None


class Regions:
    """In a state dict: what this rank holds of one tensor, as regions that the caller names.

        {"exp_avg": sp.Regions((4096, 1024), torch.float32, [sp.Region(shard, (0, 0), (2048, 1024), run=(begin, end))])}

    Over all ranks they are to cover the tensor, and none may overlap another unless it is the same. Saved as any other
    tensor, and loaded in place, whatever regions it was saved as.

    Args:
        shape: of the whole tensor.
        regions: none, if this rank holds nothing of it.

    Errors: InvalidArgumentError.
    """

    def __init__(self, shape: Sequence[int], dtype: torch.dtype, regions: Iterable[Region] = ()) -> None:
        self.shape, self.dtype = tuple(shape), dtype
        self.regions = list(regions)
        _arguments.check(shape=self.shape)
        for one in self.regions:
            if not isinstance(one, Region):
                raise ArgumentTypeError(f"regions has {reprlib.repr(one)}, expected values of Region")
            _arguments.check(offset=one.offset, extent=one.extent, run=one.run)

    def __repr__(self) -> str:
        return f"Regions({list(self.shape)}, {self.dtype}, {len(self.regions)} here)"
