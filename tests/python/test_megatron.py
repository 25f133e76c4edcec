# SPDX-License-Identifier: Apache-2.0
"""Megatron-core on four ranks: each case of mcore_basic_cases.py is a test, with each version that is there."""

import ranks

ranks.need_torch()
MCORE = (4, "megatron-core", ("0.16.1", "0.19.2"), ["psutil"])  # ranks, package, versions, and what it needs
jobs, outcomes, test = ranks.suite("mcore_basic_cases", *MCORE)
remote_outcomes, test_remote = ranks.remote_suite("mcore_basic_cases", *MCORE)
