# SPDX-License-Identifier: Apache-2.0
"""Options for storing states, common to all frameworks: keywords of functions, and one dataclass within the package.

Each face has the keywords that apply to it. Only the dataclasses have defaults and conversions.
"""

from __future__ import annotations

import dataclasses
import fnmatch
from collections.abc import Iterable, Sequence
from typing import Any, Literal, TypedDict

from sealpoint._arguments import Path, Provenance
from sealpoint._machine import memory_bytes
from sealpoint._save import CHUNK_SIZE_DEFAULT_BYTES, Codec, Parent

SAVE_BUDGET_MIN_BYTES = 8 << 20  # two staging buffers
DEADLINE_DEFAULT_SECONDS = 1800.0
BACKGROUND_DEADLINE_DEFAULT_SECONDS = 7200.0
LOAD_BUDGET_DEFAULT_BYTES = 256 << 20
PROMOTE_MEMORY_DEFAULT_BYTES = 16 << 20
# Default staging memory of a rank. A background save holds the whole state in it, if it fits.
_MEMORY_SHARE = 0.25
_MEMORY_MIN_BYTES = 64 << 20
Conversion = Literal["widen", "exact", "nearest"]
# Patterns of tensors that rarely change, or "learned" to detect them.
Frozen = Sequence[str] | Literal["learned"]


class StoreKeywords(TypedDict, total=False):
    """Keywords common to all saving faces."""

    codec: Codec
    codec_level: int
    chunk_size_bytes: int
    compare_replicas: bool
    allow_pickle: bool
    deadline: float | None
    memory_budget_bytes: int | None
    frozen: Frozen
    full_every: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class StoreOptions:
    """Options for storing a state."""

    codec: Codec = "none"
    codec_level: int = 1
    chunk_size_bytes: int = CHUNK_SIZE_DEFAULT_BYTES
    compare_replicas: bool = True
    allow_pickle: bool = False
    deadline: float | None = DEADLINE_DEFAULT_SECONDS
    background_deadline: float | None = BACKGROUND_DEADLINE_DEFAULT_SECONDS
    memory_budget_bytes: int | None = None
    frozen: Frozen = ()
    full_every: int = 10

    @property
    def frozen_patterns(self) -> Sequence[str]:
        return () if isinstance(self.frozen, str) else self.frozen

    def frozen_among(self, names: Iterable[str]) -> set[str]:
        """Returns the names that match a pattern of ``frozen``."""
        return {name for name in names if any(fnmatch.fnmatchcase(name, one) for one in self.frozen_patterns)}

    def saver_arguments(self) -> dict[str, Any]:
        """Returns the arguments of a ``_sealpoint.Saver`` except engine and communicator, hashable, without staging."""
        return {
            "compare_replicas": self.compare_replicas,
            "writer_ranks": (),
            "deadline": self.deadline,
            "background_deadline": self.background_deadline,
            "keep_local": 0,
            "unpromoted_max": 1,
            "unpromoted_wait": 0.0,
            "promote_memory_bytes": PROMOTE_MEMORY_DEFAULT_BYTES,
            "full_every": self.full_every,
            "learn_frozen": self.frozen == "learned",
        }

    @property
    def encoding(self) -> tuple[Codec, int, int]:
        return (self.codec, self.codec_level, self.chunk_size_bytes)


@dataclasses.dataclass(frozen=True, kw_only=True)
class SaveOptions(StoreOptions):
    """Options of a collective save, including its destination."""

    series: bool = False
    step: int | None = None
    parent: Parent = None
    provenance: Provenance | None = None
    allow_empty: bool = False
    allow_fallback: bool = False
    staged: Path | None = None


def default_budget(ranks_here: int) -> int:
    """Returns the default staging memory in bytes of each of ``ranks_here`` ranks on this machine."""
    return max(_MEMORY_MIN_BYTES, int(memory_bytes() * _MEMORY_SHARE) // ranks_here)
