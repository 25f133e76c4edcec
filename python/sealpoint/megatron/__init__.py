# SPDX-License-Identifier: Apache-2.0
"""Checkpoints for Megatron-core: its ``dist_checkpointing`` saves and loads through this library.

    import sealpoint.megatron
    sealpoint.megatron.enable()  # before the first save or load; the rest of the script stays the same
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
    """Makes Megatron's ``torch_dist`` format write and read checkpoints of this library, in this process.

    Replaces all saves, sync and async, with or without FullyParallelSave. A load is replaced if the directory has a checkpoint of
    this library; otherwise Megatron loads as usual. Collective: all ranks call it with the same arguments. It may be called again;
    ``disable`` undoes it. Directories may be URLs of object stores (docs/guides/megatron.md).

    Args:
        compare_replicas: Compare all replicas of a tensor and distribute its bytes among them. False: store the main
            replicas.
        frozen: As for ``sealpoint.torch.save``, by patterns of Megatron's keys: unchanged tensors are linked from this
            run's last checkpoint in the folder.
        staged: Directory on a node-local disk; may differ by rank. A save is committed there, in a subdirectory for its
            run, and copied to Megatron's directory in the background. A load first finishes promotions of an earlier
            job, so all ranks must then load. A failed promotion is logged and retried with the next save.
        optimizer_regions: Store the state of the distributed optimizer as parts of the model's parameters, regardless
            of ``distrib_optim_sharding_type``. Any load may then use another parallelism, and nothing is gathered.
        replace: A save first removes an existing checkpoint in its directory, including one of ``torch_dist``, unless a
            KEEP file pins it. False: it removes only checkpoints that this run saved after the iteration in Megatron's
            tracker, so that a killed or rolled back job can continue; others raise AlreadyExistsError.
        codec, codec_level, chunk_size_bytes: As for ``sealpoint.save``.
        allow_pickle, full_every, keep_local, deadline, memory_budget_bytes: As for ``sealpoint.torch.save``.
        convert, threads: As for ``sealpoint.torch.load``.
        background_deadline: As for ``sealpoint.torch.save_async``.
    """
    refuse_unknown("enable()", options, names_of(EnableKeywords))
    chosen = Options(**options)
    check(**vars(chosen))
    _patch.enable(chosen)


__all__ = ["Status", "bucket_layout", "disable", "enable", "is_checkpoint", "newest", "status"]
