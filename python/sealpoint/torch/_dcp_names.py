# SPDX-License-Identifier: Apache-2.0
"""Maps the flattened names that torch.distributed.checkpoint uses to the tree of a checkpoint."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.checkpoint.metadata import (
    STORAGE_TYPES,
    BytesStorageMetadata,
    ChunkStorageMetadata,
    TensorProperties,
    TensorStorageMetadata,
)

from sealpoint._arguments import Path, path_of
from sealpoint._checkpoint import Checkpoint
from sealpoint._errors import CorruptError, Error, InvalidArgumentError, UnsupportedError
from sealpoint._tree import OBJECT, Node, text_of
from sealpoint._tree import Path as TreePath
from sealpoint._tree_paths import entries_of, flatten, kind_of
from sealpoint.torch._dtypes import DTYPE_OF


def _branches(node: Node, path: TreePath = ()) -> Iterator[tuple[TreePath, Node]]:
    """Returns all mappings and lists within a node."""
    entries = entries_of(node)
    items: Iterable[tuple[Any, Node]] = ()
    if entries is not None:
        items = ((str(key), value) for key, value in entries.items())
    elif isinstance(node, list):
        items = enumerate(node)
    else:
        return
    if path:
        yield path, node
    for key, value in items:
        yield from _branches(value, (*path, key))


class StoredState(Mapping[str, STORAGE_TYPES]):
    """The content of a checkpoint by flattened name, in the form of DCP metadata. Entries are built on access.

    Each tensor is one chunk, because the library itself locates the parts of a tensor. Mappings are not listed, but planners that
    do not flatten states can request mappings as values.
    """

    def __init__(self, tree: Node, checkpoint: Checkpoint) -> None:
        self.checkpoint = checkpoint
        self.paths: dict[str, TreePath] = {}
        self._nodes: dict[str, Node] = {}
        self._tree = tree
        self._within: dict[str, Node] | None = None
        for path, node in flatten(tree):
            name = text_of(path)
            if name in self._nodes:
                raise UnsupportedError("two places of the checkpoint have the same name in DCP", object=name)
            self.paths[name], self._nodes[name] = path, node

    def node(self, name: str) -> Node:
        """Returns the node with this name. Raises KeyError."""
        if name in self._nodes:
            return self._nodes[name]
        if self._within is None:
            self._within = {text_of(path): node for path, node in _branches(self._tree)}
        return self._within[name]

    def is_leaf(self, name: str) -> bool:
        return name in self._nodes

    def shape_of(self, tensor: str) -> tuple[int, ...]:
        return tuple(self.checkpoint[tensor].shape)

    def __getitem__(self, name: str) -> STORAGE_TYPES:
        node = self.node(name)
        if kind_of(node) != "tensor":
            return BytesStorageMetadata()
        stored = self.checkpoint[tensor_name(node)]
        if stored.dtype_name not in DTYPE_OF:
            raise UnsupportedError(f"this torch has no dtype {stored.dtype_name}", tensor=stored.name)
        size = torch.Size(stored.shape)
        return TensorStorageMetadata(
            properties=TensorProperties(dtype=DTYPE_OF[stored.dtype_name]),
            size=size,
            chunks=[ChunkStorageMetadata(offsets=torch.Size([0] * len(size)), sizes=size)],
        )

    def __contains__(self, name: object) -> bool:
        try:
            return isinstance(name, str) and self.node(name) is not self
        except KeyError:
            return False

    def __iter__(self) -> Iterator[str]:
        return iter(self._nodes)

    def __len__(self) -> int:
        return len(self._nodes)


def tensor_name(node: Node) -> str:
    name = node.get("name")
    if not isinstance(name, str):
        raise CorruptError("a tensor of the tree has no name", object=OBJECT)
    return name


def path_text(path: Path | None, what: str) -> str:
    if path is None:
        raise InvalidArgumentError(f"{what} has no path; pass one, or a checkpoint_id to DCP")
    return path_of(path)


def is_path(checkpoint_id: Any) -> bool:
    """Tells whether ``checkpoint_id`` is the path of a directory, as opposed to a network address."""
    if not isinstance(checkpoint_id, (str, os.PathLike)):
        return False
    try:
        return len(path_of(checkpoint_id)) > 0
    except Error:
        return False


def _own_place(group: dist.ProcessGroup | None, no_dist: bool) -> tuple[int, int]:
    if no_dist or not (dist.is_available() and dist.is_initialized()):
        return 0, 1
    return dist.get_rank(group), dist.get_world_size(group)


def check_rank(rank: int | None, group: dist.ProcessGroup | None, no_dist: bool) -> None:
    """Checks that ``dcp.save`` received the same group. The check compares the rank, because DCP passes only the rank."""
    place, _ = _own_place(group, no_dist)
    if rank is not None and rank != place:
        raise InvalidArgumentError(
            f"rank is {place} in the process_group passed here, but {rank} in that of DCP; "
            "pass the same process_group and no_dist to both"
        )


def check_size(count: int, group: dist.ProcessGroup | None, no_dist: bool) -> None:
    _, size = _own_place(group, no_dist)
    if count != size:
        raise InvalidArgumentError(
            f"the process_group passed here has {size} ranks, but that of DCP has {count}; "
            "pass the same process_group and no_dist to both"
        )
