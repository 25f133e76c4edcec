# SPDX-License-Identifier: Apache-2.0
"""Saves from one process, and blob writers for programs whose processes communicate by their own means."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Literal

from sealpoint import _sealpoint
from sealpoint._arguments import (
    Attributes, Path, Provenance, attributes_by_tensor, attributes_of, check, listed, mesh_of, path_of, provenance_of
)
from sealpoint._checkpoint import Checkpoint, Progress
from sealpoint._errors import InvalidArgumentError
from sealpoint._option_table import BLOB_SIZE_MAX_DEFAULT_BYTES, CHUNK_SIZE_DEFAULT_BYTES, cuts_of

Codec = Literal["none", "zstd", "bytesplit+zstd"]
# Patterns of tensors that rarely change, or "learned" to detect them.
Frozen = Sequence[str] | Literal["learned"]
# The preceding checkpoint: a Checkpoint object, the result of a save, or (attempt, sequence[, directory]).
Parent = Checkpoint | _sealpoint.CommitInfo | tuple[str, int] | tuple[str, int, str] | None

_engine: tuple[int, _sealpoint.Engine] | None = None


def default_engine() -> _sealpoint.Engine:
    """Returns the engine that all saves of this process share. The first call creates it.

    The engine has threads and at most 256 MiB of staging memory.
    """
    global _engine
    if _engine is None or _engine[0] != os.getpid():  # a forked child creates its own engine
        _engine = (os.getpid(), _sealpoint.Engine())
    return _engine[1]


def parent_of(parent: Parent) -> tuple[str, int, str] | None:
    """Returns the attempt, sequence and directory of a parent. An unknown directory is ""."""
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
    attributes: Attributes | None = None,
    tensor_attributes: Mapping[str, Attributes] | None = None,
    mesh: Mapping[str, int] | None = None,
    codec: Codec = "none",
    codec_level: int = 1,
    chunk_size_bytes: int = CHUNK_SIZE_DEFAULT_BYTES,
    stored_cuts: Mapping[str, Sequence[int]] | None = None,
    fingerprints: bool = False,
    blob_size_max_bytes: int = BLOB_SIZE_MAX_DEFAULT_BYTES,
    allow_empty: bool = False,
    allow_fallback: bool = False,
    engine: _sealpoint.Engine | None = None,
    progress: Progress = None,
) -> _sealpoint.CommitInfo:
    """Saves tensors and objects of one process as a checkpoint. The checkpoint is durable when the function returns.

    Args:
        tensors: Maps names to numpy arrays, or to objects with the buffer protocol or ``__dlpack__``, such as torch
            tensors. Any strides are allowed. Other threads must not change the arrays during the call, because the
            checkpoint could then mix old and new values. If the array type lacks a dtype such as bf16, pass (array,
            name of the dtype in the specification). Such an array contains integers of the same size as the dtype, or
            bytes with an additional last axis of this size.
        path: Directory of the new checkpoint, created if missing. With ``series``, directory of the series. ``~`` is
            expanded; URLs are not supported.
        objects: Maps names to bytes, or to (bytes, media type).
        mesh: Names and sizes of mesh axes. They are only recorded, and have no effect on the save.
        engine: Staging memory and threads. Default: the engine that all saves of the process share.
        codec: Compression: "none", "zstd" or, for floating-point numbers, "bytesplit+zstd".
        codec_level: Compression level of zstd.
        chunk_size_bytes: Chunk size: a power of two from 4 KiB to 128 MiB. With a codec, at most 16 MiB. Each chunk is
            digested and compressed separately.
        stored_cuts: Boxes in which tensors are stored, such as ``{"grid.*": (64, 64, 64)}``. Maps patterns of names
            (``*`` matches any characters) to the extents of the boxes, one extent per dimension. Extent 0 means the
            whole dimension. The first pattern that matches a tensor applies. Regions are cut at multiples of the
            extents. Each box has its own chunks, so a read of a plane or a block reads only the boxes that overlap with
            it. A pattern is an error if it matches no tensor, or a tensor with a different number of dimensions.
            Default: each region is stored in row-major order.
        fingerprints: Store the fingerprint of each tensor; see ``sealpoint.fingerprint``. This costs one more pass of
            the processor over the tensors. Readers of release 1.0.0 ignore fingerprints.
        blob_size_max_bytes: Maximum size of a file. Default: 64 GiB.
        step: Training step. Required if ``series`` is true.
        series: Save into a new subdirectory ``step-...`` of this series. The newest checkpoint in the series becomes
            the parent.
        parent: Preceding checkpoint, if the new checkpoint is not saved into a series.
        provenance: Additional facts to store, such as {"metric.loss": 1.25}. Values are stored as strings; numbers are
            converted by ``repr``.
        attributes: Attributes of the checkpoint: named values that describe the data, such as {"time": 0.5}. A value is
            a str, int, float or bool, or a list of values of one of these types. If several ranks save together, those
            of rank 0 are stored. Readers of release 1.0.0 ignore attributes.
        tensor_attributes: Attributes of tensors by name, such as {"t": {"units": "K", "dimensions": ["lat", "lon"]}}.
        allow_empty: Allow a checkpoint without tensors and objects.
        allow_fallback: Save into the series even if the marker of an existing checkpoint is damaged or has a different
            format version. The new checkpoint then follows the newest readable checkpoint, although the unreadable one
            might be newer. If False, such a marker is an error.
        progress: As for ``sealpoint.Checkpoint.read``.

    Raises:
        InvalidArgumentError: an argument is invalid. The error names the tensor.
        AlreadyExistsError: the directory already has a checkpoint. Nothing was changed.
        NoSpaceError: the storage is full.
        IoError: the storage failed.
        UnsupportedError: the file system cannot create or rename a file exclusively, or a marker in the series has a
            different format version.
        CorruptError: a marker in the series is damaged.

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
        stored_cuts=stored_cuts,
        fingerprints=fingerprints,
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
            mesh=mesh_of(mesh), attributes=attributes_of(attributes)
        ),
        blob_size_max_bytes,
        cuts_of(stored_cuts),
        fingerprints,
        attributes_by_tensor(tensor_attributes, tensors),
        progress,
    )


class BlobWriter:
    """Writes tensors and objects of one process into blobs, without a communicator.

    Send the summaries that ``finish`` returns to one process, by any means. This process then calls ``commit``. The writer is a
    context manager. If the block raises an exception or does not call ``finish``, the writer removes its files, unless a checkpoint
    might need them. Concurrent calls from several threads raise InvalidArgumentError. A writer cannot be used in a forked child.

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
        fingerprints: bool = False,
        engine: _sealpoint.Engine | None = None,
    ) -> None:
        """Creates the writer.

        Args:
            directory: Created if missing.
            attempt: Id from ``new_attempt`` that all writers and the commit share. None: the id is not known yet.
            step: Training step.
            size_max_bytes: Maximum size of a blob. Default: 64 GiB.
            fingerprints: Store the fingerprints of the tensors, as for ``save``.
            engine: Staging memory and threads. Default: the engine that all saves of the process share.
        """
        check(attempt=attempt, step=step, size_max_bytes=size_max_bytes, fingerprints=fingerprints, engine=engine)
        self._path = path_of(directory, "directory")
        _sealpoint.create_directories(self._path)
        self._writer = _sealpoint.create_writer(
            engine or default_engine(), self._path, attempt, step, size_max_bytes, fingerprints
        )
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
        attributes: Attributes | None = None,
    ) -> None:
        """Stores a tensor, or the part of a tensor that this process holds. Not collective.

        The caller may change the array after the call.

        Args:
            name: Name of the tensor.
            array: As for ``save``.
            shape: Shape of the whole tensor. Default: the array is the whole tensor.
            offset: Offset of the box in the tensor, in elements per dimension. Default: zeros.
            extent: Extent of the box, if the array is flat (see ``run``). Default: the shape of the array.
            run: (begin, end): the array contains only these elements of the box, in row-major order. Default: all
                elements of the box.
            codec, codec_level, chunk_size_bytes: As for ``save``.
            group: Tensors of different groups are stored in different blobs.
            placement: Placement of the tensor on the mesh. It is only recorded, and has no effect on the save.
            attributes: Attributes of the tensor, as for ``save``. All writers of a tensor pass the same attributes.

        ``commit`` detects holes and overlaps between the parts of a tensor.

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
        self._writer.add(name, array, where, encoding, group, labels, attributes_of(attributes))

    def add_object(self, name: str, value: Any, *, codec: Codec = "none") -> None:
        """Stores an object. Exactly one writer of a checkpoint must store the object.

        Args:
            name: Name of the object.
            value: Bytes, or (bytes, media type).
            codec: As for ``save``.

        Raises:
            Error: as for ``add``.
        """
        check(name=name, codec=codec)
        self._writer.add_object(name, value, codec)

    def finish(self) -> list[bytes]:
        """Makes all blobs durable and returns one summary per blob, or an empty list if nothing was added.

        After ``finish``, only ``abandon`` may be called. Not collective. Raises the errors of ``add``.
        """
        summaries = self._writer.finish()
        self._is_finished = True
        return summaries

    def abandon(self) -> None:
        """Removes the writer's files. May also be called after ``finish``, if the attempt failed on a different process.

        If the checkpoint was committed, or if the outcome of its commit is unknown or pending, raises InvalidArgumentError and
        removes nothing.
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
    attributes: Attributes | None = None,
    mesh: Mapping[str, int] | None = None,
    allow_empty: bool = False,
    progress: Progress = None,
) -> _sealpoint.CommitInfo:
    """Commits the blobs with these summaries as one checkpoint. The commit is atomic. Exactly one process calls this function.

    Args:
        directory: Directory of the blobs.
        summaries: The summaries that ``BlobWriter.finish`` returned, from all writers, in one list.
        attempt: Attempt id that was passed to the writers.
        step, parent, provenance, attributes, mesh, allow_empty, progress: As for ``save``.

    Raises:
        InvalidArgumentError: the parts of a tensor leave holes or overlap, or the writers describe the tensor differently. The
            error names the tensor.
        AlreadyExistsError: the directory already has a checkpoint.
        IncompleteError: a blob is missing or too short.
        CorruptError: a summary is damaged.
        NoSpaceError: the storage is full.
        IoError: the storage failed.

    Returns a CommitInfo. After an error the checkpoint does not exist, unless the error's ``unknown_outcome`` is true. An error
    leaves the blobs in place.

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
        attributes_of(attributes),
        provenance_of(provenance),
        allow_empty,
        progress,
    )


def read_summary(directory: Path, blob: str) -> bytes:
    """Returns the summary of a finished blob, as ``BlobWriter.finish`` returned it. Not collective.

    Args:
        directory: Directory of the blob.
        blob: Id of the blob, 32 hexadecimal digits.

    Raises:
        NotFoundError: the blob does not exist.
        CorruptError: the blob is damaged.
        IoError: the storage failed.

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
    """Returns the ids of all files with blob names in a directory. Not collective. Raises IoError if the storage failed.

    Examples:
        >>> import sealpoint
        >>> sealpoint.save({"w": b"12"}, "checkpoint").directory
        'checkpoint'
        >>> [len(blob) for blob in sealpoint.list_blobs("checkpoint")]
        [32]
    """
    return _sealpoint.list_blobs(path_of(directory, "directory"))


def new_attempt() -> str:
    """Returns a new random attempt id of 32 hexadecimal digits.

    Call this function in one process, and send the id to the other processes. Raises nothing.

    Examples:
        >>> import sealpoint
        >>> attempt = sealpoint.new_attempt()  # on one process
        >>> with sealpoint.BlobWriter("checkpoint", attempt=attempt) as writer:
        ...     writer.add("w", b"12")
        ...     summaries = writer.finish()
        >>> sealpoint.commit("checkpoint", summaries, attempt=attempt).attempt == attempt
        True
    """
    return _sealpoint.new_attempt()
