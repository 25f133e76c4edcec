# SPDX-License-Identifier: Apache-2.0
"""Versions in a series, and the checkpoints that a reader needs for one of them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import NamedTuple

from sealpoint import _sealpoint
from sealpoint._checkpoint import Checkpoint
from sealpoint._checkpoint import open as open_checkpoint
from sealpoint._errors import NotFoundError
from sealpoint._series import Series


class Target(NamedTuple):
    """A committed version, and the newer checkpoints that were passed over because they are not whole."""

    entry: _sealpoint.SeriesEntry
    skipped: list[str]

    @property
    def version(self) -> int:
        return -1 if self.entry.step is None else self.entry.step


def newest(place: str) -> Target | None:
    """Returns the newest whole version, or None if there is none. Raises the errors of ``Series.newest``."""
    found = Series(place).newest(allow_fallback=True)
    return None if found is None else Target(found.entry, [f"{entry.name}: {entry.problem}" for entry in found.skipped])


def version_at(place: str, version: int) -> Target:
    """Returns a committed version: the newest one of this number. Raises NotFoundError and the errors of ``Series.list``."""
    for entry in Series(place).list():
        if entry.step == version and entry.verdict == "committed":
            return Target(entry, [])
    raise NotFoundError(f"version {version} is not there", path=place)


@contextlib.contextmanager
def opened_chain(place: str, target: Target, held: str | None) -> Iterator[tuple[list[Checkpoint], bool]]:
    """Opens the checkpoints that lead from the held attempt to the target, oldest first.

    The second value tells whether they are all deltas, and the first of them is one to the held attempt. If it is False, the
    list has the target alone, whose reads take what they need of the chain from the storage.
    """
    with contextlib.ExitStack() as stack:
        chain = [stack.enter_context(open_checkpoint(target.entry.path))]
        base, paths = chain[0].base, dict[str, str]()
        if held is not None and base is not None and base.attempt != held:
            paths = {entry.attempt: entry.path for entry in Series(place).list() if entry.attempt is not None}
        while held is not None and base is not None and base.attempt != held:
            if base.attempt not in paths:  # pruned meanwhile, or elsewhere
                base = None
                break
            chain.insert(0, stack.enter_context(open_checkpoint(paths[base.attempt])))
            base = chain[0].base
        is_on_held = held is not None and base is not None
        yield (chain if is_on_held else chain[-1:]), is_on_held
