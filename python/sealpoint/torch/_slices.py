# SPDX-License-Identifier: Apache-2.0
"""Loads for code that copies only parts of whole tensors, such as the weight loaders of inference engines.

The code runs twice: first with tensors that record the copied parts, then with tensors into which these parts were
read.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import torch
from torch.utils._pytree import tree_leaves, tree_map

from sealpoint._checkpoint import Checkpoint
from sealpoint._errors import InternalError
from sealpoint.torch._dtypes import DTYPE_OF
from sealpoint.torch._shards import count_of, destination_of, memory_of

_log = logging.getLogger("sealpoint")
# Maximum size of a window. The bytes of a window are read together, and held until the code has copied them.
_WINDOW_BYTES = 256 << 20

Weights = Iterator[tuple[str, torch.Tensor]]


class _UnreadError(InternalError):
    """Raised if, in the second run, the code uses elements that it did not copy in the first run."""


class Part:
    """The bounding box of all parts of a tensor that the code copied."""

    def __init__(self, name: str, shape: tuple[int, ...], dtype: torch.dtype, read: Callable[[], torch.Tensor]) -> None:
        self.name, self.shape, self.dtype, self._read = name, shape, dtype, read
        self.begin: tuple[int, ...] | None = None  # None: nothing was copied
        self.end: tuple[int, ...] = ()
        self.is_read = False

    def use(self, view: torch.Tensor) -> None:
        """Records that the code uses the elements of this view. After the read, checks that these elements were read.

        Raises _UnreadError.
        """
        if view.numel() == 0:
            return
        begin, end = self.box_of(view)
        if self.is_read:
            if self.begin is None or any(a < b for a, b in zip(begin, self.begin)) or any(
                a > b for a, b in zip(end, self.end)
            ):
                raise _UnreadError("the loading code copied different elements in its second run", tensor=self.name)
        elif self.begin is None:
            self.begin, self.end = begin, end
        else:
            self.begin = tuple(map(min, begin, self.begin))
            self.end = tuple(map(max, end, self.end))

    def number(self) -> Any:
        """Returns the element of a one-element tensor, such as a scale.

        Loaders use such an element as a number even in the first run.
        """
        self.begin, self.end = (0,) * len(self.shape), self.shape
        return self._read().item()

    @property
    def size_bytes(self) -> int:
        if self.begin is None:
            return 0
        return self.dtype.itemsize * count_of([b - a for a, b in zip(self.begin, self.end, strict=True)])

    def box_of(self, view: torch.Tensor) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Returns a box that contains all elements of a view, derived from the position of the view in the storage."""
        whole = (0,) * len(self.shape), self.shape
        if view.dtype != self.dtype or 0 in self.shape:
            return whole
        steps = [count_of(self.shape[dim + 1 :]) for dim in range(len(self.shape))]
        begin, rest = [], view.storage_offset()
        for step in steps:
            begin.append(rest // step)
            rest %= step
        last = list(begin)
        for size, stride in zip(view.shape, view.stride(), strict=True):
            if size == 1 or stride == 0:
                continue
            dim = next((dim for dim, step in enumerate(steps) if stride >= step), None)
            if stride < 0 or dim is None or stride % steps[dim] != 0:
                return whole
            last[dim] += (size - 1) * (stride // steps[dim])
        for dim in range(1, len(last)):
            if last[dim] >= self.shape[dim]:  # the rows of the view wrap around
                highest = view.storage_offset() + sum((n - 1) * s for n, s in zip(view.shape, view.stride(), strict=True))
                return (begin[0], *whole[0][1:]), (highest // steps[0] + 1, *self.shape[1:])
        return tuple(begin), tuple(item + 1 for item in last)


class Recorded(torch.Tensor):
    """A tensor or view that records which of its elements are used. After the read, it checks this use instead."""

    held: torch.Tensor
    part: Part | None  # None: derived from recorded tensors, in the first run

    @staticmethod
    def __new__(cls, inner: torch.Tensor, part: Part | None) -> Recorded:
        made: Recorded = torch.Tensor._make_wrapper_subclass(
            cls, inner.shape, strides=inner.stride(), storage_offset=inner.storage_offset(), dtype=inner.dtype,
            device=torch.device("cpu"),
        )
        made.held, made.part = inner, part
        return made

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        return f"<a part of {'what was computed' if self.part is None else self.part.name}, {self.dtype} {list(self.shape)}>"

    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # type: ignore[override]
        kwargs = kwargs or {}
        recorded = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Recorded)]
        returned = func._schema.returns
        is_view = len(returned) > 0 and all(item.alias_info is not None and not item.alias_info.is_write for item in returned)
        if is_view and len(recorded) == 1:
            inner = func(*tree_map(_inner_of, args), **tree_map(_inner_of, kwargs))
            return tree_map(lambda one: Recorded(one, recorded[0].part) if isinstance(one, torch.Tensor) else one, inner)
        if func is torch.ops.aten._local_scalar_dense.default and recorded[0].held.is_meta:
            part = recorded[0].part
            if part is not None and count_of(part.shape) == 1 and part.dtype == recorded[0].dtype:
                return part.number()
        for one in recorded:
            if one.part is not None:
                one.part.use(one.held)
        if not any(item.held.is_meta for item in recorded):
            return func(*tree_map(_inner_of, args), **tree_map(_inner_of, kwargs))
        if func._schema.is_mutable:  # the model does not change yet
            return args[0]
        made = func(*tree_map(_meta_of, args), **tree_map(_meta_of, kwargs))
        return tree_map(lambda one: Recorded(one, None) if isinstance(one, torch.Tensor) else one, made)


def _inner_of(value: Any) -> Any:
    return value.held if isinstance(value, Recorded) else value


def _meta_of(value: Any) -> Any:
    if isinstance(value, torch.device):
        return torch.device("meta")
    value = _inner_of(value)
    return value.to("meta") if isinstance(value, torch.Tensor) else value


class SliceReport(NamedTuple):
    """The number of bytes read, and the total size of all tensors that were offered to the code."""

    bytes_requested: int
    bytes_offered: int


def load_slices(
    load: Callable[[Weights], Any], checkpoint: Checkpoint, names: Mapping[str, str], threads: int | None,
    restore: Callable[[], bool],
) -> SliceReport:
    """Calls load() twice with the tensors of these names (new name: stored name). Reads only the parts that the first call copied.

    Code that cannot run in this way, because it inspects values or keeps tensors, gets whole tensors, and the reason is logged.
    ``restore`` is called after the first run. If the code kept a recorded tensor, ``restore`` puts the original tensor back and
    returns False.
    """
    parts = {new: _part_of(checkpoint, stored, threads) for new, stored in names.items()}
    offered = sum(part.dtype.itemsize * count_of(part.shape) for part in parts.values())
    try:
        load((new, Recorded(torch.empty(part.shape, dtype=part.dtype, device="meta"), part)) for new, part in parts.items())
        reason = ""
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
    if not restore():
        reason = reason or "it keeps the tensors passed to it"
    if not reason:
        for part in parts.values():
            part.is_read = True
        try:
            load(_read(checkpoint, parts, threads))
            return SliceReport(sum(part.size_bytes for part in parts.values()), offered)
        except _UnreadError as error:
            reason = str(error)
    _log.warning("whole tensors are read, because the parts that the model copies could not be determined: %s", reason)
    load(whole_tensors(checkpoint, names, threads))
    return SliceReport(offered, offered)


def _part_of(checkpoint: Checkpoint, name: str, threads: int | None) -> Part:
    shape, dtype = tuple(checkpoint[name].shape), DTYPE_OF[checkpoint[name].dtype_name]
    return Part(name, shape, dtype, lambda: next(whole_tensors(checkpoint, {name: name}, threads))[1])


def _windows(parts: Mapping[str, Part]) -> Iterator[dict[str, Part]]:
    window: dict[str, Part] = {}
    for name, part in parts.items():
        if window and sum(value.size_bytes for value in window.values()) + part.size_bytes > _WINDOW_BYTES:
            yield window
            window = {}
        window[name] = part
    if window:
        yield window


def _read(checkpoint: Checkpoint, parts: Mapping[str, Part], threads: int | None) -> Weights:
    """Iterates over tensors of full size that have memory only for the boxes."""
    for window in _windows(parts):
        tensors = {name: torch.empty(part.shape, dtype=part.dtype) for name, part in window.items()}
        requests = []
        for name, part in window.items():
            if part.begin is not None:
                box = tuple(slice(a, b) for a, b in zip(part.begin, part.end, strict=True))
                requests.append((part.name, box, memory_of(tensors[name][box], None)))
        if requests:
            checkpoint.read(requests, unexpected="allow", threads=threads)
        for name in window:
            yield name, Recorded(tensors.pop(name), window[name])


def whole_tensors(checkpoint: Checkpoint, names: Mapping[str, str], threads: int | None) -> Weights:
    """Iterates over whole tensors. Each is read and verified when the iterator reaches it. ``names`` maps new to stored names."""
    for new_name, name in names.items():
        tensor = torch.empty(checkpoint[name].shape, dtype=DTYPE_OF[checkpoint[name].dtype_name], device="cpu")
        checkpoint.read({name: destination_of(tensor)}, unexpected="allow", threads=threads)
        yield new_name, tensor
