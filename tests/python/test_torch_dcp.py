# SPDX-License-Identifier: Apache-2.0
"""torch.distributed.checkpoint on four ranks, each case of dcp_cases.py a test, and in one process without a group."""

import pytest

pytest.importorskip("torch", reason="torch is not installed: see scripts/python_env.sh")

import ranks  # noqa: E402

RANKS = 4


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    return ranks.run("dcp_cases", RANKS, tmp_path_factory.mktemp("job"))


@pytest.mark.parametrize("case", [*ranks.cases_of("dcp_cases"), "end"])
def test(case, outcomes):
    assert outcomes[case] == ""


@pytest.mark.filterwarnings("ignore:torch.distributed is disabled")
def test_one_process(tmp_path):
    import torch
    import torch.distributed.checkpoint as dcp
    from sealpoint.torch.dcp import StorageReader, StorageWriter

    state = {"model": {"w": torch.arange(6.0).reshape(2, 3)}, "step": 3}
    for through_coordinator in (False, True):
        path = tmp_path / str(through_coordinator)
        dcp.save(state, storage_writer=StorageWriter(path, through_coordinator=through_coordinator))
        back = {"model": {"w": torch.zeros(2, 3)}, "step": 0}
        dcp.load(back, storage_reader=StorageReader(path))
        assert torch.equal(back["model"]["w"], state["model"]["w"])
        assert back["step"] == 3
