# SPDX-License-Identifier: Apache-2.0
"""From descriptions of pickled values to nodes of spec/tree.md and to tensors that still lie in their file."""

from __future__ import annotations

import argparse
import base64
import math
from collections.abc import Callable
from typing import Any, NamedTuple

from sealpoint import _tree
from sealpoint._dtypes import numpy, numpy_dtype
from sealpoint._errors import CorruptError, Error, LimitExceededError, UnsupportedError
from sealpoint._tree import KIND, Node, Path, text_of
from sealpoint.convert._budget import Budget, cost_of_text
from sealpoint.convert._dtypes import ITEM_SIZE, OF_NUMPY_CODE, OF_STORAGE, OF_TORCH
from sealpoint.convert._pickle import TEXT_COST, Dict, Global, Object, Persistent, Set, kind_name

# In the place of a node: the value is left out, with the entry of the mapping that it is in.
LEFT_OUT = object()

_DEPTH_MAX = 200
# More places than a pickle of this length has unless it is made to explode.
_PLACES_MIN = 1_000_000

# What nodes cost in memory, in bytes, beside their text: a list of numbers costs 16 each.
_SCALAR_COST, _NODE_COST, _ENTRY_COST, _TENSOR_COST, _SIZE_COST = 16, 256, 208, 1536, 64
_SMALL_INT_BITS = 53

_BUILTINS = ("__builtin__", "builtins")
_NUMPY_MODULES = ("numpy.core.multiarray", "numpy._core.multiarray")
_FROM_BUFFER = ("numpy.core.numeric._frombuffer", "numpy._core.numeric._frombuffer")
_PARAMETERS = ("torch._utils._rebuild_parameter", "torch._utils._rebuild_parameter_with_state")
_FROM_TYPE = "torch._tensor._rebuild_from_type_v2"
_TENSORS = ("torch._utils._rebuild_tensor", "torch._utils._rebuild_tensor_v2", "torch._utils._rebuild_tensor_v3")
_PLAIN_TYPES = ("torch.Tensor", "torch.nn.parameter.Parameter")
_MAPPINGS = ("collections.OrderedDict", "collections.Counter", "collections.defaultdict")
_DEQUE = "collections.deque"
_COMPLEX = ("c32", "c64", "c128")
_REAL = ("f16", "bf16", "f32", "f64")
UNTYPED = ("torch.storage.UntypedStorage", "torch.UntypedStorage")

_KNOWN = {
    "torch.Size", "torch.device", "argparse.Namespace", "_codecs.encode", "numpy.ndarray", "numpy.dtype", "_io.BytesIO",
    *(f"{module}.{name}" for module in _BUILTINS for name in ("set", "frozenset", "bytes", "bytearray", "complex")),
    *(f"{module}.{name}" for module in _NUMPY_MODULES for name in ("_reconstruct", "scalar")),
    *_FROM_BUFFER, *_PARAMETERS, _FROM_TYPE, *_TENSORS, *_PLAIN_TYPES, *_MAPPINGS, _DEQUE, *UNTYPED,
    *(f"torch.{name}" for name in OF_TORCH), *(f"torch.{name}" for name in OF_STORAGE),
}  # fmt: skip


class Known:
    """Names that values of states may have: those above, and enumerations of Megatron's."""

    def __contains__(self, name: object) -> bool:
        return name in _KNOWN or (isinstance(name, str) and name.startswith("megatron."))


class StoredTensor(NamedTuple):
    """A tensor within a storage: ``begin`` and ``strides`` in elements, ``storage_size`` in bytes.

    ``is_conjugate``, ``is_negative``: what is stored is the conjugate of the elements, or their negative.
    """

    key: str
    storage_size: int
    dtype: str
    begin: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    is_conjugate: bool = False
    is_negative: bool = False

    @property
    def sign_mask(self) -> bytes | None:
        """What the bits of an element that is stored differ in from those of the element; None: in nothing."""
        if not self.is_conjugate and not self.is_negative:
            return None
        return bytes(ITEM_SIZE[self.dtype] - 1) + b"\x80"  # of the imaginary part, or of the number


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


class _MalformedError(Exception):
    """A sentence, which formats no value of the file."""


class _Encoder(_tree.Encoder):
    def _encode_composite(self, value: Any, path: Path) -> Node:
        return value.node if isinstance(value, _Ready) else super()._encode_composite(value, path)


class Values:
    """Makes nodes of what one pickle describes.

    Args:
        add_tensor: gets the path's text and a tensor, and returns the name under which it is stored.
        budget: gets the cost of all nodes.
        where, offset: the file, and where the pickle begins in it; for errors.
        size: of the pickle, in bytes: it bounds how many values are expected.
        on_unknown: gets the path and the class of each value that has no node, and returns a node for the entry of the
            mapping that it is in, or LEFT_OUT; None: such a value is an error.
    """

    def __init__(
        self,
        add_tensor: Callable[[str, StoredTensor], str],
        budget: Budget,
        where: str,
        offset: int,
        size: int,
        on_unknown: Callable[[Path, str], Any] | None = None,
    ) -> None:
        self._encoder = _Encoder(lambda value: isinstance(value, StoredTensor), add_tensor)
        self._where, self._offset = where, offset
        self._budget = budget
        self._places_left = max(_PLACES_MIN, 4 * size)
        self._on_unknown = on_unknown

    def node(self, value: Any, path: Path = ()) -> Any:
        """The node, or LEFT_OUT.

        Errors: UnsupportedError (no node for it; names class and path), CorruptError, LimitExceededError.
        """
        try:
            return self._encoder.encode(self._plain(value, path), path)
        except _Unknown as unknown:
            return self._instead(path, unknown)
        except Error as error:
            error.path = error.path or self._where
            raise

    def _add(self, cost: int) -> None:
        self._budget.add(cost, self._where)

    def _error(self, cls: type[Error], path: Path, message: str) -> Error:
        return cls(message, path=self._where, offset=self._offset, object=text_of(path) or None)

    def _instead(self, path: Path, unknown: _Unknown) -> Any:
        if self._on_unknown is None:
            raise self._error(
                UnsupportedError, path, f"values of {unknown.name!a:.200} have no form in the format"
            ) from None
        return self._on_unknown(path, unknown.name)

    def _plain(self, value: Any, path: Path) -> Any:
        self._places_left -= 1
        if len(path) > _DEPTH_MAX:
            raise self._error(
                LimitExceededError, path[:8], f"values are nested deeper than {_DEPTH_MAX} levels, or in a cycle"
            )
        if self._places_left < 0:
            raise self._error(LimitExceededError, path[:8], "the pickle unfolds to more values than its length allows")
        self._add(_SCALAR_COST)
        if value is None or type(value) in (bool, float):
            return value
        if type(value) is int:
            if value.bit_length() > _SMALL_INT_BITS:
                self._add(_NODE_COST + value.bit_length())
            return value
        if type(value) is str:
            self._add(TEXT_COST + cost_of_text(value.encode("utf-8", "surrogatepass")))
            return value
        if type(value) is bytes:
            self._add(_NODE_COST + 2 * len(value))
            return value
        self._add(_NODE_COST)
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
        above = sum(1 + len(str(part)) for part in path)
        for key_described, described in pairs:
            key = self._plain(key_described, path)
            self._add(_ENTRY_COST + above + (len(key) if type(key) is str else 0))
            if type(key) not in (str, int, float, bool, tuple, type(None)):
                raise self._error(UnsupportedError, path, f"a key is a {type(key).__name__}, expected a string or a number")
            try:
                result[key] = self._plain(described, (*path, _tree.part_of(key)))
            except _Unknown as unknown:
                node = self._instead((*path, _tree.part_of(key)), unknown)
                if node is not LEFT_OUT:
                    result[key] = _Ready(node)
            except TypeError:
                raise self._error(CorruptError, path, "a key holds what no key can hold") from None
        return result

    def _set(self, items: list[Any], is_frozen: bool, path: Path) -> Any:
        try:
            self._add(_ENTRY_COST * len(items))
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
                return self._mapping([*_first_pairs(name, args), *value.pairs], path)
            if name == _DEQUE:
                return self._plain([*(_sequence(args[0]) if args else ()), *value.items], path)
            if name == "torch.Size":
                sizes = _sequence(_argument(args, 0))
                self._add(_SIZE_COST * len(sizes))
                return _Ready({KIND: "size", "items": [_natural(extent) for extent in sizes]})
            if name == "torch.device":
                return _Ready({KIND: "device", "name": ":".join(self._device_part(part) for part in args)})
            if name == "argparse.Namespace":
                return self._namespace(value.state, path)
            if name == "_io.BytesIO":
                content = _argument(_sequence(value.state), 0)
                return _Ready({KIND: "file", "base64": _tree.base64_of(self._bytes(content, path))})
            if name == "_codecs.encode":
                text, encoding = _argument(args, 0), _argument(args, 1)
                if type(text) is not str or type(encoding) is not str or encoding not in ("latin1", "latin-1"):
                    raise _MalformedError("bytes are no text in latin1")
                self._add(2 * len(text))
                return text.encode("latin1")
            if name.startswith(("__builtin__.", "builtins.")):
                return self._builtin(name, args, path)
            if name.startswith("numpy."):
                return _Ready(self._array(value, path))
        except _MalformedError as error:
            raise self._error(CorruptError, path, f"an object of {name:.200} is malformed: {error}") from None
        except UnicodeError:
            raise self._error(CorruptError, path, f"an object of {name:.200} is malformed: text is not in latin1") from None
        if name.startswith("megatron.") and len(args) == 1 and type(args[0]) in (int, str) and value.state is None:
            self._plain(args[0], path)  # for its cost
            return _Ready({KIND: "enum", "class": name, "value": args[0]})
        raise _Unknown(name)

    def _device_part(self, part: Any) -> str:
        if type(part) not in (str, int):
            raise _MalformedError("a device is no text")
        text = str(part)
        self._add(len(text))
        return text

    def _builtin(self, full_name: str, args: tuple[Any, ...], path: Path) -> Any:
        name = full_name.partition(".")[2]
        if name in ("set", "frozenset"):
            return self._set(_sequence(args[0]) if args else [], name == "frozenset", path)
        if name in ("bytes", "bytearray"):
            return self._bytes(args[0], path) if args else b""
        if name == "complex":
            if len(args) != 2:
                raise _MalformedError("a complex number has no two parts")
            if any(type(part) not in (int, float) for part in args):
                raise _MalformedError("a part is no number")
            try:
                return complex(float(args[0]), float(args[1]))
            except OverflowError:
                raise _MalformedError("a part is no number") from None
        raise _Unknown(full_name)

    def _bytes(self, value: Any, path: Path) -> bytes:
        data = self._plain(value, path)
        if type(data) is not bytes:
            raise _MalformedError(f"bytes are a {type(data).__name__}")
        return data

    def _tensor(self, value: Object, path: Path) -> StoredTensor:
        return self._inner(value, path, 0)

    def _inner(self, value: Any, path: Path, depth: int) -> StoredTensor:
        """Of a tensor, or of a parameter that has one."""
        if type(value) is not Object or value.name not in (*_TENSORS, *_PARAMETERS, _FROM_TYPE):
            raise _MalformedError("a parameter without a tensor")
        if depth > _DEPTH_MAX:
            raise _MalformedError("a parameter of parameters")
        if value.name in _PARAMETERS:
            return self._inner(_argument(value.args, 0), path, depth + 1)
        if value.name == _FROM_TYPE:
            function, kind, arguments = (_argument(value.args, i) for i in range(3))
            if type(function) is not Global or type(kind) is not Global or type(arguments) is not tuple:
                raise _MalformedError("a tensor of a class without a function")
            if kind.name not in _PLAIN_TYPES:
                raise _Unknown(kind.name)
            if function.name not in (*_TENSORS, *_PARAMETERS, _FROM_TYPE):
                raise _Unknown(function.name)
            return self._inner(Object(function.name, arguments), path, depth + 1)
        is_v3 = value.name.endswith("v3")
        stored = self._stored(value.args, _name(_argument(value.args, 6)) if is_v3 else None, path)
        metadata = value.args[7 if is_v3 else 6 :]
        for key, is_set in metadata[0].pairs if metadata and type(metadata[0]) is Dict else ():
            if is_set is True and type(key) is str and key == "conj" and stored.dtype in _COMPLEX:
                stored = stored._replace(is_conjugate=True)
            elif is_set is True and type(key) is str and key == "neg" and stored.dtype in _REAL:
                stored = stored._replace(is_negative=True)
            else:
                raise self._error(
                    UnsupportedError,
                    path,
                    f"the tensor of {stored.dtype} is a view with bits that are not known, expected conj of complex "
                    "numbers, or neg of real ones; resolve it first",
                )
        return stored

    def _stored(self, args: tuple[Any, ...], torch_dtype: str | None, path: Path) -> StoredTensor:
        storage, begin = _argument(args, 0), _natural(_argument(args, 1))
        shape, strides = _sizes(_argument(args, 2)), _sizes(_argument(args, 3))
        if type(storage) is not Persistent or type(storage.id) is not tuple or len(storage.id) != 5:
            raise _MalformedError("a tensor without a storage")
        kind, cls_described, key, _, count = storage.id
        if type(kind) is not str or kind != "storage":
            raise _MalformedError("a tensor without a storage")
        cls = _name(cls_described)
        dtype = (
            OF_TORCH.get(torch_dtype.removeprefix("torch.")) if torch_dtype else OF_STORAGE.get(cls.removeprefix("torch."))
        )
        if dtype is None:
            found = torch_dtype or cls
            raise self._error(UnsupportedError, path, f"a tensor has the dtype of {found:.200}, which the format lacks")
        if type(key) is not str or len(shape) != len(strides):
            raise _MalformedError(f"{len(shape)} extents and {len(strides)} strides")
        self._add(_TENSOR_COST + 3 * sum(1 + len(str(part)) for part in path) + len(key))
        unit = 1 if cls in UNTYPED else ITEM_SIZE[dtype]
        offset, end = (0, _natural(count)) if storage.view is None else storage.view
        size = _natural(count) * unit
        last = begin + sum((n - 1) * stride for n, stride in zip(shape, strides, strict=True))
        if 0 not in shape and (last + 1) * ITEM_SIZE[dtype] > end * unit:
            message = f"tensor ends at byte {(last + 1) * ITEM_SIZE[dtype]} of its storage, which has {end * unit}"
            raise self._error(CorruptError, path, message)
        begin += offset
        return StoredTensor(key, size, dtype, begin, shape, strides)

    def _namespace(self, state: Any, path: Path) -> argparse.Namespace:
        if state is not None and type(state) is not Dict:
            raise _MalformedError("a namespace without a mapping")
        pairs = state.pairs if state is not None else []
        if any(type(key) is not str for key, _ in pairs):
            raise _MalformedError("a name is no string")
        return argparse.Namespace(**self._mapping(pairs, path))

    def _array(self, value: Object, path: Path) -> Node:
        """Of an array or a scalar of numpy."""
        if value.name in _FROM_BUFFER:
            data, dtype, shape, order = (_argument(value.args, i) for i in range(4))
            is_fortran = type(order) is str and order == "F"
        elif value.name.endswith("._reconstruct"):
            parts = _sequence(value.state)
            shape, dtype, data = (_argument(parts, i) for i in (1, 2, 4))
            is_fortran = parts[3] is True
        elif value.name.endswith(".scalar"):
            dtype, data = _argument(value.args, 0), _argument(value.args, 1)
            return {KIND: "array", "dtype": _array_dtype(dtype), "base64": _tree.base64_of(self._bytes(data, path))}
        else:
            raise _Unknown(value.name)
        raw, name, extents = self._bytes(data, path), _array_dtype(dtype), _sizes(shape)
        if math.prod(extents) * ITEM_SIZE[name] != len(raw):
            raise _MalformedError(f"{len(raw)} bytes of an array of {list(extents)}")
        if is_fortran:
            raw = numpy().frombuffer(raw, numpy_dtype(name)).reshape(extents, order="F").tobytes("C")
        return {KIND: "array", "dtype": name, "base64": base64.b64encode(raw).decode("ascii"), "shape": list(extents)}


def _array_dtype(dtype: Any) -> str:
    if type(dtype) is not Object or dtype.name != "numpy.dtype":
        raise _MalformedError("an array without a dtype")
    if dtype.state is not None:
        order = _argument(_sequence(dtype.state), 1)
        if type(order) is not str or order not in ("<", "|", "="):
            raise _MalformedError("an array is big-endian")
    code = _argument(dtype.args, 0)
    if type(code) is not str or code not in OF_NUMPY_CODE:
        raise _MalformedError("an array of an unknown dtype")
    return OF_NUMPY_CODE[code]


def _argument(items: Any, index: int) -> Any:
    if index >= len(items):
        raise _MalformedError(f"it has {len(items)} arguments, expected more than {index}")
    return items[index]


def _first_pairs(name: str, args: tuple[Any, ...]) -> list[tuple[Any, Any]]:
    """What a mapping is made of; a defaultdict is made of what makes its values, which is not kept."""
    if not args or name == "collections.defaultdict":
        return []
    if name == "collections.Counter":
        if type(args[0]) is not Dict:
            raise _MalformedError("counts are no mapping")
        return args[0].pairs
    first = [tuple(_sequence(pair)) for pair in _sequence(args[0])]
    if any(len(pair) != 2 for pair in first):
        raise _MalformedError("an entry is no pair")
    return first


def _sequence(value: Any) -> Any:
    if type(value) not in (tuple, list):
        raise _MalformedError(f"a value is a {kind_name(value)}, expected a list")
    return value


def _name(value: Any) -> str:
    if type(value) is not Global:
        raise _MalformedError("a class is no name")
    return value.name


def _natural(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 1 << 62:
        raise _MalformedError("a value is no size")
    return value


def _sizes(value: Any) -> tuple[int, ...]:
    """Of a tuple, or of torch.Size."""
    if type(value) is Object and value.name == "torch.Size":
        value = _argument(value.args, 0)
    if type(value) not in (tuple, list) or len(value) > 64:
        raise _MalformedError("a shape is no tuple of sizes")
    return tuple(_natural(one) for one in value)
