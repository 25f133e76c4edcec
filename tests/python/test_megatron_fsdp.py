# SPDX-License-Identifier: Apache-2.0
"""DTensors of Megatron-FSDP on four ranks: each case of mcore_fsdp_cases.py is a test."""

import ranks

ranks.need_torch()
jobs, outcomes, test = ranks.suite("mcore_fsdp_cases", 4, "megatron-core", ("0.19.2",), ["psutil"])
