# SPDX-License-Identifier: Apache-2.0
"""Tensors that may differ between ranks. For each such tensor, one rank's copy is stored."""

from __future__ import annotations

import functools
import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch.nn.parallel import DistributedDataParallel

from sealpoint import _tree
from sealpoint._ranks.call import Call
from sealpoint.torch._outline import LEAVES

_log = logging.getLogger("sealpoint")
_SHOWN_MAX = 3


def buffers_of(state: Any, kind: type[torch.nn.Module] = DistributedDataParallel, path: _tree.Path = ()) -> Iterator[str]:
    """Returns the paths of the buffers of modules of this kind.

    Between forward passes of DistributedDataParallel, buffers may differ between ranks.
    """
    if isinstance(state, kind):
        yield from (_tree.text_of((*path, name)) for name, _ in state.named_buffers())
    elif isinstance(state, Mapping):
        for key, value in state.items():
            if type(value) not in LEAVES:
                yield from buffers_of(value, kind, (*path, _tree.part_of(key)))
    elif type(state) in (list, tuple):
        for i, value in enumerate(state):
            yield from buffers_of(value, kind, (*path, i))


def names_of_others(names: Collection[str], call: Call, writer_ranks: Sequence[int]) -> set[str]:
    """Returns the names of tensors that this rank does not store, because a different rank is the first writing rank that has them.

    If ``writer_ranks`` is empty, all ranks write. Collective.
    """
    message = "\0".join(sorted(names)).encode()
    held = [bytes(answer).decode().split("\0") for answer in call.all_gather(message, "chose the ranks that store tensors that "
                                                                                      "may differ")]
    first = {name: rank for rank in reversed(writer_ranks or range(len(held))) for name in held[rank]}
    if call.rank == 0 and names:
        _tell(tuple(sorted(names)))
    return {name for name in names if first.get(name) != call.rank}


@functools.cache
def _tell(names: tuple[str, ...]) -> None:
    """Logs the names, once for each set of names."""
    more = f" and {len(names) - _SHOWN_MAX} more" if len(names) > _SHOWN_MAX else ""
    _log.info("tensors that may differ by rank are stored as the first rank has them, without a comparison: %s%s",
              ", ".join(names[:_SHOWN_MAX]), more)
