# SPDX-License-Identifier: Apache-2.0
"""What saves and loads of one group of ranks keep: communicator, staging memory, saver; and their calls."""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import json
import os
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import torch.distributed as dist

from sealpoint import _sealpoint
from sealpoint._communicator import Communicator, Message, SelfCommunicator
from sealpoint._errors import CommError, Error, InvalidArgumentError, TimeoutError
from sealpoint._machine import ranks_here
from sealpoint._options import default_budget
from sealpoint.torch._communicator import TorchCommunicator, name_of_ranks
from sealpoint.torch._lobby import Lobby, MovedError
from sealpoint.torch._options import SaveOptions
from sealpoint.torch._store import FOREVER_SECONDS, Aside, run_aside

# How long a rank that fails waits for the store, which has at most a few words to take.
_LEAVE_SECONDS = 2.0
# While a rank waits for others it looks in the store whether one of them gave up.
_LOOK_FIRST_SECONDS, _LOOK_MAX_SECONDS = 0.05, 1.0
_WHY_MAX = 1000  # characters of what other ranks hear
T = TypeVar("T")
# Before the first message of a call: how many calls this rank made, and digests of this one and of its host.
_HEAD = struct.Struct("<Q16s16s")


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=16).digest()


class Call:
    """One call that all ranks make together. A communicator, of which ``all_gather`` must be used first (see ``agree``).

    Whatever is raised within it on this rank alone, the others learn of at once. ``what`` of an exchange: what the ranks do
    in it, for errors: "compared what they save".
    """

    def __init__(self, session: Session, kind: str, path: Any, step: Any, deadline: float | None) -> None:
        self.session, self._deadline = session, deadline
        self.rank, self.size, self.host = session.rank, session.size, session.host
        self._path = "" if path is None else os.fsdecode(path)
        target = f" {self._path!r}" if self._path else ""
        self.text = f"{kind}{'' if step is None else f' of step {step}'}{target}"
        digest = hashlib.blake2b(self.text.encode("utf-8", "replace"), digest_size=8).hexdigest()
        self._key = f"{session.call_count}/{digest}"
        self._same: Mapping[str, Any] = {}
        self._has_begun = False
        self._doing: str | None = None  # in the exchange that this rank is in; None: the library's own, whose errors say it
        self._calls: list[bytes] = []  # what each rank said of its call, if they differ
        self._next_look, self._look_every = 0.0, _LOOK_FIRST_SECONDS
        self._looking: Aside[tuple[int, tuple[bool, str] | None]] | None = None

    def must_be_same(self, arguments: Mapping[str, Any]) -> None:
        """Arguments that all ranks must give alike; a difference is an error of all. Before the first exchange."""
        self._same = arguments

    @property
    def communicator(self) -> Communicator:
        """After the first exchange."""
        communicator = self.session.communicator
        assert communicator is not None
        return communicator

    def broadcast(self, message: Message | None, root: int, what: str) -> Message | None:
        return self._exchange(what, lambda: self.communicator.broadcast(message, root))

    def gather(self, message: Message, root: int, what: str) -> Sequence[Message] | None:
        return self._exchange(what, lambda: self.communicator.gather(message, root))

    def all_gather(self, message: Message, what: str) -> Sequence[Message]:
        return self._exchange(what, lambda: self._all_gather(message))

    def spans_hosts(self) -> bool:
        """Whether the ranks are on several hosts. After the first exchange. Local."""
        return len(set(self.session.hosts)) > 1

    def _exchange(self, what: str, exchange: Callable[[], T]) -> T:
        self._doing = what
        result = exchange()
        self._doing = None
        return result

    def _all_gather(self, message: Message) -> Sequence[Message]:
        if self._has_begun:
            return self.communicator.all_gather(message)
        said = json.dumps([self.text, {name: repr(value) for name, value in self._same.items()}]).encode()
        head = _HEAD.pack(self.session.call_count, _digest(said), _digest(self.host.encode()))
        answers = self._begin(head + bytes(message), said)
        heads = [_HEAD.unpack_from(answer) for answer in answers]
        self.session.call_count = max(count for count, _, _ in heads)
        self.session.hosts = [host for _, _, host in heads]
        return [answer[_HEAD.size :] for answer in answers]

    def check_same(self) -> None:
        """Checks that all ranks make this call, with the same arguments. After the first exchange. Local.

        Errors: InvalidArgumentError, the same on all ranks.
        """
        if not self._calls:
            return
        all_said, self._calls = [json.loads(one) for one in self._calls], []
        other = next(rank for rank, one in enumerate(all_said) if one != all_said[0])
        (first, first_same), (text, same) = all_said[0], all_said[other]
        if first != text:
            raise InvalidArgumentError(f"ranks make different calls: {first} on rank 0, {text} on rank {other}", rank=other)
        name = next(name for name in [*first_same, *same] if first_same.get(name) != same.get(name))
        raise InvalidArgumentError(
            f"ranks disagree on {name} of {text}: {first_same.get(name)} on rank 0, {same.get(name)} on rank {other}",
            rank=other,
        )

    def _begin(self, message: bytes, said: bytes) -> list[bytes]:
        """The first exchange: if the group turns out to be one that others gave up before this call, in a new one."""
        seconds = FOREVER_SECONDS if self._deadline is None else self._deadline
        end = time.monotonic() + seconds
        while True:
            communicator = self.session.communicator_for(self._key, self._look, end)
            communicator.set_deadline(max(0.001, end - time.monotonic()))
            try:
                answers = [bytes(one) for one in communicator.all_gather(message)]
                digests = {_HEAD.unpack_from(answer)[1] for answer in answers}
                # Here, since an answer may be that of a call in which its rank gave up the group.
                self._calls = [] if len(digests) == 1 else [bytes(one) for one in communicator.all_gather(said)]
                break
            except (CommError, TimeoutError) as error:
                if time.monotonic() >= end or not self._was_given_up(error):
                    raise
                self.session.drop()
        communicator.set_deadline(self._deadline)
        self._has_begun = True
        return answers

    def _was_given_up(self, error: Error) -> bool:
        """Whether others left the group before this call. Errors: CommError (in this very call, and why)."""
        if isinstance(error, MovedError):
            return True
        newest, why = self.session.ask(lambda lobby: (lobby.newest(), lobby.why_left(self._key)))
        if why is not None:
            raise CommError(why[1]) from error
        return bool(newest != self.session.generation)

    def _look(self) -> None:
        """Called while this rank waits for others."""
        now = time.monotonic()
        if self._looking is None:
            if now >= self._next_look:
                lobby = self.session.lobby
                assert lobby is not None
                self._looking = Aside(lambda: (lobby.newest(), lobby.why_left(self._key)))
        elif self._looking.wait(0):
            looked, self._looking = self._looking, None
            self._next_look, self._look_every = now + self._look_every, min(2 * self._look_every, _LOOK_MAX_SECONDS)
            with contextlib.suppress(RuntimeError):  # of the store, whose host may be gone; gloo finds out
                newest, why = looked.result()
                if why is not None:
                    raise CommError(why[1])
                if newest != self.session.generation and not self._has_begun:
                    raise MovedError("other ranks gave up this group")

    def end(self, error: BaseException) -> None:
        """This rank leaves the call by an error. Unless all ranks have the same, their group is of no use any more."""
        if not isinstance(error, Error):
            text = self._named(" ".join(f"{type(error).__name__}: {error}".split()))
            return self.session.leave(self._key, f"rank {self.rank} left {text}"[:_WHY_MAX])
        if error.code not in ("Comm", "Timeout"):
            return
        is_late, text, why = error.code == "Timeout", self._named(error.message), None
        can_tell = True
        try:
            why = None if self.session.lobby is None else self.session.ask(lambda lobby: lobby.why_left(self._key))
        except Error:
            can_tell = False
        if why is not None and not (is_late and why[0]):  # else both waited for a third rank
            text = why[1]  # the cause of what this rank met
        error.message, error.args = text, (text, *error.args[1:])
        if can_tell:
            self.session.leave(self._key, f"rank {self.rank} left {text}"[:_WHY_MAX], is_late)
        else:
            self.session.drop()

    def _named(self, text: str) -> str:
        """With this call, and what the ranks did in it. What the library's own exchange says has both."""
        if self._doing is None and self._path and self._path in text:
            return text
        return f"{self.text}{'' if self._doing is None else f', while the ranks {self._doing}'}: {text}"


class Session:
    """What a group of ranks shares. Their first call makes its groups, and the next one after an error makes them anew."""

    def __init__(self, group: dist.ProcessGroup | None, purpose: str) -> None:
        self.pid = os.getpid()
        self.turn = threading.RLock()  # of the thread that saves or loads
        self.communicator: Communicator | None = None
        self.lobby: Lobby | None = None
        self.generation = 0  # of the communicator
        self.call_count = 0
        self._is_broken = False
        self._savers: dict[Any, _sealpoint.Saver] = {}
        self._engine: _sealpoint.Engine | None = None
        self.rank, self.size, self.host = 0, 1, SelfCommunicator().host
        self.hosts: list[bytes] = []  # of all ranks, digests of their names, since the first call
        if group is not None:
            ranks = dist.get_process_group_ranks(group)
            self.rank, self.size = ranks.index(dist.get_rank()), len(ranks)
            self.lobby = Lobby(f"session/{purpose}/{name_of_ranks(group, ranks)}", self.rank, self.size)

    @contextlib.contextmanager
    def call(self, kind: str, path: Any = None, *, step: Any = None, deadline: float | None) -> Iterator[Call]:
        """A call of all ranks, which messages name so. What ends it is the same error on all, or ends their group."""
        with self.turn:
            self.call_count += 1
            call = Call(self, kind, path, step, deadline)
            try:
                yield call
            except BaseException as error:
                call.end(error)
                raise

    def ask(self, question: Any) -> Any:
        """question(lobby), if the store answers. Errors: TimeoutError, CommError."""
        lobby = self.lobby
        if lobby is None:
            return 0, None
        try:
            return run_aside(lambda: question(lobby), _LEAVE_SECONDS, "the store of torch.distributed")
        except TimeoutError:
            lobby.forget_connection()
            raise

    def communicator_for(self, key: str, look: Any, end: float) -> Communicator:
        """That of the group, or of a new one. Collective if there is none, or if it was given up."""
        if self._is_broken:
            if self.lobby is not None and self.communicator is not None:
                generation = self.generation
                self.ask(lambda lobby: lobby.leave(generation, None, ""))
            self.drop()
        if self.communicator is None and self.lobby is None:
            self.communicator = SelfCommunicator()
        elif self.communicator is None:
            assert self.lobby is not None
            links, self.generation, name = self.lobby.meet(key, end - time.monotonic())
            self.communicator = TorchCommunicator.of_links(links, name, self.rank, self.size, None, None)
        if isinstance(self.communicator, TorchCommunicator):
            self.communicator.look = look
        assert self.communicator is not None
        return self.communicator

    def drop(self) -> None:
        """Local: forgets the group. A saver stays as long as a save of it goes on in the background."""
        self.communicator, self._is_broken = None, False
        self._savers = {}

    def leave(self, key: str, why: str, is_late: bool = False) -> None:
        """Local: the group is given up, in the call of this key, and others hear why."""
        generation = None if self.communicator is None else self.generation
        with contextlib.suppress(Error):  # who cannot hear it finds out by the deadline
            self.ask(lambda lobby: lobby.leave(lobby.newest() if generation is None else generation, key, why, is_late))
        self.drop()  # now, since others see at once that connections are closed, and ask why

    def note_failure(self, saver: _sealpoint.Saver, error: BaseException) -> None:
        """A save in the background failed: if its group did, the next call makes new ones. For any thread."""
        if isinstance(error, Error) and error.code in ("Comm", "Timeout") and saver in list(self._savers.values()):
            self._is_broken = True

    def saver(self, options: SaveOptions) -> _sealpoint.Saver:
        """The same options on all ranks. After the first exchange of a call."""
        if self._engine is None:
            self._engine = _sealpoint.Engine(memory_budget_bytes=options.memory_budget_bytes or self._default_budget())
        arguments = options.saver_arguments()
        key = tuple(arguments.items())
        if key not in self._savers:
            self._savers[key] = _sealpoint.Saver(self._engine, self.communicator, **arguments)
        return self._savers[key]

    def _default_budget(self) -> int:
        world_size = dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1
        return default_budget(ranks_here(self.hosts, self.hosts[self.rank], world_size))

    def close(self) -> None:
        """Local."""
        for saver in list(self._savers.values()):
            saver.close()
        self._savers = {}


_sessions: dict[Any, Session] = {}
_making = threading.RLock()
# In a forked child: the ranks of its parent, whose connections and place among them it must not use.
_world_of_parent: dist.ProcessGroup | None = None


def _after_fork() -> None:
    global _making, _world_of_parent
    _making = threading.RLock()
    _world_of_parent = dist.group.WORLD if dist.is_available() and dist.is_initialized() else None


os.register_at_fork(after_in_child=_after_fork)


def session_of(group: dist.ProcessGroup | None, *, purpose: str = "", is_alone: bool = False) -> Session:
    """That of the group; None: of all ranks, or of this process alone if torch.distributed is not in use. Local.

    Threads that save at a time have different purposes. ``is_alone``: of this process, whatever others there are.
    Errors: InvalidArgumentError.
    """
    is_parallel = not is_alone and dist.is_available() and dist.is_initialized()
    if group is not None and not isinstance(group, dist.ProcessGroup):
        raise InvalidArgumentError(
            f"process_group is {group!r}, expected a group of torch.distributed that has this rank, or None"
        )
    whole = (group or dist.group.WORLD) if is_parallel else None
    if whole is not None and dist.group.WORLD is _world_of_parent:
        raise InvalidArgumentError("this process was forked from a rank, whose groups it cannot use; expected no_dist=True")
    key = (whole, purpose)
    with _making:
        session = _sessions.get(key)
        if session is None or session.pid != os.getpid():
            session = _sessions[key] = Session(whole, purpose)
        return session


def check_is_not_one_of_many(group: dist.ProcessGroup | None) -> None:
    """Errors: InvalidArgumentError: this process is one of several, and torch.distributed does not know the others, so that
    each of them would save alone, into one place. Local."""
    size = os.environ.get("WORLD_SIZE", "")
    if group is None and size.isdecimal() and int(size) > 1 and not (dist.is_available() and dist.is_initialized()):
        raise InvalidArgumentError(
            f"WORLD_SIZE is {size}, and torch.distributed has no process group, so that each of these processes would save "
            "alone; call torch.distributed.init_process_group() before, or give no_dist=True if this one is to save alone"
        )


@atexit.register
def _close_all() -> None:
    for session in _sessions.values():
        if session.pid == os.getpid():
            session.close()
    _sessions.clear()
