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
    """Finishes what an earlier job left on local disks; returns the names of what was promoted. All ranks call it.

    Before the newest checkpoint of the series is looked for: what is newer on local disks, and whole over all nodes
    together, is in the series afterwards, whatever number of ranks there is. What is not is logged ("sealpoint", as a
    warning).

    Args:
        staged: the local directory, as for ``save``; may differ by rank.
        series: the directory that the saves were to go to.
        keep_local: how many of the local copies stay.

    Errors, the same on all ranks: InvalidArgumentError, IoError, CommError, TimeoutError.
    """
    return promotions.resume(session_of(process_group), staged, series, keep_local)
