# SPDX-License-Identifier: Apache-2.0
"""Writes safetensors: single files, and directories in the form of transformers."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Any

from sealpoint import _arguments, _tree
from sealpoint._errors import CorruptError, Error, LimitExceededError, UnsupportedError
from sealpoint.interop._boxes import whole
from sealpoint.interop._dtypes import ITEM_SIZE, TO_SAFETENSORS
from sealpoint.interop._layout import Layout, Part
from sealpoint.interop._select import without
from sealpoint.interop._source import State, Tensor, attributes_of, flat_tree, size_of

# Default file size in transformers, in decimal bytes.
SHARD_BYTES_DEFAULT = 5_000_000_000
# Limit of the format's own reader.
HEADER_BYTES_MAX = 100_000_000
INDEX = "model.safetensors.index.json"
# Object with the __metadata__ of other writers, and its entry for objects.
METADATA = "safetensors.metadata"
# Entry with the configuration of an adapter of PEFT, and the name of its weights.
_ADAPTER, _ADAPTER_FILE = "adapter_config", "adapter_model"
# The entry that transformers expects. Alone it is no metadata.
_PLAIN = {"format": "pt"}
TREE_KEY, OBJECT_KEY = "sealpoint.tree", "sealpoint.object."
# Attributes as JSON: those of the checkpoint, then those of tensors by name.
ATTRIBUTES_KEY = "sealpoint.attributes"


def lay_out_file(state: State, name: str) -> Layout:
    """Lays out one file.

    Raises UnsupportedError if safetensors lacks a dtype, and LimitExceededError if the header is too long.
    """
    layout = Layout()
    _add_file(layout, name, list(state.tensors.values()), _metadata(state))
    return layout


def lay_out_directory(state: State, shard_bytes_max: int, version: str | None = None) -> Layout:
    """Lays out the files of a model, or those of PEFT if the state has the configuration of an adapter.

    A model is ``model.safetensors`` or, if it would exceed ``shard_bytes_max``, ``model-00001-of-…`` with an index.
    ``version``: for the metadata of the index, which is then always written.
    """
    shards: list[list[Tensor]] = [[]]
    size = 0
    for tensor in state.tensors.values():
        if shards[-1] and size + size_of(tensor) > shard_bytes_max:
            shards.append([])
            size = 0
        shards[-1].append(tensor)
        size += size_of(tensor)
    layout = Layout()
    config = state.tree.get(_ADAPTER)
    if len(shards) == 1 and version is None and isinstance(config, str):
        _add_file(layout, f"{_ADAPTER_FILE}.safetensors", shards[0], _metadata(without(state, {_ADAPTER})))
        layout.add_bytes(layout.add_file(f"{_ADAPTER}.json"), config.encode())
        return layout
    metadata = _metadata(state)
    if len(shards) == 1 and version is None:
        _add_file(layout, "model.safetensors", shards[0], metadata)
        return layout
    mapping: dict[str, str] = {}
    for number, tensors in enumerate(shards, 1):
        name = f"model-{number:05}-of-{len(shards):05}.safetensors"
        _add_file(layout, name, tensors, metadata if number == 1 else {"format": "pt"})
        mapping.update({tensor.name: name for tensor in tensors})
    total = sum(size_of(tensor) for tensor in state.tensors.values())
    about = {"total_size": total} if version is None else {"total_size": total, "version": version}
    index = {"metadata": about, "weight_map": dict(sorted(mapping.items()))}
    layout.add_bytes(layout.add_file(INDEX), (json.dumps(index, indent=2) + "\n").encode())
    return layout


def _metadata(state: State) -> dict[str, str]:
    """Returns the metadata: the entries that transformers expects, and all non-tensor values, so that no value is lost."""
    metadata = dict(_PLAIN)
    for name, (media_type, data) in state.all_objects.items():
        if name == METADATA:
            metadata.update(json.loads(data))
        else:
            metadata[OBJECT_KEY + name] = json.dumps([media_type, base64.b64encode(data).decode("ascii")])
    if state.tree != flat_tree(list(state.tensors)):
        metadata[TREE_KEY] = _tree.dump(state.tree).decode("utf-8")
    of_tensors = {name: attributes_of(tensor) for name, tensor in state.tensors.items() if attributes_of(tensor)}
    if state.attributes or of_tensors:
        metadata[ATTRIBUTES_KEY] = json.dumps([state.attributes, of_tensors])
    return metadata


def take_attributes(state: State) -> None:
    """Moves attributes from the metadata of safetensors, where ``lay_out_file`` put them, to the state. Raises CorruptError."""
    media_type, data = state.objects.get(METADATA, ("", b"{}"))
    if ATTRIBUTES_KEY.encode() not in data:
        return
    try:
        metadata = json.loads(data)
        own, of_tensors = json.loads(metadata.pop(ATTRIBUTES_KEY))
        state.attributes = _arguments.attributes_of(own)
        for name, attributes in of_tensors.items():
            setattr(state.tensors[name], "attributes", _arguments.attributes_of(attributes))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, Error) as error:
        raise CorruptError(f"{ATTRIBUTES_KEY} in __metadata__ is malformed: {error!r:.100}", path=state.path) from None
    state.objects[METADATA] = (media_type, json.dumps(metadata).encode())
    if metadata in ({}, _PLAIN):
        del state.objects[METADATA]


def _add_file(layout: Layout, name: str, tensors: Sequence[Tensor], metadata: dict[str, str]) -> None:
    # Large elements first, so that all are aligned.
    ordered = sorted(tensors, key=lambda tensor: (-ITEM_SIZE[tensor.dtype], tensor.name))
    header: dict[str, Any] = {"__metadata__": metadata}
    at = 0
    lacking = [tensor for tensor in tensors if tensor.dtype not in TO_SAFETENSORS]
    if lacking:
        others = f" (nor those of {len(lacking) - 1} others)" if len(lacking) > 1 else ""
        raise UnsupportedError(
            f"dtype is {lacking[0].dtype}, which safetensors lacks{others}; leave it out (--drop), or choose another "
            "format (--to)",
            tensor=lacking[0].name,
        )
    for tensor in ordered:
        if tensor.name == "__metadata__":
            raise UnsupportedError("safetensors has no tensor of this name", tensor=tensor.name)
        header[tensor.name] = {
            "dtype": TO_SAFETENSORS[tensor.dtype],
            "shape": _shape(tensor),
            "data_offsets": [at, at + size_of(tensor)],
        }
        at += size_of(tensor)
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
    text += b" " * (-len(text) % 8)
    if len(text) > HEADER_BYTES_MAX:
        raise LimitExceededError(
            f"header of {name} would have {len(text)} bytes, expected {HEADER_BYTES_MAX} at most; "
            "leave values out by tensors_only, or make smaller files"
        )
    file = layout.add_file(name)
    layout.add_bytes(file, len(text).to_bytes(8, "little") + text)
    for tensor in ordered:
        layout.add_part(file, Part(tensor, whole(tensor.shape), file, 0))


def _shape(tensor: Tensor) -> list[int]:
    if tensor.dtype != "f4_e2m1x2":
        return list(tensor.shape)
    if not tensor.shape:
        raise UnsupportedError("a tensor of F4 without dimensions has no shape in safetensors", tensor=tensor.name)
    return [*tensor.shape[:-1], tensor.shape[-1] * 2]
