# SPDX-License-Identifier: Apache-2.0
"""torchtitan on four ranks, by night: each case of titan_cases.py is a test, with each version that is there."""

import ranks
from test_torchtitan import TITAN

jobs, outcomes, test = ranks.suite("titan_cases", *TITAN)
remote_outcomes, test_remote = ranks.remote_suite("titan_cases", *TITAN)


def test_figures(outcomes, capsys):
    with capsys.disabled():  # ctest -V shows them
        print(*outcomes["figures"], sep="\n")
