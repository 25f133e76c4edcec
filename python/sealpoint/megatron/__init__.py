# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of Megatron-core: its ``dist_checkpointing`` saves and loads through this library.

    import sealpoint.megatron
    sealpoint.megatron.enable()  # before the first save or load; the rest of the script stays as it is
"""

from __future__ import annotations

from typing import Unpack

from sealpoint.megatron import _patch
from sealpoint.megatron._buckets import bucket_layout
from sealpoint.megatron._newest import newest
from sealpoint.megatron._options import EnableKeywords, Options
from sealpoint.megatron._status import Status, status
from sealpoint.torch._directories import is_checkpoint
from sealpoint.torch._options import names_of, refuse_unknown, takes

disable = _patch.disable


@takes(EnableKeywords, Options)
def enable(**options: Unpack[EnableKeywords]) -> None:
    """Lets what Megatron calls ``torch_dist`` write and read checkpoints of this library, in this process.

    Saves go through it, sync and async, with FullyParallelSave or without; loads, if the directory holds such a checkpoint:
    others are loaded as always. All ranks call it, with the same arguments. It may be called again; ``disable`` undoes it.

    Args:
        optimizer_regions: state of the distributed optimizer is stored as parts of the model's parameters, whatever
            ``distrib_optim_sharding_type`` says, so that any load may have another parallelism, and nothing is gathered.
        replace: a save into a directory that holds a checkpoint removes that one first, also one of ``torch_dist``, but for
            one with a file KEEP. Off: only what this run left there itself, ahead of Megatron's tracker, makes way, so that
            a job that was killed or rolled back goes on; all else is AlreadyExistsError.
        compare_replicas: all replicas of a tensor are compared and share its bytes; off: the main ones are stored.
        convert: elements of other dtypes than the stored ones are converted, as by ``sealpoint.torch.load``.
        allow_pickle, codec, codec_level, chunk_size_bytes, threads, deadline, background_deadline, memory_budget_bytes:
            as for ``sealpoint.torch.save`` and ``load``.
    """
    refuse_unknown("enable()", options, names_of(EnableKeywords))
    _patch.enable(Options(**options))


__all__ = ["Status", "bucket_layout", "disable", "enable", "is_checkpoint", "newest", "status"]
