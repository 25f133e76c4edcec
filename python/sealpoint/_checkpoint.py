# SPDX-License-Identifier: Apache-2.0
"""Opening and reading checkpoints."""

from __future__ import annotations

import contextlib
import mmap
import operator
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from types import EllipsisType, TracebackType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar, overload

from sealpoint import _dlpack, _paths, _sealpoint
from sealpoint._arguments import Attribute, check, listed, path_of, threads_of
from sealpoint._arguments import Path as Path
from sealpoint._dtypes import numpy, numpy_dtype
from sealpoint._errors import (
    ArgumentTypeError,
    InvalidArgumentError,
    LimitExceededError,
    MismatchError,
    NotFoundError,
    UnsupportedError,
)
from sealpoint._group import Group, group_of
from sealpoint._hints import nearest
from sealpoint._index import Selection, select, whole
from sealpoint._mapped import HostCopy, aligned_array, arrays_of, with_dlpack
from sealpoint._native import check_one
from sealpoint._rules import is_text, may_be_parent

Progress = bool | Callable[[str, int, int], None] | None
OnMismatch = Literal["error", "report", "allow"]
Rounding = Literal["exact", "nearest"]
Conversion = Literal["widen", "exact", "nearest"]

if TYPE_CHECKING:
    from sealpoint._dtypes import Array

    # An integer, a slice, "...", or a tuple of these.
    Index = int | slice | EllipsisType | tuple[int | slice | EllipsisType, ...]

_Out = TypeVar("_Out")


class Shard(NamedTuple):
    """One stored part of a tensor: a box (in elements per dimension), or a range of the row-major elements of a box."""

    offset: tuple[int, ...]
    extent: tuple[int, ...]
    run: tuple[int, int] | None
    blob: str


class Chunks(NamedTuple):
    """Stored form of a tensor. ``codecs`` maps each codec to the number of chunks that use it."""

    chunk_count: int
    raw_bytes: int
    stored_bytes: int
    codecs: dict[str, int]


class Blob(NamedTuple):
    """A payload file of a checkpoint."""

    id: str
    file_size_bytes: int
    chunk_count: int


class Plan(NamedTuple):
    """Predicted cost of a read. ``text`` describes the cost, with one line per file."""

    summary: _sealpoint.PlanSummary
    text: str
    findings: list[tuple[str, str, str]]

    def __str__(self) -> str:
        return self.text


class Tensor:
    """A stored tensor. Indexing the tensor reads elements: ``t[0:4, :]`` reads only the first four rows.

    Use ``checkpoint[name]`` to get a Tensor. Every read verifies the chunks that it reads. Thread-safe. No method is collective.
    """

    __slots__ = ("_checkpoint", "_info", "shape")

    def __init__(self, checkpoint: Checkpoint, info: _sealpoint.TensorInfo) -> None:
        self._checkpoint = checkpoint
        self._info = info
        self.shape: tuple[int, ...] = info.shape

    @property
    def name(self) -> str:
        """Name in the checkpoint."""
        return self._info.name

    @property
    def dtype(self) -> Any:
        """The numpy dtype, or ``dtype_name`` if neither numpy nor ml_dtypes has the dtype."""
        found = numpy_dtype(self._info.dtype)
        return self._info.dtype if found is None else found

    @property
    def dtype_name(self) -> str:
        """Name of the dtype in the specification, such as "bf16"."""
        return self._info.dtype

    @property
    def itemsize(self) -> int:
        """Size of one element in bytes."""
        return self._info.element_size

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return self._info.raw_bytes // self._info.element_size

    @property
    def nbytes(self) -> int:
        """Size of all elements in bytes, before encoding."""
        return self._info.raw_bytes

    @property
    def chunk_size_bytes(self) -> int:
        """Chunk size in bytes. Each chunk is digested and compressed separately."""
        return self._info.chunk_size_bytes

    @property
    def fingerprint(self) -> _sealpoint.Fingerprint | None:
        """Fingerprint that the writer stored, or None; see ``sealpoint.fingerprint``."""
        return self._info.fingerprint

    @property
    def attributes(self) -> dict[str, Attribute]:
        """Named values that the writer stored, such as {"units": "K", "dimensions": ["lat", "lon"]}."""
        return self._info.attributes

    @property
    def placement(self) -> list[str]:
        """Placement of the tensor on the writers' mesh, if the writers recorded it."""
        return self._info.placement

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a tensor without dimensions")
        return self.shape[0]

    def __bool__(self) -> bool:
        raise TypeError("the truth of a tensor is ambiguous; read it, or use its size")

    def __getitem__(self, index: Index) -> Array:
        """Reads a part of the tensor and returns an array or a numpy scalar. Integers, slices and ``...`` work as in numpy.

        Steps must be positive. Only chunks that contain selected elements are read. If neither numpy nor ml_dtypes has the dtype,
        the result is a uint8 array with an additional last axis of length ``itemsize``. If every dimension is indexed by an
        integer, the result is a numpy scalar, although the annotated type is an array.

        Raises:
            IndexError: an index is out of range.
            TypeError: the index is not an integer, a slice or ``...``.
            Error: as for ``read``.
        """
        selection = select(index, self.shape)
        array = self._read_new(selection)
        is_scalar = not any(selection.kept) and index is not Ellipsis and index != (Ellipsis,)
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
        """Reads the tensor, or a box of the tensor, into ``out`` and returns ``out``.

        Args:
            out: Writable numpy array, or an object that supports the buffer protocol or ``__dlpack__``. It must have the shape of
                the box and the dtype of the tensor. Any strides are allowed. A uint8 array may be flat, or may have the shape of
                the box plus a last axis of length ``itemsize``. Default: a new array.
            box: Index as for ``t[...]``, such as ``numpy.s_[::2, 3:10]``. Dimensions indexed by an integer are absent from ``out``.
            threads: Number of threads that read and verify. Default: the setting of the checkpoint.
            convert: If "exact" or "nearest", converts the elements to the dtype of ``out``. By default, the dtypes must be equal.

        Returns:
            ``out``, or a new array if ``out`` is None. The result is an array even for a single element.

        Raises:
            InvalidArgumentError: wrong dtype, shape or strides, or read-only memory. The error names the tensor. Nothing was read.
            CorruptError: a digest does not match.
            IncompleteError: a file is missing or too short.
            IoError: the storage failed.

        After an error the content of ``out`` is unspecified.
        """
        selection = select(box, self.shape)
        if out is None:
            if convert is not None:
                raise ValueError("convert needs out, because it converts to the dtype of out")
            return self._read_new(selection, threads=threads)
        self._read_into(selection, out, threads=threads, convert=convert)
        return out

    def map(self, *, threads: int | None = None) -> Array:
        """Reads and verifies all stored bytes of the tensor, and maps them as a read-only array without a copy.

        The tensor must be stored in one shard and without compression. For several shards, use ``read`` or ``map_shards``. The
        mapping stays valid after the checkpoint is closed or deleted. The mapping is not protected from other programs. If a
        program overwrites the blob in place, the array shows the new bytes. If a program truncates the blob, the next access kills
        this process (SIGBUS). This library never modifies a blob. Use ``host_copy`` if other programs might modify the blob. If the
        blob is already too short at the time of the call, the call raises an error (Linux 5.14 or later).

        Args:
            threads: Number of threads that read and verify. Default: the setting of the checkpoint.

        Raises:
            UnsupportedError: the tensor has a codec or several shards, or is in an object store.
            CorruptError: a digest does not match.
            IncompleteError: a file is missing or too short.
            IoError: the storage failed.
        """
        if self.size == 0:
            return self._read_new(whole(self.shape))  # type: ignore[no-any-return]
        return self._one_of(self._mapped(threads))

    def map_shards(self, *, threads: int | None = None) -> list[tuple[Shard, Array]]:
        """Returns each shard with its mapped array, in stored order. If a shard is a run, its array is one-dimensional.

        Arguments and errors are as for ``map``, except that the tensor may have several shards.
        """
        return self._shards_of(self._mapped(threads))

    def host_copy(self, *, threads: int | None = None) -> HostCopy:
        """Reads and verifies the tensor once, and copies it into sealed memory (memfd).

        No process can change the copy, and the processes of this host can share it via ``map_host_copy``. This method supports
        every codec, and checkpoints in object stores. Returns a HostCopy, which owns the memory. ``threads`` is as for ``map``.

        Raises:
            Error: as for ``map``.
        """
        mapped = self._mapped(threads, host_copy=True)
        return HostCopy(mapped, self._one_of(mapped))

    def map_host_copy(self, path: Path) -> Array:
        """Returns a read-only array that shares the memory of a ``host_copy`` made by a different process.

        Does not verify the data again.

        Args:
            path: ``HostCopy.path`` in the process that made the copy.

        Raises:
            InvalidArgumentError: the memory is not sealed, or its size differs from the size of the tensor.
            OSError: the path cannot be opened.
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
        shapes = [shard.extent if shard.run is None else (shard.run[1] - shard.run[0],) for shard in shards]
        return list(zip(shards, arrays_of(mapped, self.dtype_name, self.itemsize, shapes), strict=True))

    def tobytes(self, box: Index = ...) -> bytearray:
        """Returns the bytes of the tensor, or of a box, in row-major order. Does not need numpy. Raises the errors of ``read``."""
        selection = select(box, self.shape)
        count = self.itemsize
        for n in selection.counts:
            count *= n
        out = bytearray(count)
        self._read_into(selection, out)
        return out

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        if copy is False:
            raise ValueError("a stored tensor has no memory to share: copy=False is not supported")
        array = self._read_new(whole(self.shape))
        return array if dtype is None else array.astype(dtype, copy=False)

    def __dlpack__(
        self, *, stream: Any = None, max_version: tuple[int, int] | None = None, dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """Exports the tensor via DLPack, for example to ``torch.from_dlpack``. Does not need numpy.

        Args:
            copy: None or True reads into new memory, which the consumer owns. False maps the stored bytes, as ``map`` does. The
                mapping exists as long as the consumer needs it. The consumer must not write to the mapping. Some consumers,
                including torch, ignore the read-only flag; if they write, the process is killed (SIGSEGV).

        Raises:
            Error: as for ``read`` or ``map``.
            BufferError: the consumer requested a device other than the CPU, or requested ``copy=False`` but does not support
                read-only memory.
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
        except ValueError as error:  # numpy limits the product of the extents, even if one extent is 0
            raise LimitExceededError(f"numpy has no array of shape {list(shape)}: {error}", tensor=self.name) from None
        self._read_into(selection, array, threads=threads)
        return array if dtype is None else with_dlpack(array)

    def _read_into(
        self, selection: Selection, out: Any, threads: int | None = None, convert: Rounding | None = None
    ) -> None:
        self._checkpoint._read([_part_of(self.name, selection, out)], threads=threads, convert=convert)


def _part_of(name: str, selection: Selection, out: Any) -> _sealpoint.ReadPart:
    steps = selection.steps if any(step != 1 for step in selection.steps) else None
    return _sealpoint.ReadPart(name, out, _sealpoint.Region(selection.offset, selection.extent), selection.kept, steps)


def read_run(tensor: Tensor, begin: int, end: int, out: Any) -> None:
    """Reads the row-major elements from ``begin`` to ``end`` into the bytes ``out``. Raises the errors of ``Tensor.read``."""
    region = _sealpoint.Region([0] * tensor.ndim, tensor.shape, (begin, end))
    tensor._checkpoint._read([_sealpoint.ReadPart(tensor.name, out, region)])


class Objects(Mapping[str, bytes]):
    """The objects of a checkpoint: a mapping from names to bytes. Each object is read and verified when it is accessed."""

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
        """Returns the media type that the writer chose for the object ``name``. Raises NotFoundError."""
        check(name=name)
        return self._checkpoint._handle.object(name).media_type

    def size_bytes(self, name: str) -> int:
        """Returns the length of the object ``name`` in bytes, without reading the object. Raises NotFoundError."""
        check(name=name)
        return self._checkpoint._handle.object(name).size_bytes

    def __reduce__(self) -> tuple[Any, ...]:
        return Objects, (self._checkpoint,)

    def __repr__(self) -> str:
        return f"<sealpoint.Objects: {len(self)} of {self._checkpoint.path!r}>"


@may_be_parent
class Checkpoint(Mapping[str, Tensor]):
    """A committed checkpoint that is open for reading: an ordered mapping from names to lazy tensors.

    Opening verifies the marker and the index; reads verify the payload. The object keeps reading the same directory if it is
    renamed. If the directory is deleted, reads raise IncompleteError. The object is a context manager. ``close`` and garbage
    collection close the files. Thread-safe; no method is collective. A forked child may continue to read from the object.
    Unpickling the object, for example in a spawned worker, opens the path again. If the path now contains a different checkpoint,
    unpickling raises MismatchError.

    Examples:
        >>> import numpy, sealpoint
        >>> _ = sealpoint.save({"w": numpy.arange(6.0).reshape(2, 3)}, "checkpoint", step=1)
        >>> with sealpoint.open("checkpoint") as checkpoint:
        ...     print(checkpoint.step, list(checkpoint), checkpoint["w"].shape)
        ...     print(checkpoint["w"][:, 1])  # reads only the chunks that contain the column
        1 ['w'] (2, 3)
        [1. 4.]
    """

    def __init__(self, handle: _sealpoint.Checkpoint, threads: int) -> None:
        self._handle = handle
        self._threads = threads
        self._folder = ""  # folder to which a relative path refers
        with contextlib.suppress(OSError):
            self._folder = os.getcwd()

    # Methods of a mapping.

    def __getitem__(self, name: str) -> Tensor:
        """Returns a lazy tensor.

        If the name is not stored, raises NotFoundError (a KeyError), which suggests the most similar name.
        """
        check(name=name)
        try:
            return Tensor(self, self._handle.tensor(name))
        except NotFoundError as error:
            if found := nearest(name, list(self)):
                error.message += f"; the nearest is {found}"
            raise

    def get(self, key: str, default: Any = None) -> Any:
        """Returns the tensor ``key``, or ``default`` if the name is not stored.

        Does not search for similar names. Raises nothing.
        """
        return self[key] if key in self else default

    def __iter__(self) -> Iterator[str]:
        handle = self._handle
        return (handle.tensor_name(i) for i in range(handle.tensor_count))

    def __len__(self) -> int:
        return self._handle.tensor_count

    def __contains__(self, name: object) -> bool:
        return is_text(name) and self._handle.has_tensor(str(name))

    def find(self, *patterns: str) -> list[Tensor]:
        """Returns the tensors with names that match a pattern.

        ``*`` matches any characters including dots; ``?`` matches one character.

        Raises NotFoundError if a pattern matches nothing.
        """
        check(patterns=patterns)
        return [Tensor(self, info) for info in self._handle.match(list(patterns))]

    def group(self, name: str = "", *, separator: str = "/") -> Group:
        """Returns the tensors whose names begin with ``name`` and a separator, for walking as in h5py.

        Args:
            name: Name of the group, such as "a/b". Default: the group of all tensors.
            separator: Text between the parts of a name. The states of ``sealpoint.torch`` have ".".

        Returns:
            A Group, which is a mapping from the next part of the name to a Group or a Tensor.

        Raises:
            InvalidArgumentError: an argument is invalid.
            NotFoundError: no name begins so.

        Examples:
            >>> import numpy, sealpoint
            >>> _ = sealpoint.save({"fields/rho": numpy.ones(4), "fields/v/x": numpy.zeros(4)}, "checkpoint")
            >>> fields = sealpoint.open("checkpoint").group("fields")
            >>> list(fields), fields["v/x"][:2]
            (['rho', 'v'], array([0., 0.]))
        """
        return group_of(self, name, separator)

    # Reads of several tensors.

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
        holds_base: bool = False,
        progress: Progress = None,
    ) -> _sealpoint.LoadReport:
        """Reads many tensors together: adjacent byte ranges are read with one request, and each chunk is read only once.

        Args:
            requests: ``{name: out}``, or (name, box, out) tuples to read parts of tensors. ``out`` and ``box`` are as for
                ``Tensor.read``. Destinations must not overlap.
            threads: Number of threads that read and verify. Default: the setting of the checkpoint.
            missing: Action if a requested name is not stored. "report" and "allow" leave the destination unchanged.
            unexpected: Action if a stored tensor is not requested.
            coverage: Action if the requested parts of a tensor do not cover the whole tensor.
            convert: As for ``Tensor.read``.
            isolate: Write to ``out`` only after verification. If False, the content of ``out`` is unspecified after an
                error.
            holds_base: Each ``out`` has the data of the checkpoint's base for the same part: change it in place. Chunks that
                are stored as changes, and belong to one contiguous ``out``, are not read from the base. Every chunk is verified
                after the change.
            progress: True: show a progress line in a notebook, or if stderr is a terminal. A function is called from time to time,
                on any thread, with (text, bytes done, total bytes). If the function raises an exception, the read is cancelled and
                the exception propagates.

        Returns:
            A LoadReport with the number of bytes, the number of requests, and the mismatches with the action "report".

        Raises:
            MismatchError: a mismatch whose action is "error".
            Error: as for ``Tensor.read``.
        """
        check(missing=missing, unexpected=unexpected, coverage=coverage, isolate=isolate, holds_base=holds_base)
        items = requests if type(requests) is dict else self._items(requests)
        contract = _sealpoint.LoadContract(missing=missing, unexpected=unexpected, coverage=coverage)
        return self._read(items, contract, threads, convert, isolate, progress, holds_base)

    def plan(self, requests: Iterable[str] | Mapping[str, Any] | None = None) -> Plan:
        """Computes the cost of a read (bytes, files and requests) from the chunk records. Reads no payload.

        Args:
            requests: Names, or ``{name: box}``. Default: all tensors.

        Returns:
            A Plan.

        Raises:
            NotFoundError: a name is not stored.
            Error: as for ``Tensor.read``.
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
            raise ArgumentTypeError("requests has a malformed item, expected (name, box, out)")
        return [self._item(*item) for item in items]

    def _item(self, name: str, box: Any, out: Any) -> _sealpoint.ReadPart:
        check(name=name)
        if box is Ellipsis or not self._handle.has_tensor(name):
            return _sealpoint.ReadPart(name, out)
        return _part_of(name, select(box, self._handle.tensor(name).shape), out)

    def _threads_of(self, threads: int | None) -> int:
        return self._threads if threads is None else threads_of(threads)

    def _read(
        self,
        items: Any,
        contract: _sealpoint.LoadContract | None = None,
        threads: int | None = None,
        convert: Rounding | None = None,
        isolate: bool = False,
        progress: Progress = None,
        holds_base: bool = False,
    ) -> _sealpoint.LoadReport:
        count = self._threads_of(threads)
        check(convert=convert, progress=progress)
        rules = contract or _sealpoint.LoadContract()
        return _sealpoint.read(self._handle, items, rules, convert, count, isolate, progress, holds_base)

    # Further content of the index.

    @property
    def objects(self) -> Objects:
        """Named byte strings, such as the state of random generators."""
        return Objects(self)

    @property
    def path(self) -> str:
        """Directory or URL, as passed to ``open``."""
        return self._handle.path

    @property
    def absolute_path(self) -> str:
        """The absolute path of the directory, independent of the current working directory."""
        return os.path.join(self._folder, self.path) if _paths.is_local(self.path) else self.path

    @property
    def step(self) -> int | None:
        """The training step, or None if the writer recorded none."""
        return self._handle.step

    @property
    def sequence(self) -> int:
        """Position in the series: the sequence number of the parent plus 1."""
        return self._handle.sequence

    @property
    def attempt(self) -> str:
        """Id of the attempt, 32 hexadecimal digits."""
        return self._handle.attempt

    @property
    def parent(self) -> str | None:
        """Attempt id of the preceding checkpoint, or None if there is none."""
        return self._handle.parent

    @property
    def base(self) -> _sealpoint.BaseRef | None:
        """The base, if chunks are stored as changes to those of another checkpoint: ``attempt``, ``step`` and ``depth``."""
        return self._handle.base

    @property
    def created(self) -> datetime:
        """UTC time when the writer built the index, according to the writer's clock."""
        return datetime.fromtimestamp(self._handle.created_unix_ns / 1e9, UTC)

    @property
    def provenance(self) -> dict[str, str]:
        """Names and values that the writer recorded, such as "metric.loss"."""
        return dict(self._handle.provenance)

    @property
    def attributes(self) -> dict[str, Attribute]:
        """Attributes of the checkpoint, such as {"time": 0.5}. Each tensor has its own ``attributes``."""
        return self._handle.attributes

    @property
    def mesh(self) -> dict[str, int]:
        """Names and sizes of the axes of the writers' mesh, outermost first."""
        return dict(self._handle.mesh)

    @property
    def blobs(self) -> list[Blob]:
        """Blobs of the checkpoint, in the order of the index."""
        return [Blob(*blob) for blob in self._handle.blobs]

    @property
    def raw_bytes(self) -> int:
        """Total size of tensors and objects in bytes, before encoding."""
        return self._handle.raw_bytes

    def shards(self, name: str) -> list[Shard]:
        """Returns the stored parts of the tensor ``name``. Raises NotFoundError."""
        check(name=name)
        return [Shard(*shard) for shard in self._handle.shards(name)]

    def fingerprints(self, patterns: Sequence[str] = ()) -> dict[str, _sealpoint.Fingerprint]:
        """Returns the fingerprints of tensors; see ``sealpoint.fingerprint.of_checkpoint``.

        Args:
            patterns: Patterns of tensor names (``*`` matches any characters). Default: all tensors.

        Raises:
            NotFoundError: a pattern matches no tensor.
            CorruptError: a tensor has no stored fingerprint, and its bytes are damaged.
        """
        chosen = listed("patterns", patterns)
        check(patterns=chosen)
        infos = self._handle.match(chosen or ["*"])
        missing = [re.sub(r"[\\*?]", r"\\\g<0>", info.name) for info in infos if info.fingerprint is None]
        computed = dict(_sealpoint.content_fingerprints(self._handle, missing)) if missing else {}
        return {info.name: info.fingerprint or computed[info.name] for info in infos}

    def chunks(self, name: str) -> Chunks:
        """Returns the stored size and the codecs of the tensor ``name``, according to its chunk records.

        Raises NotFoundError if the tensor is not stored, and the errors of ``Tensor.read``.
        """
        check(name=name)
        chunk_count, raw_bytes, stored_bytes, codecs = self._handle.chunks(name)
        return Chunks(chunk_count, raw_bytes, stored_bytes, dict(codecs))

    def close(self) -> None:
        """Waits until running reads have ended, then closes the files. May be called more than once."""
        self._handle.close()

    def __enter__(self) -> Checkpoint:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        return _open_again, (self.absolute_path, self.attempt, self._handle.options, self._threads)

    # The inherited __eq__ compares values, and would read all tensors.
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


def _open_again(path: str, attempt: str, options: tuple[bool, bool, int, int, dict[str, str]], threads: int) -> Checkpoint:
    """Opens an unpickled checkpoint again.

    Raises MismatchError if the path now has a different checkpoint, and the errors of ``open``.
    """
    again = Checkpoint(_sealpoint.open(path, *options), threads)
    if again.attempt != attempt:
        raise MismatchError(f"attempt is {again.attempt}, expected {attempt}: the checkpoint was replaced", path=path)
    return again


def open(
    path: Path,
    *,
    check_files: bool = True,
    direct_io: bool | None = None,
    threads: int | None = None,
    memory_budget_bytes: int = 256 << 20,
    raise_limits: int = 1,
    base_paths: Mapping[str, Path] | None = None,
) -> Checkpoint:
    """Opens a checkpoint for reading. Verifies the marker and the index, but reads no payload. Not collective.

    Args:
        path: Directory (``~`` is expanded), or a URL (see ``sealpoint.storage``).
        check_files: Look up the size of every blob, to detect an incomplete copy immediately.
        direct_io: True: bypass the page cache when reading payload, if the file system supports this. False: read through
            the page cache. None: bypass the page cache for the parts of large reads that are not in it, unless other
            processes of the job on this host may read the same parts.
        threads: Default number of threads that read and verify, 1 to 1024. None: the number of CPUs available to this
            process, divided by the number of ranks on this host that share these CPUs, at most 16.
        memory_budget_bytes: Maximum staging memory of a read. At least 64 KiB and one chunk per thread.
        raise_limits: Factor from 1 to 1,000,000 by which the reader's limits (tensors, shards, boxes of a tensor, bytes
            of the index) are multiplied. Raise this factor only for trusted checkpoints that otherwise cause a
            LimitExceededError.
        base_paths: Directories of bases, by attempt, for a checkpoint that stores changes (``Checkpoint.base``). Default: in
            the same series.

    Returns:
        A Checkpoint, which keeps its files open until it is closed or garbage-collected.

    Raises:
        InvalidArgumentError: an argument is invalid.
        NotFoundError: the path does not exist.
        NotACheckpointError: the directory has no Sealpoint files.
        UncommittedError: the directory has no commit marker.
        IncompleteError: a file is missing or too short.
        CorruptError: the marker or the index is damaged.
        UnsupportedError: the format version or a feature is unknown, or the scheme of the URL is unknown.
        LimitExceededError: a reader limit is exceeded.
        IoError: the storage failed.
        MismatchError: the directory also contains checkpoint files of torch.distributed.checkpoint or Megatron.

    Examples:
        >>> import sealpoint
        >>> _ = sealpoint.save({"w": b"12"}, "checkpoint", objects={"args": b"{}"})
        >>> with sealpoint.open("checkpoint", threads=2) as checkpoint:
        ...     bytes(checkpoint.objects["args"])
        b'{}'
    """
    return open_own(path, check_files=check_files, direct_io=direct_io, threads=threads,
                    memory_budget_bytes=memory_budget_bytes, raise_limits=raise_limits, base_paths=base_paths,
                    must_be_alone=True)  # fmt: skip


def open_own(
    path: Path,
    *,
    check_files: bool = True,
    direct_io: bool | None = None,
    threads: int | None = None,
    memory_budget_bytes: int = 256 << 20,
    raise_limits: int = 1,
    base_paths: Mapping[str, Path] | None = None,
    must_be_alone: bool = False,
) -> Checkpoint:
    """Opens a checkpoint as ``open`` does.

    If ``must_be_alone`` is true, a checkpoint of a different format in the same directory is an error.
    """
    check(check_files=check_files, memory_budget_bytes=memory_budget_bytes, raise_limits=raise_limits, base_paths=base_paths)
    if direct_io is not None:
        check(direct_io=direct_io)
    count = threads_of(threads)
    if must_be_alone:
        with contextlib.suppress(OSError):  # a directory that cannot be listed may have files that can be opened
            check_one(path_of(path))
    try:
        bases = {attempt: path_of(base) for attempt, base in (base_paths or {}).items()}
        handle = _sealpoint.open(path_of(path), check_files, direct_io, memory_budget_bytes, raise_limits, bases)
    except LimitExceededError as error:
        error.message += f"; raise_limits={2 * raise_limits} doubles the limit, for a checkpoint that you trust"
        raise
    return Checkpoint(handle, count)
