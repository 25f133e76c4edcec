# SPDX-License-Identifier: Apache-2.0
"""Differences between a state and a checkpoint, as one error."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import NoReturn

from sealpoint._errors import MismatchError
from sealpoint._hints import extra_part, nearest
from sealpoint._ranks.call import Call
from sealpoint.torch._shards import Slot

_NAMED_MAX = 5  # of each kind
_KINDS = {
    "optimizer": "optimizer whose state cannot be loaded",
    "missing": "missing, which the checkpoint does not have",
    "unexpected": "unexpected, which no rank's state has",
    "kind": "of another kind",
    "dtype": "of another dtype",
    "shape": "of another shape",
    "per_rank": "saved by a different number of ranks",
}
_OF_OPTIMIZERS = re.compile(r"(^|\.)state\.(?P<name>[^.]*)")
Difference = tuple[str, str, str]  # kind, path, detail; the detail may be empty
# Returns dtype name and shape of a stored tensor, or None if it is not stored.
Stored = Callable[[str], tuple[str, tuple[int, ...]] | None]


def of_tensors(slots: Iterable[Slot], stored: Stored, *, dtype: bool, shape: bool) -> list[Difference]:
    """Lists destinations whose dtype or shape differs from the dtype or shape of the stored tensor.

    The library also detects these differences, but reports only one difference per call.
    """
    found: dict[Difference, None] = {}
    for slot in slots:
        one = stored(slot.name)
        if one is not None and dtype and one[0] != slot.dtype:
            found["dtype", slot.name, f"stored as {one[0]}, requested as {slot.dtype}"] = None
        if one is not None and shape and one[1] != slot.shape:
            found["shape", slot.name, f"stored with {list(one[1])}, requested with {list(slot.shape)}"] = None
    return list(found)


def text_of_all(differences: list[Difference], unmatched: Collection[str], hint: str) -> str:
    """Formats the number of differences of each kind, the first difference of each kind, and a likely reason.

    Args:
        unmatched: Stored places that no rank's state has.
        hint: Advice on loading a part of a checkpoint.
    """
    missing = dict.fromkeys(path for kind, path, _ in differences if kind == "missing").keys()
    part = extra_part(unmatched, missing), extra_part(missing, set(unmatched))
    parts = []
    for kind, what in _KINDS.items():
        found = [(path, detail) for difference, path, detail in differences if difference == kind]
        if found:
            near = unmatched if kind == "missing" and part == (None, None) else ()
            named = ", ".join(_named(path, detail, near) for path, detail in found[:_NAMED_MAX])
            more = f" and {len(found) - _NAMED_MAX} more" if len(found) > _NAMED_MAX else ""
            parts.append(f"{len(found)} {what}: {named}{more}")
    for extra, owner, other in ((part[0], "checkpoint", "state"), (part[1], "state", "checkpoint")):
        if extra is not None:
            parts.append(f"{extra[1]} names of the {owner} differ from names of the {other} only by the part {extra[0]!r}: pass "
                         "the "
                         "module without its wrapper, or rename= to sealpoint.torch.load()")
    parts += _ways_out(differences, missing)
    if all(kind == "unexpected" for kind, _, _ in differences):
        if any(_OF_OPTIMIZERS.search(path) for path in unmatched):
            parts.append("an optimizer has no places for its state before its first step: pass the optimizer itself to "
                         "sealpoint.torch.load(), or create them with get_state_dict()")
        parts.append(f"{hint} loads a part of a checkpoint")
    return "; ".join(parts)


def _ways_out(differences: list[Difference], missing: Collection[str]) -> Iterator[str]:
    kinds = {kind for kind, _, _ in differences}
    states = [match for path in missing if (match := _OF_OPTIMIZERS.search(path))]
    if missing and len(states) == len(missing):
        if all(match["name"].isdecimal() for match in states):
            yield ("the optimizer has more state than was stored, for example from later steps: call optimizer.state.clear() "
                   "before the load")
        else:
            yield ("get_state_dict() makes state for parameters that never had a gradient: give sealpoint.torch.load() the "
                   'optimizer itself, or keep that state as it is with contract=Contract(missing="allow")')
    elif missing:
        yield 'contract=Contract(missing="allow") keeps values that the checkpoint does not have'
    if "dtype" in kinds:
        yield ('convert="widen" converts to dtypes that can represent every stored value, convert="exact" if each value fits, '
               'convert="nearest" rounds')


def _named(path: str, detail: str, near: Collection[str]) -> str:
    if near and (found := nearest(path, near)):
        detail = f"the checkpoint has {found}"
    name = path or "the state itself"
    return f"{name} ({detail})" if detail else name


def raise_together(
    communicator: Call, differences: list[Difference], unmatched: Collection[str], hint: str
) -> NoReturn:
    """Raises the same error on all ranks. The error lists the differences of the rank that has the most differences.

    Collective. At least one rank has a difference.
    """
    text = text_of_all(differences, unmatched, hint)
    order = {kind: number for number, kind in enumerate(_KINDS)}
    first = min(differences, key=lambda one: order[one[0]])[1] if differences else ""
    data = json.dumps([len(differences), text, first, communicator.host]).encode()
    answers = [json.loads(bytes(answer)) for answer in communicator.all_gather(data, "exchanged how their states differ")]
    rank, (count, text, first, host) = max(enumerate(answers), key=lambda one: (one[1][0], -one[0]))
    others = sum(answer[:2] != [count, text] for answer in answers)
    message = f"the state differs from the checkpoint: {text}"
    if others == 0:
        raise MismatchError(message, object=first)
    message += f"; {others} other ranks have other differences, or none"
    raise MismatchError(message, object=first, rank=rank, host=host)
