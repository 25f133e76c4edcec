# SPDX-License-Identifier: Apache-2.0
"""torchtitan on four ranks: each case of titan_basic_cases.py is a test, with each version that is there."""

import pytest
import ranks

ranks.need_torch()
RANKS = 4
VERSIONS = ("0.2.2", "0.3.0")


@pytest.fixture(scope="module")
def jobs(tmp_path_factory):
    with ranks.jobs_of("titan_basic_cases", RANKS, "torchtitan", VERSIONS, tmp_path_factory.mktemp) as started:
        yield started


@pytest.fixture(scope="module", params=VERSIONS)
def outcomes(request, jobs):
    return ranks.outcomes_of(jobs, "torchtitan", request.param)


@pytest.mark.parametrize("case", [*ranks.names_of("titan_basic_cases"), "end"])
def test(case, outcomes):
    assert not outcomes[case], f"\n{outcomes[case]}"
