# SPDX-License-Identifier: Apache-2.0
"""sealpoint:// of fsspec: the tensors of a checkpoint as files."""
import io
import os
import pathlib
import random
import tomllib

import numpy
import pytest
import sealpoint

fsspec = pytest.importorskip("fsspec")
ml_dtypes = pytest.importorskip("ml_dtypes")
from sealpoint.fsspec import SealpointFileSystem  # noqa: E402

SOURCE = pathlib.Path(os.environ.get("SEALPOINT_SOURCE_DIR", "."))
CHUNK = 4 << 20
VALUES = {
    "layers/0/w": numpy.arange(24, dtype="f4").reshape(2, 3, 4),
    "layers/0/empty": numpy.zeros((0, 3)),
    "layers/0.bias": numpy.float64(3),
    "layers.h": numpy.ones((3, 5), ml_dtypes.bfloat16),
    "f8": numpy.arange(7).astype(ml_dtypes.float8_e4m3fn),
    "flags": numpy.array([True, False]),
    "z": numpy.arange(3, dtype="c16"),
}
FILES = ["f8.npy", "flags.npy", "layers.h.npy", "layers/0.bias.npy", "layers/0/empty.npy", "layers/0/w.npy", "z.npy"]


@pytest.fixture(scope="module", autouse=True)
def protocol():
    """As an installed package registers it."""
    declared = tomllib.loads((SOURCE / "pyproject.toml").read_text())["project"]["entry-points"]["fsspec.specs"]
    module, _, name = declared["sealpoint"].partition(":")
    fsspec.register_implementation("sealpoint", f"{module}.{name}", clobber=True)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "checkpoint"
    sealpoint.save(VALUES, path, objects={"rng": b"123"})
    return str(path)


def npy(value):
    file = io.BytesIO()
    numpy.save(file, value)
    return file.getvalue()


def test_each_tensor_is_the_file_that_numpy_writes(saved):
    fs = fsspec.filesystem("sealpoint")
    assert isinstance(fs, SealpointFileSystem) and fs.find(saved) == [f"{saved}/{name}" for name in FILES]
    for name, value in VALUES.items():
        path, content = f"{saved}/{name}.npy", npy(value)
        assert fs.cat_file(path) == content and fs.size(path) == len(content)
        with fsspec.open(f"sealpoint://{path}") as file:
            read = numpy.load(file)
        assert read.shape == numpy.shape(value) and read.tobytes() == value.tobytes()
    with fs.open(f"{saved}/layers.h.npy") as file:
        numpy.testing.assert_array_equal(numpy.load(file).view(ml_dtypes.bfloat16), VALUES["layers.h"])
    info = fs.info(f"{saved}/layers.h.npy")
    assert (info["type"], info["dtype"], info["shape"]) == ("file", "bf16", (3, 5))


def test_a_dtype_that_numpy_lacks_is_void(tmp_path):
    """Also one that numpy saves and cannot load (float8_e5m2), and one that ml_dtypes has in another form (two fp4 in a byte)."""
    torch = pytest.importorskip("torch")
    values = {
        "e5m2": torch.arange(7).to(torch.float8_e5m2),
        "fp4": torch.arange(7, dtype=torch.uint8).view(torch.float4_e2m1fn_x2),
    }
    sealpoint.save(values, tmp_path / "c")
    for name, value in values.items():
        with fsspec.filesystem("sealpoint").open(f"{tmp_path}/c/{name}.npy") as file:
            read = numpy.load(file)
        assert (read.dtype, read.shape) == (numpy.dtype(f"V{value.element_size()}"), (7,))
        assert read.tobytes() == value.view(torch.uint8).numpy().tobytes()


def test_folders(saved, tmp_path):
    fs = fsspec.filesystem("sealpoint")
    names = ("f8.npy", "flags.npy", "layers", "layers.h.npy", "z.npy")
    assert sorted(fs.ls(saved, detail=False)) == [f"{saved}/{name}" for name in names]
    assert fs.info(f"{saved}/layers/0") == {"name": f"{saved}/layers/0", "size": 0, "type": "directory"}
    assert fs.ls(f"{saved}/f8.npy", detail=False) == [f"{saved}/f8.npy"]
    assert fs.glob(f"{saved}/**/*0*.npy") == [f"{saved}/layers/0.bias.npy"]
    fs.get(saved, str(tmp_path / "out"), recursive=True)
    assert numpy.array_equal(numpy.load(tmp_path / "out/layers/0/w.npy"), VALUES["layers/0/w"])
    for path in (f"{saved}/w.npy", f"{saved}/layers/0/w", f"{saved}/f8.npy/x", str(tmp_path), "/none/w.npy"):
        assert not fs.exists(path)
        with pytest.raises(FileNotFoundError):
            fs.cat_file(path)
    with pytest.raises(IsADirectoryError):
        fs.open(f"{saved}/layers")


def test_any_range(saved):
    fs, rng = fsspec.filesystem("sealpoint"), random.Random(1)
    for name in ("layers/0/w", "layers.h", "z"):
        content = npy(VALUES[name])
        with fs.open(f"{saved}/{name}.npy", block_size=16) as file:
            for _ in range(60):
                begin, end = (rng.randint(-len(content) - 3, len(content) + 3) for _ in range(2))
                assert fs.cat_file(f"{saved}/{name}.npy", begin, end) == content[begin:end]
                file.seek(max(begin, 0))
                assert file.read(9) == content[max(begin, 0) :][:9]
    ranges = fs.cat_ranges([f"{saved}/z.npy"] * 2, [0, 130], [6, None])
    assert ranges == [b"\x93NUMPY", npy(VALUES["z"])[130:]]


def test_only_the_chunks_of_a_range_are_read_and_each_is_verified(tmp_path):
    value = numpy.arange(4 * CHUNK // 4, dtype="i4")
    sealpoint.save({"w": value}, tmp_path / "c")
    (blob,) = (tmp_path / "c").glob("*.blob")
    content, path = bytearray(blob.read_bytes()), f"{tmp_path}/c/w.npy"
    place = content.index(value[CHUNK // 2 : CHUNK // 2 + 64].tobytes())  # in the third of four chunks
    content[place] ^= 1
    blob.write_bytes(content)
    fs, begin = fsspec.filesystem("sealpoint"), len(npy(value)) - value.nbytes
    assert fs.cat_file(path, 0, begin + 2 * CHUNK) == npy(value)[: begin + 2 * CHUNK]
    assert fs.cat_file(path, begin + 3 * CHUNK) == value[3 * CHUNK // 4 :].tobytes()
    for first, last in ((2 * CHUNK, 2 * CHUNK + 1), (3 * CHUNK - 1, 3 * CHUNK + 1), (0, 4 * CHUNK)):
        with pytest.raises(sealpoint.CorruptError):
            fs.cat_file(path, begin + first, begin + last)
    with fs.open(path, block_size=CHUNK) as file, pytest.raises(sealpoint.CorruptError):
        while file.read(CHUNK // 2):
            pass


def test_chained_urls(tmp_path):
    sealpoint.save(VALUES, tmp_path / "c")
    sealpoint.save(VALUES, "fsspec+memory://chained/c")
    for target in (f"file://{tmp_path}/c", "memory://chained/c"):
        with fsspec.open(f"sealpoint://layers/0/w.npy::{target}") as file:
            assert numpy.array_equal(numpy.load(file), VALUES["layers/0/w"])
        fs, path = fsspec.url_to_fs(f"sealpoint::{target}")
        assert fs.find(path) == FILES and fs.cat_file("z.npy") == npy(VALUES["z"])
        with pytest.raises(FileNotFoundError):
            fs.cat_file("layers/none.npy")
    fs, path = fsspec.url_to_fs("sealpoint::memory://chained/c", memory={"use_listings_cache": False})
    assert fs.find(path) == FILES
    with pytest.raises(FileNotFoundError, match="no committed checkpoint"):
        SealpointFileSystem(fo=str(tmp_path)).ls("")


def test_a_checkpoint_that_replaces_another_is_seen(tmp_path):
    fs = fsspec.filesystem("sealpoint")
    for number in range(2):
        sealpoint.save({f"w{number}": numpy.full(3, number)}, tmp_path / "run", series=True, step=number)
        (tmp_path / "c").unlink(missing_ok=True)
        (tmp_path / "c").symlink_to(sealpoint.Series(tmp_path / "run").newest().entry.path)
        assert fs.find(f"{tmp_path}/c") == [f"{tmp_path}/c/w{number}.npy"]


NOT_A_PATH, CLASH = "not a path", "names that begin with that of its file"


@pytest.mark.parametrize("names, said", [
    (["a//b"], NOT_A_PATH), (["/a"], NOT_A_PATH), (["../a"], NOT_A_PATH), (["a/./b"], NOT_A_PATH), (["a", "a.npy/b"], CLASH),
    (["a/"], None), (["a", "a/b"], None),
])  # fmt: skip
def test_names(tmp_path, names, said):
    """A hostile one must not leave the folder that fs.get writes to."""
    sealpoint.save({name: numpy.ones(1) for name in names}, tmp_path / "c")
    fs = fsspec.filesystem("sealpoint")
    if said is None:
        assert fs.find(f"{tmp_path}/c") == sorted(f"{tmp_path}/c/{name}.npy" for name in names)
        return
    with pytest.raises(sealpoint.UnsupportedError, match=said):
        fs.ls(f"{tmp_path}/c")
    with pytest.raises(sealpoint.UnsupportedError):
        fs.get(f"{tmp_path}/c", f"{tmp_path}/out", recursive=True)


def test_nothing_can_be_written(saved):
    fs, path = fsspec.filesystem("sealpoint"), f"{saved}/f8.npy"
    before = {name: (pathlib.Path(saved) / name).stat() for name in os.listdir(saved)}
    for call in (
        lambda: fs.pipe(path, b"1"), lambda: fs.pipe_file(path, b"1"), lambda: fs.open(path, "wb"), lambda: fs.open(path, "ab"),
        lambda: fs.touch(path), lambda: fs.rm(path), lambda: fs.rm(saved, recursive=True), lambda: fs.rm_file(path),
        lambda: fs.mkdir(f"{saved}/d"), lambda: fs.makedirs(f"{saved}/d"), lambda: fs.rmdir(saved),
        lambda: fs.copy(path, path + "2"), lambda: fs.mv(path, path + "2"), lambda: fs.put(__file__, path),
        lambda: fs.put_file(__file__, path), lambda: fs.write_text(path, "1"),
    ):  # fmt: skip
        with pytest.raises(OSError, match="sealpoint:// is read-only"):
            call()
    assert {name: (pathlib.Path(saved) / name).stat() for name in os.listdir(saved)} == before
