# SPDX-License-Identifier: Apache-2.0
"""Saves from one process, and blob writers for programs with their own collectives."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Literal

from sealpoint import _sealpoint
from sealpoint._arguments import Path, Provenance, check, listed, mesh_of, path_of, provenance_of
from sealpoint._checkpoint import Checkpoint, Progress
from sealpoint._errors import InvalidArgumentError
from sealpoint._option_table import BLOB_SIZE_MAX_DEFAULT_BYTES, CHUNK_SIZE_DEFAULT_BYTES

Codec = Literal["none", "zstd", "bytesplit+zstd"]
# Patterns of tensors that rarely change, or "learned" to detect them.
Frozen = Sequence[str] | Literal["learned"]
# The preceding checkpoint: the object, the result of its save, or (attempt, sequence[, directory]).
Parent = Checkpoint | _sealpoint.CommitInfo | tuple[str, int] | tuple[str, int, str] | None

_engine: tuple[int, _sealpoint.Engine] | None = None


def default_engine() -> _sealpoint.Engine:
    """Returns the engine shared by the saves of this process: threads and at most 256 MiB of staging memory. Created lazily."""
    global _engine
    if _engine is None or _engine[0] != os.getpid():  # a forked child creates its own
        _engine = (os.getpid(), _sealpoint.Engine())
    return _engine[1]


def parent_of(parent: Parent) -> tuple[str, int, str] | None:
    """Returns (attempt, sequence, directory). The directory is empty if unknown."""
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
    """Saves tensors and objects of one process as a checkpoint, which is durable on return.

    Args:
        tensors: Names to numpy arrays, or to objects with the buffer protocol or ``__dlpack__`` such as torch tensors.
            Any strides. Other threads must not change them during the call; otherwise old and new values may be mixed.
            For a dtype that the array type lacks, pass (array, dtype name of the specification, such as "bf16"); the
            array then has integers of the same size, or bytes with one more axis of that size.
        path: Directory of the new checkpoint, created if missing. With ``series``, directory of the series. ``~`` is
            expanded; URLs are not supported.
        objects: Names to bytes, or to (bytes, media type).
        mesh: Names and sizes of mesh axes. Provenance only.
        engine: Staging memory and threads. Default: shared by all saves of the process.
        codec: Compression: "none", "zstd" or, for floating-point numbers, "bytesplit+zstd".
        codec_level: Compression level of zstd.
        chunk_size_bytes: Unit of digests and codecs: a power of two, 4 KiB to 128 MiB (16 MiB with a codec).
        blob_size_max_bytes: Maximum size of a file. Default: 64 GiB.
        step: Training step. Required with ``series``.
        series: Save into a new subdirectory ``step-...`` of this series. Its newest checkpoint becomes the parent.
        parent: Preceding checkpoint, if this one is outside a series.
        provenance: Additional facts to store, such as {"metric.loss": 1.25}. Stored as strings, numbers via ``repr``.
        allow_empty: Allow a checkpoint without tensors and objects.
        allow_fallback: Save into the series even if one of its markers is damaged or has another version, and might
            therefore be newer. The new checkpoint follows all readable ones. If False, the error of that marker is
            raised.
        progress: As for ``sealpoint.Checkpoint.read``.

    Raises:
        InvalidArgumentError: an argument is invalid. Names the tensor.
        AlreadyExistsError: the directory already has a checkpoint. Nothing was changed.
        NoSpaceError: the storage is full.
        IoError: the storage failed.
        UnsupportedError: the file system cannot publish exclusively, or a marker of the series has another version.
        CorruptError: a marker of the series is damaged.

    After an error the checkpoint does not exist, unless ``unknown_outcome`` of the error is true.

    Examples:
        >>> import numpy, sealpoint
        >>> sealpoint.save({"w": numpy.ones((4, 8))}, "run", series=True, step=100).step
        100
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
        _sealpoint.SaveTarget(path_of(path), series, parent_of(parent)),
        dict(tensors),
        dict(objects or {}),
        _sealpoint.Encoding(codec, codec_level, chunk_size_bytes),
        _sealpoint.SaveOptions(
            step=step, provenance=provenance_of(provenance), allow_empty=allow_empty, allow_fallback=allow_fallback,
            mesh=mesh_of(mesh)
        ),
        blob_size_max_bytes,
        progress,
    )


class BlobWriter:
    """Writes tensors and objects of one process into blobs, without a communicator.

    Send the summaries returned by ``finish`` to one process by any means; that process calls ``commit``. As a context
    manager it removes the files on an exception or if ``finish`` was not called, unless a checkpoint might need them.
    Not thread-safe. Not usable in a forked child.

    Examples:
        >>> import numpy, sealpoint
        >>> with sealpoint.BlobWriter("checkpoint") as writer:  # on each process
        ...     writer.add("w", numpy.ones((2, 8)), shape=(2, 8))
        ...     summaries = writer.finish()
        >>> sealpoint.commit("checkpoint", summaries).tensor_count  # on one process
        1
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
        """Creates the writer.

        Args:
            directory: Created if missing.
            attempt: Id shared by all writers and the commit (``new_attempt``). None: not known yet.
            step: Training step.
            size_max_bytes: Maximum size of a blob. Default: 64 GiB.
            engine: Staging memory and threads. Default: shared by all saves of the process.
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
        """Stores a tensor, or the part of it held by this process. The array may change afterwards.

        Args:
            name: Name of the tensor.
            array: As for ``save``.
            shape: Shape of the whole tensor. Default: the array is the whole tensor.
            offset: Offset of the box in the tensor, in elements per dimension. Default: zeros.
            extent: Extent of the box if the array is flat (with ``run``). Default: the shape of the array.
            run: The array holds the row-major elements [begin, end) of the box. Default: all of them.
            codec, codec_level, chunk_size_bytes: As for ``save``.
            group: Tensors of different groups go into different blobs.
            placement: Placement of the tensor on the mesh. Provenance only.

        ``commit`` detects holes and overlaps.

        Raises:
            InvalidArgumentError: an argument is invalid.
            NoSpaceError: the storage is full.
            IoError: the storage failed.
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
        encoding = _sealpoint.Encoding(codec, codec_level, chunk_size_bytes)
        self._writer.add(name, array, where, encoding, group, labels)

    def add_object(self, name: str, value: Any, *, codec: Codec = "none") -> None:
        """Stores an object: bytes, or (bytes, media type)."""
        check(name=name, codec=codec)
        self._writer.add_object(name, value, codec)

    def finish(self) -> list[bytes]:
        """Makes all blobs durable and returns one summary per blob; an empty list if nothing was added. The last call."""
        summaries = self._writer.finish()
        self._is_finished = True
        return summaries

    def abandon(self) -> None:
        """Removes the files, also after ``finish`` if the attempt failed elsewhere.

        Raises InvalidArgumentError, and removes nothing, if the checkpoint was committed or the outcome of its commit is
        unknown or pending.
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
    """Commits the blobs with these summaries as one checkpoint, or does nothing. Exactly one process calls it.

    Args:
        directory: Directory of the blobs.
        summaries: Results of ``BlobWriter.finish`` of all writers.
        attempt: Id shared with the writers.
        step, parent, provenance, mesh, allow_empty, progress: As for ``save``.

    Raises:
        InvalidArgumentError: holes, overlaps, or tensors with different descriptions. Names them.
        AlreadyExistsError: the directory already has a checkpoint.
        IncompleteError: a blob is missing or too short.
        CorruptError: a summary is damaged.
        NoSpaceError: the storage is full.
        IoError: the storage failed.

    After an error the checkpoint does not exist, unless ``unknown_outcome`` of the error is true. The blobs stay.

    Examples:
        >>> import numpy, sealpoint
        >>> summaries = []
        >>> for first in (0, 2):  # two writers of two rows each, here in one process
        ...     with sealpoint.BlobWriter("checkpoint") as writer:
        ...         writer.add("w", numpy.ones((2, 8)), shape=(4, 8), offset=(first, 0))
        ...         summaries += writer.finish()
        >>> sealpoint.commit("checkpoint", summaries, step=7).step
        7
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
    """Reads the summary of a finished blob, as ``BlobWriter.finish`` returned it. ``blob`` is its id.

    Examples:
        >>> import numpy, sealpoint
        >>> with sealpoint.BlobWriter("checkpoint") as writer:
        ...     writer.add("w", numpy.ones(8))
        ...     (summary,) = writer.finish()
        >>> (blob,) = sealpoint.list_blobs("checkpoint")
        >>> sealpoint.read_summary("checkpoint", blob) == summary
        True
    """
    check(blob=blob)
    return _sealpoint.read_summary(path_of(directory, "directory"), blob)


def list_blobs(directory: Path) -> list[str]:
    """Lists the ids of all files with blob names in a directory.

    Examples:
        >>> import sealpoint
        >>> sealpoint.save({"w": b"12"}, "checkpoint").directory
        'checkpoint'
        >>> [len(blob) for blob in sealpoint.list_blobs("checkpoint")]
        [32]
    """
    return _sealpoint.list_blobs(path_of(directory, "directory"))


def new_attempt() -> str:
    """Returns a new random attempt id, 32 hexadecimal digits.

    Examples:
        >>> import sealpoint
        >>> attempt = sealpoint.new_attempt()  # on one process, which sends it to the others
        >>> with sealpoint.BlobWriter("checkpoint", attempt=attempt) as writer:
        ...     writer.add("w", b"12")
        ...     summaries = writer.finish()
        >>> sealpoint.commit("checkpoint", summaries, attempt=attempt).attempt == attempt
        True
    """
    return _sealpoint.new_attempt()
