# SPDX-License-Identifier: Apache-2.0
"""Makes new checkpoints from committed checkpoints: re-encoded copies, merges and repairs."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, NamedTuple, TypedDict, Unpack

from sealpoint import _sealpoint
from sealpoint._arguments import Path, Provenance, check, path_of, provenance_of, threads_of
from sealpoint._checkpoint import Progress
from sealpoint._errors import InvalidArgumentError
from sealpoint._keywords import refuse_unknown, takes
from sealpoint._save import Codec


class RepackReport(NamedTuple):
    """Describes the new checkpoint."""

    attempt: str
    sequence: int
    step: int | None
    tensor_count: int
    object_count: int
    blob_count: int
    raw_bytes: int
    total_bytes: int  # total size of the blobs
    is_identical: bool  # a byte-identical copy, not a new checkpoint
    was_committed: bool  # an earlier call had already committed the checkpoint


class ThinReport(NamedTuple):
    """The path of the smaller checkpoint, and whether the source checkpoint was deleted."""

    path: str
    made: RepackReport
    is_source_removed: bool


class RepairedBlob(NamedTuple):
    """Result for one blob: the location of an intact copy, or None, and the errors of the locations that were tried first."""

    id: str
    size_bytes: int
    source: str | None
    problems: list[Exception]


class RepairReport(NamedTuple):
    """The location from which each part was taken. ``attempt`` is the id of the repaired checkpoint."""

    attempt: str | None
    step: int | None
    marker_from: str | None
    index_from: str | None  # None: rebuilt from the manifests
    blobs: list[RepairedBlob]
    lost_tensors: list[str]
    lost_objects: list[str]
    was_committed: bool


class FormKeywords(TypedDict, total=False):
    """Keywords that describe the form of a new checkpoint. See ``copy``."""

    codec: Codec | None
    codec_level: int
    chunk_size_bytes: int
    blob_count: int
    blob_size_max_bytes: int
    threads: int | None
    memory_budget_bytes: int
    dry_run: bool
    progress: Progress


@dataclasses.dataclass(frozen=True, kw_only=True)
class Form:
    """The keywords of ``FormKeywords`` as one value."""

    codec: Codec | None = None
    codec_level: int = 1
    chunk_size_bytes: int = 0
    blob_count: int = 0
    blob_size_max_bytes: int = 0
    threads: int | None = None
    memory_budget_bytes: int = 256 << 20
    dry_run: bool = False
    progress: Progress = None

    def values(self) -> tuple[tuple[Any, ...], Progress]:
        """Returns the values in the order of the native functions' parameters. Raises the errors of ``check``."""
        values = vars(self)
        check(**{**values, "codec": "none" if self.codec is None else self.codec})
        values = {**values, "threads": threads_of(self.threads)}
        return tuple(value for name, value in values.items() if name != "progress"), self.progress


def _form(function: Callable[..., Any], given: FormKeywords) -> tuple[tuple[Any, ...], Progress]:
    """Parses the keywords. Raises TypeError for an unknown keyword, and the errors of ``check``."""
    refuse_unknown(f"{function.__name__}()", given, list(inspect.signature(function).parameters))
    return Form(**given).values()


@takes(FormKeywords, Form)
def copy(
    source: Path,
    destination: Path,
    *,
    match: Sequence[str] = (),
    drop: Sequence[str] = (),
    flatten: bool = False,
    **form: Unpack[FormKeywords],
) -> RepackReport:
    """Copies a checkpoint from any storage to any other. Every chunk is verified when it is read.

    If the call neither selects nor re-encodes anything, the copy is the same checkpoint, byte for byte. Otherwise, the copy is a
    new attempt with the selected content. It has the step and the sequence of the source, and the entry ``repack.from`` in its
    provenance. Do not put such a copy into the series of its source, because this would create a fork. The copy appears atomically.
    If the process is killed, repeat the call; the repeated call resumes or restarts the copy. One process calls this function.

    Args:
        source: Directory of a checkpoint, as for ``sealpoint.open``.
        destination: Directory of the new checkpoint, created if missing.
        match: Patterns of tensor and object names, as for ``Checkpoint.find``. Default: all.
        drop: Patterns of names to leave out, among the names that ``match`` selects.
        flatten: Store all data of a checkpoint that was saved as changes to a base. Without this option, an identical copy of such
            a checkpoint needs its base next to ``destination``.
        codec: As for ``save``. By default, the codec of each tensor is kept.
        codec_level: Compression level of zstd.
        chunk_size_bytes: As for ``save``. 0: the chunk size of each tensor is kept.
        blob_count: Number of blobs to write, of about equal size. 0: one per thread.
        blob_size_max_bytes: Maximum size of a file. 0: 64 GiB.
        threads: Number of threads that read, verify, encode and write. Default: 2.
        memory_budget_bytes: Maximum payload memory of all threads together. At least 1 MiB per thread.
        dry_run: Read the sources and report the expected result, without writing or deleting.
        progress: As for ``Checkpoint.read``.

    Returns:
        A RepackReport with the counts of tensors, blobs and bytes.

    Raises:
        NotFoundError: a pattern matches nothing.
        AlreadyExistsError: the destination has a different checkpoint.
        InvalidArgumentError: an argument is invalid.
        UnsupportedError: the storage lacks a required feature.
        NoSpaceError: the storage is full.
        IoError: the storage failed.
        Error: as for ``sealpoint.open`` and ``Checkpoint.read``.

    Examples:
        >>> import numpy, sealpoint
        >>> _ = sealpoint.save({"model.w": numpy.ones(8), "optimizer.m": numpy.ones(8)}, "checkpoint")
        >>> _ = sealpoint.copy("checkpoint", "model", match=["model.*"], codec="zstd")
        >>> list(sealpoint.open("model"))
        ['model.w']
    """
    check(match=match, drop=drop, flatten=flatten)
    values = _form(copy, form)
    source, destination = path_of(source, "source"), path_of(destination, "destination")
    return RepackReport(*_sealpoint.copy(source, destination, list(match), list(drop), flatten, *values))


@takes(FormKeywords, Form)
def merge(
    sources: Iterable[Path],
    destination: Path,
    *,
    mode: Literal["average", "union"] = "average",
    weights: Sequence[float] = (),
    accumulate: Literal["f32", "f64"] = "f32",
    first_objects: bool = False,
    step: int | None = None,
    provenance: Provenance | None = None,
    **form: Unpack[FormKeywords],
) -> RepackReport:
    """Merges checkpoints into one checkpoint, which contains the weighted averages or the union of their tensors.

    The checkpoints may have any layouts. One process calls this function. Returns a RepackReport.

    Args:
        sources: Directories of checkpoints.
        destination: Directory of the new checkpoint, created if missing.
        mode: "average" requires the same tensors in all sources. Floating-point and complex tensors are averaged; all other tensors
            must be equal. "union" takes all tensors. A tensor that is in several sources must be equal in these sources.
        weights: One weight per source. The weights are not normalized. Default: 1/n for each of n sources.
        accumulate: Dtype of the sum w[0] * x[0] + w[1] * x[1] + …. The sum is computed from left to right, and then rounded to the
            dtype of the tensor. f64 and c128 are always summed in f64.
        first_objects: Take each object from the first source that has the object. If False, an object that differs between sources
            is an error.
        step: Training step. Default: the step of the first source.
        provenance: As for ``save``. The additional entry ``repack.from`` names the sources.
        form: ``codec``, ``codec_level``, ``chunk_size_bytes``, ``blob_count``, ``blob_size_max_bytes``, ``threads``,
            ``memory_budget_bytes``, ``dry_run`` and ``progress`` as for ``copy``.

    Raises:
        MismatchError: a tensor or object differs between sources. The error names the tensor or object.
        Error: as for ``copy``.

    Examples:
        >>> import numpy, sealpoint
        >>> for name, value in ("a", 1.0), ("b", 3.0):
        ...     _ = sealpoint.save({"w": numpy.full(2, value)}, name)
        >>> _ = sealpoint.merge(["a", "b"], "average", mode="average")
        >>> print(sealpoint.open("average")["w"][:])
        [2. 2.]
    """
    check(sources=sources, mode=mode, weights=weights, accumulate=accumulate, first_objects=first_objects, step=step)
    values = _form(merge, form)
    paths = [path_of(path, "sources") for path in sources]
    if mode == "union" and len(weights):
        raise InvalidArgumentError(f"weights is {weights!r}, expected none: a union has no weights")
    if mode == "union" and accumulate != "f32":
        raise InvalidArgumentError(f"accumulate is {accumulate!r}, expected none: a union computes no sums")
    average = ([float(weight) for weight in weights], accumulate == "f64") if mode == "average" else None
    made = _sealpoint.merge(
        paths, path_of(destination, "destination"), average, first_objects, step, provenance_of(provenance), *values
    )
    return RepackReport(*made)


@takes(FormKeywords, Form)
def thin(
    path: Path,
    drop: Sequence[str],
    *,
    destination: Path | None = None,
    remove_source: bool = False,
    **form: Unpack[FormKeywords],
) -> ThinReport:
    """Copies a checkpoint without some of its tensors and objects. Optionally deletes the source.

    One process calls this function. Returns a ThinReport with the path of the new checkpoint.

    Args:
        path: Directory of a checkpoint.
        drop: Patterns of names, such as "optimizer.*".
        destination: Directory of the new checkpoint. Default: next to the source, with the suffix "-thin".
        remove_source: Delete the source after the new checkpoint is durable, as ``Series.delete`` does. The newest
            checkpoint of a series cannot be deleted.
        form: ``codec``, ``codec_level``, ``chunk_size_bytes``, ``blob_count``, ``blob_size_max_bytes``, ``threads``,
            ``memory_budget_bytes``, ``dry_run`` and ``progress`` as for ``copy``.

    Raises:
        Error: as for ``copy`` and ``Series.delete``. If the source cannot be deleted, the error is raised before
            anything is written.

    Examples:
        >>> import numpy, sealpoint
        >>> _ = sealpoint.save({"model.w": numpy.ones(8), "optimizer.m": numpy.ones(8)}, "run/last")
        >>> sealpoint.thin("run/last", drop=["optimizer.*"]).path
        'run/last-thin'
    """
    check(drop=drop, remove_source=remove_source)
    values = _form(thin, form)
    target = None if destination is None else path_of(destination, "destination")
    where, made, is_removed = _sealpoint.thin(path_of(path), target, list(drop), remove_source, *values)
    return ThinReport(where, RepackReport(*made), is_removed)


def repair(
    path: Path,
    replicas: Iterable[Path],
    destination: Path,
    *,
    rebuild_index: bool = False,
    threads: int | None = None,
    progress: Progress = None,
) -> RepairReport:
    """Builds an intact checkpoint from a damaged one and its copies.

    Each file is taken from the first location that has an intact copy of the file.

    The damaged checkpoint and its copies are not changed.

    Args:
        path: Directory of the damaged checkpoint.
        replicas: Other directories with some files of the checkpoint. These directories need not be complete checkpoints.
        destination: New directory. If a blob is lost, the directory receives all other blobs, and a later call with an additional
            replica resumes the repair.
        rebuild_index: If no location has the index, rebuild the index from the blobs. This requires that all blobs of the attempt
            exist. The result is then a new attempt that has no provenance and no mesh.
        threads: Number of threads that copy. Default: 2.
        progress: As for ``Checkpoint.read``.

    Raises:
        IncompleteError: a file is lost. The attribute ``report`` of every exception lists the lost files.
        Error: any other failure. After an error no repaired checkpoint exists.

    Examples:
        >>> import os, sealpoint
        >>> _ = sealpoint.save({"w": b"12"}, "checkpoint"), sealpoint.copy("checkpoint", "replica")
        >>> (blob,) = sealpoint.list_blobs("checkpoint")
        >>> os.truncate(f"checkpoint/{blob}.blob", 100)
        >>> report = sealpoint.repair("checkpoint", ["replica"], "repaired")
        >>> sealpoint.verify("repaired").ok
        True
    """
    check(replicas=replicas, rebuild_index=rebuild_index, progress=progress)
    places = [path_of(replica, "replicas") for replica in replicas]
    error, values = _sealpoint.repair(
        path_of(path), places, path_of(destination, "destination"), rebuild_index, threads_of(threads), progress
    )
    attempt, step, marker, index, blobs, tensors, objects, was_committed = values
    repaired = [RepairedBlob(*blob) for blob in blobs]
    report = RepairReport(attempt, step, marker, index, repaired, tensors, objects, was_committed)
    if error is not None:
        error.report = report  # type: ignore[attr-defined]
        raise error
    return report
