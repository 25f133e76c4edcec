# SPDX-License-Identifier: Apache-2.0
"""Reports which members of Megatron are patched."""

from __future__ import annotations

from dataclasses import dataclass

import sealpoint
from sealpoint.megatron import _mcore, _patch
from sealpoint.megatron._options import Options


@dataclass(frozen=True)
class Status:
    """Reports whether Megatron saves and loads through this library. ``repr`` returns one line for the log of a job.

    Attributes:
        is_enabled: True between ``enable`` and ``disable``.
        megatron_version, sealpoint_version: Versions of the packages.
        patched: Replaced members of Megatron, sorted by name.
        overwritten: Members in ``patched`` that other code has replaced again.
        options: Options of ``enable``, or None if it was not called.
    """

    is_enabled: bool
    megatron_version: str
    sealpoint_version: str
    patched: tuple[str, ...]
    overwritten: tuple[str, ...]
    options: Options | None

    def __repr__(self) -> str:
        what = f"sealpoint {self.sealpoint_version}, megatron-core {self.megatron_version}"
        if not self.is_enabled:
            return f"<sealpoint.megatron: not enabled, checkpoints are Megatron's own; {what}>"
        options = ", ".join(f"{name}={value!r}" for name, value in vars(self.options).items())
        lost = f"; OVERWRITTEN since by others: {', '.join(self.overwritten)}" if self.overwritten else ""
        return f"<sealpoint.megatron: enabled; {what}; options: {options}; patched: {', '.join(self.patched)}{lost}>"


def status() -> Status:
    """Returns the current status of this process. Not collective, and raises nothing.

    Examples:
        >>> import sealpoint.megatron
        >>> sealpoint.megatron.enable(codec="zstd")
        >>> found = sealpoint.megatron.status()
        >>> found.is_enabled, found.options.codec, found.overwritten
        (True, 'zstd', ())
    """
    patched = _patch.patched()
    return Status(
        is_enabled=_patch.chosen() is not None,
        megatron_version=_mcore.version,
        sealpoint_version=sealpoint.__version__,
        patched=tuple(sorted(patched)),
        overwritten=tuple(sorted(name for name, is_there in patched.items() if not is_there)),
        options=_patch.chosen(),
    )
