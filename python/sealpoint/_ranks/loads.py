# SPDX-License-Identifier: Apache-2.0
"""Collective reads of checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from sealpoint import _sealpoint, _tree
from sealpoint._arguments import Path, path_of
from sealpoint._checkpoint import Checkpoint
from sealpoint._errors import Error, NotFoundError
from sealpoint._ranks.call import Call


def check_on_first(call: Call, path: Path, check: Callable[[str], None]) -> None:
    """Runs check(path) on rank 0, within a function that ``agree`` runs. An unreadable path is left to the call itself."""
    if call.rank == 0:
        try:
            check(path_of(path))
        except OSError as error:
            if isinstance(error, Error):
                raise


def open_reader(
    call: Call, path: Path, memory_budget_bytes: int, check: Callable[[str], None] | None = None
) -> _sealpoint.CollectiveReader:
    """Opens the checkpoint as the first exchange of a call. Collective. ``check`` runs on rank 0 before, with the path."""

    def begin() -> tuple[None, bytes]:
        if check is not None:
            check_on_first(call, path, check)
        return None, b""

    call.agree(begin, "began the load")
    return _sealpoint.CollectiveReader(call.communicator, path, memory_budget_bytes)


def read_tree(reader: _sealpoint.CollectiveReader) -> Any:
    """Reads the tree of a checkpoint; without one, uses tensor names. Collective."""
    try:
        return _tree.parse(reader.read_object(_tree.OBJECT))
    except NotFoundError:
        return tree_of_names(Checkpoint(reader.checkpoint(), 1))


def tree_of_names(names: Iterable[str]) -> dict[str, Any]:
    """Returns the tree of a checkpoint without one: each tensor under its name."""
    return {name: {_tree.KIND: "tensor", "name": name} for name in names}


def values_of_rank(reader: _sealpoint.CollectiveReader, node: Any, rank: int) -> dict[str, Any]:
    """Reads the ``per_rank`` values of a rank. Local."""
    objects = Checkpoint(reader.checkpoint(), 1).objects
    name = _tree.rank_object(rank)
    if name not in objects or not any(_tree.nodes_of(node, ("per_rank",))):
        return {}
    values: dict[str, Any] = _tree.parse(objects[name])
    return values
