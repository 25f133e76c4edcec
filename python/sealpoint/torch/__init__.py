# SPDX-License-Identifier: Apache-2.0
"""Checkpoints for torch: state dicts in any layout, saved and loaded collectively.

    import sealpoint.torch as sp
    sp.save({"model": model.state_dict(), "step": step}, "checkpoint")
    sp.load(state, "checkpoint")  # in place, with any number of ranks, in any layout
"""

from sealpoint._ranks.promotions import wait_for_promotions
from sealpoint._save_future import SaveFuture
from sealpoint._tree import Foreign, PerRank, register_enum
from sealpoint.torch._check import check
from sealpoint.torch._checkpointer import Checkpointer
from sealpoint.torch._communicator import TorchCommunicator
from sealpoint.torch._contract import Contract
from sealpoint.torch._fingerprint import fingerprints
from sealpoint.torch._load import LoadReport, load, load_full
from sealpoint.torch._promotions import resume_promotions
from sealpoint.torch._regions import Region, Regions
from sealpoint.torch._save import save, save_async
from sealpoint.torch._sentinel import Sentinel, SentinelFinding
from sealpoint.torch._types import register_types

register_types()
per_rank = PerRank

__all__ = [
    "Checkpointer",
    "Contract",
    "Foreign",
    "LoadReport",
    "PerRank",
    "Region",
    "Regions",
    "SaveFuture",
    "Sentinel",
    "SentinelFinding",
    "TorchCommunicator",
    "check",
    "fingerprints",
    "load",
    "load_full",
    "per_rank",
    "register_enum",
    "resume_promotions",
    "save",
    "save_async",
    "wait_for_promotions",
]
