# SPDX-License-Identifier: Apache-2.0
"""Muon of Megatron-core on four ranks. Version 0.16.1 asks for an older package of optimizers than the one that there is."""

import ranks

ranks.need_torch()
jobs, outcomes, test = ranks.suite(
    "mcore_muon_cases", 4, "megatron-core", ["0.19.2"], ["psutil", "emerging-optimizers", "absl-py"])
