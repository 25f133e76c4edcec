# SPDX-License-Identifier: Apache-2.0
"""Functions that save pytrees."""

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
    """Saves a pytree of all processes as one checkpoint. The checkpoint is durable when the function returns.

    Collective: all processes of ``jax.distributed`` call it. If jax.distributed is not initialized, the function saves the state of
    this process.

    Args:
        state: Pytree with the same structure on all processes. Its leaves are JAX arrays with any sharding, numpy arrays,
            ``jax.random`` keys, numbers, strings and other small values. Tensor names are the leaf paths joined by dots, as in
            ``sealpoint.torch``. Replicated values are stored once; ``per_rank`` marks values that differ between processes. Arrays
            on GPUs and TPUs are first copied to the host.
        path: Directory of the new checkpoint, created if missing. If ``series`` is true, directory of the series.
        codec, codec_level, chunk_size_bytes, stored_cuts, fingerprints, step, series, parent: As for
            ``sealpoint.save``.
        provenance, attributes, allow_empty, allow_fallback: As for ``sealpoint.save``.
        compare_replicas, allow_pickle, frozen, full_every, deadline, memory_budget_bytes: As for
            ``sealpoint.torch.save``.

    Raises:
        InvalidArgumentError: an argument is invalid, or replicas differ.
        UnsupportedError: a value has an unsupported type, or a dtype such as int4. The error names the path of the value.
        AlreadyExistsError: the directory already has a checkpoint.
        NoSpaceError: the storage is full.
        IoError: the storage failed.
        TimeoutError: a process did not answer within ``deadline``.
        CommError: the communication between processes failed.

    Errors are the same on all processes. After an error, the checkpoint does not exist, unless ``unknown_outcome`` of the error is
    true.

    Examples:
        >>> import jax.numpy, sealpoint.jax as sp
        >>> sp.save({"w": jax.numpy.ones((4, 8))}, "run", series=True, step=100).step
        100
    """
    chosen = SaveOptions(**options)
    ranks = session()
    with checked_call(ranks, "save", path, chosen) as call:
        return saves.save(ranks, collect(state, call, chosen), path, chosen)


@tells_other_processes
@takes(SaveAsyncKeywords, SaveOptions)
def save_async(state: Any, path: Path, **options: Unpack[SaveAsyncKeywords]) -> SaveFuture:
    """Saves as ``save`` does, but returns once the state is copied, so that arrays may be donated immediately.

    Collective: all processes of ``jax.distributed`` call it. Invalid arguments and disagreements between processes are
    raised by this function; all other errors are raised by the future.

    Args:
        state, path, further options: As for ``save``.
        background_deadline: As for ``sealpoint.torch.save_async``.

    Examples:
        >>> import jax.numpy, sealpoint.jax as sp
        >>> future = sp.save_async({"w": jax.numpy.ones((4, 8))}, "checkpoint")
        >>> future.result().directory
        'checkpoint'
    """
    chosen = SaveOptions(**options)
    ranks = session()
    with checked_call(ranks, "save_async", path, chosen) as call:
        return saves.save_async(ranks, collect(state, call, chosen), path, chosen, call.text)
