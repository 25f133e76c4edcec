# SPDX-License-Identifier: Apache-2.0
"""Sessions of torch process groups."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

import torch.distributed as dist

from sealpoint._errors import InvalidArgumentError
from sealpoint._ranks.session import Session, Sessions, tells_ranks
from sealpoint.torch._communicator import GlooGroup, name_of_ranks


def _world() -> dist.ProcessGroup | None:
    return dist.group.WORLD if dist.is_available() and dist.is_initialized() else None


def _world_size() -> int:
    return 1 if _world() is None else int(dist.get_world_size())


_sessions = Sessions(_world, "; expected no_dist=True")


def session_of(group: dist.ProcessGroup | None, *, purpose: str = "", is_alone: bool = False) -> Session:
    """Returns the session of a group. Local.

    If ``group`` is None, the session is for all ranks, or for this process alone if torch.distributed is not initialized.

    Args:
        purpose: Separates threads that save concurrently.
        is_alone: Return the session of this process alone, regardless of other ranks.

    Raises InvalidArgumentError.
    """
    if group is not None and not isinstance(group, dist.ProcessGroup):
        raise InvalidArgumentError(
            f"process_group is {group!r}, expected a group of torch.distributed that has this rank, or None"
        )
    world = None if is_alone else _world()
    whole = None if world is None else group or world

    def make() -> Session:
        if whole is None:
            return Session(None, _world_size)
        ranks = dist.get_process_group_ranks(whole)
        name = f"session/{purpose}/{name_of_ranks(whole, ranks)}"
        return Session(GlooGroup(name, ranks.index(dist.get_rank()), len(ranks)), _world_size)

    return _sessions.get((whole, purpose), make, is_alone=whole is None)


def check_is_not_one_of_many(group: dist.ProcessGroup | None) -> None:
    """Raises InvalidArgumentError if the job has several processes but torch.distributed is not initialized. Local.

    Without this check, each process would save its own checkpoint to the same place.
    """
    size = os.environ.get("WORLD_SIZE", "")
    if group is None and size.isdecimal() and int(size) > 1 and _world() is None:
        raise InvalidArgumentError(
            f"WORLD_SIZE is {size}, and torch.distributed has no process group, so each of these processes would save alone; call "
            "torch.distributed.init_process_group() first, or pass no_dist=True to save alone"
        )


@contextlib.contextmanager
def errors_of_all(kind: str, group: dist.ProcessGroup | None) -> Iterator[None]:
    """Raises an error about this rank's arguments on this rank. All other ranks raise the error in their next call.

    The other ranks therefore do not wait for this rank.
    """
    try:
        yield
    except (TypeError, InvalidArgumentError) as error:
        is_parallel = dist.is_available() and dist.is_initialized() and isinstance(group, (dist.ProcessGroup, type(None)))
        if not is_parallel or session_of(group).size == 1:
            raise
        session_of(group).refuse(kind, error if isinstance(error, InvalidArgumentError) else InvalidArgumentError(str(error)))


tells_other_ranks = tells_ranks(
    lambda keywords: session_of(keywords.get("process_group"), is_alone=keywords.get("no_dist") is True)
)
