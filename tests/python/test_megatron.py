# SPDX-License-Identifier: Apache-2.0
"""Megatron-core on four ranks: each case of mcore_basic_cases.py is a test, with each version that is there."""

import pytest
import ranks

ranks.need_torch()
RANKS = 4
VERSIONS = ("0.16.1", "0.19.2")


@pytest.fixture(scope="module")
def jobs(tmp_path_factory):
    make_folder = tmp_path_factory.mktemp
    with ranks.jobs_of("mcore_basic_cases", RANKS, "megatron-core", VERSIONS, make_folder, needs=["psutil"]) as started:
        yield started


@pytest.fixture(scope="module", params=VERSIONS)
def outcomes(request, jobs):
    return ranks.outcomes_of(jobs, "megatron-core", request.param)


@pytest.mark.parametrize("case", [*ranks.names_of("mcore_basic_cases"), "end"])
def test(case, outcomes):
    assert not outcomes[case], f"\n{outcomes[case]}"
