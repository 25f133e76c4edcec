# SPDX-License-Identifier: Apache-2.0
"""Writes files for torch.load and torch.distributed.checkpoint.load."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable

from sealpoint._errors import UnsupportedError
from sealpoint._tree import Node, Path, text_of
from sealpoint._tree_paths import entries_of, flatten, kind_of
from sealpoint.interop import _pickle_write as pw
from sealpoint.interop._boxes import Box, slabs, whole
from sealpoint.interop._dtypes import ITEM_SIZE, TO_TORCH
from sealpoint.interop._layout import Layout, ZipLayout
from sealpoint.interop._megatron import COMMON, COMMON_KEY, MARKER
from sealpoint.interop._source import State, Tensor

# Larger tensors are split, because a rank that reads a part of an item reads the whole item.
ITEM_BYTES_MAX = 256 << 20
FILE_BYTES_MAX = 5 << 30
_DCP = "torch.distributed.checkpoint.metadata"


def _add_zip(layout: Layout, file: int, prefix: str, pickle: Callable[[Callable[[Tensor, Box], pw.Raw]], pw.Raw]) -> int:
    """Adds a torch.save zip at the end of the file, and returns the size of the zip in bytes.

    ``pickle`` receives the function that adds a storage.
    """
    archive = ZipLayout(layout, file, prefix)
    tensors: dict[tuple[str, Box], int] = {}
    stored: list[tuple[Tensor, Box]] = []

    def add(tensor: Tensor, box: Box) -> pw.Raw:
        key = tensors.setdefault((tensor.name, box), len(stored))
        if key == len(stored):
            stored.append((tensor, box))
        return pw.tensor(tensor.dtype, box.extent, str(key))

    data = pw.frame(pickle(add))
    archive.add_bytes("data.pkl", data)
    archive.add_bytes(".format_version", b"1")
    archive.add_bytes(".storage_alignment", b"64")
    archive.add_bytes("byteorder", b"little")
    for key, (tensor, box) in enumerate(stored):
        archive.add_tensor(f"data/{key}", tensor, box)
    archive.add_bytes("version", b"3\n")
    archive.add_bytes(".data/serialization_id", f"{int(hashlib.sha256(data).hexdigest(), 16) % 10**40:040}".encode())
    return archive.finish()


def _add_value(layout: Layout, file: int, prefix: str, state: State, node: Node, path: Path) -> int:
    def pickle(add: Callable[[Tensor, Box], pw.Raw]) -> pw.Raw:
        def tensor_of(name: str) -> pw.Raw:
            return add(state.tensors[name], whole(state.tensors[name].shape))

        return pw.NodePickler(tensor_of).dump(node, path)

    return _add_zip(layout, file, prefix, pickle)


def lay_out_torch(state: State, name: str) -> Layout:
    """Lays out one file with the whole state."""
    layout = Layout()
    _add_value(layout, layout.add_file(name), "archive/", state, state.tree, ())
    return layout


class _Items:
    """The items in .distcp files, and the metadata, which records the location of each item."""

    def __init__(self, layout: Layout, state: State) -> None:
        self._layout, self._state = layout, state
        self._file: int | None = None
        self._stored: list[tuple[pw.Raw, pw.Raw]] = []
        self._places: list[tuple[pw.Raw, pw.Raw]] = []

    def add(self, name: str, path: Path, node: Node) -> None:
        if kind_of(node) == "tensor":
            return self._add_tensor(name, self._state.tensors[node["name"]])
        file = self._file_for(0)
        begin = self._layout.sizes[file]
        size = _add_value(self._layout, file, "archive/", self._state, node, path)
        self._stored.append((pw.plain(name), pw.object_(_DCP, "BytesStorageMetadata", pw.dict_([]))))
        self._place(name, None, None, file, begin, size)

    def _add_tensor(self, name: str, tensor: Tensor) -> None:
        boxes = list(slabs(whole(tensor.shape), max(1, ITEM_BYTES_MAX // ITEM_SIZE[tensor.dtype])))
        for number, box in enumerate(boxes):
            file = self._file_for(box.size * ITEM_SIZE[tensor.dtype])
            begin = self._layout.sizes[file]
            size = _add_zip(self._layout, file, "archive/", lambda add, box=box: add(tensor, box))  # type: ignore[misc]
            self._place(name, box.offset, number, file, begin, size)
        chunks = pw.list_(
            pw.object_(_DCP, "ChunkStorageMetadata", _members(offsets=pw.size(box.offset), sizes=pw.size(box.extent)))
            for box in boxes
        )
        layout_of = pw.call(pw.global_("torch.serialization", "_get_layout"), pw.plain("torch.strided"))
        memory = pw.call(pw.global_(_DCP, "_MEM_FORMAT_ENCODING"), pw.plain(0))
        # Five members, as in torch 2.13 and 2.14; 2.15 adds strides.
        properties = pw.object_(
            _DCP,
            "TensorProperties",
            pw.tuple_([pw.global_("torch", TO_TORCH[tensor.dtype]), layout_of, pw.plain(False), memory, pw.plain(False)]),
        )
        self._stored.append(
            (
                pw.plain(name),
                pw.object_(
                    _DCP, "TensorStorageMetadata", _members(properties=properties, size=pw.size(tensor.shape), chunks=chunks)
                ),
            )
        )

    def _file_for(self, size: int) -> int:
        if self._file is None or (
            self._layout.sizes[self._file] > 0 and self._layout.sizes[self._file] + size > FILE_BYTES_MAX
        ):
            self._file = self._layout.add_file(f"__0_{len(self._layout.names)}.distcp")
        return self._file

    def _place(self, name: str, offset: tuple[int, ...] | None, index: int | None, file: int, begin: int, size: int) -> None:
        key = {"fqn": pw.plain(name), "index": pw.plain(index)}
        if offset is not None:
            key["offset"] = pw.size(offset)
        info = _members(relative_path=pw.plain(self._layout.names[file]), offset=pw.plain(begin), length=pw.plain(size))
        self._places.append(
            (
                pw.object_(_DCP, "MetadataIndex", _members(**key)),
                pw.object_("torch.distributed.checkpoint.filesystem", "_StorageInfo", info),
            )
        )

    def metadata(self, planner_data: pw.Raw) -> bytes:
        return pw.frame(
            pw.object_(
                _DCP,
                "Metadata",
                _members(
                    state_dict_metadata=pw.dict_(self._stored),
                    planner_data=planner_data,
                    storage_data=pw.dict_(self._places),
                    storage_meta=pw.plain(None),
                    version=pw.plain("1.0.0"),
                ),
            )
        )


def _members(**members: pw.Raw) -> pw.Raw:
    return pw.dict_((pw.plain(name), value) for name, value in members.items())


def lay_out_dcp(state: State) -> Layout:
    """Lays out a DCP directory, with keys flattened as DCP does.

    Raises UnsupportedError if two places of the state get the same key.
    """
    layout, names = Layout(), set[str]()
    items = _Items(layout, state)
    paths = []
    for path, node in flatten(state.tree):
        name = text_of(path)
        if name in names:
            raise UnsupportedError("two places of the state have the same key in DCP", object=name)
        names.add(name)
        items.add(name, path, node)
        paths.append((pw.plain(name), pw.plain(path)))
    state.notes.extend(f"{text_of(path)} is an empty mapping, which DCP does not keep" for path in empty_mappings(state.tree))
    layout.add_bytes(layout.add_file(".metadata"), items.metadata(pw.dict_(paths)))
    return layout


def empty_mappings(node: Node, path: Path = ()) -> Iterable[Path]:
    entries = entries_of(node)
    if entries is not None:
        if not entries:
            yield path
        for key, value in entries.items():
            yield from empty_mappings(value, (*path, str(key)))


def lay_out_megatron(state: State) -> Layout:
    """Lays out a Megatron torch_dist directory. The state must come from a Megatron checkpoint.

    Raises UnsupportedError for any other state.
    """
    layout = Layout()
    items = _Items(layout, state)
    entries = dict(entries_of(state.tree) or {})
    common = entries.pop(COMMON_KEY, {})
    for name, node in entries.items():
        if not isinstance(name, str) or (kind_of(node) != "tensor" and "/shard_" not in name):
            message = "neither a tensor nor a per-rank object, so Megatron could not read it"
            raise UnsupportedError(message, object=str(name))
        items.add(name, (name,), node if kind_of(node) == "tensor" else [node])
    layout.add_bytes(layout.add_file(".metadata"), items.metadata(pw.plain(None)))
    _add_value(layout, layout.add_file(COMMON), "common/", state, common, (COMMON_KEY,))
    marker = {
        "sharded_backend": "torch_dist",
        "sharded_backend_version": 1,
        "common_backend": "torch",
        "common_backend_version": 1,
    }
    layout.add_bytes(layout.add_file(MARKER), json.dumps(marker).encode())
    return layout
