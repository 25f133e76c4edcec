# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of Megatron, converted, loaded by Megatron through Sealpoint, exported, and loaded by Megatron alone."""

import pytest
import ranks
from test_megatron import RANKS, VERSIONS

MODULE = "mcore_fixture_cases"


@pytest.fixture(scope="module")
def jobs(tmp_path_factory):
    with ranks.jobs_of(MODULE, RANKS, "megatron-core", VERSIONS, tmp_path_factory.mktemp, needs=["psutil"]) as started:
        yield started


@pytest.fixture(scope="module", params=VERSIONS)
def outcomes(request, jobs):
    return ranks.outcomes_of(jobs, "megatron-core", request.param)


@pytest.mark.parametrize("case", [*ranks.names_of(MODULE), "end"])
def test(case, outcomes):
    assert not outcomes[case], f"\n{outcomes[case]}"
