# SPDX-License-Identifier: Apache-2.0
"""Tensors over memory that this process may only read."""

from __future__ import annotations

import mmap
import warnings
from collections.abc import Iterable

import torch

from sealpoint._errors import UnsupportedError
from sealpoint.torch._dtypes import DTYPE_OF


def views_of(memory: mmap.mmap, places: Iterable[tuple[str, str, tuple[int, ...], int, int]]) -> dict[str, torch.Tensor]:
    """Returns tensors over parts of the memory, by name. ``places``: name, dtype, shape, offset and size in bytes of each.

    The tensors keep the mapping alive. Raises UnsupportedError if torch lacks a dtype.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The given buffer is not writable", UserWarning)
        whole = torch.frombuffer(memory, dtype=torch.uint8)
    found = {}
    for name, dtype, shape, offset, size_bytes in places:
        if dtype not in DTYPE_OF:
            raise UnsupportedError(f"torch has no dtype {dtype}", tensor=name)
        found[name] = whole[offset : offset + size_bytes].view(DTYPE_OF[dtype]).view(shape)
    return found
