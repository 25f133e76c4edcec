# SPDX-License-Identifier: Apache-2.0
"""Options. Made by scripts/options.py from python/sealpoint/_option_table.py."""

from __future__ import annotations

import dataclasses

from sealpoint._checkpoint import Conversion
from sealpoint._save import Codec


@dataclasses.dataclass(kw_only=True)
class Settings:
    """Options of ``sealpoint.torchtitan``."""

    __slots__ = ()  # its configuration has them

    codec: Codec = "none"
    """Compression: "none", "zstd" or, for floating-point numbers, "bytesplit+zstd"."""

    compare_replicas: bool = True
    """Compare digests of replicated values. False saves one pass over that memory; the copy of the first rank is then
    stored without comparison."""

    allow_pickle: bool = False
    """Pickle values of other types. Only a load with the same option reads them."""

    writer_ranks: list[int] = dataclasses.field(default_factory=list)
    """Ranks of the group that write, ascending, such as the ranks of one HSDP replica. Default: all. Data is never sent
    between ranks, so each part must be held by one of the writers."""

    frozen: list[str] = dataclasses.field(default_factory=list)
    """As for ``sealpoint.torch.save``: unchanged tensors are linked from the newest step of the folder. Pass "learned"
    as a one-element list, because the command line passes lists."""

    full_every: int = 10
    """Maximum number of checkpoints that share a linked file; the next one writes it again. Object stores copy instead
    of link."""

    staged: str | None = None
    """Directory on a node-local disk. A save is committed there, in a subdirectory for its folder, and then copied to
    the folder in the background. ``load`` first finishes promotions of an earlier job. A failed promotion is logged and
    retried with the next save."""

    keep_local: int = 0
    """Number of local copies to keep after their promotion."""

    replace: bool = False
    """Replace an existing step, including a DCP checkpoint, unless a KEEP file pins it. False: replace only steps that
    follow the one this run resumed from, as after a rollback; others raise AlreadyExistsError."""

    convert: Conversion | None = "widen"
    """As for ``sealpoint.torch.load``; "widen" allows a run to start from a bf16 export."""

    threads: int | None = None
    """Number of threads per rank that read and verify. Default: the processors available to a rank divided by the ranks
    on its host that share them, at most 16."""
