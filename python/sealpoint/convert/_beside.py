# SPDX-License-Identifier: Apache-2.0
"""What lies in a directory beside the files of its format: the rest of a training's state, or what is left out by name.

The Trainer of Hugging Face and accelerate store optimizer, schedule and random states as files of torch.save beside the
weights, Lightning stores all but tensors beside a directory of DCP.
"""

from __future__ import annotations

import os
import stat

from sealpoint._errors import Error, UnsupportedError
from sealpoint._tree import KIND, Node
from sealpoint._tree_paths import entries_of
from sealpoint.convert._budget import cost_of_text
from sealpoint.convert._dcp_metadata import is_text
from sealpoint.convert._files import File, check_links
from sealpoint.convert._pickle import TEXT_COST
from sealpoint.convert._source import LEFT_OVER, FileInfo, LeftOut, Opener, State, Unread, unread_of
from sealpoint.convert._torch_legacy import is_archive, open_archive
from sealpoint.convert._torch_zip import value_or_error
from sealpoint.convert._values import LEFT_OUT

_ENDINGS = (".pt", ".pth", ".bin", ".pkl", ".ckpt")
# The same weights in another form, as repositories of models have them.
_AGAIN = ("pytorch_model", "consolidated")
_TEXTS = ("trainer_state.json",)
_TORCH_MEANING, _TEXT_MEANING = "state beside the tensors: a file of torch.save", "state beside the tensors: text"
_LOOKED_AT_BYTES = 4096


def take_beside(state: State, own: set[str], opener: Opener, may_link: bool) -> None:
    """Adds the files that hold state under their names to the state, and notes all else as left out.

    Args:
        own: names in the directory that belong to its format.
        may_link: whether symbolic links may lead out of the directory.

    Errors: IoError. What cannot be read is left out if it is of an unknown kind, and else becomes a node ``Unread``.
    """
    if not _is_mapping(state):
        return
    meanings: dict[str, str] = {}
    left_over = {file.name: file.meaning for file in state.files if file.meaning.startswith(LEFT_OVER)}
    for name in sorted(os.listdir(state.path)):
        if name in own:
            continue
        size, reason = _size_or_reason(state.path, name, may_link)
        reason = left_over.get(name, reason)
        if reason is not None:
            may_hold_state = name not in left_over and not name.startswith(".")
            state.left_out.append(LeftOut(name, size, reason, may_hold_state))
            continue
        file = opener.files.open(os.path.join(state.path, name))
        left_out = _take(name, file, state, opener)
        if left_out is None:
            meanings[name] = _TEXT_MEANING if name in _TEXTS else _TORCH_MEANING
        else:
            state.left_out.append(left_out)
    state.files = [FileInfo(name, size, meanings.get(name, meaning)) for name, size, meaning in state.files]


def _is_mapping(state: State) -> bool:
    """If not, it is an error, but not one of these files."""
    try:
        return entries_of(state.tree) is not None
    except (KeyError, TypeError, ValueError):
        return False


def _size_or_reason(directory: str, name: str, may_link: bool) -> tuple[int, str | None]:
    """Its size, and why it is not looked at."""
    try:
        if not may_link:
            check_links(directory, name)
        found = os.stat(os.path.join(directory, name))
    except UnsupportedError as error:
        return 0, error.message
    except OSError as error:
        return 0, error.strerror
    if stat.S_ISDIR(found.st_mode):
        return 0, "a directory"
    return (found.st_size, None) if stat.S_ISREG(found.st_mode) else (0, "no regular file")


def _take(name: str, file: File, state: State, opener: Opener) -> LeftOut | None:
    """Of a regular file. None: it is part of the state now."""
    node: Node | None = None
    key = _key_for(name, state)
    if name in _TEXTS:
        node = _text(file)
    elif _is_state(name, file):
        node = value_or_error(
            lambda: open_archive(file),
            state.tensors,
            (key,),
            opener._replace(goes_on=True),
            state.notes,
        )
        if isinstance(node, Unread) and not opener.goes_on and not isinstance(node.error, UnsupportedError):
            raise node.error
        if node is LEFT_OUT:
            return LeftOut(name, file.size, "its class is unknown", False)
        if isinstance(node, Unread) and isinstance(node.error, UnsupportedError):
            return LeftOut(name, file.size, node.error.message, True)
        for unread in unread_of(node):
            unread.is_beside = True
    if node is None:
        is_model = _begins_as_text(file) or name.endswith(".model")  # the latter of tokenizers
        return LeftOut(name, file.size, "text" if is_model else "of no kind that is read here", not is_model)
    if KIND in state.tree:
        state.tree["items"].append([key, node])
    else:
        state.tree[key] = node
    return None


def _is_state(name: str, file: File) -> bool:
    return name.endswith(_ENDINGS) and not name.startswith((*_AGAIN, ".")) and is_text(name) and is_archive(file)


def _key_for(name: str, state: State) -> str:
    """The name without its ending, unless the state has that."""
    stem = os.path.splitext(name)[0]
    return name if stem == KIND or stem in (entries_of(state.tree) or {}) else stem


def _text(file: File) -> str | None:
    data = file.read(0, file.size)
    file.budget.add(TEXT_COST + len(data) + cost_of_text(data), file.path)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _begins_as_text(file: File) -> bool:
    """As far as its beginning says, which may end within a character."""
    head = file.read(0, min(file.size, _LOOKED_AT_BYTES))
    try:
        return b"\0" not in head and head.decode("utf-8") is not None
    except UnicodeDecodeError as error:
        return len(head) == _LOOKED_AT_BYTES and error.start >= _LOOKED_AT_BYTES - 3 and b"\0" not in head

