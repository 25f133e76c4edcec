# SPDX-License-Identifier: Apache-2.0
"""The objects that a group of ranks keeps between calls: connections, staging memory and savers."""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NoReturn, TypeVar

from sealpoint import _sealpoint
from sealpoint._errors import Error, InvalidArgumentError
from sealpoint._keywords import tells_others
from sealpoint._machine import memory_bytes, ranks_here
from sealpoint._option_table import DEADLINE_DEFAULT_SECONDS, OPTIONS
from sealpoint._options import StoreOptions
from sealpoint._ranks.call import Call
from sealpoint._ranks.communicator import Communicator
from sealpoint._ranks.connection import Connection
from sealpoint._ranks.rendezvous import Group

# Default staging memory of all ranks on a machine, relative to the memory of the machine. A background save copies the complete
# state into staging memory if the state fits.
_MEMORY_SHARE = 0.25
_MEMORY_MIN_BYTES = 64 << 20
F = TypeVar("F", bound=Callable[..., Any])


def default_budget(ranks_here: int) -> int:
    """Returns the default staging memory, in bytes, for each of the ``ranks_here`` ranks on this machine."""
    return max(_MEMORY_MIN_BYTES, int(memory_bytes() * _MEMORY_SHARE) // ranks_here)


def _saver_options(options: StoreOptions) -> dict[str, Any]:
    """Returns the fields of SaverOptions. For an option that the framework does not have, the default is used."""
    return {
        row.saver.field: row.saver.value(getattr(options, name, row.default)) for name, row in OPTIONS.items() if row.saver
    }


class Session(Connection):
    """The session of a group. The first call connects the ranks; the first call after an error reconnects them."""

    def __init__(self, group: Group[Communicator] | None, job_size: Callable[[], int]) -> None:
        """Creates the session.

        Args:
            group: None for this process alone.
            job_size: Returns the number of ranks in the job. This number determines this rank's share of memory.
        """
        super().__init__(group)
        self.pid = os.getpid()
        self.turn = threading.RLock()  # held by the thread that saves or loads
        self._job_size = job_size
        self._savers: dict[Any, _sealpoint.Saver] = {}
        self._engine: _sealpoint.Engine | None = None

    @contextlib.contextmanager
    def call(
        self, kind: str, path: Any = None, *, step: Any = None, same: Mapping[str, Any] | None = None,
        deadline: float | None = DEADLINE_DEFAULT_SECONDS
    ) -> Iterator[Call]:
        """Begins a collective call with this kind, step and path. See ``Call``."""
        with self.turn:
            self.call_count += 1
            call = Call(self, kind, path, step, same or {}, deadline)
            try:
                yield call
            except BaseException as error:
                call.end(error)
                raise

    def refuse(self, kind: str, error: Exception) -> NoReturn:
        """Raises the error on this rank. On each other rank, the error is raised by the current or the next call."""

        def fail() -> tuple[None, bytes]:
            raise error

        with self.call(kind) as call:
            call.agree(fail, "began the call")
        raise AssertionError

    def drop(self) -> None:
        """Closes the connections and drops the savers. A saver stays alive until its background save ends."""
        super().drop()
        self._savers = {}

    def note_failure(self, saver: _sealpoint.Saver, error: BaseException) -> None:
        """Records the failure of a background save.

        If the group's connections failed, the next call reconnects the ranks. Callable from any thread.
        """
        if isinstance(error, Error) and error.code in ("Comm", "Timeout") and saver in list(self._savers.values()):
            self.is_broken = True

    def saver(self, options: StoreOptions) -> _sealpoint.Saver:
        """Returns the saver for these options, which must be equal on all ranks.

        Call it only within a collective call, after its first exchange.
        """
        engine = self._engine_for(options)
        chosen = _saver_options(options)
        key = tuple(chosen.items())
        if key not in self._savers:
            self._savers[key] = _sealpoint.Saver(engine, self.communicator, chosen)
        return self._savers[key]

    def _engine_for(self, options: StoreOptions) -> _sealpoint.Engine:
        """Returns the engine. The first call creates it with the memory budget of these options."""
        if self._engine is None:
            hosts = self.hosts or [b""]  # if a single rank has made no call yet
            here = ranks_here(hosts, hosts[self.rank], self._job_size())
            self._engine = _sealpoint.Engine(memory_budget_bytes=options.memory_budget_bytes or default_budget(here))
        return self._engine

    def map_ahead(self, options: StoreOptions, size_bytes: Callable[[], int]) -> bool:
        """Starts to map staging memory for a save of size_bytes(), so that the first background save need not wait for it. Local.

        Returns False before the first collective call, because the default budget depends on the number of ranks on this machine.
        """
        if self.size > 1 and not self.hosts:
            return False
        self._engine_for(options).map_memory_in_background(size_bytes())
        return True

    def close(self) -> None:
        """Closes the session. Local."""
        for saver in list(self._savers.values()):
            saver.close()
        self._savers = {}


def tells_ranks(session_of: Callable[[Mapping[str, Any]], Session]) -> Callable[[F], F]:
    """Decorates a function so that wrong keywords raise an error on all calling ranks.

    ``session_of`` returns the session for the keywords.
    """

    def tell(name: str, keywords: Mapping[str, Any], error: InvalidArgumentError) -> None:
        session = session_of(keywords)
        if session.size > 1:
            session.refuse(name, error)

    return tells_others(tell)


class Sessions:
    """All sessions of one framework in this process."""

    def __init__(self, job: Callable[[], Any], hint: str = "") -> None:
        """Creates an empty set of sessions.

        Args:
            job: Returns the framework's identifier for the group of all ranks, or None if this process is alone.
        """
        self._job, self._hint = job, hint
        self._sessions: dict[Any, Session] = {}
        self._making = threading.RLock()
        self._job_of_parent: Any = None  # a forked child must not use the parent's connections or rank
        os.register_at_fork(after_in_child=self._after_fork)
        _all.append(self)

    def _after_fork(self) -> None:
        self._making, self._job_of_parent = threading.RLock(), self._job()

    def get(self, key: Any, make: Callable[[], Session], *, is_alone: bool) -> Session:
        """Returns the session with this key. Raises InvalidArgumentError in a forked child of a rank, unless ``is_alone``."""
        if not is_alone and self._job_of_parent is not None and self._job() is self._job_of_parent:
            raise InvalidArgumentError(f"this process was forked from a rank, whose connections it cannot use{self._hint}")
        with self._making:
            session = self._sessions.get(key)
            if session is None or session.pid != os.getpid():
                session = self._sessions[key] = make()
            return session

    def close(self) -> None:
        for session in self._sessions.values():
            if session.pid == os.getpid():
                session.close()
        self._sessions.clear()


_all: list[Sessions] = []


@atexit.register
def _close_all() -> None:
    for sessions in _all:
        sessions.close()
