# SPDX-License-Identifier: Apache-2.0
"""Checkpoint directories with names that a framework chooses."""

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
# File that lists the checkpoints deleted to make room for a new one. It exists until the new one is committed; see
# ``_replacement``.
NOTE = "replaced.sealpoint"
# File that Megatron writes next to a checkpoint if digests of the checkpoint's files are enabled.
_INTEGRITY = "integrity.json"


def is_checkpoint(path: str | os.PathLike[str]) -> bool:
    """Returns whether a directory contains a Sealpoint checkpoint, complete or partial, and no DCP checkpoint.

    Not collective.

    Args:
        path: Directory or URL. If it does not exist, the result is False.

    Raises:
        IoError: the storage failed.

    Examples:
        >>> import sealpoint.megatron, sealpoint.torch as sp, torch
        >>> _ = sp.save({"w": torch.ones(2)}, "run/iter_0000100")
        >>> sealpoint.megatron.is_checkpoint("run/iter_0000100"), sealpoint.megatron.is_checkpoint("run")
        (True, False)
    """
    names = _paths.list_names(os.fspath(path))
    if MARKER in names and _paths.kind_of(os.path.join(path, MARKER)) != "link":
        return True
    return ".metadata" not in names and any(_ATTEMPT_FILES.fullmatch(name) for name in names)


def remove(path: str | os.PathLike[str], *, everything: bool = False) -> None:
    """Removes the checkpoint in a directory, whether it is a Sealpoint checkpoint or a native one (see ``native_files``).

    Does nothing if there is no checkpoint.

    Removes the identifying files first: Megatron's metadata.json, the metadata of a native checkpoint, then the marker. If the
    process crashes afterwards, the remaining files therefore cannot be loaded. By default, only files with names of these formats
    are removed. If ``everything`` is true, all files and the directory itself are removed. Raises IoError. Raises
    InvalidArgumentError if the directory is a symbolic link.
    """
    natives = native_files(path)
    if not everything and not natives and _paths.kind_of(os.path.join(path, MARKER)) is None:
        return
    first = [CONFIG] if natives or backend_of(path) == BACKEND else []
    first += [name for name in natives if ".metadata" in name]
    _sealpoint.remove_checkpoint(os.fspath(path), first, [*natives, _INTEGRITY], everything)


def remove_leftovers(path: str | os.PathLike[str]) -> None:
    """Removes files that killed attempts left in the directory. The committed checkpoint does not contain these files.

    One process calls this function after the commit. From then on, no other attempt can be committed into this directory. Failures
    are logged as warnings.
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
