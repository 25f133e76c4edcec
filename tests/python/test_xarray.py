# SPDX-License-Identifier: Apache-2.0
"""The back end of xarray: what it reads, when it reads, and what it says of checkpoints that it cannot open."""

import concurrent.futures
import gc
import os
import pathlib
import pickle
import shutil
import sys
import tomllib
import tracemalloc

import ml_dtypes
import numpy
import pytest
import sealpoint
from conftest import DTYPES, flip_bit_of, noise, raw
from numpy.testing import assert_array_equal

SOURCE = pathlib.Path(os.environ.get("SEALPOINT_SOURCE_DIR", "."))
sys.path.append(str(SOURCE / "build/frameworks/xarray"))
xarray = pytest.importorskip("xarray", reason="xarray is not installed: see scripts/python_env.sh")

from sealpoint.xarray import SealpointBackend, save  # noqa: E402

CUBE = numpy.arange(6 * 7 * 8.0).reshape(6, 7, 8)
INDICES = [
    numpy.s_[2], numpy.s_[-1, ...], numpy.s_[1:5:2, ::3], numpy.s_[::-1, 4::-2], numpy.s_[:, 0, -1], numpy.s_[[4, 0, 4], :, 2:4],
    numpy.s_[[5, 1], [0, 6, 3], [7, 7]], numpy.s_[3:3], numpy.s_[[]], numpy.s_[numpy.arange(6) % 2 == 1], numpy.s_[1, 2, 3], ...,
]  # fmt: skip


def open_(path, **options):
    return xarray.open_dataset(str(path), engine=SealpointBackend, **options)


@pytest.fixture
def model(place):
    tensors = {"fields/rho": CUBE, "fields/v/x": CUBE * 2, "time": numpy.arange(6), "scalar": numpy.float32(3), "wide": CUBE[0]}
    sealpoint.save(tensors, place / "c", chunk_size_bytes=4096)
    return place / "c"


def test_indices_are_those_of_xarray(model):
    expected = xarray.DataArray(CUBE, dims=["dim_0_6", "dim_1_7", "dim_2_8"])
    for index in INDICES:
        with open_(model, group="fields", cache=False) as dataset:
            assert_array_equal(dataset["rho"][index].values, expected[index].values, err_msg=str(index), strict=True)
    points = {name: xarray.DataArray([1, 5, 0], dims="points") for name in ("dim_0_6", "dim_2_8")}
    with open_(model) as dataset:
        assert_array_equal(dataset["fields/rho"].isel(points).values, expected.isel(points).values, strict=True)
        assert dataset["scalar"].values == numpy.float32(3) and dataset["scalar"].dims == ()


def test_dtypes(tmp_path):
    tensors = {name: noise((3, 4), dtype) for name, dtype in DTYPES.items()} | {"empty": numpy.zeros((0, 3), "i8")}
    sealpoint.save(tensors, tmp_path / "c")
    with open_(tmp_path / "c") as dataset:
        assert {name: (array.dtype, array.shape, raw(array.values)) for name, array in dataset.items()} == {
            name: (array.dtype, array.shape, raw(array)) for name, array in tensors.items()}
    sealpoint.save({"half": numpy.arange(8).astype(ml_dtypes.bfloat16)}, tmp_path / "half")
    with open_(tmp_path / "half") as dataset:
        assert float(dataset["half"].astype("f4").mean()) == 3.5 and (dataset["half"] + dataset["half"])[7] == 14


def test_a_dtype_that_no_array_has_is_named(tmp_path):
    sealpoint.save({"w": (numpy.zeros(4, "u1"), "f4_e2m1x2"), "v": numpy.ones(3)}, tmp_path / "c")
    with pytest.raises(sealpoint.UnsupportedError, match=r"dtype is f4_e2m1x2, .*leave it out \(drop_variables\).*\[tensor w\]"):
        open_(tmp_path / "c")
    for dropped in ("w", ["w"]):
        assert list(open_(tmp_path / "c", drop_variables=dropped)) == ["v"]


def test_dimensions_never_clash(tmp_path):
    shapes = [(3,), (4,), (3, 3), (4, 3), (), (0,), (1, 1, 1)]
    sealpoint.save({f"w{i}": numpy.ones(shape) for i, shape in enumerate(shapes)}, tmp_path / "c")
    with open_(tmp_path / "c") as dataset:
        assert [dataset[f"w{i}"].shape for i in range(len(shapes))] == shapes
        assert dataset["w2"].dims == ("dim_0_3", "dim_1_3") and dataset["w0"].dims == ("dim_0_3",)
        assert (dataset["w2"] * dataset["w0"]).shape == (3, 3)


def test_only_the_box_is_read(model, monkeypatch):
    read, boxes = sealpoint.Tensor.read, []
    monkeypatch.setattr(sealpoint.Tensor, "read", lambda self, *a, **k: boxes.append((self.name, k["box"])) or read(self, *a, **k))
    with open_(model) as dataset:
        part = dataset["fields/rho"][1:5:2][:, 3]
        assert boxes == [] and part.shape == (2, 8)
        assert_array_equal(part.values, CUBE[1:5:2, 3])
        assert dataset["fields/v/x"][[4, 2], 0, 0].values.tolist() == (2 * CUBE[[4, 2], 0, 0]).tolist()
    (name, box), (_, hull) = boxes
    assert (name, [range(8)[item] if isinstance(item, slice) else item for item in box]) == (
        "fields/rho", [range(1, 5, 2), 3, range(8)])
    assert range(6)[hull[0]] == range(2, 5) and len(boxes) == 2


def test_a_large_tensor_is_not_held(tmp_path):
    sealpoint.save({"w": numpy.ones((4096, 2048), "f4")}, tmp_path / "c")  # 32 MiB
    tracemalloc.start()
    with open_(tmp_path / "c") as dataset:
        assert dataset["w"][::1000, 5].sum() == 5 and dataset["w"][17].sum() == 2048
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4 << 20


def test_damage_is_the_library_s_error(tmp_path):
    array = noise((1000,), "i4")
    sealpoint.save({"a": array, "b": numpy.ones(3)}, tmp_path / "c")
    flip_bit_of(tmp_path / "c", raw(array))
    with open_(tmp_path / "c") as dataset:
        assert dataset["b"].sum() == 3
        with pytest.raises(sealpoint.CorruptError) as caught:
            dataset["a"][5:7].load()
        assert caught.value.tensor == "a" and caught.value.offset is not None


def test_removed_while_open(tmp_path):
    sealpoint.save({"w": CUBE}, tmp_path / "c")
    dataset = open_(tmp_path / "c", cache=False)
    stored = pickle.dumps(dataset)
    assert_array_equal(pickle.loads(stored)["w"].values, dataset["w"].values)
    shutil.rmtree(tmp_path / "c")
    with pytest.raises(sealpoint.IncompleteError, match=r"the blob is missing .*tensor w"):
        dataset["w"].load()
    with pytest.raises(sealpoint.NotFoundError, match="No such file"):
        pickle.loads(stored)
    sealpoint.save({"w": CUBE * 2}, tmp_path / "c")
    with pytest.raises(sealpoint.MismatchError, match="the checkpoint was replaced"):
        pickle.loads(stored)
    dataset.close()
    with pytest.raises(sealpoint.InvalidArgumentError, match="closed"):
        dataset["w"].load()


def test_an_open_that_fails_closes_the_checkpoint(model, monkeypatch):
    closed, close = [], sealpoint.Checkpoint.close
    monkeypatch.setattr(sealpoint.Checkpoint, "close", lambda self: closed.append(self) or close(self))
    with pytest.raises(sealpoint.NotFoundError, match="no name begins with 'field/'.*the nearest is fields"):
        open_(model, group="field")
    assert len(closed) == 1
    open_(model).close()
    assert len(closed) == 2


def test_threads(model):
    with open_(model, cache=False) as dataset, concurrent.futures.ThreadPoolExecutor(8) as pool:
        rows = list(pool.map(lambda i: dataset["fields/rho"][i % 6].values, range(64)))
    assert all(numpy.array_equal(row, CUBE[i % 6]) for i, row in enumerate(rows))


def test_groups(model, tmp_path):
    assert sorted(open_(model)) == ["fields/rho", "fields/v/x", "scalar", "time", "wide"]
    assert sorted(open_(model, group="fields")) == ["rho", "v/x"] and list(open_(model, group="fields/v/")) == ["x"]
    sealpoint.save({"model.w": CUBE, "model.b": CUBE[0]}, tmp_path / "dots")
    assert sorted(open_(tmp_path / "dots", group="model", separator=".")) == ["b", "w"]


def test_trees(model, tmp_path):
    with xarray.open_datatree(str(model), engine=SealpointBackend) as tree:
        assert {node.path: sorted(node.data_vars) for node in tree.subtree} == {
            "/": ["scalar", "time", "wide"], "/fields": ["rho"], "/fields/v": ["x"]}
        assert_array_equal(tree["fields/v/x"][2:4].values, CUBE[2:4] * 2)
    sealpoint.save({"model.w": CUBE, "model.a.b": CUBE[0], "left": CUBE[1]}, tmp_path / "dots")
    tree = xarray.open_datatree(str(tmp_path / "dots"), engine=SealpointBackend, separator=".", drop_variables="left")
    assert {node.path: sorted(node.data_vars) for node in tree.subtree} == {"/": [], "/model": ["w"], "/model/a": ["b"]}
    for i, names in enumerate((["a//x", "a/y"], ["a/b.x", "a.b.y"])):
        sealpoint.save(dict.fromkeys(names, CUBE), tmp_path / f"{i}")
        with pytest.raises(sealpoint.MismatchError, match="two groups have the path /a/"):
            xarray.open_datatree(str(tmp_path / f"{i}"), engine=SealpointBackend, separator="./"[i == 0])


def test_guesses(model, tmp_path):
    guess = SealpointBackend().guess_can_open
    assert guess(str(model))
    (tmp_path / "file").write_bytes(b"CDF\1")
    (tmp_path / "begun").mkdir()
    for path in (tmp_path / "file", tmp_path / "begun", tmp_path / "nothing", "https://example.org/x.nc", b"CDF\1", 3, "", "a\0b"):
        assert not guess(path), path
    with pytest.raises(sealpoint.NotFoundError):
        open_(tmp_path / "nothing")


def test_the_engine_is_registered(tmp_path, monkeypatch):
    """As pip does it: with the entry points of pyproject.toml in the metadata of an installed package."""
    groups = tomllib.loads((SOURCE / "pyproject.toml").read_text())["project"]["entry-points"]
    installed = tmp_path / "sealpoint-0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: sealpoint\nVersion: 0\n")
    text = [f"[{group}]\n" + "".join(f"{name} = {place}\n" for name, place in items.items()) for group, items in groups.items()]
    (installed / "entry_points.txt").write_text("\n".join(text))
    monkeypatch.syspath_prepend(str(tmp_path))
    sealpoint.save({"w": CUBE}, tmp_path / "c")
    xarray.backends.list_engines.cache_clear()
    try:
        for options in ({"engine": "sealpoint"}, {}):
            assert_array_equal(xarray.open_dataset(tmp_path / "c", **options)["w"][0].values, CUBE[0])
    finally:
        gc.collect()
        xarray.backends.list_engines.cache_clear()


def test_dimensions_are_named_by_attributes(tmp_path):
    of_tensors = {"rho": {"dimensions": ["t", "lat", "lon"], "units": "K"}, "t": {"dimensions": ["t"]},
                  "wide": {"dimensions": ["lat"]}, "twice": {"dimensions": ["t", "t"]}, "other": {"dimensions": [1]}}  # fmt: skip
    tensors = {"rho": CUBE, "t": numpy.arange(6), "wide": CUBE[0], "twice": CUBE[:, :6, 0], "other": numpy.ones(6)}
    sealpoint.save(tensors, tmp_path / "c", attributes={"time": 0.5}, tensor_attributes=of_tensors)
    with open_(tmp_path / "c") as dataset:
        assert dataset.attrs == {"time": 0.5} and dataset["rho"].attrs == {"units": "K"} and list(dataset.coords) == ["t"]
        assert dataset["rho"].sel(t=3).dims == ("lat", "lon")
        assert [dataset[name].dims[0] for name in ("wide", "twice", "other")] == ["dim_0_7", "dim_0_6", "dim_0_6"]
        assert dataset["wide"].attrs == {"dimensions": ["lat"]}
    sealpoint.save(tensors, tmp_path / "d", tensor_attributes={**of_tensors, "wide": {"dimensions": ["lat", "t"]}})
    with pytest.raises(sealpoint.MismatchError, match=r"dimension t has 8 elements, expected 6 as in rho; .*\[tensor wide\]"):
        open_(tmp_path / "d")
    assert "wide" not in open_(tmp_path / "d", drop_variables="wide")


def test_a_dataset_is_saved_and_comes_back(tmp_path):
    days = numpy.datetime64("2026-11-30", "ns") + numpy.arange(6) * numpy.timedelta64(1, "D")
    rho = xarray.DataArray(CUBE, dims=["day", "lat", "lon"], attrs={"units": "K", "range": [0.0, 1.0]},
                           coords={"day": days, "height": ("lat", numpy.arange(7.0))})  # fmt: skip
    dataset = xarray.Dataset({"rho": rho, "mask": ("lat", numpy.arange(7) > 3), "n": 3}, attrs={"title": "a run"})
    assert isinstance(save(dataset, tmp_path / "c", step=4), sealpoint.CommitInfo) and sealpoint.open(tmp_path / "c").step == 4
    with open_(tmp_path / "c") as found:
        xarray.testing.assert_identical(xarray.decode_cf(found).load(), dataset)
    save(rho.rename("rho"), tmp_path / "d")
    assert open_(tmp_path / "d")["rho"].dims == rho.dims
    with pytest.raises(sealpoint.InvalidArgumentError, match=r"tensor_attributes.*'rho'"):
        save(rho.rename("rho").assign_attrs(bad=None), tmp_path / "e")
    with pytest.raises(sealpoint.Error, match="text"):
        save(xarray.Dataset({"text": ("x", numpy.array(["a", "b"]))}), tmp_path / "e")
    assert not (tmp_path / "e").exists()
