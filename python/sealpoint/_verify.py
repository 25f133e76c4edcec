# SPDX-License-Identifier: Apache-2.0
"""Verifying checkpoints."""

from __future__ import annotations

from typing import Literal

from sealpoint import _sealpoint
from sealpoint._arguments import Path, check, path_of
from sealpoint._checkpoint import Progress


def verify(
    path: Path,
    level: Literal["files", "structure", "full"] = "full",
    *,
    threads: int = 1,
    direct_io: bool = True,
    violations_per_file_max: int = 1000,
    raise_limits: int = 1,
    progress: Progress = None,
) -> _sealpoint.VerifyReport:
    """Verifies a checkpoint and reports what it finds; damage is in the report, not an exception.

    Args:
        path: its directory; as for ``sealpoint.open``.
        level: "files": marker, index, existence and length of every blob; "structure": and headers, tables and
            manifests; "full": and every chunk and every padding byte.
        threads: that read and verify; 1 to 1024.
        direct_io: at full level, read past the page cache, so that the disk is checked.
        violations_per_file_max: so many are listed of each file; all are counted.
        raise_limits: as for ``sealpoint.open``.
        progress: as for ``Checkpoint.read``.

    Returns: a report. ``report.ok`` is true if the verdict is "committed": valid at this level.

    Errors: InvalidArgumentError, UnsupportedError (a URL of an unknown scheme).
    """
    check(
        level=level,
        threads=threads,
        direct_io=direct_io,
        violations_per_file_max=violations_per_file_max,
        raise_limits=raise_limits,
        progress=progress,
    )
    return _sealpoint.verify(path_of(path), level, threads, direct_io, violations_per_file_max, raise_limits, progress)
