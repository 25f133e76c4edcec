# SPDX-License-Identifier: Apache-2.0
"""Checkpoints for torchtitan.

    config.checkpoint = SealpointCheckpointManager.Config(interval=100, async_mode="async")  # 0.3
    sealpoint.torchtitan.enable()  # 0.2, before the trainer is imported
"""

from sealpoint.torchtitan._manager import Options, SealpointCheckpointManager, enable

__all__ = ["Options", "SealpointCheckpointManager", "enable"]
