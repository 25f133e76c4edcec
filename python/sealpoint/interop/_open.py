# SPDX-License-Identifier: Apache-2.0
"""Detects the format of a path and opens it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import NamedTuple, cast

from sealpoint import _paths
from sealpoint._arguments import Path, check, path_of
from sealpoint._errors import CorruptError, Error, NotACheckpointError, NotFoundError, UnsupportedError
from sealpoint._native import MARKER, check_one
from sealpoint._sealpoint import Foreign, describe_place, newest_foreign_directory, read_foreign
from sealpoint._series import Series
from sealpoint._tree import Node, text_of
from sealpoint.interop._files import FileSet, io_error
from sealpoint.interop._safetensors_write import take_attributes
from sealpoint.interop._sealpoint_source import open_sealpoint
from sealpoint.interop._orbax import open_orbax, step_of
from sealpoint.interop._select import leaves, without
from sealpoint.interop._source import FileInfo, ForeignTensor, LeftOut, State, Unread, unread_of

_SHOWN_BYTES = 8


class Reading(NamedTuple):
    """Options for reading a checkpoint that may have a different format.

    Attributes:
        drop_unknown: Leave out and report values of classes that cannot be stored as a node. If False, such values are errors.
        per_rank: Patterns of names whose values differ between ranks, in DCP directories with metadata per rank. All other values
            must be equal on all ranks.
        allow_part: Read one file of a state that consists of several files, and leave out the other files.
        allow_missing: Patterns of tensors that an index may list although no file contains them. Any other missing tensor is an
            error.
        base: Complete checkpoint that the deltas of the source start from, if the source is a delta and no directory beside it
            holds this checkpoint.
        metadata_memory_bytes: Maximum memory for the description of the checkpoint. Default: 16 times the size of the files that
            contain it, plus 64 MiB.
    """

    drop_unknown: bool = False
    per_rank: Sequence[str] = ()
    allow_part: bool = False
    allow_missing: Sequence[str] = ()
    base: str | None = None
    metadata_memory_bytes: int | None = None

    def read(self, path: str, goes_on: bool) -> Foreign | None:
        """Opens a path. Raises the errors of ``open_source``."""
        per_rank, allow_missing = ([item.replace("\\", "\\\\") for item in some] for some in (self.per_rank, self.allow_missing))
        return read_foreign(
            path, self.drop_unknown, goes_on, per_rank, self.allow_part, allow_missing, self.base, self.metadata_memory_bytes
        )


def open_source(
    path: Path,
    *,
    drop_unknown: bool = False,
    per_rank: Sequence[str] = (),
    allow_part: bool = False,
    allow_missing: Sequence[str] = (),
    base: Path | None = None,
    metadata_memory_bytes: int | None = None,
) -> State:
    """Opens a checkpoint of any known format. Reads its structure and small values, but no tensor payload. Not collective.

    Args:
        path: File or directory.
        drop_unknown, per_rank, allow_part, allow_missing, base, metadata_memory_bytes: As for ``convert``.

    Returns:
        A State, which keeps its files open until it is closed.

    Raises:
        NotFoundError: the path does not exist.
        NotACheckpointError: the format is unknown.
        UnsupportedError: a variant of a known format is not supported.
        CorruptError: a file is damaged.
        IncompleteError: a file is missing or too short.
        LimitExceededError: a reader limit is exceeded.
        IoError: the storage failed.

    Examples:
        >>> import numpy, sealpoint
        >>> from sealpoint.interop import open_source
        >>> _ = sealpoint.save({"w": numpy.ones((4, 8))}, "checkpoint", step=1)
        >>> state = open_source("checkpoint")
        >>> state.step, state.tensors["w"].shape
        (1, (4, 8))
        >>> state.close()
    """
    base = None if base is None else path_of(base, "base")
    reading = Reading(drop_unknown, per_rank, allow_part, allow_missing, base, metadata_memory_bytes)
    state = open_unchecked(path, reading, goes_on=False)
    try:
        return check_read(state)
    except BaseException:
        state.close()
        raise


def open_unchecked(path: Path, reading: Reading, goes_on: bool) -> State:
    """Opens a checkpoint as ``open_source`` does, but represents each unreadable value by an ``Unread`` node."""
    check(**{name: value for name, value in reading._asdict().items() if name != "base"})
    text = path_of(path)
    files = FileSet()
    try:
        state = _open(text, files, lambda one: reading.read(one, goes_on))
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
    """Raises the error of the first unreadable value.

    Values of unknown classes in sidecar files raise no error. They are left out.
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
    """Escapes names in an error that are not valid text, because a hostile file may contain such names."""
    for member in ("message", "tensor", "object"):
        value = getattr(error, member)
        if value is not None:
            setattr(error, member, value.encode("utf-8", "backslashreplace").decode("utf-8"))


def _open(path: str, files: FileSet, read: Callable[[str], Foreign | None]) -> State:
    kind = _paths.kind_of(path)
    if kind == "directory":
        return _open_directory(path, files, read)
    if kind is None:
        raise NotFoundError(describe_place(path) or "no such file or directory", path=path)
    file = files.open(path)
    foreign = read(path)
    if foreign is None:
        head = file.read(0, min(file.size, _SHOWN_BYTES))
        raise NotACheckpointError(f"begins with {head.hex()}, as no known format does", path=path)
    return _state_of(foreign, path, files)


def _open_directory(path: str, files: FileSet, read: Callable[[str], Foreign | None]) -> State:
    names = _paths.list_names(path)
    check_one(path)
    if MARKER in names or any(name.endswith(".blob") and len(name) == 37 for name in names):
        return open_sealpoint(path)
    newest = newest_foreign_directory(path)
    if newest is not None:
        state = _open_directory(newest, files, read)
        state.notes.append(f"the newest iteration: {os.path.basename(newest)}")
        return state
    step = step_of(path, names)
    if step is not None:
        state = open_orbax(step, files)
        if step != path:
            state.notes.append(f"the newest step: {os.path.basename(step)}")
        return state
    problem: Error | None = None
    try:
        foreign = read(path)
    except (UnsupportedError, NotACheckpointError) as error:  # a series may contain files of other programs
        foreign, problem = None, error
    if foreign is not None:
        return _state_of(foreign, path, files)
    own = Series(path).newest()
    if own is not None:
        state = open_sealpoint(own.entry.path)
        state.notes.append(f"the newest of the series: {own.entry.name}")
        return state
    if problem is not None:
        raise problem
    raise NotACheckpointError(describe_place(path) or "no file of a known format in the directory", path=path)


def _state_of(foreign: Foreign, path: str, files: FileSet) -> State:
    unread = [Unread(cast(Error, error), is_beside) for error, is_beside in foreign.unread()]
    state = State(
        foreign.format,
        path,
        cast("dict[str, Node]", foreign.take_tree(unread)),
        {tensor[0]: ForeignTensor(*tensor, foreign, files) for tensor in foreign.tensors()},
        [FileInfo(*file) for file in foreign.files()],
        foreign.objects(),
        cast("list[dict[str, Node]]", foreign.take_rank_values(unread)),
        foreign.step,
        notes=foreign.notes(),
        digest=foreign.digest,
        left_out=[LeftOut(*entry) for entry in foreign.left_out()],
        missing=foreign.missing(),
        metadata_memory_bytes=foreign.metadata_memory_bytes,
    )
    take_attributes(state)
    return state
