# SPDX-License-Identifier: Apache-2.0
"""What saves and loads of one group of ranks keep: communicator, staging memory, saver."""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Sequence
from typing import Any

import torch.distributed as dist

from sealpoint import _sealpoint
from sealpoint._communicator import Communicator, SelfCommunicator
from sealpoint._errors import Error
from sealpoint._save import BLOB_SIZE_MAX_DEFAULT_BYTES
from sealpoint.torch._communicator import TorchCommunicator

# Staging memory of a rank, if the caller says nothing: saves in the background hold the whole state in it, if it fits.
_MEMORY_SHARE = 0.25
_MEMORY_MIN_BYTES = 64 << 20


def _default_budget() -> int:
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    ranks_here = int(os.environ.get("LOCAL_WORLD_SIZE", "0") or 0)
    if ranks_here <= 0:
        ranks_here = dist.get_world_size() if dist.is_initialized() else 1
    return max(_MEMORY_MIN_BYTES, int(physical * _MEMORY_SHARE) // ranks_here)


class Session:
    """Made by all ranks of a group together, when they first save or load."""

    def __init__(self, group: dist.ProcessGroup | None, purpose: str) -> None:
        self.pid = os.getpid()
        self.is_broken = False
        self.turn = threading.RLock()  # of the thread that saves or loads
        self.communicator: Communicator = SelfCommunicator() if group is None else TorchCommunicator(group, purpose)
        self._savers: dict[Any, _sealpoint.Saver] = {}
        self._engine: _sealpoint.Engine | None = None
        self._spans_hosts: bool | None = None

    def saver(
        self,
        *,
        compare_replicas: bool,
        deadline: float | None,
        background_deadline: float | None,
        memory_budget_bytes: int | None,
        writer_ranks: Sequence[int] = (),
    ) -> _sealpoint.Saver:
        """The same arguments on all ranks."""
        if self._engine is None:
            self._engine = _sealpoint.Engine(memory_budget_bytes=memory_budget_bytes or _default_budget())
        key = (compare_replicas, tuple(writer_ranks), deadline, background_deadline)
        if key not in self._savers:
            self._savers[key] = _sealpoint.Saver(
                self._engine,
                self.communicator,
                find_replicas=True,
                compare_replicas=compare_replicas,
                blob_size_max_bytes=BLOB_SIZE_MAX_DEFAULT_BYTES,
                writer_ranks=list(writer_ranks),
                check_device_copies=False,
                deadline=deadline,
                background_deadline=background_deadline,
            )
        return self._savers[key]

    def spans_hosts(self) -> bool:
        """Whether its ranks are on several hosts. Collective when it is first called."""
        if self._spans_hosts is None:
            hosts = [bytes(host) for host in self.communicator.all_gather(self.communicator.host.encode())]
            self._spans_hosts = any(host != hosts[0] for host in hosts)
        return self._spans_hosts

    def close(self) -> None:
        """Local."""
        for saver in self._savers.values():
            saver.close()
        self._savers.clear()


_sessions: dict[Any, Session] = {}
_making = threading.RLock()
os.register_at_fork(after_in_child=lambda: globals().update(_making=threading.RLock()))


def session_of(group: dist.ProcessGroup | None, *, purpose: str = "", is_alone: bool = False) -> Session:
    """That of the group; None: of all ranks, or of this process alone if torch.distributed is not in use.

    Collective when it is first called, and after an error of the communicator. Threads that save at a time have
    different purposes. ``is_alone``: of this process, whatever others there are.
    """
    is_parallel = not is_alone and dist.is_available() and dist.is_initialized()
    whole = (group or dist.group.WORLD) if is_parallel else None
    key = (whole, purpose)
    with _making:
        session = _sessions.get(key)
        if session is not None and session.pid == os.getpid() and not session.is_broken:
            return session
        if session is not None and session.pid == os.getpid():
            session.close()
        session = _sessions[key] = Session(whole, purpose)
        return session


def note_failure(session: Session, error: BaseException) -> None:
    """After an error of the communicator ranks may be anywhere in its sequence: another one is made."""
    if isinstance(error, Error) and error.code in ("Comm", "Timeout"):
        session.is_broken = True


@atexit.register
def _close_all() -> None:
    for session in _sessions.values():
        if session.pid == os.getpid():
            session.close()
    _sessions.clear()
