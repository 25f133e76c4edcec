# SPDX-License-Identifier: Apache-2.0
"""Saving states of torch."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Unpack

from sealpoint import _sealpoint
from sealpoint._arguments import provenance_of
from sealpoint._checkpoint import Path
from sealpoint._keywords import takes
from sealpoint._native import check_none
from sealpoint._save import parent_of
from sealpoint._save_future import SaveFuture
from sealpoint.torch._arguments import checked_call, tells_other_ranks
from sealpoint.torch._options import SaveAsyncKeywords, SaveKeywords, SaveOptions
from sealpoint.torch._session import Call, Session, check_is_not_one_of_many, session_of
from sealpoint.torch._staged import watch, watch_save
from sealpoint.torch._state import Gathered, collect, look_first

# Options that must be the same on all ranks.
_SAME = ("series", "compare_replicas", "allow_empty", "allow_fallback", "writer_ranks", "first_rank", "deadline",
         "background_deadline", "keep_local", "unpromoted_max", "unpromoted_wait", "promote_memory_bytes", "frozen",
         "full_every")  # fmt: skip

Gather = Callable[[Call], Gathered]


class _Prepared(NamedTuple):
    """A save of all ranks whose states were gathered, and which none of them refused."""

    call: Call
    session: Session
    saver: _sealpoint.Saver
    arguments: dict[str, Any]  # of the saver's functions


@contextlib.contextmanager
def _prepared(kind: str, gather: Gather, path: Path, options: SaveOptions, purpose: str) -> Iterator[_Prepared]:
    """Owns what the memory of the state is borrowed from, until the save returns."""
    if options.no_dist is not True:
        check_is_not_one_of_many(options.process_group)
    session = session_of(options.process_group, purpose=purpose, is_alone=options.no_dist is True)
    with checked_call(session, kind, path, options, same=_SAME) as call:
        gathered = gather(call)
        arguments = {
            "target": (path, options.series, parent_of(options.parent)),
            "state": gathered.state,
            "step": options.step,
            "mesh": [],
            "provenance": provenance_of(options.provenance),
            "allow_empty": options.allow_empty,
            "allow_fallback": options.allow_fallback,
            "local": options.staged,
        }
        yield _Prepared(call, session, session.saver(options), arguments)


def save_gathered(gather: Gather, path: Path, options: SaveOptions, purpose: str = "") -> _sealpoint.CommitInfo:
    """Saves what gather() returns on each rank (see ``gather_agreed``)."""
    with _prepared("save", gather, path, options, purpose) as prepared:
        info = prepared.saver.save(**prepared.arguments)
        if options.staged is not None:
            watch(prepared.saver)
        return info


def save_gathered_async(gather: Gather, path: Path, options: SaveOptions) -> SaveFuture:
    """The same, in the background."""
    with _prepared("save_async", gather, path, options, "") as prepared:
        pending = prepared.saver.save_async(**prepared.arguments)
        session, saver, is_staged = prepared.session, prepared.saver, options.staged is not None

        def end(error: BaseException | None) -> None:
            if error is not None:
                session.note_failure(saver, error)
            elif is_staged:
                watch(saver)

        future = SaveFuture(pending, saver, prepared.call.text, end)
        if is_staged:
            watch_save(future)
        return future


def _look_at(path: Path, options: SaveOptions) -> Callable[[Call], Any]:
    """What looks whether a checkpoint of another program is in the directory of a save."""
    return lambda call: None if options.series else look_first(call, path, check_none)


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
