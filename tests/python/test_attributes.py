# SPDX-License-Identifier: Apache-2.0
"""Attributes of tensors and checkpoints (spec/attributes.md): saves, copies, conversions and commands."""

import json
import math
import struct
import subprocess
import sys

import numpy
import pytest
import sealpoint
from sealpoint.interop import convert

OF_TENSOR = {
    "dimensions": ["lat", "lon"], "units": "K", "valid_max": 400, "scale": 0.5, "is_mask": False, "levels": [1, 2],
    "offsets": [0.0, -1.5], "flags": [True, False], "none": [],
}  # fmt: skip
OF_CHECKPOINT = {"time": 0.25, "title": "λ\nline"}


@pytest.fixture
def saved(tmp_path):
    tensors = {"t": numpy.arange(6, dtype="f4").reshape(2, 3), "empty": numpy.zeros((0, 2)), "plain": numpy.ones(3)}
    sealpoint.save(tensors, tmp_path / "saved", step=3, attributes=OF_CHECKPOINT,
                   tensor_attributes={"t": OF_TENSOR, "empty": {"units": "m"}})  # fmt: skip
    return tmp_path / "saved"


def types(values):
    return {name: [*map(type, value)] if isinstance(value, list) else type(value) for name, value in values.items()}


def expect_same(path):
    with sealpoint.open(path) as checkpoint:
        assert checkpoint.attributes == OF_CHECKPOINT
        assert checkpoint["t"].attributes == OF_TENSOR and types(checkpoint["t"].attributes) == types(OF_TENSOR)
        assert checkpoint["empty"].attributes == {"units": "m"} and checkpoint["plain"].attributes == {}


def test_they_are_saved_and_read(saved):
    expect_same(saved)
    assert sealpoint.verify(saved).verdict == "committed"


def test_values_of_numpy_become_plain(tmp_path):
    given = {"a": numpy.float32(0.5), "b": numpy.arange(3), "c": (numpy.int8(1), 2), "d": numpy.bool_(True),
             "e": numpy.array("x"), "f": float("nan"), "g": numpy.array(1.5)}  # fmt: skip
    sealpoint.save({"w": b"x"}, tmp_path / "c", attributes=given)
    with sealpoint.open(tmp_path / "c") as checkpoint:
        found = checkpoint.attributes
    assert math.isnan(found.pop("f"))
    assert found == {"a": 0.5, "b": [0, 1, 2], "c": [1, 2], "d": True, "e": "x", "g": 1.5} and type(found["d"]) is bool


@pytest.mark.parametrize(("given", "words"), [
    ({"attributes": [1]}, "attributes is [1], expected a mapping"),
    ({"attributes": {1: "a"}}, "attributes has 1, expected strings as names"),
    ({"attributes": {"a": None}}, "attributes['a'] has None, expected a string, an integer"),
    ({"attributes": {"a": [1, 2.0]}}, "attributes['a'] is [1, 2.0], expected values of one type"),
    ({"attributes": {"a": [[1]]}}, "attributes['a'] has [1], expected"),
    ({"attributes": {"a": 2**63}}, "expected an integer of 64 bits"),
    ({"attributes": {"a": "\ud800"}}, "attributes['a'] has '\\ud800', which UTF-8"),
    ({"attributes": {"": 1}}, "name of an attribute has 0 bytes"),
    ({"attributes": {"a": "x" * 2**20}}, "expected 1 to 1048576"),
    ({"tensor_attributes": {"other": {}}}, "tensor_attributes has 'other', expected names of tensors of the save"),
    ({"tensor_attributes": {"w": 1}}, "tensor_attributes['w'] is 1, expected a mapping"),
])  # fmt: skip
def test_wrong_values(tmp_path, given, words):
    with pytest.raises(sealpoint.InvalidArgumentError) as caught:
        sealpoint.save({"w": b"x"}, tmp_path / "c", **given)
    assert words in str(caught.value) and not (tmp_path / "c" / "COMMIT").exists()


def test_writers_agree(tmp_path):
    def write(name, *attributes):
        summaries = []
        for row, own in enumerate(attributes):
            with sealpoint.BlobWriter(tmp_path / name) as writer:
                writer.add("w", numpy.ones((1, 2)), shape=(2, 2), offset=(row, 0), attributes=own)
                summaries += writer.finish()
        return sealpoint.commit(tmp_path / name, summaries, attributes={"time": 1})

    write("good", {"units": "K"}, {"units": "K"})
    with sealpoint.open(tmp_path / "good") as checkpoint:
        assert checkpoint["w"].attributes == {"units": "K"} and checkpoint.attributes == {"time": 1}
    for other in ({"units": "C"}, None):
        with pytest.raises(sealpoint.InvalidArgumentError, match="attributes differ") as caught:
            write(f"bad-{other is None}", {"units": "K"}, other)
        assert caught.value.tensor == "w"


def test_copies_and_conversions_keep_them(saved, tmp_path):
    sealpoint.copy(saved, tmp_path / "exact")
    sealpoint.copy(saved, tmp_path / "coded", codec="zstd")
    sealpoint.merge([saved], tmp_path / "merged")
    convert(saved, tmp_path / "model.safetensors", verify=True)
    convert(tmp_path / "model.safetensors", tmp_path / "back", verify=True)
    for name in ("exact", "coded", "merged", "back"):
        expect_same(tmp_path / name)
    with sealpoint.open(tmp_path / "back") as checkpoint:
        assert "safetensors.metadata" not in checkpoint.objects
    convert(saved, tmp_path / "renamed", rename=[("t", "u")], match=["t"])
    with sealpoint.open(tmp_path / "renamed") as checkpoint:
        assert checkpoint["u"].attributes == OF_TENSOR
    report = convert(saved, tmp_path / "model.pt")
    assert "attributes cannot be stored in the format torch" in report.notes
    convert(saved, tmp_path / "weight_v000001", to="delta")
    convert(tmp_path / "weight_v000001", tmp_path / "of_full")
    expect_same(tmp_path / "of_full")
    report = convert(saved, tmp_path / "weight_v000002", to="delta", base=tmp_path / "weight_v000001")
    assert "attributes cannot be stored in the format delta" in report.notes


def test_metadata_of_others_stays(tmp_path):
    header = json.dumps({"__metadata__": {"who": "me"}, "w": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}}).encode()
    (tmp_path / "a.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + b"x")
    convert(tmp_path / "a.safetensors", tmp_path / "c")
    with sealpoint.open(tmp_path / "c") as checkpoint:
        assert json.loads(bytes(checkpoint.objects["safetensors.metadata"])) == {"who": "me"} and checkpoint.attributes == {}


@pytest.mark.parametrize("text", ["", "[", "[1, 2]", "[{}, {\"other\": {}}]", "[{\"a\": null}, {}]", "[" * 10**5])
def test_malformed_metadata(tmp_path, text):
    metadata = {"sealpoint.attributes": text}
    header = json.dumps({"__metadata__": metadata, "w": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}}).encode()
    (tmp_path / "a.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + b"x")
    with pytest.raises(sealpoint.CorruptError, match=r"sealpoint\.attributes in __metadata__ is malformed"):
        convert(tmp_path / "a.safetensors", tmp_path / "c")


def ckpt(*words):
    done = subprocess.run([sys.executable, "-m", "sealpoint", *map(str, words)], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


def test_commands_show_them(saved, tmp_path):
    status, text = ckpt("ls", saved)
    assert status == 0 and "attribute" in text and "time = 0.25" in text
    status, text = ckpt("ls", "--tensor", "t", saved)
    assert status == 0 and 'dimensions = ["lat", "lon"]' in text
    found = json.loads(ckpt("ls", "--json", saved)[1])
    assert found["attributes"] == OF_CHECKPOINT
    assert {tensor["name"]: tensor["attributes"] for tensor in found["tensors"]}["t"] == OF_TENSOR
    sealpoint.save({"t": numpy.arange(6, dtype="f4").reshape(2, 3)}, tmp_path / "one", attributes={"time": 1.0},
                   tensor_attributes={"t": {"units": "K"}})  # fmt: skip
    sealpoint.save({"t": numpy.arange(6, dtype="f4").reshape(2, 3)}, tmp_path / "two", attributes={"time": 1.0},
                   tensor_attributes={"t": {"units": "C"}})  # fmt: skip
    sealpoint.save({"t": numpy.arange(6, dtype="f4").reshape(2, 3)}, tmp_path / "three",
                   tensor_attributes={"t": {"units": "C"}})  # fmt: skip
    assert ckpt("diff", tmp_path / "one", tmp_path / "one")[0] == 0
    status, text = ckpt("diff", tmp_path / "one", tmp_path / "two")
    assert status == 1 and 'attribute: tensor t: units: "K" and "C"' in text and "different content" in text
    status, text = ckpt("diff", tmp_path / "two", tmp_path / "three")
    assert status == 1 and "attribute: time: 1.0 and none" in text
    found = json.loads(ckpt("diff", "--json", tmp_path / "one", tmp_path / "two")[1])
    assert not found["is_same"] and found["tensors"][0]["attributes_differ"]
