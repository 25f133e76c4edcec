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
    """Compare digests of replicated values. If False, the value of the first rank is stored without comparison, which
    avoids one pass over the memory of these values."""

    allow_pickle: bool = False
    """Pickle values of types that cannot be stored otherwise. Only a load with ``allow_pickle`` reads these values."""

    writer_ranks: list[int] = dataclasses.field(default_factory=list)
    """Ranks of the group that write, in ascending order, such as the ranks of one HSDP replica. Default: all ranks.
    Data is never sent between ranks, so each part of the state must be present on one of these ranks."""

    frozen: list[str] = dataclasses.field(default_factory=list)
    """As for ``sealpoint.torch.save``. Unchanged tensors are linked from the newest step in the folder. Pass "learned"
    as a one-element list, because the command line accepts only lists."""

    full_every: int = 10
    """Maximum number of checkpoints that share a linked file; the next checkpoint writes the file again. Object stores
    copy the file instead of linking it."""

    staged: str | None = None
    """Directory on a node-local disk. A save is first committed in this directory, in a subdirectory for its folder. It
    is then copied to the folder in the background. ``load`` first finishes the promotions of an earlier job. If a
    promotion fails, the error is logged, and the next save tries the promotion again."""

    keep_local: int = 0
    """Number of promoted checkpoints whose local copies are kept."""

    replace: bool = False
    """Replace an existing step, including a DCP checkpoint, unless a KEEP file pins it. If False, replace only steps
    that follow the step from which this run resumed, for example after a rollback. Any other existing step raises
    AlreadyExistsError."""

    convert: Conversion | None = "widen"
    """As for ``sealpoint.torch.load``; "widen" allows a run to start from a bf16 export."""

    threads: int | None = None
    """Number of threads per rank that read and verify. Default: the number of CPUs available to a rank, divided by the
    number of ranks on its host that share these CPUs, at most 16."""
