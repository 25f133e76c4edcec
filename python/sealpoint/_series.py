# SPDX-License-Identifier: Apache-2.0
"""Directories of checkpoints of one training."""

from __future__ import annotations

import contextlib
import datetime
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

from sealpoint import _checkpoint, _paths, _sealpoint
from sealpoint._arguments import Path, check, listed, path_of
from sealpoint._errors import InvalidArgumentError, IoError


class Newest(NamedTuple):
    """The newest whole checkpoint, and newer ones that are not, each with its ``problem``."""

    entry: _sealpoint.SeriesEntry
    passed_over: list[_sealpoint.SeriesEntry]


class Unfinished(NamedTuple):
    """An upload to an object store that was begun and neither completed nor given up.

    ``name`` is that of the file within the series, ``begun_unix_s`` 0 if the store does not say.
    """

    name: str
    upload_id: str
    begun_unix_s: int


class CleanUp(NamedTuple):
    """What ``Series.clean`` did. ``problem`` is an UnsupportedError if the client of the store cannot list unfinished
    uploads, as that of obstore: a lifecycle rule of the bucket removes these."""

    bytes_freed: int
    aborted: list[Unfinished]
    problem: Exception | None


class Series:
    """A directory of checkpoints of one training. Every call looks at the directory anew.

    With several processes, one of them calls and tells the others.
    """

    def __init__(self, path: Path) -> None:
        """``path`` is as for ``sealpoint.open``."""
        self.path: str = path_of(path)

    def list(self) -> list[_sealpoint.SeriesEntry]:
        """Committed ones, newest first, then the others by name. A directory that does not exist has none."""
        with self._naming_files():
            return _sealpoint.series_list(self.path)

    @contextlib.contextmanager
    def _naming_files(self) -> Iterator[None]:
        """Errors: InvalidArgumentError (the path is that of a file; says which, and what converts it)."""
        try:
            yield
        except IoError:
            if _paths.kind_of(self.path) != "file":
                raise
            found = _sealpoint.describe_place(self.path)
            raise InvalidArgumentError(f"expected a directory of checkpoints; {found}", path=self.path) from None

    def newest(self, *, allow_fallback: bool = False) -> Newest | None:
        """The newest committed checkpoint whose files are there; None if nothing was ever committed. IoError if neither the
        series nor its parent directory is there: a file system that is not mounted is not a new training.
        InvalidArgumentError if the path is that of a checkpoint, or of a file: there may be something to resume from.

        Args:
            allow_fallback: take an older one if the newest is damaged, and say what was passed over. Off: its
                error is raised.
        """
        check(allow_fallback=allow_fallback)
        with self._naming_files():
            found = _sealpoint.series_newest(self.path, allow_fallback)
        return None if found is None else Newest(*found)

    def open_newest(self, *, allow_fallback: bool = False, **options: Any) -> _checkpoint.Checkpoint | None:
        """Opens what ``newest`` finds; ``options`` are those of ``sealpoint.open``. None: nothing was ever committed,
        so that training begins anew. No error ever looks like this."""
        found = self.newest(allow_fallback=allow_fallback)
        return None if found is None else _checkpoint.open(found.entry.path, **options)

    def prune(
        self,
        *,
        keep_last: int = 2,
        keep_every_n_steps: int = 0,
        keep_per_period: Iterable[tuple[int, int]] = (),
        keep_best: tuple[str, Literal["least", "greatest"], int] | None = None,
        keep_within: int | datetime.timedelta = 0,
        max_bytes: int = 0,
        dry_run: bool = False,
    ) -> _sealpoint.PruneReport:
        """Deletes the committed checkpoints that none of these rules keeps, the oldest first.

        Args:
            keep_last: the newest so many; at least 2.
            keep_every_n_steps: those whose step is a multiple of it; 0: none.
            keep_per_period: (seconds, count): the newest of each period, for the newest ``count`` periods.
            keep_best: (metric, "least" or "greatest", count), by a provenance entry such as "metric.loss".
            keep_within: those made at most so long before the newest, in seconds or as a timedelta; 0: none.
            max_bytes: of what these rules keep, the newest stay that fit; without such a rule, of all whole ones. What is
                linked from one to another counts once. The newest ``keep_last`` always stay. 0: no bound.
            dry_run: decide, and change nothing.

        Errors: InvalidArgumentError (a rule; a metric that no checkpoint has), IoError and others: nothing, or no more, was
        deleted; the
        attribute ``report`` of the exception says what was done until then.
        """
        periods = listed("keep_per_period", keep_per_period)
        if isinstance(keep_within, datetime.timedelta):
            keep_within = math.ceil(keep_within.total_seconds())
        check(
            keep_last=keep_last,
            keep_every_n_steps=keep_every_n_steps,
            keep_per_period=periods,
            keep_best=keep_best,
            keep_within=keep_within,
            max_bytes=max_bytes,
            dry_run=dry_run,
        )
        bounds = (keep_last, keep_every_n_steps, keep_within, max_bytes)
        report = _sealpoint.series_prune(self.path, bounds, periods, keep_best, dry_run)
        error = report.error
        if error is not None:
            error.report = report  # type: ignore[attr-defined]
            raise error
        return report

    def delete(self, name: str) -> None:
        """Removes a committed checkpoint in the safe order, never the newest. Errors: InvalidArgumentError,
        NotFoundError, IoError."""
        check(name=name)
        _sealpoint.series_delete(self.path, name)

    def clean(self, name: str) -> CleanUp:
        """Removes the files of an attempt that was never committed, and gives its unfinished uploads up. Leaves a marker
        that keeps a slow writer from committing; called again it removes the directory, for which the caller must
        know that no such writer is alive."""
        check(name=name)
        freed, aborted, problem = _sealpoint.series_clean(self.path, name)
        return CleanUp(freed, [Unfinished(*one) for one in aborted], problem)

    def unfinished(self) -> Sequence[Unfinished]:
        """Uploads to an object store that were begun below the series and neither completed nor given up; those of running
        saves are among them. ``clean`` takes the part of a name before the ``/``. Empty on a file system. Errors:
        IoError, UnsupportedError (obstore cannot list them)."""
        return [Unfinished(*one) for one in _sealpoint.series_unfinished(self.path)]

    def __repr__(self) -> str:
        return f"<sealpoint.Series {self.path!r}>"
