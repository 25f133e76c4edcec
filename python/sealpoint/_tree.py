# SPDX-License-Identifier: Apache-2.0
"""Nested states stored without pickle (spec/tree.md). Independent of torch; sealpoint.torch registers the types of torch."""

from __future__ import annotations

import argparse
import base64
import collections
import enum
import io
import json
import math
import pathlib
import pickle
import reprlib
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Generic, TypeVar

from sealpoint._dtypes import name_of, numpy, numpy_dtype
from sealpoint._errors import ArgumentTypeError, CorruptError, Error, InvalidArgumentError, UnsupportedError

OBJECT = "sealpoint.tree"
# Objects stored next to a tree of torch states. With these objects, sealpoint.torch can load the tree into a state that
# has a changed form. The tree is complete without these objects.
VERSIONS, PARAMETERS, UNITED = f"{OBJECT}.versions", f"{OBJECT}.parameters", f"{OBJECT}.united"
MEDIA_TYPE = "application/vnd.sealpoint.tree+json"
KIND = "$"
_PARTS = "tensor_parts"
_INT_MAX = 2**53 - 1
_DEPTH_MAX = 200
_REFUSED_NAMED_MAX = 10

Path = tuple[str | int, ...]
Node = Any  # JSON value
T = TypeVar("T")


class PerRank(Generic[T]):
    """A value that differs between ranks, such as the state of a random generator.

    Examples:
        >>> import torch, sealpoint.torch as sp
        >>> _ = sp.save({"rng": sp.per_rank(torch.get_rng_state())}, "checkpoint")
        >>> state = {"rng": sp.per_rank(torch.get_rng_state())}
        >>> _ = sp.load(state, "checkpoint")
        >>> torch.set_rng_state(state["rng"].value)
    """

    def __init__(self, value: T) -> None:
        self.value = value

    def __repr__(self) -> str:
        return f"per_rank({self.value!r})"


class TensorParts:
    """A tensor composed of other tensors (spec/tree-additions.md).

    A load of the whole state returns such an object for each tensor that is composed of other tensors.

    Attributes:
        class_name: Class of the saved tensor.
        shape: Shape of the whole saved tensor.
        context: Additional data from the class's ``__tensor_flatten__``.
        parts: For each attribute name, maps a box of the whole tensor to the tensor of this box. The box "" is the whole tensor.
    """

    def __init__(self, class_name: str, shape: list[int], context: Node, parts: dict[str, dict[str, Any]]) -> None:
        self.class_name, self.shape, self.context, self.parts = class_name, shape, context, parts

    def __repr__(self) -> str:
        return f"<parts of a {self.class_name} {self.shape}>"


class Foreign:
    """A stored value that was not converted to its Python type: a torch dtype or device, or a member of an enumeration."""

    def __init__(self, kind: str, members: Mapping[str, Any]) -> None:
        self.kind, self.members = kind, dict(members)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Foreign) and (self.kind, self.members) == (other.kind, other.members)

    def __hash__(self) -> int:
        return hash(self.kind)

    def __repr__(self) -> str:
        return f"<{self.kind} {' '.join(str(value) for value in self.members.values())}>"


# Registered enumerations by their names in files.
_enums: dict[str, type[enum.Enum]] = {}
# Types registered by other modules: a list of (predicate, encode), and the decode functions by kind.
_encoders: list[tuple[Callable[[Any], bool], Callable[[Any], Node]]] = []
_decoders: dict[str, Callable[[Node], Any]] = {}


def register_enum(cls: type[enum.Enum]) -> type[enum.Enum]:
    """Registers an enumeration, so that its members can be saved and loaded. The function can be used as a decorator.

    A checkpoint stores the class as ``module.QualName``. A load looks up only registered classes. Call this function in each
    process before saves and loads. Returns ``cls``.

    Args:
        cls: Class derived from ``enum.Enum``.

    Raises:
        ArgumentTypeError: ``cls`` is not an enumeration.

    Examples:
        >>> import enum, sealpoint.torch as sp
        >>> @sp.register_enum
        ... class Phase(enum.Enum):
        ...     WARM_UP = 1
        >>> _ = sp.save({"phase": Phase.WARM_UP}, "checkpoint")
        >>> sp.load_full("checkpoint")["phase"]
        <Phase.WARM_UP: 1>
    """
    if not isinstance(cls, type) or not issubclass(cls, enum.Enum):
        raise ArgumentTypeError(f"cls is {reprlib.repr(cls)}, expected a class of enum.Enum")
    _enums[_enum_name(cls)] = cls
    return cls


def _enum_name(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def register_type(
    is_one: Callable[[Any], bool], encode: Callable[[Any], Node], kind: str, decode: Callable[[Node], Any]
) -> None:
    _encoders.append((is_one, encode))
    _decoders[kind] = decode


def text_of(path: Path) -> str:
    """Returns the name of a path."""
    return ".".join(str(part) for part in path)


def base64_of(data: Any) -> str:
    return base64.b64encode(data).decode("ascii")


class Encoder:
    """Encodes a state as a node and collects its tensors.

    Args:
        is_tensor: Function that tells whether a value is stored as a tensor.
        add_tensor: Function that is called with the text of the path and the tensor, and returns the stored name.
        rank, size: Rank of this process, and number of ranks.
        allow_pickle: Pickle values that have no node form. If False, such values are refused.
        prepare: Function that is called with each value of a type that is not plain. It returns the value to encode instead.
        tensor_types: Types of tensors that need no preparation.
    """

    def __init__(
        self,
        is_tensor: Callable[[Any], bool],
        add_tensor: Callable[[str, Any], str],
        rank: int = 0,
        size: int = 1,
        allow_pickle: bool = False,
        prepare: Callable[[Any], Any] = lambda value: value,
        tensor_types: Collection[type] = (),
    ) -> None:
        self._tensor_types = tensor_types
        self._is_tensor, self._add_tensor, self._prepare = is_tensor, add_tensor, prepare
        self._rank, self._size, self._allow_pickle = rank, size, allow_pickle
        self.rank_values: dict[str, Node] = {}  # this rank's per_rank values by path; stored in one object
        self.is_per_rank = False  # the current value is inside a per_rank value
        self._refused: list[Error] = []

    def encode(self, value: Any, path: Path = ()) -> Node:
        """Encodes a state. Raises one InvalidArgumentError or UnsupportedError, which names all refused values."""
        node = self._encode_part(value, path)
        if self._refused:
            refused, self._refused = self._refused, []
            raise refused[0] if len(refused) == 1 else _error_of_all(refused)
        return node

    def _encode_part(self, value: Any, path: Path) -> Node:
        """Encodes a part. If this fails, records the error, so that the other parts are still encoded."""
        try:
            return self._encode(value, path)
        except Error as error:
            self._refused.append(error)
            return None

    def _encode(self, value: Any, path: Path) -> Node:
        if value is None or value is True or value is False or type(value) is str:
            return _text(value, path) if type(value) is str else value
        if type(value) is int:
            return value if -_INT_MAX <= value <= _INT_MAX else {KIND: "int", "value": str(value)}
        if type(value) is float:
            return value if math.isfinite(value) else {KIND: "float", "value": repr(value)}
        if type(value) in self._tensor_types:
            return {KIND: "tensor", "name": self._add_tensor(text_of(path), value)}
        value = self._prepare(value)
        if self._is_tensor(value):
            return {KIND: "tensor", "name": self._add_tensor(text_of(path), value)}
        if len(path) > _DEPTH_MAX:
            raise InvalidArgumentError(f"nested deeper than {_DEPTH_MAX} levels", object=text_of(path))
        return self._encode_composite(value, path)

    def _encode_composite(self, value: Any, path: Path) -> Node:
        if isinstance(value, Mapping):
            return self._encode_mapping(value, path)
        if type(value) in (list, collections.deque):
            return self._encode_items(value, path)
        if isinstance(value, PerRank):
            return self._encode_per_rank(value, path)
        if isinstance(value, TensorParts):
            return self._encode_parts(value, path)
        for is_one, encode in _encoders:
            if is_one(value):
                return encode(value)
        if type(value) is tuple or is_named_tuple(value):
            return {KIND: "tuple", "items": self._encode_items(value, path)}
        if type(value) in (set, frozenset):
            items = sorted(self._encode_items(value, path), key=lambda node: json.dumps(node, sort_keys=True))
            return {KIND: type(value).__name__, "items": items}
        if type(value) is complex:
            return {KIND: "complex", "real": self._encode(value.real, path), "imag": self._encode(value.imag, path)}
        if isinstance(value, (bytes, bytearray)):
            return {KIND: "bytes", "base64": base64_of(value)}
        if type(value) is io.BytesIO:
            return {KIND: "file", "base64": base64_of(value.getvalue())}
        if isinstance(value, enum.Enum) and _enum_name(type(value)) in _enums:
            return self._encode_enum(value, path)
        if type(value) is argparse.Namespace:
            if any(isinstance(var, PerRank) for var in vars(value).values()):
                raise UnsupportedError(f"{text_of(path)} is a Namespace with per-rank values, expected a dict")
            return {KIND: "namespace", "items": self._encode_mapping(vars(value), path)}
        plain = _plain_value(value)
        if plain is not None:
            return self._encode(plain, path)
        if is_of_numpy(value):
            return _encode_array(value, path)
        return self._encode_unknown(value, path)

    def _encode_enum(self, value: enum.Enum, path: Path) -> Node:
        node: Node = {KIND: "enum", "class": _enum_name(type(value)), "name": value.name}
        if type(value.value) in (int, str):
            node["value"] = self._encode(value.value, path)
        return node

    def _encode_unknown(self, value: Any, path: Path) -> Node:
        if self._allow_pickle:
            return {KIND: "pickle", "base64": base64_of(pickle.dumps(value, protocol=4))}
        hint = ""
        if isinstance(value, enum.Enum):
            hint = "; see register_enum"
        elif callable(getattr(value, "get_state", None)):
            hint = "; its get_state() returns a value that can be saved"
        raise UnsupportedError(
            f"values of type {type(value).__module__}.{type(value).__qualname__} cannot be represented{hint}; "
            "expected tensors, numbers, strings, containers of these, or allow_pickle=True",
            object=text_of(path),
        )

    def _encode_items(self, values: Any, path: Path) -> list[Node]:
        return [self._encode_part(value, (*path, i)) for i, value in enumerate(values)]

    def _encode_mapping(self, values: Mapping[Any, Any], path: Path) -> Node:
        if all(type(key) is str for key in values) and KIND not in values:
            return {_text(key, path): self._encode_part(value, (*path, key)) for key, value in values.items()}
        items = []
        for key, value in values.items():
            if not isinstance(key, (str, int, float, bool, tuple, type(None), enum.Enum)):
                raise UnsupportedError(
                    f"the key {reprlib.repr(key)} is of type {type(key).__qualname__}, "
                    "expected a string, a number or a tuple of these",
                    object=text_of(path),
                )
            items.append([self._encode(key, path), self._encode_part(value, (*path, part_of(key)))])
        return {KIND: "dict", "items": items}

    def _encode_parts(self, value: TensorParts, path: Path) -> Node:
        parts = {box: {name: self._encode_part(child, (*path, *filter(None, (box,)), name)) for name, child in of_box.items()}
                 for box, of_box in value.parts.items()}  # fmt: skip
        return {KIND: _PARTS, "class": value.class_name, "shape": list(value.shape), "context": value.context, "parts": parts}

    def _encode_per_rank(self, value: PerRank[Any], path: Path) -> Node:
        if self.is_per_rank:
            raise InvalidArgumentError("per_rank within per_rank", object=text_of(path))
        self.is_per_rank = True
        name = text_of(path)
        if name in self.rank_values:
            raise InvalidArgumentError("duplicate path in the state", object=name)
        try:
            self.rank_values[name] = self._encode_part(value.value, (*path, f"rank{self._rank}"))
        finally:
            self.is_per_rank = False
        return {KIND: "per_rank", "size": self._size}


def kind_of_parts(node: Node) -> bool:
    """Tells whether a node is a composed tensor."""
    return isinstance(node, dict) and node.get(KIND) == _PARTS


def is_named_tuple(value: Any) -> bool:
    return isinstance(value, tuple) and hasattr(value, "_fields")


def _plain_value(value: Any) -> str | int | float | None:
    """Converts an instance of a subclass of a plain type to the plain type. Converts a path to text.

    Returns None for any other value.
    """
    if isinstance(value, pathlib.PurePath):
        return str(value)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int.__int__(value)
    if isinstance(value, float) and not is_of_numpy(value):
        return float.__float__(value)
    return None


def is_of_numpy(value: Any) -> bool:
    """Tells whether a value is a numpy array or scalar. Both keep their dtype."""
    return "numpy" in sys.modules and isinstance(value, (numpy().generic, numpy().ndarray))


def _error_of_all(refused: list[Error]) -> Error:
    """Combines the errors for all refused values into one error."""
    shown = refused[:_REFUSED_NAMED_MAX]
    named = "; ".join(f"{place.tensor or place.object or 'the state itself'}: {place.message}" for place in shown)
    more = f"; and {len(refused) - _REFUSED_NAMED_MAX} more" if len(refused) > _REFUSED_NAMED_MAX else ""
    first = refused[0]
    return type(first)(f"{len(refused)} values cannot be saved: {named}{more}", tensor=first.tensor, object=first.object)


def part_of(key: Any) -> str | int:
    """Returns the part of a path that stands for a mapping key."""
    return key if isinstance(key, (str, int)) else str(key)


def _text(text: str, path: Path) -> str:
    """Checks that text has no lone surrogates, which JSON cannot represent."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        message = f"string is not text, expected text that UTF-8 can encode: {error}"
        raise UnsupportedError(message, object=text_of(path)) from error
    return text


def _encode_array(value: Any, path: Path) -> Node:
    array = numpy().ascontiguousarray(value)
    if array.dtype.byteorder == ">":
        array = array.astype(array.dtype.newbyteorder("<"))
    name = name_of(array.dtype)
    if name is None:
        raise UnsupportedError(f"dtype of the array is {array.dtype}, which the format does not have", object=text_of(path))
    node: dict[str, Node] = {KIND: "array", "dtype": name, "base64": base64_of(array.tobytes())}
    if isinstance(value, numpy().ndarray):
        node["shape"] = list(value.shape)
    return node


def rank_object(rank: int) -> str:
    """Returns the name of the object that contains one rank's ``per_rank`` values."""
    return f"{OBJECT}.rank{rank}"


def merge(nodes: list[tuple[int, Node]]) -> Node:
    """Merges the trees of several ranks into one tree.

    If the trees contradict each other, raises InvalidArgumentError, which names a difference and its path.
    """
    (first, merged), *others = nodes
    for rank, node in others:
        merged = _merge(merged, node, (first, rank), ())
    return merged


def united_paths(nodes: list[Node], path: Path = ()) -> Iterator[str]:
    """Returns the paths of value mappings whose keys differ between ranks, such as data loader positions with one key per rank."""
    members = [one for node in nodes if (one := _members(node)) is not None]
    if len(members) < 2:
        return
    keys = list(dict.fromkeys(key for member in members for key in member))
    if any(len(member) != len(keys) for member in members) and not any(nodes_of(nodes, ("tensor", _PARTS))):
        yield text_of(path)
    if KIND not in nodes[0]:  # mappings with keys that are not strings are histories
        for key in keys:
            yield from united_paths([member[key] for member in members if key in member], (*path, key))


def nodes_of(node: Node, kinds: Collection[str]) -> Iterator[dict[str, Node]]:
    """Yields the nodes of these kinds in a tree, each node before its descendants."""
    if isinstance(node, list):
        for child in node:
            yield from nodes_of(child, kinds)
    elif isinstance(node, dict):
        if node.get(KIND) in kinds:
            yield node
        for value in node.values():
            yield from nodes_of(value, kinds)


def _members(node: Node) -> dict[Any, Node] | None:
    """Returns the values of a mapping by comparable key, or None if the node is not a mapping."""
    if not isinstance(node, dict):
        return None
    if KIND not in node:
        return node
    if node[KIND] == "dict":
        return {json.dumps(key, sort_keys=True): [key, value] for key, value in node["items"]}
    return None


def _stored(node: Node) -> str:
    """Returns a string that is equal for two nodes only if they would be stored identically.

    Python's ``==`` treats 1, 1.0 and True as equal, and also 0.0 and -0.0.
    """
    return json.dumps(node, sort_keys=True)


def _compared(key: Node) -> Any:
    """Returns a value that is equal for two keys if Python treats the keys as equal."""
    kind = key.get(KIND) if isinstance(key, dict) else None
    if kind == "tuple":
        return tuple(_compared(item) for item in key["items"])
    if kind == "int":
        return int(key["value"])
    return key if kind is None else (KIND, _stored(key))


def _merge(a: Node, b: Node, ranks: tuple[int, int], path: Path) -> Node:
    if _stored(a) == _stored(b):
        return a
    kinds = [node.get(KIND) if isinstance(node, dict) else "" for node in (a, b)]
    if kinds == [None, None]:
        united: dict[str, Node] = dict(a)
        for key, value in b.items():
            united[key] = _merge(a[key], value, ranks, (*path, key)) if key in a else value
        return united
    if kinds == [_PARTS, _PARTS]:  # each rank has only the parts of its own boxes
        same = {key: _merge(a[key], b[key], ranks, (*path, key)) for key in ("class", "shape", "context")}
        return {KIND: _PARTS, **same, "parts": _merge(a["parts"], b["parts"], ranks, path)}
    if kinds == ["dict", "dict"]:
        first, second = _members(a), _members(b)
        assert first is not None and second is not None
        texts = {_compared(key): text for text, (key, _) in first.items()}
        for text, (node_of_key, value) in second.items():
            if text in first:
                value = _merge(first[text][1], value, ranks, (*path, text))
            elif (other := texts.get(_compared(node_of_key))) is not None:  # equal keys in Python, such as 1 and True
                raise InvalidArgumentError(
                    f"ranks differ: the key {other} on rank {ranks[0]}, {text} on rank {ranks[1]}; see per_rank",
                    object=text_of(path),
                    rank=ranks[1],
                )
            first[text] = [node_of_key, value]
        return {KIND: "dict", "items": list(first.values())}
    raise InvalidArgumentError(
        f"ranks differ: {brief(a)} on rank {ranks[0]}, {brief(b)} on rank {ranks[1]}; see per_rank",
        object=text_of(path),
        rank=ranks[1],
    )


def brief(node: Node) -> str:
    """Formats a node for messages."""
    if isinstance(node, dict) and node.get(KIND) == "tensor":
        return "a tensor"
    if kind_of_parts(node):
        return f"the parts of a tensor of {node['class']}"
    text = json.dumps(node)
    return text if len(text) <= 60 else text[:57] + "..."


def dump(node: Node) -> bytes:
    return json.dumps(node, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode("utf-8")


def parse(data: bytes) -> Node:
    """Parses a tree. Raises CorruptError for invalid bytes, and UnsupportedError for a later version."""
    try:
        root = json.loads(data, object_hook=_checked)
    except (UnicodeDecodeError, ValueError, RecursionError) as error:
        raise CorruptError(f"tree is not JSON, expected a JSON document: {error}", object=OBJECT) from error
    if isinstance(root, dict) and root.get(KIND) == "tree":
        raise UnsupportedError(f"tree has version {root.get('version')!r}, expected 1", object=OBJECT)
    return root


# Members of each kind of node, in addition to its kind.
_MEMBERS = {
    **dict.fromkeys(("tensor", "dtype", "device"), {"name"}),
    **dict.fromkeys(("dict", "tuple", "set", "frozenset", "size", "namespace"), {"items"}),
    **dict.fromkeys(("int", "float"), {"value"}),
    "complex": {"real", "imag"},
    **dict.fromkeys(("bytes", "file", "pickle"), {"base64"}),
    "array": {"dtype", "shape", "base64"},
    "enum": {"class", "name", "value"},
    "per_rank": {"size"},
    _PARTS: {"class", "shape", "context", "parts"},
}


def _checked(node: dict[str, Node]) -> dict[str, Node]:
    kind = node.get(KIND)
    if kind == "tensor" and len(node) == 2 and "name" in node:
        return node
    known = _MEMBERS.get(kind) if isinstance(kind, str) else None
    if known is not None and (unknown := node.keys() - known - {KIND}):
        raise UnsupportedError(
            f"tree has a node of the kind {kind} with the member {min(unknown)!r}, expected none but "
            + ", ".join(sorted(known)),
            object=OBJECT,
        )
    return node


class Decoder:
    """Decodes nodes into values. ``load_tensor`` is called with the name of each tensor and returns the tensor."""

    def __init__(self, load_tensor: Callable[[str], Any], allow_pickle: bool = False) -> None:
        self._load_tensor, self._allow_pickle = load_tensor, allow_pickle

    def decode(self, node: Node) -> Any:
        """Decodes a node.

        Raises CorruptError for a node that no writer would store, and UnsupportedError for a pickle if the caller did not allow
        pickles.
        """
        try:
            return self._decode(node)
        except Error:
            raise
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            raise CorruptError(f"tree has a malformed node: {error!r}", object=OBJECT) from error

    def _decode(self, node: Node) -> Any:
        if isinstance(node, list):
            return [self._decode(child) for child in node]
        if not isinstance(node, dict):
            return node
        kind = node.get(KIND)
        if kind is None:
            return {key: self._decode(value) for key, value in node.items()}
        return self._decode_kind(kind, node)

    def _decode_kind(self, kind: str, node: Node) -> Any:
        if kind == "tensor":
            return self._load_tensor(node["name"])
        if kind == "dict":
            return {self._decode(key): self._decode(value) for key, value in node["items"]}
        if kind in _decoders:
            return _decoders[kind](node)
        if kind in _SEQUENCES:
            return _SEQUENCES[kind](self._decode(node["items"]))
        if kind == "int":
            return int(node["value"])
        if kind == "float":
            return {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}[node["value"]]
        if kind == "complex":
            return complex(self._decode(node["real"]), self._decode(node["imag"]))
        if kind == "bytes":
            return base64.b64decode(node["base64"], validate=True)
        if kind == "file":
            return io.BytesIO(base64.b64decode(node["base64"], validate=True))
        if kind == "array":
            return _decode_array(node)
        if kind == "namespace":
            return argparse.Namespace(**self._decode(node["items"]))
        if kind == "enum":
            cls = _enums.get(node["class"])
            if cls:
                return cls[node["name"]] if "name" in node else cls(self._decode(node["value"]))
        if kind == _PARTS:
            parts = {box: {name: self._decode(value) for name, value in of_box.items()} for box, of_box in node["parts"].items()}
            return TensorParts(node["class"], list(node["shape"]), node["context"], parts)
        if kind == "pickle":
            return self._decode_pickle(node)
        return Foreign(kind, {key: value for key, value in node.items() if key != KIND})

    def _decode_pickle(self, node: Node) -> Any:
        if not self._allow_pickle:
            raise UnsupportedError("a value is an opaque pickle, which runs code of its writer; see allow_pickle")
        return pickle.loads(base64.b64decode(node["base64"], validate=True))


_SEQUENCES: dict[str, Callable[[Any], Any]] = {"tuple": tuple, "set": set, "frozenset": frozenset, "size": tuple}


def _decode_array(node: Node) -> Any:
    dtype = numpy_dtype(node["dtype"])
    if dtype is None or isinstance(dtype, str):
        return Foreign("array", {"dtype": node["dtype"]})
    array = numpy().frombuffer(base64.b64decode(node["base64"], validate=True), dtype=dtype)
    return array.reshape(node["shape"]).copy() if "shape" in node else array[0]
