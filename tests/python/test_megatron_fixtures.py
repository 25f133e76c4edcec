# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of Megatron, converted, loaded by Megatron through Sealpoint, exported, and loaded by Megatron alone."""

import ranks
from test_megatron import MCORE

jobs, outcomes, test = ranks.suite("mcore_fixture_cases", *MCORE)
