# SPDX-License-Identifier: Apache-2.0
"""Tensors with the same name on disjoint meshes, such as the experts of each rank: they are not replicas."""

from __future__ import annotations

import json
from typing import Any

import torch.distributed as dist
from torch.distributed.tensor import DTensor

from sealpoint._errors import InvalidArgumentError
from sealpoint._ranks.call import Call

# Tensor names by mesh, given as its ranks.
Meshes = dict[tuple[int, ...], list[str]]


def note(meshes: Meshes, name: str, value: Any) -> None:
    if isinstance(value, DTensor):
        meshes.setdefault(tuple(sorted(value.device_mesh.mesh.flatten().tolist())), []).append(name)


def check_names(meshes: Meshes, call: Call) -> None:
    """Checks that a name is used on one mesh only. Collective: the first rank of each mesh sends its names.

    Needed only without comparison of replicas, which would detect different content. Raises InvalidArgumentError, the same on
    all ranks.
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
