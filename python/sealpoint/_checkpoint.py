# SPDX-License-Identifier: Apache-2.0
"""Opening and reading checkpoints."""

from __future__ import annotations

import contextlib
import mmap
import operator
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from types import EllipsisType, TracebackType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar, overload

from sealpoint import _dlpack, _paths, _sealpoint
from sealpoint._arguments import Path as Path
from sealpoint._arguments import check, is_text, listed, load_threads, path_of
from sealpoint._dtypes import numpy, numpy_dtype
from sealpoint._errors import (
    ArgumentTypeError,
    InvalidArgumentError,
    LimitExceededError,
    MismatchError,
    NotFoundError,
    UnsupportedError,
)
from sealpoint._hints import nearest
from sealpoint._index import Selection, select, whole
from sealpoint._mapped import HostCopy, aligned_array, arrays_of, with_dlpack
from sealpoint._native import check_one

Progress = bool | Callable[[str, int, int], None] | None
OnMismatch = Literal["error", "report", "allow"]
Rounding = Literal["exact", "nearest"]

if TYPE_CHECKING:
    from numpy.typing import NDArray

    # Integers, slices and "...", alone or in a tuple.
    Index = int | slice | EllipsisType | tuple[int | slice | EllipsisType, ...]
    Array = NDArray[Any]

_Out = TypeVar("_Out")


class Shard(NamedTuple):
    """A part of a tensor as stored: a box, in elements per dimension, or a run of its row-major elements."""

    offset: tuple[int, ...]
    extent: tuple[int, ...]
    run: tuple[int, int] | None
    blob: str


class Chunks(NamedTuple):
    """How a tensor is stored. ``codecs`` counts the chunks of each codec."""

    chunk_count: int
    raw_bytes: int
    stored_bytes: int
    codecs: dict[str, int]


class Blob(NamedTuple):
    """A file with payload."""

    id: str
    file_size_bytes: int
    chunk_count: int


class Plan(NamedTuple):
    """What a read would cost. ``text`` has one line per file."""

    summary: _sealpoint.PlanSummary
    text: str
    findings: list[tuple[str, str, str]]

    def __str__(self) -> str:
        return self.text


class Tensor:
    """A stored tensor that is read when it is indexed: ``t[0:4, :]`` reads just these elements.

    Made by ``checkpoint[name]``. Every read verifies what it touches. Thread safety: any calls from any threads.
    """

    __slots__ = ("_checkpoint", "_info", "shape")

    def __init__(self, checkpoint: Checkpoint, info: _sealpoint.TensorInfo) -> None:
        self._checkpoint = checkpoint
        self._info = info
        self.shape: tuple[int, ...] = info.shape

    @property
    def name(self) -> str:
        return self._info.name

    @property
    def dtype(self) -> Any:
        """numpy's dtype, if numpy or ml_dtypes has one; else ``dtype_name``."""
        found = numpy_dtype(self._info.dtype)
        return self._info.dtype if found is None else found

    @property
    def dtype_name(self) -> str:
        """The dtype's name in the specification, such as "bf16"."""
        return self._info.dtype

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self._info.element_size

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        """Count of elements."""
        return self._info.raw_bytes // self._info.element_size

    @property
    def nbytes(self) -> int:
        return self._info.raw_bytes

    @property
    def chunk_size_bytes(self) -> int:
        """Unit of digest and codec."""
        return self._info.chunk_size_bytes

    @property
    def placement(self) -> list[str]:
        """How the tensor was placed on the mesh of its writers, as far as they said so."""
        return self._info.placement

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a tensor without dimensions")
        return self.shape[0]

    def __bool__(self) -> bool:
        raise TypeError("the truth of a tensor is ambiguous; read it, or use its size")

    def __getitem__(self, index: Index) -> Array:
        """Reads a part: integers, slices and ``...``, as numpy indexes. Returns an array, or a scalar of it.

        Of a slice with a step the elements between are read, too. Elements of a dtype that neither numpy nor
        ml_dtypes has come as uint8 with one more axis of ``itemsize`` bytes. A single element is a scalar of numpy,
        which the type here does not say.

        Errors: IndexError, TypeError (the index); those of ``read``.
        """
        selection = select(index, self.shape)
        array = self._read_new(selection)
        if any(step != 1 for step in selection.steps):
            array = array[tuple(slice(None, None, step) for step in selection.steps)]
        is_scalar = not selection.steps and index is not Ellipsis and index != (Ellipsis,)
        result: Array = array[()] if is_scalar and array.ndim == 0 else array
        return result

    @overload
    def read(self, out: None = None, box: Index = ..., *, threads: int | None = None, convert: None = None) -> Array: ...

    @overload
    def read(
        self, out: _Out, box: Index = ..., *, threads: int | None = None, convert: Rounding | None = None
    ) -> _Out: ...

    def read(
        self, out: Any = None, box: Index = ..., *, threads: int | None = None, convert: Rounding | None = None
    ) -> Any:
        """Reads the tensor, or a box of it, into ``out``, and returns ``out``.

        Args:
            out: an array of numpy or an object with the buffer protocol or ``__dlpack__``, writable, of the box's shape
                and the tensor's dtype; strides may be any. Bytes may be flat, or have one more axis of ``itemsize``.
                None: a new array.
            box: an index as for ``t[...]``, without steps. Dimensions of an integer are not in ``out``.
            threads: that read and verify; None: those of the checkpoint.
            convert: "exact" or "nearest": ``out`` may have another dtype, to which the elements are converted.

        Without ``out`` all elements come in an array, also a single one.

        Errors: InvalidArgumentError (before a byte moves: dtype, shape, strides, read-only; names the tensor),
        CorruptError, IncompleteError, IoError. After an error the content of ``out`` is not specified.
        """
        selection = select(box, self.shape)
        if any(step != 1 for step in selection.steps):
            raise ValueError("a box has no steps; index the tensor instead: t[::2]")
        if out is None:
            if convert is not None:
                raise ValueError("convert needs out, whose dtype is the one to convert to")
            return self._read_new(selection, threads=threads)
        self._read_into(selection, out, threads=threads, convert=convert)
        return out

    def map(self, *, threads: int | None = None) -> Array:
        """The stored bytes as an array that cannot be written, without a copy, after all of them were read and verified.

        For a tensor without a codec in one shard; one in several is read, or taken by ``map_shards``. The array keeps its
        mapping when the checkpoint is closed, or deleted. What it cannot promise: if another program overwrites the blob in
        place, the new bytes show, and if one truncates it, an access ends this process (SIGBUS). No part of this library
        does either; where others may, take ``host_copy``. A file that is short already is an error (since Linux 5.14).

        Args:
            threads: that read and verify; None: those of the checkpoint.

        Errors: UnsupportedError (a codec, several shards, an object store), CorruptError, IncompleteError, IoError.
        """
        if self.size == 0:
            return self._read_new(whole(self.shape))  # type: ignore[no-any-return]
        return self._one_of(self._mapped(threads))

    def map_shards(self, *, threads: int | None = None) -> list[tuple[Shard, Array]]:
        """The same of each shard, in stored order. The array of a run has one dimension."""
        return self._shards_of(self._mapped(threads))

    def host_copy(self, *, threads: int | None = None) -> HostCopy:
        """A copy in sealed memory (memfd), verified once: no process can change it, and those of this host share it by
        ``map_host_copy``. Also of tensors with a codec, and in object stores.

        Errors: as for ``map``.
        """
        mapped = self._mapped(threads, host_copy=True)
        return HostCopy(mapped, self._one_of(mapped))

    def map_host_copy(self, path: Path) -> Array:
        """The ``path`` of another process's ``host_copy`` of this tensor, whose verification is trusted.

        Errors: InvalidArgumentError (memory that is not sealed, or not of this tensor's size), OSError (the path).
        """
        descriptor = os.open(path_of(path), os.O_RDONLY | os.O_CLOEXEC)
        try:
            return self._one_of(_sealpoint.map_sealed(self._checkpoint._handle, self.name, descriptor))
        finally:
            os.close(descriptor)

    def _mapped(self, threads: int | None, *, host_copy: bool = False) -> _sealpoint.MappedTensor:
        checkpoint = self._checkpoint
        return _sealpoint.map(checkpoint._handle, self.name, checkpoint._threads_of(threads), host_copy)

    def _one_of(self, mapped: _sealpoint.MappedTensor) -> Array:
        return self._only(self._shards_of(mapped))[1]

    def _only(self, shards: Sequence[_Out]) -> _Out:
        if len(shards) != 1:
            raise UnsupportedError(f"stored in {len(shards)} shards, expected one; see map_shards", tensor=self.name)
        return shards[0]

    def _shards_of(self, mapped: _sealpoint.MappedTensor) -> list[tuple[Shard, Array]]:
        shards = self._checkpoint.shards(self.name)
        shapes = [one.extent if one.run is None else (one.run[1] - one.run[0],) for one in shards]
        return list(zip(shards, arrays_of(mapped, self.dtype_name, self.itemsize, shapes), strict=True))

    def tobytes(self, box: Index = ...) -> bytearray:
        """The bytes of the tensor, or of a box of it, in row-major order. Needs no numpy."""
        selection = select(box, self.shape)
        count = self.itemsize
        for extent in selection.extent:
            count *= extent
        out = bytearray(count)
        self._read_into(selection, out)
        return out

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        if copy is False:
            raise ValueError("a stored tensor has no memory to share: copy=False cannot be kept")
        array = self._read_new(whole(self.shape))
        return array if dtype is None else array.astype(dtype, copy=False)

    def __dlpack__(
        self, *, stream: Any = None, max_version: tuple[int, int] | None = None, dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """The tensor for any library that takes arrays by DLPack, such as ``torch.from_dlpack``; needs no numpy.

        Args:
            copy: None or True: read into new memory, which the consumer has alone. False: the stored bytes, as by ``map``,
                which the consumer keeps mapped and may not write; some, torch among them, do not heed that, and writing ends
                the process (SIGSEGV).

        Errors: those of ``read`` or ``map``; BufferError (another device; ``copy=False`` for a consumer that cannot be told
        that it may not write).
        """
        request = _dlpack.request_of(stream, max_version, dl_device, copy)
        shape = list(self.shape)
        if request.copy is not False:
            memory = mmap.mmap(-1, self.nbytes) if self.nbytes else bytearray()
            self._read_into(whole(self.shape), memory)
            return _dlpack.capsule(request, memory, self.dtype_name, shape=shape, is_copied=True)
        if self.size == 0:
            return _dlpack.capsule(request, bytearray(), self.dtype_name, shape=shape)
        mapped = self._mapped(None)
        address, size = self._only(mapped.shards)
        view = _sealpoint.MemoryView(address, size)
        return _dlpack.capsule(request, view, self.dtype_name, shape=shape, owner=mapped, is_read_only=True)

    def __dlpack_device__(self) -> tuple[int, int]:
        return _dlpack.HOST

    def __reduce__(self) -> tuple[Any, ...]:
        return operator.getitem, (self._checkpoint, self.name)

    def __repr__(self) -> str:
        return f"<sealpoint.Tensor {self.name!r}: {self.dtype_name} {list(self.shape)}, {self.nbytes} bytes>"

    def _read_new(self, selection: Selection, threads: int | None = None) -> Any:
        dtype = numpy_dtype(self.dtype_name)
        shape = selection.shape
        try:
            array = aligned_array((*shape, self.itemsize), "uint8") if dtype is None else aligned_array(shape, dtype)
        except ValueError as error:  # the product of extents is too large for it, though one of them is 0
            raise LimitExceededError(f"numpy has no array of shape {list(shape)}: {error}", tensor=self.name) from None
        self._read_into(selection, array, threads=threads)
        return array if dtype is None else with_dlpack(array)

    def _read_into(
        self, selection: Selection, out: Any, threads: int | None = None, convert: Rounding | None = None
    ) -> None:
        self._checkpoint._read([_part_of(self.name, selection, out)], threads=threads, convert=convert)


def _part_of(name: str, selection: Selection, out: Any) -> _sealpoint.ReadPart:
    return _sealpoint.ReadPart(name, out, _sealpoint.Region(selection.offset, selection.extent), selection.kept)


class Objects(Mapping[str, bytes]):
    """The objects of a checkpoint: names to bytes, read and verified when they are asked for."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self._checkpoint = checkpoint

    def __getitem__(self, name: str) -> bytes:
        check(name=name)
        return self._checkpoint._handle.read_object(name)

    def __iter__(self) -> Iterator[str]:
        handle = self._checkpoint._handle
        return (handle.object_at(i).name for i in range(handle.object_count))

    def __len__(self) -> int:
        return self._checkpoint._handle.object_count

    def __contains__(self, name: object) -> bool:
        return is_text(name) and self._checkpoint._handle.has_object(str(name))

    def media_type(self, name: str) -> str:
        """What the object's writer said of it. Errors: NotFoundError."""
        check(name=name)
        return self._checkpoint._handle.object(name).media_type

    def size_bytes(self, name: str) -> int:
        """Its length, without reading it. Errors: NotFoundError."""
        check(name=name)
        return self._checkpoint._handle.object(name).size_bytes

    def __reduce__(self) -> tuple[Any, ...]:
        return Objects, (self._checkpoint,)

    def __repr__(self) -> str:
        return f"<sealpoint.Objects: {len(self)} of {self._checkpoint.path!r}>"


class Checkpoint(Mapping[str, Tensor]):
    """A committed checkpoint, open for reading: a mapping of names, in order, to lazy tensors.

    Marker and index are verified when it is opened; payload when it is read. It reads what was committed, whatever
    happens to the directory's name. A context manager; ``close`` and the end of its life close its files. Thread
    safety: any calls from any threads. A process that is forked may go on reading from it. Pickled, for a worker that is
    spawned say, it is opened again by its path; if another checkpoint is there then, that is a MismatchError.
    """

    def __init__(self, handle: _sealpoint.Checkpoint, threads: int) -> None:
        self._handle = handle
        self._threads = threads
        self._folder = ""  # in which a path that is not absolute is found
        with contextlib.suppress(OSError):
            self._folder = os.getcwd()

    # The mapping.

    def __getitem__(self, name: str) -> Tensor:
        """Errors: NotFoundError, which is a KeyError, and names the most similar tensor."""
        check(name=name)
        try:
            return Tensor(self, self._handle.tensor(name))
        except NotFoundError as error:
            if found := nearest(name, list(self)):
                error.message += f"; the nearest is {found}"
            raise

    def get(self, key: str, default: Any = None) -> Any:
        """As of any mapping; looks for no similar name."""
        return self[key] if key in self else default

    def __iter__(self) -> Iterator[str]:
        handle = self._handle
        return (handle.tensor_name(i) for i in range(handle.tensor_count))

    def __len__(self) -> int:
        return self._handle.tensor_count

    def __contains__(self, name: object) -> bool:
        return is_text(name) and self._handle.has_tensor(str(name))

    def find(self, *patterns: str) -> list[Tensor]:
        """The tensors whose names match a pattern as a whole: ``*`` any characters, also dots; ``?`` one.

        Errors: NotFoundError (a pattern that matches nothing).
        """
        check(patterns=patterns)
        return [Tensor(self, info) for info in self._handle.match(list(patterns))]

    # Many tensors at once.

    def read(
        self,
        requests: Mapping[str, Any] | Iterable[tuple[str, Any, Any]],
        *,
        threads: int | None = None,
        missing: OnMismatch = "error",
        unexpected: OnMismatch = "allow",
        coverage: OnMismatch = "allow",
        convert: Rounding | None = None,
        isolate: bool = False,
        progress: Progress = None,
    ) -> _sealpoint.LoadReport:
        """Reads many tensors, planned together: neighbours are fetched by one request, each chunk once.

        Args:
            requests: ``{name: out}``, or (name, box, out) for parts; ``out`` and box as for ``Tensor.read``.
                Destinations must not share a byte.
            threads: that read and verify; None: those of the checkpoint.
            missing: what follows if a name is not stored. "report" and "allow" leave its ``out`` as it is.
            unexpected: what follows if a stored tensor is not asked for.
            coverage: what follows if the parts of a tensor leave some of it out.
            convert: as for ``Tensor.read``.
            isolate: nothing is written to ``out`` that was not verified before. Off: after an error the content
                is not specified.
            progress: True: a line on stderr, if it is a terminal or a notebook; or a function (what, bytes done, bytes in
                all), called now and then on any thread. An exception of it ends the read, and goes on from here.

        Errors: MismatchError (the first three), and those of ``Tensor.read``.
        """
        check(missing=missing, unexpected=unexpected, coverage=coverage, isolate=isolate)
        items = requests if type(requests) is dict else self._items(requests)
        contract = _sealpoint.LoadContract(missing=missing, unexpected=unexpected, coverage=coverage)
        return self._read(items, contract, threads, convert, isolate, progress)

    def plan(self, requests: Iterable[str] | Mapping[str, Any] | None = None) -> Plan:
        """What a read costs, before a byte is read: bytes, files, requests. Chunk records are read for it.

        Args:
            requests: names, or ``{name: box}``; None: everything.
        """
        names = self if requests is None else listed("requests", requests) if not isinstance(requests, Mapping) else requests
        boxes = names if isinstance(names, Mapping) and names is not self else {}
        items = [self._item(name, boxes.get(name, ...), None) for name in names]
        return Plan(*_sealpoint.plan(self._handle, items, _sealpoint.LoadContract()))

    def _items(self, requests: Mapping[str, Any] | Iterable[tuple[str, Any, Any]]) -> Any:
        if isinstance(requests, Mapping):
            return dict(requests)
        items = listed("requests", requests)
        if not all(isinstance(item, Sequence) and len(item) == 3 for item in items):
            raise ArgumentTypeError("requests has an item of another form, expected (name, box, out)")
        return [self._item(*item) for item in items]

    def _item(self, name: str, box: Any, out: Any) -> _sealpoint.ReadPart:
        check(name=name)
        if box is Ellipsis or not self._handle.has_tensor(name):
            return _sealpoint.ReadPart(name, out)
        selection = select(box, self._handle.tensor(name).shape)
        if any(step != 1 for step in selection.steps):
            raise ValueError(f"the box of {name!r} has steps, expected none")
        return _part_of(name, selection, out)

    def _threads_of(self, threads: int | None) -> int:
        return self._threads if threads is None else load_threads(threads)

    def _read(
        self,
        items: Any,
        contract: _sealpoint.LoadContract | None = None,
        threads: int | None = None,
        convert: Rounding | None = None,
        isolate: bool = False,
        progress: Progress = None,
    ) -> _sealpoint.LoadReport:
        count = self._threads_of(threads)
        check(convert=convert, progress=progress)
        rules = contract or _sealpoint.LoadContract()
        return _sealpoint.read(self._handle, items, rules, convert, count, isolate, progress)

    # What else the index says.

    @property
    def objects(self) -> Objects:
        """Named byte strings, such as the state of random generators."""
        return Objects(self)

    @property
    def path(self) -> str:
        return self._handle.path

    @property
    def absolute_path(self) -> str:
        """The same directory, wherever the process works by now."""
        return os.path.join(self._folder, self.path) if _paths.is_local(self.path) else self.path

    @property
    def step(self) -> int | None:
        """The training step, or None for a checkpoint that belongs to none."""
        return self._handle.step

    @property
    def sequence(self) -> int:
        """Its place in its series: its parent's plus 1."""
        return self._handle.sequence

    @property
    def attempt(self) -> str:
        """Its id, 32 hexadecimal digits."""
        return self._handle.attempt

    @property
    def parent(self) -> str | None:
        """The id of the checkpoint before it, or None."""
        return self._handle.parent

    @property
    def created(self) -> datetime:
        """When its writer made the index, by that machine's clock; in UTC."""
        return datetime.fromtimestamp(self._handle.created_unix_ns / 1e9, UTC)

    @property
    def provenance(self) -> dict[str, str]:
        return dict(self._handle.provenance)

    @property
    def mesh(self) -> dict[str, int]:
        """Names and sizes of the axes of the mesh of its writers, outermost first."""
        return dict(self._handle.mesh)

    @property
    def blobs(self) -> list[Blob]:
        return [Blob(*blob) for blob in self._handle.blobs]

    @property
    def raw_bytes(self) -> int:
        """Size of tensors and objects."""
        return self._handle.raw_bytes

    def shards(self, name: str) -> list[Shard]:
        """The parts of a tensor as stored. Errors: NotFoundError."""
        check(name=name)
        return [Shard(*shard) for shard in self._handle.shards(name)]

    def chunks(self, name: str) -> Chunks:
        """Stored size and codecs of a tensor. Reads its chunk records. Errors: NotFoundError."""
        check(name=name)
        chunk_count, raw_bytes, stored_bytes, codecs = self._handle.chunks(name)
        return Chunks(chunk_count, raw_bytes, stored_bytes, dict(codecs))

    def close(self) -> None:
        """Closes its files; a read that is under way ends first. May be called twice."""
        self._handle.close()

    def __enter__(self) -> Checkpoint:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        return _open_again, (self.absolute_path, self.attempt, self._handle.options, self._threads)

    # A mapping compares its values, which would read them all.
    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        try:
            step = "" if self.step is None else f" step {self.step},"
            return f"<sealpoint.Checkpoint {self.path!r}:{step} {len(self)} tensors, {self.raw_bytes} bytes>"
        except InvalidArgumentError:
            return "<sealpoint.Checkpoint, closed>"


def _open_again(path: str, attempt: str, options: tuple[bool, bool, int, int], threads: int) -> Checkpoint:
    """What was pickled. Errors: those of ``open``; MismatchError."""
    again = Checkpoint(_sealpoint.open(path, *options), threads)
    if again.attempt != attempt:
        raise MismatchError(f"attempt is {again.attempt}, expected {attempt}: another checkpoint is there now", path=path)
    return again


def open(
    path: Path,
    *,
    check_files: bool = True,
    direct_io: bool = False,
    threads: int | None = None,
    memory_budget_bytes: int = 256 << 20,
    raise_limits: int = 1,
) -> Checkpoint:
    """Opens a checkpoint for reading. Verifies its marker and its index, and reads no payload.

    Args:
        path: its directory. A ``~`` is expanded; Or a URL: see ``sealpoint.storage``.
        check_files: stat every blob, so that an incomplete copy is found here.
        direct_io: read payload past the page cache, if the file system can.
        threads: that read and verify, unless a read says otherwise, 1 to 1024; None: the processors that this process may
            use, divided by the ranks of its host that share them, 16 at most.
        memory_budget_bytes: bound on staging memory of a read; at least 64 KiB and a chunk per thread.
        raise_limits: the checkpoint may have so many times as much as the limits of a reader allow (tensors, shards, boxes of
            a tensor, bytes of the index), 1 to 1,000,000. For checkpoints that you trust and that are LimitExceededError.

    Errors: InvalidArgumentError, NotFoundError, NotACheckpointError, UncommittedError, IncompleteError, CorruptError,
    UnsupportedError (also: a URL of an unknown scheme), LimitExceededError, IoError, MismatchError (files of a checkpoint of
    torch.distributed.checkpoint or Megatron are in the directory, too).
    """
    return open_own(path, check_files=check_files, direct_io=direct_io, threads=threads,
                    memory_budget_bytes=memory_budget_bytes, raise_limits=raise_limits, must_be_alone=True)  # fmt: skip


def open_own(
    path: Path,
    *,
    check_files: bool = True,
    direct_io: bool = False,
    threads: int | None = None,
    memory_budget_bytes: int = 256 << 20,
    raise_limits: int = 1,
    must_be_alone: bool = False,
) -> Checkpoint:
    """The same, whatever else is in the directory, unless it must be alone there."""
    check(check_files=check_files, direct_io=direct_io, memory_budget_bytes=memory_budget_bytes, raise_limits=raise_limits)
    count = load_threads(threads)
    if must_be_alone:
        with contextlib.suppress(OSError):  # a directory that cannot be listed may have files that can be opened
            check_one(path_of(path))
    try:
        handle = _sealpoint.open(path_of(path), check_files, direct_io, memory_budget_bytes, raise_limits)
    except LimitExceededError as error:
        error.message += f"; raise_limits={2 * raise_limits} lets it be twice as large, for a checkpoint that you trust"
        raise
    return Checkpoint(handle, count)
