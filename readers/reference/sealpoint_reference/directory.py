# SPDX-License-Identifier: Apache-2.0
"""The files of a checkpoint (spec/container.md, sections 1 and 6)."""

import contextlib
import os
import re
import stat

from .rules import Violation

_HEX = "[0-9a-f]{32}"
_OURS = re.compile(rf"{_HEX}\.(index|blob|commit|probe.*)", re.DOTALL)
_HOLDS_A_CHECKPOINT = re.compile(rf"{_HEX}\.(index|blob|commit)")
MARKER_NAME = "COMMIT"
KEEP_NAME = "KEEP"


def is_ours(name):
    return _OURS.fullmatch(name) is not None


class MemoryDirectory:
    """Files as a dictionary from name to bytes."""

    def __init__(self, files):
        self._files = files

    def names(self):
        return sorted(self._files)

    def size(self, name):
        """The length of a regular file, None where there is none."""
        return len(self._files[name]) if name in self._files else None

    def read(self, name, offset, length):
        return self._files[name][offset:offset + length]


@contextlib.contextmanager
def _storage_errors(name):
    try:
        yield
    except OSError as error:
        raise Violation(None, error.strerror or str(error), name, code="Io") from error


class PathDirectory:
    """A directory of the file system. Links are followed."""

    def __init__(self, path):
        self._path = os.fspath(path)
        if not os.path.isdir(self._path):
            raise Violation("R-DIR-01", "not a directory that exists")

    def names(self):
        with _storage_errors(""):
            return sorted(os.listdir(self._path))

    def size(self, name):
        with _storage_errors(name):
            try:
                status = os.stat(os.path.join(self._path, name))
            except FileNotFoundError:
                return None
        return status.st_size if stat.S_ISREG(status.st_mode) else None

    def read(self, name, offset, length):
        with _storage_errors(name), open(os.path.join(self._path, name), "rb") as file:
            file.seek(offset)
            return file.read(length)


def read_exactly(directory, name, offset, length):
    data = directory.read(name, offset, length)
    if len(data) != length:
        raise Violation(None, f"{len(data)} of {length} bytes could be read", name, offset, code="Io")
    return data


def judge_without_marker(directory):
    """R-MRK-01 or R-DIR-05: an uncommitted checkpoint, or none at all."""
    for name in directory.names():
        if _HOLDS_A_CHECKPOINT.fullmatch(name) and directory.size(name) is not None:
            return Violation("R-MRK-01", "no marker was published", MARKER_NAME)
    return Violation("R-DIR-05", "no file of a checkpoint")


def notes(directory, pinned):
    """R-DIR-03 and R-DIR-04: what is there and not judged."""
    for name in directory.names():
        size = directory.size(name)
        if name in pinned:
            continue
        if name == KEEP_NAME and size is not None:
            yield "pinned by KEEP"
        elif is_ours(name) and size is not None:
            yield f"leftover of {size} bytes: {name}"
        else:
            yield f"foreign, not judged: {name}"
