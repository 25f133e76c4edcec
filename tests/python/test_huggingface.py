# SPDX-License-Identifier: Apache-2.0
"""The Trainer and accelerate of Hugging Face: each case of hf_cases.py is a test, if scripts/python_env.sh got them."""

import pytest
import ranks

ranks.need_torch()
PACKAGES = ranks.PACKAGES / "huggingface"


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    if not PACKAGES.is_dir():
        pytest.skip(f"no {PACKAGES}: see scripts/python_env.sh")
    return ranks.run("hf_cases", 3, tmp_path_factory.mktemp("job"), [PACKAGES], fork=True)


@pytest.mark.parametrize("case", [*ranks.names_of("hf_cases"), "end"])
def test(case, outcomes):
    assert not outcomes[case], f"\n{outcomes[case]}"
