# SPDX-License-Identifier: Apache-2.0
"""Open checkpoints and reports in other processes; what they say of themselves."""

import importlib.util
import multiprocessing
import os
import pickle
import shutil

import numpy
import pytest
import sealpoint
from conftest import flip_bit_of, raw


def again(value):
    return pickle.loads(pickle.dumps(value))


def members(report):
    """What can be seen of a report, without what takes part in no comparison: errors by their text."""
    names = [name for name in dir(report) if not name.startswith("_")]
    values = {name: getattr(report, name) for name in names}
    return {name: repr(value) for name, value in values.items()}


def read_in_a_worker(tensor, checkpoint, objects):
    assert tensor._checkpoint is checkpoint and objects._checkpoint is checkpoint
    return tensor[2, :].tobytes(), os.getpid(), checkpoint.step, objects["rng"], checkpoint._threads


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_a_worker_reads_what_its_parent_has_opened(saved, weights, method, monkeypatch):
    monkeypatch.chdir(saved.parent)
    with sealpoint.open(saved.name, threads=2, direct_io=True, raise_limits=3) as checkpoint:
        monkeypatch.chdir("/")
        with multiprocessing.get_context(method).Pool(1) as pool:
            asked = pool.apply_async(read_in_a_worker, (checkpoint["w"], checkpoint, checkpoint.objects))
            row, pid, *rest = asked.get(timeout=60)  # a worker that cannot read what was sent ends without a word
        assert again(checkpoint)._handle.options == checkpoint._handle.options == (True, True, 256 << 20, 3, {})
    assert row == raw(weights[2]) and pid != os.getpid() and rest == [7, b"\0\1\2", 2]


class Rows:
    """A data set for torch, though it needs none of it."""

    def __init__(self, tensor):
        self.tensor = tensor

    def __len__(self):
        return len(self.tensor)

    def __getitem__(self, i):
        return self.tensor[i]


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
def test_a_data_loader_that_spawns(saved, weights):
    from torch.utils.data import DataLoader

    with sealpoint.open(saved) as checkpoint:
        loader = DataLoader(Rows(checkpoint["w"]), batch_size=4, num_workers=2, multiprocessing_context="spawn")
        assert numpy.array_equal(numpy.concatenate([batch.numpy() for batch in loader]), weights)


def test_another_checkpoint_is_not_taken_for_it(saved, weights):
    with sealpoint.open(saved) as checkpoint:
        sent = pickle.dumps(checkpoint["w"])
    shutil.rmtree(saved)
    with pytest.raises(sealpoint.NotFoundError, match="there is no"):
        pickle.loads(sent)
    sealpoint.save({"w": weights}, saved)
    with pytest.raises(sealpoint.MismatchError, match="expected [0-9a-f]{32}: the checkpoint was replaced"):
        pickle.loads(sent)
    with pytest.raises(sealpoint.InvalidArgumentError, match="closed"):
        pickle.dumps(checkpoint)


def test_reports(saved, weights, tmp_path):
    infos = [sealpoint.save({"w": weights}, tmp_path / "caf\udce9", series=True, step=step) for step in (1, 2, 3)]
    series = sealpoint.Series(tmp_path / "caf\udce9")
    (tmp_path / "caf\udce9" / "step-000000000009-00000000").mkdir()
    flip_bit_of(infos[0].directory, raw(weights))
    with sealpoint.open(saved) as checkpoint:
        load = checkpoint.read({"w": numpy.empty((8, 12), "f4"), "none": bytearray(4)}, missing="report")
        plan = checkpoint.plan()
    bad = sealpoint.verify(infos[0].directory)
    refused = sealpoint._sealpoint.series_prune(series.path, (1, 0, 0, 0, 0), [], None, False)
    reports = [infos[2], load, plan.summary, bad, sealpoint.verify(infos[1].directory, "files"), *series.list(),
               series.prune(dry_run=True), series.prune(dry_run=True).decisions[0], refused]
    assert bad.violations and load.findings and refused.error is not None and series.list()[-1].problem is not None
    for report in reports:
        assert members(again(report)) == members(report) and type(again(report)) is type(report)
        assert members(again(again(report))) == members(report)
    for value in (plan, series.newest(), again(series).newest()):
        assert repr(again(value)) == repr(value)
    assert {type(report) for report in reports} == {
        sealpoint.CommitInfo, sealpoint.LoadReport, sealpoint.PlanSummary, sealpoint.VerifyReport, sealpoint.SeriesEntry,
        sealpoint.PruneReport, sealpoint.PruneDecision}  # fmt: skip


def test_what_has_memory_or_files_of_its_own_cannot_be_pickled(tmp_path):
    for value in (sealpoint.Engine(), sealpoint.BlobWriter(tmp_path / "b")):
        with pytest.raises(TypeError, match="pickle"):
            pickle.dumps(value)


def test_everything_says_what_it_is(saved, tmp_path):
    modules = ["sealpoint.interop"] + (["sealpoint.torch"] if importlib.util.find_spec("torch") else [])
    for module in (sealpoint, *map(importlib.import_module, modules)):
        public = [getattr(module, name) for name in module.__all__]
        assert [item for item in public if isinstance(item, type) and item.__repr__ is object.__repr__] == []
    writer = sealpoint.BlobWriter(tmp_path / "b")
    prune = sealpoint.Series(tmp_path).prune(dry_run=True)
    assert repr(writer) == f"<sealpoint.BlobWriter {str(tmp_path / 'b')!r}>"
    assert repr(sealpoint.Engine()) == "<sealpoint.Engine: 0 bytes of memory mapped>"
    assert repr(prune) == "<sealpoint.PruneReport: 1 directories, 0 bytes freed>"
    assert repr(prune.decisions) == "[<sealpoint.PruneDecision checkpoint: stays>]"
    if len(modules) == 2:
        from sealpoint.torch import Checkpointer, Contract

        assert repr(Contract.partial()) == (
            "Contract(missing='error', unexpected='allow', dtype='error', shape='error', coverage='allow', kind='error', "
            "per_rank='error')"
        )
        assert repr(Checkpointer("run", every=5, keep=3)) == "<sealpoint.torch.Checkpointer 'run': every=5, keep=3>"


def test_raised_limits_stay_with_the_checkpoint(tmp_path):
    sealpoint.save({"w": numpy.zeros(3)}, tmp_path / "c")
    with sealpoint.open(tmp_path / "c", raise_limits=2) as checkpoint:
        assert again(checkpoint)._handle.options == checkpoint._handle.options == (True, None, 256 << 20, 2, {})
    assert sealpoint.verify(tmp_path / "c", raise_limits=2).ok
    with pytest.raises(sealpoint.InvalidArgumentError, match="raise_limits is 0"):
        sealpoint.open(tmp_path / "c", raise_limits=0)
