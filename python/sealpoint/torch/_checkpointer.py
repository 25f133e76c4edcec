# SPDX-License-Identifier: Apache-2.0
"""Checkpoints for a training loop."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import json
import logging
import math
import operator
import os
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Literal, Unpack

import torch.distributed as dist

from sealpoint import _sealpoint
from sealpoint._arguments import Provenance, path_of
from sealpoint._checkpoint import Path
from sealpoint._errors import (
    CancelledError,
    Error,
    InvalidArgumentError,
    NotFoundError,
    UnsupportedError,
)
from sealpoint._keywords import names_of, refuse_unknown
from sealpoint._option_table import DEADLINE_DEFAULT_SECONDS
from sealpoint._ranks.call import Call
from sealpoint._ranks.promotions import await_promotions, take_promotions
from sealpoint._rules import is_integer
from sealpoint._save_future import SaveFuture
from sealpoint._series import Series
from sealpoint.torch import _lineage
from sealpoint.torch._arguments import check
from sealpoint.torch._lineage import Lineage
from sealpoint.torch._load import LoadReport, State, load
from sealpoint.torch._options import CheckpointerKeywords, ResumeKeywords, SaveOptions
from sealpoint.torch._promotions import resume_promotions
from sealpoint.torch._save import save_gathered, save_gathered_async
from sealpoint.torch._schedule import EXIT_STATUS, Clock, Look, Sigterm, period_of
from sealpoint.torch._session import check_is_not_one_of_many, errors_of_all, session_of
from sealpoint.torch._staging import bytes_to_stage
from sealpoint.torch._state import Gathered, agree, collect

_log = logging.getLogger("sealpoint")
# Arguments of a Checkpointer that are not options of saves. They must be the same on all ranks.
_OWN = ("every", "keep", "keep_best", "keep_every", "keep_checked", "wait", "on_error", "on_sigterm")


def _contents(place: str) -> str:
    """Describes the checkpoints of other programs in a directory.

    Returns "" if there is no such checkpoint of a known kind.
    """
    return "" if _sealpoint.list_directory(place) is None else _sealpoint.describe_place(place)


def log_findings(report: LoadReport) -> None:
    """Logs the findings of a load."""
    for kind, place, detail in report.findings:
        if kind == "value":
            _log.warning("%s was changed by the load: %s", place, detail)
        else:
            _log.warning("%s was left unchanged (%s): %s", place, kind, detail)


def _united(of_all: Provenance | None, own: Provenance) -> Provenance:
    """Merges ``own`` into the provenance of all saves.

    Does not check ``own``: if it has an invalid value, the save fails later, on all ranks.
    """
    return {**(of_all or {}), **own} if isinstance(own, Mapping) else own


class Checkpointer:
    """The checkpoints of a training run: saves periodically, resumes from the newest usable checkpoint, deletes old ones.

        with Checkpointer("run", every=100, keep=3) as checkpoints:
            step = checkpoints.resume(state) or 0
            for step in range(step + 1, last + 1):
                train(step)
                checkpoints.step(step, state)

    Collective: all ranks call all methods, in the same order. Leaving the ``with`` block waits for the last save.

    Args:
        directory: Directory of the series, created if missing.
        every: Number of steps between saves, or the time between saves, as text ("30s", "10min", "2h") or a timedelta. If a time is
            given, the first step after this time saves; all ranks agree on this step.
        keep: Number of checkpoints to keep, counted from the newest. At least 2, because the newest checkpoint may turn out to be
            unusable. None: keep all.
        keep_best: (metric, "least" or "greatest", count): in addition, keep the ``count`` checkpoints with the best value of a
            provenance entry such as "metric.loss". See ``Series.prune``. If the provenance of a save lacks this metric, the save is
            not ranked, and no checkpoint is deleted after it. The first such save is logged as a warning ("sealpoint").
        keep_every: In addition, keep the checkpoints of steps that are multiples of this number. Requires ``keep``.
        keep_checked: Number of checkpoints to keep in addition, counted from the newest, that are checked for silent data
            corruption. ``Sentinel.provenance`` records the check; see ``Series.newest``. 0: off.
        on_sigterm: Action of the next ``step`` on all ranks after a rank has received SIGTERM. "exit": save, wait for the save, and
            raise SystemExit(143). "save": save, and set ``is_ending``. None: SIGTERM ends the process. The first ``step`` installs
            the signal handler in the main thread, unless the program has its own handler. The end of the ``with`` block removes the
            handler.
        wait: Save synchronously instead of in the background.
        on_error: "raise": the next call raises the error of a failed save. "warn": the error is logged ("sealpoint"), and training
            continues without this checkpoint. Errors of ``resume``, ``newest`` and ``clean`` are always raised.
        no_dist: Save only the state of this process, into its own series, even if ``WORLD_SIZE`` says that the job has several
            processes.
        process_group, options: As for ``save``; ``options`` are further keywords of ``save`` or ``save_async``. If ``staged`` is
            set, a save completes on local disks, and ``resume`` first finishes the promotions of an earlier job. The error of a
            failed promotion is raised by the next save, or at the end of the ``with`` block, which waits for all promotions.

    A save raises AlreadyExistsError if a different job has saved into the series since this job resumed. The error names the host
    and process of the different job. Successful saves are logged at level INFO ("sealpoint").

    Raises:
        InvalidArgumentError: an argument is invalid, or ``WORLD_SIZE`` is greater than 1 and torch.distributed has no process
            group.
        TypeError: an option is unknown. The error suggests the most similar name.

    Examples:
        >>> import torch, sealpoint.torch as sp
        >>> state = {"model": torch.nn.Linear(4, 4)}
        >>> with sp.Checkpointer("run", every=2, keep=2) as checkpoints:
        ...     for step in range((checkpoints.resume(state) or 0) + 1, 7):
        ...         _ = checkpoints.step(step, state)
        >>> sp.Checkpointer("run").resume(state)  # in the next job
        6
    """

    def __init__(
        self,
        directory: Path,
        *,
        every: int | str | datetime.timedelta = 1,
        keep: int | None = None,
        keep_best: tuple[str, Literal["least", "greatest"], int] | None = None,
        keep_every: int | None = None,
        keep_checked: int = 0,
        wait: bool = False,
        on_error: Literal["raise", "warn"] = "raise",
        on_sigterm: Literal["exit", "save"] | None = "exit",
        process_group: dist.ProcessGroup | None = None,
        no_dist: bool = False,
        **options: Unpack[CheckpointerKeywords],
    ) -> None:
        with errors_of_all("Checkpointer", process_group):
            unused = {"background_deadline"} if wait else ()
            known = [name for name in names_of(CheckpointerKeywords) if name not in unused]
            refuse_unknown("Checkpointer", options, [*_OWN, "process_group", "no_dist", *known])
            check(directory=directory, every=every, keep=keep, keep_best=keep_best, keep_every=keep_every,
                  keep_checked=keep_checked, wait=wait, on_error=on_error, on_sigterm=on_sigterm, process_group=process_group,
                  no_dist=no_dist, **options)
            if not no_dist:
                check_is_not_one_of_many(process_group)
            elif dist.is_available() and dist.is_initialized():
                raise InvalidArgumentError("no_dist is True, and torch.distributed has a process group; expected a "
                                           "process_group of the ranks that have this series")
        self._directory, self._every, self._keep, self._wait = directory, every, keep, wait
        self._keep_best, self._keep_checked, self._no_dist = keep_best, keep_checked, no_dist
        self._keep_every, self._on_error, self._on_sigterm = keep_every, on_error, on_sigterm
        self._period = period_of(every)
        self._steps = operator.index(every) if is_integer(every) else 0  # type: ignore[arg-type]
        self._clock, self._sigterm, self._lineage = Clock(self._period), Sigterm(), Lineage()
        self._looked = 0  # steps between two checks
        self._next_look = 0  # the next step at which the ranks check the clock and signals
        self._is_within, self._pid = False, os.getpid()  # inside a ``with`` block
        self.is_ending = False
        self._group, self._options = process_group, options
        self._pending: SaveFuture | None = None
        self._saving = ""  # description of the running save, for messages
        self._is_ranked = True  # the running save has the metric of keep_best
        self._has_warned = False  # the warning about a missing metric was logged
        self._has_mapped = False  # see _map_ahead

    def step(
        self, step: int, state_dict: Mapping[Any, Any], *, provenance: Provenance | None = None
    ) -> SaveFuture | _sealpoint.CommitInfo | None:
        """Saves if ``step`` is due. Collective: all ranks call it.

        Args:
            step: Step that the training loop has just completed.
            state_dict: As for ``sealpoint.torch.save``.
            provenance: As for ``save``.

        Returns:
            The result of ``save`` or ``save_async``, or None if no save was due or the save failed.

        Raises the error of the preceding save, unless ``on_error`` is "warn". Raises SystemExit as ``on_sigterm`` describes.
        """
        if not is_integer(step):  # save() raises the error, on all ranks
            return self.save(step, state_dict, provenance=provenance)
        is_due, is_told = self._look(step)
        if not is_due and not self._has_mapped:
            self._has_mapped = self._map_ahead(state_dict)
        if not is_told or self.is_ending:
            return self.save(step, state_dict, provenance=provenance) if is_due else None
        self.is_ending = True
        saved = self.save(step, state_dict, provenance=provenance)
        self.wait()
        _log.warning("SIGTERM: step %s was saved", step)
        if self._on_sigterm == "exit":
            raise SystemExit(EXIT_STATUS)
        return saved

    def _map_ahead(self, state: Any) -> bool:
        """Starts to map the memory of the first background save. Returns False if it is too early to do so. Local."""
        if self._wait:
            return True
        session, options = session_of(self._group), SaveOptions(**self._options)
        writers = options.writer_ranks or range(session.size)
        with contextlib.suppress(Exception):  # the save will raise an error of the state on all ranks
            return session.rank not in writers or session.map_ahead(options, lambda: bytes_to_stage(state, len(writers)))
        return True

    def _look(self, step: int) -> tuple[bool, bool]:
        """Returns whether a save is due, and whether a rank received SIGTERM.

        The call is collective only at some steps. These steps are the same on all ranks.
        """
        is_due = self._steps > 0 and step % self._steps == 0
        if self._on_sigterm is not None and self._is_within:
            self._sigterm.install()
        elif self._period is None:
            return is_due, False
        if step < self._next_look <= step + self._looked:
            return is_due, False
        own = self._clock.look(step, self._sigterm.is_told)
        looks = [Look(*item) for item in self._exchange(step, own)]
        self._looked = looks[0].steps
        self._next_look = step + self._looked
        return is_due or looks[0].is_due, any(look.is_told for look in looks)

    def _exchange(self, step: int, own: Look) -> list[Look]:
        session = session_of(self._group)
        if session.size == 1:
            return [own]
        deadline = self._options.get("deadline", DEADLINE_DEFAULT_SECONDS)
        with session.call("step", self._directory, step=step, deadline=deadline) as call:
            _, answers = agree(call, lambda: (None, json.dumps(own).encode()), "looked at the clock and for signals")
        return [Look(*json.loads(answer)) for answer in answers]

    def save(
        self, step: int, state_dict: Mapping[Any, Any], *, provenance: Provenance | None = None
    ) -> SaveFuture | _sealpoint.CommitInfo | None:
        """Saves now. First waits for the preceding save, which has usually completed, and raises the error of that save.

        Collective: all ranks call it. Returns the same values as ``step``.

        Args:
            step, state_dict: As for ``step``.
            provenance: Facts about this save, such as {"metric.loss": loss}, in addition to the facts passed to the
                constructor.
        """
        self.wait()
        self._raise_failed_promotion()
        self._saving = f"the save of step {step}"
        options = SaveOptions(**self._options, no_dist=self._no_dist, series=True, step=step, process_group=self._group)
        own = options.provenance if provenance is None else _united(options.provenance, provenance)
        options = dataclasses.replace(options, provenance=_united(_lineage.provenance(), own or {}))
        self._note_rank(step, options.provenance)
        began = time.monotonic()

        def gather(call: Call) -> Gathered:
            return collect(state_dict, call, options, self._check_lineage)

        self._clock.note_save()
        try:
            if not self._wait:
                self._pending = save_gathered_async(gather, self._directory, options)
                self._pending.add_done_callback(lambda done: self._log_end(done, began))
                return self._pending
            info = save_gathered(gather, self._directory, options)
        except Error as error:
            self._note(error)
            return None
        self._lineage.note(info)
        self._log_save(info, began)
        self._prune()
        return info

    def _check_lineage(self, call: Call) -> None:
        if call.rank == 0:
            self._lineage.check(path_of(self._directory))

    def _log_end(self, done: Future[_sealpoint.CommitInfo], began: float) -> None:
        """Logs a successful save. Runs on a thread of the save. If the save failed, the next call raises the error instead."""
        if Future.exception(done) is None:
            self._log_save(Future.result(done), began)

    def _log_save(self, info: _sealpoint.CommitInfo, began: float) -> None:
        if session_of(self._group).rank == 0:
            seconds = time.monotonic() - began
            _log.info("saved step %s to %s: %.3g MB in %.1f s", info.step, info.directory, info.total_bytes / 1e6, seconds)

    def wait(self) -> None:
        """Waits for the running save, raises its error if it failed, and deletes old checkpoints. Collective: all ranks call it."""
        pending, self._pending = self._pending, None
        if pending is None:
            return
        try:
            info = pending.result()
        except Error as error:
            self._note(error)
        else:
            self._lineage.note(info)
            self._prune()

    def finish(self) -> None:
        """Waits as ``wait`` does. If saves are staged, also waits for all promotions, and raises the error of a failed promotion.

        Leaving the ``with`` block calls this method. Collective: all ranks call it.
        """
        self.wait()
        if self._options.get("staged") is None:
            return
        await_promotions(None)
        self._raise_failed_promotion()
        self._prune()

    def _raise_failed_promotion(self) -> None:
        """If a promotion failed on any rank, raises the first such error on all ranks. Collective if saves are staged."""
        if self._options.get("staged") is None:
            return

        def find() -> tuple[None, bytes]:
            failed = [error for _, error in take_promotions(path_of(self._directory)) if error is not None]
            if failed:
                raise failed[0]
            return None, b""

        deadline = self._options.get("deadline", DEADLINE_DEFAULT_SECONDS)
        self._saving = "the promotion of an earlier save"
        try:
            with session_of(self._group).call("promotions", self._directory, deadline=deadline) as call:
                agree(call, find, "compared how promotions ended")
        except Error as error:
            self._note(error)

    def _note(self, error: Error) -> None:
        self._lineage.note_error(error)
        if self._on_error == "raise":
            raise error
        _log.warning("%s failed, and training continues without it: %s", self._saving, error)

    def _note_rank(self, step: int, provenance: Provenance | None) -> None:
        """Records whether ``keep_best`` can rank the checkpoint, and warns about the first checkpoint that it cannot rank."""
        if self._keep_best is None:
            return
        metric = self._keep_best[0]
        value = provenance.get(metric) if isinstance(provenance, Mapping) else None
        try:
            self._is_ranked = value is not None and math.isfinite(float(value))
        except (TypeError, ValueError):
            self._is_ranked = False
        if not self._is_ranked and not self._has_warned and session_of(self._group).rank == 0:
            self._has_warned = True
            given = "nothing" if value is None else repr(value)
            _log.warning("step %s has %s as %s in its provenance, expected a number: it is not ranked by keep_best, and after such "
                         "a save no checkpoint is deleted", step, given, metric)

    def _prune(self) -> None:
        """Deletes old checkpoints, on rank 0.

        Errors are only logged, and the next save tries the deletion again.
        """
        if self._keep is None or not self._is_ranked or session_of(self._group).rank != 0:
            return
        try:
            Series(self._directory).prune(keep_last=self._keep, keep_every_n_steps=self._keep_every or 0,
                                          keep_best=self._keep_best, keep_checked=self._keep_checked)
        except Error as error:
            _log.warning("old checkpoints were not deleted: %s", error)

    def newest(self) -> str | None:
        """Returns the path of the newest committed checkpoint, or None if there is none. Collective: all ranks call it.

        Raises the errors of ``sealpoint.Series.newest``, on all ranks.
        """

        def find() -> str | None:
            found = Series(self._directory).newest()
            return None if found is None else found.entry.path

        path = self._ask("newest", find)
        return None if path is None else str(path)

    def _find_to_resume(self, required: bool, require: Literal["checked"] | None, allow_foreign: bool) -> tuple[str, int] | None:
        """Returns the path of the newest usable checkpoint and its step, or None if a new training run begins. See ``resume``."""
        place = path_of(self._directory)
        attempts: list[str] = []

        def find() -> list[Any] | None:
            found = Series(self._directory).newest(require=require)
            if found is None:
                other = "" if allow_foreign else _contents(place)
                if other:
                    raise InvalidArgumentError(
                        f"no checkpoint of a series is here: {other}; pass the directory of the series, or allow_foreign=True to "
                        "start a new training run here", path=place,
                    )
                if required:
                    raise NotFoundError("no checkpoint was ever committed here, and required is True", path=place)
                return None
            for entry in found.skipped:
                _log.warning("not resumed from %s: %s", entry.path, entry.problem)
            attempts.extend(entry.attempt for entry in (found.entry, *found.skipped) if entry.attempt is not None)
            if found.entry.step is None:
                raise InvalidArgumentError(
                    "the newest checkpoint has no step, so training cannot resume from it; sealpoint.torch.load(state, path) "
                    "loads it", path=found.entry.path,
                )
            return [found.entry.path, found.entry.step]

        own = {name: getattr(self, f"_{name}") for name in _OWN} | {"every": str(self._every)}
        found = self._ask("resume", find, required=required, require=require, allow_foreign=allow_foreign, **own)
        self._lineage.begin(attempts)
        return None if found is None else (str(found[0]), int(found[1]))

    def note_begin(self) -> None:
        """Records the newest checkpoint. Call this method if training resumes without a call of ``resume``.

        The next save then fails if a different job has saved since this call. Each rank may call this method. Raises nothing.
        """
        if session_of(self._group).rank == 0:
            with contextlib.suppress(Error):  # the next save reports the error
                self._lineage.begin_at(path_of(self._directory))

    def clean(self) -> int:
        """Removes the files of uncommitted saves, such as saves of killed jobs, and returns the number of freed bytes.

        Call this method only while no other job saves into the series, for example before ``resume``. Otherwise, the running save
        of the other job fails. For each removed attempt, the call leaves a marker that prevents slow writers from committing; the
        next call of ``clean`` removes the marker. If saves are staged, complete local checkpoints are promoted first, because such
        a marker would prevent their promotion. Collective: all ranks call it. Raises the errors of ``sealpoint.Series.clean``.
        """
        self.wait()
        self._resume_promotions()

        def remove() -> int:
            series = Series(self._directory)
            entries = series.list()
            attempts = {entry.name for entry in entries if entry.verdict == "uncommitted" and not entry.is_kept}
            with contextlib.suppress(UnsupportedError):  # obstore's client cannot list uploads
                names = [upload.name for upload in series.unfinished() if upload.name.endswith((".blob", ".index"))]
                begun = {name.partition("/")[0] for name in names if name.count("/") == 1}
                attempts |= begun - {entry.name for entry in entries}  # a job killed in its first upload left no other files
            return sum(series.clean(name).bytes_freed for name in sorted(attempts))

        return int(self._ask("clean", remove))

    def _resume_promotions(self) -> None:
        staged = self._options.get("staged")
        if staged is not None:
            keep_local = self._options.get("keep_local", 0)
            resume_promotions(staged, self._directory, keep_local=keep_local, process_group=self._group)

    def _ask(self, kind: str, make: Callable[[], Any], **same: Any) -> Any:
        """Calls make() on rank 0 and returns its result on every rank. ``same``: arguments that must be equal on all ranks."""
        deadline = self._options.get("deadline", DEADLINE_DEFAULT_SECONDS)
        with session_of(self._group).call(kind, self._directory, same=same, deadline=deadline) as call:
            return call.run_on_first(make)

    def resume(
        self, state_dict: State, *, required: bool = False, require: Literal["checked"] | None = None,
        allow_foreign: bool = False, **options: Unpack[ResumeKeywords]
    ) -> int | None:
        """Loads the newest usable checkpoint into the state. Collective: all ranks call it.

        Args:
            state_dict: As for ``load``.
            required: Raise NotFoundError if there is no checkpoint. Use this option in a restarted job, because an empty directory
                may mean that the file system is not mounted.
            require: "checked": load the newest checkpoint that is checked for silent data corruption, as for ``Series.newest``.
                Newer checkpoints, which are not checked, are logged, and remain until they are pruned. The next save becomes the
                newest checkpoint.
            allow_foreign: Start a new training run even if the directory contains checkpoints of other programs.
            options: As for ``load``. Findings of the load (``LoadReport``) are logged to the logger ``sealpoint``.

        Returns:
            The step of the checkpoint, or None if no checkpoint was ever saved.

        Raises:
            NotFoundError: no checkpoint was ever saved, and ``required`` is true.
            InvalidArgumentError: the directory is a parent of series instead of a series, or contains checkpoints of other
                programs. Also raised if the newest checkpoint has no step, or if no checkpoint satisfies ``require``.
            IoError: neither the series nor its parent directory exists.
            Error: as for ``load``.

        Errors are the same on all ranks.
        """
        with errors_of_all("resume", self._group):
            refuse_unknown("Checkpointer.resume", options, ["required", "require", "allow_foreign", *names_of(ResumeKeywords)])
        self._resume_promotions()
        found = self._find_to_resume(required, require, allow_foreign)
        if found is not None:
            log_findings(load(state_dict, found[0], process_group=self._group, **options))
        # An optimizer may have no state yet. In this case, the first step without a save maps the memory.
        self._map_ahead(state_dict)
        return None if found is None else found[1]

    def __repr__(self) -> str:
        return f"<sealpoint.torch.Checkpointer {self._directory!r}: every={self._every}, keep={self._keep}>"

    def __enter__(self) -> Checkpointer:
        self._is_within = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if os.getpid() != self._pid:
            return  # a forked child has no saves
        self._is_within = False
        self._sigterm.restore()
        if kind is None:
            self.finish()
        elif self._pending is not None:
            failure = self._pending.exception()
            if failure is not None and not isinstance(failure, CancelledError):  # the exception of the block takes precedence
                _log.error("%s failed: %s", self._saving, failure)
