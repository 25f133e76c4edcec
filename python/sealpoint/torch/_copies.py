# SPDX-License-Identifier: Apache-2.0
"""Compares the memory of a model with the tensors that a weight loader copies into this memory.

The loader runs once with tensors that record the destination of each copy. Memory that existed before is not written.
"""

from __future__ import annotations

import bisect
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from sealpoint import _sealpoint
from sealpoint._checkpoint import Checkpoint
from sealpoint._errors import CorruptError, InvalidArgumentError, UnsupportedError
from sealpoint._ranks.call import Call
from sealpoint._rules import brief
from sealpoint.fingerprint import TensorFingerprint, of_checkpoint
from sealpoint.torch import _fingerprint
from sealpoint.torch._dtypes import DTYPE_OF, NAME_OF
from sealpoint.torch._shards import count_of, plain_memory, slot_of
from sealpoint.torch._slices import Part, Recorded, Weights, whole_tensors

# Maximum number of tensors for which the loader may raise an exception. Each such tensor costs another run of the loader, so the
# remaining tensors are then skipped.
_FAILURES_MAX = 16
_NAMES_SHOWN = 8
# Operations that return the elements of their argument.
_KEEPING = (torch.ops.aten.clone.default, torch.ops.aten._to_copy.default)
_FIRST_SUBSTITUTE = 1_000_003  # a number that loaders do not write otherwise


class Verification(NamedTuple):
    """The result of ``sealpoint.vllm.verify``, with the names of the expected tensors. The same on all ranks."""

    verified: tuple[str, ...]  # tensors that the model holds completely, with equal elements
    unused: tuple[str, ...]  # tensors from which the loader copies nothing on any rank
    unverified: dict[str, str]  # reason, by the name of a tensor or of a model parameter


class _Recording(Part):
    """A tensor without elements that records the memory into which its elements are copied."""

    def __init__(self, name: str, shape: tuple[int, ...], dtype: torch.dtype, number: int) -> None:
        super().__init__(name, shape, dtype, lambda: torch.empty(0))
        self.copies: list[tuple[torch.Tensor, torch.Tensor]] = []  # view of this tensor, destination
        self.reason = ""  # why the destinations cannot be compared
        # Replaces the element of a one-element tensor. Memory that the loader fills with this number is a destination.
        self.substitute = number + 1 / math.pi if dtype.is_floating_point else number

    def number(self) -> Any:
        self.begin, self.end = (0,) * len(self.shape), self.shape
        return self.substitute

    def copy(self, view: torch.Tensor, destination: torch.Tensor) -> None:
        self.use(view)
        if view.numel() == 0:
            return
        if destination.dtype not in NAME_OF or view.dtype != self.dtype or _order_of(self, view) is None:
            self.refuse(f"the model's loader copies it as {view.dtype} {list(view.shape)}, which is not a box of the tensor")
        elif view.shape != destination.shape:
            self.refuse("the model's loader broadcasts it")
        elif self.copies and self.copies[0][1].dtype != destination.dtype:
            self.refuse("the model holds it in several dtypes")
        self.copies.append((view, destination))

    def refuse(self, reason: str) -> None:
        self.reason = self.reason or reason

    def slots(self) -> Iterator[_sealpoint.Slot]:
        """Iterates over the destinations as parts of this tensor. Each slot is valid until the iterator returns the next slot."""
        for view, destination in self.copies:
            begin, end = self.box_of(view)
            extent = tuple(b - a for a, b in zip(begin, end, strict=True))
            order = _order_of(self, view)
            assert order is not None
            memory = plain_memory(destination).permute(order).reshape(extent).cpu()
            yield slot_of(self.name, NAME_OF[memory.dtype], self.shape, (begin, extent), memory)


def _order_of(part: Part, view: torch.Tensor) -> list[int] | None:
    """Sorts the dimensions of a view by their order in the tensor.

    Returns None if the elements of the view do not fill a box of the tensor.
    """
    strides = view.stride()
    order = sorted(range(view.dim()), key=lambda dim: (-strides[dim], dim))
    reach = 0  # span of the inner dimensions, in elements
    for dim in reversed(order):
        if view.shape[dim] > 1:
            if strides[dim] <= reach:
                return None
            reach += (view.shape[dim] - 1) * strides[dim]
    begin, end = part.box_of(view)
    return order if count_of([b - a for a, b in zip(begin, end, strict=True)]) == view.numel() else None


def _storage_of(tensor: torch.Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)


def _is_plain(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and not isinstance(value, Recorded)


class _Mode(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Suppresses writes to memory that the loader did not allocate, and records the writes that copy a tensor."""

    def __init__(self, parts: Iterable[_Recording]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._by_substitute = {part.substitute: part for part in parts}
        self._allocated: set[int] = set()  # storages that the loader allocated

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        written = [
            value
            for number, argument in enumerate(func._schema.arguments)
            if argument.alias_info is not None and argument.alias_info.is_write
            for value in tree_leaves(args[number] if number < len(args) else kwargs.get(argument.name))
            if isinstance(value, torch.Tensor)
        ]
        for changed in written:
            if isinstance(changed, Recorded) and changed.part is not None:
                changed.part.refuse("the model's loader changes its elements")  # type: ignore[attr-defined]
        if any(_is_plain(value) and _storage_of(value) not in self._allocated for value in written):
            self._record(func, args)
            returned = tuple(written[: len(func._schema.returns)])
            return returned[0] if len(returned) == 1 else returned or None
        if func in _KEEPING and isinstance(args[0], Recorded) and kwargs.get("dtype") in (None, args[0].dtype):
            return Recorded(args[0].held, args[0].part)
        made = func(*args, **kwargs)
        given = {_storage_of(value) for value in tree_leaves((args, kwargs)) if _is_plain(value)}
        self._allocated |= {_storage_of(value) for value in tree_leaves(made) if _is_plain(value)} - given
        return made

    def _record(self, func: Any, args: Any) -> None:
        if func is torch.ops.aten.copy_.default and isinstance(args[1], Recorded) and args[1].part is not None:
            args[1].part.copy(args[1].held, args[0])  # type: ignore[attr-defined]
        elif func is torch.ops.aten.fill_.Scalar and args[0].numel() == 1:
            part = self._by_substitute.get(args[1])
            if part is not None:
                part.copy(_empty(part).reshape(args[0].shape), args[0])


def _empty(part: Part) -> torch.Tensor:
    return torch.empty(part.shape, dtype=part.dtype, device="meta")


def _record(load: Callable[[Weights], Any], parts: Mapping[str, _Recording]) -> None:
    """Runs the loader with all tensors.

    If the loader raises an exception for a tensor, runs the loader again with the remaining tensors.
    """
    names, current, failures = iter(parts), "", 0

    def offer() -> Weights:
        nonlocal current
        for current in names:
            yield current, Recorded(_empty(parts[current]), parts[current])
        current = ""

    with _Mode(parts.values()):
        while failures < _FAILURES_MAX:
            try:
                load(offer())
                return
            except Exception as error:
                if not current and failures == 0:
                    raise
                if not current:  # raised at the end, because earlier tensors were missing
                    return
                failures += 1
                parts[current].refuse(f"the model's loader raised {type(error).__name__}: {' '.join(str(error).split())}")
    for name in names:
        parts[name].refuse(f"the model's loader raised for {failures} tensors before this one")


def _uncovered(own: Mapping[str, torch.Tensor], parts: Iterable[_Recording]) -> list[str]:
    """Returns the names of the parameters with memory into which nothing is copied."""
    starts = sorted(destination.data_ptr() for part in parts for _, destination in part.copies)
    uncovered = []
    for name, parameter in own.items():
        begin = parameter.data_ptr()
        at = bisect.bisect_left(starts, begin)
        if parameter.numel() > 0 and not (at < len(starts) and starts[at] < begin + parameter.nbytes):
            uncovered.append(name)
    return uncovered


class Expected:
    """The expected tensors: the tensors of a checkpoint, or fingerprints that the caller passed."""

    def __init__(self, source: Checkpoint | Mapping[str, TensorFingerprint], names: Mapping[str, str]) -> None:
        """``names`` maps the names that the loader knows to the names in ``source``."""
        self._checkpoint = source if isinstance(source, Checkpoint) else None
        self._source, self.names = source, names
        self.specs: dict[str, tuple[str, tuple[int, ...]]] = {}  # dtype and shape by name in the source
        for name in names.values():
            item: Any = source[name]
            if self._checkpoint is None and not isinstance(item, TensorFingerprint):
                raise InvalidArgumentError(f"expected[{name!r}] is {brief(item)}, expected a TensorFingerprint")
            dtype = item.dtype if self._checkpoint is None else item.dtype_name
            if dtype not in DTYPE_OF:
                raise UnsupportedError(f"this torch has no dtype {dtype}", tensor=name)
            self.specs[name] = dtype, tuple(item.shape)

    @property
    def is_checkpoint(self) -> bool:
        return self._checkpoint is not None

    def fingerprints(self, patterns: Iterable[str]) -> dict[str, str]:
        """Returns the fingerprint of each tensor. Reads the tensors of a checkpoint without stored fingerprints."""
        found: Any = self._source if self._checkpoint is None else of_checkpoint(self._checkpoint, list(patterns))
        return {name: str(found[name].fingerprint) for name in self.specs}

    def cast_fingerprints(self, dtypes: Mapping[str, str]) -> dict[str, str]:
        """Reads tensors of a checkpoint, casts them to these dtypes, and returns their fingerprints."""
        assert self._checkpoint is not None
        found = {}
        for name, tensor in whole_tensors(self._checkpoint, {name: name for name in dtypes}, None):
            cast = tensor.to(DTYPE_OF[dtypes[name]])
            (part,) = _fingerprint.parts_of([slot_of(name, dtypes[name], tuple(cast.shape), None, cast)])
            found[name] = part[-1]
        return found


def verify_copies(
    call: Call, make: Callable[[], tuple[Expected, list[str]]], load: Callable[[Weights], Any],
    own: Mapping[str, torch.Tensor], restore: Callable[[], object],
) -> tuple[Verification, dict[str, str]]:
    """Runs ``load``, and compares the memory into which it would copy tensors with the expected tensors. Collective.

    Args:
        make: Returns the expected tensors, and the patterns that select them in a checkpoint.
        own: Parameters by name. Each parameter must be the destination of a tensor.
        restore: Called after the loader has run, to undo changes of the parameters.

    Returns:
        The result, and the texts of the differences by tensor name.
    """

    def begin() -> tuple[Expected, bytes]:
        expected, patterns = make()
        parts = {
            new: _Recording(stored, expected.specs[stored][1], DTYPE_OF[expected.specs[stored][0]], _FIRST_SUBSTITUTE + number)
            for number, (new, stored) in enumerate(expected.names.items())
        }
        try:
            _record(load, parts)
        finally:
            restore()
        comparable = [part for part in parts.values() if not part.reason]
        for part in comparable:
            if not part.copies and part.begin is not None:
                part.refuse("the model's loader computes with it, and copies the result")
        answer = {
            "parts": [row for part in comparable for slot in part.slots() for row in _fingerprint.parts_of([slot])],
            "reasons": {part.name: part.reason for part in parts.values() if part.reason},
            "uncovered": _uncovered(own, parts.values()),
            "expected": expected.fingerprints(patterns) if call.rank == 0 else {},
        }
        return expected, json.dumps(answer).encode()

    expected, encoded = call.agree(begin, "compared the fingerprints that they hold")
    answers = [json.loads(answer) for answer in encoded]
    joined = _fingerprint.join([answer["parts"] for answer in answers])
    values: dict[str, str] = answers[0]["expected"]
    casts = {name: found.dtype for name, found in joined.tensors.items() if found.dtype != expected.specs[name][0]}
    if casts and expected.is_checkpoint:
        values |= call.run_on_first(lambda: expected.cast_fingerprints(casts))
        casts = {}
    reasons, differing = _reasons(answers), dict(joined.conflicts)
    verified: list[str] = []
    unused: list[str] = []
    for name, (dtype, shape) in sorted(expected.specs.items()):
        found = joined.tensors.get(name)
        if name in reasons or name in differing:
            continue
        if found is None:
            (unused if math.prod(shape) > 0 else verified).append(name)
        elif joined.element_counts[name] != math.prod(shape):
            count = joined.element_counts[name]
            reasons[name] = f"the ranks hold {count} elements in different parts, expected {math.prod(shape)}"
        elif name in casts:
            reasons[name] = f"the model holds it as {found.dtype}, and the expected fingerprint is of {dtype}"
        elif str(found.fingerprint) == values[name]:
            verified.append(name)
        else:
            differing[name] = "its elements are not those expected"
    return Verification(tuple(verified), tuple(unused), dict(sorted(reasons.items()))), differing


def _reasons(answers: list[Any]) -> dict[str, str]:
    reasons: dict[str, str] = {}
    for rank, answer in enumerate(answers):
        for name, reason in answer["reasons"].items():
            reasons.setdefault(name, f"rank {rank}: {reason}")
        for name in answer["uncovered"]:
            reasons.setdefault(name, f"rank {rank}: parameter into which no tensor is copied")
    return reasons


def check_verified(result: Verification, differing: Mapping[str, str], *, allow_unverified: bool) -> None:
    """Raises CorruptError for tensors that differ, and UnsupportedError for tensors that were not compared."""
    if differing:
        name = min(differing)
        raise CorruptError(f"{differing[name]}{_others(differing)}", tensor=name)
    if result.unverified and not allow_unverified:
        name = min(result.unverified)
        text = f"not compared: {result.unverified[name]}{_others(result.unverified)}"
        raise UnsupportedError(f'{text}; unverified="allow" returns the reasons', tensor=name)


def _others(names: Iterable[str]) -> str:
    others = sorted(names)[1:]
    more = f" and {len(others) - _NAMES_SHOWN} more" if len(others) > _NAMES_SHOWN else ""
    return f"; also {', '.join(others[:_NAMES_SHOWN])}{more}" if others else ""
