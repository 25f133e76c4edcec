# SPDX-License-Identifier: Apache-2.0
"""Options of JAX saves and loads, in addition to the common ones in ``sealpoint._options``."""

from __future__ import annotations

import dataclasses
from typing import Literal, TypedDict

from sealpoint._arguments import Provenance
from sealpoint._checkpoint import Progress
from sealpoint._options import DEADLINE_DEFAULT_SECONDS, LOAD_BUDGET_DEFAULT_BYTES, StoreKeywords
from sealpoint._save import Parent


class SaveKeywords(StoreKeywords, total=False):
    """See ``sealpoint.jax.save``."""

    series: bool
    step: int | None
    parent: Parent
    provenance: Provenance | None
    allow_empty: bool
    allow_fallback: bool


class SaveAsyncKeywords(SaveKeywords, total=False):
    """See ``sealpoint.jax.save_async``."""

    background_deadline: float | None


class LoadKeywords(TypedDict, total=False):
    """See ``sealpoint.jax.load``."""

    partial: bool
    allow_pickle: bool
    convert: Literal["exact", "nearest"] | None
    threads: int | None
    memory_budget_bytes: int
    deadline: float | None
    progress: Progress


@dataclasses.dataclass(frozen=True, kw_only=True)
class LoadOptions:
    """Options of a load."""

    partial: bool = False
    allow_pickle: bool = False
    convert: Literal["exact", "nearest"] | None = None
    threads: int | None = None
    memory_budget_bytes: int = LOAD_BUDGET_DEFAULT_BYTES
    deadline: float | None = DEADLINE_DEFAULT_SECONDS
    progress: Progress = None
