# SPDX-License-Identifier: Apache-2.0
"""The common form of sources of all formats: tensors as boxes of file bytes, and a tree with all other values."""

from __future__ import annotations

import dataclasses
import math
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from sealpoint._arguments import Attribute
from sealpoint._dtypes import numpy
from sealpoint._errors import CorruptError, Error, LimitExceededError
from sealpoint._sealpoint import DeltaReader, Foreign
from sealpoint._tree import KIND, MEDIA_TYPE, Node, dump, rank_object
from sealpoint.interop import _boxes
from sealpoint.interop._boxes import Box, Extents
from sealpoint.interop._dtypes import ITEM_SIZE
from sealpoint.interop._files import File, FileSet

_BLOCK_BYTES = 4 << 20


class Reader(Protocol):
    """Reads one tensor. Not thread-safe. Reads are fastest if slabs are read in ascending order."""

    def read(self, box: Box, out: memoryview) -> None:
        """Fills ``out`` with the elements of the box in row-major order. Raises the errors of the source."""

    def finish(self) -> None:
        """Checks the digests of all bytes read, if the format has digests. Raises CorruptError."""


class Tensor(Protocol):
    """A tensor of a source. ``boxes`` are disjoint and cover the tensor; the elements of each box are contiguous."""

    @property
    def name(self) -> str: ...
    @property
    def dtype(self) -> str: ...
    @property
    def shape(self) -> Extents: ...
    @property
    def boxes(self) -> Sequence[Box]: ...
    @property
    def is_protected(self) -> bool:
        """Tells whether the bytes of the tensor are protected by a digest."""

    def reader(self, memory_bytes: int) -> Reader: ...


def size_of(tensor: Tensor) -> int:
    """Returns the size in bytes."""
    return math.prod(tensor.shape) * ITEM_SIZE[tensor.dtype]


def attributes_of(tensor: Tensor) -> dict[str, Attribute]:
    """Returns the attributes of a tensor. Tensors of most formats have none."""
    found: dict[str, Attribute] = getattr(tensor, "attributes", {})
    return found


class Entry(NamedTuple):
    """Contiguous bytes of a file. ``crc`` is their CRC-32, or None if the writer computed none."""

    name: str
    begin: int
    size: int
    crc: int | None


class Portion(NamedTuple):
    """A box of a tensor in a file. ``begin``: byte offset within the entry.

    ``strides`` are in elements; None means dense and row-major. If ``run`` is set, only these elements of the dense box are stored.
    ``sign_mask`` has the bits of each element that are flipped in the file, or is None.
    """

    box: Box
    file: File
    entry: Entry
    begin: int
    strides: Extents | None = None
    run: tuple[int, int] | None = None
    sign_mask: bytes | None = None


@dataclasses.dataclass(frozen=True, eq=False)
class FileTensor:
    """A tensor that is tiled by portions of files."""

    name: str
    dtype: str
    shape: Extents
    portions: Sequence[Portion]

    @property
    def boxes(self) -> Sequence[Box]:
        if any(portion.run for portion in self.portions):
            return [_boxes.whole(self.shape)]
        return [portion.box for portion in self.portions if portion.box.size > 0]

    @property
    def is_protected(self) -> bool:
        return all(portion.entry.crc is not None for portion in self.portions)

    def reader(self, memory_bytes: int) -> Reader:
        return _FileReader(self, memory_bytes)


class ForeignTensor:
    """A tensor of a foreign checkpoint, whose parts the library has located."""

    def __init__(
        self, name: str, dtype: str, shape: Extents, has_items: bool, foreign: Foreign, files: FileSet
    ) -> None:
        self.name, self.dtype, self.shape = name, dtype, shape
        self._has_items = has_items  # inspected on the first read
        self._foreign, self._files = foreign, files
        self._opened: FileTensor | None = None

    @property
    def boxes(self) -> Sequence[Box]:
        boxes = self._foreign.boxes(self.name)
        return [_boxes.whole(self.shape)] if boxes is None else [Box(*box) for box in boxes]

    @property
    def is_protected(self) -> bool:
        """Tells whether the items of the tensor have digests. Before the first read, this is unknown, and the result is True."""
        is_unknown = self._has_items and self._opened is None
        return is_unknown or self._foreign.has_deltas(self.name) or self._open().is_protected

    def reader(self, memory_bytes: int) -> Reader:
        """Returns a reader.

        Raises the errors of the items, and CorruptError if the content of an item differs from its description.
        """
        deltas = self._foreign.delta_reader(self.name, memory_bytes)
        return self._open().reader(memory_bytes) if deltas is None else _DeltaReader(self, deltas)

    def _open(self) -> FileTensor:
        if self._opened is None:
            portions = [self._portion(*part) for part in self._foreign.parts(self.name)]
            self._opened = FileTensor(self.name, self.dtype, self.shape, portions)
        return self._opened

    def _portion(
        self,
        box: tuple[Extents, Extents],
        path: str,
        entry: tuple[str, int, int, int | None],
        begin: int,
        strides: Extents | None,
        run: tuple[int, int] | None,
        flips_sign: bool,
    ) -> Portion:
        sign_mask = bytes(ITEM_SIZE[self.dtype] - 1) + b"\x80" if flips_sign else None
        return Portion(Box(*box), self._files.open(path), Entry(*entry), begin, strides, run, sign_mask)


class _DeltaReader:
    """Reads a tensor that deltas lead to."""

    def __init__(self, tensor: ForeignTensor, reader: DeltaReader) -> None:
        self._tensor, self._reader = tensor, reader
        self._item_size = ITEM_SIZE[tensor.dtype]

    def read(self, box: Box, out: memoryview) -> None:
        at = 0
        for begin, count in _boxes.runs(box, self._tensor.shape) if box.size > 0 else ():
            size = count * self._item_size
            self._reader.read_into(begin * self._item_size, out[at : at + size])
            at += size

    def finish(self) -> None:
        self._reader.finish()


class _Check:
    """Computes the CRC-32 of an entry whose parts are read in ascending order."""

    def __init__(self, file: File, entry: Entry) -> None:
        self._file, self._entry = file, entry
        self._at = self._crc = 0

    def add(self, begin: int, data: memoryview) -> None:
        if begin == self._at:
            self._crc = zlib.crc32(data, self._crc)
            self._at += len(data)

    def finish(self) -> None:
        """Also reads the bytes that were not requested, or not in order, unless an earlier check has compared them."""
        if self._at < self._entry.size:
            with self._file.verified_lock:
                if self._entry.begin not in self._file.verified:
                    self._read_rest()
                    self._compare()
                    self._file.verified.add(self._entry.begin)
        else:
            self._compare()

    def _read_rest(self) -> None:
        block = memoryview(bytearray(min(_BLOCK_BYTES, self._entry.size - self._at)))
        while self._at < self._entry.size:
            part = block[: self._entry.size - self._at]
            self._file.read_into(self._entry.begin + self._at, part)
            self.add(self._at, part)

    def _compare(self) -> None:
        if self._crc != self._entry.crc:
            message = f"CRC-32 of {self._entry.name!a} is {self._crc:08x}, expected {self._entry.crc or 0:08x}"
            raise CorruptError(message, path=self._file.path, offset=self._entry.begin)


class _FileReader:
    def __init__(self, tensor: FileTensor, memory_bytes: int) -> None:
        self._tensor, self._memory_bytes = tensor, memory_bytes
        self._item_size = ITEM_SIZE[tensor.dtype]
        self._checks: dict[tuple[str, int], _Check] = {}
        self._loaded: tuple[Portion, Any] | None = None

    def read(self, box: Box, out: memoryview) -> None:
        try:
            for portion in self._tensor.portions:
                shared = _boxes.common(box, portion.box)
                if shared is None:
                    continue
                if shared == box and portion.run is None:
                    return self._fill(portion, shared, out)
                if shared == box:
                    self._fill_run(portion, shared, out)
                    continue
                part = memoryview(bytearray(shared.size * self._item_size))
                target = self._array(out, box)[slices_of(_boxes.within(shared, box))]
                if portion.run is None:
                    self._fill(portion, shared, part)
                else:
                    self._array(part, shared)[...] = target
                    self._fill_run(portion, shared, part)
                target[...] = self._array(part, shared)
        except Error as error:
            error.tensor = error.tensor or self._tensor.name
            raise

    def finish(self) -> None:
        try:
            for check in self._checks.values():
                check.finish()
        except Error as error:
            error.tensor = self._tensor.name
            raise

    def _array(self, data: memoryview, box: Box) -> Any:
        return numpy().frombuffer(data, "u1").reshape(*box.extent, self._item_size)

    def _fill(self, portion: Portion, box: Box, out: memoryview) -> None:
        self._fill_stored(portion, box, out)
        if portion.sign_mask is not None:
            elements = numpy().frombuffer(out, "u1").reshape(-1, self._item_size)
            elements ^= numpy().frombuffer(portion.sign_mask, "u1")

    def _fill_stored(self, portion: Portion, box: Box, out: memoryview) -> None:
        local = _boxes.within(box, portion.box)
        if portion.strides is not None:
            self._array(out, box)[...] = self._load(portion)[slices_of(local)]
            return
        at = 0
        for begin, count in _boxes.runs(local, portion.box.extent):
            part = out[at : at + count * self._item_size]
            self._get(portion, portion.begin + begin * self._item_size, part)
            at += len(part)

    def _get(self, portion: Portion, begin: int, out: memoryview) -> None:
        """Reads bytes of the entry."""
        portion.file.read_into(portion.entry.begin + begin, out)
        if portion.entry.crc is not None:
            key = (portion.file.path, portion.entry.begin)
            if key not in self._checks:
                self._checks[key] = _Check(portion.file, portion.entry)
            self._checks[key].add(begin, out)

    def _fill_run(self, portion: Portion, box: Box, out: memoryview) -> None:
        """Reads the elements of the box that the run contains. All others keep their bytes."""
        assert portion.run is not None
        at = 0
        for first, count in _boxes.runs(_boxes.within(box, portion.box), portion.box.extent):
            begin, end = max(first, portion.run[0]), min(first + count, portion.run[1])
            if begin < end:
                place = (at + begin - first) * self._item_size
                data = out[place : place + (end - begin) * self._item_size]
                self._get(portion, portion.begin + (begin - portion.run[0]) * self._item_size, data)
            at += count

    def _load(self, portion: Portion) -> Any:
        """Loads a box whose elements are not in row-major order in the file.

        Reads all bytes from the first to the last element at once.
        """
        if self._loaded is not None and self._loaded[0] is portion:
            return self._loaded[1]
        assert portion.strides is not None
        last = sum((n - 1) * stride for n, stride in zip(portion.box.extent, portion.strides, strict=True))
        size = (last + 1) * self._item_size
        if size > self._memory_bytes:
            raise LimitExceededError(
                f"the tensor is stored transposed or strided and spans {size} bytes, expected {self._memory_bytes} at most; "
                "allow more memory or fewer threads",
                path=portion.file.path,
            )
        self._loaded = None
        data = memoryview(bytearray(size))
        self._get(portion, portion.begin, data)
        strides = (*(stride * self._item_size for stride in portion.strides), 1)
        shape = (*portion.box.extent, self._item_size)
        array = numpy().lib.stride_tricks.as_strided(numpy().frombuffer(data, "u1"), shape, strides, writeable=False)
        self._loaded = (portion, array)
        return array


def slices_of(box: Box) -> tuple[slice, ...]:
    return tuple(slice(x, x + n) for x, n in zip(*box, strict=True))


class FileInfo(NamedTuple):
    """A file of a source: its relative path and its purpose."""

    name: str
    size_bytes: int
    meaning: str


class Unread(dict[str, Node]):
    """Placeholder for an unreadable value. If no selection leaves the value out, an error is raised.

    ``is_beside``: the value is in a sidecar file. Values of unknown classes in sidecar files are left out.
    """

    def __init__(self, error: Error, is_beside: bool) -> None:
        super().__init__({KIND: "unread"})
        self.error, self.is_beside = error, is_beside


def unread_of(node: Node) -> Iterator[Unread]:
    """Returns the ``Unread`` placeholders in a node."""
    stack = [node]
    while stack:
        one = stack.pop()
        if isinstance(one, Unread):
            yield one
        elif isinstance(one, (dict, list)):
            stack.extend(one.values() if isinstance(one, dict) else one)


class LeftOut(NamedTuple):
    """A file, directory or value that was not read.

    ``may_hold_state`` is False only if the item clearly holds no state, for example a text file or a leftover of a different save.
    """

    name: str
    size_bytes: int
    reason: str
    may_hold_state: bool


@dataclasses.dataclass
class State:
    """The content of a source.

    Attributes:
        format: Name of the format, as ``Report.source_format``.
        tree: A mapping; its ``tensor`` nodes name ``tensors``.
        attributes: Attributes of the checkpoint.
        rank_values: For each rank, the values of the tree's ``per_rank`` nodes: path as text -> node.
        objects: Additional objects: name -> (media type, bytes).
        notes: Sentences about facts that the source format could not express.
        digest: Description of the digests that protect the bytes of tensors.
        left_out: Items next to the source that were not read.
        missing: Tensors that an index lists but no file contains.
        metadata_memory_bytes: Maximum memory for the metadata. None for Sealpoint checkpoints, because their reader has its own
            limits.
    """

    format: str
    path: str
    tree: dict[str, Node]
    tensors: dict[str, Tensor]
    files: list[FileInfo]
    objects: dict[str, tuple[str, bytes]] = dataclasses.field(default_factory=dict)
    rank_values: list[dict[str, Node]] = dataclasses.field(default_factory=list)
    step: int | None = None
    provenance: dict[str, str] = dataclasses.field(default_factory=dict)
    attributes: dict[str, Attribute] = dataclasses.field(default_factory=dict)
    notes: list[str] = dataclasses.field(default_factory=list)
    digest: str = "none"
    left_out: list[LeftOut] = dataclasses.field(default_factory=list)
    missing: list[str] = dataclasses.field(default_factory=list)
    metadata_memory_bytes: int | None = None
    close: Callable[[], None] = lambda: None

    @property
    def all_objects(self) -> dict[str, tuple[str, bytes]]:
        """Returns the objects, including the per-rank value objects of spec/tree.md."""
        values = {rank_object(rank): (MEDIA_TYPE, dump(values)) for rank, values in enumerate(self.rank_values)}
        return {**self.objects, **values}

    def __enter__(self) -> State:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def flat_tree(names: Sequence[str]) -> dict[str, Node]:
    """Builds the tree of a state that is one mapping from names to tensors."""
    tree = {name: {KIND: "tensor", "name": name} for name in names}
    return {KIND: "dict", "items": [[key, node] for key, node in tree.items()]} if KIND in tree else tree
