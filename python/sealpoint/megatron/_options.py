# SPDX-License-Identifier: Apache-2.0
"""Options. Made by scripts/options.py from python/sealpoint/_option_table.py."""

from __future__ import annotations

import dataclasses

from sealpoint import _options
from sealpoint._arguments import Path
from sealpoint._checkpoint import Conversion


class EnableKeywords(_options.StoreKeywords, total=False):
    """Keywords of ``sealpoint.megatron.enable``."""

    staged: Path | None
    keep_local: int
    optimizer_regions: bool
    replace: bool
    convert: Conversion | None
    threads: int | None
    background_deadline: float | None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options(_options.StoreOptions):
    """Options of ``sealpoint.megatron.enable``."""

    staged: Path | None = None
    keep_local: int = 0
    optimizer_regions: bool = True
    replace: bool = False
    convert: Conversion | None = None
    threads: int | None = None
    background_deadline: float | None = 7200.0
