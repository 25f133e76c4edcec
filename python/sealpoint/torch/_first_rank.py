# SPDX-License-Identifier: Apache-2.0
"""Tensors that may differ by rank and are stored as one rank holds them."""

from __future__ import annotations

import functools
import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from torch.nn.parallel import DistributedDataParallel

from sealpoint import _tree
from sealpoint._ranks.call import Call

_log = logging.getLogger("sealpoint")
_SHOWN_MAX = 3


def buffers_of_ddp(state: Any, path: _tree.Path = ()) -> Iterator[str]:
    """Returns the paths of buffers in DistributedDataParallel modules, which differ by rank between forward passes."""
    if isinstance(state, DistributedDataParallel):
        yield from (_tree.text_of((*path, name)) for name, _ in state.named_buffers())
    elif isinstance(state, Mapping):
        for key, value in state.items():
            yield from buffers_of_ddp(value, (*path, _tree.part_of(key)))
    elif type(state) in (list, tuple):
        for i, value in enumerate(state):
            yield from buffers_of_ddp(value, (*path, i))


def names_of_others(names: Collection[str], call: Call, writer_ranks: Sequence[int]) -> set[str]:
    """Returns the names that an earlier writing rank also has. An empty list of writers means all ranks. Collective."""
    message = "\0".join(sorted(names)).encode()
    held = [bytes(one).decode().split("\0") for one in call.all_gather(message, "found who stores tensors that may differ")]
    first = {name: rank for rank in reversed(writer_ranks or range(len(held))) for name in held[rank]}
    if call.rank == 0 and names:
        _tell(tuple(sorted(names)))
    return {name for name in names if first.get(name) != call.rank}


@functools.cache
def _tell(names: tuple[str, ...]) -> None:
    """Logs each set of names once."""
    more = f" and {len(names) - _SHOWN_MAX} more" if len(names) > _SHOWN_MAX else ""
    _log.info("tensors that may differ by rank are stored as the first rank has them, without a comparison: %s%s",
              ", ".join(names[:_SHOWN_MAX]), more)
