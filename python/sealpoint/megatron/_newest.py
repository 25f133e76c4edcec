# SPDX-License-Identifier: Apache-2.0
"""The newest checkpoint of a run, and Megatron's tracker file."""

from __future__ import annotations

import json
import re
from typing import Any

from sealpoint import _paths, _sealpoint
from sealpoint._arguments import Path, path_of
from sealpoint._directories import is_checkpoint
from sealpoint._errors import UnsupportedError
from sealpoint._native import BACKEND, CONFIG, check_one, native_files
from sealpoint._ranks.staged_copies import finish_promotions
from sealpoint._series import Series
from sealpoint.megatron import _mcore
from sealpoint.megatron._save import TRACKER, tracked
from sealpoint.torch._session import session_of

VERSION = 1
_NAME = re.compile(r"iter_0*(\d+)|release")


def newest(
    run: Path, *, allow_fallback: bool = False, staged: Path | None = None, keep_local: int = 0
) -> str | None:
    """Returns the directory of a run's newest checkpoint, or None. Sets Megatron's tracker file to this checkpoint.

    Call it in the launch script, before the job starts. The job then resumes from the last checkpoint, even if the previous job was
    killed before the tracker recorded that checkpoint. The newest checkpoint is the last committed checkpoint that has all its
    files, regardless of the tracker. If the tracker names one of Megatron's own checkpoints with a greater iteration, that
    checkpoint is the newest. A missing ``metadata.json`` is written. Unless ``staged`` is set, only one process calls this
    function. Meanwhile, no job may save into the run.

    Args:
        run: Directory that contains the directories ``iter_…``, as passed to ``--save``.
        allow_fallback: If the newest checkpoint is damaged, return an older checkpoint. If False, the error of the newest
            checkpoint is raised.
        staged, keep_local: As for ``enable``. If ``staged`` is set, all ranks call this function, and newer complete checkpoints on
            local disks are promoted first.

    Raises:
        MismatchError: the directory of the newest checkpoint also contains a native checkpoint.
        UnsupportedError: Megatron's tracker cannot represent the name of the newest checkpoint.
        Error: as for ``Series.newest``.

    Examples:
        >>> import sealpoint.megatron, sealpoint.torch as sp, torch
        >>> _ = sp.save({"w": torch.ones(2)}, "run/iter_0000100")
        >>> sealpoint.megatron.newest("run").endswith("run/iter_0000100")
        True
        >>> open("run/latest_checkpointed_iteration.txt").read()
        '100'
    """
    folder = _paths.absolute(path_of(run, "run"))
    if staged is None:
        return _find(folder, allow_fallback)
    session = session_of(None)
    finish_promotions(session, staged, keep_local, folder)
    with session.call("find the newest of", folder) as call:
        found = call.run_on_first(lambda: _find(folder, allow_fallback))
    return None if found is None else str(found)


def _find(folder: str, allow_fallback: bool) -> str | None:
    """Finds the newest checkpoint and updates the tracker. Called on one process."""
    native = _tracked_native(folder)
    found = Series(folder).newest(allow_fallback=allow_fallback)
    if found is None:
        return native
    match = _NAME.fullmatch(found.entry.name)
    if match is None:
        raise UnsupportedError(
            f"the newest checkpoint is named {found.entry.name!r}, expected iter_ and digits, or release",
            path=found.entry.path,
        )
    if native is not None and _iteration(native) > _iteration(found.entry.name):
        return native
    check_one(found.entry.path)
    if _paths.kind_of(f"{found.entry.path}/{CONFIG}") is None:
        write_config(_mcore.serialization.CheckpointingConfig(BACKEND, VERSION), found.entry.path)
    text = match[1] or match[0]
    if tracked(folder) != text:
        _sealpoint.write_file(f"{folder}/{TRACKER}", text.encode())
    return str(found.entry.path)


def _tracked_native(folder: str) -> str | None:
    """Returns the directory of the native checkpoint in the tracker, or None if the tracker names no complete native checkpoint."""
    said = tracked(folder)
    if said is None or not (said == "release" or said.isdecimal()):
        return None
    path = f"{folder}/{'release' if said == 'release' else f'iter_{int(said):07d}'}"
    return path if CONFIG in native_files(path) and not is_checkpoint(path) else None


def _iteration(path: str) -> int:
    match = _NAME.fullmatch(_paths.split(path)[1])
    return int(match[1] or 0) if match is not None else 0


def write_config(config: Any, directory: str) -> None:
    """Writes metadata.json, the file by which Megatron recognizes a checkpoint."""
    _sealpoint.write_file(f"{directory}/{CONFIG}", json.dumps(vars(config)).encode())
