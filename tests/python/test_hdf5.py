# SPDX-License-Identifier: Apache-2.0
"""HDF5 files: what h5py reads in them, what they cannot hold, and what errors leave."""

import json
import os
import pathlib
import subprocess
import sys
import tracemalloc

import ml_dtypes
import numpy
import pytest
import sealpoint
from conftest import DTYPES, command, flip_bit_of, noise, raw
from numpy.testing import assert_array_equal
from sealpoint.interop import _hdf5_write, convert

sys.path.append(os.path.join(os.environ.get("SEALPOINT_SOURCE_DIR", "."), "build/frameworks/xarray"))
h5py = pytest.importorskip("h5py", reason="h5py is not installed: see scripts/python_env.sh")
LACKING = ("bf16", "f8_")
TREE = "application/vnd.sealpoint.tree+json"


def with_tree(tree, tensors, path):
    sealpoint.save(tensors, path, objects={"sealpoint.tree": (json.dumps(tree).encode(), TREE)})
    return path


def tensor(name):
    return {"$": "tensor", "name": name}


def test_tensors_are_datasets_of_the_same_name(tmp_path):
    tensors = {f"group/{name}/x": noise((3, 5, 2), dtype) for name, dtype in DTYPES.items() if not name.startswith(LACKING)}
    tensors |= {"model.layers.0.w": noise((40, 30), "f4"), "é/scalar": numpy.float64(3.5), "empty": numpy.zeros((0, 3), "i8")}
    sealpoint.save(tensors, tmp_path / "c", chunk_size_bytes=4096)
    report = convert(tmp_path / "c", tmp_path / "d.h5", verify=True)
    assert (report.format, report.tensor_count, report.verified_bytes) == ("hdf5", len(tensors), report.raw_bytes)
    assert [(file.name, file.size_bytes) for file in report.files] == [("d.h5", (tmp_path / "d.h5").stat().st_size)]
    with h5py.File(tmp_path / "d.h5") as file:
        found = {}
        file.visititems(lambda name, item: found.update({name: item[()]}) if isinstance(item, h5py.Dataset) else None)
        assert isinstance(file["group/f32"], h5py.Group) and isinstance(file["model.layers.0.w"], h5py.Dataset)
        assert {name: (array.dtype, array.shape, raw(array)) for name, array in found.items()} == {
            name: (array.dtype, array.shape, raw(array)) for name, array in tensors.items()}
        assert file["group/f32/x"].chunks is None and not dict(file.attrs)


def test_values_are_attributes(tmp_path):
    big = {"$": "int", "value": str(2**64 - 1)}
    values = {"lr": 0.5, "step": 7, "big": big, "nan": {"$": "float", "value": "nan"}, "flag": True, "text": "ä" * 70_000}
    tree = {"model": {"w": tensor("model.w"), "tied": tensor("model.w"), "none": {}}, "args": values}
    with_tree(tree, {"model.w": numpy.arange(6.0)}, tmp_path / "c")
    report = convert(tmp_path / "c", tmp_path / "d", to="hdf5", verify=True)
    assert report.notes == ["model.none is an empty mapping, which HDF5 does not keep"]
    with h5py.File(tmp_path / "d") as file:
        found = dict(file.attrs)
        assert numpy.isnan(found.pop("args.nan")) and file["model.tied"] == file["model.w"]
        assert found == {"args.lr": 0.5, "args.step": 7, "args.big": 2**64 - 1, "args.flag": True, "args.text": "ä" * 70_000}


@pytest.mark.parametrize(("tensors", "tree", "options", "expected"), [
    ({"w": ml_dtypes.bfloat16}, None, {}, r"dtype is bf16, which HDF5 lacks; convert it \(--dtype f32\).*\[tensor w\]"),
    ({"w": ml_dtypes.float8_e5m2}, None, {"to": "hdf5"}, "dtype is f8_e5m2, .*--dtype"),
    ({"w": ml_dtypes.float8_e8m0fnu}, None, {}, r"dtype is f8_e8m0fnu, which HDF5 lacks; leave it out \(--drop\)"),
    ({"a": "f4", "a/b/c": "f4"}, None, {}, r"a is a tensor and would also be a group.*\[tensor a/b/c\]"),
    ({"a//b": "f4"}, None, {}, "HDF5 has no such path"),
    ({"./a": "f4"}, None, {}, "HDF5 has no such path"),
    ({"/a": "f4"}, None, {}, "HDF5 has no such path"),
    ({"w": "f4"}, {"w": tensor("w"), "l": [1, 2]}, {}, r"only numbers and strings.*--tensors-only.*\[object l\]"),
    ({"w": "f4"}, {"w": tensor("w"), "i": {"$": "int", "value": str(2**64)}}, {}, "only numbers and strings"),
    ({"w": "f4"}, {"w": tensor("w"), "none": None}, {}, "only numbers and strings"),
    ({"w": "f4"}, {"w": tensor("w"), "s": "a\0b"}, {}, "no attribute with this text"),
    ({"w": "f4"}, {"w": tensor("w"), "": 1}, {}, "no attribute with this text"),
    ({"v": "f4", "w": "f4", "a.b": "f4"}, {"a": {"b": tensor("v")}, "a.b": tensor("w"), "x": tensor("a.b")}, {},
     "two places of the state have this name"),
    ({"w": "f4"}, {"w": tensor("w"), "t/x": tensor("w"), "t": tensor("w")}, {}, "t is a tensor and would also be a group"),
])  # fmt: skip
def test_what_hdf5_cannot_hold_is_refused_by_name(tensors, tree, options, expected, tmp_path):
    arrays = {name: numpy.ones(4, dtype) for name, dtype in tensors.items()}
    if tree is None:
        sealpoint.save(arrays, tmp_path / "c")
    else:
        with_tree(tree, arrays, tmp_path / "c")
    for dry_run in (True, False):
        with pytest.raises(sealpoint.UnsupportedError, match=expected):
            convert(tmp_path / "c", tmp_path / "d.hdf5", dry_run=dry_run, **options)
    assert os.listdir(tmp_path) == ["c"]


def test_a_cast_makes_it_fit(tmp_path):
    sealpoint.save({"w": noise((9, 9), ml_dtypes.bfloat16)}, tmp_path / "c")
    convert(tmp_path / "c", tmp_path / "d.h5", dtype="f32", verify=True)
    with h5py.File(tmp_path / "d.h5") as file:
        assert file["w"].dtype == "f4"
        assert_array_equal(file["w"][()], noise((9, 9), ml_dtypes.bfloat16).astype("f4"))


def test_objects_are_refused_and_may_be_left_out(saved, tmp_path):
    with pytest.raises(sealpoint.UnsupportedError, match=r"cannot be stored in the format hdf5"):
        convert(saved, tmp_path / "d.h5")
    convert(saved, tmp_path / "d.h5", tensors_only=True, drop=["b"])
    with h5py.File(tmp_path / "d.h5") as file:
        assert sorted(file) == ["empty", "layers.0.w", "scalar", "w"]


def test_places_that_are_refused(tmp_path):
    sealpoint.save({"w": numpy.ones(4)}, tmp_path / "c")
    (tmp_path / "d.h5").write_text("mine")
    with pytest.raises(sealpoint.AlreadyExistsError):
        convert(tmp_path / "c", tmp_path / "d.h5")
    assert (tmp_path / "d.h5").read_text() == "mine"
    with pytest.raises(sealpoint.UnsupportedError, match="a file system that is mounted here"):
        convert(tmp_path / "c", "s3://bucket/d.h5", to="hdf5", dry_run=True)


def ckpt(capsys, *words):
    """Status, output and errors of a command that Python runs."""
    status, _, _ = command(*words)
    return (status, *capsys.readouterr())


def test_a_copy_to_hdf5(tmp_path, capsys):
    sealpoint.save({"a/w": numpy.arange(6.0)}, tmp_path / "c")
    status, output, errors = ckpt(capsys, "copy", "--to", "hdf5", "--json", tmp_path / "c", tmp_path / "d")
    assert (status, errors, json.loads(output)["format"]) == (0, "", "hdf5")
    assert ckpt(capsys, "flatten", tmp_path / "c", tmp_path / "e.h5", "--to=hdf5")[0] == 0
    assert ckpt(capsys, "copy", tmp_path / "c", tmp_path / "f")[0] == 0 and sealpoint.verify(tmp_path / "f").ok
    for name in ("d", "e.h5"):
        with h5py.File(tmp_path / name) as file:
            assert_array_equal(file["a"]["w"][2:4], [2.0, 3.0])
    with pytest.raises(SystemExit) as caught:
        ckpt(capsys, "copy", "--to", "hdf", tmp_path / "c", tmp_path / "g")
    assert caught.value.code == 64 and "invalid choice: 'hdf'" in capsys.readouterr().err
    assert "hdf5" in ckpt(capsys, "__complete", "copy", "--to", "hd")[1].split()


def test_without_h5py(tmp_path, monkeypatch, capsys):
    sealpoint.save({"w": numpy.ones(4)}, tmp_path / "c")
    monkeypatch.setitem(sys.modules, "h5py", None)
    status, _, errors = ckpt(capsys, "copy", "--to", "hdf5", tmp_path / "c", tmp_path / "d")
    assert status == 3 and "ckpt copy: Unsupported: HDF5 needs the package h5py: pip install 'sealpoint[hdf5]'" in errors


def test_memory_is_bounded(tmp_path):
    sealpoint.save({"w": numpy.ones((4096, 2048), "f4")}, tmp_path / "c")  # 32 MiB
    tracemalloc.start()
    convert(tmp_path / "c", tmp_path / "d.h5", memory_bytes=4 << 20, threads=1, verify=True)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10 << 20


def test_damage_leaves_nothing(tmp_path):
    array = noise((1000,), "f4")
    sealpoint.save({"a": array, "b": numpy.ones(9)}, tmp_path / "c")
    flip_bit_of(tmp_path / "c", raw(array))
    with pytest.raises(sealpoint.CorruptError) as caught:
        convert(tmp_path / "c", tmp_path / "d.h5")
    assert caught.value.tensor == "a" and os.listdir(tmp_path) == ["c"]


FULL = """
import os, pathlib, resource, signal, sys
import sealpoint
from sealpoint.interop import convert
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
try:
    convert("c", "d.h5")
except sealpoint.IoError as error:
    print(error.message, os.listdir())
"""


def test_a_write_that_fails_leaves_nothing(tmp_path):
    sealpoint.save({"w": numpy.ones(1 << 20, "f4")}, tmp_path / "c")
    done = subprocess.run([sys.executable, "-c", FULL], cwd=tmp_path, capture_output=True, text=True, check=True,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    assert done.stdout == "File too large ['c']\n", done.stderr


@pytest.mark.parametrize(("edit", "error", "expected"), [
    (lambda file: file["w"].__setitem__(3, 9.0), sealpoint.CorruptError, "differs from the source"),
    (lambda file: file.attrs.__setitem__("n", 2), sealpoint.MismatchError, "value in the destination differs"),
    (lambda file: file.attrs.__delitem__("n"), sealpoint.MismatchError, "value in the destination differs"),
    (lambda file: (file.__delitem__("v"), file.__setitem__("v", file["w"][()])), sealpoint.CorruptError, "is not the tensor w"),
])  # fmt: skip
def test_what_differs_is_not_published(edit, error, expected, tmp_path, monkeypatch):
    with_tree({"w": tensor("w"), "v": tensor("w"), "n": 1}, {"w": numpy.arange(8.0)}, tmp_path / "c")
    write = _hdf5_write.write

    def write_wrong(state, content, path, work):
        write(state, content, path, work)
        with h5py.File(path, "a") as file:
            edit(file)

    monkeypatch.setattr(_hdf5_write, "write", write_wrong)
    with pytest.raises(error, match=expected):
        convert(tmp_path / "c", tmp_path / "d.h5", verify=True)
    assert os.listdir(tmp_path) == ["c"]


def test_a_file_is_whole_and_synced_when_it_gets_its_name(tmp_path, monkeypatch):
    from sealpoint.interop import _destination

    seen, publish = [], _destination.publish

    def look(source, destination):
        with h5py.File(source) as file:  # closed by its writer, else h5py refuses
            seen.append((pathlib.Path(destination).exists(), file["w"][()].tolist()))
        publish(source, destination)

    monkeypatch.setattr(_destination, "publish", look)
    sealpoint.save({"w": numpy.arange(3.0)}, tmp_path / "c")
    convert(tmp_path / "c", tmp_path / "d.h5")
    assert seen == [(False, [0.0, 1.0, 2.0])]


def test_attributes(tmp_path):
    of_tensor = {"dimensions": ["lat", "lon"], "units": "K", "n": [1, 2], "x": [0.5], "flags": [True, False], "none": []}
    tensors = {"a/w": numpy.ones((2, 3)), "v": numpy.ones(2)}
    sealpoint.save(tensors, tmp_path / "c", attributes={"time": float("nan"), "title": "λ"}, tensor_attributes={"a/w": of_tensor})
    assert convert(tmp_path / "c", tmp_path / "d.h5", verify=True).notes == []
    with h5py.File(tmp_path / "d.h5") as file:
        found = {name: value.tolist() if hasattr(value, "tolist") else value for name, value in file["a/w"].attrs.items()}
        assert found == of_tensor and file.attrs["title"] == "λ" and numpy.isnan(file.attrs["time"]) and not dict(file["v"].attrs)
    sealpoint.save(tensors, tmp_path / "e", tensor_attributes={"v": {"units": ["m", "a\0b"]}})
    with pytest.raises(sealpoint.UnsupportedError, match=r"cannot store the text of the attribute units \[tensor v\]"):
        convert(tmp_path / "e", tmp_path / "e.h5")
    tree = {name: tensor(name) for name in tensors} | {"time": 1}
    sealpoint.save(tensors, tmp_path / "f", objects={"sealpoint.tree": (json.dumps(tree).encode(), TREE)}, attributes={"time": 2})
    with pytest.raises(sealpoint.UnsupportedError, match=r"a value and an attribute have this name.*\[object time\]"):
        convert(tmp_path / "f", tmp_path / "f.h5")
