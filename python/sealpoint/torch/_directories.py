# SPDX-License-Identifier: Apache-2.0
"""Directories whose names a framework chooses."""

from __future__ import annotations

import os
import re

MARKER = "COMMIT"
_OWN_FILES = re.compile(r"[0-9a-f]{32}\.(blob|index|commit)")


def is_checkpoint(path: str | os.PathLike[str]) -> bool:
    """Whether a directory is, or was to become, a checkpoint of this library, and not one of DCP's."""
    if os.path.exists(os.path.join(path, MARKER)):
        return True
    names = os.listdir(path) if os.path.isdir(path) else []
    return ".metadata" not in names and any(_OWN_FILES.fullmatch(name) for name in names)


def remove(path: str | os.PathLike[str]) -> None:
    """Takes a committed checkpoint out of its directory, the marker first; does nothing if there is none.

    What a crash leaves then is an attempt that nobody committed. Only files with names of the format go.
    """
    try:
        os.unlink(os.path.join(path, MARKER))
    except FileNotFoundError:
        return
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
    for name in os.listdir(path):
        if _OWN_FILES.fullmatch(name):
            os.unlink(os.path.join(path, name))
