# SPDX-License-Identifier: Apache-2.0
"""Options. Made by scripts/options.py from python/sealpoint/_option_table.py."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TypedDict

from sealpoint._arguments import Attributes, Provenance
from sealpoint._save import Codec, Frozen, Parent


class StoreKeywords(TypedDict, total=False):
    """Keywords of all saves."""

    codec: Codec
    codec_level: int
    chunk_size_bytes: int
    stored_cuts: Mapping[str, Sequence[int]] | None
    fingerprints: bool
    compare_replicas: bool
    allow_pickle: bool
    frozen: Frozen
    full_every: int
    deadline: float | None
    memory_budget_bytes: int | None


@dataclasses.dataclass(frozen=True, kw_only=True)
class StoreOptions:
    """Options of all frameworks."""

    codec: Codec = "none"
    codec_level: int = 1
    chunk_size_bytes: int = 4 << 20
    stored_cuts: Mapping[str, Sequence[int]] | None = None
    fingerprints: bool = False
    compare_replicas: bool = True
    allow_pickle: bool = False
    frozen: Frozen = ()
    full_every: int = 10
    deadline: float | None = 1800.0
    memory_budget_bytes: int | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class SaveOptions(StoreOptions):
    """Options of all frameworks."""

    step: int | None = None
    series: bool = False
    parent: Parent = None
    provenance: Provenance | None = None
    attributes: Attributes | None = None
    allow_empty: bool = False
    allow_fallback: bool = False
    background_deadline: float | None = 7200.0
