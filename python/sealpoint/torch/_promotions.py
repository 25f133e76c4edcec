# SPDX-License-Identifier: Apache-2.0
"""Promotions that an earlier job did not finish."""

from __future__ import annotations

import torch.distributed as dist

from sealpoint._arguments import Path
from sealpoint._ranks import promotions
from sealpoint.torch._session import session_of


def resume_promotions(
    staged: Path, series: Path, *, keep_local: int = 0, process_group: dist.ProcessGroup | None = None
) -> list[str]:
    """Finishes the promotions of an earlier job from local disks. Collective: all ranks call it.

    Call this function before you look for the newest checkpoint of the series. Afterwards, the series contains all newer
    checkpoints that are complete across the local disks of all nodes. The number of ranks may differ from the save. Incomplete
    checkpoints are logged as warnings ("sealpoint").

    Args:
        staged: Local directory, as for ``save``. May differ between ranks.
        series: Directory of the series, to which the saves are copied.
        keep_local: Number of local copies to keep.
        process_group: As for ``save``.

    Returns:
        The names of the promoted checkpoints.

    Raises:
        InvalidArgumentError: an argument is invalid.
        IoError: the storage failed.
        CommError: the communication between ranks failed.
        TimeoutError: a rank did not answer in time.

    Errors are the same on all ranks.

    Examples:
        >>> import os, torch, sealpoint.torch as sp
        >>> local = os.path.abspath("local")  # a disk of this node
        >>> _ = sp.save({"w": torch.ones(2)}, "run", series=True, step=1, staged=local)
        >>> _ = sp.resume_promotions(local, "run")  # in the next job
        >>> sp.Checkpointer("run").resume({"w": torch.zeros(2)})
        1
    """
    return promotions.resume(session_of(process_group), staged, series, keep_local)
