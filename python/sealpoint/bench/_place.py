# SPDX-License-Identifier: Apache-2.0
"""The temporary folder of a run. The run writes or removes checkpoints only in this folder."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import time
from collections.abc import Iterator
from types import TracebackType

from sealpoint import _paths, _sealpoint
from sealpoint._arguments import path_of
from sealpoint._command import write_error
from sealpoint._errors import Error, InvalidArgumentError, IoError, NoSpaceError, NotFoundError
from sealpoint._sealpoint import printable

# Killed processes may still complete their last system call, so the removal is retried.
_TRIES, _WAIT_SECONDS = 20, 0.25
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def _signals_wait() -> Iterator[None]:
    """Delays signals with Python handlers until the block ends, because the handlers may raise exceptions.

    A signal mask would not delay the signals, because a mask applies to only one thread.
    """
    arrived: list[int] = []
    before = {number: handler for number in _SIGNALS if callable(handler := signal.getsignal(number))}
    for number in before:
        signal.signal(number, lambda number, frame: arrived.append(number))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if arrived:
            signal.raise_signal(arrived[0])


class Place:
    """A context manager that removes ``folder`` if ``make`` created it."""

    def __init__(self, path: str, needed_bytes: int, size_option: str) -> None:
        """Checks the place. ``size_option`` is the option that determines the size, for error messages.

        Raises NotFoundError, InvalidArgumentError and UnsupportedError (a URL with an unknown scheme).
        """
        self.path = path_of(path)
        self.is_url = not _paths.is_local(self.path)
        self._needed_bytes, self._size_option = needed_bytes, size_option
        self.folder = os.path.join(_paths.absolute(self.path), f"sealpoint-bench-{secrets.token_hex(8)}")
        self.file_system = "object store" if self.is_url else "unknown"
        self.is_made = False
        self._identity: tuple[int, int] | None = None
        if self.is_url:
            return
        if not os.path.exists(self.path):
            raise NotFoundError("the directory does not exist: create it, or pass another PATH", path=self.path)
        if not os.path.isdir(self.path):
            raise InvalidArgumentError("it is a file, expected a directory or a URL", path=self.path)
        self.file_system = _file_system_of(self.path)

    def __enter__(self) -> Place:
        return self

    def make(self) -> None:
        """Creates the folder. Raises IoError, NoSpaceError and the errors of the storage."""
        with _signals_wait():  # until the created folder is recorded
            self._make()

    def _make(self) -> None:
        if self.is_url:
            self.is_made = True
            _sealpoint.write_file(f"{self.folder}/begun", b"ckpt bench")
            return
        try:
            os.mkdir(self.folder, 0o700)
        except OSError as error:
            raise IoError(f"no folder can be made in it: {error.strerror} (errno {error.errno})", path=self.path) from None
        self.is_made = True
        found = os.stat(self.folder)
        self._identity = (found.st_dev, found.st_ino)
        free = shutil.disk_usage(self.folder).free
        if free < self._needed_bytes:
            raise NoSpaceError(
                f"{free:,} bytes are free, and {self._size_option} needs {self._needed_bytes:,}: give a smaller --size",
                path=self.path,
            )

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        with _signals_wait():  # a second Ctrl-C does not stop the removal
            if self.is_made:
                self._remove()

    @property
    def is_memory(self) -> bool:
        """Tells whether the files of the place are in memory. If they are, posix_fadvise has no effect."""
        return self.file_system.split()[0] in ("tmpfs", "ramfs")

    def join(self, name: str) -> str:
        return os.path.join(self.folder, name)

    def _remove(self) -> None:
        for left in reversed(range(_TRIES)):
            try:
                if self._identity is not None:
                    found = os.lstat(self.folder)
                    if (found.st_dev, found.st_ino) != self._identity:
                        raise IoError("another directory has its name now")
                _sealpoint.remove_path(self.folder)
                return
            except (OSError, Error) as error:
                if left == 0:
                    write_error(f"ckpt bench: {printable(self.folder)} was not removed: {error}\n")
            time.sleep(_WAIT_SECONDS)


def _file_system_of(path: str) -> str:
    """Returns the type and the source of the file system that contains a path, from /proc."""
    device = os.stat(path).st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    for line in lines_of("/proc/self/mountinfo"):
        mount, _, rest = line.partition(" - ")
        if mount.split()[2] == number:
            kind, source = rest.split()[:2]
            return f"{kind} on {source}"
    return "unknown"


def lines_of(path: str) -> list[str]:
    """Returns the lines of a /proc file, or no lines if the file cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as opened:
            return opened.read().splitlines()
    except OSError:
        return []
