# SPDX-License-Identifier: Apache-2.0
"""Saves by way of disks of two nodes, a rank on each; run by test_torch_staged.py."""

import os

import sealpoint
import sealpoint.torch as sp
import torch
import torch.distributed as dist
from sealpoint.torch import _staged


def state_of(job, step):
    return {"mine": sp.per_rank(job.rank * 100 + step), "w": torch.arange(5000) + step, "step": step}


def local_of(job, name="local"):
    return job.path(f"{name}{job.rank}")


def case_saves_are_promoted(job):
    series = job.path("run")
    infos = [sp.save(state_of(job, 1), series, series=True, step=1, staged=local_of(job))]
    future = sp.save_async(state_of(job, 2), series, series=True, step=2, staged=local_of(job), keep_local=1,
                           unpromoted_max=1)  # fmt: skip
    assert sp.wait_for_promotions() and future.done()
    infos.append(future.result())
    dist.barrier()
    assert infos[1].parent == infos[0].attempt
    for info in infos:
        assert sealpoint.verify(info.directory).ok
    assert len(os.listdir(local_of(job))) == 1, "what keep_local says"
    dist.barrier()
    assert sp.resume_promotions(local_of(job), series) == []
    assert os.listdir(local_of(job)) == []


def case_a_checkpointer_saves_and_resumes(job):
    series, staged = job.path("training"), local_of(job, "disk")
    with sp.Checkpointer(series, staged=staged) as checkpoints:
        assert checkpoints.resume(state_of(job, 0)) is None
        for step in (1, 2, 3):
            checkpoints.step(step, state_of(job, step))
    dist.barrier()
    state = state_of(job, 0)
    with sp.Checkpointer(series, staged=staged) as checkpoints:
        assert checkpoints.resume(state) == 3
        assert state["w"][0] == 3 and state["mine"].value == job.rank * 100 + 3
        # A promotion that failed on one rank is an error of all, at the next save.
        if job.rank == 1:
            _staged._over.append((str(series / "step"), sealpoint.IoError("the disk is gone")))
        error = job.raises(sealpoint.IoError, lambda: checkpoints.save(4, state_of(job, 4)))
        assert "the disk is gone" in str(error)
        checkpoints.save(5, state_of(job, 5))
    assert job.all_agree(len(os.listdir(series))) == 4


def case_ranks_agree_on_where_a_save_goes(job):
    staged = local_of(job) if job.rank == 0 else None
    error = job.raises(sealpoint.InvalidArgumentError, lambda: sp.save(state_of(job, 1), job.path("c"), staged=staged))
    assert "staged" in str(error)
    job.raises(sealpoint.InvalidArgumentError, lambda: sp.save({}, job.path("c"), staged=7))
    job.raises(sealpoint.InvalidArgumentError, lambda: sp.save({}, job.path("c"), keep_local=-1))
    job.raises(sealpoint.InvalidArgumentError, lambda: sp.save({}, job.path("c"), unpromoted_max=0))
