# SPDX-License-Identifier: Apache-2.0
"""The newest checkpoint of a run, and Megatron's note of it."""

from __future__ import annotations

import json
import re
from typing import Any

from sealpoint import _paths, _sealpoint
from sealpoint._arguments import Path, path_of
from sealpoint._errors import UnsupportedError
from sealpoint._native import BACKEND, CONFIG, check_one, native_files
from sealpoint._options import DEADLINE_DEFAULT_SECONDS
from sealpoint._series import Series
from sealpoint.megatron import _mcore
from sealpoint.megatron._save import TRACKER, tracked
from sealpoint.torch import _local_copies
from sealpoint.torch._directories import is_checkpoint
from sealpoint.torch._session import session_of
from sealpoint.torch._state import run_on_first

VERSION = 1
_NAME = re.compile(r"iter_0*(\d+)|release")


def newest(
    run: Path, *, allow_fallback: bool = False, staged: Path | None = None, keep_local: int = 0
) -> str | None:
    """The directory of a run's newest checkpoint, which Megatron's tracker names from then on; None: there is none.

    For the script that starts a job, before it does: what was committed without the tracker, since the job was
    killed in between, is resumed from. Newest is what was committed last and has all its files, whatever the tracker said;
    ``metadata.json`` is written if that is what the kill prevented. A native checkpoint of a greater iteration that the
    tracker names stays the newest. One process calls it, and no job saves into the run meanwhile.

    Args:
        run: the folder of the directories ``iter_…``, as ``--save`` has it.
        allow_fallback: take an older one if the newest is damaged. Off: its error is raised.
        staged, keep_local: as for ``enable``. With them all ranks of the job call it, and what is newer and whole on their
            local disks is the newest: it is copied to the run first.

    Errors: those of ``Series.newest``; MismatchError (a native checkpoint is in the same directory); UnsupportedError (the
    newest one has a name that Megatron's tracker cannot say).
    """
    folder = _paths.absolute(path_of(run, "run"))
    if staged is None:
        return _find(folder, allow_fallback)
    _local_copies.finish(staged, keep_local, folder)
    with session_of(None).call("find the newest of", folder, deadline=DEADLINE_DEFAULT_SECONDS) as call:
        found = run_on_first(call, lambda: _find(folder, allow_fallback))
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
    """Megatron's metadata.json, by which it knows a checkpoint."""
    _sealpoint.write_file(f"{directory}/{CONFIG}", json.dumps(vars(config)).encode())
