# SPDX-License-Identifier: Apache-2.0
"""DCP saves through the coordinator: each rank writes blobs, and the coordinator commits."""

from __future__ import annotations

from typing import Any

import torch
from torch.distributed.checkpoint.metadata import Metadata, MetadataIndex
from torch.distributed.checkpoint.planner import SavePlan, SavePlanner, WriteItemType
from torch.distributed.checkpoint.storage import WriteResult

from sealpoint import _save, _tree
from sealpoint._checkpoint import open_own as open_checkpoint
from sealpoint._errors import AlreadyExistsError, Error, UnsupportedError
from sealpoint._native import check_none
from sealpoint._save import BlobWriter
from sealpoint._tree import KIND, Node
from sealpoint._tree_paths import nest
from sealpoint.torch import _shards
from sealpoint.torch._dcp_plan import memory_of, path_of, value_of
from sealpoint.torch._options import SaveOptions

_BLOBS = "sealpoint.blobs"


def check_is_new(path: str) -> None:
    """Raises AlreadyExistsError if the directory already has a checkpoint.

    This check runs before anything is written. The commit repeats the check atomically.
    """
    check_none(path)
    try:
        open_checkpoint(path, check_files=False).close()
    except Error:
        return
    raise AlreadyExistsError("the directory already holds a checkpoint", path=path)


def _bytes_of(memory: torch.Tensor) -> Any:
    """Views a tensor as bytes, with an additional axis for multi-byte elements, because numpy lacks some dtypes."""
    dense = memory.cpu().contiguous()
    data = torch.empty(0, dtype=torch.uint8) if dense.numel() == 0 else dense.reshape(-1).view(torch.uint8)
    size = dense.element_size()
    return data.numpy().reshape(dense.shape if size == 1 else (*dense.shape, size))


def write(path: str, plan: SavePlan, planner: SavePlanner, options: SaveOptions) -> list[WriteResult]:
    """Writes one rank's part. Returns results that contain the rank's values and blob summaries."""
    results = []
    with BlobWriter(path, step=options.step) as writer:

        def add_inner(name: str, value: Any) -> str:
            raise UnsupportedError("a tensor within a value; DCP flattens mappings and lists only", tensor=name)

        encoder = _tree.Encoder(_shards.is_tensor, add_inner, 0, 1, options.allow_pickle)
        for item in plan.items:
            name = item.index.fqn
            if item.type == WriteItemType.BYTE_IO:
                node = _tree.dump(encoder.encode(value_of(item, planner), path_of(name, plan.planner_data)))
                results.append(WriteResult(item.index, len(node), node))
                continue
            shape, box, memory = memory_of(item, planner)
            assert box is not None
            array = (_bytes_of(memory), _shards.check_storable(memory, name))
            if memory.numel() > 0 or _shards.count_of(shape) == 0:
                writer.add(name, array, shape=shape, offset=box[0], codec=options.codec,
                           codec_level=options.codec_level, chunk_size_bytes=options.chunk_size_bytes)
            results.append(WriteResult(item.index, memory.numel() * memory.element_size(), None))
        if encoder.rank_values:
            raise UnsupportedError("per_rank needs all ranks, expected through_coordinator=False",
                                   object=next(iter(encoder.rank_values)))
        results.append(WriteResult(MetadataIndex(_BLOBS), 0, writer.finish()))
    return results


def commit(path: str, metadata: Metadata, results: list[list[WriteResult]], options: SaveOptions) -> None:
    """Commits on the coordinator. After an error the blobs remain, but there is no checkpoint."""
    summaries: list[bytes] = []
    nodes: dict[str, Node] = {}
    for result in (item for of_rank in results for item in of_rank):
        name = result.index.fqn
        if name == _BLOBS:
            summaries.extend(result.storage_data)
        elif result.storage_data is None:
            nodes[name] = {KIND: "tensor", "name": name}
        else:
            nodes[name] = _tree.parse(result.storage_data)
    tree = nest((path_of(name, metadata.planner_data), node) for name, node in nodes.items())
    with BlobWriter(path, step=options.step) as writer:
        writer.add_object(_tree.OBJECT, (_tree.dump(tree), _tree.MEDIA_TYPE))
        summaries.extend(writer.finish())
        _save.commit(path, summaries, step=options.step, parent=options.parent, provenance=options.provenance,
                     attributes=options.attributes)  # fmt: skip
