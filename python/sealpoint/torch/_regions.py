# SPDX-License-Identifier: Apache-2.0
"""Tensors with caller-defined regions, such as the runs of a distributed optimizer."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import torch

from sealpoint import _arguments
from sealpoint._errors import ArgumentTypeError


class Region(NamedTuple):
    """A box of a tensor, or a run of the elements of a box, and the memory that contains these elements.

    Args:
        tensor: The elements, in the shape of the box; one-dimensional if ``run`` is set.
        offset: Offset of the box in the whole tensor, in elements per dimension.
        extent: Extent of the box. Default: the shape of ``tensor``.
        run: (begin, end): ``tensor`` contains only these elements of the box, in row-major order. Default: all elements
            of the box.

    Examples:
        >>> import torch, sealpoint.torch as sp
        >>> rows = sp.Region(torch.ones(2, 8), (0, 0))  # the first two rows of a tensor
        >>> _ = sp.save({"w": sp.Regions((2, 8), torch.float32, [rows])}, "checkpoint")
        >>> sp.load_full("checkpoint")["w"].shape
        torch.Size([2, 8])
    """

    tensor: torch.Tensor
    offset: Sequence[int]
    extent: Sequence[int] | None = None
    run: tuple[int, int] | None = None


class Regions:
    """The part of one tensor that this rank holds, as caller-defined regions, for use in a state dict.

        {"exp_avg": sp.Regions((4096, 1024), torch.float32, [sp.Region(shard, (0, 0), (2048, 1024), run=(begin, end))])}

    The regions of all ranks must cover the tensor. Regions must not overlap unless they are equal. A save treats the regions like
    any other tensor. A load fills the regions in place, whatever regions the checkpoint has.

    Args:
        shape: Shape of the whole tensor.
        dtype: Dtype of the tensor.
        regions: Regions of this rank; may be empty.

    Raises:
        InvalidArgumentError: a region does not fit the tensor.

    Examples:
        >>> import torch, sealpoint.torch as sp
        >>> flat = torch.arange(6.0)  # elements 2 to 7 of a 3 x 4 tensor, as in a flat optimizer
        >>> part = sp.Region(flat, (0, 0), (3, 4), run=(2, 8))
        >>> head = sp.Region(torch.zeros(2), (0, 0), (3, 4), run=(0, 2))
        >>> tail = sp.Region(torch.zeros(4), (0, 0), (3, 4), run=(8, 12))
        >>> _ = sp.save({"exp_avg": sp.Regions((3, 4), torch.float32, [head, part, tail])}, "checkpoint")
        >>> sp.load_full("checkpoint")["exp_avg"][1]
        tensor([2., 3., 4., 5.])
    """

    def __init__(self, shape: Sequence[int], dtype: torch.dtype, regions: Iterable[Region] = ()) -> None:
        self.shape, self.dtype = tuple(shape), dtype
        self.regions = list(regions)
        _arguments.check(shape=self.shape)
        for region in self.regions:
            if not isinstance(region, Region):
                raise ArgumentTypeError(f"regions has {reprlib.repr(region)}, expected values of Region")
            _arguments.check(offset=region.offset, extent=region.extent, run=region.run)

    def __repr__(self) -> str:
        return f"Regions({list(self.shape)}, {self.dtype}, {len(self.regions)} here)"
