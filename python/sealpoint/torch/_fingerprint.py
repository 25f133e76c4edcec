# SPDX-License-Identifier: Apache-2.0
"""Fingerprints of states in memory."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any, NamedTuple

from sealpoint import _sealpoint
from sealpoint._errors import CorruptError, InvalidArgumentError
from sealpoint._sealpoint import Fingerprint
from sealpoint.fingerprint import TensorFingerprint
from sealpoint.torch._aliases import FirstNames
from sealpoint.torch._options import SaveOptions
from sealpoint.torch._session import session_of, tells_other_ranks
from sealpoint.torch._state import Collected

if TYPE_CHECKING:
    import torch.distributed as dist

# Name, dtype, shape, region, number of elements, fingerprint.
Part = tuple[str, str, list[int], str, int, str]


@tells_other_ranks
def fingerprints(
    state_dict: Any, *, process_group: dist.ProcessGroup | None = None, no_dist: bool = False
) -> dict[str, TensorFingerprint]:
    """Computes the fingerprints of the tensors of a state, on any mesh. Collective: all ranks call it.

    Each rank reads its own parts once. About 100 bytes per part and rank are exchanged. Tensors have the same names as in
    ``sealpoint.torch.save``, so the result can be compared with the result of ``sealpoint.fingerprint.of_checkpoint``.

    Args:
        state_dict: As for ``sealpoint.torch.save``.
        process_group: Ranks that hold the state together. Default: all ranks.
        no_dist: Use only the state of this process. Other processes do not call the function.

    Returns:
        The fingerprints by tensor name; the same on all ranks.

    Raises:
        CorruptError: ranks that hold the same part of a tensor hold different elements. The error names the tensor and the ranks.
        InvalidArgumentError: parts overlap or leave holes. The error names the tensor.

    Examples:
        >>> import torch, sealpoint.torch as sp
        >>> found = sp.fingerprints({"w": torch.ones(2)})
        >>> found["w"].dtype, found["w"].shape
        ('f32', (2,))
    """
    with session_of(process_group, is_alone=no_dist).call("fingerprints") as call:

        def make() -> tuple[None, bytes]:
            state = Collected(state_dict, call.rank, call.size, SaveOptions(), FirstNames(True), {})
            state.describe()
            return None, json.dumps(parts_of(state.slots)).encode()

        _, answers = call.agree(make, "compared the fingerprints that they hold")
    return _join([json.loads(answer) for answer in answers])


def parts_of(slots: list[_sealpoint.Slot]) -> list[Part]:
    """Computes the fingerprints of parts."""
    parts = _sealpoint.part_fingerprints(slots)
    return [
        (slot.name, slot.dtype, list(slot.shape), part.region, part.element_count, str(part.fingerprint))
        for slot, part in zip(slots, parts, strict=True)
    ]


def _join(parts_of_ranks: list[list[Part]]) -> dict[str, TensorFingerprint]:
    joined = join(parts_of_ranks)
    for name, text in joined.conflicts.items():
        raise CorruptError(text, tensor=name)
    for name, found in joined.tensors.items():
        if (count := joined.element_counts[name]) != math.prod(found.shape):
            raise InvalidArgumentError(
                f"the parts of all ranks have {count} elements together, expected {math.prod(found.shape)}", tensor=name
            )
    return dict(sorted(joined.tensors.items()))


class Joined(NamedTuple):
    """The fingerprints of whole tensors, by name: the sums of the fingerprints of all parts."""

    tensors: dict[str, TensorFingerprint]
    element_counts: dict[str, int]
    conflicts: dict[str, str]  # descriptions of replicas that differ


def join(parts_of_ranks: list[list[Part]]) -> Joined:
    """Adds up the fingerprints of all parts. Replicas count once.

    Raises InvalidArgumentError if ranks disagree about dtype or shape.
    """
    joined = Joined({}, {}, {})
    replicas: dict[tuple[str, str], list[tuple[int, str]]] = {}
    for rank, parts in enumerate(parts_of_ranks):
        for name, dtype, shape, region, count, value in parts:
            known = joined.tensors.setdefault(name, TensorFingerprint(dtype, tuple(shape), Fingerprint()))
            if (known.dtype, known.shape) != (dtype, tuple(shape)):
                raise InvalidArgumentError(
                    f"dtype and shape are {dtype} {shape} on rank {rank}, and {known.dtype} {list(known.shape)} on another rank",
                    tensor=name,
                )
            holders = replicas.setdefault((name, region), [])
            holders.append((rank, value))
            if len(holders) == 1:
                joined.element_counts[name] = joined.element_counts.get(name, 0) + count
                joined.tensors[name] = known._replace(fingerprint=known.fingerprint + Fingerprint(value))
    for (name, region), holders in replicas.items():
        if len({value for _, value in holders}) > 1:
            joined.conflicts.setdefault(name, differing(region, holders))
    return joined


def differing(region: str, holders: list[tuple[int, str]]) -> str:
    """Describes replicas that differ. ``holders``: rank and fingerprint of each replica."""
    ranks: dict[str, list[int]] = {}
    for rank, value in holders:
        ranks.setdefault(value, []).append(rank)
    minority, *others = sorted(ranks.values(), key=len)
    texts = [", ".join(map(str, each)) for each in (minority, *others)]
    return f"ranks hold different elements of {region}: {' against '.join(texts)} (fewest first)"
