# SPDX-License-Identifier: Apache-2.0
"""Saves of torch states."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Unpack

from sealpoint import _sealpoint
from sealpoint._checkpoint import Path
from sealpoint._keywords import takes
from sealpoint._native import check_none
from sealpoint._ranks import saves
from sealpoint._ranks.call import Call
from sealpoint._ranks.loads import check_on_first
from sealpoint._ranks.session import Session
from sealpoint._save_future import SaveFuture
from sealpoint.torch._arguments import checked_call
from sealpoint.torch._options import SaveAsyncKeywords, SaveKeywords, SaveOptions
from sealpoint.torch._session import check_is_not_one_of_many, session_of, tells_other_ranks
from sealpoint.torch._state import Gathered, collect

Gather = Callable[[Call], Gathered]


def _session(options: SaveOptions, purpose: str = "") -> Session:
    if options.no_dist is not True:
        check_is_not_one_of_many(options.process_group)
    return session_of(options.process_group, purpose=purpose, is_alone=options.no_dist is True)


def save_gathered(gather: Gather, path: Path, options: SaveOptions, purpose: str = "") -> _sealpoint.CommitInfo:
    """Saves the result of gather() on each rank (see ``gather_agreed``)."""
    session = _session(options, purpose)
    with checked_call(session, "save", path, options) as call:
        return saves.save(session, gather(call), path, options)


def save_gathered_async(gather: Gather, path: Path, options: SaveOptions) -> SaveFuture:
    """Saves as ``save_gathered`` does, in the background."""
    session = _session(options)
    with checked_call(session, "save_async", path, options) as call:
        return saves.save_async(session, gather(call), path, options, call.text)


def _look_at(path: Path, options: SaveOptions) -> Callable[[Call], Any]:
    """Returns a check that the save directory has no checkpoint of another program."""
    return lambda call: None if options.series else check_on_first(call, path, check_none)


@tells_other_ranks
@takes(SaveKeywords, SaveOptions)
def save(state_dict: Any, path: Path, **options: Unpack[SaveKeywords]) -> _sealpoint.CommitInfo:
    """Saves the state of all ranks as one checkpoint, which is durable on return.

    Collective: all ranks call it. Without torch.distributed it saves the state of this process.

    Args:
        state_dict: Nested mappings, lists and tuples of tensors (plain, DTensor, ShardedTensor, or with
            ``__create_chunk_list__``), numbers, strings and other small values, and objects with ``state_dict()``.
            Each rank passes its own part. A value held by several ranks under one path is stored once and must be
            equal; wrap values that differ by rank, such as random generator states, in ``per_rank``.
        path: Directory of the new checkpoint, created if missing. With ``series``, directory of the series.
        process_group: Ranks that save together. Default: all. Messages use a private gloo group.
        no_dist: Save this process alone; other processes do not call it.
        compare_replicas: Compare digests of replicated values. False saves one pass over that memory; the copy of the
            first rank is then stored without comparison.
        first_rank: Patterns (``*`` matches any characters) of tensors that may differ by rank, such as
            "*.running_mean". The copy of the first rank that has the tensor is stored without comparison. Buffers of
            DistributedDataParallel modules passed as objects are treated the same way, because torch lets them differ
            between forward passes.
        allow_pickle: Pickle values of other types. Only a load with the same option reads them.
        writer_ranks: Ranks of the group that write, ascending, such as the ranks of one HSDP replica. Default: all.
            Data is never sent between ranks, so each part must be held by one of the writers.
        frozen: Patterns (``*`` matches any characters) of tensors that rarely change, such as an untrained base model.
            Tensors equal to the preceding checkpoint are linked from it instead of written. The preceding checkpoint is
            the newest in the series, otherwise ``parent``, which must then include its location. "learned" detects
            unchanged tensors by comparing digests at saves 1, 2, 4, 8 and so on of this process; each comparison costs
            one pass over the memory. See docs/reference/durability.md.
        full_every: Maximum number of checkpoints that share a linked file; the next one writes it again. Object stores
            copy instead of link.
        staged: Directory on a node-local disk; may differ by rank. The save is committed there, across the disks of all
            nodes, and then copied to ``path`` in the background. See ``wait_for_promotions`` and ``resume_promotions``.
        keep_local: Number of local copies to keep after their promotion.
        unpromoted_max: Maximum number of staged saves awaiting promotion, including this one. When the limit is
            reached, the save waits (``save_async`` waits in the background) and then fails with NoSpaceError, which
            names the pending promotions, their age and their errors.
        unpromoted_wait: Maximum wait in seconds; at most half of ``deadline``.
        promote_memory_bytes: Maximum payload memory of a rank's promotions, in addition to ``memory_budget_bytes``.
        deadline: Timeout in seconds of one exchange with the other ranks. None: no timeout.
        memory_budget_bytes: Staging memory, fixed by the first save of this group. Default: at most a quarter of the
            memory available to this process (machine or control group), divided by the ranks of the machine.
        codec, codec_level, chunk_size_bytes, step, series, parent, provenance, allow_empty, allow_fallback: As for
            ``sealpoint.save``.

    Raises:
        InvalidArgumentError: replicas differ, or parts overlap or leave holes. Names the tensor or object, and the ranks.
        UnsupportedError: a value has an unsupported type. Names its path.
        AlreadyExistsError: the directory already has a checkpoint.
        NoSpaceError: the storage is full, or too many staged saves are pending.
        IoError: the storage failed.
        TimeoutError: a rank did not answer within ``deadline``.
        CommError: the communication between ranks failed.

    Errors are the same on all ranks. The checkpoint then does not exist, unless ``unknown_outcome`` is true.

    Examples:
        >>> import torch, sealpoint.torch as sp
        >>> model = torch.nn.Linear(4, 4)
        >>> optimizer = torch.optim.AdamW(model.parameters())
        >>> sp.save({"model": model, "optimizer": optimizer}, "run", series=True, step=100).step
        100
    """
    chosen = SaveOptions(**options)
    return save_gathered(lambda call: collect(state_dict, call, chosen, _look_at(path, chosen)), path, chosen)


@tells_other_ranks
@takes(SaveAsyncKeywords, SaveOptions)
def save_async(state_dict: Any, path: Path, **options: Unpack[SaveAsyncKeywords]) -> SaveFuture:
    """Saves as ``save`` does, but returns once the state is copied: it may change immediately, and training continues.

    Collective: all ranks call it. If ``memory_budget_bytes`` cannot hold a copy, it returns once the last byte has been
    handed to the disk. Saves run one after the other. Invalid arguments and disagreements between ranks are raised here;
    all other errors come from the future.

    Args:
        background_deadline: Timeout in seconds of the save after this call returned. None: no timeout.

    Examples:
        >>> import torch, sealpoint.torch as sp
        >>> model = torch.nn.Linear(4, 4)
        >>> future = sp.save_async({"model": model}, "checkpoint")
        >>> model.weight.data.zero_()  # does not change the checkpoint
        tensor(...)
        >>> future.result().directory
        'checkpoint'
    """
    chosen = SaveOptions(**options)
    return save_gathered_async(lambda call: collect(state_dict, call, chosen, _look_at(path, chosen)), path, chosen)
