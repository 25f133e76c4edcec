# SPDX-License-Identifier: Apache-2.0
"""What is at a path at which no checkpoint was found, and what to do about it."""

from __future__ import annotations

import contextlib
import difflib
import os
import re

from sealpoint import _errors, _sealpoint, _uri
from sealpoint._errors import Error
from sealpoint._sealpoint import printable

_OWN_FILE = re.compile(r"COMMIT|[0-9a-f]{32}\.(blob|index|commit)")
# No more names of a directory than these are looked at.
_NAMES_MAX = 10_000
_INNER_MAX = 1000
_FOREIGN_NAMES = (".metadata", "metadata.json")
_TORCH_ENDS = (".pt", ".pth", ".bin", ".pkl", ".ckpt")
_SHOWN_MAX = 3
_FOREIGN_ENDS = (".distcp", ".safetensors", ".index.json")


def describe(path: str) -> str:
    """A sentence without a full stop; empty if nothing is to be said. Reads no more than the first bytes of a file."""
    if _uri.is_uri(path):
        return _describe_other(path)
    try:
        if not os.path.lexists(path):
            return _describe_missing(path)
        return _describe_directory(path) if os.path.isdir(path) else _describe_file(path)
    except (OSError, ValueError):  # what cannot be looked at
        return ""


def _names(directory: str) -> list[str]:
    with os.scandir(directory or ".") as entries:
        return [entry.name for entry, _ in zip(entries, range(_NAMES_MAX), strict=False)]


_errors.describe_place = describe


def _describe_missing(path: str) -> str:
    missing = path.rstrip("/")
    parent = os.path.dirname(missing)
    while parent and not os.path.lexists(parent):
        missing, parent = parent, os.path.dirname(parent)
    name = os.path.basename(missing)
    what = f"there is no {printable(path)}: "
    if parent and not os.path.isdir(parent):
        return what + f"{printable(parent)} is a file"
    near = difflib.get_close_matches(name, _names(parent), 1)
    meant = f"; did you mean {printable(os.path.join(parent, near[0]))}?" if near else ""
    where = parent or f"the working directory {os.getcwd()}"
    return what + f"{printable(where)} exists, and nothing in it is named {printable(name)}{meant}"


def _describe_file(path: str) -> str:
    if _OWN_FILE.fullmatch(os.path.basename(path)):
        return f"it is a file of a checkpoint; give its directory, {printable(os.path.dirname(path) or '.')}"
    return _describe_other(path) or "it is a file, and no checkpoint of a known format"


def _describe_other(path: str) -> str:
    """What of another program is there, and what to do with it; empty if it is of none that is known."""
    kind = None
    with contextlib.suppress(Error):  # it is the error of another call that is under way
        kind = _sealpoint.kind_of_foreign(path)
    if kind is None:
        return ""
    what, is_read = kind
    word = printable(path)
    return f"it is {what}; `ckpt convert {word} DST` converts it, `ckpt ls {word}` shows it" if is_read else what


def _describe_directory(path: str) -> str:
    names = _names(path)
    if not any(os.path.lexists(os.path.join(path, name, "COMMIT")) for name in names):
        return _describe_other(path) or describe_folder(path, names)
    newest = None
    with contextlib.suppress(Exception):  # it is the error of another call that is under way
        newest = _sealpoint.series_newest(path, True)
    if newest is None:
        return "it is a series, of which no checkpoint can be opened"
    name = printable(newest[0].name)
    return f"it is a series; its newest checkpoint is {name}; sealpoint.Series(path).open_newest() opens it"


def describe_folder(path: str, names: list[str]) -> str:
    """Describes a directory of checkpoints of other programs, or of files of torch.save; empty if it is something else."""
    inner = _checkpoints_in(path, names)
    if not inner:
        return _describe_series(path, names) or _describe_files(path, names)
    shown = ", ".join(printable(name) for name in inner[-3:])
    newest = printable(os.path.join(path, inner[-1]))
    return f"a folder of {len(inner)} checkpoints of other programs ({shown}), expected one of them, such as {newest}"


def _describe_series(path: str, names: list[str]) -> str:
    """Names directories in it that are series."""
    found = []
    for name in names[:_INNER_MAX]:
        place = os.path.join(path, name)
        with contextlib.suppress(OSError):
            inner = os.listdir(place)[:_INNER_MAX]
            if any(os.path.lexists(os.path.join(place, one, "COMMIT")) for one in inner):
                found.append(name)
    if not found:
        return ""
    shown = ", ".join(printable(name) for name in sorted(found)[:_SHOWN_MAX])
    more = f" and {len(found) - _SHOWN_MAX} more" if len(found) > _SHOWN_MAX else ""
    return f"a folder with series in it ({shown}{more}), expected one of them, such as {printable(os.path.join(path, min(found)))}"


def _describe_files(path: str, names: list[str]) -> str:
    """Names files of torch.save: a Trainer without safetensors leaves such, or a training that stores a file per epoch."""
    found = [name for name in names[:_INNER_MAX] if name.endswith(_TORCH_ENDS) and _is_of_torch(os.path.join(path, name))]
    if not found:
        return ""
    shown = ", ".join(printable(name) for name in sorted(found)[:_SHOWN_MAX])
    more = f" and {len(found) - _SHOWN_MAX} more" if len(found) > _SHOWN_MAX else ""
    if len(found) == 1:
        return f"a folder with a file of torch.save, expected that file: {printable(os.path.join(path, found[0]))}"
    return f"a folder with {len(found)} files of torch.save ({shown}{more}), expected one of them, if each is a state of its own"


def _is_of_torch(path: str) -> bool:
    if not os.path.isfile(path):  # a pipe would wait
        return False
    with contextlib.suppress(Error):
        return _sealpoint.kind_of_foreign(path) == ("a file of torch.save", True)
    return False


def _checkpoints_in(path: str, names: list[str]) -> list[str]:
    """Directories in it that look like checkpoints, in the order of the numbers in their names."""
    found = []
    for name in names[:_INNER_MAX]:
        try:
            inner = os.listdir(os.path.join(path, name))
        except OSError:  # a file
            continue
        if any(one in _FOREIGN_NAMES or one.endswith(_FOREIGN_ENDS) for one in inner):
            found.append(name)
    return sorted(found, key=lambda name: ([int(digits) for digits in re.findall("[0-9]+", name)], name))

