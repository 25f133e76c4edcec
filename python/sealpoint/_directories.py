# SPDX-License-Identifier: Apache-2.0
"""Checkpoint directories with names chosen by a framework."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable

from sealpoint import _sealpoint, _uri
from sealpoint._checkpoint import open_own as open_checkpoint
from sealpoint._errors import Error, InvalidArgumentError
from sealpoint._native import BACKEND, CONFIG, MARKER, backend_of, native_files

_ATTEMPT_FILES = re.compile(r"[0-9a-f]{32}\.(blob|index|commit)")
_PROBES = re.compile(r"[0-9a-f]{32}\.probe[a-z0-9.-]*")
# Later versions of the format may add file kinds. Such files are removed together with their checkpoint, not before.
_UNKNOWN_KINDS = re.compile(r"[0-9a-f]{32}\.[a-z0-9-]{1,16}")
# Lists the checkpoints deleted to make room for a new one, until that is committed; see ``_replacement``.
NOTE = "replaced.sealpoint"
# Written by Megatron next to a checkpoint if digests of its files are enabled.
_INTEGRITY = "integrity.json"


def is_checkpoint(path: str | os.PathLike[str]) -> bool:
    """Tells whether a directory is a complete or partial checkpoint of this library, and not a DCP checkpoint."""
    names = _uri.list_names(os.fspath(path))
    if MARKER in names and (_uri.is_uri(os.fspath(path)) or os.path.exists(os.path.join(path, MARKER))):
        return True
    return ".metadata" not in names and any(_ATTEMPT_FILES.fullmatch(name) for name in names)


def remove(path: str | os.PathLike[str]) -> None:
    """Removes the checkpoint in a directory, including a native one (see ``native_files``). Does nothing if there is none.

    Removes the identifying file first, so that a crash leaves nothing loadable: metadata.json of Megatron, then the marker,
    or the metadata of a native checkpoint. Only files with names of these formats are removed. Raises InvalidArgumentError (a
    symbolic link) and OSError.
    """
    natives = native_files(path)
    if not natives and not _uri.exists(os.fspath(path), MARKER):
        return
    if not _uri.is_uri(os.fspath(path)) and os.path.islink(path):
        raise InvalidArgumentError("not removed: it is a symbolic link", path=os.fspath(path))
    if natives or backend_of(path) == BACKEND:
        _unlink(path, lambda name: name == CONFIG)
    _unlink(path, lambda name: name == MARKER or (name in natives and ".metadata" in name))
    _unlink(path, lambda name: name in natives or name == _INTEGRITY or _is_own(name) or _UNKNOWN_KINDS.fullmatch(name))


def remove_leftovers(path: str | os.PathLike[str]) -> None:
    """Removes the remains of killed attempts next to a committed checkpoint: files absent from its index.

    One process calls it after the commit, when no other attempt can be committed there any more. Failures are logged as
    warnings.
    """
    try:
        names = [name for name in _uri.list_names(os.fspath(path)) if _is_own(name) or name == NOTE]
        with open_checkpoint(path, check_files=False) as checkpoint:
            pinned = {f"{checkpoint.attempt}.index", *(f"{blob.id}.blob" for blob in checkpoint.blobs)}
        if not pinned.issuperset(names):
            _unlink(path, lambda name: (_is_own(name) or name == NOTE) and name not in pinned)
    except (OSError, Error) as error:
        warnings.warn(f"files of earlier attempts were not deleted: {error}", RuntimeWarning, stacklevel=2)


def _is_own(name: str) -> bool:
    return (_ATTEMPT_FILES.fullmatch(name) or _PROBES.fullmatch(name)) is not None


def _unlink(path: str | os.PathLike[str], is_meant: Callable[[str], object]) -> None:
    """Removes files durably."""
    names = [name for name in _uri.list_names(os.fspath(path)) if is_meant(name)]
    if not names:
        return
    if _uri.is_uri(os.fspath(path)):
        return _sealpoint.remove_files(os.fspath(path), names)
    for name in names:
        os.unlink(os.path.join(path, name))
    sync(path)


def write(directory: str, name: str, text: str) -> None:
    """Replaces a file durably and atomically."""
    if _uri.is_uri(directory):
        return _sealpoint.write_file(directory, name, text.encode())
    path = os.path.join(directory, name)
    with open(path + ".tmp", "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(path + ".tmp", path)
    sync(directory)


def sync(path: str | os.PathLike[str]) -> None:
    """Makes the names in a directory durable. A no-op in an object store."""
    if _uri.is_uri(os.fspath(path)):
        return
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
