# SPDX-License-Identifier: Apache-2.0
"""Saves by way of disks of two nodes, a rank on each; run by test_torch_staged.py."""

import os
import shutil

import sealpoint
import sealpoint.torch as sp
import torch
import torch.distributed as dist
from sealpoint import _sealpoint
from sealpoint._ranks import promotions


def state_of(job, step):
    return {"mine": sp.per_rank(job.rank * 100 + step), "w": torch.arange(5000) + step, "step": step}


def local_of(job, name="local"):
    return job.path(f"{name}{job.rank}")


def copies_of(series, local):
    """Names of the local copies of a series."""
    folder, _, record = _sealpoint.find_staged_copies(local, series)
    return [] if record is None else sorted({*os.listdir(folder)} - {"sealpoint.staged"})


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
    assert len(copies_of(series, local_of(job))) == 1, "what keep_local says"
    dist.barrier()
    assert sp.resume_promotions(local_of(job), series) == []
    assert copies_of(series, local_of(job)) == []


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
            promotions._over.append((str(series / "step"), sealpoint.IoError("the disk is gone")))
        error = job.raises(sealpoint.IoError, lambda: checkpoints.save(4, state_of(job, 4)))
        assert "the disk is gone" in str(error)
        checkpoints.save(5, state_of(job, 5))
    assert job.all_agree(len(os.listdir(series))) == 4


def case_trainings_share_a_local_place(job):
    """One dies before its promotion; the other neither follows on from it nor takes it along."""
    a, b, staged = job.path("A"), job.path("B"), local_of(job, "shared")
    with sp.Checkpointer(b, staged=staged, keep=2) as checkpoints:
        for step in (1, 2, 3):
            checkpoints.step(step, state_of(job, step))
    dist.barrier()
    assert copies_of(b, staged) == [] and job.all_agree(len(os.listdir(b))) == 2, "the last promotion is followed by a pruning"
    saved = sp.save(state_of(job, 500), a, series=True, step=500, staged=staged, keep_local=9)
    assert sp.wait_for_promotions()
    dist.barrier()
    if job.rank == 0:
        shutil.rmtree(saved.directory)
    dist.barrier()
    state = state_of(job, 0)
    assert sp.Checkpointer(b, staged=staged).resume(state) == 3 and state["w"][0] == 3
    assert len(copies_of(a, staged)) == 1
    assert sp.Checkpointer(a, staged=staged).resume(state) == 500 and copies_of(a, staged) == []


def case_places_that_overlap_are_refused(job):
    series = job.path("own")
    with sp.Checkpointer(series) as checkpoints:
        checkpoints.save(1, state_of(job, 1))
    for place in (series, series / "local", str(series) + "/../own/", series.parent):
        staged = place if job.rank == 1 else local_of(job)
        for call in (
            lambda staged=staged: sp.save(state_of(job, 2), series, series=True, step=2, staged=staged),
            lambda staged=staged: sp.Checkpointer(series, staged=staged).resume(state_of(job, 0)),
            lambda staged=staged: sp.resume_promotions(staged, series),
        ):
            assert "R-STG-12" in str(job.raises(sealpoint.InvalidArgumentError, call))
        assert sealpoint.verify(sealpoint.Series(series).newest().entry.path).ok


def case_ranks_agree_on_where_a_save_goes(job):
    staged = local_of(job) if job.rank == 0 else None
    error = job.raises(sealpoint.InvalidArgumentError, lambda: sp.save(state_of(job, 1), job.path("c"), staged=staged))
    assert "staged" in str(error)
    job.raises(sealpoint.InvalidArgumentError, lambda: sp.save({}, job.path("c"), staged=7))
    job.raises(sealpoint.InvalidArgumentError, lambda: sp.save({}, job.path("c"), keep_local=-1))
    job.raises(sealpoint.InvalidArgumentError, lambda: sp.save({}, job.path("c"), unpromoted_max=0))
