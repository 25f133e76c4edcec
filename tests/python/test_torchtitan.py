# SPDX-License-Identifier: Apache-2.0
"""torchtitan on four ranks: each case of titan_basic_cases.py is a test, with each version that is there."""

import ranks

ranks.need_torch()
TITAN = (4, "torchtitan", ("0.2.2", "0.3.0"))  # ranks, package, versions
jobs, outcomes, test = ranks.suite("titan_basic_cases", *TITAN)
remote_outcomes, test_remote = ranks.remote_suite("titan_basic_cases", *TITAN)
