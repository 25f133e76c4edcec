# SPDX-License-Identifier: Apache-2.0
"""Saves states of torch programs."""

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


def session_for(options: SaveOptions, purpose: str = "") -> Session:
    """Returns the session of a save. Raises InvalidArgumentError if the job has other ranks, of which torch does not know."""
    if options.no_dist is not True:
        check_is_not_one_of_many(options.process_group)
    return session_of(options.process_group, purpose=purpose, is_alone=options.no_dist is True)


def save_gathered(gather: Gather, path: Path, options: SaveOptions, purpose: str = "") -> _sealpoint.CommitInfo:
    """Saves the state that gather() returns on each rank (see ``gather_agreed``)."""
    session = session_for(options, purpose)
    with checked_call(session, "save", path, options) as call:
        return saves.save(session, gather(call), path, options)


def save_gathered_async(gather: Gather, path: Path, options: SaveOptions) -> SaveFuture:
    """Saves as ``save_gathered`` does, in the background."""
    session = session_for(options)
    with checked_call(session, "save_async", path, options) as call:
        return saves.save_async(session, gather(call), path, options, call.text)


def _look_at(path: Path, options: SaveOptions) -> Callable[[Call], Any]:
    """Returns a function that checks that the save directory has no checkpoint of a different program."""
    return lambda call: None if options.series else check_on_first(call, path, check_none)


@tells_other_ranks
@takes(SaveKeywords, SaveOptions)
def save(state_dict: Any, path: Path, **options: Unpack[SaveKeywords]) -> _sealpoint.CommitInfo:
    """Saves the state of all ranks as one checkpoint. The checkpoint is durable when the function returns.

    Collective: all ranks call it. If torch.distributed is not initialized, the function saves the state of this process.

    Args:
        state_dict: Nested mappings, lists and tuples. They contain tensors (plain, DTensor, ShardedTensor, or with
            ``__create_chunk_list__``), numbers, strings, other small values, and objects with ``state_dict()``. Each rank passes
            its own part. If several ranks have a value under the same path, the value must be equal on these ranks, and is stored
            once. Wrap values that differ between ranks, such as random generator states, in ``per_rank``.
        path: Directory of the new checkpoint, created if missing. With ``series``, directory of the series.
        process_group: Ranks that save together. Default: all ranks. Messages use a private gloo group.
        no_dist: Save only the state of this process. Other processes do not call the function.
        compare_replicas: Compare digests of replicated values. If False, the value of the first rank is stored without
            comparison, which avoids one pass over the memory of these values.
        first_rank: Patterns (``*`` matches any characters) of tensors that may differ between ranks, such as
            "*.running_mean". Only the first rank that has such a tensor stores it; its values are not compared. If a
            DistributedDataParallel module is passed as an object, its buffers are treated in the same way, because
            torch lets buffers differ between forward passes.
        allow_pickle: Pickle values of types that cannot be stored otherwise. Only a load with ``allow_pickle`` reads
            these values.
        writer_ranks: Ranks of the group that write, in ascending order, such as the ranks of one HSDP replica. Default:
            all ranks. Data is never sent between ranks, so each part of the state must be present on one of these
            ranks.
        frozen: Patterns (``*`` matches any characters) of tensors that rarely change, such as an untrained base model.
            If such a tensor is equal to the tensor in the preceding checkpoint, the save links the stored tensor
            instead of writing it again. In a series, the preceding checkpoint is the newest one. Outside a series, it
            is the checkpoint passed as ``parent``, which must then include the directory. "learned" detects unchanged
            tensors by comparing digests. The comparison runs at saves 1, 2, 4, 8 and so on of this process, and costs
            one pass over the memory each time. See docs/reference/durability.md.
        full_every: Maximum number of checkpoints that share a linked file; the next checkpoint writes the file again.
            Object stores copy the file instead of linking it.
        staged: Directory on a node-local disk; may differ between ranks. The save is first committed across the local
            disks of all nodes, and then copied to ``path`` in the background. See ``wait_for_promotions`` and
            ``resume_promotions``.
        keep_local: Number of promoted checkpoints whose local copies are kept.
        unpromoted_max: Maximum number of staged saves awaiting promotion, including this save. When the limit is
            reached, the save waits up to ``unpromoted_wait`` seconds for a promotion to end (``save_async`` waits in
            the background). If no promotion ends, the save fails with NoSpaceError. This error names the oldest save
            that awaits promotion, its age and its last error.
        unpromoted_wait: Maximum time in seconds that a save waits when ``unpromoted_max`` is reached. At most half of
            ``deadline``.
        promote_memory_bytes: Maximum payload memory for promotions on each rank, in addition to
            ``memory_budget_bytes``.
        deadline: Timeout in seconds for each exchange with the other ranks. None: no timeout.
        memory_budget_bytes: Size of the staging memory. The first save of a group fixes this size. Default: at most a
            quarter of the memory available to this process, divided by the number of ranks on the machine. A control
            group may limit the available memory.
        codec, codec_level, chunk_size_bytes, stored_cuts, fingerprints, step, series, parent: As for
            ``sealpoint.save``.
        provenance, attributes, allow_empty, allow_fallback: As for ``sealpoint.save``.

    Raises:
        InvalidArgumentError: replicas differ, or parts overlap or leave holes. The error names the tensor or object, and the ranks.
        UnsupportedError: a value has an unsupported type. The error names the path of the value.
        AlreadyExistsError: the directory already has a checkpoint.
        NoSpaceError: the storage is full, or too many staged saves are pending.
        IoError: the storage failed.
        TimeoutError: a rank did not answer within ``deadline``.
        CommError: the communication between ranks failed.

    Errors are the same on all ranks. After an error the checkpoint does not exist, unless ``unknown_outcome`` is true.

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
    """Saves as ``save`` does, but returns when the state is copied, so that training can change the state immediately.

    Collective: all ranks call it. If the copy does not fit into ``memory_budget_bytes``, the function returns later: after the last
    byte was copied and the write of this byte has started. Saves run one after another. Invalid arguments and disagreements between
    ranks are raised by this function; all other errors are raised by the future.

    Args:
        state_dict, path, further options: As for ``save``.
        background_deadline: Timeout in seconds for the part of the save that runs after the call has returned. None: no
            timeout.

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
