# SPDX-License-Identifier: Apache-2.0
"""What saves and loads of this process keep: communicator, staging memory, savers; and the calls that all processes make."""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import json
import os
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NoReturn, TypeVar, cast

from sealpoint import _sealpoint
from sealpoint._agreement import ANSWER, ERROR, dump_error, parse_error
from sealpoint._communicator import Communicator, SelfCommunicator
from sealpoint._errors import CommError, Error, InvalidArgumentError
from sealpoint._keywords import tells_others
from sealpoint._machine import ranks_here
from sealpoint._options import DEADLINE_DEFAULT_SECONDS, default_budget
from sealpoint.jax._communicator import JaxCommunicator, client_of_store
from sealpoint.jax._jax import jax
from sealpoint.jax._options import SaveOptions

_WHY_MAX = 1000  # characters of what other processes hear
T = TypeVar("T")
# Before the first message of a call: how many calls this process made, and digests of this one and of its host.
_HEAD = struct.Struct("<Q16s16s")


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=16).digest()


class _MovedError(CommError):
    """Others gave up this group of keys before the call."""


class Call:
    """One call that all processes make together: what goes wrong on one of them is an error of all."""

    def __init__(self, session: Session, text: str, same: Any, deadline: float | None) -> None:
        self.session, self.text, self.deadline = session, text, deadline
        self.rank, self.size, self.host = session.rank, session.size, session.host
        self._said = json.dumps([text, repr(same)]).encode()
        self._calls: list[bytes] = []  # what each process said of its call, if they differ
        self._has_begun = False

    @property
    def key(self) -> str:
        """What tells it from other calls: after the first exchange the same on all processes, and before it, too, unless one
        of them made more calls than another."""
        digest = hashlib.blake2b(self.text.encode("utf-8", "replace"), digest_size=8).hexdigest()
        return f"{self.session.call_count}/{digest}"

    @property
    def communicator(self) -> Communicator:
        """After the first ``agree``."""
        assert self.session.communicator is not None
        return self.session.communicator

    def agree(self, make: Callable[[], tuple[T, bytes]]) -> tuple[T, list[bytes]]:
        """What make() returns, and the answers (its second value) of all processes. Collective."""
        made: T | None = None
        error: Exception | None = None
        try:
            made, answer = make()
            message = ANSWER + answer
        except Exception as failed:  # the others must not wait for this process, whatever it is
            error, message = failed, ERROR + dump_error(failed, self.rank, self.host)
        if self._has_begun:
            answers = [bytes(one) for one in self.communicator.all_gather(message)]
        else:
            answers = self._begin(message)
        for one in answers:
            if one[:1] == ERROR:
                raise parse_error(one[1:]) from error
        self._check_same()
        return cast(T, made), [one[1:] for one in answers]

    def _begin(self, message: bytes) -> list[bytes]:
        """The first exchange: if others gave up the group before this call, in a new one. It puts the processes in step, if
        one of them made fewer calls than another."""
        head = _HEAD.pack(self.session.call_count, _digest(self._said), _digest(self.host.encode()))
        seconds, began = self.deadline, time.monotonic()
        while True:
            communicator = self.session.communicator_for(self)
            communicator.set_deadline(seconds)
            try:
                answers = [bytes(one) for one in communicator.all_gather(head + message)]
                heads = [_HEAD.unpack_from(one) for one in answers]
                # Here, since an answer may be that of a call in which its process gave up the group.
                is_same = all(digest == heads[0][1] for _, digest, _ in heads)
                self._calls = [] if is_same else [bytes(one) for one in communicator.all_gather(self._said)]
                break
            except _MovedError:
                self.session.drop()
                if self.deadline is not None:
                    seconds = max(0.001, began + self.deadline - time.monotonic())
        communicator.set_deadline(self.deadline)
        self._has_begun = True
        self.session.call_count = max(count for count, _, _ in heads)
        self.session.hosts = [host for _, _, host in heads]
        return [one[_HEAD.size :] for one in answers]

    def _check_same(self) -> None:
        """Errors: InvalidArgumentError (another call, or other arguments, on another process)."""
        if not self._calls:
            return
        said, self._calls = [json.loads(one) for one in self._calls], []
        other = next(rank for rank, one in enumerate(said) if one != said[0])
        (first, first_same), (text, same) = said[0], said[other]
        different = (first, text) if first != text else (f"{first} with {first_same}", f"{text} with {same}")
        raise InvalidArgumentError(
            f"ranks make different calls: {different[0]} on rank 0, {different[1]} on rank {other}", rank=other
        )

    def look(self) -> None:
        """Called while this process waits for others."""
        left = self.session.left()
        if left is None:
            return
        key, why = left
        if key != self.key and not self._has_begun:
            raise _MovedError(why)
        raise CommError(why, rank=self.rank)


class Session:
    """What the processes share. Keys of the store have a generation, and the call after an error begins a new one."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.is_parallel = client_of_store() is not None and jax.process_count() > 1
        self.rank = jax.process_index() if self.is_parallel else 0
        self.size = jax.process_count() if self.is_parallel else 1
        self.host = SelfCommunicator().host
        self.hosts: list[bytes] = []  # of all processes, digests of their names, since the first call
        self.turn = threading.RLock()  # of the thread that saves or loads
        self.call_count = 0
        self.communicator: Communicator | None = None
        self._generation = 0
        self._is_broken = False
        self._engine: _sealpoint.Engine | None = None
        self._savers: dict[Any, _sealpoint.Saver] = {}

    @contextlib.contextmanager
    def call(self, text: str, same: Any, deadline: float | None) -> Iterator[Call]:
        """``text``: what messages name it. ``same``: what must be the same on all processes."""
        with self.turn:
            self.call_count += 1
            call = Call(self, text, same, deadline)
            try:
                yield call
            except BaseException as error:
                if not isinstance(error, Error) or error.code in ("Comm", "Timeout"):
                    said = error.message if isinstance(error, Error) else f"{type(error).__name__}: {error}"
                    self.leave(call.key, f"rank {self.rank} left {text}: {' '.join(said.split())}")
                raise

    def communicator_for(self, call: Call) -> Communicator:
        if not self.is_parallel:
            self.communicator = self.communicator or SelfCommunicator()
            return self.communicator
        if self._is_broken:
            self.leave("", f"rank {self.rank}: a save in the background failed")
        while (left := self.left()) is not None:
            key, why = left
            self.drop()  # a communicator whose generation was left is never used again
            if key == call.key:
                raise CommError(why, rank=self.rank)
            self._generation += 1
        if self.communicator is None:
            self.communicator = JaxCommunicator(f"sealpoint/{self._generation}")
        assert isinstance(self.communicator, JaxCommunicator)
        self.communicator.look = call.look
        return self.communicator

    def _key(self) -> str:
        return f"sealpoint/left/{self._generation}"

    def left(self) -> tuple[str, str] | None:
        """In which call some process gave up this generation, and why; None: none did."""
        try:
            key, why = json.loads(client_of_store().key_value_try_get_bytes(self._key()))
            return str(key), str(why)
        except jax.errors.JaxRuntimeError:
            return None

    def leave(self, key: str, why: str) -> None:
        """Local: gives up the group, in the call of this key; others hear why. "": between calls."""
        while self.is_parallel:
            try:
                client_of_store().key_value_set_bytes(self._key(), json.dumps([key, why[:_WHY_MAX]]).encode())
                break
            except jax.errors.JaxRuntimeError:  # another process left it first
                left = self.left()
                if left is None or key in ("", left[0]):
                    break
                self._generation += 1  # in that other call; who waits for this one does so in the next group
        self.drop()

    def drop(self) -> None:
        """Local: forgets the group. A saver stays as long as a save of it goes on in the background."""
        self.communicator, self._is_broken, self._savers = None, False, {}

    def note_failure(self, saver: _sealpoint.Saver, error: BaseException) -> None:
        """A save in the background failed: if its group did, the next call makes a new one. For any thread."""
        if isinstance(error, Error) and error.code in ("Comm", "Timeout") and saver in list(self._savers.values()):
            self._is_broken = True

    def saver(self, options: SaveOptions) -> _sealpoint.Saver:
        """After the first ``agree`` of a call. The same options on all processes."""
        if self._engine is None:
            budget = options.memory_budget_bytes or default_budget(ranks_here(self.hosts, self.hosts[self.rank], self.size))
            self._engine = _sealpoint.Engine(memory_budget_bytes=budget)
        arguments = options.saver_arguments()
        key = tuple(arguments.items())
        if key not in self._savers:
            self._savers[key] = _sealpoint.Saver(self._engine, self.communicator, **arguments)
        return self._savers[key]

    def close(self) -> None:
        """Local."""
        for saver in self._savers.values():
            saver.close()
        self._savers = {}


_session: Session | None = None
_making = threading.Lock()


def session() -> Session:
    """That of this process. Errors: InvalidArgumentError (in a forked child of a job with several processes)."""
    global _session
    with _making:
        is_parallel = client_of_store() is not None and jax.process_count() > 1
        if _session is not None and _session.pid != os.getpid():
            if is_parallel:
                raise InvalidArgumentError("this process was forked from a rank, whose connections it cannot use")
            _session = None
        if _session is None or _session.is_parallel != is_parallel:
            _session = Session()
        return _session


def refuse(kind: str, error: Error) -> NoReturn:
    """Raises the error on all processes that make this call, or another one."""

    def fail() -> tuple[None, bytes]:
        raise error

    with session().call(kind, None, DEADLINE_DEFAULT_SECONDS) as call:
        call.agree(fail)
    raise AssertionError


def _tell(name: str, _: Mapping[str, Any], error: InvalidArgumentError) -> None:
    if session().size > 1:
        refuse(name, error)


tells_other_processes = tells_others(_tell)


@atexit.register
def _close() -> None:
    if _session is not None and _session.pid == os.getpid():
        _session.close()
