# SPDX-License-Identifier: Apache-2.0
"""The files of a checkpoint (spec/container.md, sections 1 and 6)."""

import contextlib
import os
import re
import stat

from .rules import Violation

_HEX = "[0-9a-f]{32}"
_LEFTOVER = re.compile(rf"{_HEX}\.(index|blob|commit|probe[a-z0-9.-]*)")
_UNKNOWN_KIND = re.compile(rf"{_HEX}\.[a-z0-9-]{{1,16}}")
_HOLDS_A_CHECKPOINT = re.compile(rf"{_HEX}\.(index|blob|commit)")
MARKER_NAME = "COMMIT"
KEEP_NAME = "KEEP"


class MemoryDirectory:
    """Files as a dictionary from name to bytes. `../a/b` is the file b of the directory a beside this one."""

    def __init__(self, files):
        self._files = files

    def beside(self, name):
        files = {path: data for path, data in self._files.items() if path.startswith("../")}
        own = {path.removeprefix(f"../{name}/"): data for path, data in files.items() if path.startswith(f"../{name}/")}
        if not own:
            raise Violation("R-DIR-01", "not a directory that exists")
        return MemoryDirectory({**files, **own})

    def names(self):
        return sorted(name for name in self._files if not name.startswith("../"))

    def is_file_or_link(self, name):
        return name in self._files

    def size(self, name):
        """The length of a regular file, None if there is none."""
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

    def __str__(self):
        return self._path

    def beside(self, name):
        """The directory of this name in the one that holds this one, wherever a link to this one lies."""
        return PathDirectory(os.path.join(self._path, os.pardir, name))

    def names(self):
        with _storage_errors(""):
            return sorted(os.listdir(self._path))

    def is_file_or_link(self, name):
        """Links count without being followed."""
        with _storage_errors(name):
            mode = os.lstat(os.path.join(self._path, name)).st_mode
        return stat.S_ISREG(mode) or stat.S_ISLNK(mode)

    def size(self, name):
        """Links are followed."""
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


def violation_without_marker(directory):
    """R-MRK-01 or R-DIR-05: an uncommitted checkpoint, or none at all."""
    for name in directory.names():
        if _HOLDS_A_CHECKPOINT.fullmatch(name) and directory.is_file_or_link(name):
            return Violation("R-MRK-01", "no marker was published", MARKER_NAME)
    return Violation("R-DIR-05", "no file of a checkpoint")


def notes(directory, pinned):
    """R-DIR-03 and R-DIR-04: what is there and not checked."""
    for name in directory.names():
        if not directory.is_file_or_link(name):
            yield f"foreign, not checked: {name}"
        elif _LEFTOVER.fullmatch(name):
            if name not in pinned:
                yield f"leftover of {directory.size(name) or 0} bytes: {name}"
        elif _UNKNOWN_KIND.fullmatch(name):
            yield f"of an unknown kind, not checked, {directory.size(name) or 0} bytes: {name}"
        elif name not in (MARKER_NAME, KEEP_NAME):
            yield f"foreign, not checked: {name}"
