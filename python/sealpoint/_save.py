# SPDX-License-Identifier: Apache-2.0
"""Saving from one process, and writing blobs for collectives of the caller's own."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any, Literal

from sealpoint import _sealpoint
from sealpoint._arguments import Path, Provenance, check, listed, mesh_of, path_of, provenance_of
from sealpoint._checkpoint import Checkpoint, Progress
from sealpoint._errors import InvalidArgumentError

Codec = Literal["none", "zstd", "bytesplit+zstd"]
# A checkpoint that the new one follows: itself, what its save returned, or (attempt, sequence), and where it is.
Parent = Checkpoint | _sealpoint.CommitInfo | tuple[str, int] | tuple[str, int, str] | None

CHUNK_SIZE_DEFAULT_BYTES = 4 << 20
BLOB_SIZE_MAX_DEFAULT_BYTES = 64 << 30

_engine: tuple[int, _sealpoint.Engine] | None = None


def default_engine() -> _sealpoint.Engine:
    """Staging memory (256 MiB at most) and threads that the saves of this process share; made when first used."""
    global _engine
    if _engine is None or _engine[0] != os.getpid():  # a forked child makes its own
        _engine = (os.getpid(), _sealpoint.Engine())
    return _engine[1]


def parent_of(parent: Parent) -> tuple[str, int, str] | None:
    """Its attempt, its sequence, its directory; the last is empty if it is not known."""
    if parent is None:
        return None
    if isinstance(parent, Checkpoint):
        return (parent.attempt, parent.sequence, parent.absolute_path)
    if isinstance(parent, _sealpoint.CommitInfo):
        return (parent.attempt, parent.sequence, parent.directory)
    return parent if len(parent) == 3 else (*parent, "")


def save(
    tensors: Mapping[str, Any],
    path: Path,
    *,
    objects: Mapping[str, Any] | None = None,
    step: int | None = None,
    series: bool = False,
    parent: Parent = None,
    provenance: Provenance | None = None,
    mesh: Mapping[str, int] | None = None,
    codec: Codec = "none",
    codec_level: int = 1,
    chunk_size_bytes: int = CHUNK_SIZE_DEFAULT_BYTES,
    blob_size_max_bytes: int = BLOB_SIZE_MAX_DEFAULT_BYTES,
    allow_empty: bool = False,
    allow_fallback: bool = False,
    engine: _sealpoint.Engine | None = None,
    progress: Progress = None,
) -> _sealpoint.CommitInfo:
    """Saves the tensors and objects of one process as one checkpoint, which is durable when this returns.

    Args:
        tensors: names to arrays of numpy, or to what has the buffer protocol or ``__dlpack__``, such as tensors of torch;
            strides may be any. No thread may change them before this returns, or old and new values are stored. For
            dtypes that the array lacks: (array, name), where the name is one of the specification ("bf16") and the array
            has integers of its size, or bytes with one more axis of it.
        path: the new checkpoint's directory, made if it is missing; with ``series`` the directory of the series. A ``~``
            is expanded; URLs are refused.
        objects: names to bytes, or to (bytes, media type).
        step: the training step; a series needs one.
        series: save into a new directory ``step-...`` of this series, whose newest checkpoint becomes the parent.
        parent: the checkpoint before this one, if it is not in a series.
        provenance: what else is to be known of it, such as {"metric.loss": 1.25}. Stored as strings; a number as
            ``repr`` writes it.
        mesh: names and sizes of axes; provenance only.
        codec: "none", "zstd" or, for floating-point numbers, "bytesplit+zstd".
        chunk_size_bytes: unit of digest and codec: a power of two, 4 KiB to 128 MiB (16 MiB with a codec).
        blob_size_max_bytes: another file is begun before one would pass this.
        allow_empty: a checkpoint without tensors and objects is not an error.
        allow_fallback: save into the series although it has a marker that is damaged or of another version, and so may
            be newer: the new checkpoint comes behind all that say how new they are. Off: the marker's error is raised.
        engine: staging memory and threads; None: those that all saves of the process share.
        progress: as for ``Checkpoint.read``.

    Errors: InvalidArgumentError (names the tensor), AlreadyExistsError (the directory has a checkpoint; nothing was
    changed), NoSpaceError, IoError, UnsupportedError (the file system cannot publish exclusively; a marker of the
    series), CorruptError (a marker of the series). After an error there is no such checkpoint, unless its
    ``unknown_outcome`` is true.
    """
    check(
        tensors=tensors,
        objects=objects,
        step=step,
        series=series,
        parent=parent,
        codec=codec,
        codec_level=codec_level,
        chunk_size_bytes=chunk_size_bytes,
        blob_size_max_bytes=blob_size_max_bytes,
        allow_empty=allow_empty,
        allow_fallback=allow_fallback,
        engine=engine,
        progress=progress,
    )
    return _sealpoint.save(
        engine or default_engine(),
        (path_of(path), series, parent_of(parent)),
        dict(tensors),
        dict(objects or {}),
        (codec, codec_level, chunk_size_bytes),
        step,
        mesh_of(mesh),
        provenance_of(provenance),
        allow_empty,
        allow_fallback,
        blob_size_max_bytes,
        progress,
    )


class BlobWriter:
    """Writes tensors and objects of one process into blobs of a directory, without a communicator.

    What ``finish`` returns goes to one process by any means, which calls ``commit``. A context manager: leaving it
    without ``finish``, or by an exception, removes the files, unless a checkpoint may need them by then. Not usable in a
    forked child. One call at a time.
    """

    def __init__(
        self,
        directory: Path,
        *,
        attempt: str | None = None,
        step: int | None = None,
        size_max_bytes: int = BLOB_SIZE_MAX_DEFAULT_BYTES,
        engine: _sealpoint.Engine | None = None,
    ) -> None:
        """
        Args:
            directory: made if it is missing.
            attempt: id that all writers and the commit share (``new_attempt``), or None if there is none yet.
            step: the training step.
            size_max_bytes: another blob is begun before one would pass this.
        """
        check(attempt=attempt, step=step, size_max_bytes=size_max_bytes, engine=engine)
        self._path = path_of(directory, "directory")
        _sealpoint.create_directories(self._path)
        self._writer = _sealpoint.create_writer(engine or default_engine(), self._path, attempt, step, size_max_bytes)
        self._is_finished = False

    def add(
        self,
        name: str,
        array: Any,
        *,
        shape: tuple[int, ...] | None = None,
        offset: tuple[int, ...] | None = None,
        extent: tuple[int, ...] | None = None,
        run: tuple[int, int] | None = None,
        codec: Codec = "none",
        codec_level: int = 1,
        chunk_size_bytes: int = CHUNK_SIZE_DEFAULT_BYTES,
        group: str = "",
        placement: Iterable[str] = (),
    ) -> None:
        """Stores a tensor, or the part of it that this process holds. The array may change afterwards.

        Args:
            array: as for ``save``.
            shape: of the whole tensor; None: the array is all of it.
            offset: where the array is in it, in elements per dimension; None: at the beginning.
            extent: of the box, if the array is flat because it is a run of it; None: the array's shape.
            run: the array holds these row-major elements [begin, end) of the box; None: all of them.
            group: tensors of different groups go into different blobs.
            placement: how the tensor is placed on the mesh; provenance only.

        Holes and overlaps are found by ``commit``. Errors: InvalidArgumentError, NoSpaceError, IoError.
        """
        labels = listed("placement", placement)
        check(
            name=name,
            shape=shape,
            offset=offset,
            extent=extent,
            run=run,
            codec=codec,
            codec_level=codec_level,
            chunk_size_bytes=chunk_size_bytes,
            group=group,
            placement=labels,
        )
        where = None
        if shape is not None:
            where = (list(shape), list(offset or [0] * len(shape)), run, None if extent is None else list(extent))
        self._writer.add(name, array, where, (codec, codec_level, chunk_size_bytes), group, labels)

    def add_object(self, name: str, value: Any, *, codec: Codec = "none") -> None:
        """Stores bytes, or (bytes, media type), under a name."""
        check(name=name, codec=codec)
        self._writer.add_object(name, value, codec)

    def finish(self) -> list[bytes]:
        """Makes everything durable and returns one summary per blob; none if nothing was added. The last call."""
        summaries = self._writer.finish()
        self._is_finished = True
        return summaries

    def abandon(self) -> None:
        """Removes the files; also after ``finish``, if the attempt failed elsewhere.

        Errors: InvalidArgumentError: the checkpoint was committed, or its commit has not ended or its outcome is not known.
        Nothing was removed.
        """
        self._writer.abandon()

    def __repr__(self) -> str:
        return f"<sealpoint.BlobWriter {self._path!r}{', finished' if self._is_finished else ''}>"

    def __enter__(self) -> BlobWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None and self._is_finished:
            return
        try:
            self.abandon()
        except InvalidArgumentError:  # a checkpoint may need the finished blobs
            if not self._is_finished:
                raise


def commit(
    directory: Path,
    summaries: Iterable[bytes],
    *,
    attempt: str | None = None,
    step: int | None = None,
    parent: Parent = None,
    provenance: Provenance | None = None,
    mesh: Mapping[str, int] | None = None,
    allow_empty: bool = False,
    progress: Progress = None,
) -> _sealpoint.CommitInfo:
    """Makes the blobs of these summaries one checkpoint, or does nothing. Exactly one process calls it.

    Errors: InvalidArgumentError (holes, overlaps, disagreeing tensors; names them), AlreadyExistsError,
    IncompleteError (a blob is missing or short), CorruptError (a summary), NoSpaceError, IoError. After an error
    there is no checkpoint, unless its ``unknown_outcome`` is true; the blobs stay.
    """
    blobs = listed("summaries", summaries)
    check(summaries=blobs, attempt=attempt, step=step, parent=parent, allow_empty=allow_empty, progress=progress)
    return _sealpoint.commit(
        path_of(directory, "directory"),
        blobs,
        attempt,
        step,
        parent_of(parent),
        mesh_of(mesh),
        provenance_of(provenance),
        allow_empty,
        progress,
    )


def read_summary(directory: Path, blob: str) -> bytes:
    """The summary of a finished blob, as ``BlobWriter.finish`` returned it. ``blob`` is its id."""
    check(blob=blob)
    return _sealpoint.read_summary(path_of(directory, "directory"), blob)


def list_blobs(directory: Path) -> list[str]:
    """Ids of the files in a directory whose names are those of blobs."""
    return _sealpoint.list_blobs(path_of(directory, "directory"))


def new_attempt() -> str:
    """A random id for an attempt, 32 hexadecimal digits."""
    return _sealpoint.new_attempt()
