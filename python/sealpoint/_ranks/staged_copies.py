# SPDX-License-Identifier: Apache-2.0
"""Staged saves for frameworks that choose the directory names. A local copy has the same name as its final directory."""

from __future__ import annotations

import logging
import os

from sealpoint import _directories, _paths, _sealpoint
from sealpoint._arguments import path_of
from sealpoint._checkpoint import Path, open_own
from sealpoint._errors import Error
from sealpoint._ranks.promotions import resume, take_promotions
from sealpoint._ranks.session import Session

_log = logging.getLogger("sealpoint")


def finish_promotions(session: Session, staged: Path | None, keep_local: int, folder: str) -> None:
    """Finishes the promotions of an earlier job.

    Collective: all ranks call it before they look for a checkpoint to load.
    """
    if staged is not None:
        resume(session, staged, folder, keep_local)


def log_failed_promotions(staged: Path | None, folder: str) -> None:
    """Logs the failed promotions of this rank. The next staged save retries them."""
    if staged is None:
        return
    for directory, error in take_promotions(folder):
        if error is not None:
            _log.error("the promotion to %s failed and will be retried: %s", directory, error)


def remove_replaced(staged: Path | None, directory: str, replaced: list[str], is_any: bool) -> None:
    """Removes the local copy of a checkpoint after the checkpoint was removed from its final directory. Each rank calls it.

    Args:
        replaced: Result of ``_replacement.remove_replaceable``.
        is_any: Remove any local copy, as the option ``replace`` does.
    """
    if staged is None:
        return
    folder, name = _paths.split(directory)
    local = os.path.join(_sealpoint.find_staged_copies(path_of(staged, "staged"), folder)[0], name)
    attempts = {entry.partition(":")[0] for entry in replaced}
    # All ranks of a node make this call concurrently.
    if _directories.is_checkpoint(local) and (is_any or _attempt_of(local) in attempts):
        _directories.remove(local)


def _attempt_of(local: str) -> str | None:
    try:
        with open_own(local, check_files=False) as checkpoint:
            return str(checkpoint.attempt)
    except Error:
        return None  # never committed, so it blocks no save
