# SPDX-License-Identifier: Apache-2.0
"""Converts buckets of Megatron's distributed optimizer (``dp_reshardable``) into per-parameter state.

A checkpoint does not record the positions of parameters in a bucket. A layout file records them;
``sealpoint.megatron.bucket_layout`` returns the content of this file when a job with the same model and mesh calls it.
docs/guides/convert.md documents the file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from sealpoint._arguments import Path, local_path_of
from sealpoint._dtypes import numpy
from sealpoint._errors import InvalidArgumentError, MismatchError, NotFoundError
from sealpoint._tree import KIND, Node
from sealpoint._tree_paths import entries_of
from sealpoint.interop import _boxes
from sealpoint.interop._boxes import Box, Extents
from sealpoint.interop._dtypes import ITEM_SIZE
from sealpoint.interop._files import read_whole
from sealpoint.interop._megatron import COMMON_KEY
from sealpoint.interop._select import as_mapping, with_tree
from sealpoint.interop._source import Reader, State, Tensor

VERSION = 1
_MEMBER = "sealpoint_buckets"
_RUN_MEMBERS = {"tensor", "shape", "offset", "extent", "run", "at"}
# Patterns of names: the tensors of a bucket, one per kind of optimizer state, and the other items of a data-parallel group.
_TENSOR = re.compile(r"((?:.*\.)?optimizer\.distributed\.dp_group_idx_\d+\.gbuf_idx_\d+\..+)\.(\w+)", re.DOTALL)
_OBJECT = re.compile(r"((?:.*\.)?)optimizer\.distributed\.dp_group_idx_(\d+)\.(\w+)/shard_0_1", re.DOTALL)
_OF_BUCKETS, _OF_PARAMETERS = "dp_reshardable", "fully_reshardable"
_TYPES = ("distrib_optim_sharding_type", "param_state_sharding_type")
# Objects that describe the division into buckets.
_SIZES = ("per_bucket_numel", "per_bucket_numel_unpadded")
_SAMPLE_ELEMENTS = 1024


class Run(NamedTuple):
    """Row-major elements [begin, end) of a tensor's box. They are stored in a bucket, beginning at element ``at`` of the bucket."""

    tensor: str
    shape: Extents
    box: Box
    begin: int
    end: int
    at: int


class Bucket(NamedTuple):
    size: int
    runs: list[Run]


def _numbers(value: Any) -> Extents:
    if type(value) is not list or any(type(item) is not int or item < 0 for item in value):
        raise ValueError(f"found {value!r:.80}, expected a list of sizes")
    return tuple(value)


def _run_of(one: Any, size: int) -> Run:
    if type(one) is not dict or set(one) != _RUN_MEMBERS or type(one["tensor"]) is not str:
        raise ValueError(f"found {one!r:.100}, expected a run with the members {', '.join(sorted(_RUN_MEMBERS))}")
    shape, box = _numbers(one["shape"]), Box(_numbers(one["offset"]), _numbers(one["extent"]))
    (begin, end), (at,) = _numbers(one["run"]), _numbers([one["at"]])
    is_inside = len(shape) == len(box.offset) == len(box.extent) and all(
        x + n <= m for x, n, m in zip(*box, shape, strict=True)
    )
    if not is_inside or not begin < end <= box.size or at + end - begin > size:
        raise ValueError(f"run of {one['tensor']!r} at {at} lies outside of its box, its tensor or its bucket of {size}")
    return Run(one["tensor"], shape, box, begin, end, at)


def read_layout(path: Path) -> dict[str, Bucket]:
    """Reads a layout by bucket name. Raises InvalidArgumentError, which names the problem, NotFoundError and IoError."""
    text = local_path_of(path, "buckets", "such files are small")
    data = read_whole(text)
    try:
        content = json.loads(data)
        if type(content) is not dict or content.get(_MEMBER) != VERSION or type(content.get("buckets")) is not dict:
            raise ValueError(f"expected an object with {_MEMBER}: {VERSION} and buckets")
        return {
            name: Bucket(size, [_run_of(run, size) for run in value["runs"]])
            for name, value in content["buckets"].items() for (size,) in [_numbers([value["size"]])]
        }
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise InvalidArgumentError(f"not a layout of buckets: {error}", path=text) from None


class _RunsTensor:
    """A tensor whose elements are in buckets."""

    def __init__(self, name: str, dtype: str, shape: Extents, runs: list[tuple[Run, Tensor]]) -> None:
        self.name, self.dtype, self.shape, self.runs = name, dtype, shape, runs

    @property
    def boxes(self) -> list[Box]:
        return list(dict.fromkeys(run.box for run, _ in self.runs))

    @property
    def is_protected(self) -> bool:
        return all(bucket.is_protected for _, bucket in self.runs)

    def reader(self, memory_bytes: int) -> Reader:
        return _RunsReader(self, memory_bytes)


class _RunsReader:
    def __init__(self, tensor: _RunsTensor, memory_bytes: int) -> None:
        self._tensor, self._memory_bytes = tensor, memory_bytes
        self._readers: dict[str, Reader] = {}

    def read(self, box: Box, out: memoryview) -> None:
        item_size = ITEM_SIZE[self._tensor.dtype]
        target = numpy().frombuffer(out, "u1").reshape(*box.extent, item_size)
        for own_box in self._tensor.boxes:
            shared = _boxes.common(box, own_box)
            if shared is None:
                continue
            data = out if shared == box else memoryview(bytearray(shared.size * item_size))
            local, done = _boxes.within(shared, own_box), 0
            for begin, count in _boxes.runs(local, own_box.extent):
                self._fill(own_box, begin, data[done * item_size : (done + count) * item_size])
                done += count
            if shared != box:
                index = tuple(slice(x, x + n) for x, n in zip(*_boxes.within(shared, box), strict=True))
                target[index] = numpy().frombuffer(data, "u1").reshape(*shared.extent, item_size)

    def _fill(self, box: Box, begin: int, out: memoryview) -> None:
        """Fills ``out`` with elements of a box, beginning at element number ``begin``."""
        item_size = ITEM_SIZE[self._tensor.dtype]
        end = begin + len(out) // item_size
        for run, bucket in self._tensor.runs:
            low, high = max(begin, run.begin), min(end, run.end)
            if run.box == box and low < high:
                if bucket.name not in self._readers:
                    self._readers[bucket.name] = bucket.reader(self._memory_bytes)
                part = out[(low - begin) * item_size : (high - begin) * item_size]
                self._readers[bucket.name].read(Box((run.at + low - run.begin,), (high - low,)), part)

    def finish(self) -> None:
        for reader in self._readers.values():
            reader.finish()


def _check_tiling(name: str, shape: Extents, runs: list[Run]) -> None:
    """Raises InvalidArgumentError if the runs do not tile a tensor."""
    boxes: dict[Box, list[Run]] = {}
    for run in runs:
        if run.shape != shape:
            raise InvalidArgumentError(
                f"the layout of buckets has the shape {list(run.shape)}, and {list(shape)} before", tensor=name
            )
        boxes.setdefault(run.box, []).append(run)
    gap = _boxes.gap_of(list(boxes), shape)
    for box, inside in boxes.items():
        at = 0
        for run in sorted(inside, key=lambda run: run.begin):
            if gap is None and run.begin != at:
                gap = f"element {at} of the box at {list(box.offset)} is followed by {run.begin}"
            at = run.end
        if gap is None and at != box.size:
            gap = f"the box at {list(box.offset)} has {box.size} elements, of which {at} are stored"
    if gap is not None:
        raise InvalidArgumentError(f"the layout of buckets does not cover the tensor: {gap}", tensor=name)


def _tensors_of(state: State, layout: Mapping[str, Bucket]) -> Iterator[_RunsTensor]:
    """Builds the tensors. Raises MismatchError if the buckets differ from the layout, and InvalidArgumentError."""
    stored: dict[str, dict[str, Tensor]] = {}
    for name, tensor in state.tensors.items():
        if found := _TENSOR.fullmatch(name):
            stored.setdefault(found[1], {})[found[2]] = tensor
    for name in sorted(stored.keys() ^ layout.keys()):
        where = "layout, not in the checkpoint" if name in layout else "checkpoint, not in the layout"
        raise MismatchError(f"the bucket is in the {where}, so it belongs to another model or mesh", tensor=name, path=state.path)
    runs: dict[tuple[str, str], list[tuple[Run, Tensor]]] = {}
    for name, tensors in stored.items():
        for kind, tensor in tensors.items():
            if tensor.shape != (layout[name].size,):
                raise MismatchError(
                    f"the bucket has the shape {list(tensor.shape)}, the layout {[layout[name].size]}, so it belongs to another "
                    "model or mesh", tensor=tensor.name, path=state.path,
                )
            for run in layout[name].runs:
                runs.setdefault((kind, run.tensor), []).append((run, tensor))
    for (kind, key), parts in runs.items():
        name, shape, dtype = f"optimizer.state.{kind}.{key}", parts[0][0].shape, parts[0][1].dtype
        _check_tiling(name, shape, [run for run, _ in parts])
        if odd := [bucket for _, bucket in parts if bucket.dtype != dtype]:
            raise MismatchError(f"a bucket is {odd[0].dtype}, another one {dtype}", tensor=name, path=state.path)
        yield _RunsTensor(name, dtype, shape, parts)


def _rounded(data: memoryview, dtype: str) -> Any:
    """Rounds 32-bit numbers to nearest even, as Megatron does for the parameters of the model. Returns the bits of the results."""
    np = numpy()
    if dtype == "f32":
        return np.frombuffer(data, "u4")
    if dtype == "f16":
        with np.errstate(over="ignore"):
            return np.frombuffer(data, "f4").astype("f2").view("u2")
    bits = np.frombuffer(data, "u4").astype("u8")
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype("u2")


def _check_weights(state: State, made: _RunsTensor, memory_bytes: int) -> None:
    """Compares main parameters with the model's parameters, but only the first elements of each box. Raises MismatchError."""
    np = numpy()
    weights = state.tensors.get(made.name.removeprefix("optimizer.state.param."))
    if weights is None or weights.shape != made.shape or made.dtype != "f32" or weights.dtype not in ("f32", "f16", "bf16"):
        return
    for box in made.boxes:
        sample = next(_boxes.slabs(box, _SAMPLE_ELEMENTS))
        main = memoryview(bytearray(sample.size * 4))
        made.reader(memory_bytes).read(sample, main)
        model = memoryview(bytearray(sample.size * ITEM_SIZE[weights.dtype]))
        weights.reader(memory_bytes).read(sample, model)
        found, expected = _rounded(main, weights.dtype), np.frombuffer(model, "u4" if weights.dtype == "f32" else "u2")
        differs = (found != expected) & ~np.isnan(np.frombuffer(main, "f4"))
        if differs.any():
            at = int(differs.argmax())
            raise MismatchError(
                f"element {at} of the box at {list(box.offset)} is {found[at]:#x} for the optimizer, rounded to "
                f"{weights.dtype}, and {expected[at]:#x} in the model; the layout of buckets belongs to a different model or mesh",
                tensor=made.name, path=state.path,
            )


def resolve(state: State, layout: Mapping[str, Bucket], memory_bytes: int) -> State:
    """Returns the Megatron checkpoint with per-parameter optimizer state, as in ``fully_reshardable``.

    Raises NotFoundError (the checkpoint has no buckets), MismatchError (the layout belongs to a different model or
    mesh), and InvalidArgumentError (the layout does not cover a tensor).
    """
    if not has_buckets(state):
        raise NotFoundError("it has no buckets of a distributed optimizer, as described by the layout", path=state.path)
    tensors, tree = dict(state.tensors), dict(entries_of(state.tree) or {})
    for made in _tensors_of(state, layout):
        if made.name in tensors:
            raise MismatchError("it is in the checkpoint, and in its buckets", tensor=made.name, path=state.path)
        if made.name.startswith("optimizer.state.param."):
            _check_weights(state, made, memory_bytes)
        tensors[made.name] = made
        tree[made.name] = {KIND: "tensor", "name": made.name}
    values: dict[str, dict[str, Node]] = {}
    for name in list(tree):
        if _TENSOR.fullmatch(name):
            del tree[name]
        elif found := _OBJECT.fullmatch(name):
            node = tree.pop(name)
            if found[3] not in _SIZES and found[2] == "0":  # these values are equal in all groups of ranks
                values.setdefault(found[1], {})[found[3]] = node
    if COMMON_KEY in tree:
        tree[COMMON_KEY] = _with_values(tree[COMMON_KEY], values)
    return with_tree(state, as_mapping(tree), tensors, state.objects)


def _with_values(node: Node, values: Mapping[str, Mapping[str, Node]]) -> Node:
    """Returns the common state with the values of each optimizer inserted. In chained optimizers, the keys are numbers."""
    entries = entries_of(node)
    if entries is None:
        return node
    changed = {}
    for key, value in entries.items():
        if key in _TYPES and value == _OF_BUCKETS:
            changed[key] = _OF_PARAMETERS
        else:
            inner = {prefix.removeprefix(f"chained_{key}."): own for prefix, own in values.items()}
            changed[key] = _with_values(value, inner if type(key) is int else values)
    if entries.get("param_state_sharding_type") == _OF_BUCKETS:
        changed.update(values.get("", {}))
    if all(type(key) is str for key in changed) and KIND not in changed:
        return changed
    return {KIND: "dict", "items": [[key, value] for key, value in changed.items()]}


NOTE = (
    "the optimizer's state is in buckets, which Megatron loads only with the same tensor and pipeline parallelism; --buckets "
    "splits them by parameter"
)


def has_buckets(state: State) -> bool:
    """Tells whether a state has buckets. Also detects buckets if the state was converted earlier."""
    return any(_TENSOR.fullmatch(name) for name in state.tensors)
