# SPDX-License-Identifier: Apache-2.0
"""Files that many threads read at offsets."""

from __future__ import annotations

import errno
import resource
import threading
from collections.abc import Callable

from sealpoint import _paths
from sealpoint._errors import (
    AlreadyExistsError,
    Error,
    IoError,
    NoSpaceError,
    NotACheckpointError,
    NotFoundError,
)
from sealpoint._sealpoint import SourceFile, SourceFiles

_KEPT_OPEN_MAX = 256
# Size of the blocks that small reads of an object store fetch, and maximum number of blocks that are kept.
_BLOCK_BYTES, _BLOCKS_MAX = 16 << 20, 4


def descriptors_for(most: int) -> int:
    """Returns the maximum number of open files: a quarter of the process limit, at most ``most``."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return most if soft == resource.RLIM_INFINITY else max(1, min(most, soft // 4))


def io_error(error: OSError, path: str) -> Error:
    """Converts an operating system error into an error of the library."""
    classes: dict[int | None, type[Error]] = {
        errno.ENOENT: NotFoundError,
        errno.EEXIST: AlreadyExistsError,
        errno.ENOTEMPTY: AlreadyExistsError,
        errno.ENOSPC: NoSpaceError,
        errno.EDQUOT: NoSpaceError,
    }
    return classes.get(error.errno, IoError)(f"{error.strerror or error}", path=path)


class File:
    """A regular file with a known length. Thread-safe."""

    def __init__(self, path: str, files: FileSet) -> None:
        self.path = path
        self._files = files
        opened = files.open_again(path)
        self.size = opened.size
        self._kept: SourceFile | None = opened if files.may_keep() else None
        self.verified: set[int] = set()  # offsets of entries whose checksum was compared
        self.verified_lock = threading.Lock()

    def read_into(self, offset: int, out: memoryview) -> None:
        """Fills ``out`` with bytes. Raises IncompleteError (the file ends early) and IoError."""
        (self._kept or self._files.open_again(self.path)).read_into(offset, out)

    def read(self, offset: int, size: int) -> bytes:
        """Reads bytes. Raises IncompleteError (the file ends early) and IoError."""
        out = bytearray(size)
        self.read_into(offset, memoryview(out))
        return bytes(out)

    def close(self) -> None:
        self._kept = None


class FileSet:
    """The files of a source, each opened once."""

    def __init__(self) -> None:
        self._files: dict[str, File] = {}
        self._lock = threading.Lock()
        self._open_max = descriptors_for(_KEPT_OPEN_MAX)
        self._source = SourceFiles(_BLOCK_BYTES, _BLOCKS_MAX)

    def may_keep(self) -> bool:
        return len(self._files) < self._open_max

    def open(self, path: str) -> File:
        """Opens a file. Raises NotFoundError, NotACheckpointError (not a regular file) and IoError."""
        with self._lock:
            if path not in self._files:
                self._files[path] = File(path, self)
            return self._files[path]

    def open_again(self, path: str) -> SourceFile:
        """Opens a file for native reads. Raises NotFoundError, NotACheckpointError (not a regular file) and IoError."""
        try:
            return self._source.open(path)
        except IoError:
            if _paths.kind_of(path) in ("directory", "other"):
                raise NotACheckpointError("not a regular file", path=path) from None
            raise

    def close(self) -> None:
        with self._lock:
            for file in self._files.values():
                file.close()
            self._files.clear()


def attempt(call: Callable[[], object], path: str) -> None:
    """Runs a system call and converts an error of the call into an error of the library."""
    try:
        call()
    except OSError as error:
        raise io_error(error, path) from error


def read_whole(path: str) -> bytes:
    """Returns the bytes of a file. Raises the errors of ``attempt``."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise io_error(error, path) from error
