# SPDX-License-Identifier: Apache-2.0
"""Opening and reading: the mapping, indices, destinations, many tensors, plans."""

import array
import datetime
import gc
import io
import itertools
import sys
import weakref

import ml_dtypes
import numpy
import pytest
import sealpoint
from conftest import DTYPES, noise, raw
from numpy.testing import assert_array_equal
from sealpoint import _paths


def test_mapping(checkpoint, stored):
    assert list(checkpoint) == ["b", "empty", "layers.0.w", "scalar", "w"] and len(checkpoint) == 5
    assert "w" in checkpoint and "x" not in checkpoint and 3 not in checkpoint
    assert checkpoint.get("x") is None
    with pytest.raises(KeyError) as caught:
        checkpoint["x"]
    assert isinstance(caught.value, sealpoint.NotFoundError) and caught.value.tensor == "x"
    assert [t.name for t in checkpoint.find("*w", "b")] == ["b", "layers.0.w", "w"]
    with pytest.raises(sealpoint.NotFoundError):
        checkpoint.find("nothing*")
    assert repr(checkpoint) == f"<sealpoint.Checkpoint {str(stored)!r}: step 7, 5 tensors, {checkpoint.raw_bytes} bytes>"


def test_what_the_index_says(checkpoint, stored):
    assert (checkpoint.step, checkpoint.sequence, checkpoint.parent, checkpoint.path) == (7, 1, None, str(stored))
    assert len(checkpoint.attempt) == 32
    assert checkpoint.provenance["metric.loss"] == "1.25" and checkpoint.mesh == {"data": 1}
    assert abs(checkpoint.created - datetime.datetime.now(datetime.UTC)) < datetime.timedelta(minutes=5)
    (blob,) = checkpoint.blobs
    assert _paths.sizes_of(str(stored))[f"{blob.id}.blob"] == blob.file_size_bytes
    assert checkpoint.raw_bytes == 2 * 384 + 48 + 8 + 5
    (shard,) = checkpoint.shards("w")
    assert (shard.offset, shard.extent, shard.run, shard.blob) == ((0, 0), (8, 12), None, blob.id)
    assert checkpoint.chunks("w") == (1, 384, 384, {"none": 1})


def test_tensor(checkpoint):
    tensor = checkpoint["b"]
    assert (tensor.name, tensor.shape, tensor.dtype_name, tensor.nbytes) == ("b", (4, 6), "bf16", 48)
    assert tensor.dtype == ml_dtypes.bfloat16 and (tensor.ndim, tensor.size, tensor.itemsize, len(tensor)) == (2, 24, 2, 4)
    assert repr(tensor) == "<sealpoint.Tensor 'b': bf16 [4, 6], 48 bytes>"
    with pytest.raises(TypeError, match="ambiguous"):
        bool(tensor)


def test_objects(checkpoint):
    assert dict(checkpoint.objects) == {"args": b"{}", "rng": b"\0\1\2"}
    assert checkpoint.objects.media_type("args") == "application/json"
    assert checkpoint.objects.media_type("rng") == "application/octet-stream"
    assert checkpoint.objects.size_bytes("rng") == 3 and "rng" in checkpoint.objects
    assert "x" not in checkpoint.objects and 3 not in checkpoint.objects
    with pytest.raises(KeyError) as caught:
        checkpoint.objects["x"]
    assert caught.value.object == "x"


SLICES = [slice(None), slice(2, 5), slice(-3, None), slice(5, 2), slice(None, None, 3), slice(1, 8, 2)]
INDICES = [*SLICES, 0, -1, numpy.int64(3)]


def test_indices_are_those_of_numpy(checkpoint, weights):
    tensor = checkpoint["w"]
    for index in [*INDICES, *itertools.product(INDICES, INDICES), ..., (), (..., 1), (1, ...), (slice(1), ..., -1)]:
        got, expected = tensor[index], weights[index]
        assert_array_equal(got, expected, err_msg=str(index), strict=True)
        assert type(got) is type(expected), index
    scalar = checkpoint["scalar"]
    assert scalar[()] == 3.5 and isinstance(scalar[()], numpy.float64) and scalar[...].shape == ()
    assert checkpoint["empty"][...].shape == (0, 3) and checkpoint["empty"][:, 1].shape == (0,)
    assert_array_equal(numpy.asarray(tensor, dtype="f8"), weights.astype("f8"), strict=True)
    with pytest.raises(ValueError, match="copy=False"):
        numpy.array(tensor, copy=False)


@pytest.mark.parametrize(
    ("index", "error", "text"),
    [(8, IndexError, "index 8 is out of bounds for dimension 0 of 8"), ((0, 0, 0), IndexError, "3 indices"),
     ((..., ...), IndexError, "ellipsis"), (slice(None, None, -1), ValueError, "step of a slice is -1"),
     (None, TypeError, "None is not an index"), ([1, 2], TypeError, "list is not an index"),
     (True, TypeError, "True is not an index"),
     ("x", TypeError, "str is not an index"), (1.0, TypeError, "float is not an index")])
def test_other_indices_are_refused(checkpoint, index, error, text):
    with pytest.raises(error, match=text):
        checkpoint["w"][index]


def test_only_the_box_is_read(tmp_path):
    rows = numpy.zeros((64, 65536), "f4")
    sealpoint.save({"w": rows}, tmp_path / "c", chunk_size_bytes=1 << 20)
    with sealpoint.open(tmp_path / "c") as checkpoint:
        assert checkpoint.plan(["w"]).summary.bytes_read == rows.nbytes
        plan = checkpoint.plan({"w": numpy.s_[4:8, :]})
        assert plan.summary.bytes_read == plan.summary.bytes_requested == 1 << 20
        assert "1 chunk" in plan.text and str(plan) == plan.text
        assert checkpoint.plan().summary.chunks == 16
        report = checkpoint.read([("w", numpy.s_[0:4], numpy.empty((4, 65536), "f4"))])
        assert report.plan.bytes_read == 1 << 20 and report.seconds > 0


def test_steps_read_only_the_chunks_they_touch(tmp_path):
    rows = numpy.arange(64 * 65536, dtype="f4").reshape(64, 65536)
    sealpoint.save({"w": rows}, tmp_path / "c", chunk_size_bytes=1 << 18)
    with sealpoint.open(tmp_path / "c") as checkpoint:
        index = numpy.s_[1::16, 3:60000:7]
        summary = checkpoint.plan({"w": index}).summary
        assert (summary.bytes_read, summary.bytes_requested) == (4 << 18, rows[index].nbytes)
        assert_array_equal(checkpoint["w"][index], rows[index], strict=True)
        assert bytes(checkpoint["w"].tobytes(index)) == rows[index].tobytes()
        strided = numpy.zeros((rows[index].shape[1], 4), "f4")
        checkpoint["w"].read(strided.T, index)
        doubled = numpy.zeros((32,), "f8")
        checkpoint.read([("w", numpy.s_[::2, -1], doubled)], convert="exact")
        assert_array_equal(strided.T, rows[index])
        assert_array_equal(doubled, rows[::2, -1])
        with pytest.raises(sealpoint.InvalidArgumentError, match="coverage cannot be checked"):
            checkpoint.read([("w", numpy.s_[::2, -1], doubled)], convert="exact", coverage="error")


def test_new_arrays_lie_where_reads_are_fast(tmp_path):
    tensors = {"large": noise((1000, 1000), "f4"), "scalar": noise((), "f8"), "empty": noise((0, 3), "f4"),
               "bytes": noise((3,), "u1")}
    sealpoint.save(tensors, tmp_path / "c")
    with sealpoint.open(tmp_path / "c") as checkpoint:
        for name, expected in tensors.items():
            arrays = [checkpoint[name][...] for _ in range(3)]
            assert all(array.__array_interface__["data"][0] % 64 == 0 for array in arrays if array.size > 0)
            for array in arrays:
                assert_array_equal(array, expected, strict=True)
                assert array.flags.writeable and array.flags.c_contiguous


def test_every_dtype(tmp_path):
    tensors = {name: noise((3, 5), dtype) for name, dtype in DTYPES.items()}
    sealpoint.save(tensors, tmp_path / "c")
    with sealpoint.open(tmp_path / "c") as checkpoint:
        for name, expected in tensors.items():
            assert checkpoint[name].dtype_name == name and checkpoint[name].dtype == expected.dtype
            assert raw(checkpoint[name][...]) == raw(expected) and checkpoint[name][1:, 2].dtype == expected.dtype
            assert bytes(checkpoint[name].tobytes()) == raw(expected)
        outs = {name: numpy.empty_like(expected) for name, expected in tensors.items()}
        checkpoint.read(outs)
        assert all(raw(outs[name]) == raw(expected) for name, expected in tensors.items())


def test_a_dtype_without_counterpart_is_bytes(tmp_path):
    pairs = noise((3, 4), "u1")
    sealpoint.save({"f4": (pairs, "f4_e2m1x2"), "bf16": (noise((5, 2), "u1"), "bf16")}, tmp_path / "c")
    with sealpoint.open(tmp_path / "c") as checkpoint:
        tensor = checkpoint["f4"]
        assert tensor.dtype == "f4_e2m1x2" and tensor.shape == (3, 4)
        assert_array_equal(tensor[1:, ::2], pairs[1:, ::2, None], strict=True)
        assert checkpoint["bf16"].shape == (5,)
        assert raw(checkpoint["bf16"][1:4]) == raw(noise((5, 2), "u1")[1:4])


def destinations(shape):
    yield numpy.empty(shape, "f4")
    yield numpy.empty(shape, "f4", order="F")
    yield numpy.empty((shape[0], shape[1] * 3), "f4")[:, 1::3]
    yield numpy.empty(shape, "f4")[::-1, ::-1]
    yield numpy.empty((2, *shape), "f4")[1]
    yield memoryview(bytearray(shape[0] * shape[1] * 4)).cast("B").cast("f", shape)
    yield numpy.empty((*shape, 4), "u1")


def test_destinations(checkpoint, weights):
    for out in destinations((8, 12)):
        assert checkpoint["w"].read(out) is out
        assert raw(numpy.asarray(out)) == raw(weights)
    for out in destinations((3, 4)):
        checkpoint["w"].read(out, numpy.s_[2:5, 1:5])
        assert raw(numpy.asarray(out)) == raw(weights[2:5, 1:5])
    flat = bytearray(384)
    assert checkpoint["w"].read(flat) is flat and bytes(flat) == raw(weights)
    flat.append(0)  # it is the caller's again
    row = array.array("f", [0] * 12)
    checkpoint["w"].read(row, 3)
    assert row.tolist() == weights[3].tolist()
    bf16 = numpy.empty((12, 4), ml_dtypes.bfloat16).T[:, ::2]
    checkpoint["b"].read(bf16)
    assert raw(bf16) == raw(noise((4, 6), ml_dtypes.bfloat16))
    assert_array_equal(checkpoint["w"].read(box=numpy.s_[1, 2:4], threads=2), weights[1, 2:4])


def test_conversion_only_where_asked(checkpoint, weights):
    out = numpy.empty((8, 12), "f8")
    with pytest.raises(sealpoint.InvalidArgumentError, match="f64, expected f32"):
        checkpoint["w"].read(out)
    checkpoint["w"].read(out, convert="exact")
    assert_array_equal(out, weights.astype("f8"))
    half = numpy.empty((4, 6), "f4")
    checkpoint.read({"b": half}, convert="nearest")
    assert_array_equal(half, noise((4, 6), ml_dtypes.bfloat16).astype("f4"))
    with pytest.raises(sealpoint.InvalidArgumentError, match="convert is 'up'"):
        checkpoint["w"].read(out, convert="up")


def read_only():
    array = numpy.zeros((8, 12), "f4")
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    ("out", "text"),
    [(numpy.zeros((12, 8), "f4"), r"shape of the array is \[12, 8\], expected \[8, 12\]"),
     (numpy.zeros(96, "f4"), r"shape of the array is \[96\], expected \[8, 12\]"),
     (numpy.zeros((8, 12), "i4"), "i32, expected f32"), (numpy.zeros((8, 12), "f8"), "f64, expected f32"),
     (numpy.zeros((8, 12), ">f4"), "not little-endian"), (numpy.zeros((8, 12), "U1"), "no counterpart"),
     (numpy.zeros((8, 12), [("a", "f4")]), "no counterpart"), (numpy.zeros((8, 12), object), "no counterpart"),
     (read_only(), "read-only"), (bytes(384), "not writable"), (bytearray(383), "383 bytes, expected 384"),
     (bytearray(385), "385 bytes, expected 384"), (3.0, "float is not an array"), ([1.0], "list is not an array"),
     *[(numpy.lib.stride_tricks.as_strided(numpy.zeros(96, "f4"), (8, 12), strides, writeable=True), "elements overlap")
       for strides in [(0, 4), (4, 4), (8, 4), (44, 4), (4, 28)]],
     (numpy.zeros((8, 12, 8), "u1"), r"expected \[8, 12\]"), ((1, 2, 3), "tuple is not an array")])
def test_other_destinations_are_refused(checkpoint, out, text):
    before = out.copy() if isinstance(out, numpy.ndarray) else None
    with pytest.raises(sealpoint.InvalidArgumentError, match=text) as caught:
        checkpoint.read({"b": numpy.empty((4, 6), ml_dtypes.bfloat16), "w": out})
    assert caught.value.tensor == "w"
    assert before is None or (before == out).all(), "no byte moves"


@pytest.mark.parametrize("threads", [0, -1, 1025, 2**31 - 1])
def test_numbers_of_threads_are_bounded(checkpoint, stored, weights, threads):
    for call in (lambda: checkpoint.read({"w": numpy.empty_like(weights)}, threads=threads),
                 lambda: checkpoint["w"].read(threads=threads), lambda: sealpoint.verify(stored, threads=threads)):
        with pytest.raises(sealpoint.InvalidArgumentError, match=f"threads is {threads}, expected an integer of 1 to 1024"):
            call()


def test_many_at_once(checkpoint, weights):
    outs = {"w": numpy.empty_like(weights), "layers.0.w": numpy.empty_like(weights)}
    report = checkpoint.read(outs, threads=2, isolate=True)
    assert report.plan.items == 2 and report.findings == []
    assert_array_equal(outs["layers.0.w"], weights * 2)
    whole = numpy.zeros((8, 12), "f4")
    checkpoint.read([("w", numpy.s_[:, :5], whole[:, :5]), ("w", numpy.s_[:, 5:], whole[:, 5:])])
    assert_array_equal(whole, weights)
    with pytest.raises(sealpoint.InvalidArgumentError, match="overlap|share"):
        checkpoint.read([("w", numpy.s_[:, :5], whole[:, :5]), ("w", numpy.s_[:, 4:], whole[:, 4:])])


def test_destinations_live_as_long_as_the_read(checkpoint):
    wanted, seen = {"w": numpy.empty((8, 12), "f4")}, []
    alive = weakref.ref(wanted["w"])

    def forget(*_):
        wanted.clear()
        gc.collect()
        seen.append(alive() is not None)

    checkpoint.read(wanted, progress=forget)
    gc.collect()
    assert seen and all(seen) and alive() is None


def test_an_empty_tensor_whose_extents_are_too_large_for_numpy(tmp_path):
    with sealpoint.BlobWriter(tmp_path / "c") as writer:
        writer.add("w", numpy.zeros((0,), "f4"), shape=(0, 2**40, 2**40))
        summaries = writer.finish()
    sealpoint.commit(tmp_path / "c", summaries)
    with sealpoint.open(tmp_path / "c") as opened:
        for read in (lambda: opened["w"][...], lambda: opened["w"].read(), lambda: numpy.asarray(opened["w"])):
            with pytest.raises(sealpoint.LimitExceededError, match=r"no array of shape \[0, 1099511627776, 1099511627776\]"):
                read()
        assert opened["w"].tobytes() == b""


def test_contract(checkpoint, weights):
    out = numpy.full_like(weights, -1)
    with pytest.raises(sealpoint.MismatchError) as caught:
        checkpoint.read({"w": numpy.empty_like(weights), "x": out})
    assert caught.value.tensor == "x"
    report = checkpoint.read({"w": numpy.empty_like(weights), "x": out}, missing="report")
    assert [finding[:2] for finding in report.findings] == [("missing", "x")] and (out == -1).all()
    with pytest.raises(sealpoint.MismatchError):
        checkpoint.read({"w": out}, unexpected="error")
    with pytest.raises(sealpoint.MismatchError):
        checkpoint.read([("w", numpy.s_[:3], out[:3])], coverage="error")
    with pytest.raises(sealpoint.InvalidArgumentError, match="missing is 'maybe'"):
        checkpoint.read({"w": out}, missing="maybe")
    with pytest.raises(TypeError, match="expected a str"):
        checkpoint.read({3: out})
    with pytest.raises(sealpoint.InvalidArgumentError, match="thread"):
        checkpoint.read({"w": out}, threads=0)


def test_closed(stored):
    checkpoint = sealpoint.open(stored)
    tensor = checkpoint["w"]
    checkpoint.close()
    checkpoint.close()
    for use in (lambda: checkpoint["w"], lambda: tensor[...], lambda: list(checkpoint), lambda: checkpoint.step):
        with pytest.raises(sealpoint.InvalidArgumentError, match="closed"):
            use()
    assert "closed" in repr(checkpoint)


def test_paths(tmp_path, weights):
    odd = bytes(tmp_path) + b"/caf\xe9"
    sealpoint.save({"w": weights}, odd)
    with sealpoint.open(odd) as checkpoint:
        assert checkpoint.path.encode(errors="surrogateescape") == odd
    with pytest.raises(sealpoint.AlreadyExistsError) as caught:
        sealpoint.save({"w": weights}, odd)
    assert caught.value.path.encode(errors="surrogateescape").startswith(odd)
    with pytest.raises(sealpoint.NotFoundError):
        sealpoint.open(tmp_path / "none")
    with pytest.raises(sealpoint.NotACheckpointError):
        sealpoint.open(tmp_path)
    with pytest.raises(TypeError):
        sealpoint.open(3)


def test_progress_is_shown_in_a_notebook(saved, monkeypatch):
    """Whose stderr is no terminal."""
    stream = type("OutStream", (io.StringIO,), {"__module__": "ipykernel.iostream"})()
    monkeypatch.setattr(sys, "stderr", stream)
    with sealpoint.open(saved) as checkpoint:
        checkpoint.read({"w": bytearray(384)}, progress=True)
    shown = stream.getvalue()
    assert "\r" in shown and "MB (100 %)" in shown and shown.endswith("\n"), shown
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with sealpoint.open(saved) as checkpoint:
        checkpoint.read({"w": bytearray(384)}, progress=True)
    assert sys.stderr.getvalue() == ""


@pytest.fixture
def nested(place):
    names = ["a", "a/b", "a/b/c", "a-b", "a0", "d/e/f", "d/e/g", "d/e.x/h", "z"]
    sealpoint.save({name: numpy.full(3, i) for i, name in enumerate(names)}, place / "nested")
    with sealpoint.open(place / "nested") as opened:
        yield opened


def test_groups(nested):
    root = nested.group()
    assert list(root) == ["a", "a-b", "a/", "a0", "d", "z"] and len(root) == 6 and root.name == ""
    assert isinstance(root["a"], sealpoint.Tensor) and list(root["a/"]) == ["b", "b/"]
    d = nested.group("d")
    assert (d.name, list(d), list(d["e"]), list(d["e/"])) == ("d", ["e.x", "e"], ["f", "g"], ["f", "g"])
    assert_array_equal(d["e/g"][1:], [6, 6]) and d["e.x"]["h"].name == "d/e.x/h"
    assert "e/f" in d and "e" in d and "e/" in d and "f" not in d and 3 not in d and d == d and d != nested.group("d")
    assert [t.name for t in d.tensors] == ["d/e.x/h", "d/e/f", "d/e/g"] and repr(d) == "<sealpoint.Group 'd': 2 items>"
    assert [t.name for t in root.tensors] == list(nested)
    assert list(nested.group("d/e", separator=".")) == ["x/h"] and list(nested.group("a/")) == ["b", "b/"]


def test_walking_groups(nested):
    found = []
    assert nested.group("d").visititems(lambda path, item: found.append((path, type(item).__name__))) is None
    assert found == [("e.x", "Group"), ("e.x/h", "Tensor"), ("e", "Group"), ("e/f", "Tensor"), ("e/g", "Tensor")]
    assert nested.group().visititems(lambda path, item: path if path.endswith("g") else None) == "d/e/g"
    every = []
    nested.group().visititems(lambda path, item: every.append(item.name) if isinstance(item, sealpoint.Tensor) else None)
    assert sorted(every) == list(nested)


def test_groups_without_a_name(tmp_path):
    names = ["/", "/a", "a//b", "x/" * 511 + "x"]
    sealpoint.save({name: numpy.ones(1) for name in names}, tmp_path / "c")
    with sealpoint.open(tmp_path / "c") as checkpoint:
        found = []
        checkpoint.group().visititems(lambda path, item: found.append(item.name) if isinstance(item, sealpoint.Tensor) else None)
        assert sorted(found) == names and list(checkpoint.group()[""]) == ["", "a"] and checkpoint.group("a")["/b"].name == "a//b"


def test_groups_that_are_not_there(nested):
    with pytest.raises(sealpoint.NotFoundError, match="no name begins with 'd/f/', expected the name of a group; the nearest is d"):
        nested.group("d/f")
    with pytest.raises(sealpoint.NotFoundError, match="neither a tensor nor a group; the nearest is e") as caught:
        nested.group("d")["ee"]
    assert caught.value.tensor == "d/ee"
    for separator, error in (("", sealpoint.InvalidArgumentError), (3, sealpoint.ArgumentTypeError)):
        with pytest.raises(error, match="separator is"):
            nested.group(separator=separator)
    with pytest.raises(TypeError):
        nested.group("d")[0]
