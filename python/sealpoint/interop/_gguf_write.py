# SPDX-License-Identifier: Apache-2.0
"""Writes GGUF files of llama.cpp: keys with typed values, then the tensors."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from typing import Any

from sealpoint._errors import CorruptError, InvalidArgumentError, UnsupportedError
from sealpoint._sealpoint import gguf_types
from sealpoint._tree_paths import entries_of, kind_of
from sealpoint.interop._boxes import whole
from sealpoint.interop._layout import Layout, Part
from sealpoint.interop._source import State, Tensor

# Object with the keys of a GGUF file, and with the types of its tensors in their order.
METADATA = "gguf.metadata"
_TYPE_ROWS, VALUE_TYPES = gguf_types()
_QUANTIZED = {name: (number, elements, size) for name, number, elements, size, _ in _TYPE_ROWS if elements > 1}
_OF_DTYPE = {dtype: number for _, number, elements, _, dtype in _TYPE_ROWS if elements == 1}
_CODES = {
    "uint8": "B", "int8": "b", "uint16": "H", "int16": "h", "uint32": "I", "int32": "i", "uint64": "Q", "int64": "q",
    "float32": "f", "float64": "d", "bool": "?",
}  # fmt: skip
_OF_BITS = {"float32": "I", "float64": "Q"}
_VERSION = 3
_ALIGNMENT, _ALIGNMENT_DEFAULT, _ALIGNMENT_MAX = "general.alignment", 32, 1 << 16
_ARCHITECTURE = "general.architecture"
# Limits of ggml: name with its final zero byte, and dimensions.
_NAME_BYTES_MAX, _NDIM_MAX = 63, 4
_MALFORMED = (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError, struct.error)

Keys = Mapping[str, Sequence[Any]]


def lay_out_gguf(state: State, name: str, given: Keys) -> Layout:
    """Lays out one file. The state must be flat. ``given``: keys that replace or extend the keys of a GGUF source.

    Raises UnsupportedError for a value, a dtype, a shape or a name that GGUF or ggml lacks, InvalidArgumentError for malformed
    keys, and CorruptError for malformed keys of the source.
    """
    stored, types = _stored(state)
    if METADATA not in state.objects and _ARCHITECTURE not in given:
        raise InvalidArgumentError(
            f"GGUF needs the key {_ARCHITECTURE}; give it in gguf_metadata (--gguf-metadata {_ARCHITECTURE}=string:llama)"
        )
    keys = {**stored, **given}
    alignment = _alignment(keys)
    order = {name: number for number, name in enumerate(types)}
    tensors = sorted(_tensors(state), key=lambda tensor: order.get(tensor.name, len(order)))
    header = [struct.pack("<4sIQQ", b"GGUF", _VERSION, len(tensors), len(keys))]
    header += [_key(key, value, key in given) for key, value in keys.items()]
    at = 0
    layout = Layout()
    file = layout.add_file(name)
    parts = [Part(tensor, whole(tensor.shape), file, 0) for tensor in tensors]
    for part in parts:
        number, extents = _type_of(part.tensor, types.get(part.tensor.name))
        header.append(_text(part.tensor.name) + struct.pack(f"<I{len(extents)}QIQ", len(extents), *extents, number, at))
        at += part.size + -part.size % alignment
    layout.add_bytes(file, b"".join(header))
    for part in parts:
        layout.add_bytes(file, bytes(-layout.sizes[file] % alignment))
        layout.add_part(file, part)
    layout.add_bytes(file, bytes(-layout.sizes[file] % alignment))
    return layout


def _stored(state: State) -> tuple[dict[str, Any], dict[str, str]]:
    """Returns the keys of a GGUF source, and the types of its tensors."""
    try:
        stored = json.loads(state.objects[METADATA][1]) if METADATA in state.objects else {"keys": {}, "types": {}}
        return dict(stored["keys"].items()), {name: str(kind) for name, kind in stored["types"].items()}
    except _MALFORMED as error:
        raise CorruptError("the object is malformed, expected keys and types", path=state.path, object=METADATA) from error


def _tensors(state: State) -> list[Tensor]:
    """Returns the tensors in the order of the tree."""
    tensors: dict[str, Tensor] = {}
    for name, node in (entries_of(state.tree) or {}).items():
        if kind_of(node) != "tensor":
            raise UnsupportedError("a value cannot be stored in GGUF; drop it by its name (--drop)", object=name)
        if node["name"] in tensors:
            raise UnsupportedError(f"the same tensor as {node['name']!r}; drop one of them (--drop)", tensor=name)
        tensors[node["name"]] = state.tensors[node["name"]]
    return list(tensors.values())


def _alignment(keys: Keys) -> int:
    kind, value = "uint32", _ALIGNMENT_DEFAULT
    if _ALIGNMENT in keys:
        kind, value = keys[_ALIGNMENT] if len(keys[_ALIGNMENT]) == 2 else ("", 0)
    if kind != "uint32" or not isinstance(value, int) or not 0 < value <= _ALIGNMENT_MAX or value & (value - 1):
        raise UnsupportedError(
            f"{_ALIGNMENT} is {keys[_ALIGNMENT]!r:.80}, expected a power of two up to {_ALIGNMENT_MAX} as uint32"
        )
    return value


def _type_of(tensor: Tensor, quantized: str | None) -> tuple[int, list[int]]:
    """Returns the type of a tensor, and its extents in elements, the fastest first."""
    extents = list(reversed(tensor.shape))
    problem = None
    if len(tensor.name.encode()) > _NAME_BYTES_MAX:
        problem = f"name has {len(tensor.name.encode())} bytes, expected {_NAME_BYTES_MAX} at most; --rename shortens it"
    elif len(extents) > _NDIM_MAX or 0 in extents:
        problem = f"shape is {list(tensor.shape)}, expected {_NDIM_MAX} dimensions at most and no empty one; leave it out (--drop)"
    elif tensor.dtype == "u8" and quantized in _QUANTIZED:
        number, elements, size = _QUANTIZED[quantized]
        if extents and extents[0] % size == 0:
            return number, [extents[0] // size * elements, *extents[1:]]
        problem = f"shape is {list(tensor.shape)}, expected rows of blocks of {size} bytes as the type is {quantized}"
    elif tensor.dtype not in _OF_DTYPE:
        problem = (
            f"dtype is {tensor.dtype}, which GGUF lacks; leave it out (--drop), or cast floating-point tensors (--dtype f32, f16 "
            f"or bf16). Quantized tensors are u8 under the names that {METADATA} has"
        )
    if problem is not None:
        raise UnsupportedError(problem, tensor=tensor.name)
    return _OF_DTYPE[tensor.dtype], extents


def _key(name: str, value: Sequence[Any], is_given: bool) -> bytes:
    try:
        kind, content = value
        return _text(name) + struct.pack("<I", VALUE_TYPES.index(kind)) + _value(kind, content)
    except _MALFORMED as error:
        if not is_given:
            raise CorruptError(f"key {name!r} is malformed", object=METADATA) from error
        raise InvalidArgumentError(
            f"gguf_metadata has {name!r:.80}: {value!r:.80}, expected a type ({', '.join(VALUE_TYPES)}) and a value of it"
        ) from error


def _value(kind: str, value: Any) -> bytes:
    if kind == "string":
        return _text(value)
    if kind == "array":
        item, values = value
        head = struct.pack("<IQ", VALUE_TYPES.index(item), len(values))
        return head + b"".join(_value(item, one) for one in values)
    if kind in _OF_BITS and isinstance(value, str):  # bits of infinity or NaN in hexadecimal digits
        return struct.pack("<" + _OF_BITS[kind], int(value, 16))
    if (kind == "bool") != isinstance(value, bool):
        raise ValueError
    return struct.pack("<" + _CODES[kind], value)


def value_of(kind: str, text: str) -> object:
    """Parses the text of a value that is not an array. Raises ValueError and KeyError."""
    if kind == "bool":
        return {"true": True, "false": False}[text]
    return text if kind == "string" else float(text) if kind in _OF_BITS else int(text)


def _text(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data
