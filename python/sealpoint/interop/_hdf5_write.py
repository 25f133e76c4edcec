# SPDX-License-Identifier: Apache-2.0
"""Writes HDF5 files with h5py: a dataset per tensor, and an attribute of the root group per number or string.

Attributes of tensors and of the checkpoint become those of datasets and of the root group.
"""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from sealpoint import _tree
from sealpoint._dtypes import name_of, numpy
from sealpoint._errors import CorruptError, Error, MismatchError, UnsupportedError
from sealpoint._rules import is_text
from sealpoint._tree import text_of
from sealpoint._tree_paths import kind_of
from sealpoint.interop._boxes import Box, Extents, whole
from sealpoint.interop._cast import FLOATS
from sealpoint.interop._copy import Work, buffer_for, compare
from sealpoint.interop._dtypes import TO_NUMPY_CODE
from sealpoint.interop._files import io_error
from sealpoint.interop._select import leaves
from sealpoint.interop._source import Reader, State, Tensor, attributes_of, size_of, slices_of
from sealpoint.interop._torch_write import empty_mappings

# All versions of HDF5 since 1.8 read the file. Older forms have no room for long attributes.
_VERSIONS = ("v108", "latest")
_ROOT = "/"
_NUMBERS = range(-(2**63), 2**64)


def _h5py() -> Any:
    try:
        return importlib.import_module("h5py")
    except ImportError as error:
        raise UnsupportedError(f"HDF5 needs the package h5py: pip install 'sealpoint[hdf5]' ({error})") from error


@contextmanager
def _converted(path: str) -> Iterator[None]:
    """Converts the errors of h5py, many of which have the number of the system's error only in their text."""
    try:
        yield
    except Error:
        raise
    except (OSError, RuntimeError, ValueError) as error:
        number = re.search(r"\berrno = (\d+)", str(error))
        raise io_error(OSError(int(number[1]), os.strerror(int(number[1]))) if number else OSError(str(error)), path) from error


class Content(NamedTuple):
    """Content of a file. ``links`` has further paths of tensors, and ``values`` the attributes of each group and dataset."""

    links: dict[str, str]
    values: dict[str, dict[str, Any]]


def content_of(state: State) -> Content:
    """Returns the content of the file for a state. Raises UnsupportedError for an item that HDF5 cannot store unchanged."""
    _h5py()
    state.notes.extend(f"{text_of(path)} is an empty mapping, which HDF5 does not keep" for path in empty_mappings(state.tree))
    content, paths = Content({}, {_ROOT: dict(state.attributes)}), dict.fromkeys(state.tensors)
    for path, node in leaves(state.tree):
        name = text_of(path)
        if kind_of(node) != "tensor":
            if name in state.attributes:
                raise UnsupportedError("a value and an attribute have this name; leave the value out (--drop)", object=name)
            content.values[_ROOT][name] = _value(name, node)
        elif name != node["name"]:
            content.links[name] = node["name"]
            if paths.setdefault(name, node["name"]) != node["name"]:
                raise UnsupportedError("two places of the state have this name", tensor=name)
    for tensor in state.tensors.values():
        content.values[tensor.name] = attributes_of(tensor)
        if tensor.dtype not in TO_NUMPY_CODE:
            cast = "convert it (--dtype f32), " if tensor.dtype in FLOATS else ""
            raise UnsupportedError(
                f"dtype is {tensor.dtype}, which HDF5 lacks; {cast}leave it out (--drop), or choose another format (--to)",
                tensor=tensor.name,
            )
    for place, values in content.values.items():
        if lost := next((name for name, value in values.items() if not all(map(_is_text, [name, *_items(value)]))), None):
            raise UnsupportedError(f"HDF5 cannot store the text of the attribute {lost}", tensor=place)
    for name in paths:
        parts = name.split("/")
        if "\0" in name or not {"", "."}.isdisjoint(parts):
            raise UnsupportedError("HDF5 has no such path, because a part is empty or '.'; rename it (--rename)", tensor=name)
        for end in range(1, len(parts)):
            if (group := "/".join(parts[:end])) in paths:
                raise UnsupportedError(f"{group} is a tensor and would also be a group in HDF5; rename it (--rename)", tensor=name)
    return content


def _value(name: str, node: Any) -> Any:
    is_plain = isinstance(node, (str, int, float)) or kind_of(node) in ("int", "float")
    value = _tree.Decoder(str).decode(node) if is_plain else None
    if value is None or (type(value) is int and value not in _NUMBERS):
        raise UnsupportedError("HDF5 stores only numbers and strings beside tensors; leave it out (--tensors-only)", object=name)
    if not name or not _is_text(name) or not _is_text(value):
        raise UnsupportedError("HDF5 has no attribute with this text; leave it out (--tensors-only)", object=name)
    return value


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _is_text(value: Any) -> bool:
    return not isinstance(value, str) or (is_text(value) and "\0" not in value)


def write(state: State, content: Content, path: str, work: Work) -> None:
    """Writes a new file, which the caller makes durable. Raises NoSpaceError, IoError, and the errors of sources."""
    tensors = state.tensors.values()
    with _converted(path), _h5py().File(path, "x", libver=_VERSIONS) as file:
        for tensor in tensors:
            file.create_dataset(tensor.name, tensor.shape, TO_NUMPY_CODE[tensor.dtype])
        for place, values in content.values.items():
            for name, value in values.items():
                is_text_list = isinstance(value, list) and all(isinstance(item, str) for item in value)
                file[place].attrs.create(name, value, dtype=_h5py().string_dtype() if is_text_list else None)
        work.begin("convert", sum(map(size_of, tensors)))
        work.run(lambda tensor: _fill(file[tensor.name], tensor, work), tensors)
        for link, name in content.links.items():
            file[link] = file[name]


def _fill(dataset: Any, tensor: Tensor, work: Work) -> None:
    reader, box = tensor.reader(work.reader_bytes), whole(tensor.shape)
    buffer = buffer_for(tensor, [box], work)
    for slab in work.slabs(tensor, box):
        part = buffer[: slab.size * dataset.dtype.itemsize]
        reader.read(slab, part)
        dataset[slices_of(slab)] = numpy().frombuffer(part, dataset.dtype).reshape(slab.extent)
        work.add(len(part))
    reader.finish()


class _Dataset:
    """A dataset as a tensor of a source."""

    is_protected = False

    def __init__(self, name: str, dataset: Any) -> None:
        self.name, self._dataset = name, dataset
        self.dtype, self.shape = name_of(dataset.dtype) or str(dataset.dtype), dataset.shape

    @property
    def boxes(self) -> list[Box]:
        return [whole(self.shape)]

    def reader(self, memory_bytes: int) -> Reader:
        return self

    def read(self, box: Box, out: memoryview) -> None:
        array = numpy().frombuffer(out, self._dataset.dtype).reshape(box.extent)
        self._dataset.read_direct(array, slices_of(box))

    def finish(self) -> None:
        """Does nothing, because HDF5 has no checksums here."""


def verify(state: State, content: Content, path: str, work: Work) -> int:
    """Compares a file with its source. Returns the compared size in bytes. Raises CorruptError and MismatchError."""
    with _converted(path), _h5py().File(path, "r") as file:
        for place, values in content.values.items():
            for name, value in values.items():
                found = file[place].attrs.get(name)
                if repr(found.tolist() if hasattr(found, "tolist") else found) != repr(value):
                    raise MismatchError("value in the destination differs from the value in the source", path=path, object=name)
        for link, name in content.links.items():
            if file[link] != file[name]:
                raise CorruptError(f"is not the tensor {name}, as in the source", path=path, tensor=link)
        tensors: dict[str, Tensor] = {name: _Dataset(name, file[name]) for name in state.tensors}
        return compare(state, State("hdf5", path, {}, tensors, []), work)
