# SPDX-License-Identifier: Apache-2.0
"""Files of Megatron-core and torch.distributed.checkpoint in checkpoint directories."""

from __future__ import annotations

import json
import os
import re

from sealpoint import _paths, _sealpoint
from sealpoint._arguments import Path
from sealpoint._errors import AlreadyExistsError, MismatchError

MARKER, CONFIG, BACKEND = "COMMIT", "metadata.json", "sealpoint"
_CONFIG_SIZE_MAX_BYTES = 1 << 16
_NATIVE = re.compile(r"(__\d+)?\.metadata(\.tmp)?|.+\.distcp|common\.pt")
_NAMES_MAX = 3


def backend_of(path: Path) -> str | None:
    """Returns the backend that Megatron's metadata.json names, or None."""
    text = _sealpoint.read_file(os.path.join(os.fsdecode(path), CONFIG), _CONFIG_SIZE_MAX_BYTES + 1)
    if text is None or len(text) > _CONFIG_SIZE_MAX_BYTES:
        return None
    try:
        config = json.loads(text)
    except (ValueError, RecursionError):
        return None
    backend = config.get("sharded_backend") if isinstance(config, dict) else None
    return backend if isinstance(backend, str) else None


def native_files(path: Path) -> list[str]:
    """Returns the sorted names of the files in a directory that belong to a native checkpoint.

    A native checkpoint is in Megatron's or DCP's own format. The result includes metadata.json if metadata.json names a backend
    other than Sealpoint.
    """
    names = _paths.list_names(os.fsdecode(path))
    found = [name for name in names if _NATIVE.fullmatch(name)]
    has_config = CONFIG in names and backend_of(path) not in (None, BACKEND)
    return sorted([*found, CONFIG] if has_config else found)


def some(names: list[str]) -> str:
    """Lists the first items and the number of remaining items, as text."""
    more = f" and {len(names) - _NAMES_MAX} more" if len(names) > _NAMES_MAX else ""
    return ", ".join(names[:_NAMES_MAX]) + more


def check_none(path: Path) -> None:
    """Raises AlreadyExistsError if the directory has a native checkpoint, complete or not."""
    if natives := native_files(path):
        raise AlreadyExistsError(
            f"a checkpoint of torch.distributed.checkpoint or Megatron is in this directory ({some(natives)}), and loads without "
            "this library would still read it; expected a directory without one", path=os.fsdecode(path),
        )


def check_one(path: Path) -> None:
    """Raises MismatchError if the directory has both a native checkpoint and a Sealpoint checkpoint.

    Also raises MismatchError if metadata.json names Sealpoint but the only checkpoint is native.
    """
    natives = native_files(path)
    if not natives:
        return
    backend = backend_of(path)
    says = "" if backend is None else f"; {CONFIG} names the backend {backend[:40]!r}"
    if _paths.kind_of(os.path.join(os.fsdecode(path), MARKER)) is not None:
        raise MismatchError(
            f"two checkpoints in one directory: one of this library ({MARKER}) and a native one ({some(natives)}){says}; "
            "expected one of them: move the files of the other elsewhere", path=os.fsdecode(path),
        )
    if backend == BACKEND:
        raise MismatchError(
            f"{CONFIG} names the backend {BACKEND!r}, but there is no {MARKER}, and files of a native checkpoint "
            f"({some(natives)}); expected the files of one checkpoint", path=os.fsdecode(path),
        )
