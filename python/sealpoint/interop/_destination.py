# SPDX-License-Identifier: Apache-2.0
"""Destination of a conversion. It is checked, then written under a temporary name, and finally published atomically.

The output is written to a temporary directory next to the destination. The running program locks this directory. When the output is
complete, the program renames it to the destination. If a conversion is killed, the next conversion to the same destination removes
the temporary directory. In an object store, files have their final names from the start. The order of the writes shows whether the
output is complete (``NewFiles`` in sealpoint/interop.h).
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import secrets
import shutil
from collections.abc import Iterator, Sequence

from sealpoint import _paths
from sealpoint._errors import AlreadyExistsError, Error, InvalidArgumentError, IoError, NoSpaceError, NotFoundError
from sealpoint._sealpoint import NewFiles, files_left, publish, remove_path
from sealpoint._sealpoint import free_bytes as free_bytes_in
from sealpoint.interop._files import attempt, io_error

_SUFFIX = re.compile(r"\.partial-[0-9a-f]{8}")
_NAMES_MAX = 16  # maximum number of names to try, if other programs remove them
_NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.EINVAL, errno.ENOSYS, errno.EBADF)


def prepare(destination: str, may_be_empty: bool, is_directory: bool, is_dry_run: bool) -> str:
    """Returns the absolute path of the destination. ``may_be_empty`` allows an empty directory, which is then replaced.

    Also removes the temporary directories of killed conversions, unless this conversion is a dry run. Raises AlreadyExistsError,
    NotFoundError (no parent directory), InvalidArgumentError and IoError.
    """
    if not _paths.is_local(destination):
        _check_stored(destination, is_directory)
        return destination
    try:
        path = os.path.abspath(destination)
        if may_be_empty and os.path.isdir(path):
            path = os.path.realpath(path)
    except OSError as error:  # the working directory was removed
        raise io_error(error, destination) from error
    if not is_dry_run:
        _remove_left(path)
    _check(path, may_be_empty)
    return path


def _check_stored(uri: str, is_directory: bool) -> None:
    kind = _paths.kind_of(uri)
    if kind == "file" or (kind is not None and not is_directory):
        raise AlreadyExistsError("the destination exists", path=uri)
    if kind is not None and set(_paths.list_names(uri)) - set(files_left(uri)):
        raise AlreadyExistsError("the destination has files, expected a new place", path=uri)


def _check(path: str, may_be_empty: bool) -> None:
    if may_be_empty and os.path.isdir(path):
        _check_empty(path)
    else:
        _check_absent(path)
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        found = "is not a directory" if os.path.lexists(folder) else "does not exist"
        raise NotFoundError(f"{folder} {found}, expected the existing parent directory of the destination", path=path)
    if not os.access(folder, os.W_OK | os.X_OK):
        raise IoError(f"{folder} cannot be written: no permission, or a read-only file system", path=path)
    attempt(lambda: _lstat(_partial(path)), path)


def _lstat(path: str) -> None:
    """Checks that a path can be looked up. Raises OSError if not, for example if a name is too long."""
    with contextlib.suppress(FileNotFoundError):
        os.lstat(path)


def _check_absent(path: str) -> None:
    attempt(lambda: _lstat(path), path)
    if os.path.lexists(path):
        raise AlreadyExistsError("the destination exists", path=path)


def _check_empty(path: str) -> None:
    names: list[str] = []
    attempt(lambda: names.extend(os.listdir(path)), path)
    if names:
        raise AlreadyExistsError("the destination exists and is not empty", path=path)
    if os.path.ismount(path) or path == os.path.realpath(os.curdir):
        what = "a mount point" if os.path.ismount(path) else "the working directory"
        raise InvalidArgumentError(
            f"the destination is {what}, which cannot be replaced; expected the name of a directory within it", path=path
        )


def check_room(path: str, needed_bytes: int) -> None:
    """Raises NoSpaceError if too little space is free.

    Raises nothing for an object store, or for a file system that does not report free space.
    """
    if not _paths.is_local(path):
        return
    folder = os.path.dirname(path)
    free_bytes = free_bytes_in(folder)
    if free_bytes < needed_bytes:
        raise NoSpaceError(
            f"the conversion needs {needed_bytes:,} bytes; {free_bytes:,} bytes are free there", path=folder
        )


def _partial(path: str) -> str:
    return f"{path}.partial-{secrets.token_hex(4)}"


def _remove_left(path: str) -> None:
    """Removes the temporary directories of killed conversions. The directory of a running conversion is locked."""
    folder, name = os.path.split(path)
    try:
        entries = os.listdir(folder)
    except OSError:  # the next check reports the error
        return
    for entry in entries:
        if entry.startswith(name) and _SUFFIX.fullmatch(entry, len(name)):
            _remove_unlocked(os.path.join(folder, entry), path)


def _remove_unlocked(left: str, path: str) -> None:
    try:
        descriptor = os.open(left, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Locks may not be visible on other hosts. Because of this renaming, a conversion on another host cannot publish a
        # half-removed directory.
        removed = _partial(path)
        publish(left, removed)
        remove_path(removed)
    except (OSError, Error):
        return
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def publishing(path: str, is_directory: bool, may_be_empty: bool = False) -> Iterator[str]:
    """Yields a temporary path. If the block succeeds, the path is renamed to the destination; if not, it is removed."""
    _check(path, may_be_empty)
    partials: list[str] = []  # a path is added before its directory is made, in case of a signal
    descriptor = None
    try:
        descriptor = _make_locked(path, partials)
        temporary = partials[-1] if is_directory else os.path.join(partials[-1], os.path.basename(path))
        yield temporary
        if may_be_empty and os.path.isdir(path):
            shutil.copymode(path, temporary)
        else:
            _check_absent(path)
        publish(temporary, path)
    finally:
        for partial in partials:
            with contextlib.suppress(Error):
                remove_path(partial)
        if descriptor is not None:
            os.close(descriptor)


@contextlib.contextmanager
def storing(uri: str, names: Sequence[str], is_directory: bool) -> Iterator[NewFiles]:
    """Yields new files with these names in an object store directory. If the block fails, the files are removed."""
    files = NewFiles(uri if is_directory else _paths.split(uri)[0], list(names))
    try:
        yield files
        files.publish()
    finally:
        files.close()


def _make_locked(path: str, partials: list[str]) -> int:
    for _ in range(_NAMES_MAX):
        partial = _partial(path)
        partials.append(partial)
        try:
            os.mkdir(partial)
        except OSError as error:
            partials.pop()  # the directory may belong to another program
            raise io_error(error, path) from error
        descriptor = _lock(partial)
        if descriptor is not None:
            return descriptor
        partials.pop()
    raise IoError("another program removes the temporary files of this conversion", path=path)


def _lock(partial: str) -> int | None:
    """Locks a temporary directory and returns its descriptor.

    Returns None if a different conversion locked or removed the directory before this conversion locked it.
    """
    try:
        descriptor = os.open(partial, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise io_error(error, partial) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _NO_LOCKS:  # without locks, no program removes the directory
            return descriptor
        os.close(descriptor)
        return None
    if not os.path.isdir(partial):
        os.close(descriptor)
        return None
    return descriptor
