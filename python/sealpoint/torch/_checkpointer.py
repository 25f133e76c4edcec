# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of a training loop."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from types import TracebackType
from typing import Any

import torch.distributed as dist

from sealpoint import _sealpoint
from sealpoint._checkpoint import Path
from sealpoint._errors import Error
from sealpoint._series import Series
from sealpoint.torch._load import load
from sealpoint.torch._save import SaveFuture, save, save_async
from sealpoint.torch._session import session_of
from sealpoint.torch._state import Contract, ask_first


class Checkpointer:
    """The checkpoints of one training: saves every ``every`` steps, resumes from the newest whole one, deletes old ones.

        with Checkpointer("run", every=100, keep=3) as checkpoints:
            step = checkpoints.resume(state) or 0
            for step in range(step + 1, last + 1):
                train(step)
                checkpoints.step(step, state)

    All ranks call all functions, in the same order. At the end of the ``with`` the last save is waited for.

    Args:
        directory: of the series, made if it is missing.
        every: steps between two saves.
        keep: how many of the newest stay; at least 2, since a newest one may turn out to be bad. None: all.
        wait: save while training stands still, instead of in the background.
        process_group, options: as for ``save``; options are its further keywords.
    """

    def __init__(
        self,
        directory: Path,
        *,
        every: int = 1,
        keep: int | None = None,
        wait: bool = False,
        process_group: dist.ProcessGroup | None = None,
        **options: Any,
    ) -> None:
        if every < 1:
            raise ValueError(f"every is {every}, expected at least 1")
        if keep is not None and keep < 2:
            raise ValueError(f"keep is {keep}, expected at least 2, or None")
        self._directory, self._every, self._keep, self._wait = directory, every, keep, wait
        self._group, self._options = process_group, options
        self._pending: SaveFuture | None = None

    def step(self, step: int, state_dict: Mapping[Any, Any]) -> SaveFuture | _sealpoint.CommitInfo | None:
        """Saves if ``step`` is due; returns what ``save`` or ``save_async`` does, or None if it is not.

        An error of the save before this one is raised here.
        """
        return self.save(step, state_dict) if step % self._every == 0 else None

    def save(self, step: int, state_dict: Mapping[Any, Any]) -> SaveFuture | _sealpoint.CommitInfo:
        """Saves now. First waits for the save before it, which is seldom still under way, and raises its error."""
        self.wait()
        common: dict[str, Any] = dict(self._options, series=True, step=step, process_group=self._group)
        if self._wait:
            info = save(state_dict, self._directory, **common)
            self._prune()
            return info
        self._pending = save_async(state_dict, self._directory, **common)
        return self._pending

    def wait(self) -> None:
        """Waits for the save under way, raises its error, and deletes what need not be kept."""
        pending, self._pending = self._pending, None
        if pending is not None:
            pending.result()
            self._prune()

    def _prune(self) -> None:
        """On rank 0; a failure there is no failure of the training, and the next save tries again."""
        if self._keep is None or session_of(self._group).communicator.rank != 0:
            return
        try:
            Series(self._directory).prune(keep_last=self._keep)
        except Error as error:
            import warnings

            warnings.warn(f"old checkpoints were not deleted: {error}", RuntimeWarning, stacklevel=3)

    def newest(self) -> str | None:
        """The path of the newest committed checkpoint, or None if there is none: the same answer on all ranks."""

        def find() -> str | None:
            found = Series(self._directory).newest()
            return None if found is None else found.entry.path

        path = ask_first(session_of(self._group).communicator, find)
        return None if path is None else str(path)

    def clean(self) -> int:
        """Removes what saves left that never were committed, of ranks that died say; returns the bytes freed.

        For a moment when no other job saves here, such as before ``resume``: its save would fail. What stays of an
        attempt is a marker that keeps a slow writer out, until it is called again. Errors: IoError and others.
        """
        self.wait()

        def remove() -> int:
            series = Series(self._directory)
            attempts = [entry.name for entry in series.list() if entry.verdict == "uncommitted" and not entry.is_kept]
            return sum(series.clean(name) for name in attempts)

        return int(ask_first(session_of(self._group).communicator, remove))

    def resume(
        self, state_dict: MutableMapping[Any, Any], *, contract: Contract | None = None, **options: Any
    ) -> int | None:
        """Loads the newest whole checkpoint into the state; returns its step, or None if nothing was ever saved."""
        path = self.newest()
        if path is None:
            return None
        from sealpoint._checkpoint import open as open_checkpoint

        load(state_dict, path, process_group=self._group, contract=contract, **options)
        with open_checkpoint(path, check_files=False) as checkpoint:
            return checkpoint.step

    def __repr__(self) -> str:
        return f"<sealpoint.torch.Checkpointer {self._directory!r}: every={self._every}, keep={self._keep}>"

    def __enter__(self) -> Checkpointer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.wait()
        elif self._pending is not None:
            self._pending.exception()  # the error under way is the one to be seen
