# SPDX-License-Identifier: Apache-2.0
"""Directories of torch.distributed.checkpoint."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from typing import Any

from sealpoint._errors import CorruptError, Error, InvalidArgumentError, MismatchError, UnsupportedError
from sealpoint._tree import KIND, Node, Path, text_of
from sealpoint._tree_paths import nest
from sealpoint.convert._beside import take_beside
from sealpoint.convert._boxes import Box, Extents, gap_of, whole
from sealpoint.convert._budget import Budget
from sealpoint.convert._dcp_metadata import Metadata, Place, StoredTensor, read_metadata
from sealpoint.convert._files import FileSet, join_inside, size_at
from sealpoint.convert._source import LEFT_OVER, FileInfo, FileTensor, Opener, Portion, Reader, State, Unread, unread_of
from sealpoint.convert._torch_zip import TorchZip, value_of, value_or_error
from sealpoint.convert._values import LEFT_OUT
from sealpoint.convert._values import StoredTensor as PickledTensor

METADATA = ".metadata"
_OF_RANK = re.compile(r"__(\d+)\.metadata")


class DcpTensor:
    """A tensor whose parts are items of .distcp files, which are looked at when it is read."""

    def __init__(
        self, name: str, stored: StoredTensor, directory: str, files: FileSet, true_shape: Extents | None = None
    ) -> None:
        self.name, self.dtype = name, stored.dtype
        self.shape = stored.shape if true_shape is None else true_shape
        self._stored, self._directory, self._files = stored, directory, files
        self._true_shape = true_shape
        self._opened: FileTensor | None = None
        gap = gap_of(list(stored.places), stored.shape)
        if gap is not None:
            raise CorruptError(f"parts of the tensor do not fit together: {gap}", path=directory, tensor=name)

    @property
    def boxes(self) -> Sequence[Box]:
        return list(self._stored.places) if self._true_shape is None else [whole(self.shape)]

    @property
    def is_protected(self) -> bool:
        """Known once it was read; until then it is expected to be."""
        return self._opened is None or self._opened.is_protected

    def reader(self, memory_bytes: int) -> Reader:
        """Errors: those of the items; CorruptError (an item holds something else)."""
        if self._opened is None:
            portions = [self._portion(box, place) for box, place in self._stored.places.items()]
            self._opened = FileTensor(self.name, self.dtype, self.shape, portions)
        return self._opened.reader(memory_bytes)

    def _portion(self, box: Box, place: Place) -> Portion:
        budget = Budget()  # of the thread that reads it
        budget.allow(place.size)
        archive = open_item(self._directory, place, self._files, self.name, budget=budget)
        found: list[PickledTensor] = []

        def take(_: str, tensor: PickledTensor) -> str:
            found.append(tensor)
            return self.name

        node = archive.values(take, None).node(archive.root, (self.name,))
        if len(found) != 1 or node != {KIND: "tensor", "name": self.name}:
            raise CorruptError("the item is no tensor", path=archive.file.path, offset=place.begin, tensor=self.name)
        shape = found[0].shape
        if found[0].dtype != self.dtype or _plain(shape) != _plain(box.extent):
            raise CorruptError(
                f"the item is {found[0].dtype} {list(shape)}, the metadata says {self.dtype} {list(box.extent)}",
                path=archive.file.path,
                offset=place.begin,
                tensor=self.name,
            )
        portion = archive.portion(found[0])
        if portion.strides is not None and shape != box.extent:  # without axes of one element, or with others
            strides = iter(stride for stride, n in zip(portion.strides, shape, strict=True) if n > 1)
            portion = portion._replace(strides=tuple(next(strides) if n > 1 else 0 for n in box.extent))
        if self._true_shape is not None:
            return _unflattened(portion, box, self._stored.shape, self._true_shape)
        return portion._replace(box=box)


def _plain(shape: Extents) -> Extents:
    return tuple(n for n in shape if n != 1)


def _unflattened(portion: Portion, box: Box, stored: Extents, true: Extents) -> Portion:
    """Old Megatron's optimizer states: cells of a grid, each flattened along a last axis, of which this is a run."""
    ndim = len(true)
    cell = tuple(n // count for n, count in zip(true, stored[:ndim], strict=True))
    place = Box(tuple(i * n for i, n in zip(box.offset[:ndim], cell, strict=True)), cell)
    is_whole = all(n == count * extent for n, count, extent in zip(true, stored[:ndim], cell, strict=True))
    is_run = len(stored) == ndim + 1 and stored[-1] == place.size and not set(box.extent[:ndim]) - {1}
    if portion.sign_mask is not None or not is_whole or not is_run:
        raise CorruptError(f"flattened as {list(stored)}, which is no grid of {list(true)}", path=portion.file.path)
    return portion._replace(box=place, strides=None, run=(box.offset[-1], box.offset[-1] + box.extent[-1]))


def open_item(
    directory: str, place: Place, files: FileSet, name: str, keep_unknown: bool = False, budget: Budget | None = None
) -> TorchZip:
    try:
        return _archive(directory, place, files, keep_unknown, budget)
    except Error as error:
        error.tensor = error.tensor or name
        raise


def _archive(
    directory: str, place: Place, files: FileSet, keep_unknown: bool = False, budget: Budget | None = None
) -> TorchZip:
    path = join_inside(directory, place.file, os.path.join(directory, METADATA))
    return TorchZip(files.open(path), place.begin, place.size, keep_unknown, budget)


def open_dcp(path: str, opener: Opener) -> State:
    """A directory with .metadata, or with one per rank."""
    names = sorted(os.listdir(path))
    ranks = sorted(int(match[1]) for name in names if (match := _OF_RANK.fullmatch(name)))
    state = State("dcp", path, {}, {}, [], digest="CRC-32 of the zips, one per tensor and rank; none for .metadata")
    leaves: dict[str, Node] = {}
    if METADATA in names:
        metadata = read_metadata(opener.files.open(os.path.join(path, METADATA)), opener.goes_on)
    else:
        by_rank = {
            rank: read_metadata(opener.files.open(os.path.join(path, f"__{rank}{METADATA}")), opener.goes_on)
            for rank in ranks
        }
        leaves = _take_own(by_rank, state, opener)
        metadata = _merged(by_rank, path, opener.files)
    leaves |= read_leaves(metadata, state, opener)
    paths = metadata.paths or {}
    try:
        state.tree = nest((paths.get(name, (name,)), node) for name, node in leaves.items())
    except InvalidArgumentError as error:
        raise CorruptError(error.message, path=path, object=error.object) from None
    used = {place.file for stored in metadata.tensors.values() for place in stored.places.values()}
    used |= {place.file for place in metadata.objects.values()}
    state.files = describe(path, names, used)
    indices = {name for name in names if name == METADATA or _OF_RANK.fullmatch(name)}
    take_beside(state, {name.split("/")[0] for name in used} | indices, opener, may_link=False)
    return state


def read_leaves(metadata: Metadata, state: State, opener: Opener, are_lists_of_one: bool = False) -> dict[str, Node]:
    """The nodes by name; tensors, also those within values, are added to the state. For the last see ``value_of``."""
    leaves: dict[str, Node] = {name: Unread(error) for name, error in metadata.unread.items()}
    for name, stored in metadata.tensors.items():
        if name in metadata.unread:  # of another rank
            continue
        try:
            tensor = DcpTensor(name, stored, state.path, opener.files, metadata.true_shapes.get(name))
        except CorruptError as error:
            if not opener.goes_on:
                raise
            leaves[name] = Unread(error)
            continue
        state.tensors[name] = tensor
        leaves[name] = {KIND: "tensor", "name": name}
    for name, place in metadata.objects.items():
        if name in metadata.unread:
            continue
        node = value_or_error(
            lambda place=place: _archive(state.path, place, opener.files, keep_unknown=True),  # type: ignore[misc]
            state.tensors,
            (name,),
            opener,
            state.notes,
            are_lists_of_one,
        )
        if node is not LEFT_OUT:
            leaves[name] = node
    return leaves


def describe(path: str, names: Iterable[str], used: set[str]) -> list[FileInfo]:
    """What each file is for."""
    infos = []
    for name in sorted({*names, *used}):
        full = os.path.join(path, name)
        if name in used:
            meaning = "tensors and values, each a zip of torch.save"
        elif name == METADATA or _OF_RANK.fullmatch(name):
            meaning = "index: a pickle that says which tensor is where"
        elif name.endswith(".distcp"):
            meaning = f"{LEFT_OVER}: the index does not name it"
        elif name in (".metadata.tmp", ".metadata.bck"):
            meaning = f"{LEFT_OVER} from a save"
        else:
            meaning = "not part of the checkpoint, not read"
        size = size_at(full)
        infos.append(FileInfo(name, size, meaning if size or name not in used else "MISSING or empty: the index names it"))
    return infos


def _take_own(by_rank: dict[int, Metadata], state: State, opener: Opener) -> dict[str, Node]:
    """The ``per_rank`` nodes of what each rank has of its own; it is taken out of the metadata.

    Errors: MismatchError (a rank does not have it, or has a part of a tensor only).
    """
    names = sorted({name for one in by_rank.values() for name in (*one.tensors, *one.objects) if opener.is_per_rank(name)})
    for rank in range(len(by_rank) if names else 0):
        values: dict[str, Node] = {}
        metadata = by_rank.get(rank)
        for name in names:
            if metadata is None or (name not in metadata.tensors and name not in metadata.objects):
                raise MismatchError("the rank does not have its own of it", path=state.path, object=name, rank=rank)
            if name in metadata.tensors:
                own = DcpTensor(f"{name}.rank{rank}", metadata.tensors.pop(name), state.path, opener.files)
                state.tensors[own.name] = own
                values[name] = {KIND: "tensor", "name": own.name}
            else:
                archive = _archive(state.path, metadata.objects.pop(name), opener.files, keep_unknown=True)
                values[name] = _own_value(archive, (name, f"rank{rank}"), state, opener)
        state.rank_values.append(values)
    return {name: {KIND: "per_rank", "size": len(by_rank)} for name in names}


def _own_value(archive: TorchZip, path: Path, state: State, opener: Opener) -> Node:
    """Errors: UnsupportedError (all of it, or a part that is not to be left out, is of an unknown class)."""
    node = value_of(archive, state.tensors, path, opener, state.notes)
    if node is LEFT_OUT:
        message = "a value of an unknown class, of which each rank has its own, cannot be left out"
        raise UnsupportedError(message, path=archive.file.path, object=text_of(path))
    for unread in unread_of(node):
        raise unread.error
    return node


def _merged(by_rank: dict[int, Metadata], path: str, files: FileSet) -> Metadata:
    """Of metadata that each rank wrote for itself. What two ranks have must be the same on both."""
    merged = Metadata({}, {}, None, {}, {})
    paths: dict[str, Any] = {}
    for rank, metadata in by_rank.items():
        for name, stored in metadata.tensors.items():
            before = merged.tensors.setdefault(name, StoredTensor(stored.dtype, stored.shape, {}))
            if (before.dtype, before.shape) != (stored.dtype, stored.shape):
                raise MismatchError(
                    f"dtype and shape are {stored.dtype} {list(stored.shape)} on rank {rank}, "
                    f"{before.dtype} {list(before.shape)} before",
                    path=path,
                    tensor=name,
                    rank=rank,
                )
            for box, place in stored.places.items():
                _check_same(before.places.setdefault(box, place), place, path, files, name, rank)
        for name, place in metadata.objects.items():
            _check_same(merged.objects.setdefault(name, place), place, path, files, name, rank)
        paths.update(metadata.paths or {})
        merged.unread.update(metadata.unread)
    return merged._replace(paths=paths)


def _check_same(first: Place, other: Place, path: str, files: FileSet, name: str, rank: int) -> None:
    if first == other:
        return
    digests = []
    for one in (first, other):
        archive = open_item(path, one, files, name, keep_unknown=True)
        digests.append(archive.digests())
        archive.release()
    if digests[0] != digests[1]:
        raise MismatchError(
            f"rank {rank} stored other bytes than a rank before it: CRC-32 {digests[1]}, expected {digests[0]}; if each "
            "rank has its own of it, say so by per_rank",
            path=path,
            tensor=name,
            rank=rank,
        )
    if any(crc is None and size > 0 for _, size, crc in digests[0]):
        raise UnsupportedError(
            f"rank {rank} and one before it stored it without a CRC-32, so nobody can say if they agree",
            path=path,
            tensor=name,
            rank=rank,
        )
