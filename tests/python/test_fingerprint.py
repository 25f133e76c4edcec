# SPDX-License-Identifier: Apache-2.0
"""Fingerprints of arrays and checkpoints in Python."""

import copy
import pickle

import numpy
import pytest
import sealpoint
from sealpoint import fingerprint
from sealpoint.fingerprint import Fingerprint, TensorFingerprint
from sealpoint.interop import convert
from sealpoint.interop._sealpoint_source import SealpointTensor


@pytest.fixture
def arrays():
    random = numpy.random.default_rng(1)
    return {
        "w": random.normal(size=(37, 21)).astype("f4"),
        "half": random.integers(0, 2**16, size=(5, 3, 7), dtype="u2"),
        "bytes": random.integers(0, 256, size=11, dtype="u1"),
        "scalar": numpy.array(1.5),
        "empty": numpy.zeros((0, 4)),
    }


def test_parts_add_up(arrays):
    w = arrays["w"]
    corners = [(i, j) for i in range(0, 37, 10) for j in range(0, 21, 8)]
    parts = [fingerprint.of_array(w[i : i + 10, j : j + 8], shape=w.shape, offset=(i, j)) for i, j in corners]
    assert sum(parts, Fingerprint()) == fingerprint.of_array(w)
    assert fingerprint.of_array(w) - parts[0] == sum(parts[1:], Fingerprint())
    transposed = numpy.asfortranarray(w)
    assert fingerprint.of_array(transposed) == fingerprint.of_array(w) != fingerprint.of_array(w.T)


def test_is_a_value():
    one = fingerprint.of_array(numpy.array([1.0], "f4"))
    assert str(one) == "spf1:000000003f800000000000003f800000"
    assert Fingerprint(str(one)) == one == eval(repr(one)) == pickle.loads(pickle.dumps(one)) == copy.copy(one)
    assert len({one, Fingerprint(str(one)), Fingerprint()}) == 2
    assert one != str(one)
    with pytest.raises(sealpoint.InvalidArgumentError, match="expected .spf1:"):
        Fingerprint("spf1:12")


@pytest.mark.parametrize("shape, offset", [((2,), None), ((2, 2), (1, 0)), ((4,), (1,)), ((3, 2), (0,))])
def test_refuses_a_box_outside_of_the_shape(shape, offset):
    with pytest.raises(sealpoint.InvalidArgumentError):
        fingerprint.of_array(numpy.zeros((2, 2)), shape=shape, offset=offset)


def test_a_checkpoint_stores_them_if_asked(arrays, tmp_path):
    sealpoint.save(arrays, tmp_path / "with", fingerprints=True)
    sealpoint.save(arrays, tmp_path / "without", codec="bytesplit+zstd", stored_cuts={"w": (16, 0)})
    with sealpoint.open(tmp_path / "with") as one, sealpoint.open(tmp_path / "without") as other:
        assert one["w"].fingerprint == fingerprint.of_array(arrays["w"])
        assert other["w"].fingerprint is None
        stored, computed = fingerprint.of_checkpoint(one), fingerprint.of_checkpoint(other)
        assert stored == computed
        assert stored["scalar"] == TensorFingerprint("f64", (), fingerprint.of_array(arrays["scalar"]))
        assert stored["empty"].fingerprint == Fingerprint()
        assert fingerprint.of_checkpoint(one, ["h*"]).keys() == {"half"}
        with pytest.raises(sealpoint.NotFoundError):
            fingerprint.of_checkpoint(one, ["nothing"])
    assert not fingerprint.differences(stored, fingerprint.of_checkpoint(tmp_path / "without"))
    arrays["half"][1, 1, 1] ^= 1
    del arrays["bytes"]
    sealpoint.save(arrays, tmp_path / "changed", fingerprints=True)
    assert fingerprint.differences(stored, fingerprint.of_checkpoint(tmp_path / "changed")) == ["bytes", "half"]
    assert sealpoint.verify(tmp_path / "with").ok


def test_other_formats_have_the_same_fingerprints(tmp_path):
    arrays = {
        "w": numpy.arange(60_000.0).reshape(200, 300), "half": numpy.arange(7).astype("f2"), "scalar": numpy.array(3.5),
        "flag": numpy.array(True), "empty": numpy.zeros((0, 3), "f4"), "bytes": numpy.arange(256, dtype="u1").reshape(2, 128),
    }  # fmt: skip
    sealpoint.save(arrays, tmp_path / "c", fingerprints=True)
    expected = fingerprint.of_checkpoint(tmp_path / "c")
    for name, to in (("model.safetensors", "safetensors"), ("model.pt", "torch"), ("hf", "hf"), ("dcp", "dcp")):
        convert(tmp_path / "c", tmp_path / name, to=to)
        assert fingerprint.of_checkpoint(tmp_path / name) == expected
        convert(tmp_path / name, tmp_path / f"back-{to}", fingerprints=True, verify=True)
        with sealpoint.open(tmp_path / f"back-{to}") as back:
            assert {tensor.name: tensor.fingerprint for tensor in back.values()} == {
                name: value.fingerprint for name, value in expected.items()
            }
    assert fingerprint.of_checkpoint(tmp_path / "model.safetensors", ["half", "s*"]).keys() == {"half", "scalar"}
    with pytest.raises(sealpoint.NotFoundError, match="'none' matches no name"):
        fingerprint.of_checkpoint(tmp_path / "model.safetensors", ["none"])
    data = bytearray((tmp_path / "model.safetensors").read_bytes())
    data[-1] ^= 1
    (tmp_path / "model.safetensors").write_bytes(data)
    assert len(fingerprint.differences(expected, fingerprint.of_checkpoint(tmp_path / "model.safetensors"))) == 1
    (tmp_path / "nothing").write_bytes(b"no format")
    sealpoint.save(arrays, tmp_path / "run", series=True, step=1)
    for name in ("nothing", "absent", "run"):
        with pytest.raises((sealpoint.NotFoundError, sealpoint.NotACheckpointError)):
            fingerprint.of_checkpoint(tmp_path / name)


def test_a_conversion_is_verified_by_stored_fingerprints(tmp_path, monkeypatch):
    arrays = {"w": numpy.arange(60_000.0).reshape(200, 300), "v": numpy.ones(5)}
    sealpoint.save(arrays, tmp_path / "c", fingerprints=True)
    read, sizes = SealpointTensor.read, []

    def counted(self, box, out):
        sizes.append(len(out))
        read(self, box, out)

    monkeypatch.setattr(SealpointTensor, "read", counted)
    report = convert(tmp_path / "c", tmp_path / "m.safetensors", verify=True)
    assert sum(sizes) == report.raw_bytes == report.verified_bytes, "the source is read once"
    renamed = convert(tmp_path / "c", tmp_path / "renamed", rename=[("w", "x")], verify=True, fingerprints=True)
    assert renamed.verified_bytes == report.raw_bytes
    monkeypatch.setattr(sealpoint.Tensor, "fingerprint", Fingerprint())
    with pytest.raises(sealpoint.CorruptError, match="fingerprint differs from the one stored in the source"):
        convert(tmp_path / "c", tmp_path / "bad.safetensors", verify=True)
    assert not (tmp_path / "bad.safetensors").exists()


def test_only_tensors_without_a_stored_fingerprint_are_read(tmp_path):
    stored, computed = numpy.arange(9.0), {r"a*b?c\d": numpy.ones(3), r"a\*": numpy.zeros(2), "aXbYcZ": numpy.full(4, 2.0)}
    attempt = sealpoint.new_attempt()
    first = sealpoint.BlobWriter(tmp_path / "c", attempt=attempt, fingerprints=True)
    first.add("a", stored)
    summaries = first.finish()
    (blob,) = (tmp_path / "c").glob("*.blob")
    second = sealpoint.BlobWriter(tmp_path / "c", attempt=attempt)
    for name, array in computed.items():
        second.add(name, array)
    sealpoint.commit(tmp_path / "c", [*summaries, *second.finish()], attempt=attempt)
    data = bytearray(blob.read_bytes())
    data[data.index(stored.tobytes())] ^= 1
    blob.write_bytes(data)
    found = {name: value.fingerprint for name, value in fingerprint.of_checkpoint(tmp_path / "c").items()}
    assert found == {name: fingerprint.of_array(array) for name, array in {"a": stored, **computed}.items()}
