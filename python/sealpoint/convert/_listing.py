# SPDX-License-Identifier: Apache-2.0
"""What a checkpoint of any format holds, for people and for programs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sealpoint import _tree
from sealpoint._sealpoint import printable
from sealpoint._tree import text_of
from sealpoint._tree_paths import kind_of
from sealpoint.convert._select import leaves
from sealpoint.convert._source import State, size_of

_NAMES = {
    "sealpoint": "checkpoint of Sealpoint",
    "safetensors": "file of safetensors",
    "hf": "directory of safetensors (Hugging Face)",
    "torch": "file of torch.save",
    "dcp": "directory of torch.distributed.checkpoint",
    "megatron": "directory of Megatron-core (torch_dist)",
}


def _values(state: State) -> list[tuple[str, str]]:
    """Leaves that are no tensors: name, and the value in short."""
    return [(text_of(path), _tree._brief(node)) for path, node in leaves(state.tree) if kind_of(node) != "tensor"]


def lines(state: State) -> Iterator[str]:
    """In the layout in which a checkpoint of Sealpoint is listed; then what its files are for."""
    step = "no step" if state.step is None else f"step {state.step}"
    total = sum(size_of(tensor) for tensor in state.tensors.values())
    yield f"{printable(state.path)}: {_NAMES[state.format]}, {step}, {len(state.tensors)} tensors, {total:,} bytes"
    for name, tensor in sorted(state.tensors.items()):
        shape = "x".join(str(extent) for extent in tensor.shape) or "scalar"
        parts = f"  ({len(tensor.boxes)} parts)" if len(tensor.boxes) > 1 else ""
        yield f"{size_of(tensor):15,}  {tensor.dtype:<12} {shape:<20} {printable(name)}{parts}"
    for name, brief in _values(state):
        yield f"{'':15}  {'value':<12} {'':<20} {printable(name)} = {printable(brief)}"
    for name, (media_type, data) in sorted(state.objects.items()):
        yield f"{len(data):15,}  {'object':<12} {printable(media_type):<20} {printable(name)}"
    yield "files:"
    for file in state.files:
        yield f"{file.size_bytes:15,}  {printable(file.name)}: {file.meaning}"
    yield f"digests: {state.digest}"
    for note in state.notes:
        yield f"note: {printable(note)}"


def as_json(state: State) -> dict[str, Any]:
    """The same for programs."""
    return {
        "path": state.path,
        "format": state.format,
        "step": state.step,
        "tensors": [
            {
                "name": name,
                "dtype": tensor.dtype,
                "shape": list(tensor.shape),
                "bytes": size_of(tensor),
                "parts": len(tensor.boxes),
            }
            for name, tensor in sorted(state.tensors.items())
        ],
        "values": [{"name": name, "brief": brief} for name, brief in _values(state)],
        "objects": [
            {"name": name, "media_type": media_type, "bytes": len(data)}
            for name, (media_type, data) in sorted(state.objects.items())
        ],
        "files": [file._asdict() for file in state.files],
        "digests": state.digest,
        "notes": state.notes,
    }
