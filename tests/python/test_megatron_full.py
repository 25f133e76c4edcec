# SPDX-License-Identifier: Apache-2.0
"""Megatron-core on four ranks, by night: each case of mcore_cases.py is a test, with each version that is there."""

import ranks
from test_megatron import MCORE

jobs, outcomes, test = ranks.suite("mcore_cases", *MCORE)
remote_outcomes, test_remote = ranks.remote_suite("mcore_cases", *MCORE)


def test_figures(outcomes, capsys):
    with capsys.disabled():  # ctest -V shows them
        print(*outcomes["figures"], sep="\n")
