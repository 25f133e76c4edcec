# SPDX-License-Identifier: Apache-2.0
"""Saves by way of local disks: how their promotions to the final place end."""

from __future__ import annotations

import atexit
import concurrent.futures
import logging
import os
import threading
import time

import torch.distributed as dist

from sealpoint import _paths, _sealpoint
from sealpoint._arguments import path_of
from sealpoint._checkpoint import Path
from sealpoint._options import BACKGROUND_DEADLINE_DEFAULT_SECONDS, DEADLINE_DEFAULT_SECONDS
from sealpoint._save_future import SaveFuture
from sealpoint.torch._arguments import check
from sealpoint.torch._session import session_of
from sealpoint.torch._state import agree

_log = logging.getLogger("sealpoint")
_WAIT_SECONDS = 1.0
_lock = threading.Lock()
# Savers with promotions under way, which give them up when they go; and how promotions ended, until somebody hears it.
_savers: list[_sealpoint.Saver] = []
_saves: list[SaveFuture] = []
_over: list[tuple[str, BaseException | None]] = []
_pid = os.getpid()


def watch(saver: _sealpoint.Saver) -> None:
    """Keeps the saver, which has committed a staged save, until all that it promotes is over. For any thread."""
    with _lock:
        if saver not in _savers:
            _savers.append(saver)


def watch_save(save: SaveFuture) -> None:
    """A staged save in the background, whose saver is to be watched when it has ended."""
    with _lock:
        _saves.append(save)


def _collect() -> bool:
    """True if nothing is under way."""
    with _lock:
        _saves[:] = [one for one in _saves if not concurrent.futures.Future.done(one)]
        for saver in list(_savers):
            is_over = saver.wait_for_promotions(0)  # before they are taken, so that none is left behind
            _over.extend(saver.take_promotions())
            if is_over:
                _savers.remove(saver)
        return not _savers and not _saves


def take_promotions(series: str | None = None) -> list[tuple[str, BaseException | None]]:
    """Final directory and error of those that are over and were not taken before; ``series``: only of this directory."""
    _collect()
    prefix = "" if series is None else os.path.join(_paths.absolute(series), "")
    with _lock:
        taken = [one for one in _over if _paths.absolute(one[0]).startswith(prefix)]
        _over[:] = [one for one in _over if one not in taken]
        return taken


def await_promotions(timeout: float | None) -> bool:
    """Waits until nothing is under way on this rank, or so long. True if nothing is."""
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
    """Waits until all staged saves of this process are in their final places, or so long. Local: for each rank itself.

    Returns False if some are still under way. Errors: the first of those that failed, with the path of its final directory
    as a note; the local copy stays, the next staged save tries again, and so does ``resume_promotions`` in the next job.
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


def resume_promotions(
    staged: Path, series: Path, *, keep_local: int = 0, process_group: dist.ProcessGroup | None = None
) -> list[str]:
    """Finishes what an earlier job left on local disks; returns the names of what was promoted. All ranks call it.

    Before the newest checkpoint of the series is looked for: what is newer on local disks, and whole over all nodes
    together, is in the series afterwards, whatever number of ranks there is. What is not is logged ("sealpoint", as a
    warning).

    Args:
        staged: the local directory, as for ``save``; may differ by rank.
        series: the directory that the saves were to go to.
        keep_local: how many of the local copies stay.

    Errors, the same on all ranks: InvalidArgumentError, IoError, CommError, TimeoutError.
    """
    session = session_of(process_group)

    def checked() -> tuple[tuple[str, str], bytes]:
        check(path=series, staged=staged, keep_local=keep_local)
        return (path_of(staged), path_of(series)), b""

    with session.call("resume_promotions", series, deadline=DEADLINE_DEFAULT_SECONDS) as call:
        call.must_be_same({"keep_local": keep_local})
        (local, final), _ = agree(call, checked, "began to resume promotions")
        promoted, passed_over = _sealpoint.resume_promotions(
            call.communicator, local, final, keep_local=keep_local, deadline=BACKGROUND_DEADLINE_DEFAULT_SECONDS
        )
    if session.rank == 0:
        for directory, error in passed_over:
            _log.warning("what is newer on local disks was passed over, %s: %s", directory, error)
    return promoted


@atexit.register
def _end() -> None:
    """Before savers are closed. A process that ends normally waits for what it promotes."""
    if os.getpid() != _pid:
        return
    await_promotions(None)
    for directory, error in take_promotions():
        if error is not None:
            _log.error("the promotion to %s failed, and nobody asked: %s", directory, error)
