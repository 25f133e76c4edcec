# SPDX-License-Identifier: Apache-2.0
"""Detects another job that saves into the same series."""

from __future__ import annotations

import os
import socket

from sealpoint import _sealpoint
from sealpoint._checkpoint import open_own
from sealpoint._errors import AlreadyExistsError, Error
from sealpoint._series import Series

HOST, PID = "job.host", "job.pid"  # entries of the provenance


def provenance() -> dict[str, str | int]:
    """Returns the provenance entries that identify the saving job."""
    return {HOST: socket.gethostname(), PID: os.getpid()}


class Lineage:
    """The checkpoints that a job saved or resumed from.

    The newest checkpoint of its series is one of them, unless another job saves. Kept by the rank that reads the series. The
    outcome of a failed save may be unknown, so the save after it is not checked.
    """

    def __init__(self) -> None:
        self._own: set[str] = set()  # attempts
        self._is_known = False

    def begin(self, attempt: str | None) -> None:
        """Starts from a resume. ``attempt``: the loaded checkpoint, or None if the series was empty."""
        self._own, self._is_known = set() if attempt is None else {attempt}, True

    def begin_at(self, directory: str) -> None:
        """Starts from the newest checkpoint, regardless of the load. Raises the errors of the series."""
        newest = _newest(directory)
        self.begin(None if newest is None else newest.attempt)

    def note(self, info: _sealpoint.CommitInfo) -> None:
        self._own.add(info.attempt)

    def forget(self) -> None:
        """Called after a save with a possibly unknown outcome."""
        self._is_known = False

    def check(self, directory: str) -> None:
        """Called before a save. Raises AlreadyExistsError if another job has saved here since."""
        newest = _newest(directory)
        if self._is_known and newest is not None and newest.attempt not in self._own:
            raise AlreadyExistsError(
                f"another job saved step {newest.step} into this series{_who(newest.path)} since this one resumed: two jobs would "
                "overwrite each other's progress. End one of them, and start the other one again, so that it resumes from the "
                "newest checkpoint", path=newest.path,
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
