# SPDX-License-Identifier: Apache-2.0
"""Options. Made by scripts/options.py from python/sealpoint/_option_table.py."""

from __future__ import annotations

import dataclasses
from typing import TypedDict

from sealpoint import _options
from sealpoint._arguments import Attributes, Provenance
from sealpoint._checkpoint import Progress, Rounding
from sealpoint._save import Parent


class SaveKeywords(_options.StoreKeywords, total=False):
    """Keywords of ``sealpoint.jax.save``."""

    step: int | None
    series: bool
    parent: Parent
    provenance: Provenance | None
    attributes: Attributes | None
    allow_empty: bool
    allow_fallback: bool


class SaveAsyncKeywords(SaveKeywords, total=False):
    """Keywords of ``sealpoint.jax.save_async``."""

    background_deadline: float | None


class LoadKeywords(TypedDict, total=False):
    """Keywords of ``sealpoint.jax.load``."""

    allow_pickle: bool
    partial: bool
    convert: Rounding | None
    threads: int | None
    deadline: float | None
    memory_budget_bytes: int
    progress: Progress


@dataclasses.dataclass(frozen=True, kw_only=True)
class LoadOptions:
    """Options of ``sealpoint.jax.load``."""

    allow_pickle: bool = False
    partial: bool = False
    convert: Rounding | None = None
    threads: int | None = None
    deadline: float | None = 1800.0
    memory_budget_bytes: int = 256 << 20
    progress: Progress = None
