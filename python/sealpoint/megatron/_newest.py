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
    """Returns the directory of a run's newest checkpoint, or None, and updates Megatron's tracker to it.

    Call it in the launch script, before the job starts: a checkpoint committed just before the previous job was killed, and not
    recorded in the tracker yet, is then resumed from. The newest checkpoint is the last committed one with all its files,
    regardless of the tracker. A missing ``metadata.json`` is written. If the tracker names a native checkpoint of a greater
    iteration, that one is the newest. One process calls it while no job saves into the run.

    Args:
        run: Parent of the directories ``iter_…``, as for ``--save``.
        allow_fallback: Return an older checkpoint if the newest is damaged. False: raise its error.
        staged, keep_local: As for ``enable``. With ``staged`` the call is collective: newer complete checkpoints on local disks
            are promoted first.

    Raises:
        MismatchError: the directory also has a native checkpoint.
        UnsupportedError: Megatron's tracker cannot represent the name of the newest checkpoint.
        Error: as for ``Series.newest``.
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
    """On one process."""
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
    """The directory of a whole native checkpoint that the tracker names; None: it names none."""
    said = tracked(folder)
    if said is None or not (said == "release" or said.isdecimal()):
        return None
    path = f"{folder}/{'release' if said == 'release' else f'iter_{int(said):07d}'}"
    return path if CONFIG in native_files(path) and not is_checkpoint(path) else None


def _iteration(path: str) -> int:
    match = _NAME.fullmatch(_paths.split(path)[1])
    return int(match[1] or 0) if match is not None else 0


def write_config(config: Any, directory: str) -> None:
    """Writes Megatron's metadata.json, by which it recognizes a checkpoint."""
    _sealpoint.write_file(f"{directory}/{CONFIG}", json.dumps(vars(config)).encode())
