# SPDX-License-Identifier: Apache-2.0
"""Series: a directory that contains the checkpoints of one training run."""

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
    """The newest usable checkpoint, and the newer checkpoints that were skipped. ``problem`` of a skipped entry is the reason."""

    entry: _sealpoint.SeriesEntry
    skipped: list[_sealpoint.SeriesEntry]


class Unfinished(NamedTuple):
    """An upload to an object store that was neither completed nor aborted.

    ``name`` is the file name within the series. ``begun_unix_s`` is 0 if the store does not report when the upload began.
    """

    name: str
    upload_id: str
    begun_unix_s: int


class CleanUp(NamedTuple):
    """Result of ``Series.clean``.

    ``problem`` is an UnsupportedError if the client, such as obstore, cannot list unfinished uploads. In that case, use a lifecycle
    rule of the bucket to remove such uploads.
    """

    bytes_freed: int
    aborted: list[Unfinished]
    problem: Exception | None


class Series:
    """The checkpoints of one training run in one directory. Every call reads the directory again.

    Not collective: if the job has several processes, call methods in only one process, and send the results to the other processes.

    Args:
        path: Directory or URL, as for ``sealpoint.open``.

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
        """Returns all committed checkpoints, newest first, and then all other entries in the order of their names.

        The list is empty if the directory does not exist.

        Raises IoError if the storage failed, and InvalidArgumentError if the path is a file.
        """
        with self._naming_files():
            return _sealpoint.series_list(self.path)

    @contextlib.contextmanager
    def _naming_files(self) -> Iterator[None]:
        """Raises InvalidArgumentError if the path is a file.

        The error names the format of the file and the command that converts the file.
        """
        try:
            yield
        except IoError:
            if _paths.kind_of(self.path) != "file":
                raise
            found = _sealpoint.describe_place(self.path)
            raise InvalidArgumentError(f"expected a directory of checkpoints; {found}", path=self.path) from None

    def newest(self, *, allow_fallback: bool = False, require: Literal["checked"] | None = None) -> Newest | None:
        """Finds the newest committed checkpoint that has all its files. Returns None if no checkpoint was ever committed.

        Args:
            allow_fallback: If the newest checkpoint is damaged, return an older checkpoint and list the skipped checkpoints. If
                False, the error of the newest checkpoint is raised.
            require: "checked": skip checkpoints that are not checked for silent data corruption, and list them as skipped. The
                provenance of a checked checkpoint has "sdc.state": "checked" (``sealpoint.torch.Sentinel.provenance``). In
                addition, no newer checkpoint may have "sdc.state": "found" with an "sdc.upto" below the step of the checked
                checkpoint.

        Raises:
            IoError: neither the series nor its parent directory exists, possibly because the file system is not mounted.
            InvalidArgumentError: the path is a checkpoint or a file, so that a job would silently start a new training run. Also
                raised if ``require`` skips all checkpoints.
            Error: as for ``sealpoint.open``.
        """
        check(allow_fallback=allow_fallback, require=require)
        with self._naming_files():
            found = _sealpoint.series_newest(self.path, allow_fallback, require is not None)
        return None if found is None else Newest(*found)

    def open_newest(
        self, *, allow_fallback: bool = False, require: Literal["checked"] | None = None, **options: Any
    ) -> _checkpoint.Checkpoint | None:
        """Opens the checkpoint found by ``newest``.

        Returns None only if no checkpoint was ever committed. In this case a new training run can begin.

        Args:
            allow_fallback, require: As for ``newest``.
            options: As for ``sealpoint.open``.

        Raises:
            Error: as for ``newest`` and ``sealpoint.open``.
        """
        found = self.newest(allow_fallback=allow_fallback, require=require)
        return None if found is None else _checkpoint.open(found.entry.path, **options)

    def prune(
        self,
        *,
        keep_last: int = 2,
        keep_every_n_steps: int = 0,
        keep_per_period: Iterable[tuple[int, int]] = (),
        keep_best: tuple[str, Literal["least", "greatest"], int] | None = None,
        keep_checked: int = 0,
        keep_within: int | datetime.timedelta = 0,
        max_bytes: int = 0,
        dry_run: bool = False,
    ) -> _sealpoint.PruneReport:
        """Deletes the committed checkpoints that no rule keeps, oldest first.

        Args:
            keep_last: Number of checkpoints to keep, counted from the newest. At least 2.
            keep_every_n_steps: Keep each checkpoint whose step is a multiple of this number. 0: off.
            keep_per_period: (seconds, count): divide time into periods of this length and keep the newest checkpoint of each of the
                last ``count`` periods.
            keep_best: (metric, "least" or "greatest", count): keep the ``count`` checkpoints with the best value of a provenance
                entry such as "metric.loss".
            keep_checked: Number of checkpoints to keep, counted from the newest, that are checked for silent data corruption (see
                ``newest``). 0: off.
            keep_within: Maximum age of checkpoints to keep, relative to the newest checkpoint, in seconds or as a timedelta. 0:
                off.
            max_bytes: Maximum total size. Among the checkpoints that the other rules keep, only the newest ones that fit into this
                size are kept. If no other rule is set, this applies to all usable checkpoints. A file that several checkpoints
                share by links counts once. The newest ``keep_last`` checkpoints are always kept. 0: unlimited.
            dry_run: Report the decisions without deleting anything.

        Returns:
            A PruneReport with the decision for each checkpoint.

        Raises:
            InvalidArgumentError: a rule is invalid, no checkpoint has the metric of ``keep_best``, or ``keep_checked`` is set and
                no checkpoint was checked. Nothing was deleted.
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
            keep_checked=keep_checked,
            keep_within=keep_within,
            max_bytes=max_bytes,
            dry_run=dry_run,
        )
        bounds = (keep_last, keep_every_n_steps, keep_within, max_bytes, keep_checked)
        report = _sealpoint.series_prune(self.path, bounds, periods, keep_best, dry_run)
        error = report.error
        if error is not None:
            error.report = report  # type: ignore[attr-defined]
            raise error
        return report

    def delete(self, name: str) -> None:
        """Deletes a committed checkpoint, starting with its marker. Does not delete the newest checkpoint.

        Raises:
            InvalidArgumentError: the checkpoint is the newest, or is not committed.
            NotFoundError: the name does not exist.
            IoError: the storage failed.
        """
        check(name=name)
        _sealpoint.series_delete(self.path, name)

    def clean(self, name: str) -> CleanUp:
        """Removes the files of an uncommitted attempt and aborts its unfinished uploads.

        The first call leaves a marker in the directory. This marker prevents a slow writer from committing. A second call also
        removes the directory. Before the second call, make sure that no writer of this attempt is still running.

        Args:
            name: Name of the directory in the series.

        Returns:
            A CleanUp with the number of freed bytes.

        Raises:
            InvalidArgumentError: the checkpoint is committed.
            NotFoundError: the name does not exist.
            IoError: the storage failed.
        """
        check(name=name)
        freed, aborted, problem = _sealpoint.series_clean(self.path, name)
        return CleanUp(freed, [Unfinished(*upload) for upload in aborted], problem)

    def unfinished(self) -> Sequence[Unfinished]:
        """Returns the unfinished uploads of a series in an object store. This includes uploads of saves that are still running.

        To remove an upload, pass the part of its name before the ``/`` to ``clean``. On a file system the list is
        empty.

        Raises:
            IoError: the storage failed.
            UnsupportedError: the client (obstore) cannot list uploads.
        """
        return [Unfinished(*upload) for upload in _sealpoint.series_unfinished(self.path)]

    def __repr__(self) -> str:
        return f"<sealpoint.Series {self.path!r}>"
