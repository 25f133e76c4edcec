# SPDX-License-Identifier: Apache-2.0
"""The C++ library and the Python package make the same of safetensors: names, values, files, errors."""

import base64
import json
import os
import pathlib
import subprocess
import tarfile

import pytest
import sealpoint
from sealpoint.convert import convert, open_source

PROGRAM = pathlib.Path(os.environ["SEALPOINT_BINARY_DIR"]) / "tests/python/safetensors_for_python"
FIXTURES = pathlib.Path(__file__).parent / "fixtures"


def run(*arguments):
    """The code of the error, or None."""
    command = [PROGRAM, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode in (0, 1), done.stderr
    return None if done.returncode == 0 else done.stderr.partition(":")[0]


def state_of(path):
    """All that a checkpoint has."""
    with open_source(path) as state:
        tensors = {}
        for name, tensor in state.tensors.items():
            size = sealpoint.convert._source.size_of(tensor)
            data = bytearray(size)
            if size:
                tensor.reader(1 << 20).read(sealpoint.convert._boxes.whole(tensor.shape), memoryview(data))
            tensors[name] = (tensor.dtype, tensor.shape, bytes(data))
        return tensors, state.tree, state.objects, state.rank_values


def write(path, header, payload=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + payload)
    return path


def entry(dtype, shape, begin, end):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def model(path, with_state=False):
    """A file with one tensor of each dtype, and with metadata of others; or with values and objects."""
    sizes = {"F64": 8, "C64": 8, "I64": 8, "U64": 8, "F32": 4, "I32": 4, "U32": 4, "F16": 2, "BF16": 2, "I16": 2, "U16": 2}
    small = ("BOOL", "I8", "U8", "F8_E4M3", "F8_E5M2", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ")
    header, at = {"__metadata__": {"format": "pt", "who\n": 'é"😀'}}, 0
    for dtype, size in (sizes | dict.fromkeys(small, 1)).items():
        header[f"t.{dtype}"] = entry(dtype, [2, 3], at, at + 6 * size)
        at += 6 * size
    header["f4"], header["é"] = entry("F4", [2, 4], at, at + 4), entry("U8", [], at + 4, at + 5)
    header["none"] = entry("F32", [0, 7], at + 5, at + 5)
    if with_state:
        tree = {name: {"$": "tensor", "name": name} for name in header if name != "__metadata__"}
        tree |= {"step": 3, "ü": ["a", {"$": "tensor", "name": "t.F32"}]}
        header["__metadata__"] |= {
            "sealpoint.tree": json.dumps(tree, ensure_ascii=False, separators=(",", ":")),
            "sealpoint.object.rng/é": json.dumps(["text/é", base64.b64encode(bytes(range(256))).decode()]),
        }
    return write(path, header, bytes(i % 251 if i >= 48 else i % 2 for i in range(at + 5)))


@pytest.fixture(params=["file", "index", "tree"])
def source(request, tmp_path):
    """A model of one file, one of several, and one with values and objects beside."""
    if request.param == "file":
        return model(tmp_path / "model.safetensors")
    if request.param == "index":
        with tarfile.open(FIXTURES / "hf_sharded.tar.gz") as archive:
            archive.extractall(tmp_path, filter="data")
        return tmp_path / "hf_sharded"
    first = model(tmp_path / "first.safetensors", with_state=True)
    convert(first, tmp_path / "tree", to="hf", max_shard_bytes=100)
    return tmp_path / "tree"


def test_a_model_becomes_the_same_checkpoint(source, tmp_path):
    assert run("import", source, tmp_path / "native") is None
    convert(source, tmp_path / "python")
    assert state_of(tmp_path / "native") == state_of(tmp_path / "python") == state_of(source)
    native, python = sealpoint.open(tmp_path / "native"), sealpoint.open(tmp_path / "python")
    assert native.provenance["convert.from"] == python.provenance["convert.from"]


def test_a_checkpoint_becomes_the_same_files(source, tmp_path):
    convert(source, tmp_path / "checkpoint")
    assert run("export", tmp_path / "checkpoint", tmp_path / "native") is None
    convert(tmp_path / "checkpoint", tmp_path / "python", to="hf")
    names = sorted(os.listdir(tmp_path / "python"))
    assert sorted(os.listdir(tmp_path / "native")) == names
    for name in names:
        assert (tmp_path / "native" / name).read_bytes() == (tmp_path / "python" / name).read_bytes(), name


U8 = entry("U8", [2], 0, 2)
HOSTILE = {
    "empty": b"",
    "cut": write,
    "not_json": b"{",
    "bom": b"\xef\xbb\xbf{}",
    "not_utf8": b'{"\xff":1}',
    "surrogate": b'{"\\ud800":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}',
    "surrogate_in_metadata": b'{"__metadata__":{"a":"\\ud800"}}',
    "array": b"[]",
    "twice": b'{"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"a":1}',
    "deep": b"[" * 100_000,
    "deep_entry": {"a": [[[[[[1]]]]]]},
    "entry": {"a": {"dtype": "U8", "shape": [2]}},
    "more": {"a": U8 | {"x": 1}},
    "negative": {"a": entry("U8", [-2], 0, 2)},
    "fraction": {"a": entry("U8", [2.0], 0, 2)},
    "boolean": {"a": entry("U8", [True, 2], 0, 2)},
    "huge": {"a": entry("U8", [1 << 61, 1 << 61], 0, 2)},
    "huge_number": {"a": entry("U8", [1 << 80], 0, 2)},
    "huge_and_empty": {"a": entry("U8", [1 << 61, 1 << 61, 0], 0, 0)},
    "dtype": {"a": entry("F6_E2M3", [2], 0, 2)},
    "dtype_number": {"a": entry(1, [2], 0, 2)},
    "dtype_and_no_json": b'{"a":{"dtype":"X","shape":[0],"data_offsets":[0,0]},}',
    "odd_f4": {"a": entry("F4", [2, 1], 0, 1)},
    "scalar_f4": {"a": entry("F4", [], 0, 1)},
    "size": {"a": entry("U16", [2], 0, 2)},
    "beyond": {"a": entry("U8", [3], 0, 3)},
    "hole": {"a": entry("U8", [1], 1, 2)},
    "behind": {"a": entry("U8", [1], 0, 1)},
    "overlap": {"a": U8, "b": U8},
    "backwards": {"a": entry("U8", [2], 2, 0)},
    "metadata": {"__metadata__": {"a": 1}},
    "metadata_list": {"__metadata__": []},
    "dimensions": {"a": entry("U8", [1] * 65, 0, 1)},
    "object": {"__metadata__": {"sealpoint.object.x": "[]"}, "a": U8},
    "tree": {"__metadata__": {"sealpoint.tree": "{"}, "a": U8},
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_get_the_same_answer(name, tmp_path):
    path = tmp_path / "x.safetensors"
    if name in ("empty", "cut"):
        path.write_bytes(b"" if name == "empty" else (100).to_bytes(8, "little") + b"{}")
    else:
        write(path, HOSTILE[name], b"ab" if isinstance(HOSTILE[name], dict) else b"")
    try:
        convert(path, tmp_path / "python")
        expected = None
    except sealpoint.Error as error:
        expected = error.code
    assert run("import", path, tmp_path / "native") == expected


def test_a_header_that_is_too_long(tmp_path):
    path = tmp_path / "x.safetensors"
    path.write_bytes((100_000_001).to_bytes(8, "little") + b"{}")
    assert run("list", path) == "LimitExceeded"
    with pytest.raises(sealpoint.LimitExceededError):
        open_source(path)


@pytest.mark.parametrize("name", ["missing", "other", "unknown", "outside", "twice", "two", "none"])
def test_hostile_directories_get_the_same_answer(name, tmp_path):
    folder = tmp_path / "m"
    folder.mkdir()
    for one in ("a", "b"):
        write(folder / f"{one}.safetensors", {one: U8}, b"ab")
    maps = {
        "missing": {"a": "a.safetensors", "b": "c.safetensors"},
        "other": {"a": "b.safetensors", "b": "a.safetensors"},
        "unknown": {"a": "a.safetensors", "b": "b.safetensors", "c": "b.safetensors"},
        "outside": {"a": "../m/a.safetensors", "b": "b.safetensors"},
    }
    if name in maps:
        (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": maps[name]}))
    elif name == "twice":
        write(folder / "c.safetensors", {"a": U8}, b"ab")
    elif name == "two":
        for one in ("x", "y"):
            (folder / f"{one}.safetensors.index.json").write_text('{"weight_map":{}}')
    else:
        (folder / "a-00001-of-00002.safetensors").write_bytes((folder / "a.safetensors").read_bytes())
        (folder / "a.safetensors").unlink()
    with pytest.raises(sealpoint.Error) as error:
        open_source(folder).close()
    assert run("list", folder) == error.value.code
