# SPDX-License-Identifier: Apache-2.0
"""Saving states of torch."""

from __future__ import annotations

import concurrent.futures
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch.distributed as dist

from sealpoint import _sealpoint
from sealpoint._checkpoint import Path
from sealpoint._communicator import Communicator
from sealpoint._errors import CancelledError, Error
from sealpoint._save import CHUNK_SIZE_DEFAULT_BYTES, Codec, Parent, parent_of
from sealpoint.torch._session import Session, note_failure, session_of
from sealpoint.torch._state import Gathered, collect

DEADLINE_DEFAULT_SECONDS = 1800.0
BACKGROUND_DEADLINE_DEFAULT_SECONDS = 7200.0


class SaveFuture(concurrent.futures.Future[_sealpoint.CommitInfo]):
    """A save that goes on in the background, and ends by itself.

    ``result()`` waits for it, ``done()`` looks, ``add_done_callback()`` calls back on a thread of this object. All
    ranks have the same outcome, but not at the same moment. A failed save is no reason to stop a training.
    A process that ends normally waits for it.
    """

    def __init__(self, pending: _sealpoint.PendingSave, session: Session) -> None:
        super().__init__()
        self.set_running_or_notify_cancel()
        self._pending: _sealpoint.PendingSave | None = pending
        self.session = session  # of the ranks that save
        # Not a daemon: the interpreter waits for it at its end, and so for the save.
        threading.Thread(target=self._watch, name="sealpoint-save", daemon=False).start()

    def _watch(self) -> None:
        pending = self._pending
        assert pending is not None
        try:
            while not pending.wait_for(1.0):
                pass
            info = pending.result()
        except BaseException as error:
            note_failure(self.session, error)
            self._pending = None
            self.set_exception(error)
        else:
            self._pending = None
            self.set_result(info)

    def cancel(self) -> bool:
        """Asks for the save to be given up by all ranks, if it is not too late; ``result()`` says how it ended."""
        pending = self._pending
        if pending is None:
            return False
        pending.cancel()
        return True

    def cancelled(self) -> bool:
        return self.done() and isinstance(self.exception(), CancelledError)


def begin(
    gather: Callable[[Communicator], Gathered],
    path: Path,
    *,
    process_group: dist.ProcessGroup | None,
    series: bool = False,
    step: int | None = None,
    parent: Parent = None,
    provenance: Mapping[str, str] | None = None,
    compare_replicas: bool = True,
    allow_empty: bool = False,
    writer_ranks: Sequence[int] = (),
    deadline: float | None = DEADLINE_DEFAULT_SECONDS,
    background_deadline: float | None = BACKGROUND_DEADLINE_DEFAULT_SECONDS,
    memory_budget_bytes: int | None = None,
    is_async: bool = False,
    no_dist: bool = False,
) -> tuple[Any, Session]:
    """Saves what gather() returns on each rank (see ``unite``); with is_async a pending save is the result."""
    session = session_of(process_group, is_alone=no_dist)
    with session.turn:
        session.communicator.set_deadline(deadline)
        try:
            # Owns what the memory of the state is borrowed from, until the call returns.
            gathered = gather(session.communicator)
            saver = session.saver(
                compare_replicas=compare_replicas,
                writer_ranks=writer_ranks,
                deadline=deadline,
                background_deadline=background_deadline,
                memory_budget_bytes=memory_budget_bytes,
            )
            call = saver.save_async if is_async else saver.save
            return call(
                target=(path, series, parent_of(parent)),
                state=gathered.state,
                step=step,
                mesh=[],
                provenance=list((provenance or {}).items()),
                allow_empty=allow_empty,
            ), session
        except Error as error:
            note_failure(session, error)
            raise


def save(
    state_dict: Any,
    path: Path,
    *,
    process_group: dist.ProcessGroup | None = None,
    no_dist: bool = False,
    series: bool = False,
    step: int | None = None,
    parent: Parent = None,
    provenance: Mapping[str, str] | None = None,
    codec: Codec = "none",
    codec_level: int = 1,
    chunk_size_bytes: int = CHUNK_SIZE_DEFAULT_BYTES,
    compare_replicas: bool = True,
    allow_pickle: bool = False,
    allow_empty: bool = False,
    writer_ranks: Sequence[int] = (),
    deadline: float | None = DEADLINE_DEFAULT_SECONDS,
    memory_budget_bytes: int | None = None,
) -> _sealpoint.CommitInfo:
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
        series, step, parent, provenance, codec, codec_level, chunk_size_bytes, allow_empty: as for ``sealpoint.save``.
        compare_replicas: digests of what several ranks hold are compared; off saves one pass over that memory.
        allow_pickle: values of other types are stored as pickles, which only a load with the same option reads.
        writer_ranks: ranks of the group that write, ascending, such as those of one HSDP replica; none: all. What a
            rank holds is never sent to another one, so each part must be held by one of them.
        deadline: seconds that one exchange with the other ranks may take; None: no limit.
        memory_budget_bytes: staging memory, from the first save of this group on; None: a quarter of the machine's
            memory divided by its ranks at most.

    Errors, the same on all ranks: InvalidArgumentError (differing replicas, holes, overlaps; names the tensor or the
    object, and the ranks), UnsupportedError (a value of another type; names its path), AlreadyExistsError,
    NoSpaceError, IoError, TimeoutError, CommError. There is no such checkpoint then, unless ``unknown_outcome``.
    """
    info, _ = begin(
        lambda communicator: collect(state_dict, communicator, allow_pickle, (codec, codec_level, chunk_size_bytes)),
        path, process_group=process_group, no_dist=no_dist, series=series, step=step, parent=parent, provenance=provenance,
        compare_replicas=compare_replicas, allow_empty=allow_empty, writer_ranks=writer_ranks, deadline=deadline,
        memory_budget_bytes=memory_budget_bytes,
    )
    assert isinstance(info, _sealpoint.CommitInfo)
    return info


def save_async(
    state_dict: Any,
    path: Path,
    *,
    process_group: dist.ProcessGroup | None = None,
    no_dist: bool = False,
    series: bool = False,
    step: int | None = None,
    parent: Parent = None,
    provenance: Mapping[str, str] | None = None,
    codec: Codec = "none",
    codec_level: int = 1,
    chunk_size_bytes: int = CHUNK_SIZE_DEFAULT_BYTES,
    compare_replicas: bool = True,
    allow_pickle: bool = False,
    allow_empty: bool = False,
    writer_ranks: Sequence[int] = (),
    deadline: float | None = DEADLINE_DEFAULT_SECONDS,
    background_deadline: float | None = BACKGROUND_DEADLINE_DEFAULT_SECONDS,
    memory_budget_bytes: int | None = None,
) -> SaveFuture:
    """As ``save``, but returns when the state is copied: it may change at once, and training goes on meanwhile.

    Without room for a copy in ``memory_budget_bytes``, it returns when the last byte is on its way to the disk. Saves
    are carried out one after the other. Errors of the arguments, and of ranks that disagree, are raised here; all
    others come from the future.

    Args:
        background_deadline: seconds that the save may take once this returned; None: no limit.
    """
    pending, session = begin(
        lambda communicator: collect(state_dict, communicator, allow_pickle, (codec, codec_level, chunk_size_bytes)),
        path, process_group=process_group, no_dist=no_dist, series=series, step=step, parent=parent, provenance=provenance,
        compare_replicas=compare_replicas, allow_empty=allow_empty, writer_ranks=writer_ranks, deadline=deadline,
        background_deadline=background_deadline, memory_budget_bytes=memory_budget_bytes, is_async=True,
    )
    return SaveFuture(pending, session)
