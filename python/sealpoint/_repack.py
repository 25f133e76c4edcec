# SPDX-License-Identifier: Apache-2.0
"""New checkpoints of committed ones: copies in another form, merges, repairs."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, NamedTuple, TypedDict, Unpack

from sealpoint import _sealpoint
from sealpoint._arguments import Path, Provenance, check, path_of, provenance_of
from sealpoint._checkpoint import Progress
from sealpoint._errors import InvalidArgumentError
from sealpoint._keywords import refuse_unknown, takes
from sealpoint._save import Codec


class RepackReport(NamedTuple):
    """The checkpoint that was made."""

    attempt: str
    sequence: int
    step: int | None
    tensor_count: int
    object_count: int
    blob_count: int
    raw_bytes: int
    total_bytes: int  # of the blobs
    is_identical: bool  # the same checkpoint, byte for byte, and no new one
    was_committed: bool  # an earlier call had made it


class ThinReport(NamedTuple):
    """Where the smaller checkpoint is, and whether its source was deleted."""

    path: str
    made: RepackReport
    is_source_removed: bool


class RepairedBlob(NamedTuple):
    """One blob: the place that had it whole, or None, and the errors of the places looked at before."""

    id: str
    size_bytes: int
    source: str | None
    problems: list[Exception]


class RepairReport(NamedTuple):
    """What came from where. ``attempt`` is that of the repaired checkpoint."""

    attempt: str | None
    step: int | None
    marker_from: str | None
    index_from: str | None  # None: built from the manifests
    blobs: list[RepairedBlob]
    lost_tensors: list[str]
    lost_objects: list[str]
    was_committed: bool


class FormKeywords(TypedDict, total=False):
    """See ``copy``."""

    codec: Codec | None
    codec_level: int
    chunk_size_bytes: int
    blob_count: int
    blob_size_max_bytes: int
    threads: int
    memory_budget_bytes: int
    dry_run: bool
    progress: Progress


@dataclasses.dataclass(frozen=True, kw_only=True)
class Form:
    """How a new checkpoint is made: as keywords of the functions that make one."""

    codec: Codec | None = None
    codec_level: int = 1
    chunk_size_bytes: int = 0
    blob_count: int = 0
    blob_size_max_bytes: int = 0
    threads: int = 2
    memory_budget_bytes: int = 256 << 20
    dry_run: bool = False
    progress: Progress = None

    def values(self) -> tuple[tuple[Any, ...], Progress]:
        """As the library takes them. Errors: those of ``check``."""
        values = vars(self)
        check(**{**values, "codec": "none" if self.codec is None else self.codec})
        return tuple(value for name, value in values.items() if name != "progress"), self.progress


def _form(function: Callable[..., Any], given: FormKeywords) -> tuple[tuple[Any, ...], Progress]:
    """Errors: TypeError (a keyword that is not known), those of ``check``."""
    refuse_unknown(f"{function.__name__}()", given, list(inspect.signature(function).parameters))
    return Form(**given).values()


@takes(FormKeywords, Form)
def copy(
    source: Path,
    destination: Path,
    *,
    match: Sequence[str] = (),
    drop: Sequence[str] = (),
    **form: Unpack[FormKeywords],
) -> RepackReport:
    """Copies a checkpoint, of any storage to any other; each chunk is verified while it is read.

    With nothing chosen the copy is the same checkpoint, byte for byte. Otherwise it is a new attempt of the same
    content, step and place in the series (not beside its source: that is a fork), whose provenance has
    ``repack.from``. It appears at once; a call that was killed is repeated, and goes on or begins anew.

    Args:
        source: a checkpoint's directory; as for ``sealpoint.open``.
        destination: the new one's; made if it is missing.
        match: patterns of names of tensors and objects, as for ``Checkpoint.find``; none: all.
        drop: of these, what stays behind.
        codec: as for ``save``; None: of each tensor the one that it has. Likewise 0 for ``chunk_size_bytes``.
        codec_level: zstd's.
        chunk_size_bytes: as for ``save``.
        blob_count: blobs of about the same size; 0: one per thread.
        blob_size_max_bytes: another file is begun before one would pass this; 0: 64 GiB.
        threads: that read, verify, encode and write.
        memory_budget_bytes: for payload, of all threads; at least 1 MiB for each.
        dry_run: look at the sources, and write and delete nothing: the report is of what would be made.
        progress: as for ``Checkpoint.read``.

    Errors: those of ``sealpoint.open`` and ``Checkpoint.read``, NotFoundError (a pattern that matches nothing),
    AlreadyExistsError (the destination has another checkpoint), InvalidArgumentError, UnsupportedError, NoSpaceError,
    IoError.
    """
    check(match=match, drop=drop)
    values = _form(copy, form)
    source, destination = path_of(source, "source"), path_of(destination, "destination")
    return RepackReport(*_sealpoint.copy(source, destination, list(match), list(drop), *values))


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
    """Makes one checkpoint of several, of any layouts: weighted averages of their tensors, or all tensors of all.

    Args:
        sources: directories of checkpoints.
        destination: the new one's; made if it is missing.
        mode: "average": all have the same tensors; those of floating-point and complex dtypes are averaged, others must
            be equal. "union": the tensors of all; those that several have must be equal.
        weights: one per source, used as they are; none: 1/n each.
        accumulate: the dtype of the sum w[0] * x[0] + w[1] * x[1] + …, from left to right, which is then rounded to
            the tensor's; f64 and c128 are always summed up in f64.
        first_objects: take the objects of the first source that has them. Off: objects that differ are an error.
        step: None: that of the first source.
        provenance: as for ``save``; ``repack.from`` names the sources.
        form: ``codec``, ``codec_level``, ``chunk_size_bytes``, ``blob_count``, ``blob_size_max_bytes``, ``threads``,
            ``memory_budget_bytes``, ``dry_run`` and ``progress`` as for ``copy``.

    Errors: as for ``copy``; MismatchError (names the tensor or object that differs).
    """
    check(sources=sources, mode=mode, weights=weights, accumulate=accumulate, first_objects=first_objects, step=step)
    values = _form(merge, form)
    paths = [path_of(path, "sources") for path in sources]
    if mode == "union" and len(weights):
        raise InvalidArgumentError(f"weights is {weights!r}, expected none: a union has no weights")
    if mode == "union" and accumulate != "f32":
        raise InvalidArgumentError(f"accumulate is {accumulate!r}, expected none: a union sums nothing up")
    average = ([float(one) for one in weights], accumulate == "f64") if mode == "average" else None
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
    """Makes a checkpoint without some of its tensors and objects, and may delete the old one afterwards.

    Args:
        path: a checkpoint's directory.
        drop: patterns of names, such as "optimizer.*".
        destination: the new one's; None: beside the old one, its name with "-thin".
        remove_source: delete the old one once the new one is durable, as ``Series.delete``; never the newest.
        form: ``codec``, ``codec_level``, ``chunk_size_bytes``, ``blob_count``, ``blob_size_max_bytes``, ``threads``,
            ``memory_budget_bytes``, ``dry_run`` and ``progress`` as for ``copy``.

    Errors: as for ``copy``, and those of ``Series.delete``; that it would be refused is found before anything is written.
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
    threads: int = 2,
    progress: Progress = None,
) -> RepairReport:
    """Makes a whole checkpoint of a damaged one and its copies: of each file the first that passes. Changes none of them.

    Args:
        path: the damaged checkpoint's directory.
        replicas: other directories with some of its files; they need not be checkpoints.
        destination: a new directory. If a blob is lost, it holds all others, and a call with another replica goes on.
        rebuild_index: if no place has the index, build one from the blobs, if all of the attempt are there. The result is
            then a new attempt, without provenance and mesh.
        threads: that copy.
        progress: as for ``Checkpoint.read``.

    Errors: IncompleteError and others: there is no repaired checkpoint; the attribute ``report`` of the exception says
    what is lost.
    """
    check(replicas=replicas, rebuild_index=rebuild_index, threads=threads, progress=progress)
    places = [path_of(one, "replicas") for one in replicas]
    error, values = _sealpoint.repair(
        path_of(path), places, path_of(destination, "destination"), rebuild_index, threads, progress
    )
    attempt, step, marker, index, blobs, tensors, objects, was_committed = values
    repaired = [RepairedBlob(*blob) for blob in blobs]
    report = RepairReport(attempt, step, marker, index, repaired, tensors, objects, was_committed)
    if error is not None:
        error.report = report  # type: ignore[attr-defined]
        raise error
    return report
