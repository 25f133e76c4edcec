# SPDX-License-Identifier: Apache-2.0
"""Megatron-core on four ranks, the rest; run by test_megatron_full.py."""

import contextlib
import json
import os
import time
from unittest import mock

# First, because it stands in for what Megatron would look for.
from mcore_basic_cases import HAS_REGISTRY, OPTIONS, check, check_files, expected, folder, numbers, same, state

import docstring_examples
import figures
import sealpoint
import sealpoint.megatron
import torch
import torch.distributed as dist
from megatron.core import dist_checkpointing as dc
from megatron.core.dist_checkpointing import ShardedTensor
from megatron.core.dist_checkpointing.dict_utils import nested_values
from megatron.core.dist_checkpointing.mapping import ShardedTensorFactory
from megatron.core.dist_checkpointing.strategies import fully_parallel
from megatron.core.dist_checkpointing.strategies.async_utils import AsyncCallsQueue
from megatron.core.dist_checkpointing.strategies.torch import (
    TorchDistLoadShardedStrategy,
    TorchDistSaveShardedStrategy,
)
from store_paths import names
from mcore_training import MODEL, Training, forget_meshes

REGIONS = {**MODEL, "distrib_optim_sharding_type": "dp_reshardable"}


def case_vocabularies_of_other_sizes(job):
    path = folder(job)
    dc.save(state(job.rank, 2, 2), path)
    for size in (2, 5):
        loaded = dc.load(state(job.rank, 2, 2, empty=True, vocabulary=size), path)["vocabulary"]
        whole = torch.zeros(10, 2)
        whole[:6] = numbers(6, 2)
        assert torch.equal(loaded, whole[size * (job.rank % 2) :][:size]), size
    other = state(job.rank, 2, 2, empty=True)
    other["w"] = ShardedTensor.from_rank_offsets("decoder.w", torch.zeros(2, 4), (0, job.rank % 2, 2))
    error = job.raises(sealpoint.MismatchError, lambda: dc.load(other, path, validate_access_integrity=False))
    assert error.tensor == "decoder.w", error
    assert "[6, 4], the state [4, 4]" in str(error), error


def case_behind_the_parallel_wrappers(job):
    path = folder(job)
    dc.save(state(job.rank, 2, 2), path, fully_parallel.FullyParallelSaveStrategyWrapper(TorchDistSaveShardedStrategy(
        "torch_dist", 1)))
    check_files(path)
    wrapper = fully_parallel.FullyParallelLoadStrategyWrapper(TorchDistLoadShardedStrategy())
    check(job, dc.load(state(job.rank, 2, 2, empty=True), path, wrapper))


def case_no_other_backend_takes_over(job):
    class Foreign:
        backend, version = "other", 1

    path = folder(job)
    for strategy in (None, Foreign()) if not HAS_REGISTRY else (None, ("sealpoint", 1), ("torch_dist", 1)):
        place = folder(job, f"{job.folder}/{strategy and strategy!r:.5}")
        dc.save(state(job.rank, 2, 2), place, strategy)
        check_files(place)
    assert os.listdir(path) == []


def case_other_strategies_are_left_alone(job):
    if not HAS_REGISTRY:
        return  # later versions have none
    from megatron.core.dist_checkpointing.strategies.base import SaveShardedStrategy

    class Foreign(SaveShardedStrategy):
        can_handle_sharded_objects = True

        def save(self, sharded_state_dict, checkpoint_dir):
            dist.barrier()

    path = folder(job)
    dc.save(state(job.rank, 2, 2), path, Foreign("other", 1))
    assert sorted(os.listdir(path)) == ["common.pt", "metadata.json"]
    assert torch.load(f"{path}/common.pt", weights_only=False)["iteration"] == 7
    assert json.loads(open(f"{path}/metadata.json").read())["sharded_backend"] == "other"


def case_async(job, at):
    queue = AsyncCallsQueue()
    for iteration in (1, 2):
        path = folder(job, f"iter_000000{iteration}")
        saved = state(job.rank, 2, 2)
        started = time.monotonic()
        request = dc.save(saved, path, async_sharded_save=True, **OPTIONS)
        queue.schedule_async_request(request)
        stall = time.monotonic() - started
        for value in (saved["w"], saved["norm"], saved["layers"][1]):
            value.data.fill_(-7)
        while not queue.maybe_finalize_async_calls(blocking=False):
            time.sleep(0.01)
        assert stall < 10
        check_files(path)
        check(job, dc.load(state(job.rank, 2, 2, empty=True), path))
    queue.close()
    path = folder(job, "at-once")
    dc.save(state(job.rank, 2, 2), path, async_sharded_save=True, **OPTIONS).execute_sync()
    check_files(path)
    if job.rank == 0:
        series = sealpoint.Series(at("")).list()
        assert [(entry.name, entry.sequence) for entry in series if entry.sequence > 0], series


def case_async_saves_of_75_mb(job):
    """A model and its optimizer, as Megatron-LM saves them, beside saves that it waits for, in the same run."""
    training = Training(2, 1, vocabulary=8192, hidden=256)
    training.step(0)
    seconds = {"async": [], "sync": [], "library": []}
    queue, request_of = AsyncCallsQueue(), TorchDistSaveShardedStrategy.async_save

    def timed(*arguments):
        began = time.monotonic()
        request = request_of(*arguments)
        seconds["library"].append(job.slowest(time.monotonic() - began))
        return request

    for number in range(3):
        for mode in ("async", "sync"):
            path = folder(job, f"{mode}{number}")
            with figures.traffic() as traffic, mock.patch.object(TorchDistSaveShardedStrategy, "async_save", timed):
                began = time.monotonic()
                state_to_save = training.state(REGIONS)
                if mode == "async":
                    queue.schedule_async_request(dc.save(state_to_save, path, async_sharded_save=True, **OPTIONS))
                else:
                    dc.save(state_to_save, path)
                seconds[mode].append(job.slowest(time.monotonic() - began))
                queue.maybe_finalize_async_calls(blocking=True)
    queue.close()
    held = [value.data for value in nested_values(state_to_save) if isinstance(value, ShardedTensor)]
    copied = job.slowest(figures.seconds_of_copies(held))
    stall, whole, library = (min(seconds[what]) for what in ("async", "sync", "library"))
    unique, stored = figures.sizes_of(path)
    assert unique > 75_000_000 and stored < 1.005 * unique, (unique, stored)
    assert 0 < traffic.byte_count < unique / 1000, traffic.byte_count
    what = f"megatron-core {figures.version_of('megatron-core')}, tensor 2 x data 2"
    job.figure(figures.line(what, (unique, stored), traffic, async_save=stall, of_it_in_the_library=library, sync_save=whole,
                            copy=copied))
    assert library < max(0.2, whole), seconds


def case_a_failed_async_save_is_not_counted(job):
    """Another job was faster."""
    from sealpoint.megatron import _save

    def commit_by_another_job(directory, options):
        job.path("iter_0000007/COMMIT").write_text("of another job")
        return []

    path = folder(job)
    with mock.patch.object(_save, "_remove_replaceable", commit_by_another_job):
        request = dc.save(state(job.rank, 2, 2), path, async_sharded_save=True, **OPTIONS)
    queue = AsyncCallsQueue()
    queue.schedule_async_request(request)
    job.raises(sealpoint.AlreadyExistsError, lambda: queue.maybe_finalize_async_calls(blocking=True))


def restart(job, path=None, tracker=None):
    """As a new process of the job does: it knows nothing, and loads the checkpoint. The tracker says what it is told."""
    from sealpoint.megatron import _save

    dist.barrier()
    _save._runs.clear()
    if tracker is not None and job.rank == 0:
        job.at("latest_checkpointed_iteration.txt").write_text(str(tracker))
    dist.barrier()
    if path is not None:
        dc.load(state(job.rank, 2, 2, empty=True), path)


def saved(job, iteration):
    """The attempt that is in the directory of an iteration after a save there."""
    path = folder(job, f"iter_{iteration:07d}")
    dc.save(state(job.rank, 2, 2), path)
    check_files(path)
    return sealpoint.open(path).attempt


def refused(job, iteration, reason):
    """A save that changes nothing, and says what to do."""
    path = job.path(f"iter_{iteration:07d}")
    before = sorted((name, os.stat(path / name).st_ino) for name in os.listdir(path))
    dist.barrier()
    error = job.raises(sealpoint.AlreadyExistsError, lambda: dc.save(state(job.rank, 2, 2), str(path)))
    assert reason in str(error), error
    for way_out in ("enable(replace=True)", f"rm -r {path}", f"write {iteration} into"):
        assert way_out in str(error), error
    assert sorted((name, os.stat(path / name).st_ino) for name in os.listdir(path)) == before
    dist.barrier()


def case_a_killed_or_rolled_back_job_goes_on(job, at):
    first = saved(job, 2)
    old = {iteration: saved(job, iteration) for iteration in (4, 6)}
    for _ in range(2):  # killed before the tracker, twice
        restart(job, str(at("iter_0000002")), tracker=2)
        replaced, old[4] = old[4], saved(job, 4)
        assert old[4] != replaced
    restart(job, str(at("iter_0000004")), tracker=4)
    assert saved(job, 6) != old[6], "it followed one that is not there any more"
    assert saved(job, 8)
    restart(job, str(at("iter_0000006")), tracker=4)
    assert saved(job, 8)
    restart(job, str(at("iter_0000006")), tracker=9)
    job.raises(sealpoint.AlreadyExistsError, lambda: saved(job, 8))
    assert sealpoint.open(at("iter_0000002")).attempt == first
    if job.rank == 0:
        assert all(sealpoint.verify(at(f"iter_000000{item}")).ok for item in (2, 4, 6, 8))


def case_killed_between_a_deletion_and_its_commit(job):
    """What followed the checkpoint that was deleted still makes way, and the one it resumed from is there at each moment."""
    from sealpoint.megatron import _save
    from sealpoint.megatron._options import Options

    for iteration in (2, 4, 6):
        saved(job, iteration)
    restart(job, str(job.path("iter_0000002")), tracker=2)
    if job.rank == 0:
        _save._remove_replaceable(str(job.path("iter_0000004")), Options())
        assert not job.path("iter_0000004/COMMIT").exists()
        assert not dc.check_is_distributed_checkpoint(str(job.path("iter_0000004")))
        assert sealpoint.verify(job.path("iter_0000002")).ok
    restart(job, str(job.path("iter_0000002")))
    saved(job, 4)
    assert not list(job.path("iter_0000004").glob("replaced*")), "no note is left"
    restart(job, str(job.path("iter_0000004")), tracker=4)
    saved(job, 6)


def case_killed_behind_its_first_save(job):
    saved(job, 2)
    restart(job)
    saved(job, 2)
    saved(job, 4)
    restart(job)
    refused(job, 2, "this run neither resumed from this directory nor")


def case_what_a_tracker_names_stays(job):
    for iteration in (2, 4, 6):
        saved(job, iteration)
    for tracker in (6, 9, "release", "none"):
        restart(job, str(job.path("iter_0000004")), tracker=tracker)
        refused(job, 6, f"latest_checkpointed_iteration.txt says '{tracker}'")
    restart(job, str(job.path("iter_0000004")), tracker=1)
    refused(job, 4, "this run loaded it")
    refused(job, 2, "it is not newer than the checkpoint that")
    if job.rank == 0:
        job.path("iter_0000006/KEEP").touch()
    dist.barrier()
    refused(job, 6, "KEEP")
    sealpoint.megatron.enable(replace=True)
    error = job.raises(sealpoint.AlreadyExistsError, lambda: saved(job, 6))
    assert "KEEP" in str(error), error
    sealpoint.megatron.enable()


def case_other_lineages_stay(job):
    """A checkpoint of another training, ahead of the tracker; and one without which there would be none."""
    saved(job, 2)
    other = folder(job, "other/iter_0000002")
    dc.save(state(job.rank, 2, 2), other)
    ahead = folder(job, "other/iter_0000004")
    dc.save(state(job.rank, 2, 2), ahead)
    dist.barrier()
    if job.rank == 0:
        os.rename(ahead, job.path("iter_0000004"))
    restart(job, str(job.path("iter_0000002")), tracker=2)
    refused(job, 4, "it is not a successor of a checkpoint")
    if job.rank == 0:
        os.rename(job.path("iter_0000004"), ahead)
    dist.barrier()
    saved(job, 4)
    restart(job, str(job.path("iter_0000002")))
    if job.rank == 0:
        os.unlink(next(job.path("iter_0000002").glob("*.blob")))
    dist.barrier()
    refused(job, 4, "no other checkpoint that this run resumed from")


def case_one_whose_save_fails_stays(job):
    """What is to be replaced goes only when every rank has something to save."""
    saved(job, 2)
    before = saved(job, 4)
    restart(job, str(job.path("iter_0000002")), tracker=2)
    wrong = state(job.rank, 2, 2)
    if job.rank == 3:
        wrong["w"].data = None
    job.raises(sealpoint.Error, lambda: dc.save(wrong, str(job.path("iter_0000004"))))
    assert sealpoint.open(job.path("iter_0000004")).attempt == before


def case_files_of_killed_saves_go(job, at):
    path = folder(job)
    if job.rank == 0:
        for name in ("0" * 32 + ".probe.shared", "1" * 32 + ".blob", "2" * 32 + ".commit", "3" * 32 + ".index", "notes.txt"):
            at(f"iter_0000007/{name}").write_text(name)
    dist.barrier()
    dc.save(state(job.rank, 2, 2), path)
    dist.barrier()
    assert not [name for name in names(path) if name[:32] in {digit * 32 for digit in "0123"}], names(path)
    assert "notes.txt" in names(path)
    if job.rank == 0:
        report = sealpoint.verify(path)
        assert report.ok and report.leftover_bytes == 0, report


def native(job, path):
    """A checkpoint of Megatron's own in a directory, whatever is there."""
    dist.barrier()
    sealpoint.megatron.disable()
    dc.save(state(job.rank, 2, 2), path)
    sealpoint.megatron.enable()
    dist.barrier()


def case_no_save_beside_a_native_checkpoint(job):
    path = folder(job)
    native(job, path)
    refused(job, 7, "a native checkpoint is in this directory (.metadata, __0_0.distcp, ")
    check(job, dc.load(state(job.rank, 2, 2, empty=True), path))
    for name in ("metadata.json", ".metadata"):  # halves of one, as a crash leaves them
        dist.barrier()
        if job.rank == 0:
            os.unlink(f"{path}/{name}")
        dist.barrier()
        refused(job, 7, "a native checkpoint is in this directory")
    sealpoint.megatron.enable(replace=True)
    for _ in range(2):
        dc.save(state(job.rank, 2, 2), path)
        check_files(path)
        native(job, path)
        sealpoint.megatron.enable(replace=True)
    dc.save(state(job.rank, 2, 2), path)
    check_files(path)
    sealpoint.megatron.enable()
    check(job, dc.load(state(job.rank, 2, 2, empty=True), path))


def case_a_native_checkpoint_is_removed_so_that_no_half_loads(job):
    from sealpoint import _directories, _sealpoint

    path = folder(job)
    native(job, path)
    dist.barrier()
    if job.rank != 0:
        return
    with mock.patch.object(_sealpoint, "remove_checkpoint", wraps=_sealpoint.remove_checkpoint) as removal:
        _directories.remove(path)
    # What series.RemovesInThisOrder says of these: each is gone, durably, before the next.
    assert removal.call_args.args[1] == ["metadata.json", ".metadata"] and os.listdir(path) == []


def case_two_checkpoints_in_a_directory_are_not_loaded(job):
    """Ours below a native save; a native one below ours; and all that is between them."""
    ours, both = folder(job, "iter_0000007"), folder(job, "iter_0000009")
    dc.save(state(job.rank, 2, 2), ours)
    dc.save(state(job.rank, 2, 2), both)
    native(job, both)
    names = os.listdir(both)
    assert "COMMIT" in names and json.loads(open(f"{both}/metadata.json").read())["sharded_backend"] == "torch_dist"
    wrapper = fully_parallel.FullyParallelLoadStrategyWrapper(TorchDistLoadShardedStrategy())

    def check_refused(path, what="two checkpoints"):
        for load in (lambda: dc.load(state(job.rank, 2, 2, empty=True), path),
                     lambda: dc.load(state(job.rank, 2, 2, empty=True), path, wrapper),
                     lambda: TorchDistLoadShardedStrategy().load({}, path),
                     lambda: wrapper.load({}, path), lambda: dc.load_common_state_dict(path),
                     lambda: dc.load_tensors_metadata(path), lambda: dc.load_content_metadata(path)):
            error = job.raises(sealpoint.MismatchError, load)
            assert what in str(error) and "COMMIT" in str(error) and ".metadata" in str(error), error

    check_refused(both)
    config = open(f"{ours}/metadata.json").read()
    dist.barrier()
    if job.rank == 0:
        job.path("iter_0000009/metadata.json").write_text(config)
    dist.barrier()
    check_refused(both)
    dist.barrier()
    if job.rank == 0:
        os.unlink(f"{both}/COMMIT")
    dist.barrier()
    check_refused(both, "but there is no COMMIT")


def case_only_rank_0_looks_at_the_directory(job):
    """What the others see there is not asked: ranks that disagree would wait for each other."""
    from sealpoint.megatron import _load

    path = folder(job)
    dc.save(state(job.rank, 2, 2), path)
    common = dc.load_common_state_dict(path)
    with contextlib.ExitStack() as patches:
        if job.rank != 0:
            patches.enter_context(mock.patch.object(_load, "is_ours", lambda _: False))
        sharded = {"b": state(job.rank, 2, 2, empty=True)["b"]}
        assert same(TorchDistLoadShardedStrategy().load(sharded, path)["b"], expected(job.rank, 2, 2)["b"])
    assert common["iteration"] == 7


def case_newest_of_a_run(job):
    """It is what the tracker says from then on, whatever a kill left of it."""
    if job.rank == 0:
        assert sealpoint.megatron.newest(job.folder) is None
        home = os.path.expanduser("~/a/b/c")
        for wrong, said in ("ftp://b/run", "run is a URL of ftp"), (None, "run is None"), ("~/a/b/c", home):
            try:
                sealpoint.megatron.newest(wrong)
            except sealpoint.Error as error:
                assert said in str(error), error
            else:
                raise AssertionError(wrong)
    for iteration in (2, 4):
        saved(job, iteration)
    dist.barrier()
    if job.rank == 0:
        tracker = job.path("latest_checkpointed_iteration.txt")
        newest = str(job.path("iter_0000004"))
        for text in (None, "2", "4\n", "99", "release", "rubbish"):
            tracker.write_text(text) if text else None
            assert sealpoint.megatron.newest(job.folder) == newest
            assert tracker.read_text().strip() == "4", text
            assert not list(job.folder.glob("*.tmp"))
        os.unlink(f"{newest}/metadata.json")
        assert sealpoint.megatron.newest(job.folder) == newest
        config = json.loads(open(f"{newest}/metadata.json").read())
        assert (config["sharded_backend"], config["sharded_backend_version"]) == ("sealpoint", 1)
    dist.barrier()
    check(job, dc.load(state(job.rank, 2, 2, empty=True), str(job.path("iter_0000004"))))
    later = folder(job, "iter_0000006")
    native(job, later)
    if job.rank == 0:
        assert sealpoint.megatron.newest(job.folder) == newest
        tracker.write_text("6")
        assert sealpoint.megatron.newest(job.folder) == later and tracker.read_text() == "6"
        tracker.write_text("4")
        blob = next(job.path("iter_0000004").glob("*.blob"))
        os.rename(blob, job.path("blob"))
        try:
            sealpoint.megatron.newest(job.folder)
        except sealpoint.IncompleteError:
            assert tracker.read_text() == "4"
        else:
            raise AssertionError("it is not whole")
        assert sealpoint.megatron.newest(job.folder, allow_fallback=True) == str(job.path("iter_0000002"))
        assert tracker.read_text() == "2"
        os.rename(job.path("blob"), blob)
    dist.barrier()
    native(job, str(job.path("iter_0000004")))
    if job.rank == 0:
        try:
            sealpoint.megatron.newest(job.folder)
        except sealpoint.MismatchError as error:
            assert "two checkpoints" in str(error), error
        else:
            raise AssertionError("it is two")
        os.rename(job.path("iter_0000004"), job.path("best"))
        for name in ("metadata.json", ".metadata", "common.pt", *(item.name for item in job.path("best").glob("*.distcp"))):
            job.path(f"best/{name}").unlink(missing_ok=True)
        try:
            sealpoint.megatron.newest(job.folder)
        except sealpoint.UnsupportedError as error:
            assert "'best'" in str(error), error
        else:
            raise AssertionError("no tracker can say it")


def case_status(job):
    status = sealpoint.megatron.status()
    assert status.is_enabled and status.options.replace is False and status.overwritten == ()
    assert status.megatron_version in repr(status) and "\n" not in repr(status)
    strategy = "megatron.core.dist_checkpointing.strategies.torch.TorchDistSaveShardedStrategy.save"
    assert strategy in status.patched and strategy in repr(status), status
    assert "megatron.core.dist_checkpointing.serialization.save_config" in status.patched, status
    with mock.patch.object(TorchDistSaveShardedStrategy, "save", print):
        assert sealpoint.megatron.status().overwritten == (strategy,)
        assert "OVERWRITTEN" in repr(sealpoint.megatron.status())
    sealpoint.megatron.enable(replace=True)
    assert "replace=True" in repr(sealpoint.megatron.status())
    sealpoint.megatron.disable()
    status = sealpoint.megatron.status()
    assert (status.is_enabled, status.patched, status.options) == (False, (), None) and "not enabled" in repr(status)
    sealpoint.megatron.enable()


def case_nothing_is_replaced_unless_asked(job):
    before = saved(job, 7)
    path = str(job.path("iter_0000007"))
    restart(job, tracker=7)
    refused(job, 7, "says '7'")
    assert sealpoint.open(path).attempt == before
    dist.barrier()
    sealpoint.megatron.enable(replace=True)
    dc.save(state(job.rank, 2, 2), path)
    assert sealpoint.open(path).attempt != before
    if job.rank == 0:
        assert sealpoint.verify(path).ok
        assert len([name for name in os.listdir(path) if name.endswith(".index")]) == 1
    sealpoint.megatron.enable()


def case_replicas_that_drifted(job):
    drifted = state(job.rank, 2, 2)
    if job.rank == 3:
        drifted["norm"].data[2] += 1
    path = folder(job)
    error = job.raises(sealpoint.InvalidArgumentError, lambda: dc.save(drifted, path))
    assert error.tensor == "decoder.norm", error
    sealpoint.megatron.enable(compare_replicas=False)
    dc.save(drifted, path)
    sealpoint.megatron.enable()
    check(job, dc.load(state(job.rank, 2, 2, empty=True), path))


def case_values_without_a_form(job):
    wrong = state(job.rank, 2, 2)
    wrong["extra"].data = {"f": print}
    error = job.raises(sealpoint.UnsupportedError, lambda: dc.save(wrong, folder(job)))
    assert error.object.startswith("extra/shard_"), error


def case_checkpoints_of_megatron_are_still_read(job):
    sealpoint.megatron.disable()
    path = folder(job)
    dc.save(state(job.rank, 2, 2), path, content_metadata={"distrib_optim_sharding_type": "fully_reshardable"})
    assert any(name.endswith(".distcp") for name in os.listdir(path))
    sealpoint.megatron.enable()
    check(job, dc.load(state(job.rank, 2, 2, empty=True), path))
    assert dc.load_content_metadata(path)["sealpoint_native"] is True


def case_what_cannot_be_loaded(job):
    path = folder(job)
    dc.save(state(job.rank, 2, 2), path)
    other = state(job.rank, 2, 2, empty=True)
    other["b"].data, other["b"].dtype = other["b"].data.float(), torch.float32
    error = job.raises(sealpoint.MismatchError, lambda: dc.load(other, path))
    assert error.tensor == "b", error
    for convert in ("widen", "nearest"):
        sealpoint.megatron.enable(convert=convert)
        assert same(dc.load(other, path)["b"], numbers(8).chunk(2)[job.rank % 2])
    sealpoint.megatron.enable(convert="widen")
    other["b"].data, other["b"].dtype = other["b"].data.half(), torch.float16
    error = job.raises(sealpoint.MismatchError, lambda: dc.load(other, path))
    assert "which cannot represent all values" in str(error), error
    sealpoint.megatron.enable()
    error = job.raises(sealpoint.UnsupportedError, lambda: TorchDistLoadShardedStrategy().remove_sharded_tensors(path, "b"))
    assert "never changed" in str(error), error
    dist.barrier()
    if job.rank == 0:
        os.unlink(f"{path}/COMMIT")
    dist.barrier()
    job.raises(sealpoint.UncommittedError, lambda: dc.load(state(job.rank, 2, 2, empty=True), path))


def case_runs_of_views(job):
    """Of what factories make of a parameter: each element of a run is found once, where it lies in the part's box."""
    from sealpoint.megatron import _optimizer

    whole = torch.arange(60).reshape(3, 4, 5)
    whole_there = torch.empty(whole.shape, device="meta")
    for cut in (lambda t: t, lambda t: t[1:], lambda t: t[:, 1:3], lambda t: t[..., 2:], lambda t: t.transpose(0, 1)):
        view, place = cut(whole), cut(whole_there)
        for begin, end in ((0, 60), (7, 33), (59, 60)):
            found = {}
            for item in _optimizer.runs_of(place, 0, begin, end, "key"):
                for number in range(item.run[1] - item.run[0]):
                    found[item.begin + number] = item.run[0] + number
            flat = view.reshape(-1).tolist()
            assert found == {element: at for at, element in enumerate(flat) if begin <= element < end}, (begin, end)
    try:
        list(_optimizer.runs_of(torch.empty(1 << 17, 2, device="meta").t(), 0, 0, 10, "key"))
    except sealpoint.UnsupportedError as error:
        assert error.tensor == "key"
    else:
        raise AssertionError("too many runs")


def case_runs_keep_their_keys(job):
    """Whatever prefix chained optimizers put before them; and they are put together where they belong."""
    from megatron.core.dist_checkpointing.utils import add_prefix_for_sharding
    from sealpoint.megatron import _optimizer, _tensors

    part = ShardedTensor.from_rank_offsets("w", torch.arange(12.0).reshape(3, 4), (0, 1, 2), replica_id=(0, 0, 0))
    found = _optimizer._state_of(torch.arange(5.0), "exp_avg", part, 2, True)
    add_prefix_for_sharding(found, "chained_1.")
    (run,) = found["runs"]
    assert (run.key, run.run, run.box, run.tensor_shape) == ("optimizer.state.exp_avg.w", (2, 7), ((3, 0), (3, 4)), (6, 4))
    flat = torch.zeros(6)
    destination = _optimizer.FlatDestination(flat, [(0, 2), (2, 6)])
    assert torch.equal(destination.fill([torch.ones(2), flat[2:]]), torch.tensor([1.0, 1, 0, 0, 0, 0]))
    memory = torch.zeros(5)
    assert _tensors.regions_to_load(run, (6, 4), memory).regions[0].run == (2, 7)
    for shape, kind in (((6, 5), sealpoint.MismatchError), ((6, 3), sealpoint.UnsupportedError)):
        run.allow_shape_mismatch = kind is sealpoint.UnsupportedError
        try:
            _tensors.regions_to_load(run, shape, memory)
        except kind as error:
            assert error.tensor == run.key, error
        else:
            raise AssertionError(shape)
    assert _tensors.regions_to_load(run, (3, 4), memory).regions == []
    copies = ShardedTensorFactory("w", part.data, lambda key, data, *_: [ShardedTensor.from_rank_offsets(key, data.clone())],
                                  None)
    try:
        _optimizer._state_of(torch.arange(5.0), "exp_avg", copies, 0, True)
    except sealpoint.UnsupportedError as error:
        assert "copies" in str(error), error
    else:
        raise AssertionError("a factory that copies")


def case_a_worker_whose_trainer_is_gone_ends(job):
    import pickle
    import subprocess
    import sys

    from sealpoint.megatron import _save

    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    running = job.path(f"running{job.rank}")
    running.touch()
    wait, arguments = pickle.loads(pickle.dumps((_save.wait_for, (str(running), ended.pid))))
    wait(*arguments)
    running.unlink()
    wait(str(running), os.getpid())


def case_optimizer_state_of_another_vocabulary(job):
    metadata = {**MODEL, "distrib_optim_sharding_type": "fully_reshardable"}
    training = Training(2, 1)
    training.step(0)
    expected = training.whole()
    path = folder(job)
    dc.save(training.state(metadata), path, content_metadata=metadata)
    for vocabulary in (96, 48):
        other = Training(2, 1, seed=3, vocabulary=vocabulary)
        other.load(path, dc.load_content_metadata(path))
        for name, tensor in other.whole().items():
            rows = min(len(expected[name]), len(tensor))
            assert torch.equal(tensor[:rows], expected[name][:rows]), (name, vocabulary)
            assert not tensor[rows:].any(), (name, vocabulary)


def case_groups_of_norms_and_biases(job):
    """Norms have 32 bits, biases 16, in one group of parameters: Megatron mixes up whose state is whose."""
    def check(training):
        optimizer = training.optimizer.chained_optimizers[0]
        for parameter, (number, at) in optimizer.model_param_group_index_map.items():
            main = optimizer.optimizer.param_groups[number]["params"][at]
            run = optimizer._get_model_param_range_map(parameter)["param"]
            assert torch.equal(main.to(parameter.dtype), parameter.reshape(-1)[run.start : run.end]), parameter.shape

    metadata = REGIONS
    training = Training(2, 1, has_biases=True)
    training.step(0)
    path = folder(job)
    dc.save(training.state(metadata), path, content_metadata=metadata)
    check(training)
    expected = training.whole()
    for tp in (2, 1):
        other = Training(tp, 1, seed=3, has_biases=True)
        other.load(path, dc.load_content_metadata(path))
        check(other)
        assert same(other.whole(), expected), tp


def convert(job, source, destination, **options):
    import sealpoint.interop

    if job.rank == 0:
        sealpoint.interop.convert(source, destination, **options)
    dist.barrier()
    return destination


def case_optimizer_state_of_megatrons_own_formats(job):
    """Saved by it, converted, or stored as it is: loaded through the patched optimizer, which knows what there is."""
    training = Training(2, 1)
    training.step(0)
    expected = training.whole()
    native, ours = {}, {}
    for kind in ("dp_reshardable", "fully_reshardable"):
        metadata = {**MODEL, "distrib_optim_sharding_type": kind}
        sealpoint.megatron.disable()
        native[kind], ours[kind] = folder(job, f"native-{kind}"), folder(job, f"buckets-{kind}")
        dc.save(training.state(metadata), native[kind], content_metadata=metadata)
        sealpoint.megatron.enable(optimizer_regions=False)
        dc.save(training.state(metadata), ours[kind], content_metadata=metadata)
        sealpoint.megatron.enable()
    layout = sealpoint.megatron.bucket_layout(training.optimizer, training.model.sharded_state_dict(metadata=dict(MODEL)))
    job.all_agree(layout)
    error = job.raises(sealpoint.InvalidArgumentError, lambda: sealpoint.megatron.bucket_layout(training.optimizer, {}))
    assert "is not in the model's state" in str(error), error
    docstring_examples.run(sealpoint.megatron, job.path(f"rank{job.rank}"), only=["bucket_layout"],
                           given={"optimizer": training.optimizer, "model": training.model})
    if job.rank == 0:
        job.path("layout.json").write_text(json.dumps(layout))
    other = Training(2, 1, seed=3)
    for kind in native:
        converted = convert(job, native[kind], f"{job.folder}/converted-{kind}", to="sealpoint")
        for path in (native[kind], ours[kind], converted):
            other.step(7)
            other.load(path, dc.load_content_metadata(path))
            assert same(other.whole(), expected), (kind, path)
        with_own = other.state({**MODEL, "distrib_optim_sharding_type": kind}, is_loading=True)
        path = native[kind]
        error = job.raises(sealpoint.InvalidArgumentError, lambda state=with_own, path=path: dc.load(state, path))
        assert "load_content_metadata" in str(error), error
    other = Training(1, 1, seed=4)
    other.load(converted, dc.load_content_metadata(converted))
    assert same(other.whole(), expected), "of whole tensors, on another mesh, in runs"
    old = native["dp_reshardable"]
    resolved = convert(job, old, f"{job.folder}/resolved", to="sealpoint", buckets=job.path("layout.json"), verify=True)
    exported = convert(job, old, f"{job.folder}/exported", to="megatron", buckets=job.path("layout.json"))
    for tp, pp in ((1, 1), (2, 2)):
        other = Training(tp, pp, seed=4)
        other.load(resolved, dc.load_content_metadata(resolved))
        assert same(other.whole(), expected), "of buckets, on another mesh"
    steps = [group["step"] for group in training.optimizer.param_groups]
    assert steps and [group["step"] for group in other.optimizer.param_groups] == steps
    sealpoint.megatron.disable()
    other = Training(1, 1, seed=4)
    other.load(exported, dc.load_content_metadata(exported))
    assert same(other.whole(), expected), "of buckets, without this library"
    sealpoint.megatron.enable()


def case_megatron_loads_an_export(job):
    """A checkpoint with runs of parameters, as one of Megatron's own: it reads it without this library."""
    training = Training(2, 1)
    training.step(0)
    expected = training.whole()
    metadata = {**MODEL, "distrib_optim_sharding_type": "dp_reshardable"}
    path = folder(job)
    dc.save(training.state(metadata), path, content_metadata=metadata)
    exported = convert(job, path, f"{job.folder}/exported", to="megatron")
    sealpoint.megatron.disable()
    assert any(name.endswith(".distcp") for name in os.listdir(exported))
    other = Training(2, 2, seed=3)
    other.load(exported, dc.load_content_metadata(exported))
    assert same(other.whole(), expected)
    sealpoint.megatron.enable()


def case_optimizer_state_across_expert_parallelism(job):
    """With it experts have an optimizer of their own: from 1 to n, from n to 1, and from n to another n."""
    metadata, number = REGIONS, 0
    for saved_on, loaded_on in ((1, (2,)), (2, (1, 4))):
        training = Training(1, 1, experts=4, ep=saved_on)
        training.step(0)
        training.optimizer.param_groups[-1]["lr"] = 0.125
        expected = training.whole()
        assert any("experts" in name for name in expected)
        assert not any(tensor.isnan().any() for tensor in expected.values())
        path = folder(job, f"iter_000000{saved_on}")
        dc.save(training.state(metadata), path, content_metadata=metadata)
        for ep in loaded_on:
            number += 1
            other = Training(1, 1, seed=3 + number, experts=4, ep=ep)
            other.load(path, dc.load_content_metadata(path))
            assert same(other.whole(), expected), (saved_on, ep)
            groups = other.optimizer.param_groups
            assert all(group["step"] == 1 for group in groups if group["params"]), groups
            assert [group["is_expert_parallel"] for group in groups][-1] is (ep > 1), groups
            assert any(group["lr"] == 0.125 for group in groups) is not (saved_on > 1 and ep == 1), groups
            assert len(other.optimizer.chained_optimizers) == 1 + (ep > 1)
            other.step(1)


def case_what_expert_parallelism_cannot_change(job):
    """State in a form of Megatron's own, and a parameter group that the checkpoint does not have."""
    native_metadata = {**MODEL, "distrib_optim_sharding_type": "fully_reshardable"}
    training = Training(1, 1, experts=4, ep=2)
    training.step(0)
    own, ours = folder(job, "native"), folder(job, "ours")
    sealpoint.megatron.disable()
    dc.save(training.state(native_metadata), own, content_metadata=native_metadata)
    sealpoint.megatron.enable()
    dc.save(training.state(REGIONS), ours, content_metadata=REGIONS)
    other = Training(1, 1, seed=2, experts=4, ep=1)
    error = job.raises(sealpoint.MismatchError, lambda: other.load(own, dc.load_content_metadata(own)))
    for text in ("the state of 2 optimizers, this job has 1", "--expert-model-parallel-size", "--no-load-optim"):
        assert text in str(error), error
    for group in other.optimizer.param_groups:
        group["wd_mult"] = 0.5
    error = job.raises(sealpoint.MismatchError, lambda: other.load(ours, dc.load_content_metadata(ours)))
    assert "no parameter group of the checkpoint is that of" in str(error) and "'wd_mult': 0.5" in str(error), error


def case_optimizer_state_through_any_mesh(job):
    """As it is on each mesh, without a gather; also of what was saved on the mesh before."""
    metadata = REGIONS
    training = Training(2, 1)
    for number in range(3):
        training.step(number)
    expected = training.whole()
    assert len(expected) >= 3 * 8
    assert not any(tensor.isnan().any() for tensor in expected.values())
    path = folder(job, "iter_0000003")
    dc.save(training.state(metadata), path, content_metadata=metadata)
    check_files(path)
    losses = [training.step(number) for number in (3, 4)]
    if job.rank == 0:
        assert sealpoint.verify(path).ok
        stored = sealpoint.torch.load_full(path)
        for name, tensor in expected.items():
            assert torch.equal(stored[name], tensor), name
    again = Training(2, 1, seed=5)
    again.load(path, dc.load_content_metadata(path))
    assert same(again.whole(), expected)
    assert [again.step(number) for number in (3, 4)] == losses, "as if it had not been interrupted"
    kinds = ("fully_reshardable", "dp_reshardable", "fully_reshardable")
    for number, ((tp, pp), kind) in enumerate(zip(((1, 1), (2, 2), (4, 1)), kinds, strict=True)):
        metadata = {**MODEL, "distrib_optim_sharding_type": kind}
        other = Training(tp, pp, seed=7 + number)
        other.load(path, dc.load_content_metadata(path) if number else metadata)
        assert same(other.whole(), expected), (tp, pp)
        path = folder(job, f"iter_000001{number}")
        save = fully_parallel.FullyParallelSaveStrategyWrapper(TorchDistSaveShardedStrategy("torch_dist", 1))
        dc.save(other.state(metadata), path, save, content_metadata=metadata)

    def on_two_ranks():
        forget_meshes()
        other = Training(1, 1, seed=11)
        other.load(path, dc.load_content_metadata(path))
        assert same(other.whole(), expected)

    job.with_ranks(2, on_two_ranks)
    forget_meshes()
