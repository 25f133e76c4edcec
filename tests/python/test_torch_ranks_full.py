# SPDX-License-Identifier: Apache-2.0
"""Saves and loads of four ranks, by night: each case of torch_cases.py is a test."""

import pytest
import ranks

ranks.need_torch()
RANKS = 4


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    return ranks.run("torch_cases", RANKS, tmp_path_factory.mktemp("job"), fork=True)


@pytest.mark.parametrize("case", [*ranks.names_of("torch_cases"), "end"])
def test(case, outcomes):
    assert not outcomes[case], f"\n{outcomes[case]}"
