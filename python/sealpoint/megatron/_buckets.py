# SPDX-License-Identifier: Apache-2.0
"""Positions of parameters in the buckets of Megatron's distributed optimizer, for ``ckpt convert --buckets``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from sealpoint._errors import InvalidArgumentError
from sealpoint.megatron._optimizer import metadata_by_parameter, parts_of, runs_of
from sealpoint.torch._session import session_of
from sealpoint.torch._state import agree


def _buckets_of(optimizer: Any, prefix: str, metadata_of: dict[Any, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Returns the buckets of this rank's data-parallel group."""
    for number, per_dtype in enumerate(optimizer.gbuf_ranges):
        buffer = optimizer.buffers[number]
        for dtype in per_dtype:
            name = f"{prefix}optimizer.distributed.dp_group_idx_{optimizer.data_parallel_group_idx}.gbuf_idx_{number}"
            found: list[dict[str, Any]] = [
                {"size": int(bucket.numel_unpadded), "runs": []} for bucket in buffer.buckets
            ]
            for parameter, (start, end, at) in buffer.param_index_map.items():
                metadata = metadata_of.get(parameter)
                if metadata is None:
                    raise InvalidArgumentError(f"a parameter of shape {list(parameter.shape)} is not in the model's state")
                if any(tuple(metadata.replica_id)[:-1]):
                    continue  # a different group of ranks lists this parameter
                parts, views = parts_of(metadata, metadata.key)
                for part, view in zip(parts, views, strict=True):
                    for _, run, begin in runs_of(view, 0, 0, end - start, metadata.key):
                        found[at]["runs"].append({
                            "tensor": part.key, "shape": list(part.global_shape), "offset": list(part.global_offset),
                            "extent": [1] * part.prepend_axis_num + list(part.local_shape), "run": list(run),
                            "at": int(start - buffer.buckets[at].offset + begin),
                        })
            yield from ((f"{name}.dtype_{dtype}.bucket_idx_{at}", item) for at, item in enumerate(found))


def bucket_layout(optimizer: Any, model_sharded_state_dict: Any) -> dict[str, Any]:
    """Returns the position that each parameter has in the buckets of the format ``dp_reshardable``.

    Checkpoints of that format do not record these positions. Write the result to a JSON file for ``ckpt convert --buckets``. The
    file is valid for all checkpoints of the same model with the same tensor, pipeline and expert parallelism. Collective: all ranks
    call it, and each rank gets the complete result.

    Args:
        optimizer: Result of get_megatron_optimizer.
        model_sharded_state_dict: The sharded state dict of the model, as passed to the optimizer's own sharded_state_dict.

    Raises:
        InvalidArgumentError: the state dict does not belong to the optimizer's model. The error is the same on all ranks.

    Examples:
        >>> import json
        >>> from sealpoint.megatron import bucket_layout
        >>> layout = bucket_layout(optimizer, model.sharded_state_dict())  # after setup_model_and_optimizer
        >>> with open("buckets.json", "w") as file:
        ...     json.dump(layout, file)
    """
    chained = getattr(optimizer, "chained_optimizers", [optimizer])

    def find() -> tuple[bool, bytes]:
        metadata_of = metadata_by_parameter(model_sharded_state_dict)
        found: dict[str, Any] = {}
        for number, item in enumerate(chained):
            prefix = f"chained_{number}." if len(chained) > 1 else ""
            is_first = item.data_parallel_group.rank() == 0 and getattr(item, "distributed_optimizer_instance_id", 0) == 0
            if is_first:
                found.update(_buckets_of(item, prefix, metadata_of))
        return True, json.dumps(found).encode()

    with session_of(None).call("bucket_layout") as call:
        _, answers = agree(call, find, "exchanged their buckets")
    buckets: dict[str, Any] = {}
    for answer in answers:
        buckets.update(json.loads(bytes(answer)))
    return {"sealpoint_buckets": 1, "buckets": buckets}
