# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of Megatron, converted, loaded by Megatron through Sealpoint, exported, and loaded by Megatron alone."""

import pytest
import ranks
from test_megatron import PACKAGES, RANKS, VERSIONS

MODULE = "mcore_fixture_cases"


@pytest.fixture(scope="module")
def jobs(tmp_path_factory):
    started = {}
    for version in VERSIONS:
        packages = [PACKAGES / f"megatron-core-{version}", *PACKAGES.glob("psutil-*")]
        if len(packages) > 1 and packages[0].is_dir():
            started[version] = ranks.Running(MODULE, RANKS, tmp_path_factory.mktemp("job"), packages, fork=True)
    yield {version: job.outcomes() for version, job in started.items()}
    for job in started.values():
        job.end()


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("case", [*ranks.names_of(MODULE), "end"])
def test(case, version, jobs):
    if version not in jobs:
        pytest.skip(f"no {PACKAGES}/megatron-core-{version}: see scripts/python_env.sh")
    assert not jobs[version][case], f"\n{jobs[version][case]}"
