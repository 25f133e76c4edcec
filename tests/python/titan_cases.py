# SPDX-License-Identifier: Apache-2.0
"""torchtitan's checkpoint manager on four ranks, the rest; run by test_torchtitan_full.py."""

import os
import threading
import time

import figures
import sealpoint
import titan_kills
import torch.distributed as dist
from store_paths import names
from titan_basic_cases import attempts, committed, refused
from titan_states import HAS_CONFIG, Large, Narrow, Run, SealpointCheckpointManager, Wide, enable
from torch_states import assert_same


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


def case_old_steps_go(job, at):
    """At each moment there is a committed one, and none that is half deleted is found."""
    run = Run(at(""), interval=1, keep_latest_k=2, async_mode="async")
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
                    sealpoint.open(at("checkpoint") / found[0]).close()
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


def case_a_run_that_is_rolled_back_goes_on(job, at):
    """Any number of times: each time it comes by the steps that it saved before."""
    whole = Run(at(""), async_mode="async")
    losses = whole.train(8)
    whole.wait()
    for last in (6, 4, 8):
        dist.barrier()
        before = attempts(job)
        again = Run(at(""), async_mode="async")
        assert again.manager.load(step=2)
        assert again.train(last) == {step: losses[step] for step in range(3, last + 1)}
        again.wait()
        dist.barrier()
        now = attempts(job)
        assert {name for name in now if now[name] != before[name]} == {f"step-{item}" for item in range(4, last + 1, 2)}, last
        newest = Run(at(""))
        assert newest.manager.load() and newest.progress.values["step"] == last, "what was committed last"
    if job.rank == 0:
        assert all(sealpoint.verify(entry.path).ok for entry in sealpoint.Series(at("checkpoint")).list())


def case_a_step_is_not_replaced_unless_asked(job):
    run = Run(job.folder)
    run.train(2)
    refused(job, Run(job.folder), 2, "this run neither resumed from this directory nor")
    run.train(4)
    dist.barrier()
    again = Run(job.folder)
    assert again.manager.load(step=4)
    again.progress.values["step"] = 0
    refused(job, again, 2, "it is not newer than the checkpoint that")
    again.progress.values["step"] = 2
    refused(job, again, 4, "this run loaded it")
    if job.rank == 0:
        job.path("checkpoint/step-4/KEEP").touch()
    dist.barrier()
    again = Run(job.folder)
    assert again.manager.load(step=2)
    refused(job, again, 4, "KEEP")
    if job.rank == 0:
        job.path("checkpoint/step-4/KEEP").unlink()
    dist.barrier()
    again = Run(job.folder, seed=3, replace=True, writer_ranks=[0, 1], mode="hsdp", codec="zstd")
    assert again.manager.load(step=2)
    again.progress.values["step"] = 0
    before = attempts(job)
    again.train(4)
    assert all(attempts(job)[name] != before[name] for name in before)
    assert committed(job)[0] == "step-4"
    with sealpoint.open(job.path("checkpoint/step-4")) as checkpoint:
        assert len(checkpoint.blobs) == 2, "of the ranks that write"
    assert sealpoint.verify(job.path("checkpoint/step-4")).ok


def case_files_of_killed_saves_go(job, at):
    for mode in ("disabled", "async"):
        path = at(f"{mode}/checkpoint/step-2")
        if job.rank == 0:
            path.mkdir(parents=True)
            (path / ("0" * 32 + ".probe.shared")).touch()
            (path / ("1" * 32 + ".blob")).touch()
        dist.barrier()
        run = Run(at(mode), async_mode=mode)
        run.train(2)
        run.wait()
        deadline = time.monotonic() + 20
        while any(name[:32] in ("0" * 32, "1" * 32) for name in names(path)):
            assert time.monotonic() < deadline, names(path)
            time.sleep(0.01)


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


def case_a_run_begins_with_an_export(job):
    """In bf16, as a run of f32 has it; what is narrower than the export needs to be asked for."""
    run = Run(job.path("first"), model=Wide, last_save_model_only=True, export_dtype="bfloat16", interval=10)
    run.train(2, is_end=True)
    expected = {name: tensor.bfloat16().float() for name, tensor in run.tensors().items() if "exp_avg" not in name}
    settings = {"initial_load_path": str(job.path("first/checkpoint/step-2")), "initial_load_model_only": True}
    other = Run(job.path("second"), seed=7, model=Wide, **settings)
    assert other.manager.load()
    model = set(other.model.state_dict())
    found = {name: tensor for name, tensor in other.tensors().items() if name in model}
    assert_same(found, {name: expected[name] for name in found})
    error = job.raises(sealpoint.MismatchError,
                       lambda: Run(job.path("third"), model=Wide, convert=None, **settings).manager.load())
    assert "bf16" in str(error), error
    whole = Run(job.path("whole"), model=Wide, last_save_model_only=True, interval=10)
    whole.train(2, is_end=True)
    settings["initial_load_path"] = str(job.path("whole/checkpoint/step-2"))
    narrow = Run(job.path("fourth"), model=Narrow, **settings)
    error = job.raises(sealpoint.MismatchError, lambda: narrow.manager.load())
    assert "stored as f32, requested as bf16" in str(error) and 'convert="nearest"' in str(error), error
    narrow = Run(job.path("fifth"), model=Narrow, convert="nearest", **settings)
    assert narrow.manager.load()
    whole_tensors, narrow_tensors = whole.tensors(), narrow.tensors()
    assert_same({"up.weight": narrow_tensors["up.weight"]}, {"up.weight": whole_tensors["up.weight"].bfloat16()})


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


def alone_kills(folder, at):
    titan_kills.run(folder, at(""))
