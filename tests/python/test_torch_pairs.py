# SPDX-License-Identifier: Apache-2.0
"""What is large, or takes another process, on two ranks: each case of pair_cases.py is a test."""

import pytest
import ranks

ranks.need_torch()
RANKS = 2


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    return ranks.run("pair_cases", RANKS, tmp_path_factory.mktemp("job"), fork=True)


@pytest.mark.parametrize("case", [*ranks.names_of("pair_cases"), "end"])
def test(case, outcomes):
    assert not outcomes[case], f"\n{outcomes[case]}"
