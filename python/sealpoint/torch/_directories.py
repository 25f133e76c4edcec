# SPDX-License-Identifier: Apache-2.0
"""Directories whose names a framework chooses."""

from __future__ import annotations

import os
import re
import warnings

from sealpoint import _paths, _sealpoint
from sealpoint._checkpoint import open_own as open_checkpoint
from sealpoint._errors import Error
from sealpoint._native import BACKEND, CONFIG, MARKER, backend_of, native_files

_ATTEMPT_FILES = re.compile(r"[0-9a-f]{32}\.(blob|index|commit)")
_PROBES = re.compile(r"[0-9a-f]{32}\.probe[a-z0-9.-]*")
# A list of checkpoints that were deleted from a directory for a new one, until that is committed; see ``make_way``.
NOTE = "replaced.sealpoint"
# What Megatron writes beside a checkpoint if it is asked for digests of its files.
_INTEGRITY = "integrity.json"


def is_checkpoint(path: str | os.PathLike[str]) -> bool:
    """Whether a directory is, or was to become, a checkpoint of this library, and not one of DCP's."""
    names = _paths.list_names(os.fspath(path))
    if MARKER in names and _paths.kind_of(os.path.join(path, MARKER)) != "link":
        return True
    return ".metadata" not in names and any(_ATTEMPT_FILES.fullmatch(name) for name in names)


def remove(path: str | os.PathLike[str], *, everything: bool = False) -> None:
    """Takes a checkpoint out of its directory, a native one (see ``native_files``) as well; does nothing if there is none.

    What makes it one goes first, so that nothing loads what a crash leaves: metadata.json of Megatron's, the metadata of a
    native one, the marker. Only files with names of the formats go, unless ``everything`` does, with the directory. Errors:
    InvalidArgumentError (a symbolic link), IoError.
    """
    natives = native_files(path)
    if not everything and not natives and _paths.kind_of(os.path.join(path, MARKER)) is None:
        return
    first = [CONFIG] if natives or backend_of(path) == BACKEND else []
    first += [name for name in natives if ".metadata" in name]
    _sealpoint.remove_checkpoint(os.fspath(path), first, [*natives, _INTEGRITY], everything)


def remove_leftovers(path: str | os.PathLike[str]) -> None:
    """Takes away what attempts that were killed left beside a committed checkpoint: files that its index does not name.

    One process calls it, after the commit: no other attempt can be committed there any more. What fails is a warning.
    """
    try:
        names = [name for name in _paths.list_names(os.fspath(path)) if _is_own(name) or name == NOTE]
        with open_checkpoint(path, check_files=False) as checkpoint:
            pinned = {f"{checkpoint.attempt}.index", *(f"{blob.id}.blob" for blob in checkpoint.blobs)}
        for name in set(names) - pinned:
            _sealpoint.remove_path(os.path.join(path, name))
    except Error as error:
        warnings.warn(f"files of earlier attempts were not deleted: {error}", RuntimeWarning, stacklevel=2)


def _is_own(name: str) -> bool:
    return (_ATTEMPT_FILES.fullmatch(name) or _PROBES.fullmatch(name)) is not None
