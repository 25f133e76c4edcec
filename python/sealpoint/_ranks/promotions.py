# SPDX-License-Identifier: Apache-2.0
"""The outcomes of promotions. A promotion copies a staged save from local disks to its final directory."""

from __future__ import annotations

import atexit
import concurrent.futures
import logging
import os
import threading
import time

from sealpoint import _paths, _sealpoint
from sealpoint._arguments import Path, path_of
from sealpoint._option_table import BACKGROUND_DEADLINE_DEFAULT_SECONDS
from sealpoint._ranks.arguments import check
from sealpoint._ranks.session import Session
from sealpoint._save_future import SaveFuture

_log = logging.getLogger("sealpoint")
_WAIT_SECONDS = 1.0
_lock = threading.Lock()
# Savers with running promotions, because a deleted saver cancels its promotions; running staged saves; and outcomes that were not
# requested.
_savers: list[_sealpoint.Saver] = []
_saves: list[SaveFuture] = []
_over: list[tuple[str, BaseException | None]] = []
_pid = os.getpid()


def watch(saver: _sealpoint.Saver) -> None:
    """Keeps a saver alive until the promotions of its staged saves have ended. Callable from any thread."""
    with _lock:
        if saver not in _savers:
            _savers.append(saver)


def watch_save(save: SaveFuture) -> None:
    """Records a staged background save, so that ``watch`` is applied to its saver when the save has ended."""
    with _lock:
        _saves.append(save)


def _collect() -> bool:
    """Collects outcomes of promotions. Returns True if no promotion is running."""
    with _lock:
        _saves[:] = [save for save in _saves if not concurrent.futures.Future.done(save)]
        for saver in list(_savers):
            is_over = saver.wait_for_promotions(0)  # first, so that no outcome is missed
            _over.extend(saver.take_promotions())
            if is_over:
                _savers.remove(saver)
        return not _savers and not _saves


def take_promotions(series: str | None = None) -> list[tuple[str, BaseException | None]]:
    """Returns the final directory and the error of each promotion that ended since the last call.

    If ``series`` is set, only promotions into this series are returned.
    """
    _collect()
    prefix = "" if series is None else os.path.join(_paths.absolute(series), "")
    with _lock:
        taken = [promotion for promotion in _over if _paths.absolute(promotion[0]).startswith(prefix)]
        _over[:] = [promotion for promotion in _over if promotion not in taken]
        return taken


def await_promotions(timeout: float | None) -> bool:
    """Waits until no promotion of this rank is running, or until the timeout. Returns True if none is running."""
    end = None if timeout is None else time.monotonic() + timeout
    while not _collect():
        left = _WAIT_SECONDS if end is None else min(_WAIT_SECONDS, end - time.monotonic())
        if left <= 0:
            return False
        with _lock:
            saver, saves = _savers[0] if _savers else None, _saves[:1]
        if saves:
            concurrent.futures.wait(saves, left)
        elif saver is not None:
            saver.wait_for_promotions(left)
    return True


def wait_for_promotions(timeout: float | None = None) -> bool:
    """Waits until all staged saves of this process have been copied to their final directories. Not collective: each rank calls it.

    Args:
        timeout: Maximum wait in seconds. None: no limit.

    Returns:
        False if some promotions are still running.

    If promotions failed, raises the error of the first one, with the path of its final directory as a note. The local copy of the
    save is kept. The next staged save retries the promotion; in the next job, ``resume_promotions`` retries it.

    Examples:
        >>> import os, torch, sealpoint.torch as sp
        >>> _ = sp.save({"w": torch.ones(2)}, "run", series=True, step=1, staged=os.path.abspath("local"))
        >>> sp.wait_for_promotions()
        True
        >>> len(os.listdir("run"))
        1
    """
    check(deadline=timeout)
    is_over = await_promotions(timeout)
    failed = [(directory, error) for directory, error in take_promotions() if error is not None]
    for directory, error in failed[1:]:
        _log.error("the promotion to %s failed: %s", directory, error)
    if failed:
        directory, error = failed[0]
        error.add_note(f"in the promotion to {directory}")
        raise error
    return is_over


def resume(session: Session, staged: Path, series: Path, keep_local: int) -> list[str]:
    """Implements ``sealpoint.torch.resume_promotions``. Collective."""

    def checked() -> tuple[tuple[str, str], bytes]:
        check(path=series, staged=staged, keep_local=keep_local)
        return (path_of(staged), path_of(series)), b""

    with session.call("resume_promotions", series, same={"keep_local": keep_local}) as call:
        (local, final), _ = call.agree(checked, "began to resume promotions")
        promoted, skipped = _sealpoint.resume_promotions(
            call.communicator, local, final, keep_local=keep_local, deadline=BACKGROUND_DEADLINE_DEFAULT_SECONDS
        )
    if session.rank == 0:
        for directory, error in skipped:
            _log.warning("a newer checkpoint on local disks was skipped, %s: %s", directory, error)
    return promoted


@atexit.register
def _end() -> None:
    """Waits for running promotions at normal exit, before the savers are closed."""
    if os.getpid() != _pid:
        return
    await_promotions(None)
    for directory, error in take_promotions():
        if error is not None:
            _log.error("the promotion to %s failed, and its result was not requested: %s", directory, error)
