# SPDX-License-Identifier: Apache-2.0
"""Memory that the processes of a host share: one process writes a version, all others map it read-only.

Each version is in a memfd of its own. The kernel frees the memory when the last process that has it ends, however it ends. A folder
of the host has two files. ``leader`` is locked by the process that writes. ``current`` says where the newest whole version and the
one before it are; it is replaced atomically. Every mapping holds a shared lock of its memory as long as a view of it exists, and
the leader takes an exclusive one before it writes. The first bytes of the memory are the token of the version in it, or zeros while
it is written.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import mmap
import os
import secrets
import stat
import tempfile
import weakref
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from sealpoint import _sealpoint
from sealpoint._errors import InvalidArgumentError, IoError

HEADER_BYTES = mmap.PAGESIZE
_ALIGNMENT = 64  # one cache line, in bytes
_TOKEN_BYTES = 16
_PIECE_BYTES = 64 << 20  # copied at a time by one thread
_CURRENT_MAX_BYTES = 1 << 30
_F_SEAL_FUTURE_WRITE = 0x10  # only mappings that exist may write; the module fcntl lacks it
_SEALS = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | _F_SEAL_FUTURE_WRITE


class TensorPlace(NamedTuple):
    """A tensor in the memory of a version."""

    name: str
    dtype: str
    itemsize: int
    shape: tuple[int, ...]
    offset: int
    size_bytes: int
    fingerprint: str  # "" if the publisher stored none


class Generation(NamedTuple):
    """A whole version in memory, and how it came there."""

    version: int
    attempt: str
    sequence: int
    chain: list[int]  # versions that were read, oldest first
    bytes_fetched: int
    skipped: list[str]
    tensors: list[TensorPlace]
    size_bytes: int
    token: str
    pid: int
    descriptor: int


class StaleError(Exception):
    """The memory of a generation is gone, or its leader has begun to write another version into it."""


def layout(tensors: Iterable[tuple[str, str, int, tuple[int, ...], int, str]]) -> tuple[list[TensorPlace], int]:
    """Returns the places of tensors, given without their offsets, and the size of the memory."""
    places, end = [], HEADER_BYTES
    for name, dtype, itemsize, shape, size_bytes, fingerprint in tensors:
        places.append(TensorPlace(name, dtype, itemsize, shape, end, size_bytes, fingerprint))
        end += -(-size_bytes // _ALIGNMENT) * _ALIGNMENT
    return places, end


class Segment:
    """Memory that this process writes. No other process can."""

    def __init__(self, size_bytes: int) -> None:
        self.descriptor = os.memfd_create("sealpoint-weights", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        weakref.finalize(self, os.close, self.descriptor)
        os.ftruncate(self.descriptor, size_bytes)
        self.size_bytes = size_bytes
        self.memory = mmap.mmap(self.descriptor, size_bytes)
        fcntl.fcntl(self.descriptor, fcntl.F_ADD_SEALS, _SEALS)

    def begin(self) -> bool:
        """Begins to write. Returns False if a process still has a view of this memory."""
        try:
            fcntl.flock(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        self.memory[:_TOKEN_BYTES] = bytes(_TOKEN_BYTES)
        return True

    def end(self) -> str:
        """Ends the writing. Returns the token of the version; without it, no process takes what was written."""
        token = secrets.token_bytes(_TOKEN_BYTES)
        self.memory[:_TOKEN_BYTES] = token
        fcntl.flock(self.descriptor, fcntl.LOCK_UN)
        return token.hex()

    def visible(self) -> dict[str, int]:
        """Returns where other processes find this memory."""
        return {"pid": os.getpid(), "descriptor": self.descriptor}

    def copy_from(self, mapping: Mapping, threads: int) -> None:
        """Copies all bytes behind the header."""

        def copy(begin: int) -> None:
            with memoryview(self.memory) as memory, memory[begin : min(begin + _PIECE_BYTES, self.size_bytes)] as piece:
                done = 0
                while done < len(piece):
                    done += os.preadv(mapping.descriptor, [piece[done:]], begin + done)

        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(copy, range(HEADER_BYTES, self.size_bytes, _PIECE_BYTES)))


class Mapping:
    """A version mapped read-only. ``memory`` keeps the version as it is, even if this object is gone."""

    def __init__(self, generation: Generation) -> None:
        """Maps the memory of a generation. Raises StaleError and IoError."""
        path = f"/proc/{generation.pid}/fd/{generation.descriptor}"
        try:
            self.descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except PermissionError:
            raise IoError("the memory of the leader cannot be opened; expected processes of the same user", path=path) from None
        except OSError as error:
            raise StaleError(str(error)) from error
        weakref.finalize(self, os.close, self.descriptor)
        self.generation = generation
        try:
            fcntl.flock(self.descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
            if fcntl.fcntl(self.descriptor, fcntl.F_GET_SEALS) != _SEALS:
                raise StaleError(f"{path} is another file")
            # The mapping has a duplicate of the descriptor, and so the lock.
            self.memory = mmap.mmap(self.descriptor, generation.size_bytes, prot=mmap.PROT_READ)
        except (OSError, ValueError) as error:
            raise StaleError(str(error)) from error
        if self.memory[:_TOKEN_BYTES].hex() != generation.token:
            raise StaleError(f"{path} has another version")

    def visible(self) -> Generation:
        """Returns the generation as other processes find it in this process, if its leader has ended."""
        return self.generation._replace(pid=os.getpid(), descriptor=self.descriptor)


def _place(name: str, dtype: str, itemsize: int, shape: list[int], *rest: Any) -> TensorPlace:
    return TensorPlace(name, dtype, itemsize, tuple(shape), *rest)


class Host:
    """The memory of one place for the processes of this user. Not thread-safe."""

    def __init__(self, key: str, folder: str | None) -> None:
        """Opens the memory. ``key`` names the content; ``folder``: see ``Follower``."""
        root = folder or os.path.join("/dev/shm" if os.path.isdir("/dev/shm") else tempfile.gettempdir(),
                                      f"sealpoint-weights-{os.geteuid()}")  # fmt: skip
        self.folder = os.path.join(root, hashlib.blake2b(key.encode(), digest_size=16).hexdigest())
        for path in (root, self.folder):
            os.makedirs(path, mode=0o700, exist_ok=True)
            found = os.stat(path)
            if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o022:
                raise InvalidArgumentError("other users can write to the folder, or own it; expected a folder of this user",
                                           path=path)
        self._segments: list[Segment] = []
        self._lock: int | None = None
        _hosts.add(self)

    @property
    def leads(self) -> bool:
        return self._lock is not None

    def lead(self) -> bool:
        """Tells whether this process is the leader. If there is no leader, this process becomes it."""
        if self._lock is None:
            lock = os.open(os.path.join(self.folder, "leader"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(lock)
                return False
            self._lock = lock
        return True

    def generations(self) -> list[Generation]:
        """Returns the newest whole version in memory, and the one before it."""
        content = _sealpoint.read_file(os.path.join(self.folder, "current"), _CURRENT_MAX_BYTES)
        found = [] if content is None else json.loads(content)
        return [Generation(**{**item, "tensors": [_place(*place) for place in item["tensors"]]}) for item in found]

    def announce(self, generation: Generation) -> None:
        """Makes a whole version the newest for all processes of the host. Only the leader calls it."""
        others = [item for item in self.generations() if item.attempt != generation.attempt]
        items = [item._asdict() for item in (generation, *others[:1])]
        _sealpoint.write_file(os.path.join(self.folder, "current"), json.dumps(items).encode())

    def begin(self, size_bytes: int) -> Segment:
        """Returns memory to write, which no process reads. Only the leader calls it."""
        self._segments = [segment for segment in self._segments if segment.size_bytes == size_bytes]
        for segment in self._segments:
            if segment.begin():
                return segment
        segment = Segment(size_bytes)
        segment.begin()
        self._segments.append(segment)
        return segment

    def close(self) -> None:
        """Gives up the leadership, if this process has it, and the memory that this process writes."""
        self._segments = []
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


_hosts: weakref.WeakSet[Host] = weakref.WeakSet()


def _forget_locks() -> None:
    """A forked child would hold the lock of a leader that has ended."""
    for host in list(_hosts):
        with contextlib.suppress(OSError):
            host.close()


os.register_at_fork(after_in_child=_forget_locks)
