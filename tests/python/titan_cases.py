# SPDX-License-Identifier: Apache-2.0
"""torchtitan's checkpoint manager on four ranks; run by test_torchtitan.py, with each version that is there."""

import os
import shutil
import threading
import time

import figures
import sealpoint
import titan_kills
import torch.distributed as dist
from titan_states import HAS_CONFIG, Large, Run, SealpointCheckpointManager, enable
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


def case_async_saves_of_75_mb(job):
    """As the trainer calls them, beside saves that it waits for, in the same run. Two ranks hold each byte."""
    seconds, losses = {}, {}
    for mode in ("disabled", "async"):
        run = Run(job.path(mode), mode="hsdp", model=Large, interval=1, async_mode=mode)
        seconds[mode], losses[mode] = [], []
        for step in (1, 2):
            losses[mode].append(run.step())
            dist.barrier()
            with figures.traffic() as traffic:
                began = time.monotonic()
                run.manager.save(step)
                run.manager.maybe_wait_for_staging()
                seconds[mode].append(job.slowest(time.monotonic() - began))
                run.wait()
        run.manager.close()
    copied = job.slowest(figures.seconds_of_copies(run.parts().values()))
    assert losses["async"] == losses["disabled"]
    stall, whole = (min(seconds[mode]) for mode in ("async", "disabled"))
    unique, stored = figures.sizes_of(job.path("async/checkpoint/step-2"))
    assert unique > 75_000_000 and stored < 1.005 * unique, (unique, stored)
    assert 0 < traffic.byte_count < unique / 1000, traffic.byte_count
    what = f"torchtitan {figures.version_of('torchtitan')}, HSDP on {job.size} ranks"
    job.figure(figures.line(what, (unique, stored), traffic, async_save=stall, sync_save=whole, copy=copied))
    assert stall < max(0.2, whole / 2), seconds


def case_old_steps_go(job):
    """At each moment there is a committed one, and none that is half deleted is found."""
    run = Run(job.folder, interval=1, keep_latest_k=2, async_mode="async")
    run.train(1)
    run.wait()
    problems, is_over = [], threading.Event()

    def look():
        while not is_over.is_set():
            found = committed(job)
            if not found:
                problems.append("none is committed")
            elif job.rank == 0:
                try:
                    sealpoint.open(job.path("checkpoint") / found[0]).close()
                except sealpoint.Error as error:
                    problems.append(str(error))
            time.sleep(0.01)

    watch = threading.Thread(target=look)
    watch.start()
    run.train(8)
    run.wait()
    run.manager._purge_stale_checkpoints()
    run.manager.close()
    dist.barrier()
    is_over.set()
    watch.join()
    assert problems == []
    assert committed(job) == ["step-8", "step-7"]


def case_a_step_is_not_replaced_unless_asked(job):
    run = Run(job.folder)
    run.train(4)
    dist.barrier()
    again = Run(job.folder)
    assert again.manager.load(step=2)
    job.raises(sealpoint.AlreadyExistsError, lambda: again.train(4))
    again = Run(job.folder, seed=3, replace=True, writer_ranks=[0, 1], mode="hsdp", codec="zstd")
    assert again.manager.load(step=2)
    again.train(4)
    assert committed(job)[0] == "step-4"
    with sealpoint.open(job.path("checkpoint/step-4")) as checkpoint:
        assert len(checkpoint.blobs) == 2, "of the ranks that write"
    assert sealpoint.verify(job.path("checkpoint/step-4")).ok


def case_checkpoints_of_dcp_are_still_loaded(job):
    run = Run(job.folder, native=True)
    run.train(2)
    expected = run.tensors()
    assert ".metadata" in os.listdir(job.path("checkpoint/step-2"))
    dist.barrier()
    other = Run(job.folder, seed=4)
    assert other.manager.load()
    assert_same(other.tensors(), expected)
    other.train(4)
    assert committed(job) == ["step-4"]
    other = Run(job.folder, seed=4)
    assert other.manager.load()
    assert other.progress.values["step"] == 4


def case_only_the_model_at_the_end(job):
    run = Run(job.folder, last_save_model_only=True, export_dtype="bfloat16", interval=10)
    run.train(3, is_end=True)
    with sealpoint.open(job.path("checkpoint/step-3")) as checkpoint:
        assert checkpoint["up.weight"].dtype_name == "bf16"
        assert not any("exp_avg" in name for name in checkpoint)


def case_exports_are_those_of_torchtitan(job):
    from sealpoint.torchtitan import _manager

    native, asked = _manager._native.CheckpointManager, []
    before = native.dcp_save
    native.dcp_save = lambda self, state, checkpoint_id, *more: asked.append((os.path.basename(checkpoint_id), more[-1]))
    try:
        run = Run(job.folder, interval=10, last_save_model_only=True)
        run.manager.last_save_in_hf = True
        run.train(2, is_end=True)
    finally:
        native.dcp_save = before
    assert asked == [("step-2", True)]
    assert not job.path("checkpoint/step-2").exists()


def case_another_number_of_ranks_has_another_data_loader(job):
    run = Run(job.folder)
    run.train(2)
    for left_out in ([], ["dataloader"]):
        other = Run(job.folder, seed=3, exclude_from_loading=left_out)
        other.loader.values[f"dp_rank_{job.rank + 4}"] = other.loader.values.pop(f"dp_rank_{job.rank}")
        if left_out:
            assert other.manager.load()
            assert other.progress.values["step"] == 2
        else:
            job.raises(sealpoint.MismatchError, lambda manager=other.manager: manager.load())


def case_the_trainer_of_0_2_is_told(job):
    if HAS_CONFIG:
        job.raises(sealpoint.UnsupportedError, enable)
        return
    import torchtitan.components.checkpoint as native

    before = native.CheckpointManager
    enable(threads=2)
    assert native.CheckpointManager is SealpointCheckpointManager
    assert SealpointCheckpointManager.options.threads == 2
    native.CheckpointManager = before


def alone_kills(folder):
    titan_kills.run(folder)
