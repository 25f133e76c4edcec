# SPDX-License-Identifier: Apache-2.0
"""What a checkpoint of any format holds, for people and for programs."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from sealpoint import _tree
from sealpoint._sealpoint import SeriesEntry, printable
from sealpoint._series import Unfinished
from sealpoint._tree import Node, text_of
from sealpoint._tree_paths import kind_of
from sealpoint.interop._budget import Budget
from sealpoint.interop._select import leaves
from sealpoint.interop._source import State, size_of

_SHOWN_MAX = 61
_VALUE_COST = 256  # of one that is listed, in bytes of memory

_NAMES = {
    "sealpoint": "checkpoint of Sealpoint",
    "safetensors": "file of safetensors",
    "hf": "directory of safetensors (Hugging Face)",
    "torch": "file of torch.save",
    "hf_torch": "directory of files of torch.save (Hugging Face)",
    "dcp": "directory of torch.distributed.checkpoint",
    "megatron": "directory of Megatron-core (torch_dist)",
}


def _values(state: State) -> list[tuple[str, str]]:
    """Leaves but tensors: name, and the value in short."""
    budget = Budget(state.metadata_memory_bytes)
    values = []
    for path, node in leaves(state.tree):
        if kind_of(node) != "tensor":
            values.append((text_of(path), _tree.brief(_clipped(node, [_SHOWN_MAX]))))
            budget.add(_VALUE_COST + len(values[-1][0]), state.path)
    return values


def _clipped(node: Node, left: list[int]) -> Node:
    """What makes the first characters of a value's text: a whole one could be as long as the file."""
    left[0] -= 1
    if isinstance(node, str):
        return node[:_SHOWN_MAX]
    clipped: Node = [] if isinstance(node, list) else {}
    if isinstance(node, list):
        for one in node:
            if left[0] <= 0:
                break
            clipped.append(_clipped(one, left))
        return clipped
    if not isinstance(node, dict):
        return node
    for key, one in node.items():
        if left[0] <= 0:
            break
        clipped[key] = _clipped(one, left)
    return clipped


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


def entry_line(entry: SeriesEntry) -> str:
    """One checkpoint of a series."""
    step = "" if entry.step is None else f"step {entry.step}"
    kept = "  KEEP" if entry.is_kept else ""
    return f"{entry.size_bytes:15,}  {entry.verdict:<12} {step:<20} {printable(entry.name)}{kept}"


def unfinished_line(upload: Unfinished) -> str:
    at = datetime.fromtimestamp(upload.begun_unix_s, UTC)
    begun = f", begun {at:%Y-%m-%d %H:%M:%S} UTC" if upload.begun_unix_s else ""
    return f"unfinished upload {printable(upload.upload_id)} of {printable(upload.name)}{begun}"


def entry_as_json(entry: SeriesEntry) -> dict[str, Any]:
    names = ("name", "path", "verdict", "step", "attempt", "parent", "sequence", "size_bytes", "is_kept")
    return {name: getattr(entry, name) for name in names}
