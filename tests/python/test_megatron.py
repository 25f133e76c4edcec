# SPDX-License-Identifier: Apache-2.0
"""Megatron-core on four ranks: each case of mcore_cases.py is a test, with each version that scripts/python_env.sh got."""

import os
import pathlib

import pytest
import ranks

ranks.need_torch()
RANKS = 4
VERSIONS = ("0.16.1", "0.19.2")
PACKAGES = pathlib.Path(os.environ.get("SEALPOINT_SOURCE_DIR", "."), "build/frameworks")


@pytest.fixture(scope="module")
def jobs(tmp_path_factory):
    """Both at a time: one computes while the other waits for its ranks or for the disk."""
    started = {}
    for version in VERSIONS:
        packages = [PACKAGES / f"megatron-core-{version}", *PACKAGES.glob("psutil-*")]
        if len(packages) > 1 and packages[0].is_dir():
            started[version] = ranks.Running("mcore_cases", RANKS, tmp_path_factory.mktemp("job"), packages, fork=True)
    yield started
    for job in started.values():
        job.end()


@pytest.fixture(scope="module", params=VERSIONS)
def outcomes(request, jobs):
    if request.param not in jobs:
        pytest.skip(f"no {PACKAGES}/megatron-core-{request.param}: see scripts/python_env.sh")
    return jobs[request.param].outcomes()


@pytest.mark.parametrize("case", [*ranks.names_of("mcore_cases"), "end"])
def test(case, outcomes):
    assert not outcomes[case], f"\n{outcomes[case]}"


def test_figures(outcomes, capsys):
    with capsys.disabled():  # ctest -V shows them
        print(*outcomes["figures"], sep="\n")
