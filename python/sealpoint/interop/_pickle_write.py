# SPDX-License-Identifier: Apache-2.0
"""Pickles of nodes (spec/tree.md) in protocol 2, as torch.save writes them. The pickled objects are never created."""

from __future__ import annotations

import base64
import re
import struct
from collections.abc import Callable, Iterable
from typing import Any

from sealpoint._errors import CorruptError, Error, UnsupportedError
from sealpoint._tree import KIND, Node, Path, text_of
from sealpoint.interop._boxes import Extents
from sealpoint.interop._dtypes import ITEM_SIZE, OF_TORCH, TO_NUMPY_CODE, TO_STORAGE, TO_TORCH

_CLASS = re.compile(r"megatron(\.[A-Za-z_][A-Za-z0-9_]*)+")
_DEVICE = re.compile(r"([a-z_]+)(?::(\d{1,6}))?")


class Raw(bytes):
    """A pickled value without a frame: opcodes that leave the value on the stack."""


def frame(value: Raw) -> bytes:
    """Builds a complete pickle."""
    return b"\x80\x02" + value + b"."


def global_(module: str, name: str) -> Raw:
    return Raw(f"c{module}\n{name}\n".encode("ascii"))


def tuple_(items: Iterable[Raw]) -> Raw:
    return Raw(b"(" + b"".join(items) + b"t")


def call(function: Raw, *args: Raw) -> Raw:
    return Raw(function + tuple_(args) + b"R")


def plain(value: Any) -> Raw:
    """Pickles None, booleans, numbers, strings, bytes, and lists and tuples of these."""
    if value is None or value is True or value is False:
        return Raw({None: b"N", True: b"\x88", False: b"\x89"}[value])
    if type(value) is int:
        return _int(value)
    if type(value) is float:
        return Raw(b"G" + struct.pack(">d", value))
    if type(value) is str:
        text = value.encode("utf-8", "surrogatepass")
        return Raw(b"X" + struct.pack("<I", len(text)) + text)
    if type(value) is bytes:
        return call(global_("_codecs", "encode"), plain(value.decode("latin1")), plain("latin1"))
    if type(value) is list:
        return list_(plain(item) for item in value)
    assert type(value) is tuple
    return tuple_(plain(item) for item in value)


def _int(value: int) -> Raw:
    if 0 <= value < 256:
        return Raw(b"K" + bytes([value]))
    if -(1 << 31) <= value < 1 << 31:
        return Raw(b"J" + struct.pack("<i", value))
    data = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
    return Raw(b"\x8a" + bytes([len(data)]) + data if len(data) < 256 else b"\x8b" + struct.pack("<I", len(data)) + data)


def list_(items: Iterable[Raw]) -> Raw:
    return Raw(b"](" + b"".join(items) + b"e")


def dict_(pairs: Iterable[tuple[Raw, Raw]]) -> Raw:
    return Raw(b"}(" + b"".join(key + value for key, value in pairs) + b"u")


def object_(module: str, name: str, state: Raw) -> Raw:
    """Pickles an object of this class: unpickling creates it without arguments and then sets this state."""
    return Raw(global_(module, name) + b")\x81" + state + b"b")


def size(shape: Extents) -> Raw:
    return call(global_("torch", "Size"), plain(shape))


def tensor(dtype: str, shape: Extents, key: str) -> Raw:
    """Pickles a dense row-major tensor that covers the storage of this key."""
    count, strides, step = 1, [], 1
    for extent in shape:
        count *= extent
    for extent in reversed(shape):
        strides.append(step)
        step *= max(extent, 1)
    if dtype in TO_STORAGE:
        storage, numel = global_("torch", TO_STORAGE[dtype]), count
    else:
        storage, numel = global_("torch.storage", "UntypedStorage"), count * ITEM_SIZE[dtype]
    id_ = tuple_([plain("storage"), storage, plain(key), plain("cpu"), plain(numel)])
    hooks = call(global_("collections", "OrderedDict"))
    common = (Raw(id_ + b"Q"), plain(0), plain(shape), plain(tuple(reversed(strides))), plain(False), hooks)
    if dtype in TO_STORAGE:
        return call(global_("torch._utils", "_rebuild_tensor_v2"), *common)
    return call(global_("torch._utils", "_rebuild_tensor_v3"), *common, global_("torch", TO_TORCH[dtype]))


class NodePickler:
    """Pickles nodes. ``tensor_of`` returns the pickle of a stored tensor by name."""

    def __init__(self, tensor_of: Callable[[str], Raw]) -> None:
        self._tensor_of = tensor_of

    def dump(self, node: Node, path: Path) -> Raw:
        """Pickles a node. Raises CorruptError. If a value has no plain form, raises UnsupportedError, which names the path."""
        try:
            return self._dump(node, path)
        except RecursionError:
            raise CorruptError("values are nested too deeply", object=text_of(path[:8])) from None

    def _dump(self, node: Node, path: Path) -> Raw:
        if isinstance(node, list):
            return list_(self._items(node, path))
        if not isinstance(node, dict):
            return plain(node)
        kind = node.get(KIND)
        if kind is None:
            return dict_((plain(key), self._dump(value, (*path, key))) for key, value in node.items())
        maker = _MAKERS.get(kind)
        if maker is None:
            value = "a per-rank value" if kind == "per_rank" else f"a value of the kind {kind!a:.40}"
            raise UnsupportedError(f"{value} cannot be represented in this format", object=text_of(path))
        try:
            return maker(self, node, path)
        except (KeyError, TypeError, ValueError, struct.error) as error:
            if isinstance(error, Error):
                raise
            raise CorruptError(f"tree has a malformed node: {error!r:.100}", object=text_of(path)) from None

    def _items(self, items: list[Node], path: Path) -> list[Raw]:
        return [self._dump(item, (*path, i)) for i, item in enumerate(items)]

    def _tensor(self, node: Node, path: Path) -> Raw:
        return self._tensor_of(node["name"])

    def _dict(self, node: Node, path: Path) -> Raw:
        return dict_((self._dump(key, path), self._dump(value, (*path, str(key)))) for key, value in node["items"])

    def _tuple(self, node: Node, path: Path) -> Raw:
        return tuple_(self._items(node["items"], path))

    def _set(self, node: Node, path: Path) -> Raw:
        return call(global_("__builtin__", node[KIND]), list_(self._items(node["items"], path)))

    def _size(self, node: Node, path: Path) -> Raw:
        return size(tuple(int(n) for n in node["items"]))

    def _integer(self, node: Node, path: Path) -> Raw:
        return plain(int(node["value"]))

    def _float(self, node: Node, path: Path) -> Raw:
        return plain({"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf")}[node["value"]])

    def _complex(self, node: Node, path: Path) -> Raw:
        return call(global_("__builtin__", "complex"), self._dump(node["real"], path), self._dump(node["imag"], path))

    def _bytes(self, node: Node, path: Path) -> Raw:
        return plain(base64.b64decode(node["base64"], validate=True))

    def _file(self, node: Node, path: Path) -> Raw:
        state = plain((base64.b64decode(node["base64"], validate=True), 0, None))
        return Raw(global_("_io", "BytesIO") + b")\x81" + state + b"b")

    def _dtype(self, node: Node, path: Path) -> Raw:
        if node["name"] not in OF_TORCH:
            raise UnsupportedError(f"dtype {node['name']!a:.40} is none of torch's", object=text_of(path))
        return global_("torch", node["name"])

    def _device(self, node: Node, path: Path) -> Raw:
        match = _DEVICE.fullmatch(node["name"])
        if match is None:
            raise ValueError(f"device {node['name']!a:.40}")
        return call(global_("torch", "device"), plain(match[1]), *([plain(int(match[2]))] if match[2] else []))

    def _namespace(self, node: Node, path: Path) -> Raw:
        return object_("argparse", "Namespace", self._dump(node["items"], path))

    def _enum(self, node: Node, path: Path) -> Raw:
        if "value" not in node or not _CLASS.fullmatch(node["class"]) or type(node["value"]) not in (int, str):
            raise UnsupportedError(
                f"a member of the enumeration {node['class']!a:.100}, whose value is not known", object=text_of(path)
            )
        module, _, name = node["class"].rpartition(".")
        return call(global_(module, name), plain(node["value"]))

    def _array(self, node: Node, path: Path) -> Raw:
        if node["dtype"] not in TO_NUMPY_CODE:
            raise UnsupportedError(f"dtype of the array is {node['dtype']!a:.40}, which numpy lacks", object=text_of(path))
        code = TO_NUMPY_CODE[node["dtype"]]
        order = "|" if ITEM_SIZE[node["dtype"]] == 1 else "<"
        dtype = Raw(
            call(global_("numpy", "dtype"), plain(code), plain(False), plain(True))
            + plain((3, order, None, None, None, -1, -1, 0))
            + b"b"
        )
        data = plain(base64.b64decode(node["base64"], validate=True))
        if "shape" not in node:
            return call(global_("numpy._core.multiarray", "scalar"), dtype, data)
        empty = call(
            global_("numpy._core.multiarray", "_reconstruct"), global_("numpy", "ndarray"), plain((0,)), plain(b"b")
        )
        shape = tuple(int(n) for n in node["shape"])
        return Raw(empty + tuple_([plain(1), plain(shape), dtype, plain(False), data]) + b"b")


_MAKERS: dict[str, Callable[[NodePickler, Node, Path], Raw]] = {
    "tensor": NodePickler._tensor, "dict": NodePickler._dict, "tuple": NodePickler._tuple, "set": NodePickler._set,
    "frozenset": NodePickler._set, "size": NodePickler._size, "int": NodePickler._integer, "float": NodePickler._float,
    "complex": NodePickler._complex, "bytes": NodePickler._bytes, "file": NodePickler._file, "dtype": NodePickler._dtype,
    "device": NodePickler._device,
    "namespace": NodePickler._namespace, "enum": NodePickler._enum, "array": NodePickler._array,
}  # fmt: skip
