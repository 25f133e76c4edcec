# SPDX-License-Identifier: Apache-2.0
"""Verification of checkpoints."""

from __future__ import annotations

from typing import Literal

from sealpoint import _sealpoint
from sealpoint._arguments import Path, check, path_of, threads_of
from sealpoint._checkpoint import Progress


def verify(
    path: Path,
    level: Literal["files", "structure", "full"] = "full",
    *,
    threads: int | None = None,
    direct_io: bool = True,
    violations_per_file_max: int = 1000,
    raise_limits: int = 1,
    progress: Progress = None,
) -> _sealpoint.VerifyReport:
    """Verifies a checkpoint and returns a report. Damage is reported, not raised as an error. One process calls this function.

    Args:
        path: As for ``sealpoint.open``.
        level: "files" checks the marker, the index, and the existence and length of every blob. "structure" also checks
            headers, tables and manifests. "full" also checks every chunk and every padding byte.
        threads: Number of threads that read and verify, 1 to 1024. Default: 1.
        direct_io: Bypass the page cache at level "full", so that the disk itself is checked.
        violations_per_file_max: Maximum number of violations listed per file. Violations above this number are only counted.
        raise_limits: As for ``sealpoint.open``.
        progress: As for ``Checkpoint.read``.

    Returns:
        A report. ``report.ok`` is true if the verdict is "committed": the checkpoint passed all checks of ``level``.

    Raises:
        InvalidArgumentError: an argument is invalid.
        UnsupportedError: the path is a URL with an unknown scheme.

    Examples:
        >>> import sealpoint
        >>> _ = sealpoint.save({"w": b"12"}, "checkpoint")
        >>> report = sealpoint.verify("checkpoint")
        >>> report.ok, report.violations
        (True, [])
    """
    check(
        level=level,
        direct_io=direct_io,
        violations_per_file_max=violations_per_file_max,
        raise_limits=raise_limits,
        progress=progress,
    )
    return _sealpoint.verify(path_of(path), level, threads_of(threads), direct_io, violations_per_file_max, raise_limits, progress)
