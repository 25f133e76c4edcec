# SPDX-License-Identifier: Apache-2.0
"""torchtitan on four ranks: each case of titan_cases.py is a test, with each version that scripts/python_env.sh got."""

import os
import pathlib

import pytest
import ranks

ranks.need_torch()
RANKS = 4
VERSIONS = ("0.2.2", "0.3.0")
PACKAGES = pathlib.Path(os.environ.get("SEALPOINT_SOURCE_DIR", "."), "build/frameworks")


@pytest.fixture(scope="module")
def jobs(tmp_path_factory):
    """Both at a time: one computes while the other waits for its ranks or for the disk."""
    packages = {version: PACKAGES / f"torchtitan-{version}" for version in VERSIONS}
    started = {version: ranks.Running("titan_cases", RANKS, tmp_path_factory.mktemp("job"), [package], fork=True)
               for version, package in packages.items() if package.is_dir()}
    yield started
    for job in started.values():
        job.end()


@pytest.fixture(scope="module", params=VERSIONS)
def outcomes(request, jobs):
    if request.param not in jobs:
        pytest.skip(f"no {PACKAGES}/torchtitan-{request.param}: see scripts/python_env.sh")
    return jobs[request.param].outcomes()


@pytest.mark.parametrize("case", [*ranks.names_of("titan_cases"), "end"])
def test(case, outcomes):
    assert not outcomes[case], f"\n{outcomes[case]}"


def test_figures(outcomes, capsys):
    with capsys.disabled():  # ctest -V shows them
        print(*outcomes["figures"], sep="\n")
