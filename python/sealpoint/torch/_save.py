# SPDX-License-Identifier: Apache-2.0
"""Saving states of torch."""

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

# Options that must be the same on all ranks.
_SAME = (*saves.SAME, "writer_ranks", "first_rank", "keep_local", "unpromoted_max", "unpromoted_wait", "promote_memory_bytes")

Gather = Callable[[Call], Gathered]


def _session(options: SaveOptions, purpose: str = "") -> Session:
    if options.no_dist is not True:
        check_is_not_one_of_many(options.process_group)
    return session_of(options.process_group, purpose=purpose, is_alone=options.no_dist is True)


def save_gathered(gather: Gather, path: Path, options: SaveOptions, purpose: str = "") -> _sealpoint.CommitInfo:
    """Saves what gather() returns on each rank (see ``gather_agreed``)."""
    session = _session(options, purpose)
    with checked_call(session, "save", path, options, same=_SAME) as call:
        return saves.save(session, gather(call), path, options)


def save_gathered_async(gather: Gather, path: Path, options: SaveOptions) -> SaveFuture:
    """The same, in the background."""
    session = _session(options)
    with checked_call(session, "save_async", path, options, same=_SAME) as call:
        return saves.save_async(session, gather(call), path, options, call.text)


def _look_at(path: Path, options: SaveOptions) -> Callable[[Call], Any]:
    """What looks whether a checkpoint of another program is in the directory of a save."""
    return lambda call: None if options.series else check_on_first(call, path, check_none)


@tells_other_ranks
@takes(SaveKeywords, SaveOptions)
def save(state_dict: Any, path: Path, **options: Unpack[SaveKeywords]) -> _sealpoint.CommitInfo:
    """Saves the state of all ranks as one checkpoint, which is durable when this returns. All ranks call it.

    Without torch.distributed it saves the state of this process.

    Args:
        state_dict: mappings, lists and tuples, nested as you like, of tensors (plain, DTensor, ShardedTensor, or with
            ``__create_chunk_list__``), numbers, strings and other small values, and objects with ``state_dict()``.
            Each rank gives what it has. What several ranks hold under one path is stored once, and must be equal;
            wrap in ``per_rank`` what differs, such as the states of random generators.
        path: the new checkpoint's directory, made if it is missing; with ``series`` the directory of the series.
        process_group: whose ranks save together; None: all. Messages go through a group of gloo of our own.
        no_dist: this process saves alone, whatever others there are, and they do not call it.
        series, step, parent, provenance, codec, codec_level, chunk_size_bytes, allow_empty, allow_fallback: as for
            ``sealpoint.save``.
        compare_replicas: digests of what several ranks hold are compared. Off saves one pass over that memory; each of these
            tensors is then stored as the first rank that has it holds it.
        first_rank: patterns (``*`` stands for any characters) of names of tensors that may differ by rank, such as
            "*.running_mean": stored as the first rank that has them holds them, and not compared. So are the buffers of
            modules in DistributedDataParallel that are given as they are, which torch lets differ between forward passes.
        allow_pickle: values of other types are stored as pickles, which only a load with the same option reads.
        writer_ranks: ranks of the group that write, ascending, such as those of one HSDP replica; none: all. What a
            rank holds is never sent to another one, so each part must be held by one of them.
        frozen: patterns (``*`` stands for any characters) of names of tensors that mostly stay as they are, such as a base
            that is not trained: those that are as in the checkpoint before are linked from there, not written. In a series
            that is the newest one, else ``parent``, which must say where it is. Or "learned": those that did not change
            between saves of this process are taken for such. It compares digests at its saves 1, 2, 4, 8 and so on, which
            cost a pass over the memory; a new process begins anew. See docs/reference/durability.md.
        full_every: at most so many checkpoints share one file of them; the next one writes it anew. (Object stores copy.)
        staged: a directory on a disk of this node, which may differ by rank: the save is committed there, on the disks
            of all nodes together, and copied to ``path`` behind the training; see ``wait_for_promotions``,
            ``resume_promotions``.
        keep_local: how many of these copies stay once they are in their final place.
        unpromoted_max: the most staged saves that are not in their final place, this one included. One that would be more
            first waits, in ``save_async`` behind the training, and then fails alone (NoSpaceError, which says what is
            behind, since when, and why).
        unpromoted_wait: seconds that it waits at most, and no longer than half of ``deadline``.
        promote_memory_bytes: what a rank's copying to the final place holds of payload, besides ``memory_budget_bytes``.
        deadline: seconds that one exchange with the other ranks may take; None: no limit.
        memory_budget_bytes: staging memory, from the first save of this group on; None: at most a quarter of the memory that
            the machine, or its control group, lets this process have, divided by the ranks of the machine.

    Errors, the same on all ranks: InvalidArgumentError (differing replicas, holes, overlaps; names the tensor or the
    object, and the ranks), UnsupportedError (a value of another type; names its path), AlreadyExistsError,
    NoSpaceError, IoError, TimeoutError, CommError. There is no such checkpoint then, unless ``unknown_outcome``.
    """
    chosen = SaveOptions(**options)
    return save_gathered(lambda call: collect(state_dict, call, chosen, _look_at(path, chosen)), path, chosen)


@tells_other_ranks
@takes(SaveAsyncKeywords, SaveOptions)
def save_async(state_dict: Any, path: Path, **options: Unpack[SaveAsyncKeywords]) -> SaveFuture:
    """As ``save``, but returns when the state is copied: it may change at once, and training goes on meanwhile.

    Without room for a copy in ``memory_budget_bytes``, it returns when the last byte is on its way to the disk. Saves
    are carried out one after the other. Errors of the arguments, and of ranks that disagree, are raised here; all
    others come from the future.

    Args:
        background_deadline: seconds that the save may take once this returned; None: no limit.
    """
    chosen = SaveOptions(**options)
    return save_gathered_async(lambda call: collect(state_dict, call, chosen, _look_at(path, chosen)), path, chosen)
