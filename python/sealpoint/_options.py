# SPDX-License-Identifier: Apache-2.0
"""How states are stored, whichever framework has them: as keywords of functions, and as one value within the package.

Each face has the keywords that mean something there; defaults, and what is handed on, are in the dataclasses alone.
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
# Staging memory of a rank, if the caller says nothing: saves in the background hold the whole state in it, if it fits.
_MEMORY_SHARE = 0.25
_MEMORY_MIN_BYTES = 64 << 20
Conversion = Literal["widen", "exact", "nearest"]
# Patterns of names of tensors that mostly stay as they are, or that the saver finds out which do.
Frozen = Sequence[str] | Literal["learned"]


class StoreKeywords(TypedDict, total=False):
    """What any face that saves has."""

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
    """How a state is stored."""

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
        """Those of the names that a pattern of ``frozen`` fits."""
        return {name for name in names if any(fnmatch.fnmatchcase(name, one) for one in self.frozen_patterns)}

    def saver_arguments(self) -> dict[str, Any]:
        """What a ``_sealpoint.Saver`` is made of, beside engine and communicator; values can be keys. Nothing is staged."""
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
    """A save of many ranks: also where it goes."""

    series: bool = False
    step: int | None = None
    parent: Parent = None
    provenance: Provenance | None = None
    allow_empty: bool = False
    allow_fallback: bool = False
    staged: Path | None = None


def default_budget(ranks_here: int) -> int:
    """Staging memory of each of so many ranks of this machine."""
    return max(_MEMORY_MIN_BYTES, int(memory_bytes() * _MEMORY_SHARE) // ranks_here)
