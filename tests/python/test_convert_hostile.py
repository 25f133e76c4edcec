# SPDX-License-Identifier: Apache-2.0
"""Files made to do harm, or damaged: nothing is run, and each has an error of the library that names the file."""

import io
import json
import os
import pickle
import struct
import zipfile

import numpy
import pytest
import sealpoint
from convert_states import contents
from sealpoint import _tree
from sealpoint.interop import convert, open_source


# How files of torch.save began before 1.6.
LEGACY = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19."


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


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (tensor_pickle(numel=1 << 40), r"storage '0' has 16 bytes, expected 4398046511104"),
        (tensor_pickle(numel=3), "ends at byte 16 of its storage, which has 12"),
        (tensor_pickle(begin=1), "ends at byte 20 of its storage, which has 16"),
        (tensor_pickle(shape=(2, 3)), "ends at byte 20 of its storage"),
        (tensor_pickle(strides=(1 << 61, 1)), "ends at byte"),
        (tensor_pickle(strides=(-2, 1)), "malformed.*a value is -2, expected a size"),
        (tensor_pickle(shape=(2,)), "1 extents and 2 strides"),
        (tensor_pickle(shape=(1 << 70, 0)), "expected a size"),
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


def test_malformed_zips(tmp_path):
    good = torch_file(tmp_path / "good", tensor_pickle(), STORAGE).read_bytes()
    end = len(good) - 22
    cases = [
        (good[:-1], "no end of a zip"),
        (good[:100], "no end of a zip"),
        (good + b"x", "no end of a zip"),
        (good[:end] + struct.pack("<4sHHHHIIH", b"PK\5\6", 0, 0, 3, 4, 1, 1, 0), "is inconsistent"),
        (good[:end] + struct.pack("<4sHHHHIIH", b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, 1, 1, 0), "zip64 without a locator"),
        (good.replace(b"archive/version", b"../archive/vers"), "expected a path within it"),
        (good.replace(b"archive/version", b"archive/data.pk"), None),
    ]
    for number, (data, message) in enumerate(cases):
        path = tmp_path / str(number)
        path.write_bytes(data)
        if message is None:
            assert contents(path)
            continue
        with pytest.raises(sealpoint.Error, match=message) as caught:
            open_source(path)
        assert caught.value.path == str(path)
    with zipfile.ZipFile(tmp_path / "zip", "w") as archive:
        archive.writestr("w.txt", b"")
    with pytest.raises(sealpoint.NotACheckpointError, match=r"without data\.pkl"):
        open_source(tmp_path / "zip")
    with pytest.raises(sealpoint.UnsupportedError, match="compressed by method 8"):
        open_source(torch_file(tmp_path / "deflated", b"\0" * 1000, method=zipfile.ZIP_DEFLATED))
    order = [("archive/byteorder", b"big")]
    with pytest.raises(sealpoint.UnsupportedError, match="big-endian"):
        open_source(torch_file(tmp_path / "big", tensor_pickle(), [*STORAGE, *order]))


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
    with pytest.raises(sealpoint.CorruptError, match="for all entries"):
        open_source(tmp_path / "a")


def safetensors_file(path, header, body=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + body)
    return path


W = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}


@pytest.mark.parametrize(
    ("header", "body", "kind", "message"),
    [
        (b"{" * 100_000, b"", "LimitExceeded", "bytes of memory"),
        ({"w": W}, b"x" * 7, "Incomplete", "has 7 bytes after its header, expected 8"),
        ({"w": {**W, "dtype": "F6_E2M3"}}, b"x" * 8, "Unsupported", "F6_E2M3"),
        ({"w": W, "__metadata__": {"sealpoint.tree": "{"}}, b"x" * 8, "Corrupt", "expected JSON .object sealpoint.tree"),
        ({"w": W, "__metadata__": {"sealpoint.tree": "[]"}}, b"x" * 8, "Corrupt", "expected a mapping"),
        ({"w": W, "__metadata__": {"sealpoint.tree": "{}"}}, b"x" * 8, "Corrupt", "no place for it"),
        ({"w": W, "__metadata__": {"sealpoint.tree": '{"a":{"$":"tensor","name":"x"}}'}}, b"x" * 8, "Corrupt", "missing tensor"),
        (
            {"w": W, "__metadata__": {"sealpoint.tree": '{"a":{"$":"tensor","name":["x"]}}'}},
            b"x" * 8,
            "Corrupt",
            "malformed",
        ),
        ({"w": W, "__metadata__": {"sealpoint.tree": '{"a":{"$":"dict"}}'}}, b"x" * 8, "Corrupt", "malformed"),
        ({"w": W, "__metadata__": {"sealpoint.object.x": "1"}}, b"x" * 8, "Corrupt", "object in __metadata__"),
    ],
)
def test_malformed_safetensors(header, body, kind, message, tmp_path):
    path = safetensors_file(tmp_path / "a.safetensors", header, body)
    with pytest.raises(sealpoint.Error, match=message) as caught:
        open_source(path)
    assert caught.value.code == kind and str(tmp_path) in str(caught.value)


def test_what_is_no_checkpoint(tmp_path):
    cases = [
        (b"", "Incomplete", "an empty file"),
        (b"text, just text", "NotACheckpoint", "begins with 74657874"),
    ]
    for number, (data, kind, message) in enumerate(cases):
        (tmp_path / str(number)).write_bytes(data)
        with pytest.raises(sealpoint.Error, match=message) as caught:
            open_source(tmp_path / str(number))
        assert caught.value.code == kind
    with pytest.raises(sealpoint.NotFoundError):
        open_source(tmp_path / "none")
    (tmp_path / "folder").mkdir()
    with pytest.raises(sealpoint.NotACheckpointError, match="no file of a known format"):
        open_source(tmp_path / "folder")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(sealpoint.NotACheckpointError, match="not a regular file"):
        open_source(tmp_path / "pipe")


def metadata_pickle(**members):
    """A .metadata by hand, of protocol 4."""
    module = "torch.distributed.checkpoint.metadata"
    decoded = {"state_dict_metadata": {}, "planner_data": None, "storage_data": {}, **members}
    body = b"".join(
        pickle.dumps(key, 2)[2:-1] + (value if isinstance(value, bytes) else pickle.dumps(value, 2)[2:-1])
        for key, value in decoded.items()
    )
    return b"\x80\x02c" + f"{module}\nMetadata\n".encode() + b")\x81}(" + body + b"ub."


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"state_dict_metadata": 3}, "not the metadata"),
        ({"state_dict_metadata": {"w": 3}}, "not the metadata"),
        ({"state_dict_metadata": {3: 3}}, "expected str"),
        ({"storage_data": {1: 2}}, "not the metadata"),
        ({"planner_data": {"w": 3}}, "expected list"),
        ({"planner_data": 3}, "not the metadata"),
        (
            {"state_dict_metadata": b"}X\1\0\0\0wctorch.distributed.checkpoint.metadata\nBytesStorageMetadata\n)\x81s"},
            "names no file",
        ),
        ({"state_dict_metadata": b"}X\1\0\0\0wcos\nsystem\n)\x81s"}, "os.system"),
    ],
)
def test_malformed_metadata(members, message, tmp_path):
    (tmp_path / "d").mkdir()
    (tmp_path / "d/.metadata").write_bytes(metadata_pickle(**members))
    with pytest.raises(sealpoint.Error, match=message) as caught:
        open_source(tmp_path / "d")
    assert caught.value.path == str(tmp_path / "d/.metadata")


def test_the_decoder_agrees_with_pickle(tmp_path):
    """On what both know."""
    values = [
        None,
        True,
        -1,
        255,
        256,
        70000,
        -(2**31),
        2**31,
        2**70,
        -(2**70),
        1.5,
        "x",
        "ä" * 300,
        b"",
        b"x" * 300,
        [],
        [1, [2]],
        (),
        (1,),
        (1, 2),
        (1, 2, 3),
        (1, 2, 3, 4),
        {"a": {"b": 1}},
        {1, 2},
        frozenset([3]),
        bytearray(b"y"),
        1j,
    ]

    for protocol in (2, 3, 4, 5):
        for value in [*values, values]:
            path = torch_file(tmp_path / "a", pickle.dumps({"v": value}, protocol))
            with open_source(path) as state:
                found = _tree.Decoder(lambda name: name).decode(state.tree)["v"]
            assert found == value, (protocol, value)


def test_zips_of_64_bits(tmp_path, monkeypatch):
    """Sizes and offsets beyond 32 bits, as other programs write them."""
    monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 8)
    path = torch_file(tmp_path / "a", tensor_pickle(), STORAGE)
    data = path.read_bytes()
    assert b"PK\6\6" in data and b"PK\6\7" in data
    assert contents(path)[1]["w"][:2] == ("f32", (2, 2))
    locator, end = data.index(b"PK\6\7"), data.index(b"PK\6\6")
    extra = data.index(b"PK\1\2") + 46 + len("archive/data.pkl")
    for changed, message in (
        (data[: locator + 8] + struct.pack("<Q", end + 1) + data[locator + 16 :], "zip64 without its end"),
        (data[: locator + 8] + struct.pack("<Q", 1 << 60) + data[locator + 16 :], "claims that 56 are at"),
        (data[: end + 24] + struct.pack("<Q", 1 << 60) + data[end + 32 :], "end of the zip64 is inconsistent"),
        (data[: end + 24] + struct.pack("<QQ", 1 << 60, 1 << 60) + data[end + 40 :], "has no entry where one is expected"),
        (data[:extra] + struct.pack("<H", 9) + data[extra + 2 :], "lacks its 64-bit sizes"),
        (data[: extra + 4] + struct.pack("<Q", 1 << 40) + data[extra + 12 :], "of which .* are stored"),
    ):
        path.write_bytes(changed)
        with pytest.raises(sealpoint.CorruptError, match=message):
            open_source(path)


def test_zips_of_64_bits_that_we_write(tmp_path):
    """Entries of 5 GiB, of which only what is between them is written."""
    from sealpoint.interop._boxes import whole
    from sealpoint.interop._layout import Layout, ZipLayout
    from sealpoint.interop._source import FileTensor

    layout = Layout()
    file = layout.add_file("a")
    layout.add_bytes(file, b"before")
    archive = ZipLayout(layout, file, "archive/")
    large = FileTensor("w", "u8", (0,), [])
    object.__setattr__(large, "shape", (5 << 30,))
    for key in range(2):
        archive.add_tensor(f"data/{key}", large, whole(large.shape))
    archive.add_bytes("version", b"3\n")
    archive.finish()
    for number, part in enumerate(layout.parts):
        part.crc = 17 + number
    with open(tmp_path / "a", "wb") as out:
        out.truncate(layout.sizes[0])
        for small in layout.smalls:
            out.seek(small.offset)
            out.write(small.data())
    with zipfile.ZipFile(tmp_path / "a") as other:  # what it says to an independent reader
        infos = other.infolist()
        assert [(info.file_size, info.CRC) for info in infos[:2]] == [(5 << 30, 17), (5 << 30, 18)]
        assert other.read("archive/version") == b"3\n"
    assert all((part.offset - 6) % 64 == 0 for part in layout.parts)


def plain(value):
    return pickle.dumps(value, protocol=2)[2:-1]


def called(name, *args, state=b""):
    module, _, function = name.rpartition(".")
    return b"c" + f"{module}\n{function}\n".encode() + b"(" + b"".join(args) + b"tR" + state


def test_values_that_few_programs_write(tmp_path):
    parts = {
        "parameter of a parameter": called("torch._utils._rebuild_parameter", called(
            "torch._utils._rebuild_parameter", tensor_pickle()[3 + len(plain("w")) : -2], plain(True), plain(None)),
            plain(True), plain(None)),
        "frozen": called("builtins.frozenset", plain([1])), "empty": called("__builtin__.bytes"),
        "enum": called("megatron.core.x.Y", plain("name")), "device": called("torch.device", plain("meta")),
        "list of pairs": called("collections.OrderedDict", plain([["a", 1]])), "scalar": called(
            "numpy.core.multiarray.scalar", called("numpy.dtype", plain("f4"), state=plain((3, "<")) + b"b"),
            plain(b"\0\0\x80\x3f")),
    }  # fmt: skip
    body = b"".join(plain(name) + value for name, value in parts.items())
    tree, tensors = contents(torch_file(tmp_path / "a", b"\x80\x04}(" + body + b"u.", STORAGE))
    assert len(tensors) == 1 and tree == {
        "parameter of a parameter": {"$": "tensor", "name": "parameter of a parameter"},
        "frozen": {"$": "frozenset", "items": [1]}, "empty": {"$": "bytes", "base64": ""},
        "enum": {"$": "enum", "class": "megatron.core.x.Y", "value": "name"}, "device": {"$": "device", "name": "meta"},
        "list of pairs": {"a": 1}, "scalar": {"$": "array", "dtype": "f32", "base64": "AACAPw=="},
    }  # fmt: skip
    convert(tmp_path / "a", tmp_path / "b", to="torch", verify=True)
    with zipfile.ZipFile(tmp_path / "b") as archive:
        assert b"cmegatron.core.x\nY\n" in archive.read("archive/data.pkl"), "as it was, for those who have the class"


def test_enumerations_by_name(tmp_path):
    """As Python 3.11.0 to 3.11.3 pickle them."""
    member = called("builtins.getattr", b"cmegatron.core.x\nY\n", plain("A"))
    tree, _ = contents(torch_file(tmp_path / "a", b"\x80\x04}(" + plain("v") + member + b"u.", STORAGE))
    assert tree == {"v": {"$": "enum", "class": "megatron.core.x.Y", "name": "A"}}
    for args in ((b"cos\nsystem\n", plain("A")), (b"cmegatron.core.x\nY\n", plain(1)), (plain("a"), plain("b"))):
        path = torch_file(tmp_path / "b", b"\x80\x04}(" + plain("v") + called("builtins.getattr", *args) + b"u.", STORAGE)
        with pytest.raises(sealpoint.UnsupportedError, match="os.system|builtins.getattr"):
            contents(path)


def saved_tree(path, node):
    sealpoint.save(
        {"w": numpy.ones(2)},
        path,
        objects={"sealpoint.tree": (json.dumps(node).encode(), "application/vnd.sealpoint.tree+json")},
    )
    return path


@pytest.mark.parametrize(
    ("node", "code", "message"),
    [
        ({"$": "enum", "class": "os.system", "value": 1}, "Unsupported", "os.system"),
        ({"$": "enum", "class": "megatron.x\nY", "value": 1}, "Unsupported", "megatron"),
        ({"$": "enum", "class": "megatron.x.Y", "name": "A"}, "Unsupported", "value is not known"),
        ({"$": "enum", "class": "megatron.x.Y", "value": {"$": "int", "value": "1"}}, "Unsupported", "value is not known"),
        ({"$": "dtype", "name": "float32\nos"}, "Unsupported", "none of torch's"),
        ({"$": "device", "name": "cuda:x"}, "Corrupt", "malformed"),
        ({"$": "array", "dtype": "bf16", "base64": "", "shape": [0]}, "Unsupported", "which numpy lacks"),
        ({"$": "pickle", "base64": ""}, "Unsupported", "of the kind 'pickle'"),
        ({"$": "per_rank", "size": 2}, "Unsupported", "per-rank value"),
        ({"$": "bytes", "base64": "!"}, "Corrupt", "malformed"),
        ({"$": "int"}, "Corrupt", "malformed"),
        ({"$": "new"}, "Unsupported", "of the kind 'new'"),
    ],
)
def test_trees_that_no_pickle_can_hold(node, code, message, tmp_path):
    """What a checkpoint of this library says cannot make a harmful pickle."""
    path = saved_tree(tmp_path / "c", {"w": {"$": "tensor", "name": "w"}, "v": node})
    for to in ("torch", "dcp"):
        with pytest.raises(sealpoint.Error, match=message) as caught:
            convert(path, tmp_path / to, to=to)
        assert (caught.value.code, caught.value.object) == (code, "v")
    convert(path, tmp_path / "d", verify=True)
    convert(path, tmp_path / "e.safetensors", to="safetensors", verify=True)


def test_malformed_trees(tmp_path):
    for number, node in enumerate(
        ([], {"$": "tuple", "items": []}, {"a": {"$": "tensor", "name": "x"}}, {"a": {"$": "dict"}})
    ):
        with pytest.raises(sealpoint.CorruptError, match="no mapping|missing tensor|malformed"):
            open_source(saved_tree(tmp_path / str(number), node))


def test_boxes_that_are_no_grid(monkeypatch):
    from sealpoint.interop import _boxes
    from sealpoint.interop._boxes import Box, gap_of

    steps = [Box((0, 0), (2, 1)), Box((2, 0), (1, 1)), Box((0, 1), (1, 2)), Box((1, 1), (2, 2))]
    assert gap_of(steps, (3, 3)) is None
    assert gap_of(steps[:3], (3, 3)) == "5 elements of 9 are stored"
    assert "share the element at [1, 0]" in gap_of([*steps[:3], Box((1, 0), (2, 2))], (3, 3))
    assert "lies outside of [3, 3]" in gap_of([Box((2, 2), (2, 2))], (3, 3))
    assert gap_of([Box((), ())], ()) is None and "share the element at []" in gap_of([Box((), ()), Box((), ())], ())
    rows = [Box((0, i), (2, 1)) for i in range(20)] + [Box((0, 20), (1, 1)), Box((1, 20), (1, 1))]
    monkeypatch.setattr(_boxes, "_LOOKS_MAX", 1)
    assert gap_of(rows, (2, 21)) is None, "looked through along the dimension with the most cuts"
    with pytest.raises(sealpoint.LimitExceededError, match="4 boxes of a tensor are irregular, expected a grid"):
        gap_of(steps, (3, 3))
