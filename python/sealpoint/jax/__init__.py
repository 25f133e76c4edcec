# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of JAX: pytrees of arrays in any sharding, saved and loaded by all processes together.

    import sealpoint.jax as sp
    sp.save({"params": params, "opt_state": opt_state, "step": step}, "checkpoint")
    state = sp.load("checkpoint", like)  # in the shardings of ``like``, whatever they were when it was saved
"""

from sealpoint._save_future import SaveFuture
from sealpoint._tree import PerRank
from sealpoint.jax._communicator import JaxCommunicator
from sealpoint.jax._load import load
from sealpoint.jax._save import save, save_async

per_rank = PerRank

__all__ = ["JaxCommunicator", "PerRank", "SaveFuture", "load", "per_rank", "save", "save_async"]
