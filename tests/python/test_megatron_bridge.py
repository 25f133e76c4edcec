# SPDX-License-Identifier: Apache-2.0
"""Megatron-Bridge on four ranks: each case of mcore_bridge_cases.py is a test."""

import ranks

ranks.need_torch()
jobs, outcomes, test = ranks.suite(
    "mcore_bridge_cases", 4, "megatron-bridge", ("0.6.2",), ["megatron-core-0.19.2", "psutil", "absl-py"])
