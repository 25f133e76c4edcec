# SPDX-License-Identifier: Apache-2.0
"""Options of torch saves and loads, in addition to the common ones in ``sealpoint._options``."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

import torch.distributed as dist

from sealpoint import _options
from sealpoint._arguments import Provenance
from sealpoint._checkpoint import OnMismatch, Path, Progress
from sealpoint._errors import InvalidArgumentError
from sealpoint._options import (
    DEADLINE_DEFAULT_SECONDS,
    LOAD_BUDGET_DEFAULT_BYTES,
    PROMOTE_MEMORY_DEFAULT_BYTES,
    Conversion,
    StoreKeywords,
)
from sealpoint._save import Parent


class WriterKeywords(StoreKeywords, total=False):
    """See ``sealpoint.torch.dcp.StorageWriter``."""

    process_group: dist.ProcessGroup | None
    no_dist: bool
    step: int | None
    parent: Parent
    provenance: Provenance | None


class SaveKeywords(WriterKeywords, total=False):
    """See ``sealpoint.torch.save``."""

    series: bool
    allow_empty: bool
    allow_fallback: bool
    writer_ranks: Sequence[int]
    first_rank: Sequence[str]
    staged: Path | None
    keep_local: int
    unpromoted_max: int
    unpromoted_wait: float
    promote_memory_bytes: int


class SaveAsyncKeywords(SaveKeywords, total=False):
    """See ``sealpoint.torch.save_async``."""

    background_deadline: float | None


class CheckpointerKeywords(StoreKeywords, total=False):
    """See ``sealpoint.torch.Checkpointer``."""

    provenance: Provenance | None
    allow_empty: bool
    allow_fallback: bool
    writer_ranks: Sequence[int]
    first_rank: Sequence[str]
    background_deadline: float | None
    staged: Path | None
    keep_local: int
    unpromoted_max: int
    unpromoted_wait: float
    promote_memory_bytes: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class SaveOptions(_options.SaveOptions):
    """Options of a save: also the participating ranks and torch-specific settings."""

    process_group: dist.ProcessGroup | None = None
    no_dist: bool = False
    writer_ranks: Sequence[int] = ()
    first_rank: Sequence[str] = ()
    keep_local: int = 0
    unpromoted_max: int = 3
    unpromoted_wait: float = 60.0
    promote_memory_bytes: int = PROMOTE_MEMORY_DEFAULT_BYTES

    def saver_arguments(self) -> dict[str, Any]:
        own = ("keep_local", "unpromoted_max", "unpromoted_wait", "promote_memory_bytes")
        return {
            **super().saver_arguments(),
            "writer_ranks": tuple(self.writer_ranks),
            **{name: getattr(self, name) for name in own},
        }


class Contract:
    """Actions for differences between a state dict and a checkpoint: each "error", "report" or "allow".

    Args:
        missing: A place of the state is not stored. "report" and "allow" leave it unchanged.
        unexpected: A stored place is in no rank's state.
        shape, coverage: For tensors, as for ``Checkpoint.read``.
        dtype: The dtype of a tensor differs. It is converted only with ``convert`` of ``load``.
        kind: A tensor meets a value, or a list has another length. "report" and "allow" leave it unchanged.
        per_rank: Another number of ranks saved ``per_rank`` values. "report" and "allow" leave them unchanged.
    """

    def __init__(
        self,
        missing: OnMismatch = "error",
        unexpected: OnMismatch = "error",
        dtype: OnMismatch = "error",
        shape: OnMismatch = "error",
        coverage: OnMismatch = "allow",
        kind: OnMismatch = "error",
        per_rank: OnMismatch = "error",
    ) -> None:
        self.missing, self.unexpected, self.dtype, self.shape = missing, unexpected, dtype, shape
        self.coverage, self.kind, self.per_rank = coverage, kind, per_rank
        for name, value in vars(self).items():
            if value not in ("error", "report", "allow"):
                raise InvalidArgumentError(f"{name} is {value!r}, expected error, report or allow")

    def __repr__(self) -> str:
        return f"Contract({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"

    @staticmethod
    def partial() -> Contract:
        """Returns a contract for loading a part of a checkpoint: stored places outside the state are allowed."""
        return Contract(unexpected="allow")


class ReaderKeywords(TypedDict, total=False):
    """See ``sealpoint.torch.dcp.StorageReader``."""

    convert: Conversion | None
    allow_pickle: bool
    threads: int | None
    memory_budget_bytes: int
    share_chunks: bool | None
    deadline: float | None
    progress: Progress


class ResumeKeywords(ReaderKeywords, total=False):
    """See ``sealpoint.torch.Checkpointer.resume``."""

    contract: Contract | None
    all_ranks: bool


class LoadKeywords(ResumeKeywords, total=False):
    """See ``sealpoint.torch.load``."""

    process_group: dist.ProcessGroup | None
    rename: Mapping[str, str] | None


@dataclasses.dataclass(frozen=True, kw_only=True)
class LoadOptions:
    """Options of a load."""

    process_group: dist.ProcessGroup | None = None
    contract: Contract | None = None
    all_ranks: bool = False
    rename: Mapping[str, str] | None = None
    convert: Conversion | None = None
    allow_pickle: bool = False
    threads: int | None = None
    memory_budget_bytes: int = LOAD_BUDGET_DEFAULT_BYTES
    share_chunks: bool | None = None
    deadline: float | None = DEADLINE_DEFAULT_SECONDS
    progress: Progress = None
