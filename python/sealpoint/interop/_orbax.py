# SPDX-License-Identifier: Apache-2.0
"""Orbax checkpoints as a source. tensorstore, the library that Orbax stores arrays with, reads them in slabs."""

from __future__ import annotations

import importlib
import json
import math
import os
import re
from collections.abc import Sequence
from typing import Any

from sealpoint import _paths, _tree
from sealpoint._dtypes import OF_TORCH, numpy
from sealpoint._errors import CorruptError, Error, IncompleteError, LimitExceededError, UnsupportedError
from sealpoint._native import MARKER
from sealpoint._tree import KIND, Node, Path, text_of
from sealpoint._tree_paths import nest
from sealpoint.interop import _boxes
from sealpoint.interop._boxes import Box, Extents
from sealpoint.interop._dtypes import ITEM_SIZE
from sealpoint.interop._files import FileSet
from sealpoint.interop._source import FileInfo, LeftOut, Reader, State

_METADATA, _ITEMS, _DATABASE, _STRINGS, _JSON = "_METADATA", "_CHECKPOINT_METADATA", "manifest.ocdbt", "_strings.json", "metadata"
_ONLY_ITEM = "default"
_UNFINISHED = ".orbax-checkpoint-tmp"
_STEP = re.compile(r"(?:.*_)?([0-9]{1,18})")
_JSON_BYTES_MAX = 100_000_000
_CACHE_BYTES = 256 << 20
_EMPTY: dict[str, Node] = {"None": None, "Dict": {}, "List": [], "Tuple": {KIND: "tuple", "items": []}}
# Types of keys in the metadata.
_SEQUENCE, _DICT = 1, 2


class OrbaxTensor:
    """An array of tensorstore."""

    is_protected = False

    def __init__(self, name: str, store: Any, path: str) -> None:
        self.name, self._store, self._path = name, store, path
        self.dtype = OF_TORCH.get(store.dtype.name, "")
        self.shape: Extents = tuple(store.shape)
        if self.dtype not in ITEM_SIZE:
            raise UnsupportedError(f"dtype is {store.dtype.name}, which no other format has", path=path, tensor=name)

    @property
    def boxes(self) -> Sequence[Box]:
        return [_boxes.whole(self.shape)]

    def reader(self, memory_bytes: int) -> Reader:
        """Returns a reader. Raises LimitExceededError if a chunk, which is decoded as a whole, does not fit into the memory."""
        size = math.prod(self._store.chunk_layout.read_chunk.shape or ()) * ITEM_SIZE[self.dtype]
        if size > memory_bytes:
            message = f"a chunk has {size} bytes, expected {memory_bytes} at most; allow more memory or fewer threads"
            raise LimitExceededError(message, path=self._path, tensor=self.name)
        return self

    def read(self, box: Box, out: memoryview) -> None:
        index = tuple(slice(x, x + n) for x, n in zip(*box, strict=True))
        array = _result(self._store[index].read(), self._path, self.name)
        numpy().frombuffer(out, "u1")[...] = numpy().ascontiguousarray(array).reshape(-1).view("u1")

    def finish(self) -> None:
        """Does nothing, because the format has no digests of arrays."""


def _result(future: Any, path: str, name: str) -> Any:
    try:
        return future.result()
    except (ValueError, OSError, NotImplementedError) as error:  # of tensorstore, which has no classes of its own
        text = str(error).partition(" [source")[0]
        kind = IncompleteError if "NOT_FOUND" in text else CorruptError
        raise kind(f"tensorstore cannot read the array: {text:.300}", path=path, tensor=name) from None


def step_of(path: str, names: Sequence[str]) -> str | None:
    """Returns the newest step of a directory of Orbax steps, the path itself if it is a step or an item, or None if neither."""
    if {_METADATA, _ITEMS, _DATABASE} & set(names):
        return path
    steps = []
    for name in names:
        match = _STEP.fullmatch(name)
        inner = os.path.join(path, name)
        if match and _paths.kind_of(inner) == "directory" and {_METADATA, _ITEMS} & set(_paths.list_names(inner)):
            steps.append((int(match[1]), inner))
    return max(steps)[1] if steps else None


def open_orbax(path: str, files: FileSet) -> State:
    """Opens a step or an item. Reads the metadata of all arrays, and the content of scalars.

    Raises:
        UnsupportedError: tensorstore is missing, or an item, a value or a dtype has no form here.
        IncompleteError: a file is missing, or the save did not finish.
        CorruptError: a file is damaged.
    """
    if not _paths.is_local(path):
        raise UnsupportedError("a checkpoint of Orbax in an object store, expected a local copy", path=path)
    if _UNFINISHED in os.path.basename(os.path.abspath(path)):
        raise IncompleteError("a directory of Orbax whose save did not finish", path=path)
    infos = []
    for folder, folders, names in os.walk(path):
        for name in (*folders, *names):
            inner = os.path.join(folder, name)
            if os.path.islink(inner):
                raise UnsupportedError("a symbolic link in a checkpoint of Orbax; copy the directory by cp -rL", path=inner)
        infos += [FileInfo(os.path.relpath(os.path.join(folder, name), path), os.path.getsize(os.path.join(folder, name)),
                           "file of Orbax") for name in names]  # fmt: skip
    state = State("orbax", path, {}, {}, sorted(infos), digest="none that can be checked")
    leaves: list[tuple[Path, Node]] = []
    names = _paths.list_names(path)
    items = [name for name in names if _paths.kind_of(os.path.join(path, name)) == "directory"]
    if _METADATA in names or _DATABASE in names:
        _add_item(path, (), files, state, leaves)
    else:
        for name in sorted(items):
            prefix: Path = () if name == _ONLY_ITEM and len(items) == 1 else (name,)
            _add_item(os.path.join(path, name), prefix, files, state, leaves)
        match = _STEP.fullmatch(os.path.basename(os.path.abspath(path)))
        state.step = int(match[1]) if match else None
    if not leaves:
        raise UnsupportedError(f"no item of Orbax that can be read (of {', '.join(items) or 'none'}), expected a PyTree", path=path)
    try:
        tree = nest(leaves)
    except Error as error:
        raise CorruptError(f"{_METADATA}: {error.message}", path=path, object=error.object) from None
    assert isinstance(tree, dict)
    state.tree = tree
    return state


def _add_item(path: str, prefix: Path, files: FileSet, state: State, leaves: list[tuple[Path, Node]]) -> None:
    names = _paths.list_names(path)
    if _METADATA in names:
        _add_tree(path, prefix, files, state, leaves)
    elif _DATABASE in names:
        raise IncompleteError(f"a directory of Orbax without {_METADATA}, which names its arrays", path=path)
    elif _JSON in names:
        encoder = _tree.Encoder(lambda one: False, lambda place, one: "")
        leaves.append((prefix, encoder.encode(_json(os.path.join(path, _JSON), files))))
    else:
        reason = "a Sealpoint checkpoint; convert it alone" if MARKER in names else "an item of a kind that is not read"
        state.left_out.append(LeftOut(os.path.basename(path), 0, reason, True))


def _json(path: str, files: FileSet) -> Any:
    file = files.open(path)
    if file.size > _JSON_BYTES_MAX:
        raise LimitExceededError(f"file has {file.size} bytes, expected {_JSON_BYTES_MAX} at most", path=path)
    try:
        return json.loads(file.read(0, file.size))
    except (ValueError, RecursionError) as error:
        raise CorruptError(f"text is malformed, expected JSON: {error!s:.100}", path=path) from None


def _add_tree(path: str, prefix: Path, files: FileSet, state: State, leaves: list[tuple[Path, Node]]) -> None:
    try:
        tensorstore = importlib.import_module("tensorstore")
    except ImportError:
        raise UnsupportedError("a checkpoint of Orbax, which needs tensorstore; install it by pip install 'sealpoint[orbax]'",
                               path=path) from None
    metadata = _json(os.path.join(path, _METADATA), files)
    try:
        entries = [(_path_of(entry["key_metadata"]), entry["value_metadata"]) for entry in metadata["tree_metadata"].values()]
        kinds = [str(value["value_type"]) for _, value in entries]
    except (KeyError, TypeError, AttributeError) as error:
        raise CorruptError(f"metadata is malformed: {error!r:.100}", path=os.path.join(path, _METADATA)) from None
    has_strings = "string" in kinds
    strings = _json(os.path.join(path, _STRINGS), files) if has_strings else {}
    open_array = _opener(path, metadata, tensorstore)
    futures = {at: open_array(".".join(map(str, place))) for at, (place, _) in enumerate(entries)
               if kinds[at] not in _EMPTY and kinds[at] != "string"}  # fmt: skip
    for at, (place, _) in enumerate(entries):
        whole = (*prefix, *place)
        name = text_of(whole)
        if kinds[at] in _EMPTY:
            leaves.append((whole, _EMPTY[kinds[at]]))
        elif kinds[at] == "string":
            text = strings.get(".".join(map(str, place))) if isinstance(strings, dict) else None
            if not isinstance(text, str):
                raise IncompleteError(f"{_STRINGS} does not have the string", path=path, object=name)
            leaves.append((whole, text))
        elif kinds[at] == "scalar":
            leaves.append((whole, _scalar(_result(futures[at], path, name), path, name)))
        elif name in state.tensors:
            raise UnsupportedError("two arrays have this name, joined by dots", path=path, tensor=name)
        else:
            state.tensors[name] = OrbaxTensor(name, _result(futures[at], path, name), path)
            leaves.append((whole, {KIND: "tensor", "name": name}))


def _scalar(store: Any, path: str, name: str) -> Node:
    if store.shape:
        raise CorruptError(f"shape of a scalar is {list(store.shape)}, expected none", path=path, object=name)
    value = _result(store.read(), path, name).item()
    return _tree.Encoder(lambda one: False, lambda place, one: "").encode(value)


def _path_of(keys: Any) -> Path:
    place: list[str | int] = []
    for key in keys:
        is_position = key["key_type"] == _SEQUENCE
        if not is_position and key["key_type"] != _DICT:
            raise TypeError(f"type of a key is {key['key_type']}")
        place.append(int(key["key"]) if is_position and str(key["key"]).isdecimal() else str(key["key"]))
    if not place:
        raise TypeError("a value without a key")
    return tuple(place)


def _opener(path: str, metadata: Any, tensorstore: Any) -> Any:
    """Returns a function that begins to open an array by its name."""
    is_database = metadata.get("use_ocdbt", os.path.exists(os.path.join(path, _DATABASE)))
    base = "file://" + os.path.abspath(path) + "/"
    context = tensorstore.Context({"cache_pool": {"total_bytes_limit": _CACHE_BYTES}})
    # A chunk that the writer omits equals the fill value. If the writer omits none, a missing chunk is an error.
    may_fill = not metadata.get("store_array_data_equal_to_fill_value", False)

    def open_array(name: str) -> Any:
        if not is_database and any(part in ("", ".", "..") for part in name.split("/")):
            raise CorruptError(f"the name leads out of the directory: {name!a:.100}", path=path)
        store = {"driver": "ocdbt", "base": base, "path": name + "/"} if is_database else base + name + "/"
        spec = {"driver": "zarr3" if metadata.get("use_zarr3") else "zarr", "kvstore": store, "fill_missing_data_reads": may_fill}
        return tensorstore.open(spec, read=True, open=True, context=context)

    return open_array
