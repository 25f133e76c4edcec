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
    """Runs check(path) on rank 0. Called within an ``agree``.

    Ignores errors from reading the path, because the call itself reports them later.
    """
    if call.rank == 0:
        try:
            check(path_of(path))
        except OSError as error:
            if isinstance(error, Error):
                raise


def open_reader(
    call: Call, path: Path, memory_budget_bytes: int, check: Callable[[str], None] | None = None
) -> _sealpoint.CollectiveReader:
    """Opens the checkpoint in the first exchange of a call. Collective. ``check(path)`` runs on rank 0 first."""

    def begin() -> tuple[None, bytes]:
        if check is not None:
            check_on_first(call, path, check)
        return None, b""

    call.agree(begin, "began the load")
    return _sealpoint.CollectiveReader(call.communicator, path, memory_budget_bytes)


def read_tree(reader: _sealpoint.CollectiveReader) -> Any:
    """Reads the tree of a checkpoint, or builds a tree from the tensor names if the checkpoint has no tree. Collective."""
    try:
        return _tree.parse(reader.read_object(_tree.OBJECT))
    except NotFoundError:
        return tree_of_names(Checkpoint(reader.checkpoint(), 1))


def tree_of_names(names: Iterable[str]) -> dict[str, Any]:
    """Builds a tree for a checkpoint that has no tree. The tree has each tensor under its name."""
    return {name: {_tree.KIND: "tensor", "name": name} for name in names}


def values_of_rank(reader: _sealpoint.CollectiveReader, node: Any, rank: int) -> dict[str, Any]:
    """Reads the ``per_rank`` values of one rank. Local."""
    objects = Checkpoint(reader.checkpoint(), 1).objects
    name = _tree.rank_object(rank)
    if name not in objects or not any(_tree.nodes_of(node, ("per_rank",))):
        return {}
    values: dict[str, Any] = _tree.parse(objects[name])
    return values
