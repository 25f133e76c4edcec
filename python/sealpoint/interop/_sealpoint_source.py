# SPDX-License-Identifier: Apache-2.0
"""Sealpoint checkpoints as a source."""

from __future__ import annotations

from collections.abc import Sequence

from sealpoint import _paths, _tree
from sealpoint._checkpoint import Checkpoint
from sealpoint._checkpoint import Tensor as StoredTensor
from sealpoint._checkpoint import open_own as open_checkpoint
from sealpoint._errors import CorruptError, Error, UnsupportedError
from sealpoint._native import MARKER
from sealpoint._tree import Node, parse, rank_object
from sealpoint._tree_paths import entries_of, kind_of
from sealpoint.interop import _boxes
from sealpoint.interop._boxes import Box, Extents
from sealpoint.interop._dtypes import ITEM_SIZE
from sealpoint.interop._source import FileInfo, Reader, State, flat_tree


class SealpointTensor:
    is_protected = True

    def __init__(self, stored: StoredTensor, checkpoint: Checkpoint) -> None:
        self._stored, self._checkpoint = stored, checkpoint
        self.name, self.dtype = stored.name, stored.dtype_name
        self.shape: Extents = stored.shape
        self.fingerprint = stored.fingerprint
        self.attributes = stored.attributes

    @property
    def boxes(self) -> Sequence[Box]:
        return [_boxes.whole(self.shape)]

    def reader(self, memory_bytes: int) -> Reader:
        return self

    def read(self, box: Box, out: memoryview) -> None:
        if box.size == 0:
            return
        index = tuple(slice(x, x + n) for x, n in zip(*box, strict=True)) if box.extent else ...
        self._stored.read(out, index)

    def finish(self) -> None:
        """Does nothing, because each read has already verified its bytes."""


def open_sealpoint(path: str) -> State:
    checkpoint = open_checkpoint(path)
    tensors = {name: SealpointTensor(tensor, checkpoint) for name, tensor in checkpoint.items()}
    for tensor in tensors.values():
        if tensor.dtype not in ITEM_SIZE:
            raise UnsupportedError(f"dtype {tensor.dtype} is in no other format", path=path, tensor=tensor.name)
    objects = {name: (checkpoint.objects.media_type(name), bytes(checkpoint.objects[name])) for name in checkpoint.objects}
    _, tree = objects.pop(_tree.OBJECT, ("", None))
    state = State(
        "sealpoint",
        path,
        flat_tree(list(tensors)),
        dict(tensors),
        _files(path, checkpoint),
        digest="XXH3-128 of each chunk, which is verified",
    )
    if tree is not None:
        node = _tree.parse(tree)
        if not isinstance(node, dict) or node.get(_tree.KIND, "dict") != "dict":
            raise CorruptError(f"the tree is {_tree.brief(node)}, expected a mapping", path=path, object=_tree.OBJECT)
        state.tree = node
    state.objects, state.step, state.provenance = objects, checkpoint.step, checkpoint.provenance
    state.attributes = checkpoint.attributes
    state.close = checkpoint.close
    _take_rank_values(state)
    _check_tree(state)
    return state


def _files(path: str, checkpoint: Checkpoint) -> list[FileInfo]:
    sizes = {f"{blob.id}.blob": blob.file_size_bytes for blob in checkpoint.blobs}
    infos = []
    for name, size in sorted(_paths.sizes_of(path).items()):
        if name in sizes:
            meaning = "payload: chunks of tensors and objects, with their digests"
        elif name == MARKER:
            meaning = "commit marker: commits the checkpoint and pins the index"
        elif name == f"{checkpoint.attempt}.index":
            meaning = "index: names, shapes, shard locations, and the digests of blobs"
        elif name == "KEEP":
            meaning = "pin: a pinned checkpoint is never deleted"
        else:
            meaning = "not part of the checkpoint, not read"
        infos.append(FileInfo(name, size, meaning))
    return infos


def _check_tree(state: State) -> None:
    """Raises CorruptError if the tree is not a valid tree of this state."""
    try:
        if entries_of(state.tree) is None:
            raise CorruptError(f"the tree is {_tree.brief(state.tree)}, expected a mapping", path=state.path)
        _check(state)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, Error):
            raise
        raise CorruptError(f"the tree has a malformed node: {error!r:.100}", path=state.path) from None


def _take_rank_values(state: State) -> None:
    """Moves the ``per_rank`` values from the objects that store them to ``rank_values``. Raises CorruptError."""
    while (name := rank_object(len(state.rank_values))) in state.objects:
        values = parse(state.objects.pop(name)[1])
        if not isinstance(values, dict):
            raise CorruptError(
                f"values of a rank are {_tree.brief(values)}, expected a mapping", path=state.path, object=name
            )
        state.rank_values.append(values)


def _check(state: State) -> None:
    """Checks that the checkpoint has each tensor of the tree, and that the tree has each tensor of the checkpoint.

    Raises CorruptError and UnsupportedError.
    """
    named: set[str] = set()
    stack: list[Node] = [state.tree, *(list(values.values()) for values in state.rank_values)]
    while stack:
        node = stack.pop()
        if kind_of(node) == "tensor":
            if node.get("name") not in state.tensors:
                raise CorruptError(
                    "the tree names a missing tensor", path=state.path, tensor=str(node.get("name"))
                )
            named.add(node["name"])
        elif isinstance(node, dict):
            entries = entries_of(node)
            stack.extend(entries.values() if entries is not None else node.values())
        elif isinstance(node, list):
            stack.extend(node)
    for name in state.tensors:
        if name not in named:
            raise CorruptError("the tree has no place for it", path=state.path, tensor=name)
