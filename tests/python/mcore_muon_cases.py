# SPDX-License-Identifier: Apache-2.0
"""Muon of Megatron-core on four ranks, with its layer-wise optimizer; run by test_megatron_muon.py."""

import mcore_shim

mcore_shim.have_emerging_optimizers()

from mcore_basic_cases import check_files, folder, same  # noqa: E402  # isort: skip

import sealpoint  # noqa: E402
import torch  # noqa: E402
from megatron.core import dist_checkpointing as dc  # noqa: E402
from megatron.core.optimizer.layer_wise_optimizer import LayerWiseDistributedOptimizer  # noqa: E402
from mcore_training import MODEL, Training  # noqa: E402


def case_state_of_whole_parameters(job):
    """Each data-parallel rank has that of some; it is stored once, and comes back on this and on other meshes."""
    training = Training(2, 1, is_muon=True)
    assert isinstance(training.optimizer, LayerWiseDistributedOptimizer)
    for number in range(3):
        training.step(number)
    expected = training.whole_layer_wise()
    assert any("momentum_buffer" in name for name in expected) and any("exp_avg_sq" in name for name in expected)
    assert not any(tensor.isnan().any() for tensor in expected.values())
    path = folder(job, "iter_0000003")
    dc.save(training.state(MODEL), path, content_metadata=MODEL)
    check_files(path)
    losses = [training.step(number) for number in (3, 4)]
    if job.rank == 0:
        assert sealpoint.verify(path).ok
        with sealpoint.open(path) as stored:
            assert same({name: torch.from_dlpack(stored[name]) for name in expected}, expected)
    again = Training(2, 1, seed=5, is_muon=True)
    again.load(path, MODEL)
    assert same(again.whole_layer_wise(), expected)
    assert [again.step(number) for number in (3, 4)] == losses, "as if it had not been interrupted"
    for number, tp in enumerate((1, 4)):
        other = Training(tp, 1, seed=7 + number, is_muon=True)
        other.load(path, MODEL)
        assert same(other.whole_layer_wise(), expected), tp
        if tp == 4:  # gloo does not gather parts of different sizes, as the ranks of tp 1 have
            other.step(3)
