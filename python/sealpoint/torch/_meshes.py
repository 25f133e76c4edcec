# SPDX-License-Identifier: Apache-2.0
"""Tensors that have the same name on disjoint meshes but are not replicas, such as the experts of each rank."""

from __future__ import annotations

import json
from typing import Any

import torch.distributed as dist

from sealpoint._errors import InvalidArgumentError
from sealpoint._ranks.call import Call
from sealpoint.torch._dtensor import is_dtensor

# Tensor names by mesh. A mesh is given by its ranks.
Meshes = dict[tuple[int, ...], list[str]]


def note(meshes: Meshes, name: str, value: Any) -> None:
    if is_dtensor(value):
        meshes.setdefault(tuple(sorted(value.device_mesh.mesh.flatten().tolist())), []).append(name)


def check_names(meshes: Meshes, call: Call) -> None:
    """Checks that each name is used on only one mesh. Collective: the first rank of each mesh sends its names.

    This check is needed only if replicas are not compared, because a comparison would detect the different contents. Raises the
    same InvalidArgumentError on all ranks.
    """
    own = [[ranks, names] for ranks, names in meshes.items() if ranks[0] == dist.get_rank()]
    answers = call.all_gather(json.dumps(own).encode(), "compared the meshes of their tensors")
    found: dict[str, list[set[int]]] = {}
    for answer in answers:
        for ranks, names in json.loads(bytes(answer)):
            for name in names:
                found.setdefault(name, []).append(set(ranks))
    for name, held in found.items():
        for number, item in enumerate(held):
            for other in held[:number]:
                if item.isdisjoint(other):
                    raise InvalidArgumentError(
                        f"the mesh of ranks {sorted(other)} and the mesh of ranks {sorted(item)} each have a tensor "
                        "with this name, but have no rank in common; expected different names, or one mesh with all of these "
                        "ranks; compare_replicas=True compares the two tensors", tensor=name,
                    )
