# SPDX-License-Identifier: Apache-2.0
"""torchtitan's checkpoint manager on four ranks, the part that runs with each commit; run by test_torchtitan.py."""

import functools
import os
from unittest import mock

import docstring_examples
import sealpoint
import torch.distributed as dist
from sealpoint import _url_files
from sealpoint._ranks import promotions
from store_paths import copy, names
from titan_states import HAS_CONFIG, Run, _manager
from torch_states import assert_same


def committed(job):
    return [entry.name for entry in sealpoint.Series(job.at("checkpoint")).list() if entry.verdict == "committed"]


def case_a_run_resumes(job, at):
    """With the same losses; an attempt that was not committed is passed over."""
    whole = Run(job.path("whole"), enable=False)
    expected = {step: whole.step() for step in range(1, 6)}
    for mode in ("disabled", "async", "async_with_pinned_mem"):
        place = at(mode)
        run = Run(place, async_mode=mode)
        assert run.manager.load() is False
        assert run.train(3) == {step: expected[step] for step in (1, 2, 3)}
        run.wait()
        dist.barrier()
        if job.rank == 0:
            left = place / "checkpoint/step-3"
            left.mkdir()
            for name in names(place / "checkpoint/step-2"):
                if name != "COMMIT":
                    copy(place / "checkpoint/step-2" / name, left / name)
        dist.barrier()
        del run
        again = Run(place, seed=9, async_mode=mode)
        assert again.manager.load() is True
        assert again.progress.values["step"] == 2
        assert again.loader.values[f"dp_rank_{job.rank}"] == b"position 2"
        assert again.train(5, is_end=True) == {step: expected[step] for step in (3, 4, 5)}, mode
        assert [name for name in names(place / "checkpoint/step-2") if name.endswith((".distcp", ".metadata"))] == []
        dist.barrier()
        if job.rank == 0:
            entries = [entry for entry in sealpoint.Series(place / "checkpoint").list() if entry.verdict == "committed"]
            assert [(entry.name, entry.step, entry.sequence - entries[-1].sequence) for entry in entries] == [
                ("step-5", 5, 2), ("step-4", 4, 1), ("step-2", 2, 0)]
            assert entries[0].parent == entries[1].attempt
        again.manager.close()


def case_another_mesh_resumes(job, at):
    run = Run(at("run"), mode="hsdp")
    run.train(2)
    expected = run.tensors()
    for mode in ("tp", "fsdp"):
        other = Run(at("run"), mode=mode, seed=5)
        assert other.manager.load()
        assert_same(other.tensors(), expected)
    if job.is_remote:  # where torchtitan itself reads nothing
        dist.barrier()
        if job.rank == 0:
            (at("run") / "checkpoint/step-2/COMMIT").unlink()
            (at("run") / "checkpoint/step-2/.metadata").touch()
        dist.barrier()
        for arguments in ({}, {"step": 2}):
            error = job.raises(sealpoint.UnsupportedError, lambda more=arguments: Run(at("run")).manager.load(**more))
            assert "from file systems" in str(error), error


def case_saves_go_to_local_disks_first(job, at):
    """A restart takes the newest of both places, and what is rolled back makes way in both."""
    def start(**more):
        return Run(at("run"), staged=str(job.path(f"disk{job.rank}")), keep_local=9, async_mode="async", **more)

    def check(steps):
        assert promotions.await_promotions(60)
        dist.barrier()
        entries = sealpoint.Series(at("run") / "checkpoint").list()
        assert [(entry.step, entry.verdict) for entry in entries] == [(step, "committed") for step in steps]
        assert entries[-2].parent == entries[-1].attempt or steps[0] == 4, "each follows the one before, on its way"
        assert all(sealpoint.verify(entry.path).ok for entry in entries)
        dist.barrier()

    run = start()
    assert run.manager.load() is False
    losses = run.train(6)
    run.wait()
    check([6, 4, 2])
    again = start()
    assert again.manager.load(step=2)
    assert again.train(4) == {step: losses[step] for step in (3, 4)}
    again.wait()
    check([4, 6, 2])
    if job.rank == 0:  # as if the job had been killed before the copy
        for name in names(at("run") / "checkpoint/step-4"):
            (at("run") / "checkpoint/step-4" / name).unlink()
    dist.barrier()
    again = start(seed=8)
    assert again.manager.load() and again.progress.values["step"] == 4
    assert again.train(5) == {5: losses[5]}


def case_what_is_frozen_is_linked(job, at):
    """Between steps of the folder, also by the run that goes on."""
    def blobs(step):
        with sealpoint.open(at("run") / f"checkpoint/step-{step}") as checkpoint:
            return {blob.id for blob in checkpoint.blobs}

    def start():
        run = Run(at("run"), frozen=["embedding.weight", "up.*"], interval=1)
        run.manager.load()
        for group in run.optimizer.param_groups:
            group["lr"] *= 0  # all parameters stay as they are
        return run

    start().train(2)
    start().train(3)
    dist.barrier()
    assert blobs(1) & blobs(2) and blobs(2) & blobs(3) and not blobs(1) >= blobs(2)
    error = job.raises(sealpoint.InvalidArgumentError, lambda: Run(at("other"), frozen=[7], interval=1).train(1))
    assert "frozen" in str(error)


def case_a_storage_of_later_versions_answers(job):
    """The attribute by which versions later than 0.3 ask about paths; nothing in their modules is replaced for a load then."""
    native = _manager._native.CheckpointManager.__init__

    @functools.wraps(native)
    def init(self, *args, **kwargs):
        native(self, *args, **kwargs)
        self._storage = os.path

    asked = []
    with mock.patch.object(_manager._native.CheckpointManager, "__init__", init):
        run = Run(job.path("run"))
        run.train(2)
        with mock.patch.object(_url_files, "is_folder", lambda path: asked.append(path) or True):
            assert run.manager._storage.isdir("s3://bucket/run") and asked == ["s3://bucket/run"]
        with mock.patch.object(_manager, "_looking_at_urls", None):
            assert Run(job.path("run")).manager.load()


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
    return {entry.name: entry.attempt for entry in sealpoint.Series(job.at("checkpoint")).list()}


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


def alone_docstrings(place):
    names = ["Options", "SealpointCheckpointManager"] if HAS_CONFIG else ["Options", "enable"]
    docstring_examples.run(sealpoint.torchtitan, place, only=names)
