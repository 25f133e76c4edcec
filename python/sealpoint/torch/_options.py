# SPDX-License-Identifier: Apache-2.0
"""Options. Made by scripts/options.py from python/sealpoint/_option_table.py."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TypedDict

import torch.distributed as dist

from sealpoint import _options
from sealpoint._arguments import Attributes, Path, Provenance
from sealpoint._checkpoint import Conversion, Progress
from sealpoint._save import Parent
from sealpoint.torch._contract import Contract


class WriterKeywords(_options.StoreKeywords, total=False):
    """Keywords of ``sealpoint.torch.dcp.StorageWriter``."""

    step: int | None
    parent: Parent
    provenance: Provenance | None
    attributes: Attributes | None
    process_group: dist.ProcessGroup | None
    no_dist: bool


class SaveKeywords(WriterKeywords, total=False):
    """Keywords of ``sealpoint.torch.save``."""

    series: bool
    allow_empty: bool
    allow_fallback: bool
    first_rank: Sequence[str]
    writer_ranks: Sequence[int]
    staged: Path | None
    keep_local: int
    unpromoted_max: int
    unpromoted_wait: float
    promote_memory_bytes: int


class SaveAsyncKeywords(SaveKeywords, total=False):
    """Keywords of ``sealpoint.torch.save_async``."""

    background_deadline: float | None


class CheckpointerKeywords(_options.StoreKeywords, total=False):
    """Keywords of ``sealpoint.torch.Checkpointer``."""

    provenance: Provenance | None
    attributes: Attributes | None
    allow_empty: bool
    allow_fallback: bool
    first_rank: Sequence[str]
    writer_ranks: Sequence[int]
    staged: Path | None
    keep_local: int
    unpromoted_max: int
    unpromoted_wait: float
    promote_memory_bytes: int
    background_deadline: float | None


class ReaderKeywords(TypedDict, total=False):
    """Keywords of ``sealpoint.torch.dcp.StorageReader``."""

    allow_pickle: bool
    convert: Conversion | None
    threads: int | None
    share_chunks: bool | None
    deadline: float | None
    memory_budget_bytes: int
    progress: Progress


class ResumeKeywords(ReaderKeywords, total=False):
    """Keywords of ``sealpoint.torch.Checkpointer.resume``."""

    contract: Contract | None
    all_ranks: bool
    verify_arrival: bool


class LoadKeywords(ResumeKeywords, total=False):
    """Keywords of ``sealpoint.torch.load``."""

    process_group: dist.ProcessGroup | None
    rename: Mapping[str, str] | None


@dataclasses.dataclass(frozen=True, kw_only=True)
class SaveOptions(_options.SaveOptions):
    """Options of ``sealpoint.torch.save_async``."""

    process_group: dist.ProcessGroup | None = None
    no_dist: bool = False
    first_rank: Sequence[str] = ()
    writer_ranks: Sequence[int] = ()
    staged: Path | None = None
    keep_local: int = 0
    unpromoted_max: int = 3
    unpromoted_wait: float = 60.0
    promote_memory_bytes: int = 16 << 20


@dataclasses.dataclass(frozen=True, kw_only=True)
class LoadOptions:
    """Options of ``sealpoint.torch.load``."""

    process_group: dist.ProcessGroup | None = None
    allow_pickle: bool = False
    contract: Contract | None = None
    convert: Conversion | None = None
    all_ranks: bool = False
    rename: Mapping[str, str] | None = None
    threads: int | None = None
    share_chunks: bool | None = None
    verify_arrival: bool = False
    deadline: float | None = 1800.0
    memory_budget_bytes: int = 256 << 20
    progress: Progress = None
