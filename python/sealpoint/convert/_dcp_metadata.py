# SPDX-License-Identifier: Apache-2.0
"""The pickle .metadata of torch.distributed.checkpoint, as plain values."""

from __future__ import annotations

from typing import Any, NamedTuple

from sealpoint._errors import CorruptError, LimitExceededError, UnsupportedError
from sealpoint._tree import Path
from sealpoint.convert._boxes import Box, Extents
from sealpoint.convert._dtypes import OF_TORCH
from sealpoint.convert._files import File
from sealpoint.convert._pickle import Decoder, Dict, Global, Object
from sealpoint.convert._torch_zip import PICKLE_BYTES_MAX
from sealpoint.convert._values import Known

_MODULE = "torch.distributed.checkpoint.metadata."


class _KnownMetadata(Known):
    """Also classes of DCP's own, of plans of Megatron's, and of paths, which are all just looked at or skipped."""

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or (
            isinstance(name, str)
            and (name.startswith(("torch.distributed.", "pathlib.")) or name == "torch.serialization._get_layout")
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
    """``paths``: of each name, or None if the state was not flattened. ``true_shapes``: see sealpoint.convert._megatron."""

    tensors: dict[str, StoredTensor]
    objects: dict[str, Place]
    paths: dict[str, Path] | None
    true_shapes: dict[str, Extents]


def read_metadata(file: File) -> Metadata:
    """Errors: CorruptError, UnsupportedError (a class that does not belong there; a dtype), LimitExceededError."""
    if file.size > PICKLE_BYTES_MAX:
        raise LimitExceededError(f"the file has {file.size} bytes, expected {PICKLE_BYTES_MAX} at most", path=file.path)
    root = Decoder(file.read(0, file.size), _KnownMetadata(), file.path).decode()
    try:
        return _Metadata(file.path).read(root)
    except (AttributeError, KeyError, TypeError, ValueError, IndexError) as error:
        raise CorruptError(f"not the metadata of a checkpoint: {error!r:.120}", path=file.path) from None


class _Metadata:
    def __init__(self, path: str) -> None:
        self._path = path

    def read(self, root: Any) -> Metadata:
        if type(root) is not Object or not root.name.endswith("Metadata"):
            raise ValueError(f"it holds {root!r:.80}")
        members = _members(root)
        places = dict(self._place(*pair) for pair in members["storage_data"].pairs)
        tensors: dict[str, StoredTensor] = {}
        objects: dict[str, Place] = {}
        for name, stored in members["state_dict_metadata"].pairs:
            if not is_text(name) or name in tensors or name in objects:
                raise ValueError(f"a key is {name!a:.80}, expected a string, once")
            if stored.name == _MODULE + "TensorStorageMetadata":
                tensors[name] = self._tensor(name, _members(stored), places)
            elif stored.name == _MODULE + "BytesStorageMetadata":
                objects[name] = self._found(places, name, None)
            else:
                raise ValueError(f"{name} is {stored!r:.80}")
        planner_data = members.get("planner_data")
        paths = None if planner_data is None else {name: _path(path) for name, path in planner_data.pairs}
        return Metadata(tensors, objects, paths, _true_shapes(members.get("mcore_data")))

    def _place(self, index: Any, info: Any) -> tuple[tuple[str, Extents | None], Place]:
        key, value = _members(index), _members(info)
        offset = None if key.get("offset") is None else _sizes(key["offset"])
        transforms = value.get("transform_descriptors")
        begin, size = value["offset"], value["length"]
        if type(value["relative_path"]) is not str or type(key["fqn"]) is not str or _natural(begin) + _natural(size) < 0:
            raise ValueError("a place is no name of a file")
        return (key["fqn"], offset), Place(value["relative_path"], begin, size, tuple(str(one) for one in transforms or ()))

    def _found(self, places: dict[tuple[str, Extents | None], Place], name: str, offset: Extents | None) -> Place:
        place = places.get((name, offset))
        if place is None:
            at = "" if offset is None else f" at {list(offset)}"
            raise CorruptError(f"the metadata names no file for the part{at}", path=self._path, tensor=name)
        if place.transforms:
            raise UnsupportedError(
                f"its bytes were transformed by {', '.join(place.transforms)}, expected as torch.save wrote them",
                path=self._path,
                tensor=name,
            )
        return place

    def _tensor(self, name: str, members: dict[str, Any], places: dict[tuple[str, Extents | None], Place]) -> StoredTensor:
        state = members["properties"].state
        dtype = state[0] if type(state) is tuple else _members(members["properties"])["dtype"]
        if type(dtype) is not Global or dtype.name.removeprefix("torch.") not in OF_TORCH:
            found = dtype.name if type(dtype) is Global else "none"
            raise UnsupportedError(f"dtype is {found}, which the format lacks", path=self._path, tensor=name)
        boxes: dict[Box, Place] = {}
        shape = _sizes(members["size"])
        for chunk in members["chunks"]:
            offset, extent = _sizes(_members(chunk)["offsets"]), _sizes(_members(chunk)["sizes"])
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


def _true_shapes(mcore_data: Any) -> dict[str, Extents]:
    shapes: dict[str, Extents] = {}
    for name, described in mcore_data.pairs if mcore_data is not None else ():
        values = dict(described.pairs)
        if values.get("nd_reformulated_orig_global_shape") is not None:
            shapes[name] = _sizes(values["nd_reformulated_orig_global_shape"])
    return shapes


def _members(described: Any) -> dict[str, Any]:
    """Of an object of a dataclass."""
    if type(described) is not Object:
        raise TypeError(f"{described!r:.80} is no object")
    if described.state is None:
        return {}
    if type(described.state) is not Dict:
        raise TypeError(f"state of {described!r:.80} is no mapping")
    return {str(key): value for key, value in described.state.pairs}


def is_text(value: Any) -> bool:
    """Whether it is a string without lone surrogates."""
    try:
        return type(value) is str and value.encode("utf-8") is not None
    except UnicodeEncodeError:
        return False


def _natural(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 1 << 62:
        raise ValueError(f"{value!r:.30} is no size")
    return value


def _sizes(value: Any) -> Extents:
    if type(value) is Object and value.name == "torch.Size":
        value = value.args[0]
    if type(value) not in (tuple, list) or len(value) > 64:
        raise ValueError(f"{value!r:.80} is no shape")
    return tuple(_natural(one) for one in value)


def _path(value: Any) -> Path:
    if type(value) not in (tuple, list) or not value or any(type(part) is not int and not is_text(part) for part in value):
        raise ValueError(f"{value!r:.80} is no path")
    return tuple(value)
