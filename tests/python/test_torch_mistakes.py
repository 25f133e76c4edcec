# SPDX-License-Identifier: Apache-2.0
"""One rank differs from the others: each case of mistake_cases.py is a test."""

import pytest
import ranks

ranks.need_torch()
RANKS = 2


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    return ranks.run("mistake_cases", RANKS, tmp_path_factory.mktemp("job"), fork=True)


@pytest.mark.parametrize("case", [*ranks.names_of("mistake_cases"), "end"])
def test(case, outcomes):
    assert not outcomes[case], f"\n{outcomes[case]}"
