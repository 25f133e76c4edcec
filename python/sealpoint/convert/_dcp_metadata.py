# SPDX-License-Identifier: Apache-2.0
"""The pickle .metadata of torch.distributed.checkpoint, as plain values."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from sealpoint._errors import CorruptError, Error, LimitExceededError, UnsupportedError
from sealpoint._tree import Path
from sealpoint.convert._boxes import Box, Extents
from sealpoint.convert._budget import cost_of_text
from sealpoint.convert._dtypes import OF_TORCH
from sealpoint.convert._files import File, check_inside, check_links
from sealpoint.convert._pickle import Decoder, Dict, Global, Object, kind_name
from sealpoint.convert._torch_zip import PICKLE_BYTES_MAX
from sealpoint.convert._values import Known

_MODULE = "torch.distributed.checkpoint.metadata."
_PATH_PARTS_MAX = 200
# What the parts of metadata cost in memory, in bytes, beside their text and what the pickle's decoder counts.
_TENSOR_COST, _PLACE_COST, _CHUNK_COST, _PATH_COST, _PART_COST = 1024, 512, 512, 128, 128


class _KnownMetadata(Known):
    """Also classes of DCP's own, of plans of Megatron's, of paths, and any dtype: all just looked at or skipped."""

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or (
            isinstance(name, str)
            and (
                name.startswith(("torch.distributed.", "pathlib."))
                or name == "torch.serialization._get_layout"
                or name.rpartition(".")[0] == "torch"
            )
        )


class Place(NamedTuple):
    """Bytes of a file by DCP. ``transforms``: what was done to them."""

    file: str
    begin: int
    size: int
    transforms: tuple[str, ...]


class StoredTensor(NamedTuple):
    dtype: str
    shape: Extents
    places: dict[Box, Place]


class Metadata(NamedTuple):
    """``paths``: of each name, or None if the state was not flattened. ``true_shapes``: see sealpoint.convert._megatron.

    ``unread``: what is wrong with others.
    """

    tensors: dict[str, StoredTensor]
    objects: dict[str, Place]
    paths: dict[str, Path] | None
    true_shapes: dict[str, Extents]
    unread: dict[str, Error]


def read_metadata(file: File, goes_on: bool) -> Metadata:
    """``goes_on``: what is wrong with a tensor or an object alone is no error of the whole.

    Errors: CorruptError, UnsupportedError (a class that does not belong there; a dtype), LimitExceededError.
    """
    if file.size > PICKLE_BYTES_MAX:
        raise LimitExceededError(f"the file has {file.size} bytes, expected {PICKLE_BYTES_MAX} at most", path=file.path)
    before = file.budget.used
    file.budget.add(file.size, file.path)
    root = Decoder(file.read(0, file.size), _KnownMetadata(), file.budget, file.path).decode()
    described = file.budget.used - before
    try:
        metadata = _Metadata(file, goes_on).read(root)
    except _MalformedError as error:
        raise CorruptError(f"not the metadata of a checkpoint: {error}", path=file.path) from None
    file.budget.used -= described
    return metadata


class _MalformedError(Exception):
    """A sentence, which formats no value of the file but text that was cut."""


class _Metadata:
    def __init__(self, file: File, goes_on: bool) -> None:
        self._path, self._budget, self._goes_on = file.path, file.budget, goes_on
        self._files: set[str] = set()  # that were checked

    def read(self, root: Any) -> Metadata:
        if type(root) is not Object or not root.name.endswith("Metadata"):
            raise _MalformedError(f"it holds a {kind_name(root)}")
        members = self._members(root)
        places = dict(self._place(*pair) for pair in _pairs(_member(members, "storage_data")))
        tensors: dict[str, StoredTensor] = {}
        objects: dict[str, Place] = {}
        unread: dict[str, Error] = {}
        for name, stored in _pairs(_member(members, "state_dict_metadata")):
            if not is_text(name):
                raise _MalformedError("a name is no text")
            self._add(_TENSOR_COST + cost_of_text(name.encode()))
            if name in tensors or name in objects or name in unread:
                raise _MalformedError(f"{name!a:.80} comes twice")
            try:
                if type(stored) is Object and stored.name == _MODULE + "TensorStorageMetadata":
                    tensors[name] = self._tensor(name, self._members(stored), places)
                elif type(stored) is Object and stored.name == _MODULE + "BytesStorageMetadata":
                    objects[name] = self._found(places, name, None)
                else:
                    raise _MalformedError(f"{name!a:.80} is a {kind_name(stored)}")
            except (CorruptError, UnsupportedError) as error:
                if not self._goes_on:
                    raise
                unread[name] = error
        planner_data = members.get("planner_data")
        paths = None if planner_data is None else dict(self._named_path(*pair) for pair in _pairs(planner_data))
        return Metadata(tensors, objects, paths, self._true_shapes(members.get("mcore_data")), unread)

    def _add(self, cost: int) -> None:
        self._budget.add(cost, self._path)

    def _members(self, described: Any) -> dict[str, Any]:
        """Of an object of a dataclass."""
        if type(described) is not Object:
            raise _MalformedError("a value is no object")
        if described.state is None:
            return {}
        if type(described.state) is not Dict:
            raise _MalformedError("a state is no mapping")
        self._add(_PART_COST * len(described.state.pairs))
        return {key: value for key, value in described.state.pairs if type(key) is str}

    def _place(self, index: Any, info: Any) -> tuple[tuple[str, Extents | None], Place]:
        key, value = self._members(index), self._members(info)
        self._add(_PLACE_COST)
        offset = None if key.get("offset") is None else _sizes(key["offset"])
        begin, size = _natural(_member(value, "offset")), _natural(_member(value, "length"))
        file, name = _member(value, "relative_path"), _member(key, "fqn")
        if type(file) is not str or type(name) is not str:
            raise _MalformedError("a place is no name of a file")
        if file not in self._files:
            check_inside(file, self._path)
            check_links(os.path.dirname(self._path), file)
            self._files.add(file)
        transforms = value.get("transform_descriptors")
        steps = () if transforms is None else _items(transforms)
        self._add(_PART_COST * len(steps))
        if any(type(step) is not str for step in steps):
            raise _MalformedError("a transform is no text")
        return (name, offset), Place(file, begin, size, tuple(steps))

    def _found(self, places: dict[tuple[str, Extents | None], Place], name: str, offset: Extents | None) -> Place:
        place = places.get((name, offset))
        if place is None:
            at = "" if offset is None else f" at {list(offset)}"
            raise CorruptError(f"the metadata names no file for the part{at}", path=self._path, tensor=name)
        if place.transforms:
            raise UnsupportedError(
                f"its bytes were transformed by {place.transforms[0]:.80}, expected as torch.save wrote them",
                path=self._path,
                tensor=name,
            )
        return place

    def _tensor(self, name: str, members: dict[str, Any], places: dict[tuple[str, Extents | None], Place]) -> StoredTensor:
        properties = _member(members, "properties")
        state = properties.state if type(properties) is Object else None
        if type(state) is tuple and not state:
            raise _MalformedError("properties are empty")
        dtype = state[0] if type(state) is tuple else _member(self._members(properties), "dtype")
        if type(dtype) is not Global or dtype.name.removeprefix("torch.") not in OF_TORCH:
            found = f"{dtype.name:.200}" if type(dtype) is Global else "none"
            raise UnsupportedError(f"dtype is {found}, which the format lacks", path=self._path, tensor=name)
        boxes: dict[Box, Place] = {}
        shape = _sizes(_member(members, "size"))
        chunks = _items(_member(members, "chunks"))
        self._add(_CHUNK_COST * len(chunks))
        for chunk in chunks:
            values = self._members(chunk)
            offset, extent = _sizes(_member(values, "offsets")), _sizes(_member(values, "sizes"))
            # Megatron leaves prepended axes out of sizes.
            box = Box(offset, (1,) * (len(offset) - len(extent)) + extent)
            if len(box.offset) != len(box.extent) or len(box.extent) != len(shape):
                raise CorruptError(
                    f"part at {list(offset)} has {len(extent)} dimensions, expected {len(shape)}",
                    path=self._path,
                    tensor=name,
                )
            if box.size > 0 and box not in boxes:
                boxes[box] = self._found(places, name, offset)
        return StoredTensor(OF_TORCH[dtype.name.removeprefix("torch.")], shape, boxes)

    def _named_path(self, name: Any, described: Any) -> tuple[str, Path]:
        parts = _items(described)
        if len(parts) > _PATH_PARTS_MAX:
            raise LimitExceededError(
                f"a path has {len(parts)} parts, expected {_PATH_PARTS_MAX} at most", path=self._path
            )
        if not is_text(name) or any(type(part) is not int and not is_text(part) for part in parts):
            raise _MalformedError("a name is no text")
        if not parts:
            raise _MalformedError("a path is empty")
        self._add(_PATH_COST + sum(_PART_COST + (len(part) if type(part) is str else 0) for part in parts))
        return name, tuple(parts)

    def _true_shapes(self, mcore_data: Any) -> dict[str, Extents]:
        shapes: dict[str, Extents] = {}
        for name, described in _pairs(mcore_data) if mcore_data is not None else ():
            self._add(_PART_COST * len(_pairs(described)))
            for key, value in _pairs(described):
                if type(key) is str and key == "nd_reformulated_orig_global_shape" and value is not None:
                    if not is_text(name):
                        raise _MalformedError("a name is no text")
                    shapes[name] = _sizes(value)
        return shapes


def _member(members: dict[str, Any], name: str) -> Any:
    if name not in members:
        raise _MalformedError(f"{name} is missing")
    return members[name]


def _pairs(value: Any) -> list[tuple[Any, Any]]:
    if type(value) not in (Dict, Object):
        raise _MalformedError("a value is no mapping")
    return value.pairs  # type: ignore[no-any-return]


def _items(value: Any) -> Any:
    if type(value) not in (tuple, list):
        raise _MalformedError("a value is no list")
    return value


def is_text(value: Any) -> bool:
    """Whether it is a string without lone surrogates."""
    try:
        return type(value) is str and value.encode("utf-8") is not None
    except UnicodeEncodeError:
        return False


def _natural(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 1 << 62:
        raise _MalformedError("a value is no size")
    return value


def _sizes(value: Any) -> Extents:
    if type(value) is Object and value.name == "torch.Size" and value.args:
        value = value.args[0]
    if type(value) not in (tuple, list) or len(value) > 64:
        raise _MalformedError("a shape is no tuple of sizes")
    return tuple(_natural(one) for one in value)
