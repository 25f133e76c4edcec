# SPDX-License-Identifier: Apache-2.0
"""Options of Megatron-core saves and loads."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from sealpoint._checkpoint import Path
from sealpoint._options import Conversion, StoreKeywords, StoreOptions
from sealpoint.torch._options import SaveOptions


class EnableKeywords(StoreKeywords, total=False):
    """See ``enable``."""

    optimizer_regions: bool
    replace: bool
    convert: Conversion | None
    threads: int | None
    background_deadline: float | None
    staged: Path | None
    keep_local: int


@dataclass(frozen=True, kw_only=True)
class Options(StoreOptions):
    """See ``enable``."""

    optimizer_regions: bool = True
    replace: bool = False
    convert: Conversion | None = None
    threads: int | None = None
    staged: Path | None = None
    keep_local: int = 0

    def of_save(self, **more: Any) -> SaveOptions:
        """Returns the options of a save."""
        names = [*(one.name for one in fields(StoreOptions)), "keep_local"]
        return SaveOptions(**{name: getattr(self, name) for name in names}, **more)
