# SPDX-License-Identifier: Apache-2.0
"""Checkpoints for JAX: pytrees of arrays with any sharding, saved and loaded collectively by all processes.

    import sealpoint.jax as sp
    sp.save({"params": params, "opt_state": opt_state, "step": step}, "checkpoint")
    state = sp.load("checkpoint", like)  # with the shardings of ``like``, regardless of the shardings at the save
"""

from sealpoint._save_future import SaveFuture
from sealpoint._tree import PerRank
from sealpoint.jax._communicator import JaxCommunicator
from sealpoint.jax._load import load
from sealpoint.jax._save import save, save_async

per_rank = PerRank

__all__ = ["JaxCommunicator", "PerRank", "SaveFuture", "load", "per_rank", "save", "save_async"]
