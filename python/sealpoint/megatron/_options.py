# SPDX-License-Identifier: Apache-2.0
"""What saves and loads of Megatron-core are to be like."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sealpoint._save import CHUNK_SIZE_DEFAULT_BYTES, Codec
from sealpoint.torch._save import BACKGROUND_DEADLINE_DEFAULT_SECONDS, DEADLINE_DEFAULT_SECONDS


@dataclass(frozen=True, kw_only=True)
class Options:
    """See ``enable``."""

    optimizer_regions: bool = True
    replace: bool = False
    compare_replicas: bool = True
    convert: Literal["widen", "exact", "nearest"] | None = None
    allow_pickle: bool = False
    codec: Codec = "none"
    codec_level: int = 1
    chunk_size_bytes: int = CHUNK_SIZE_DEFAULT_BYTES
    threads: int = 1
    deadline: float | None = DEADLINE_DEFAULT_SECONDS
    background_deadline: float | None = BACKGROUND_DEADLINE_DEFAULT_SECONDS
    memory_budget_bytes: int | None = None
