# SPDX-License-Identifier: Apache-2.0
"""What is at a path at which no checkpoint was found, and what to do about it."""

from __future__ import annotations

import contextlib
import difflib
import os
import re
import struct

from sealpoint import _sealpoint, _uri
from sealpoint._errors import Error
from sealpoint._sealpoint import printable

_TORCH_ZIP = b"PK\x03\x04"
_TORCH_LEGACY = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19."
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
        return _describe_stored(path)
    try:
        if not os.path.lexists(path):
            return _describe_missing(path)
        return _describe_directory(path) if os.path.isdir(path) else _describe_file(path)
    except (OSError, ValueError):  # what cannot be looked at
        return ""


def _names(directory: str) -> list[str]:
    with os.scandir(directory or ".") as entries:
        return [entry.name for entry, _ in zip(entries, range(_NAMES_MAX), strict=False)]


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
    if _is_of_torch(path):
        return _foreign(path, "a file of torch.save")
    with open(path, "rb") as file:
        head = file.read(9)
    length = struct.unpack("<Q", head[:8])[0] if len(head) > 8 else 0
    if path.endswith(".safetensors") or (head[8:9] == b"{" and 2 <= length <= os.path.getsize(path) - 8):
        return _foreign(path, "a file of safetensors")
    return "it is a file, and no checkpoint of a known format"


def _describe_stored(uri: str) -> str:
    with contextlib.suppress(Error):  # it is the error of another call that is under way
        if _sealpoint.is_directory_at(uri):
            return _describe_names(uri, _uri.list_names(uri))
        directory, name = _uri.split(uri)
        head = _uri.read(directory, name, len(_TORCH_LEGACY)) if _uri.exists(directory, name) else b""
        if head.startswith(_TORCH_ZIP) or head == _TORCH_LEGACY:
            return _foreign(uri, "a file of torch.save")
        if head and (uri.endswith(".safetensors") or head[8:9] == b"{"):
            return _foreign(uri, "a file of safetensors")
    return ""


def _describe_names(path: str, names: list[str]) -> str:
    """What a directory with these names is; empty if it is of no other program that is known."""
    if "latest_checkpointed_iteration.txt" in names or {".metadata", "metadata.json"} <= set(names):
        return _foreign(path, "a directory of Megatron")
    if ".metadata" in names or any(name.endswith(".distcp") for name in names):
        return _foreign(path, "a directory of torch.distributed.checkpoint")
    if any(name.endswith(".safetensors") for name in names):
        return _foreign(path, "a directory of safetensors (Hugging Face)")
    return ""


def _describe_directory(path: str) -> str:
    names = _names(path)
    if other := _describe_names(path, names):
        return other
    if not any(os.path.lexists(os.path.join(path, name, "COMMIT")) for name in names):
        return describe_folder(path, names)
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
    return f"a folder with {len(found)} files of torch.save ({shown}{more}), each a state of its own, expected one of them"


def _is_of_torch(path: str) -> bool:
    if not os.path.isfile(path):  # a pipe would wait
        return False
    try:
        with open(path, "rb") as file:
            head = file.read(len(_TORCH_LEGACY))
    except OSError:
        return False
    return head.startswith(_TORCH_ZIP) or head == _TORCH_LEGACY


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


def _foreign(path: str, what: str) -> str:
    word = printable(path)
    return f"it is {what}; `sealpoint convert {word} DST` converts it, `sealpoint ls {word}` shows it"
