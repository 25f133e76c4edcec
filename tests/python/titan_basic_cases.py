# SPDX-License-Identifier: Apache-2.0
"""torchtitan's checkpoint manager on four ranks, the part that runs with each commit; run by test_torchtitan.py."""

import os
import shutil

import sealpoint
import torch.distributed as dist
from titan_states import Run
from torch_states import assert_same


def committed(job):
    return [entry.name for entry in sealpoint.Series(job.path("checkpoint")).list() if entry.verdict == "committed"]


def case_a_run_resumes(job):
    """With the same losses; an attempt that was not committed is passed over."""
    whole = Run(job.path("whole"), enable=False)
    expected = {step: whole.step() for step in range(1, 6)}
    for mode in ("disabled", "async", "async_with_pinned_mem"):
        place = job.path(mode)
        run = Run(place, async_mode=mode)
        assert run.manager.load() is False
        assert run.train(3) == {step: expected[step] for step in (1, 2, 3)}
        run.wait()
        dist.barrier()
        if job.rank == 0:
            left = place / "checkpoint/step-3"
            left.mkdir()
            for name in os.listdir(place / "checkpoint/step-2"):
                if name != "COMMIT":
                    shutil.copy(place / "checkpoint/step-2" / name, left)
        dist.barrier()
        del run
        again = Run(place, seed=9, async_mode=mode)
        assert again.manager.load() is True
        assert again.progress.values["step"] == 2
        assert again.loader.values[f"dp_rank_{job.rank}"] == b"position 2"
        assert again.train(5, is_end=True) == {step: expected[step] for step in (3, 4, 5)}, mode
        assert [name for name in os.listdir(place / "checkpoint/step-2") if name.endswith((".distcp", ".metadata"))] == []
        dist.barrier()
        if job.rank == 0:
            entries = [entry for entry in sealpoint.Series(place / "checkpoint").list() if entry.verdict == "committed"]
            assert [(entry.name, entry.step, entry.sequence - entries[-1].sequence) for entry in entries] == [
                ("step-5", 5, 2), ("step-4", 4, 1), ("step-2", 2, 0)]
            assert entries[0].parent == entries[1].attempt
        again.manager.close()


def case_another_mesh_resumes(job):
    run = Run(job.folder, mode="hsdp")
    run.train(2)
    expected = run.tensors()
    for mode in ("tp", "fsdp"):
        other = Run(job.folder, mode=mode, seed=5)
        assert other.manager.load()
        assert_same(other.tensors(), expected)


def refused(job, run, last, reason):
    """A save that changes nothing, and says what to do."""
    path = job.path(f"checkpoint/step-{last}")
    before = sorted((name, os.stat(path / name).st_ino) for name in os.listdir(path))
    dist.barrier()
    error = job.raises(sealpoint.AlreadyExistsError, lambda: run.train(last))
    assert all(text in str(error) for text in (reason, "replace=True", f"rm -r {path}", "load_step")), error
    assert sorted((name, os.stat(path / name).st_ino) for name in os.listdir(path)) == before
    dist.barrier()


def attempts(job):
    return {entry.name: entry.attempt for entry in sealpoint.Series(job.path("checkpoint")).list()}


def case_two_checkpoints_in_a_step(job):
    """None is saved beside one of DCP, and none is loaded from where there are two."""
    Run(job.folder, native=True).train(2)
    dist.barrier()
    refused(job, Run(job.folder), 2, "a native checkpoint is in this directory (.metadata, __0_0.distcp, ")
    Run(job.folder, replace=True).train(2)
    assert not [name for name in os.listdir(job.path("checkpoint/step-2")) if name.endswith((".distcp", ".metadata"))]
    assert Run(job.folder).manager.load()
    dist.barrier()
    Run(job.folder, native=True).train(2)
    dist.barrier()
    error = job.raises(sealpoint.MismatchError, lambda: Run(job.folder).manager.load())
    assert "two checkpoints" in str(error) and ".metadata" in str(error) and "COMMIT" in str(error), error
