# SPDX-License-Identifier: Apache-2.0
"""Saving pytrees."""

from __future__ import annotations

from typing import Any, Unpack

from sealpoint import _sealpoint
from sealpoint._checkpoint import Path
from sealpoint._keywords import takes
from sealpoint._options import SaveOptions
from sealpoint._ranks import saves
from sealpoint._ranks.arguments import checked_call
from sealpoint._save_future import SaveFuture
from sealpoint.jax._options import SaveAsyncKeywords, SaveKeywords
from sealpoint.jax._session import session, tells_other_processes
from sealpoint.jax._state import collect


@tells_other_processes
@takes(SaveKeywords, SaveOptions)
def save(state: Any, path: Path, **options: Unpack[SaveKeywords]) -> _sealpoint.CommitInfo:
    """Saves a pytree of all processes as one checkpoint, which is durable when this returns. All processes call it.

    Several processes are those of ``jax.distributed``; without it, the devices of this one are all.

    Args:
        state: a pytree of arrays of JAX in any sharding, arrays of numpy, keys of ``jax.random``, numbers, strings and
            other small values. The same structure on all processes. Names of tensors are the paths of their leaves, joined
            by dots, as ``sealpoint.torch`` has them. What several devices hold is stored once; ``per_rank`` marks values
            that differ by process. Arrays on GPUs and TPUs are copied to the host first.
        path: the new checkpoint's directory, made if it is missing; with ``series`` the directory of the series.
        series, step, parent, provenance, codec, codec_level, chunk_size_bytes, allow_empty, allow_fallback: as for
            ``sealpoint.save``.
        compare_replicas, allow_pickle, frozen, full_every, deadline, memory_budget_bytes: as for ``sealpoint.torch.save``.

    Errors, the same on all processes: InvalidArgumentError, UnsupportedError (a value of another type, a dtype such as int4;
    names its path), AlreadyExistsError, NoSpaceError, IoError, TimeoutError, CommError. There is no such checkpoint then,
    unless ``unknown_outcome``.
    """
    chosen = SaveOptions(**options)
    ranks = session()
    with checked_call(ranks, "save", path, chosen, same=saves.SAME) as call:
        return saves.save(ranks, collect(state, call, chosen), path, chosen)


@tells_other_processes
@takes(SaveAsyncKeywords, SaveOptions)
def save_async(state: Any, path: Path, **options: Unpack[SaveAsyncKeywords]) -> SaveFuture:
    """As ``save``, but returns when the state is copied: its arrays may be donated at once, and training goes on meanwhile.

    Errors of the arguments, and of processes that disagree, are raised here; all others come from the future.

    Args:
        background_deadline: seconds that the save may take once this returned; None: no limit.
    """
    chosen = SaveOptions(**options)
    ranks = session()
    with checked_call(ranks, "save_async", path, chosen, same=saves.SAME) as call:
        return saves.save_async(ranks, collect(state, call, chosen), path, chosen, call.text)
