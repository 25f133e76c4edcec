# SPDX-License-Identifier: Apache-2.0
"""Series: directories with the checkpoints of one training."""

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
    """The newest usable checkpoint, and newer unusable ones, each with its ``problem``."""

    entry: _sealpoint.SeriesEntry
    passed_over: list[_sealpoint.SeriesEntry]


class Unfinished(NamedTuple):
    """An unfinished upload in an object store: neither completed nor aborted.

    ``name`` is the file name within the series. ``begun_unix_s`` is 0 if the store does not report it.
    """

    name: str
    upload_id: str
    begun_unix_s: int


class CleanUp(NamedTuple):
    """Result of ``Series.clean``. ``problem`` is an UnsupportedError if the client cannot list unfinished uploads, as with
    obstore: remove these by a lifecycle rule of the bucket.
    """

    bytes_freed: int
    aborted: list[Unfinished]
    problem: Exception | None


class Series:
    """The checkpoints of one training in one directory. Every call reads the directory again.

    With several processes, call it on one and send the result to the others.

    Examples:
        >>> import sealpoint
        >>> for step in range(4):
        ...     _ = sealpoint.save({"w": b"12"}, "run", series=True, step=step)
        >>> series = sealpoint.Series("run")
        >>> _ = series.prune(keep_last=2)
        >>> [entry.step for entry in series.list()]
        [3, 2]
        >>> series.newest().entry.step
        3
    """

    def __init__(self, path: Path) -> None:
        """Opens the series. ``path`` is as for ``sealpoint.open``."""
        self.path: str = path_of(path)

    def list(self) -> list[_sealpoint.SeriesEntry]:
        """Lists committed checkpoints, newest first, then all others by name. Empty if the directory does not exist."""
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
        """Finds the newest committed checkpoint with all its files. Returns None if nothing was ever committed.

        Args:
            allow_fallback: Return an older checkpoint if the newest is damaged, and list the skipped ones. If False, the
                error of the newest one is raised.

        Raises:
            IoError: neither the series nor its parent directory exists; the file system may not be mounted.
            InvalidArgumentError: the path is a checkpoint or a file, so a new training must not start silently.
            Error: as for ``sealpoint.open``.
        """
        check(allow_fallback=allow_fallback)
        with self._naming_files():
            found = _sealpoint.series_newest(self.path, allow_fallback)
        return None if found is None else Newest(*found)

    def open_newest(self, *, allow_fallback: bool = False, **options: Any) -> _checkpoint.Checkpoint | None:
        """Opens the checkpoint found by ``newest``; ``options`` as for ``sealpoint.open``.

        Returns None only if nothing was ever committed, so a new training can begin. Errors are never reported as None.
        """
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
        """Deletes the committed checkpoints that no rule keeps, oldest first.

        Args:
            keep_last: Number of newest checkpoints to keep. At least 2.
            keep_every_n_steps: Keep steps that are multiples of this number. 0: off.
            keep_per_period: (seconds, count) keeps the newest checkpoint of each period, for the newest ``count`` periods.
            keep_best: (metric, "least" or "greatest", count), by a provenance entry such as "metric.loss".
            keep_within: Keep checkpoints at most this much older than the newest, in seconds or as a timedelta. 0: off.
            max_bytes: Maximum total size. Keeps the newest checkpoints that fit, among the ones kept by the other rules, or
                among all usable ones without such a rule. Linked files count once. The newest ``keep_last`` always stay.
                0: unlimited.
            dry_run: Decide without deleting.

        Raises:
            InvalidArgumentError: a rule is invalid, or no checkpoint has the metric. Nothing was deleted.
            IoError: the storage failed. The attribute ``report`` of the exception lists the deletions so far.
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
        """Deletes a committed checkpoint, marker first. Refuses to delete the newest.

        Raises:
            InvalidArgumentError: the checkpoint is the newest, or is not committed.
            NotFoundError: the name does not exist.
            IoError: the storage failed.
        """
        check(name=name)
        _sealpoint.series_delete(self.path, name)

    def clean(self, name: str) -> CleanUp:
        """Removes the files of an uncommitted attempt and aborts its unfinished uploads.

        Leaves a marker that prevents a slow writer from committing. A second call removes the directory too; before it, make
        sure that no such writer is alive.
        """
        check(name=name)
        freed, aborted, problem = _sealpoint.series_clean(self.path, name)
        return CleanUp(freed, [Unfinished(*one) for one in aborted], problem)

    def unfinished(self) -> Sequence[Unfinished]:
        """Lists unfinished uploads below the series in an object store, including uploads of running saves.

        Pass the part of a name before the ``/`` to ``clean``. Empty on a file system.

        Raises:
            IoError: the storage failed.
            UnsupportedError: the client (obstore) cannot list uploads.
        """
        return [Unfinished(*one) for one in _sealpoint.series_unfinished(self.path)]

    def __repr__(self) -> str:
        return f"<sealpoint.Series {self.path!r}>"
