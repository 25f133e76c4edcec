# SPDX-License-Identifier: Apache-2.0
"""Staged saves in directories whose names a framework chooses: a local copy has the name of the final directory."""

from __future__ import annotations

import logging
import os

from sealpoint import _paths, _sealpoint
from sealpoint._arguments import path_of
from sealpoint._checkpoint import Path, open_own
from sealpoint._errors import Error
from sealpoint.torch import _directories
from sealpoint.torch._staged import resume_promotions, take_promotions

_log = logging.getLogger("sealpoint")


def finish(staged: Path | None, keep_local: int, folder: str) -> None:
    """Promotes what an earlier job left on local disks. All ranks call it, before they look for what to load."""
    if staged is not None:
        resume_promotions(staged, folder, keep_local=keep_local)


def report(staged: Path | None, folder: str) -> None:
    """Logs promotions of this rank that failed, which the next staged save tries again."""
    if staged is None:
        return
    for directory, error in take_promotions(folder):
        if error is not None:
            _log.error("the promotion to %s failed, and is tried again: %s", directory, error)


def make_way(staged: Path | None, directory: str, replaced: list[str], is_any: bool) -> None:
    """Removes the local copy of what made way in the final directory (see ``_make_way.make_way``). Each rank calls it.

    Args:
        replaced: what ``make_way`` returned.
        is_any: whatever is there goes, as with ``replace``.
    """
    if staged is None:
        return
    folder, name = _paths.split(directory)
    local = os.path.join(_sealpoint.find_staged_copies(path_of(staged, "staged"), folder)[0], name)
    attempts = {one.partition(":")[0] for one in replaced}
    # Ranks of one node do the same, at the same time.
    if _directories.is_checkpoint(local) and (is_any or _attempt_of(local) in attempts):
        _directories.remove(local)


def _attempt_of(local: str) -> str | None:
    try:
        with open_own(local, check_files=False) as checkpoint:
            return str(checkpoint.attempt)
    except Error:
        return None  # never committed: it is in nobody's way
