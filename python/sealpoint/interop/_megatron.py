# SPDX-License-Identifier: Apache-2.0
"""Names of files in directories of Megatron-core's format torch_dist."""

from __future__ import annotations

MARKER, COMMON = "metadata.json", "common.pt"
# Name of the item that contains the common state, since Megatron-core 0.19.
COMMON_KEY = "common_state/shard_0_1"
