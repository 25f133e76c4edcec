# SPDX-License-Identifier: Apache-2.0
"""What saves and loads of Megatron-core are to be like."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from sealpoint.torch._options import Conversion, SaveOptions, StoreKeywords, StoreOptions


class EnableKeywords(StoreKeywords, total=False):
    """See ``enable``."""

    optimizer_regions: bool
    replace: bool
    convert: Conversion | None
    threads: int
    background_deadline: float | None


@dataclass(frozen=True, kw_only=True)
class Options(StoreOptions):
    """See ``enable``."""

    optimizer_regions: bool = True
    replace: bool = False
    convert: Conversion | None = None
    threads: int = 1

    def of_save(self, **more: Any) -> SaveOptions:
        """What a save has of these, and more."""
        return SaveOptions(**{one.name: getattr(self, one.name) for one in fields(StoreOptions)}, **more)
