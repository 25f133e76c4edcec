# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of Megatron-core: its ``dist_checkpointing`` saves and loads through this library.

    import sealpoint.megatron
    sealpoint.megatron.enable()  # before the first save or load; the rest of the script stays as it is
"""

from __future__ import annotations

from typing import Unpack

from sealpoint._directories import is_checkpoint
from sealpoint._keywords import names_of, refuse_unknown, takes
from sealpoint.megatron import _patch
from sealpoint.megatron._buckets import bucket_layout
from sealpoint.megatron._newest import newest
from sealpoint.megatron._options import EnableKeywords, Options
from sealpoint.megatron._status import Status, status
from sealpoint.torch._arguments import check

disable = _patch.disable


@takes(EnableKeywords, Options)
def enable(**options: Unpack[EnableKeywords]) -> None:
    """Lets what Megatron calls ``torch_dist`` write and read checkpoints of this library, in this process.

    Saves go through it, sync and async, with FullyParallelSave or without; loads, if the directory holds such a checkpoint:
    others are loaded as always. All ranks call it, with the same arguments. It may be called again; ``disable`` undoes it.
    Directories may be URLs of object stores (docs/guides/megatron.md).

    Args:
        optimizer_regions: state of the distributed optimizer is stored as parts of the model's parameters, whatever
            ``distrib_optim_sharding_type`` says, so that any load may have another parallelism, and nothing is gathered.
        replace: a save into a directory that holds a checkpoint removes that one first, also one of ``torch_dist``, but for
            one with a file KEEP. Off: only what this run left there itself, ahead of Megatron's tracker, makes way, so that
            a job that was killed or rolled back goes on; all else is AlreadyExistsError.
        compare_replicas: all replicas of a tensor are compared and share its bytes; off: the main ones are stored.
        convert: elements of other dtypes than the stored ones are converted, as by ``sealpoint.torch.load``.
        staged: a directory on a disk of this node, which may differ by rank: a save is over when it is committed there, in
            a directory for its run, and is copied to Megatron's directory behind the training. A load first finishes what a
            job left there: then all ranks load, whatever they load. A copy that failed is logged, and tried again with the
            next save.
        keep_local: how many of these local checkpoints stay once they are in their final place.
        frozen, full_every: as for ``sealpoint.torch.save``, by patterns of Megatron's keys: what did not change since this
            run's last checkpoint in the folder is linked from there.
        allow_pickle, codec, codec_level, chunk_size_bytes, threads, deadline, background_deadline, memory_budget_bytes:
            as for ``sealpoint.torch.save`` and ``load``.
    """
    refuse_unknown("enable()", options, names_of(EnableKeywords))
    chosen = Options(**options)
    check(staged=chosen.staged, keep_local=chosen.keep_local, frozen=chosen.frozen, full_every=chosen.full_every)
    _patch.enable(chosen)


__all__ = ["Status", "bucket_layout", "disable", "enable", "is_checkpoint", "newest", "status"]
