# SPDX-License-Identifier: Apache-2.0
"""Tensors of one name on meshes that have no rank in common, such as the experts of each rank: they are no replicas."""

from __future__ import annotations

import json
from typing import Any

import torch.distributed as dist
from torch.distributed.tensor import DTensor

from sealpoint._errors import InvalidArgumentError
from sealpoint._ranks.call import Call

# The names of the tensors on each mesh, by its ranks.
Meshes = dict[tuple[int, ...], list[str]]


def note(meshes: Meshes, name: str, value: Any) -> None:
    if isinstance(value, DTensor):
        meshes.setdefault(tuple(sorted(value.device_mesh.mesh.flatten().tolist())), []).append(name)


def check_names(meshes: Meshes, call: Call) -> None:
    """With digests compared, the content would tell; without, the meshes must. Collective: the first rank of each says its names.

    Errors: InvalidArgumentError, the same on all ranks.
    """
    own = [[ranks, names] for ranks, names in meshes.items() if ranks[0] == dist.get_rank()]
    answers = call.all_gather(json.dumps(own).encode(), "compared the meshes of their tensors")
    found: dict[str, list[set[int]]] = {}
    for answer in answers:
        for ranks, names in json.loads(bytes(answer)):
            for name in names:
                found.setdefault(name, []).append(set(ranks))
    for name, held in found.items():
        for number, one in enumerate(held):
            for other in held[:number]:
                if one.isdisjoint(other):
                    raise InvalidArgumentError(
                        f"the mesh of ranks {sorted(other)} and that of ranks {sorted(one)} have a tensor of this name each, and "
                        "no rank in common; expected other names, or one mesh of all these ranks; compare_replicas=True finds "
                        "out whether they are equal", tensor=name,
                    )
