# SPDX-License-Identifier: Apache-2.0
"""Files made to do harm, or damaged: nothing is run, and each has an error of the library that names the file."""

import io
import json
import os
import pickle
import zipfile

import numpy
import pytest
import sealpoint
from convert_states import contents
from sealpoint.interop import open_source


class Attack:
    """Unpickled, it leaves a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.system, (f"touch {self.path}",)


def torch_file(path, data, extra=(), method=zipfile.ZIP_STORED):
    """A zip as of torch.save, with this pickle."""
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("archive/data.pkl", data)
        archive.writestr("archive/version", b"3\n")
        for name, content in extra:
            archive.writestr(name, content)
    return path


def tensor_pickle(numel=4, shape=(2, 2), strides=(2, 1), begin=0, key="0", cls=b"ctorch\nFloatStorage\n"):
    """{"w": a tensor}, by hand."""

    def plain(value):
        return pickle.dumps(value, protocol=2)[2:-1]

    id_ = b"(" + plain("storage") + cls + plain(key) + plain("cpu") + plain(numel) + b"tQ"
    args = b"(" + id_ + plain(begin) + plain(shape) + plain(strides) + b"\x89ccollections\nOrderedDict\n)Rt"
    return b"\x80\x02}" + plain("w") + b"ctorch._utils\n_rebuild_tensor_v2\n" + args + b"Rs."


STORAGE = [("archive/data/0", numpy.arange(4, dtype="f4").tobytes())]


def test_the_pickle_by_hand_is_one(tmp_path):
    assert contents(torch_file(tmp_path / "a", tensor_pickle(), STORAGE))[1]["w"][:2] == ("f32", (2, 2))


@pytest.mark.parametrize("place", ["root", "value", "key", "list", "metadata"])
def test_nothing_is_run(place, tmp_path):
    trace = tmp_path / "trace"
    attack = Attack(trace)
    values = {"root": attack, "value": {"w": 1, "x": {"y": attack}}, "list": {"w": [attack]}, "metadata": attack}
    data = pickle.dumps(values.get(place, {attack: 1}), protocol=2)
    path = tmp_path / "a"
    if place == "metadata":
        path.mkdir()
        (path / ".metadata").write_bytes(pickle.dumps(attack, protocol=4))
    else:
        torch_file(path, data)
    for options in ({}, {"drop_unknown": True}):
        try:
            with open_source(path, **options) as state:
                assert place in ("value", "list") and options
                assert "posix.system" in state.notes[0]
        except sealpoint.UnsupportedError as error:
            assert "posix.system" in str(error) and str(path) in str(error)
    assert not trace.exists()
    pickle.loads(data)
    assert trace.exists(), "this is what would have happened"


def test_pickles_that_unfold(tmp_path):
    """A small pickle of references to references: 10 to the power of 30 values."""
    lists = [
        b"]q\0(" + b"N" * 10 + b"e0",
        *(b"]q" + bytes([i + 1]) + b"(" + (b"h" + bytes([i])) * 10 + b"e0" for i in range(30)),
    ]
    data = b"\x80\x02" + b"".join(lists) + b"}X\x01\0\0\0xh\x1es."
    with pytest.raises(sealpoint.LimitExceededError, match="unfolds"):
        open_source(torch_file(tmp_path / "a", data))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (tensor_pickle(numel=1 << 40), r"storage '0' has 16 bytes, expected 4398046511104"),
        (tensor_pickle(numel=3), "ends at byte 16 of its storage, which has 12"),
        (tensor_pickle(begin=1), "ends at byte 20 of its storage, which has 16"),
        (tensor_pickle(shape=(2, 3)), "ends at byte 20 of its storage"),
        (tensor_pickle(strides=(1 << 61, 1)), "ends at byte"),
        (tensor_pickle(strides=(-2, 1)), "malformed.*is no size"),
        (tensor_pickle(shape=(2,)), "1 extents and 2 strides"),
        (tensor_pickle(shape=(1 << 70, 0)), "is no size"),
        (tensor_pickle(key="../../etc/passwd"), "has none, expected 16"),
        (tensor_pickle(key=3), "malformed"),
        (tensor_pickle(cls=b"ctorch\nfloat32\n"), "has the dtype of torch.float32|malformed"),
        (tensor_pickle(cls=b"ctorch\nQInt8Storage\n"), "QInt8Storage"),
    ],
)
def test_malformed_tensors(data, message, tmp_path):
    with pytest.raises(sealpoint.Error, match=message) as caught:
        contents(torch_file(tmp_path / "a", data, STORAGE))
    assert caught.value.path == str(tmp_path / "a") and caught.value.code in ("Corrupt", "Unsupported")


def test_entries_that_share_bytes(tmp_path):
    """A bomb of a zip: many entries of the same bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("archive/data.pkl", b"\0" * 1000)
        for i in range(20):
            archive.writestr(f"archive/data/{i:02}", b"")
            archive.infolist()[-1].header_offset = 0
            archive.infolist()[-1].file_size = archive.infolist()[-1].compress_size = 1000
    (tmp_path / "a").write_bytes(buffer.getvalue())
    with pytest.raises(sealpoint.CorruptError, match="entries do not share"):
        open_source(tmp_path / "a")


def safetensors_file(path, header, body=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + body)
    return path


W = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}


def test_no_path_leads_out_of_the_directory(tmp_path):
    secret = safetensors_file(tmp_path / "secret.safetensors", {"w": W}, b"x" * 8)
    for number, name in enumerate(("../secret.safetensors", str(secret), "a/../../secret.safetensors", "", "a\0b")):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"w": name}}))
        with pytest.raises(sealpoint.CorruptError, match="expected a relative path within") as caught:
            open_source(folder)
        assert caught.value.path == str(folder / "model.safetensors.index.json")
