# SPDX-License-Identifier: Apache-2.0
"""Access to the store of torch.distributed, and messages about ranks that have not set their keys."""

from __future__ import annotations

from typing import Any

from torch.distributed.distributed_c10d import _get_default_store

from sealpoint._errors import UnsupportedError

STORE_NAME = "the store of torch.distributed"
# Polling intervals: the first, the longest, and a bound on the combined polling rate of all ranks.
LOOK_FIRST_SECONDS, _LOOK_MAX_SECONDS = 0.002, 0.2
_LOOKS_PER_SECOND = 2048
_NAMED_MAX = 8
_NO_STORE = (
    "torch.distributed has no store to connect the ranks (its backend mpi has none); call "
    'torch.distributed.init_process_group("gloo") or ("nccl") instead, or pass no_dist=True if this process saves alone'
)


def look_max_seconds(size: int) -> float:
    """Returns the longest interval in seconds at which a rank polls."""
    return max(_LOOK_MAX_SECONDS, size / _LOOKS_PER_SECOND)


def own_store() -> Any:
    """Opens a private connection to the store of torch.distributed, so that waits do not block other calls.

    Raises UnsupportedError if torch.distributed has no store.
    """
    try:
        store = _get_default_store()
    except (ValueError, RuntimeError) as error:
        raise UnsupportedError(f"{_NO_STORE}: {' '.join(str(error).split())}") from error
    if store is None:
        raise UnsupportedError(_NO_STORE)
    return store.clone() if hasattr(store, "clone") else store


def text_of_absent(store: Any, arrived: list[str], all_came: str) -> str:
    """Formats the ranks that have not set their keys, or returns ``all_came``."""
    absent = [rank for rank, key in enumerate(arrived) if not store.check([key])]
    return f"{named(absent, len(arrived))} did not arrive to connect" if absent else all_came


def named(absent: list[int], size: int) -> str:
    first = ", ".join(map(str, absent[:_NAMED_MAX]))
    more = f" and {len(absent) - _NAMED_MAX} more" if len(absent) > _NAMED_MAX else ""
    return f"{'rank' if len(absent) == 1 else 'ranks'} {first}{more} of {size}"
