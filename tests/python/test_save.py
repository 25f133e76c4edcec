# SPDX-License-Identifier: Apache-2.0
"""Saving from one process, series, and blobs for collectives of the caller's own."""

import contextlib
import ctypes
import gc
import multiprocessing
import os
import pathlib
import subprocess
import sys
import tempfile
import threading

import ml_dtypes
import numpy
import pytest
import sealpoint
from conftest import noise, raw
from numpy.testing import assert_array_equal
from sealpoint import _sealpoint

ROOT = pathlib.Path(__file__).parents[2]


def sources(weights):
    yield weights
    yield numpy.asfortranarray(weights)
    yield weights.copy().T.copy().T
    yield numpy.repeat(weights, 2, axis=1)[:, ::2]
    yield weights[::-1].copy()[::-1]
    yield memoryview(bytearray(raw(weights))).cast("f", (8, 12))
    yield (ctypes.c_float * 12 * 8).from_buffer_copy(raw(weights))
    yield (weights.view("u4"), "f32")
    yield (weights.view("u1").reshape(8, 12, 4), "f32")


def test_sources(place, weights):
    tensors = {f"w{i}": source for i, source in enumerate(sources(weights))}
    tensors["broadcast"] = numpy.broadcast_to(weights[0], (5, 12))
    info = sealpoint.save(tensors, place / "c", codec="bytesplit+zstd", chunk_size_bytes=4096)
    assert info.tensor_count == len(tensors) and info.step is None and info.parent is None and info.sequence == 1
    with sealpoint.open(place / "c") as checkpoint:
        for name in tensors:
            expected = numpy.broadcast_to(weights[0], (5, 12)) if name == "broadcast" else weights
            assert_array_equal(checkpoint[name][...], expected, strict=True)


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_tensors_stored_in_boxes(tmp_path, codec):
    """A plane reads the boxes that it touches; the reference reader finds the same bytes."""
    grid = numpy.arange(20 * 18 * 30, dtype="f8").reshape(20, 18, 30).transpose(1, 0, 2)
    cuts = {"grid.rho": (0, 0, 1), "grid.*": (8, 8, 8)}
    sealpoint.save({"grid.p": grid, "grid.rho": grid, "b": b"12"}, tmp_path / "c", stored_cuts=cuts, codec=codec)
    with sealpoint.open(tmp_path / "c") as checkpoint:
        assert {name: len(checkpoint.shards(name)) for name in checkpoint} == {"b": 1, "grid.p": 3 * 3 * 4, "grid.rho": 30}
        for name in ("grid.p", "grid.rho"):
            for index in (..., numpy.s_[:, :, 7], numpy.s_[3:17:5, 2:, ::4]):
                assert_array_equal(checkpoint[name][index], grid[index], strict=True)
        costs = [checkpoint.plan({name: numpy.s_[:, :, 7]}) for name in ("grid.p", "grid.rho")]
        if codec == "none":
            assert [cost.summary.amplification for cost in costs] == [8.0, 1.0]
            assert "2.9 kB requested, 23.0 kB read (x 8.000)" in costs[0].text
    if not isinstance(tmp_path, pathlib.Path):
        return  # the reference reader reads directories
    reader = [sys.executable, "-B", "-m", "sealpoint_reference"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "readers/reference")}
    subprocess.run([*reader, "verify", tmp_path / "c"], env=environment, check=True)
    stored = subprocess.run([*reader, "cat", tmp_path / "c", "grid.p"], env=environment, check=True, capture_output=True).stdout
    assert stored == grid.tobytes()


@pytest.mark.parametrize(
    ("value", "text"),
    [(1.5, "float is not an array"), (None, "NoneType is not an array"), (numpy.zeros(3, "O"), "no counterpart"),
     (numpy.zeros(3, ">i4"), "not little-endian"), ((numpy.zeros(3, "f4"), "bf16"), "4 bytes, expected 2 of bf16"),
     ((numpy.zeros(3, "f4"), "float32"), "dtype float32 is not registered"), (numpy.zeros(3, "V3"), "no dtype"),
     (numpy.zeros(3, "datetime64[s]"), "no counterpart"), (numpy.zeros(3, numpy.longdouble), "no counterpart"),
     (numpy.ma.masked_array([1.0, 2.0], [True, False]), "mask would be lost")])
def test_what_cannot_be_saved(tmp_path, weights, value, text):
    with pytest.raises(sealpoint.InvalidArgumentError, match=text) as caught:
        sealpoint.save({"good": weights, "bad": value}, tmp_path / "c")
    assert caught.value.tensor == "bad" and not (tmp_path / "c").exists()


def test_a_thread_that_changes_an_array_makes_no_corrupt_checkpoint(tmp_path):
    array = numpy.zeros(16 << 20, "u1")
    over = threading.Event()

    def change():
        while not over.is_set():
            array[:] += 1

    thread = threading.Thread(target=change)
    thread.start()
    folder = "/dev/shm" if pathlib.Path("/dev/shm").is_dir() else tmp_path  # where direct I/O is refused
    with tempfile.TemporaryDirectory(dir=folder) as name:
        try:
            for step in range(3):
                sealpoint.save({"w": array}, f"{name}/{step}")
        finally:
            over.set()
            thread.join()
        for step in range(3):
            assert sealpoint.verify(f"{name}/{step}").verdict == "committed"


def test_other_errors(tmp_path, weights):
    def refused(error, text, *args, **options):
        with pytest.raises(error, match=text) as caught:
            sealpoint.save(*args, **options)
        return caught.value

    path = tmp_path / "c"
    refused(sealpoint.InvalidArgumentError, "codec is 'lz4'", {"w": weights}, path, codec="lz4")
    refused(sealpoint.InvalidArgumentError, "chunk", {"w": weights}, path, chunk_size_bytes=5000)
    refused(sealpoint.InvalidArgumentError, "tensor", {}, path)
    refused(TypeError, "tensor's name is 3, expected a str", {3: weights}, path)
    error = refused(sealpoint.InvalidArgumentError, "str is not bytes", {"w": weights}, path, objects={"o": "text"})
    assert error.object == "o"
    assert sealpoint.save({}, path, allow_empty=True).tensor_count == 0
    assert refused(sealpoint.AlreadyExistsError, "marker", {"w": weights}, path).path.startswith(str(path))
    assert sealpoint.verify(path).ok


def test_series(place, weights):
    series = sealpoint.Series(place / "run")
    assert series.list() == [] and series.newest() is None and series.open_newest() is None
    for step in range(1, 6):
        info = sealpoint.save({"w": weights + step}, series.path, step=step, series=True,
                              provenance={"metric.loss": str(abs(3 - step))})
        assert info.sequence == step
    assert [entry.step for entry in series.list()] == [5, 4, 3, 2, 1]
    assert series.list()[0].parent == series.list()[1].attempt and series.list()[0].verdict == "committed"
    with series.open_newest(threads=2) as checkpoint:
        assert checkpoint.step == 5 and checkpoint["w"][0, 0] == 5
    rules = dict(keep_last=2, keep_best=("metric.loss", "least", 1))
    dry = series.prune(**rules, dry_run=True)
    assert [(d.entry.step, d.keep, d.is_deleted) for d in dry.decisions] == [
        (5, True, False), (4, True, False), (3, True, False), (2, False, False), (1, False, False)]
    assert all(d.reasons for d in dry.decisions) and len(series.list()) == 5
    done = series.prune(**rules)
    assert done.bytes_freed == dry.bytes_freed > 0 and [e.step for e in series.list()] == [5, 4, 3]
    series.delete(series.list()[2].name)
    with pytest.raises(sealpoint.InvalidArgumentError):
        series.delete(series.list()[0].name)
    with pytest.raises(sealpoint.InvalidArgumentError) as caught:
        series.prune(keep_last=1)
    assert caught.value.report.decisions == []
    newest = series.list()[0]
    (blob,) = sealpoint.list_blobs(newest.path)
    _sealpoint.remove_path(f"{newest.path}/{blob}.blob")
    with pytest.raises(sealpoint.IncompleteError):
        series.newest()
    found = series.newest(allow_fallback=True)
    assert found.entry.step == 4 and [type(e.problem) for e in found.skipped] == [sealpoint.IncompleteError]
    _sealpoint.remove_path(f"{newest.path}/COMMIT")
    with contextlib.suppress(sealpoint.UnsupportedError):  # obstore cannot list them
        assert series.unfinished() == []
    assert series.clean(newest.name).bytes_freed > 0


def test_a_series_with_a_damaged_marker_is_saved_into_if_asked(tmp_path, weights):
    first = sealpoint.save({"w": weights}, tmp_path, series=True, step=1)
    second = sealpoint.save({"w": weights}, tmp_path, series=True, step=2)
    marker = tmp_path / second.directory.rpartition("/")[2] / "COMMIT"
    marker.write_bytes(marker.read_bytes()[:-1] + b"x")
    with pytest.raises(sealpoint.CorruptError, match="allow_fallback"):
        sealpoint.save({"w": weights}, tmp_path, series=True, step=3)
    assert sealpoint.save({"w": weights}, tmp_path, series=True, step=3, allow_fallback=True).parent == first.attempt


def test_parents(place, weights):
    first = sealpoint.save({"w": weights}, place / "1")
    second = sealpoint.save({"w": weights}, place / "2", parent=first)
    with sealpoint.open(place / "2") as checkpoint:
        third = sealpoint.save({"w": weights}, place / "3", parent=checkpoint)
        assert checkpoint.parent == first.attempt
    assert (third.parent, third.sequence) == (second.attempt, 3)
    assert sealpoint.save({"w": weights}, place / "4", parent=(third.attempt, 3)).sequence == 4


def write_rows(directory, attempt, rank, queue):
    """One of two processes: 4 of 8 rows, a run of a flat tensor, an object."""
    rows = numpy.arange(96, dtype="f4").reshape(8, 12)[rank * 4 : rank * 4 + 4]
    with sealpoint.BlobWriter(directory, attempt=attempt, step=3) as writer:
        writer.add("w", rows, shape=(8, 12), offset=(rank * 4, 0), placement=["shard(0)"])
        flat = numpy.arange(rank * 7, 7 + rank * 5, dtype="i8")
        writer.add("flat", flat, shape=(3, 4), extent=(3, 4), run=(rank * 7, 7 + rank * 5))
        writer.add_object(f"rng.{rank}", (b"%d" % rank, "text/plain"))
        if rank == 0:
            writer.add("empty", numpy.zeros((0, 2), ml_dtypes.bfloat16))
        queue.put(writer.finish())


def test_own_collectives(tmp_path):
    context = multiprocessing.get_context("spawn")
    queue, attempt = context.Queue(), sealpoint.new_attempt()
    ranks = [context.Process(target=write_rows, args=(tmp_path / "c", attempt, rank, queue)) for rank in range(2)]
    for process in ranks:
        process.start()
    summaries = [summary for _ in ranks for summary in queue.get(timeout=60)]
    for process in ranks:
        process.join()
    assert sorted(summaries) == sorted(
        sealpoint.read_summary(tmp_path / "c", blob) for blob in sealpoint.list_blobs(tmp_path / "c"))
    with pytest.raises(sealpoint.InvalidArgumentError):
        sealpoint.commit(tmp_path / "c", summaries[:1], attempt=attempt)
    with pytest.raises(sealpoint.CorruptError):
        sealpoint.commit(tmp_path / "c", [summaries[0][:-1], summaries[1]], attempt=attempt)
    info = sealpoint.commit(tmp_path / "c", summaries, attempt=attempt, step=3, mesh={"data": 2}, provenance={"by": "test"})
    assert (info.attempt, info.blob_count, info.step) == (attempt, 2, 3)
    with sealpoint.open(tmp_path / "c") as checkpoint:
        assert_array_equal(checkpoint["w"][...], numpy.arange(96, dtype="f4").reshape(8, 12))
        assert_array_equal(checkpoint["flat"][...], numpy.arange(12).reshape(3, 4))
        assert checkpoint["w"].placement == ["shard(0)"] and checkpoint["empty"].shape == (0, 2)
        assert dict(checkpoint.objects) == {"rng.0": b"0", "rng.1": b"1"}
        assert [shard.run for shard in checkpoint.shards("flat")] == [(0, 7), (7, 12)]
        assert [shard.offset for shard in checkpoint.shards("w")] == [(0, 0), (4, 0)]


def test_a_writer_that_is_left_removes_its_files(tmp_path, weights):
    big = noise((1 << 20,), "f4")
    with pytest.raises(RuntimeError), sealpoint.BlobWriter(tmp_path) as writer:
        writer.add("w", big)
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []
    with sealpoint.BlobWriter(tmp_path) as writer:
        writer.add("w", big)
    assert list(tmp_path.iterdir()) == []
    writer = sealpoint.BlobWriter(tmp_path)
    writer.add("w", big)
    assert len(writer.finish()) == 1
    writer.abandon()
    assert list(tmp_path.iterdir()) == []
    writer = sealpoint.BlobWriter(tmp_path)
    writer.add("w", big)
    del writer
    gc.collect()
    assert list(tmp_path.iterdir()) == []


def test_a_committed_checkpoint_stays_whatever_becomes_of_its_writer(tmp_path):
    with pytest.raises(RuntimeError), sealpoint.BlobWriter(tmp_path) as writer:
        writer.add("w", numpy.ones(1000))
        sealpoint.commit(tmp_path, writer.finish())
        raise RuntimeError
    with pytest.raises(sealpoint.InvalidArgumentError, match="R-CMT-15"):
        writer.abandon()
    assert sealpoint.verify(tmp_path).verdict == "committed"


def child_of_fork(path, writer, checkpoint):
    """0: what was inherited is inert or works, and the child saves by itself."""
    try:
        writer.add("more", numpy.ones(3))
        return 1
    except sealpoint.InvalidArgumentError:
        pass
    if checkpoint["w"][1, 1] != 13:
        return 2
    sealpoint.save({"w": numpy.ones(3)}, path / "child")
    del writer, checkpoint
    gc.collect()
    return 0


def test_after_fork(tmp_path, saved):
    writer, checkpoint = sealpoint.BlobWriter(tmp_path / "blobs"), sealpoint.open(saved)
    writer.add("w", noise((1 << 20,), "f4"))
    pid = os.fork()
    if pid == 0:
        status = 3
        try:
            status = child_of_fork(tmp_path, writer, checkpoint)
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    sealpoint.commit(tmp_path / "blobs", writer.finish())
    assert sealpoint.verify(tmp_path / "blobs").ok and sealpoint.verify(tmp_path / "child").ok


LIMITED = """
import resource, sys, numpy, sealpoint
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
for number in range(2):
    try:
        sealpoint.save({"w": numpy.ones(1 << 22, "u1")}, sys.argv[1])
    except sealpoint.Error as error:
        print(type(error).__name__, error.path.endswith(".blob"), error.unknown_outcome)
sealpoint.save({"w": numpy.ones(1 << 10, "u1")}, sys.argv[1])
"""


def test_a_storage_that_fails(tmp_path):
    """A file that may not grow: an error that names it, nothing is left, and the process saves again."""
    done = subprocess.run([sys.executable, "-c", LIMITED, tmp_path / "c"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout in ("IoError True False\n" * 2, "NoSpaceError True False\n" * 2)
    assert sealpoint.verify(tmp_path / "c").ok and len(list((tmp_path / "c").iterdir())) == 3
