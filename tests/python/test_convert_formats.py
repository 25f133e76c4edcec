# SPDX-License-Identifier: Apache-2.0
"""Conversions without torch: choosing and renaming, files of Hugging Face, memory, what failures leave, commands."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

import ml_dtypes
import numpy
import pytest
import sealpoint
from conftest import DTYPES, noise, raw
from convert_states import contents, load_safetensors
from sealpoint import _dtypes
from sealpoint.__main__ import main
from sealpoint.interop import _cast, _copy, convert, open_source


def run(*arguments, check=None):
    done = subprocess.run(
        [sys.executable, "-m", "sealpoint", *map(str, arguments)], capture_output=True, text=True, check=False
    )
    if check is not None:
        assert done.returncode == check, done
    return done.stdout, done.stderr


@pytest.fixture
def model(tmp_path):
    """A checkpoint as a training has it."""
    tensors = {
        "model.embed.weight": noise((10, 4), "f4"), "model.layers.0.w": noise((4, 6), ml_dtypes.bfloat16),
        "model.layers.1.w": noise((4, 6), ml_dtypes.bfloat16, seed=2), "optimizer.exp_avg": noise((10, 4), "f4"),
    }  # fmt: skip
    tree = {
        "model": {"embed.weight": "model.embed.weight", "layers": ["model.layers.0.w", "model.layers.1.w"]},
        "optimizer": {"exp_avg": "optimizer.exp_avg"},
    }

    def node(value):
        if isinstance(value, dict):
            return {key: node(item) for key, item in value.items()}
        return [{"w": node(item)} for item in value] if isinstance(value, list) else {"$": "tensor", "name": value}

    whole = {**node(tree), "step": 7, "lr": [0.1, 0.2]}
    objects = {"sealpoint.tree": (json.dumps(whole).encode(), "application/vnd.sealpoint.tree+json")}
    sealpoint.save(tensors, tmp_path / "model", objects=objects, step=7)
    return tmp_path / "model"


def names(path):
    tree, tensors = contents(path)
    return sorted(tensors), tree


def test_every_dtype_through_every_format(tmp_path):
    arrays = {name: noise((3, 4), dtype) for name, dtype in DTYPES.items()}
    arrays |= {"scalar": numpy.float64(3.5), "empty": numpy.zeros((0, 3), "i8"), "row": noise((1, 1, 5), "f2")}
    raw_arrays = {"f4": (noise((2, 4), "u1"), "f4_e2m1x2"), "c32": (noise((2, 4), "u1"), "c32")}
    sealpoint.save({**arrays, **raw_arrays}, tmp_path / "c")
    expected = contents(tmp_path / "c")[1]
    for to in ("dcp", "torch", "safetensors", "hf"):
        drop = ["c32", "c128"] if to in ("safetensors", "hf") else []
        convert(tmp_path / "c", tmp_path / to, to=to, drop=drop, verify=True)
        convert(tmp_path / to, tmp_path / f"back-{to}", verify=True)
        assert contents(tmp_path / f"back-{to}")[1] == {name: value for name, value in expected.items() if name not in drop}
        assert sealpoint.verify(tmp_path / f"back-{to}").ok
    for dtype in ("c32", "c128"):
        with pytest.raises(sealpoint.UnsupportedError, match=f"{dtype}, which safetensors lacks"):
            convert(tmp_path / "c", tmp_path / "x", to="safetensors", match=[dtype])


def test_choosing_and_renaming(model, tmp_path):
    report = convert(model, tmp_path / "a", match=["model.*"], drop=["*.1.w"])
    assert names(tmp_path / "a")[0] == ["model.embed.weight", "model.layers.0.w"]
    assert sorted(report.dropped) == ["lr", "model.layers.1.w", "optimizer.exp_avg", "step"]
    assert names(tmp_path / "a")[1]["model"]["layers"] == {
        "$": "dict",
        "items": [[0, {"w": {"$": "tensor", "name": "model.layers.0.w"}}]],
    }
    convert(model, tmp_path / "b", drop=["optimizer"], rename=[("model.layers.*.w", "h.*.weight"), ("model.*", "*")])
    found, tree = names(tmp_path / "b")
    assert found == ["embed.weight", "h.0.weight", "h.1.weight"] and (tree["step"], tree["lr"]) == (7, [0.1, 0.2])
    assert sealpoint.open(tmp_path / "b").step == 7
    convert(model, tmp_path / "e", tensors_only=True)
    assert "step" not in names(tmp_path / "e")[1]
    for options, message in (({"match": ["nothing*"]}, "'nothing\\*' matches no name"), ({"drop": ["x"]}, "'x' matches no name")):
        with pytest.raises(sealpoint.NotFoundError, match=message):
            convert(model, tmp_path / "d", **options)
    with pytest.raises(sealpoint.InvalidArgumentError, match="two names become this one"):
        convert(model, tmp_path / "d", rename=[("model.layers.*.w", "h")])
    with pytest.raises(sealpoint.InvalidArgumentError, match=r"has more \* than"):
        convert(model, tmp_path / "d", rename=[("model.x", "*")])
    assert not (tmp_path / "d").exists()


def test_another_dtype_only_if_it_is_exact(model, tmp_path):
    report = convert(model, tmp_path / "a", to="hf", match=["model.layers*"], dtype="f32", verify=True)
    tensors, _ = load_safetensors(tmp_path / "a/model.safetensors")
    expected = noise((4, 6), ml_dtypes.bfloat16).astype("f4")
    assert tensors["model.layers.0.w"] == ("F32", [4, 6], expected.tobytes()) and report.raw_bytes == 192
    sealpoint.save({"w": numpy.array([1.5, 2.0, 1 + 2**-20], "f4"), "i": numpy.arange(3)}, tmp_path / "c")
    with pytest.raises(sealpoint.MismatchError, match=r"element \[2\] .* is 1.00000.*, which bf16 does not have") as caught:
        convert(tmp_path / "c", tmp_path / "d", dtype="bf16")
    assert caught.value.tensor == "w" and not (tmp_path / "d").exists()
    convert(tmp_path / "c", tmp_path / "d", dtype="f64")
    assert [content[0] for content in contents(tmp_path / "d")[1].values()] == ["i64", "f64"]
    with pytest.raises(sealpoint.InvalidArgumentError, match="dtype is 'int8', expected one of f16"):
        convert(tmp_path / "c", tmp_path / "e", dtype="int8")


def test_directories_of_hugging_face(tmp_path):
    arrays = {f"layers.{i}.w": noise((64, 64), "f4", seed=i) for i in range(5)} | {"big": noise((128, 128), "f4")}
    sealpoint.save(arrays, tmp_path / "c")
    report = convert(tmp_path / "c", tmp_path / "hf", to="hf", max_shard_bytes=40_000, verify=True)
    assert [file.name for file in report.files] == [
        *(f"model-{i:05}-of-00004.safetensors" for i in range(1, 5)),
        "model.safetensors.index.json",
    ]
    index = json.loads((tmp_path / "hf/model.safetensors.index.json").read_text())
    assert index["metadata"]["total_size"] == sum(value.nbytes for value in arrays.values())
    for name, array in arrays.items():
        tensors, metadata = load_safetensors(tmp_path / "hf" / index["weight_map"][name])
        assert tensors[name] == ("F32", list(array.shape), raw(array)) and metadata == {"format": "pt"}
        assert sum(len(tensor[2]) for tensor in tensors.values()) <= 40_000 or list(tensors) == ["big"]
    assert convert(tmp_path / "hf", tmp_path / "back", verify=True).unprotected_count == 6
    assert contents(tmp_path / "back")[1] == contents(tmp_path / "c")[1]
    (tmp_path / "hf/config.json").write_text("{}")
    with open_source(tmp_path / "hf") as state:
        assert {file.name: file.meaning for file in state.files}["config.json"] == "not part of the tensors, not read"
    index["weight_map"]["big"] = "model-00002-of-00004.safetensors"
    (tmp_path / "hf/model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(sealpoint.CorruptError, match="the index locates it in model-00002") as caught:
        open_source(tmp_path / "hf")
    assert caught.value.tensor == "big"
    (tmp_path / "hf/model.safetensors.index.json").unlink()
    assert len(open_source(tmp_path / "hf").tensors) == 6, "all parts are there, if their numbers say so"
    (tmp_path / "hf/model-00003-of-00004.safetensors").unlink()
    with pytest.raises(sealpoint.IncompleteError, match="model-00003-of-00004.safetensors is missing"):
        open_source(tmp_path / "hf")


def test_metadata_of_safetensors(tmp_path):
    """What others put there comes through; a format without a place for it says so."""
    header = {"w": {"dtype": "U8", "shape": [2], "data_offsets": [0, 2]}, "__metadata__": {"format": "pt", "license": "ä"}}
    text = json.dumps(header).encode()
    (tmp_path / "a.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + b"xy")
    convert(tmp_path / "a.safetensors", tmp_path / "c")
    convert(tmp_path / "c", tmp_path / "b.safetensors", to="safetensors")
    assert load_safetensors(tmp_path / "b.safetensors") == ({"w": ("U8", [2], b"xy")}, {"format": "pt", "license": "ä"})
    with pytest.raises(sealpoint.UnsupportedError, match="cannot be stored in the format dcp") as caught:
        convert(tmp_path / "c", tmp_path / "d", to="dcp")
    assert caught.value.object == "safetensors.metadata"
    convert(tmp_path / "c", tmp_path / "d", to="dcp", drop=["safetensors.metadata"])


def test_parts_of_dcp_in_safetensors(tmp_path):
    """What HuggingFaceStorageWriter(save_distributed=True) leaves: boxes of tensors in files without an index."""
    w = noise((6, 5), "f4")
    (tmp_path / "hf").mkdir()
    boxes = [((0, 0), w[:2]), ((2, 0), w[2:5]), ((5, 0), w[5:])]

    def write(number, offset, part):
        header = {
            "w": {"dtype": "F32", "shape": list(part.shape), "data_offsets": [0, part.nbytes]},
            "__metadata__": {"DCP_SHARDING_INFO": json.dumps({"w": {"saved_offsets": list(offset)}}), "DCP_VERSION": "1.0"},
        }
        text = json.dumps(header).encode()
        path = tmp_path / f"hf/shard-{number:05}-model-00001-of-00001.safetensors"
        path.write_bytes(len(text).to_bytes(8, "little") + text + raw(part))

    for number, (offset, part) in enumerate(boxes, 1):
        write(number, offset, part)
    report = convert(tmp_path / "hf", tmp_path / "c", verify=True)
    assert sealpoint.open(tmp_path / "c")["w"].tobytes() == raw(w) and "last part is missing" in report.notes[0]
    write(2, (3, 0), w[3:5])
    with pytest.raises(sealpoint.CorruptError, match=r"none of them have the element at \[2, 0\]"):
        open_source(tmp_path / "hf")
    write(2, (1, 0), w[1:5])
    with pytest.raises(sealpoint.CorruptError, match="several of them have the element at"):
        open_source(tmp_path / "hf")
    write(2, (-1, 0), w[1:5])
    with pytest.raises(sealpoint.CorruptError, match="DCP_SHARDING_INFO: saved_offsets has another value"):
        open_source(tmp_path / "hf")


RULES = {
    "rules": [
        {
            "from": "decoder.layers.qkv",
            "to": "layers.{layer}.{part}.weight",
            "unstack": 0,
            "groups": 2,
            "split": {"q": 2, "k": 1, "v": 1},
        },
        {"from": "decoder.layers.fc1", "to": "layers.{layer}.{part}.weight", "unstack": 0, "split": {"gate": 1, "up": 1}},
        {"from": "decoder.*.norm", "to": "{1}.norm"},
        {"from": "embedding", "to": "embed", "rows": 5},
        {"from": "optimizer.*", "drop": True},
    ]
}


def test_mapping(tmp_path):
    qkv, fc1 = noise((3, 16, 4), "f4"), noise((3, 6, 4), "f4")
    arrays = {
        "decoder.layers.qkv": qkv,
        "decoder.layers.fc1": fc1,
        "decoder.final.norm": noise((4,), "f4"),
        "embedding": noise((8, 4), "f4"),
        "optimizer.m": noise((2,), "f4"),
    }
    sealpoint.save(arrays, tmp_path / "c")
    rules = tmp_path / "rules.json"
    rules.write_text(json.dumps(RULES))
    report = convert(tmp_path / "c", tmp_path / "hf", to="hf", mapping=rules, verify=True)
    assert report.dropped == ["optimizer.m"]
    found = {name: safetensor[2] for name, safetensor in load_safetensors(tmp_path / "hf/model.safetensors")[0].items()}
    expected = {"final.norm": raw(arrays["decoder.final.norm"]), "embed": raw(arrays["embedding"][:5])}
    for layer in range(3):
        groups = qkv[layer].reshape(2, 4, 2, 4)  # of each group: two parts of q, one of k and v each, of two rows
        expected |= {
            f"layers.{layer}.q.weight": raw(groups[:, :2]),
            f"layers.{layer}.k.weight": raw(groups[:, 2]),
            f"layers.{layer}.v.weight": raw(groups[:, 3]),
            f"layers.{layer}.gate.weight": raw(fc1[layer, :3]),
            f"layers.{layer}.up.weight": raw(fc1[layer, 3:]),
        }
    assert found == expected
    for number, (changed, kind, message) in enumerate(
        (
            (RULES["rules"][1:], sealpoint.NotFoundError, "no rule of the mapping fits"),
            ([*RULES["rules"], {"from": "x", "to": "y"}], sealpoint.NotFoundError, "rule for 'x' matches no tensor"),
            ([{"from": "*", "to": "same"}], sealpoint.InvalidArgumentError, "makes this name twice"),
            ([{"from": "*", "to": "{1}", "unstack": 5}], sealpoint.InvalidArgumentError, "no axis 5"),
            ([{"from": "*", "to": "{1}{part}", "split": {"a": 7}}], sealpoint.InvalidArgumentError, "cannot be divided among"),
            ([{"from": "*", "to": "{1}", "rows": 50}], sealpoint.InvalidArgumentError, "expected 50 rows at least"),
            ([{"from": "*", "to": "{1.__class__}"}], sealpoint.InvalidArgumentError, "expected one of 1, part, layer"),
            ([{"from": "*", "to": "{1}", "drop": True}], sealpoint.InvalidArgumentError, "either to or drop"),
            ([{"from": "*", "too": "x"}], sealpoint.InvalidArgumentError, "expected a rule"),
            ([{"from": "*", "to": "x", "groups": 0}], sealpoint.InvalidArgumentError, "has an invalid or non-positive number"),
            ("x", sealpoint.InvalidArgumentError, "expected a rule"),
        )
    ):
        rules.write_text(json.dumps({"rules": changed}))
        with pytest.raises(kind, match=message):
            convert(tmp_path / "c", tmp_path / str(number), mapping=rules)
        assert not (tmp_path / str(number)).exists()
    rules.write_text("{")
    with pytest.raises(sealpoint.InvalidArgumentError, match="not a file of rules"):
        convert(tmp_path / "c", tmp_path / "x", mapping=rules)
    with pytest.raises(sealpoint.NotFoundError):
        convert(tmp_path / "c", tmp_path / "x", mapping=tmp_path / "none")


def test_a_destination_that_appears_meanwhile(model, tmp_path):
    for to in ("safetensors", "hf"):
        path = tmp_path / to

        def appear(what, done, total, path=path):
            if not path.exists():
                path.mkdir()
                (path / "f").touch()

        with pytest.raises(sealpoint.AlreadyExistsError):
            convert(model, path, to=to, progress=appear)
        assert os.listdir(path) == ["f"]
    assert sorted(os.listdir(tmp_path)) == ["hf", "model", "safetensors"], "nothing partial is left"


def test_an_empty_directory_that_appears_meanwhile(model, tmp_path):
    def appear(what, done, total):
        (tmp_path / "hf").mkdir(exist_ok=True)

    with pytest.raises(sealpoint.AlreadyExistsError):
        convert(model, tmp_path / "hf", to="hf", progress=appear)
    assert os.listdir(tmp_path / "hf") == [] and sorted(os.listdir(tmp_path)) == ["hf", "model"]


def calls_of(tmp_path, *words):
    """What the conversion makes durable and renames, by the last name of each."""
    trace = ["strace", "-f", "-qq", "-y", "-o", tmp_path / "trace", "-e", "trace=fsync,rename,renameat2"]
    command = [*trace, sys.executable, "-m", "sealpoint", "convert", *words]
    if not shutil.which("strace") or subprocess.run([*trace, "true"], check=False).returncode != 0:
        pytest.skip("strace is not here, or may not trace")
    subprocess.run(command, check=True)
    lines = (tmp_path / "trace").read_text().splitlines()
    synced = (re.search(r"fsync\(\d+<(.*)>\)", line) for line in lines)
    return [pathlib.Path(found[1]).name.partition(".partial-")[0] if found else "published" for found in synced]


def test_files_are_durable_before_they_have_their_name(model, tmp_path):
    for name, to, files in (("d", "dcp", {"__0_0.distcp", ".metadata"}), ("s", "safetensors", set())):
        events = calls_of(tmp_path, model, tmp_path / name, "--to", to)
        at = events.index("published")
        assert files <= set(events[: at - 1]) and events[at - 1 : at + 2] == [name, "published", tmp_path.name]


def test_an_error_of_progress_ends_it(model, tmp_path):
    def stop(what, done, total):
        raise RuntimeError("enough")

    for to in ("sealpoint", "dcp", "safetensors"):
        with pytest.raises(RuntimeError, match="enough"):
            convert(model, tmp_path / to, to=to, progress=stop)
    assert os.listdir(tmp_path) == ["model"]


def test_damage_of_a_checkpoint(model, tmp_path):
    blob = max(model.glob("*.blob"), key=lambda path: path.stat().st_size)
    data = bytearray(blob.read_bytes())
    at = data.index(raw(noise((10, 4), "f4")))
    data[at] ^= 4
    blob.write_bytes(data)
    with pytest.raises(sealpoint.CorruptError, match="R-CHK-02"):
        convert(model, tmp_path / "d", to="dcp")
    assert os.listdir(tmp_path) == ["model"]


def test_what_verify_finds(place, tmp_path, monkeypatch):
    """A copy that goes wrong between source and destination is not left there."""
    from sealpoint.interop import _copy

    output = _copy.LocalOutput if place == tmp_path else _copy.StoredOutput
    write = output.write

    def damaged(self, file, offset, data):
        write(self, file, offset, memoryview(bytes([data[0] ^ 1]) + bytes(data[1:])) if offset > 3000 else data)

    sealpoint.save({"w": noise((4000,), "u1")}, tmp_path / "c", chunk_size_bytes=4096)
    monkeypatch.setattr(output, "write", damaged)
    monkeypatch.setattr(_copy, "_SLAB_BYTES_MAX", 1000)
    monkeypatch.setattr(_copy, "_SLAB_BYTES_MIN", 1000)
    for to in ("safetensors", "dcp"):
        with pytest.raises(sealpoint.CorruptError, match="differs from the source|CRC-32") as caught:
            convert(tmp_path / "c", place / to, to=to, verify=True)
        assert caught.value.tensor == "w"
        with pytest.raises((sealpoint.NotFoundError, sealpoint.NotACheckpointError)):
            open_source(place / to)


def test_small_slabs(tmp_path, monkeypatch):
    """Tensors in many slabs, in both directions, and in boxes."""
    from sealpoint.interop import _copy

    monkeypatch.setattr(_copy, "_SLAB_BYTES_MAX", 100)
    monkeypatch.setattr(_copy, "_SLAB_BYTES_MIN", 100)
    arrays = {"a": noise((7, 11, 3), "f4"), "b": noise((1000,), "u1"), "c": noise((5, 40), "f8")}
    sealpoint.save(arrays, tmp_path / "c")
    for to in ("dcp", "torch", "hf"):
        convert(tmp_path / "c", tmp_path / to, to=to, verify=True, threads=3)
        convert(tmp_path / to, tmp_path / f"back-{to}", verify=True, threads=3)
        checkpoint = sealpoint.open(tmp_path / f"back-{to}")
        assert all(checkpoint[name].tobytes() == raw(array) for name, array in arrays.items())
        assert len(checkpoint.shards("a")) > 5
        assert sealpoint.verify(tmp_path / f"back-{to}").ok


MEMORY = """if True:
    import resource, sys
    sys.modules["torch"] = None  # an import of it would fail
    import numpy
    from sealpoint.interop import convert
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for destination, to in zip(sys.argv[2::2], sys.argv[3::2]):
        convert(sys.argv[1], destination, to=to, memory_bytes=32 << 20, threads=2)
    print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10)
"""


def test_memory_is_bounded(tmp_path):
    """256 MiB in one tensor go through 32 MiB, and the staging memory of the engine."""
    size = 256 << 20
    text = json.dumps({"w": {"dtype": "F32", "shape": [size >> 12, 1 << 10], "data_offsets": [0, size]}}).encode()
    path = tmp_path / "a.safetensors"
    path.write_bytes(len(text).to_bytes(8, "little") + text)
    os.truncate(path, 8 + len(text) + size)  # a hole, which takes no space
    command = [sys.executable, "-c", MEMORY, path, tmp_path / "c", "sealpoint"]
    assert int(subprocess.check_output(command)) < 100
    command = [sys.executable, "-c", MEMORY, tmp_path / "c", tmp_path / "d", "dcp"]
    assert int(subprocess.check_output(command)) < 100


def test_the_commands(model, tmp_path):
    output, errors = run(
        "convert",
        model,
        tmp_path / "hf",
        "--to",
        "hf",
        "--drop",
        "optimizer",
        "--rename",
        "model.*=*",
        "--verify",
        "--max-shard-size",
        "200B",
        check=0,
    )
    assert errors == "" and "converted from sealpoint to hf: 3 tensors, 256 bytes" in output
    assert "left out: optimizer.exp_avg\n" in output and "verified: 256 bytes of source and destination are equal" in output
    output, _ = run("ls", tmp_path / "hf", check=0)
    lines = [line.split() for line in output.splitlines()]
    assert output.startswith(f"{tmp_path}/hf: directory of safetensors (Hugging Face), no step, 3 tensors, 256 bytes\n")
    assert lines[1:4] == [
        ["160", "f32", "10x4", "embed.weight"],
        ["48", "bf16", "4x6", "layers.0.w"],
        ["48", "bf16", "4x6", "layers.1.w"],
    ]
    assert (
        ["value", "step", "=", "7"] in lines and "digests: none" in output and "index: the file of each tensor" in output
    )
    files = {file.name.rpartition(".")[2]: file.meaning for file in open_source(model).files}
    assert files.keys() == {"COMMIT", "index", "blob"}
    output, _ = run("convert", tmp_path / "hf", tmp_path / "d", "--to", "dcp", "--dry-run", check=0)
    assert "would be converted from hf to dcp" in output and ".metadata" in output and not (tmp_path / "d").exists()
    assert "3 tensors of the source have no digest" in output
    report = json.loads(run("convert", tmp_path / "hf", tmp_path / "d", "--to", "dcp", "--json", check=0)[0])
    assert report["unprotected_count"] == 3 and (tmp_path / "d/.metadata").exists()
    assert "AlreadyExists" in run("convert", tmp_path / "hf", tmp_path / "d", "--to", "dcp", check=4)[1]
    said = f"there is no {tmp_path}/none: {tmp_path} exists, but has no entry none"
    assert run("convert", tmp_path / "none", "x", check=4) == ("", f"ckpt convert: NotFound: {said} [file {tmp_path}/none]\n")
    (tmp_path / "text").write_text("hello")
    assert "no known format" in run("convert", tmp_path / "text", "x", check=4)[1]
    for wrong in (["--max-shard-size", "5XB"], ["--rename", "x"], ["--to", "onnx"], ["--memory", "0"]):
        assert "; see --help\n" in run("convert", "a", "b", *wrong, check=64)[1]
    assert "memory_bytes is 10000, expected" in run("convert", model, tmp_path / "x", "--memory", "10KB", check=64)[1]


def test_nothing_of_it_needs_torch(model, tmp_path):
    code = """if True:
        import sys
        sys.modules["torch"] = None
        from sealpoint.interop import convert, open_source
        for to in ("dcp", "torch", "hf", "safetensors"):
            convert(sys.argv[1], f"{sys.argv[2]}/{to}", to=to, verify=True)
            convert(f"{sys.argv[2]}/{to}", f"{sys.argv[2]}/{to}-back", verify=True)
        print([name for name in sys.modules if name.split(".")[0] in ("torch", "pickle") and sys.modules[name]])
    """
    output = subprocess.check_output([sys.executable, "-c", code, model, tmp_path], text=True)
    assert "torch" not in output


def test_a_terminal_shows_rate_and_time(model, tmp_path):
    master, slave = os.openpty()
    command = [
        sys.executable,
        "-m",
        "sealpoint",
        "convert",
        model,
        tmp_path / "d",
        "--to",
        "dcp",
        "--tensors-only",
        "--verify",
    ]
    subprocess.run(command, stderr=slave, stdout=subprocess.DEVNULL, check=True)
    os.close(slave)
    output = os.read(master, 1 << 16).decode()
    os.close(master)
    assert (
        "\rconvert: 0 % of 0.00 GB, " in output and "MB/s" in output and "verify: " in output and output.endswith("\x1b[K")
    )


def test_commands_that_are_cut_short(model, tmp_path, capsys, monkeypatch):
    from sealpoint.interop import _command

    done = subprocess.run(
        f"{sys.executable} -m sealpoint ls {model} | head -c 0", shell=True, capture_output=True, check=False
    )
    assert done.stderr == b""

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(_command, "convert", interrupt)
    monkeypatch.setattr(sys, "argv", ["sealpoint", "convert", str(model), str(tmp_path / "x")])
    assert main() == 130
    assert capsys.readouterr().err == "ckpt convert: interrupted\n"
    output, _ = run("convert", model, tmp_path / "y", "--dry-run", "--drop", "*", check=0)
    assert "would be converted from sealpoint to sealpoint: 0 tensors, 0 bytes" in output


def test_many_names_that_are_left_out(tmp_path):
    sealpoint.save(
        {f"a{i:02}": numpy.ones(1) for i in range(30)} | {"w": numpy.ones(1)}, tmp_path / "c", objects={"o": b"12"}
    )
    output, _ = run("convert", tmp_path / "c", tmp_path / "d", "--drop", "a*", "--dry-run", check=0)
    assert output.count("left out: a") == 20 and "left out: 10 others, see --json" in output
    (tmp_path / "c/notes").write_text("mine")
    (tmp_path / "c/KEEP").touch()
    files = {file.name: file.meaning for file in open_source(tmp_path / "c").files}
    assert files["notes"] == "not part of the checkpoint, not read" and "pinned" in files["KEEP"]


def test_wrong_arguments(model, tmp_path):
    for options, message in (
        ({"to": "onnx"}, "to is 'onnx', expected one of sealpoint, safetensors"),
        ({"threads": 0}, "threads"),
        ({"max_shard_bytes": 0}, "max_shard_bytes"),
        ({"memory_bytes": 1}, "memory_bytes"),
    ):
        with pytest.raises(sealpoint.InvalidArgumentError, match=message):
            convert(model, tmp_path / "x", **options)
    for to in ("safetensors", "dcp"):
        with pytest.raises(sealpoint.NotFoundError) as caught:
            convert(model, tmp_path / "none/x", to=to)
        assert str(tmp_path / "none/x") in caught.value.path
    with pytest.raises(sealpoint.AlreadyExistsError):
        convert(model, model)


def test_transposed_tensors_need_their_memory(tmp_path):
    torch = pytest.importorskip("torch", reason="torch is not installed: see scripts/python_env.sh")
    wide = torch.arange(600 * 1000.0).reshape(600, 1000)
    torch.save({"t": wide.t(), "w": wide[:, ::2]}, tmp_path / "a")
    with pytest.raises(sealpoint.LimitExceededError, match="stored transposed or strided and spans 2400000 bytes") as caught:
        convert(tmp_path / "a", tmp_path / "b", memory_bytes=1 << 20)
    assert caught.value.tensor == "t"
    convert(tmp_path / "a", tmp_path / "b", memory_bytes=16 << 20, verify=True)
    checkpoint = sealpoint.open(tmp_path / "b")
    assert checkpoint["t"].tobytes() == wide.t().contiguous().numpy().tobytes()
    assert checkpoint["w"].tobytes() == wide[:, ::2].contiguous().numpy().tobytes()


def test_more_files_than_may_be_open(tmp_path, monkeypatch):
    monkeypatch.setattr("sealpoint.interop._files._KEPT_OPEN_MAX", 2)
    sealpoint.save({f"w{i}": noise((100,), "u1", seed=i) for i in range(8)}, tmp_path / "c")
    convert(tmp_path / "c", tmp_path / "hf", to="hf", max_shard_bytes=100, verify=True)
    convert(tmp_path / "hf", tmp_path / "d", verify=True)
    assert contents(tmp_path / "d")[1] == contents(tmp_path / "c")[1]


def test_many_files_with_few_descriptors(tmp_path):
    """200 files of 64 descriptors, out and in: 4 threads, and each file is made, read and compared."""
    sealpoint.save({f"w{i}": numpy.full(64, i, "f4") for i in range(200)}, tmp_path / "c")
    convert_all = (
        f"ulimit -n 64; for pair in 'c hf --to hf --max-shard-size 100B' 'hf back'; do "
        f"(cd {tmp_path} && {sys.executable} -m sealpoint convert $pair -j 4 --verify) || exit; done"
    )
    done = subprocess.run(["bash", "-c", convert_all], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done
    assert len(list((tmp_path / "hf").glob("*.safetensors"))) == 200
    assert contents(tmp_path / "back")[1] == contents(tmp_path / "c")[1]


def test_what_is_closed_early_is_durable(tmp_path, monkeypatch):
    """Files are written in turns, and their headers last; whatever is closed then was synced after its last byte."""
    last = {}

    def noting(module, name, path_of):
        call = getattr(module, name)

        def note(first, *arguments):
            path = path_of(first)
            if ".partial-" in path and path.endswith(".safetensors"):
                last.setdefault(os.path.basename(path), []).append(name)
            return call(first, *arguments)

        monkeypatch.setattr(module, name, note)

    noting(_copy, "sync_all", str)
    for name in ("pwrite", "close"):
        noting(os, name, lambda descriptor: os.readlink(f"/proc/self/fd/{descriptor}"))
    monkeypatch.setattr("sealpoint.interop._copy._OPEN_FILES_MAX", 2)
    sealpoint.save({f"w{i}": noise((100,), "u1", seed=i) for i in range(8)}, tmp_path / "c")
    convert(tmp_path / "c", tmp_path / "hf", to="hf", max_shard_bytes=100, threads=3)
    assert len(last) == 8
    for name, events in last.items():
        writes = [at for at, event in enumerate(events) if event == "pwrite"]
        assert "sync_all" in events[writes[-1] :] and events.count("close") > 1, (name, events)
        assert all("sync_all" in events[at : events.index("close", at)] for at in writes), (name, events)


def test_damaged_directories_of_hugging_face(tmp_path):
    sealpoint.save({"w": noise((4,), "f4")}, tmp_path / "c")
    convert(tmp_path / "c", tmp_path / "hf", to="hf")
    (tmp_path / "hf/other.safetensors").write_bytes((tmp_path / "hf/model.safetensors").read_bytes())
    with pytest.raises(sealpoint.CorruptError, match="stored in two files"):
        open_source(tmp_path / "hf")
    index = tmp_path / "hf/model.safetensors.index.json"
    for content, message in (
        ("{}", "not an index"),
        ('{"weight_map": {"w": 3}}', "no string begins"),
        ("{", "not an index"),
        ('{"weight_map": {"w": "model.safetensors", "v": "model.safetensors"}}', "but no file has it"),
    ):
        index.write_text(content)
        with pytest.raises(sealpoint.CorruptError, match=message) as caught:
            open_source(tmp_path / "hf")
        assert caught.value.path == str(index)
    sealpoint.save({"w": noise((4,), "f4"), "unnamed": noise((2,), "f4")}, tmp_path / "d")
    convert(tmp_path / "d", tmp_path / "hf/more.safetensors", to="safetensors")
    index.write_text('{"weight_map": {"w": "more.safetensors"}}')
    assert sorted(open_source(tmp_path / "hf").tensors) == ["unnamed", "w"], "transformers reads it, too"
    index.write_text('{"weight_map": {"w": "model.safetensors"}}')
    assert list(open_source(tmp_path / "hf").tensors) == ["w"], "the other file is not read"
    (tmp_path / "hf/second.safetensors.index.json").write_text("{}")
    with pytest.raises(sealpoint.UnsupportedError, match="several indices"):
        open_source(tmp_path / "hf")


def test_what_safetensors_cannot_name_or_hold(tmp_path, monkeypatch):
    sealpoint.save({"__metadata__": noise((4,), "f4")}, tmp_path / "c")
    with pytest.raises(sealpoint.UnsupportedError, match="no tensor of this name"):
        convert(tmp_path / "c", tmp_path / "a", to="safetensors")
    sealpoint.save({"f4": (noise((), "u1"), "f4_e2m1x2")}, tmp_path / "d")
    with pytest.raises(sealpoint.UnsupportedError, match="F4 without dimensions"):
        convert(tmp_path / "d", tmp_path / "a", to="safetensors")
    sealpoint.save({f"w{i}": noise((4,), "f4") for i in range(9)}, tmp_path / "e")
    monkeypatch.setattr("sealpoint.interop._safetensors_write.HEADER_BYTES_MAX", 100)
    with pytest.raises(sealpoint.LimitExceededError, match="header of a would have .* bytes, expected 100 at most"):
        convert(tmp_path / "e", tmp_path / "a", to="safetensors")


def test_mapping_of_scalars_and_values(model, tmp_path):
    sealpoint.save(
        {"s": numpy.float32(2), "w": noise((4, 2), "f4")},
        tmp_path / "c",
        objects={
            "sealpoint.tree": (b'{"s":{"$":"tensor","name":"s"},"w":{"$":"tensor","name":"w"},"lr":0.5}', "application/json")
        },
    )
    rules = tmp_path / "rules.json"
    rules.write_text('{"rules": [{"from": "s", "to": "scale"}, {"from": "w", "to": "w.{layer}", "unstack": 1}]}')
    convert(tmp_path / "c", tmp_path / "d", mapping=rules, verify=True)
    tree, tensors = contents(tmp_path / "d")
    assert tree["lr"] == 0.5 and sorted(tensors) == ["scale", "w.0", "w.1"] and tensors["scale"][1] == ()
    assert sealpoint.open(tmp_path / "d")["w.1"].tobytes() == raw(noise((4, 2), "f4")[:, 1])
    rules.write_text("[]")
    with pytest.raises(sealpoint.InvalidArgumentError, match="expected an object with rules"):
        convert(tmp_path / "c", tmp_path / "e", mapping=rules)


def test_the_newest_of_a_series(tmp_path):
    for step in (1, 2):
        sealpoint.save({"w": numpy.full(3, step)}, tmp_path / "run", series=True, step=step)
    report = convert(tmp_path / "run", tmp_path / "a", to="safetensors")
    assert load_safetensors(tmp_path / "a")[0]["w"][2] == raw(numpy.full(3, 2)) and "step-000000000002-" in report.notes[0]


@pytest.mark.filterwarnings("ignore:.*encountered in cast")
def test_casts_are_those_of_ml_dtypes():
    """Each element of 8 and of 16 bits, into each other dtype: what it becomes, and whether it may."""
    for source in _cast.FLOATS:
        dtype = numpy.dtype(DTYPES[source])
        elements = numpy.arange(1 << (8 * min(dtype.itemsize, 2)), dtype=f"u{min(dtype.itemsize, 2)}")
        if dtype.itemsize > 2:  # what is exact in f16 and bf16, and what is not
            halves = [elements.view("f2").astype(dtype), elements.view(ml_dtypes.bfloat16).astype(dtype)]
            elements = numpy.concatenate([*halves, noise((1000,), dtype)])
        values = elements.view(dtype)
        for target in _cast.FLOATS:
            wide = "f8" if "f64" in (source, target) else "f4"
            decoded = _cast.decode(values.view("u1"), source, wide)
            made = _cast.encode(decoded, target).view(DTYPES[target])
            exact = _cast.decode(made.view("u1"), target, wide).view("u1") == decoded.view("u1")
            exact = exact.reshape(len(values), -1).all(axis=1)
            expected = values.astype(DTYPES[target])
            is_number = ~numpy.isnan(values.astype("f8"))
            kept = expected.astype("f8").view("u8") == values.astype("f8").view("u8")
            assert numpy.array_equal(exact & is_number, kept & is_number), (source, target)
            both = exact & is_number
            assert numpy.array_equal(made[both].view("u1"), expected[both].view("u1")), (source, target)
            assert numpy.isnan(made[exact & ~is_number].astype("f8")).all(), (source, target)


@pytest.mark.parametrize("dtype", ["bf16", "bfloat16", "f8_e5m2", "float32"])
def test_another_dtype_needs_no_ml_dtypes(dtype, model, tmp_path, monkeypatch):
    sealpoint.save({"w": numpy.array([1.5, -0.0, numpy.inf], "f4")}, tmp_path / "c")
    with monkeypatch.context() as patched:
        patched.setitem(sys.modules, "ml_dtypes", None)
        _dtypes.numpy_dtype.cache_clear()
        convert(tmp_path / "c", tmp_path / "d", dtype=dtype, verify=True)
        convert(tmp_path / "d", tmp_path / "e", dtype="f32", verify=True)
    _dtypes.numpy_dtype.cache_clear()
    assert contents(tmp_path / "e")[1] == contents(tmp_path / "c")[1]
