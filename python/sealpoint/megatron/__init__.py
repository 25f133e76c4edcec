# SPDX-License-Identifier: Apache-2.0
"""Checkpoints for Megatron-core: makes ``dist_checkpointing`` save and load through this library.

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
    """Makes Megatron's ``torch_dist`` format write and read Sealpoint checkpoints in this process.

    All sync and async saves are redirected, with or without FullyParallelSave. Loads are redirected only if the directory contains
    a Sealpoint checkpoint; otherwise Megatron loads as usual. Collective: all ranks call it with the same arguments. A second call
    replaces the options of the first call. ``disable`` restores Megatron's own saves and loads. Directories may be URLs of object
    stores (docs/guides/megatron.md).

    Args:
        compare_replicas: Compare all replicas of a tensor, and divide the writing among the ranks that have a replica.
            If False, only the main replica of each tensor is stored, without comparison.
        frozen: As for ``sealpoint.torch.save``, with patterns of Megatron's keys. Unchanged tensors are linked from
            this run's last checkpoint in the folder.
        staged: Directory on a node-local disk; may differ between ranks. A save is first committed in this directory,
            in a subdirectory for its run. It is then copied to Megatron's directory in the background. A load first
            finishes the promotions of an earlier job, so all ranks must load. If a promotion fails, the error is
            logged, and the next save tries the promotion again.
        optimizer_regions: Store the state of the distributed optimizer as parts of the model's parameters, regardless
            of ``distrib_optim_sharding_type``. Any load may then use a different parallelism, and no rank gathers
            state.
        replace: If its directory already has a checkpoint, a save first removes this checkpoint, even in the format
            ``torch_dist``. A checkpoint pinned by a KEEP file is not removed. If False, a save removes only checkpoints
            that this run saved after the iteration in Megatron's tracker. A killed or rolled back job can thus
            continue. Any other checkpoint raises AlreadyExistsError.
        codec, codec_level, chunk_size_bytes, stored_cuts, fingerprints: As for ``sealpoint.save``.
        allow_pickle, full_every, keep_local, deadline, memory_budget_bytes: As for ``sealpoint.torch.save``.
        convert, threads: As for ``sealpoint.torch.load``.
        background_deadline: As for ``sealpoint.torch.save_async``.

    Raises:
        InvalidArgumentError: an option is invalid.
        TypeError: an option is unknown. The error suggests the nearest name.

    Examples:
        >>> import sealpoint.megatron
        >>> sealpoint.megatron.enable(staged="/tmp/sealpoint", keep_local=1)
        >>> sealpoint.megatron.status().options.keep_local
        1
    """
    refuse_unknown("enable()", options, names_of(EnableKeywords))
    chosen = Options(**options)
    check(**vars(chosen))
    _patch.enable(chosen)


__all__ = ["Status", "bucket_layout", "disable", "enable", "is_checkpoint", "newest", "status"]
