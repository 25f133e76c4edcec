# SPDX-License-Identifier: Apache-2.0
"""Detects a different job that saves into the same series."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable

from sealpoint import _sealpoint
from sealpoint._checkpoint import open_own
from sealpoint._errors import AlreadyExistsError, CancelledError, CommError, Error, TimeoutError
from sealpoint._series import Series

HOST, PID = "job.host", "job.pid"  # entries of the provenance


def provenance() -> dict[str, str | int]:
    """Returns the provenance entries that identify the saving job."""
    return {HOST: socket.gethostname(), PID: os.getpid()}


class Lineage:
    """The checkpoints that a job saved or resumed from.

    If the newest checkpoint of the series is not in this record, a different job saves into the series. Only one rank uses the
    record: the rank that reads the series. The outcome of a failed save may be unknown, so the save after a failed save is not
    checked.
    """

    def __init__(self) -> None:
        self._own: set[str] = set()  # attempts
        self._is_known = False

    def begin(self, attempts: Iterable[str]) -> None:
        """Begins the record at a resume. ``attempts``: ids of the loaded checkpoint and of newer, skipped ones."""
        self._own, self._is_known = set(attempts), True

    def begin_at(self, directory: str) -> None:
        """Begins the record at the newest checkpoint, whether or not it was loaded. Raises the errors of ``Series``."""
        newest = _newest(directory)
        self.begin(() if newest is None or newest.attempt is None else (newest.attempt,))

    def note(self, info: _sealpoint.CommitInfo) -> None:
        self._own.add(info.attempt)

    def note_error(self, error: Error) -> None:
        """Called after a save that failed. If its outcome may be unknown, the next save is not checked."""
        if error.unknown_outcome or isinstance(error, (TimeoutError, CommError, CancelledError)):
            self._is_known = False

    def check(self, directory: str) -> None:
        """Called before a save.

        Raises AlreadyExistsError if a different job has saved into the series since the last recorded checkpoint.
        """
        newest = _newest(directory)
        if self._is_known and newest is not None and newest.attempt not in self._own:
            raise AlreadyExistsError(
                f"another job saved step {newest.step} into this series{_who(newest.path)} since this job resumed: two jobs would "
                "overwrite each other's progress. Stop one of them and restart the other, so that it resumes from the newest "
                "checkpoint", path=newest.path,
            )
        if not self._is_known and newest is not None and newest.attempt is not None:
            self._own.add(newest.attempt)
        self._is_known = True


def _newest(directory: str) -> _sealpoint.SeriesEntry | None:
    if _sealpoint.list_directory(directory) is None:
        return None
    found = Series(directory).newest(allow_fallback=True)
    return None if found is None else found.entry


def _who(path: str) -> str:
    try:
        with open_own(path, check_files=False) as checkpoint:
            entries = checkpoint.provenance
    except Error:
        return ""
    return f" (host {entries[HOST]}, process {entries[PID]})" if {HOST, PID} <= entries.keys() else ""
