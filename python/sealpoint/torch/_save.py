# SPDX-License-Identifier: Apache-2.0
"""Saving states of torch."""

from __future__ import annotations

import atexit
import concurrent.futures
import contextlib
import logging
import os
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Unpack

from sealpoint import _sealpoint
from sealpoint._arguments import provenance_of
from sealpoint._checkpoint import Path
from sealpoint._errors import CancelledError, InvalidArgumentError
from sealpoint._save import parent_of
from sealpoint.torch._arguments import checked_call, tells_other_ranks
from sealpoint.torch._options import SaveAsyncKeywords, SaveKeywords, SaveOptions, takes
from sealpoint.torch._session import Call, Session, session_of
from sealpoint.torch._staged import watch
from sealpoint.torch._state import Gathered, collect

# Options that must be the same on all ranks.
_SAME = ("series", "compare_replicas", "allow_empty", "writer_ranks", "deadline", "background_deadline", "keep_local")

_log = logging.getLogger("sealpoint")


class SaveFuture(concurrent.futures.Future[_sealpoint.CommitInfo]):
    """A save that goes on in the background, and ends by itself.

    ``result()`` waits for it, ``done()`` looks, ``add_done_callback()`` calls back on a thread of this object. All
    ranks have the same outcome, but not at the same moment. A failed save is not a reason to stop a training.
    A process that ends normally waits for it. A failure that nobody asked about is logged ("sealpoint", as an error) when
    the object goes, or the process ends. Not usable in a forked child (InvalidArgumentError).
    """

    def __init__(
        self, pending: _sealpoint.PendingSave, session: Session, saver: _sealpoint.Saver, text: str, is_staged: bool
    ) -> None:
        super().__init__()
        self.set_running_or_notify_cancel()
        self._pending: _sealpoint.PendingSave | None = pending
        self._saver: _sealpoint.Saver | None = saver  # which gives up what is pending when it goes
        self._session, self._text, self._pid, self._is_staged = session, text, os.getpid(), is_staged
        self._is_heard = False
        _unheard.add(self)
        # Not a daemon: the interpreter waits for it at its end, and so for the save.
        threading.Thread(target=self._watch, name="sealpoint-save", daemon=False).start()

    def _watch(self) -> None:
        pending, saver = self._pending, self._saver
        assert pending is not None and saver is not None
        try:
            while not pending.wait_for(1.0):
                pass
            info = pending.result()
        except BaseException as error:
            self._session.note_failure(saver, error)
            self._pending = self._saver = None
            self.set_exception(error)
        else:
            if self._is_staged:
                watch(saver)
            self._pending = self._saver = None
            self.set_result(info)

    def _check_process(self) -> None:
        if os.getpid() != self._pid:
            raise InvalidArgumentError(f"the save belongs to process {self._pid}, of which this one is a forked child")

    def result(self, timeout: float | None = None) -> _sealpoint.CommitInfo:
        self._check_process()
        try:
            return super().result(timeout)
        finally:
            self._is_heard = self._is_heard or super().done()

    def exception(self, timeout: float | None = None) -> BaseException | None:
        self._check_process()
        error = super().exception(timeout)
        self._is_heard = True
        return error

    def done(self) -> bool:
        self._check_process()
        return super().done()

    def running(self) -> bool:
        self._check_process()
        return super().running()

    def add_done_callback(self, fn: Callable[[concurrent.futures.Future[_sealpoint.CommitInfo]], Any]) -> None:
        self._check_process()
        super().add_done_callback(fn)

    def cancel(self) -> bool:
        """Asks for the save to be given up by all ranks, if it is not too late; ``result()`` says how it ended."""
        self._check_process()
        pending = self._pending
        if pending is None:
            return False
        pending.cancel()
        return True

    def cancelled(self) -> bool:
        return self.done() and isinstance(super().exception(), CancelledError)

    def _say_unheard(self) -> None:
        if self._is_heard or os.getpid() != self._pid or not super().done():
            return
        self._is_heard = True
        error = super().exception()
        if error is not None and not isinstance(error, CancelledError):
            _log.error("%s failed, and nobody asked: %s", self._text, error)

    def __del__(self) -> None:
        if hasattr(self, "_is_heard"):
            self._say_unheard()


_unheard: weakref.WeakSet[SaveFuture] = weakref.WeakSet()


@atexit.register
def _say_all_unheard() -> None:
    """The interpreter waited for the threads of all of them before."""
    for future in list(_unheard):
        future._say_unheard()


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
        is_staged = options.staged is not None
        return SaveFuture(pending, prepared.session, prepared.saver, prepared.call.text, is_staged)


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
        series, step, parent, provenance, codec, codec_level, chunk_size_bytes, allow_empty: as for ``sealpoint.save``.
        compare_replicas: digests of what several ranks hold are compared; off saves one pass over that memory.
        allow_pickle: values of other types are stored as pickles, which only a load with the same option reads.
        writer_ranks: ranks of the group that write, ascending, such as those of one HSDP replica; none: all. What a
            rank holds is never sent to another one, so each part must be held by one of them.
        staged: a directory on a disk of this node, which may differ by rank: the save is committed there, on the disks
            of all nodes together, and copied to ``path`` behind the training; see ``wait_for_promotions``,
            ``resume_promotions``.
        keep_local: how many of these copies stay once they are in their final place.
        deadline: seconds that one exchange with the other ranks may take; None: no limit.
        memory_budget_bytes: staging memory, from the first save of this group on; None: a quarter of the machine's
            memory divided by its ranks at most.

    Errors, the same on all ranks: InvalidArgumentError (differing replicas, holes, overlaps; names the tensor or the
    object, and the ranks), UnsupportedError (a value of another type; names its path), AlreadyExistsError,
    NoSpaceError, IoError, TimeoutError, CommError. There is no such checkpoint then, unless ``unknown_outcome``.
    """
    chosen = SaveOptions(**options)
    directory = None if chosen.series else path
    return save_gathered(lambda call: collect(state_dict, call, chosen, directory), path, chosen)


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
    directory = None if chosen.series else path
    return save_gathered_async(lambda call: collect(state_dict, call, chosen, directory), path, chosen)
