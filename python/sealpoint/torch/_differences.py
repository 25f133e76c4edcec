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
    "per_rank": "saved by another number of ranks",
}
_OF_OPTIMIZERS = re.compile(r"(^|\.)state\.(?P<name>[^.]*)")
Difference = tuple[str, str, str]  # kind, path, detail; the detail may be empty
# Returns dtype name and shape of a stored tensor, or None if it is not stored.
Stored = Callable[[str], tuple[str, tuple[int, ...]] | None]


def of_tensors(slots: Iterable[Slot], stored: Stored, *, dtype: bool, shape: bool) -> list[Difference]:
    """Lists destinations with another dtype or shape than stored. The library detects them too, but one at a time."""
    found: dict[Difference, None] = {}
    for slot in slots:
        one = stored(slot.name)
        if one is not None and dtype and one[0] != slot.dtype:
            found["dtype", slot.name, f"stored as {one[0]}, requested as {slot.dtype}"] = None
        if one is not None and shape and one[1] != slot.shape:
            found["shape", slot.name, f"stored with {list(one[1])}, requested with {list(slot.shape)}"] = None
    return list(found)


def text_of_all(differences: list[Difference], unmatched: Collection[str], hint: str) -> str:
    """Formats the number of differences by kind, the first of each, and a likely reason.

    Args:
        unmatched: Stored places in no rank's state.
        hint: Advice on loading a part of a checkpoint.
    """
    missing = dict.fromkeys(path for kind, path, _ in differences if kind == "missing").keys()
    part = extra_part(unmatched, missing), extra_part(missing, set(unmatched))
    parts = []
    for kind, what in _KINDS.items():
        found = [(path, detail) for one, path, detail in differences if one == kind]
        if found:
            near = unmatched if kind == "missing" and part == (None, None) else ()
            named = ", ".join(_named(path, detail, near) for path, detail in found[:_NAMED_MAX])
            more = f" and {len(found) - _NAMED_MAX} more" if len(found) > _NAMED_MAX else ""
            parts.append(f"{len(found)} {what}: {named}{more}")
    for one, whose, others in ((part[0], "the checkpoint's", "state's"), (part[1], "the state's", "checkpoint's")):
        if one is not None:
            parts.append(f"{one[1]} of {whose} names have a part {one[0]!r}, without which they are the {others}: give the module "
                         "within a wrapper, or rename= to sealpoint.torch.load()")
    parts += _ways_out(differences, missing)
    if all(kind == "unexpected" for kind, _, _ in differences):
        if any(_OF_OPTIMIZERS.search(path) for path in unmatched):
            parts.append("an optimizer has no places for its state before its first step: give sealpoint.torch.load() the "
                         "optimizer itself, or let get_state_dict() make them")
        parts.append(f"{hint} loads a part of a checkpoint")
    return "; ".join(parts)


def _ways_out(differences: list[Difference], missing: Collection[str]) -> Iterator[str]:
    kinds = {kind for kind, _, _ in differences}
    states = [match for path in missing if (match := _OF_OPTIMIZERS.search(path))]
    if missing and len(states) == len(missing):
        if all(match["name"].isdecimal() for match in states):
            yield ("an optimizer that has more state than was stored, as after more steps, is emptied by optimizer.state.clear() "
                   "before the load")
        else:
            yield ("get_state_dict() makes state for parameters that never had a gradient: give sealpoint.torch.load() the "
                   'optimizer itself, or keep that state as it is with contract=Contract(missing="allow")')
    elif missing:
        yield 'contract=Contract(missing="allow") keeps what the checkpoint does not have as it is in the state'
    if "dtype" in kinds:
        yield ('convert="widen" converts to dtypes that have every stored value, convert="exact" if each value fits, '
               'convert="nearest" rounds')


def _named(path: str, detail: str, near: Collection[str]) -> str:
    if near and (found := nearest(path, near)):
        detail = f"the checkpoint has {found}"
    name = path or "the state itself"
    return f"{name} ({detail})" if detail else name


def raise_together(
    communicator: Call, differences: list[Difference], unmatched: Collection[str], hint: str
) -> NoReturn:
    """Raises the differences of the rank with the most as the same error on all ranks. Collective; some rank has one."""
    text = text_of_all(differences, unmatched, hint)
    order = {kind: number for number, kind in enumerate(_KINDS)}
    first = min(differences, key=lambda one: order[one[0]])[1] if differences else ""
    data = json.dumps([len(differences), text, first, communicator.host]).encode()
    answers = [json.loads(bytes(one)) for one in communicator.all_gather(data, "exchanged how their states differ")]
    rank, (count, text, first, host) = max(enumerate(answers), key=lambda one: (one[1][0], -one[0]))
    others = sum(answer[:2] != [count, text] for answer in answers)
    message = f"the state differs from the checkpoint: {text}"
    if others == 0:
        raise MismatchError(message, object=first)
    message += f"; {others} other ranks have other differences, or none"
    raise MismatchError(message, object=first, rank=rank, host=host)
