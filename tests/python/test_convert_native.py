# SPDX-License-Identifier: Apache-2.0
"""The C++ library and the Python package write the same: checkpoints of safetensors, and safetensors of checkpoints."""

import base64
import json
import os
import pathlib
import subprocess
import tarfile

import pytest
import sealpoint
from sealpoint.interop import convert, open_source

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
            size = sealpoint.interop._source.size_of(tensor)
            data = bytearray(size)
            if size:
                tensor.reader(1 << 20).read(sealpoint.interop._boxes.whole(tensor.shape), memoryview(data))
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
