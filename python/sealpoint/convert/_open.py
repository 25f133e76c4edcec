# SPDX-License-Identifier: Apache-2.0
"""Finds out which format a path has, and opens it."""

from __future__ import annotations

import os
from collections.abc import Sequence

from sealpoint._arguments import Path, check, path_of
from sealpoint._errors import CorruptError, Error, NotACheckpointError, NotFoundError, UnsupportedError
from sealpoint._native import check_one
from sealpoint._places import describe_folder
from sealpoint._series import Series
from sealpoint._tree import Node, parse, rank_object, text_of
from sealpoint._tree_paths import entries_of, kind_of
from sealpoint.convert import _safetensors
from sealpoint.convert._dcp import METADATA, open_dcp
from sealpoint.convert._files import FileSet, io_error, size_at
from sealpoint.convert._megatron import is_megatron, latest, open_megatron
from sealpoint.convert._sealpoint_source import open_sealpoint
from sealpoint.convert._select import leaves, pattern, without
from sealpoint.convert._source import LeftOut, Opener, State, unread_of
from sealpoint.convert._torch_legacy import open_legacy_file
from sealpoint.convert._torch_zip import LEGACY, MAGIC, open_torch_file

# How files begin that are not read; what they are.
_OTHERS = (
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file"),
    (b"GGUF", "a GGUF file"),
    (b"\x93NUMPY", "an array of numpy (.npy)"),
    (b"\x1f\x8b", "compressed by gzip; decompress it"),
    (b"\x28\xb5\x2f\xfd", "compressed by zstd; decompress it"),
)


def open_source(path: Path, *, drop_unknown: bool = False, per_rank: Sequence[str] = ()) -> State:
    """Reads what a checkpoint of any known format holds; no payload yet, except for small values.

    Args:
        path: a file or a directory.
        drop_unknown: values of classes that have no node are left out, and noted; else they are errors.
        per_rank: patterns of names of which each rank has its own, in directories of DCP with metadata per rank; what
            other ranks have in common has to be the same.

    Errors: NotFoundError, NotACheckpointError (no known format), UnsupportedError (a known one, of another kind),
    CorruptError, IncompleteError, LimitExceededError, IoError.
    """
    state = open_unchecked(path, drop_unknown=drop_unknown, per_rank=per_rank, goes_on=False)
    try:
        return check_read(state)
    except BaseException:
        state.close()
        raise


def open_unchecked(path: Path, *, drop_unknown: bool, per_rank: Sequence[str], goes_on: bool) -> State:
    """The same, but what could not be read are nodes ``Unread``: values of unknown classes, and, if it goes on, others."""
    check(drop_unknown=drop_unknown, per_rank=per_rank)
    text = path_of(path)
    files = FileSet()
    try:
        own = [pattern(one) for one in per_rank]
        state = _open(text, Opener(files, drop_unknown, lambda name: any(one.fullmatch(name) for one in own), goes_on))
        _take_rank_values(state)
        _check_tree(state)
    except BaseException as error:
        files.close()
        if isinstance(error, OSError) and not isinstance(error, Error):
            raise io_error(error, text) from error
        if isinstance(error, RecursionError):
            raise CorruptError("values are nested too deeply", path=text) from None
        if isinstance(error, Error):
            error.path = error.path or text
            _make_text(error)
        raise
    inner = state.close

    def close() -> None:
        inner()
        files.close()

    state.close = close
    return state


def check_read(state: State) -> State:
    """A state without values that could not be read: beside the files of the format, unknown ones are left out.

    Errors: those of all others.
    """
    names: set[str] = set()
    for path, node in leaves(state.tree):
        for unread in unread_of(node):
            error = unread.error
            error.path = error.path or state.path
            _make_text(error)
            if not unread.is_beside or not isinstance(error, UnsupportedError):
                raise error
            names.add(text_of(path))
            state.left_out.append(LeftOut(text_of(path), 0, error.message, True))
    return without(state, names) if names else state


def _make_text(error: Error) -> None:
    """Names that a hostile file gave may be no text; an error is."""
    for member in ("message", "tensor", "object"):
        value = getattr(error, member)
        if value is not None:
            setattr(error, member, value.encode("utf-8", "backslashreplace").decode("utf-8"))


def _open(path: str, opener: Opener) -> State:
    if os.path.isdir(path):
        return _open_directory(path, opener)
    if not os.path.lexists(path):
        raise NotFoundError("no such file or directory", path=path)
    file = opener.files.open(path)
    opener.files.budget.allow(file.size)
    head = file.read(0, min(file.size, len(LEGACY)))
    if head.startswith(MAGIC):
        return open_torch_file(path, opener)
    if head == LEGACY:
        return open_legacy_file(path, opener)
    if _safetensors.looks_like(file) or path.endswith(".safetensors"):
        return _safetensors.open_file(path, opener)
    for magic, what in _OTHERS:
        if head.startswith(magic):
            raise UnsupportedError(f"{what}, expected a checkpoint", path=path)
    if head[:1] == b"\x80":
        raise UnsupportedError("a plain pickle, which is a program; expected a checkpoint", path=path)
    raise NotACheckpointError(f"begins with {head[:8].hex()}, as no known format does", path=path)


def _open_directory(path: str, opener: Opener) -> State:
    names = os.listdir(path)
    check_one(path)
    opener.files.budget.allow(sum(size_at(os.path.join(path, name)) for name in names))
    if "COMMIT" in names or any(name.endswith(".blob") and len(name) == 37 for name in names):
        return open_sealpoint(path)
    newest = latest(path, opener)
    if newest is not None:
        state = _open_directory(newest, opener)
        state.notes.append(f"the newest of the iterations: {os.path.basename(newest)}")
        return state
    if is_megatron(path, opener):
        return open_megatron(path, opener)
    if METADATA in names or any(name.startswith("__") and name.endswith(METADATA) for name in names):
        return open_dcp(path, opener)
    if any(name.endswith((".safetensors", ".safetensors.index.json")) for name in names):
        return _safetensors.open_directory(path, opener)
    if any(name.endswith(".distcp") for name in names):
        raise NotACheckpointError(
            "files of torch.distributed.checkpoint without .metadata: a save that did not end", path=path
        )
    own = Series(path).newest()
    if own is not None:
        state = open_sealpoint(own.entry.path)
        state.notes.append(f"the newest of the series: {own.entry.name}")
        return state
    folder = describe_folder(path, names)
    if folder:
        raise NotACheckpointError(folder, path=path)
    raise NotACheckpointError("no file of a known format in the directory", path=path)


def _check_tree(state: State) -> None:
    """Errors: CorruptError (no tree of a state)."""
    try:
        if entries_of(state.tree) is None:
            raise CorruptError("the tree is no mapping", path=state.path)
        _check(state)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, Error):
            raise
        raise CorruptError(f"the tree has a malformed node: {error!r:.100}", path=state.path) from None


def _take_rank_values(state: State) -> None:
    """From the objects that have them. Errors: CorruptError."""
    while (name := rank_object(len(state.rank_values))) in state.objects:
        values = parse(state.objects.pop(name)[1])
        if not isinstance(values, dict):
            raise CorruptError("values of a rank are no mapping", path=state.path, object=name)
        state.rank_values.append(values)


def _check(state: State) -> None:
    """That each tensor of the tree is there, and no tensor has no place. Errors: CorruptError, UnsupportedError."""
    named: set[str] = set()
    stack: list[Node] = [state.tree, *(list(values.values()) for values in state.rank_values)]
    while stack:
        node = stack.pop()
        if kind_of(node) == "tensor":
            if node.get("name") not in state.tensors:
                raise CorruptError(
                    "the tree names a tensor that is not there", path=state.path, tensor=str(node.get("name"))
                )
            named.add(node["name"])
        elif isinstance(node, dict):
            entries = entries_of(node)
            stack.extend(entries.values() if entries is not None else node.values())
        elif isinstance(node, list):
            stack.extend(node)
    for name in state.tensors:
        if name not in named:
            raise CorruptError("the tree has no place for it", path=state.path, tensor=name)
