# SPDX-License-Identifier: Apache-2.0
"""Lightning: each case of lightning_cases.py is a test, if scripts/python_env.sh got its packages."""

import pytest
import ranks

ranks.need_torch()
NEEDED = ("lightning-2.6.6", "lightning-utilities-0.15.3", "torchmetrics-1.9.0", "tqdm-4.70.1")


@pytest.fixture(scope="module", params=[False, True], ids=["files", "s3"])
def outcomes(request, tmp_path_factory):
    packages = [folder for name in NEEDED for folder in ranks.folders_of(name)]
    if len(packages) < len(NEEDED):
        pytest.skip(f"{ranks.PACKAGES} has only {packages} of {NEEDED}: see scripts/python_env.sh")
    with ranks.place(request.param, "lightning") as more:
        return ranks.run("lightning_cases", 2, tmp_path_factory.mktemp("job"), packages, fork=True, more=more)


@pytest.mark.parametrize("case", [*ranks.names_of("lightning_cases"), "end"])
def test(case, outcomes):
    if case not in outcomes:
        pytest.skip("it is of file systems")
    assert not outcomes[case], f"\n{outcomes[case]}"
