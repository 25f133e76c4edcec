# SPDX-License-Identifier: Apache-2.0
"""Files that are read at offsets, by many threads."""

from __future__ import annotations

import errno
import os
import stat
import threading
from collections.abc import Callable

from sealpoint._errors import (
    AlreadyExistsError,
    Error,
    IncompleteError,
    IoError,
    NoSpaceError,
    NotACheckpointError,
    NotFoundError,
)

_KEPT_OPEN_MAX = 256
# What one call of pread returns on Linux, at most.
_COPIED_BYTES_MAX = 1 << 30


def io_error(error: OSError, path: str) -> Error:
    """An error of the operating system, as one of the library's."""
    classes: dict[int | None, type[Error]] = {
        errno.ENOENT: NotFoundError,
        errno.EEXIST: AlreadyExistsError,
        errno.ENOTEMPTY: AlreadyExistsError,
        errno.ENOSPC: NoSpaceError,
        errno.EDQUOT: NoSpaceError,
    }
    return classes.get(error.errno, IoError)(f"{error.strerror or error}", path=path)


class File:
    """A regular file of a known length. Thread safety: any calls from any threads."""

    def __init__(self, path: str, files: FileSet) -> None:
        self.path = path
        self._files = files
        descriptor = self._open()
        self._kept: int | None = descriptor if files.may_keep() else None
        try:
            self.size = os.fstat(descriptor).st_size
        finally:
            if self._kept is None:
                os.close(descriptor)

    def _open(self) -> int:
        try:
            # A pipe must not make this wait.
            descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError as error:
            raise io_error(error, self.path) from error
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise NotACheckpointError("not a regular file", path=self.path)
        return descriptor

    def read_into(self, offset: int, out: memoryview) -> None:
        """Fills ``out``, which is of bytes. Errors: IncompleteError (the file ends before), IoError."""
        if self._kept is not None:
            return self._read_into(self._kept, offset, out)
        descriptor = self._open()
        try:
            self._read_into(descriptor, offset, out)
        finally:
            os.close(descriptor)

    def _read_into(self, descriptor: int, offset: int, out: memoryview) -> None:
        done = 0
        while done < len(out):
            try:
                count = os.preadv(descriptor, [out[done:]], offset + done)
            except OSError as error:
                raise io_error(error, self.path) from error
            if count == 0:
                raise IncompleteError(
                    f"the file ends after {self.size} bytes, expected {offset + len(out)} at least", path=self.path
                )
            done += count

    def read(self, offset: int, size: int) -> bytes:
        """Errors: IncompleteError (the file ends before), IoError."""
        if offset + size > self.size:
            raise IncompleteError(f"the file has {self.size} bytes, expected {offset + size} at least", path=self.path)
        if self._kept is not None and size < _COPIED_BYTES_MAX:  # in one call and one piece of memory
            data = os.pread(self._kept, size, offset)
            if len(data) == size:
                return data
        out = bytearray(size)
        self.read_into(offset, memoryview(out))
        return bytes(out)

    def close(self) -> None:
        if self._kept is not None:
            os.close(self._kept)
            self._kept = None


class FileSet:
    """The files of a source, opened once each."""

    def __init__(self) -> None:
        self._files: dict[str, File] = {}
        self._lock = threading.Lock()

    def may_keep(self) -> bool:
        return len(self._files) < _KEPT_OPEN_MAX

    def open(self, path: str) -> File:
        """Errors: NotFoundError, NotACheckpointError (no regular file), IoError."""
        with self._lock:
            if path not in self._files:
                self._files[path] = File(path, self)
            return self._files[path]

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        with self._lock:
            for file in self._files.values():
                file.close()
            self._files.clear()


def size_at(path: str) -> int:
    """The size of a regular file, or of one that a link leads to; 0 for all else."""
    try:
        found = os.stat(path)
    except OSError:
        return 0
    return found.st_size if stat.S_ISREG(found.st_mode) else 0


def attempt(call: Callable[[], object], path: str) -> None:
    """Runs a call of the operating system, with its error as one of the library's."""
    try:
        call()
    except OSError as error:
        raise io_error(error, path) from error


def read_whole(path: str) -> bytes:
    """The bytes of a file; with the errors of ``attempt``."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise io_error(error, path) from error
