# SPDX-License-Identifier: Apache-2.0
"""From descriptions of pickled values to nodes of spec/tree.md and to tensors that still lie in their file."""

from __future__ import annotations

import argparse
import base64
from collections.abc import Callable
from typing import Any, NamedTuple

from sealpoint import _tree
from sealpoint._dtypes import numpy, numpy_dtype
from sealpoint._errors import CorruptError, Error, LimitExceededError, UnsupportedError
from sealpoint._tree import KIND, Node, Path, text_of
from sealpoint.convert._dtypes import ITEM_SIZE, OF_NUMPY_CODE, OF_STORAGE, OF_TORCH
from sealpoint.convert._pickle import Dict, Global, Object, Persistent, Set

_DEPTH_MAX = 200
# More places than a pickle of this length has unless it is made to explode.
_PLACES_MIN = 1_000_000

_BUILTINS = ("__builtin__", "builtins")
_NUMPY_MODULES = ("numpy.core.multiarray", "numpy._core.multiarray")
_FROM_BUFFER = ("numpy.core.numeric._frombuffer", "numpy._core.numeric._frombuffer")
_PARAMETERS = ("torch._utils._rebuild_parameter", "torch._utils._rebuild_parameter_with_state")
_FROM_TYPE = "torch._tensor._rebuild_from_type_v2"
_TENSORS = ("torch._utils._rebuild_tensor_v2", "torch._utils._rebuild_tensor_v3")
_PLAIN_TYPES = ("torch.Tensor", "torch.nn.parameter.Parameter")
_MAPPINGS = ("collections.OrderedDict",)
_UNTYPED = ("torch.storage.UntypedStorage", "torch.UntypedStorage")

_KNOWN = {
    "torch.Size", "torch.device", "argparse.Namespace", "_codecs.encode", "numpy.ndarray", "numpy.dtype", "_io.BytesIO",
    *(f"{module}.{name}" for module in _BUILTINS for name in ("set", "frozenset", "bytes", "bytearray", "complex")),
    *(f"{module}.{name}" for module in _NUMPY_MODULES for name in ("_reconstruct", "scalar")),
    *_FROM_BUFFER, *_PARAMETERS, _FROM_TYPE, *_TENSORS, *_PLAIN_TYPES, *_MAPPINGS, *_UNTYPED,
    *(f"torch.{name}" for name in OF_TORCH), *(f"torch.{name}" for name in OF_STORAGE),
}  # fmt: skip


class Known:
    """Names that values of states may have: those above, and enumerations of Megatron's."""

    def __contains__(self, name: object) -> bool:
        return name in _KNOWN or (isinstance(name, str) and name.startswith("megatron."))


class StoredTensor(NamedTuple):
    """A tensor within a storage: ``begin`` and ``strides`` in elements, ``storage_size`` in bytes."""

    key: str
    storage_size: int
    dtype: str
    begin: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


class _Ready:
    """A value that is a node already. May be part of a key: Megatron has keys of dtypes."""

    def __init__(self, node: Node, text: str = "") -> None:
        self.node, self._text = node, text

    def __repr__(self) -> str:
        return self._text


class _Unknown(Exception):
    """A value of a class that has no node."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class _Encoder(_tree.Encoder):
    def _encode_composite(self, value: Any, path: Path) -> Node:
        return value.node if isinstance(value, _Ready) else super()._encode_composite(value, path)


class Values:
    """Makes nodes of what one pickle describes.

    Args:
        add_tensor: gets the path's text and a tensor, and returns the name under which it is stored.
        where, offset: the file, and where the pickle begins in it; for errors.
        size: of the pickle, in bytes: it bounds how many values are expected.
        drop_unknown: called with the path and the class of each value that has no node, which is then left out with
            the entry of the mapping that it is in; None: such a value is an error.
    """

    def __init__(
        self,
        add_tensor: Callable[[str, StoredTensor], str],
        where: str,
        offset: int,
        size: int,
        drop_unknown: Callable[[str, str], None] | None = None,
    ) -> None:
        self._encoder = _Encoder(lambda value: isinstance(value, StoredTensor), add_tensor)
        self._where, self._offset = where, offset
        self._places_left = max(_PLACES_MIN, 4 * size)
        self._drop_unknown = drop_unknown

    def node(self, value: Any, path: Path = ()) -> Node:
        """Errors: UnsupportedError (no node for it; names class and path), CorruptError, LimitExceededError."""
        try:
            return self._encoder.encode(self._plain(value, path), path)
        except _Unknown as unknown:
            raise self._error(
                UnsupportedError, path, f"values of {unknown.name!a:.200} have no form in the format"
            ) from None
        except Error as error:
            error.path = error.path or self._where
            raise

    def _error(self, cls: type[Error], path: Path, message: str) -> Error:
        return cls(message, path=self._where, offset=self._offset, object=text_of(path) or None)

    def _plain(self, value: Any, path: Path) -> Any:
        self._places_left -= 1
        if len(path) > _DEPTH_MAX:
            raise self._error(
                LimitExceededError, path[:8], f"values are nested deeper than {_DEPTH_MAX} levels, or in a cycle"
            )
        if self._places_left < 0:
            raise self._error(LimitExceededError, path[:8], "the pickle unfolds to more values than its length allows")
        if value is None or type(value) in (bool, int, float, str, bytes):
            return value
        if type(value) in (list, tuple):
            return type(value)(self._plain(one, (*path, i)) for i, one in enumerate(value))
        if type(value) is Dict:
            return self._mapping(value.pairs, path)
        if type(value) is Set:
            return self._set(value.items, value.is_frozen, path)
        if type(value) is Object:
            return self._object(value, path)
        if type(value) is Global:
            if value.name.removeprefix("torch.") in OF_TORCH:
                return _Ready({KIND: "dtype", "name": value.name.removeprefix("torch.")}, value.name)
            raise _Unknown(value.name)
        raise self._error(CorruptError, path, f"a value is a {type(value).__name__}, expected no such thing there")

    def _mapping(self, pairs: list[tuple[Any, Any]], path: Path) -> dict[Any, Any]:
        result: dict[Any, Any] = {}
        for key_described, described in pairs:
            key = self._plain(key_described, path)
            if type(key) not in (str, int, float, bool, tuple, type(None)):
                raise self._error(UnsupportedError, path, f"a key is a {type(key).__name__}, expected a string or a number")
            try:
                result[key] = self._plain(described, (*path, _tree._part_of(key)))
            except _Unknown as unknown:
                if self._drop_unknown is None:
                    raise self._error(
                        UnsupportedError,
                        (*path, _tree._part_of(key)),
                        f"values of {unknown.name!a:.200} have no form in the format",
                    ) from None
                self._drop_unknown(text_of((*path, _tree._part_of(key))), unknown.name)
            except TypeError:
                raise self._error(CorruptError, path, "a key holds what no key can hold") from None
        return result

    def _set(self, items: list[Any], is_frozen: bool, path: Path) -> Any:
        try:
            made = {self._plain(one, (*path, i)) for i, one in enumerate(items)}
        except TypeError:
            raise self._error(CorruptError, path, "a set holds what no set can hold") from None
        return frozenset(made) if is_frozen else made

    def _object(self, value: Object, path: Path) -> Any:
        name, args = value.name, value.args
        try:
            if name in _TENSORS or name in _PARAMETERS or name == _FROM_TYPE:
                return self._tensor(value, path)
            if name in _MAPPINGS:
                first = [tuple(pair) for pair in args[0]] if args else []
                return self._mapping([*first, *value.pairs], path)
            if name == "torch.Size":
                return _Ready({KIND: "size", "items": [_natural(extent) for extent in args[0]]})
            if name == "torch.device":
                return _Ready({KIND: "device", "name": ":".join(str(_text_or_int(part)) for part in args)})
            if name == "argparse.Namespace":
                return argparse.Namespace(**self._mapping(value.state.pairs if value.state else [], path))
            if name == "_io.BytesIO":
                return _Ready({KIND: "file", "base64": _tree._base64(self._bytes(value.state[0], path))})
            if name == "_codecs.encode":
                text, encoding = args
                return text.encode({"latin1": "latin1", "latin-1": "latin1"}[encoding])
            if name.startswith(("__builtin__.", "builtins.")):
                return self._builtin(name.rpartition(".")[2], args, path)
            if name.startswith("numpy."):
                return _Ready(self._array(value, path))
        except (IndexError, KeyError, TypeError, ValueError, AttributeError, UnicodeError) as error:
            raise self._error(CorruptError, path, f"an object of {name} is malformed: {error!r:.100}") from None
        if name.startswith("megatron.") and len(args) == 1 and type(args[0]) in (int, str) and value.state is None:
            return _Ready({KIND: "enum", "class": name, "value": args[0]})
        raise _Unknown(name)

    def _builtin(self, name: str, args: tuple[Any, ...], path: Path) -> Any:
        if name in ("set", "frozenset"):
            return self._set(args[0] if args else [], name == "frozenset", path)
        if name in ("bytes", "bytearray"):
            return self._bytes(args[0], path) if args else b""
        if name == "complex":
            real, imag = args
            return complex(float(real), float(imag))
        raise _Unknown(name)

    def _bytes(self, value: Any, path: Path) -> bytes:
        data = self._plain(value, path)
        if type(data) is not bytes:
            raise ValueError(f"bytes are a {type(data).__name__}")
        return data

    def _tensor(self, value: Object, path: Path) -> StoredTensor:
        if value.name in _PARAMETERS:
            return self._inner(value.args[0], path)
        if value.name == _FROM_TYPE:
            function, kind, arguments, _ = value.args
            if kind.name not in _PLAIN_TYPES:
                raise _Unknown(kind.name)
            return self._inner(Object(function.name, arguments), path)
        is_v3 = value.name.endswith("v3")
        storage, begin, shape, strides = value.args[:4]
        metadata = value.args[7 if is_v3 else 6 :]
        if metadata and metadata[0] and metadata[0].pairs:
            raise self._error(
                UnsupportedError, path, "the tensor is a view with a conjugate or negative bit; resolve it first"
            )
        return self._stored(storage, value.args[6].name if is_v3 else None, begin, _sizes(shape), _sizes(strides), path)

    def _inner(self, value: Any, path: Path) -> StoredTensor:
        if type(value) is not Object or value.name not in (*_TENSORS, *_PARAMETERS):
            raise ValueError("a parameter without a tensor")
        if len(path) > _DEPTH_MAX:
            raise ValueError("a parameter of parameters")
        return self._tensor(value, (*path, ""))

    def _stored(
        self, storage: Any, torch_dtype: str | None, begin: int, shape: tuple[int, ...], strides: tuple[int, ...], path: Path
    ) -> StoredTensor:
        if type(storage) is not Persistent or type(storage.id) is not tuple or storage.id[0] != "storage":
            raise ValueError("a tensor without a storage")
        _, cls, key, _, count = storage.id
        dtype = (
            OF_TORCH.get(torch_dtype.removeprefix("torch."))
            if torch_dtype
            else OF_STORAGE.get(cls.name.removeprefix("torch."))
        )
        if dtype is None:
            raise self._error(
                UnsupportedError, path, f"a tensor has the dtype of {torch_dtype or cls.name}, which the format lacks"
            )
        if type(key) is not str or len(shape) != len(strides):
            raise ValueError(f"{len(shape)} extents and {len(strides)} strides")
        size = _natural(count) * (1 if cls.name in _UNTYPED else ITEM_SIZE[dtype])
        last = _natural(begin) + sum((n - 1) * stride for n, stride in zip(shape, strides, strict=True))
        if 0 not in shape and (last + 1) * ITEM_SIZE[dtype] > size:
            raise self._error(
                CorruptError, path, f"tensor ends at byte {(last + 1) * ITEM_SIZE[dtype]} of its storage, which has {size}"
            )
        return StoredTensor(key, size, dtype, begin, shape, strides)

    def _array(self, value: Object, path: Path) -> Node:
        """Of an array or a scalar of numpy."""
        if value.name in _FROM_BUFFER:
            data, dtype, shape, order = value.args
            is_fortran = order == "F"
        elif value.name.endswith("._reconstruct"):
            _, shape, dtype, is_fortran, data = value.state
        elif value.name.endswith(".scalar"):
            dtype, data = value.args
            return {KIND: "array", "dtype": _array_dtype(dtype), "base64": _tree._base64(self._bytes(data, path))}
        else:
            raise _Unknown(value.name)
        raw, name, extents = self._bytes(data, path), _array_dtype(dtype), _sizes(shape)
        if is_fortran:
            array = numpy().frombuffer(raw, numpy_dtype(name)).reshape(extents, order="F")
            raw = array.tobytes("C")
        count = 1
        for extent in extents:
            count *= extent
        if count * ITEM_SIZE[name] != len(raw):
            raise ValueError(f"{len(raw)} bytes of an array of {list(extents)}")
        return {KIND: "array", "dtype": name, "base64": base64.b64encode(raw).decode("ascii"), "shape": list(extents)}


def _array_dtype(dtype: Any) -> str:
    if type(dtype) is not Object or dtype.name != "numpy.dtype":
        raise ValueError("an array without a dtype")
    if dtype.state is not None and dtype.state[1] not in ("<", "|", "="):
        raise ValueError("an array is big-endian")
    return OF_NUMPY_CODE[dtype.args[0]]


def _natural(value: Any) -> int:
    if type(value) is not int or value < 0 or value >= 1 << 62:
        raise ValueError(f"{value!r:.30} is no size")
    return value


def _sizes(value: Any) -> tuple[int, ...]:
    """Of a tuple, or of torch.Size."""
    if type(value) is Object and value.name == "torch.Size":
        value = value.args[0]
    if type(value) not in (tuple, list) or len(value) > 64:
        raise ValueError("a shape is no tuple of sizes")
    return tuple(_natural(one) for one in value)


def _text_or_int(value: Any) -> str | int:
    if type(value) not in (str, int):
        raise ValueError("a device is no text")
    return value  # type: ignore[no-any-return]
