# SPDX-License-Identifier: Apache-2.0
"""Files of torch.save before 1.6, as torch reads them; and such files by hand, of Python 2 and of attackers."""

import pickle
import random
import struct

import pytest

pytest.importorskip("torch", reason="torch is not installed: see scripts/python_env.sh")

import numpy  # noqa: E402
import sealpoint  # noqa: E402
import sealpoint.torch as sp  # noqa: E402
import torch  # noqa: E402
from convert_states import contents, same, zoo  # noqa: E402
from sealpoint.interop import convert, open_source  # noqa: E402
from test_convert_hostile import Attack  # noqa: E402
from test_inspect_formats import check_same  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:.*TypedStorage")
MAGIC = 0x1950A86A20F9469CFC6C
MACHINE = {"protocol_version": 1001, "little_endian": True, "type_sizes": {"short": 2, "int": 4, "long": 4}}


def save_legacy(state, path):
    torch.save(state, path, _use_new_zipfile_serialization=False)
    return path


def test_every_value_and_dtype(tmp_path):
    state = zoo()
    # What torch writes so, but does not read.
    beyond = {name: t for name, t in state["model"].items() if t.dtype.itemsize < 8 and "torch.uint8" != str(t.dtype)}
    beyond = {name: t for name, t in beyond.items() if any(part in str(t.dtype) for part in ("float8", "float4", "uint"))}
    beyond["uint64"] = state["model"]["uint64"]
    state["model"] = {name: t for name, t in state["model"].items() if name not in beyond}
    source = save_legacy(state, tmp_path / "a.pt")
    loaded = torch.load(source, weights_only=False)
    report = convert(source, tmp_path / "c", verify=True)
    assert (report.source_format, report.unprotected_count) == ("torch", report.tensor_count - 1)  # one is empty
    same(loaded, sp.load_full(tmp_path / "c"))
    convert(source, tmp_path / "b.pt", to="torch", verify=True)
    same(loaded, torch.load(tmp_path / "b.pt", weights_only=False))
    assert any("model.transposed shares memory with model.w" in note for note in report.notes)
    save_legacy(beyond, tmp_path / "beyond.pt")
    convert(tmp_path / "beyond.pt", tmp_path / "d")
    same(beyond, sp.load_full(tmp_path / "d"))
    assert len(beyond) == 9 and check_same(source) is None and check_same(tmp_path / "beyond.pt") is None


def test_pickles_that_are_longer_than_one_read(tmp_path):
    names = {f"layer.{i}.{'x' * 50}": i for i in range(10_000)}
    source = save_legacy({"names": names, "w": torch.arange(100_000.0), "long": "y" * 200_000}, tmp_path / "a.pt")
    assert source.stat().st_size > 10 * 65536  # which are read at first
    convert(source, tmp_path / "c")
    same(torch.load(source), sp.load_full(tmp_path / "c"))
    assert check_same(source) is None


def test_optimizers_and_modules(tmp_path):
    module = torch.nn.Linear(3, 2)
    optimizer = torch.optim.AdamW(module.parameters())
    module(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    save_legacy({"model": dict(module.state_dict()), "optimizer": optimizer.state_dict()}, tmp_path / "a.pt")
    convert(tmp_path / "a.pt", tmp_path / "c")
    same(torch.load(tmp_path / "a.pt"), sp.load_full(tmp_path / "c"))
    save_legacy({"module": module, "w": torch.ones(2)}, tmp_path / "module.pt")
    with pytest.raises(sealpoint.UnsupportedError, match=r"torch\.nn\.modules\.linear\.Linear"):
        open_source(tmp_path / "module.pt")
    with open_source(tmp_path / "module.pt", drop_unknown=True) as opened:
        assert list(opened.tensors) == ["w"] and "module is left out" in opened.notes[0]
    assert check_same(tmp_path / "module.pt") is None


def short(text):
    """A string as Python 2 pickles it."""
    return b"U" + bytes([len(text)]) + text.encode()


def plain(value):
    return pickle.dumps(value, protocol=2)[2:-1]


def storage(key="7", count=6, view=b"N", cls=b"ctorch\nFloatStorage\n", kind="storage"):
    return b"(" + short(kind) + cls + short(key) + short("cpu") + plain(count) + view + b"tQ"


def tensor(of, begin=0, shape=(2, 3), strides=(3, 1), function=b"ctorch._utils\n_rebuild_tensor\n"):
    return function + b"(" + of + plain(begin) + plain(shape) + plain(strides) + b"tR"


def ordered(*pairs):
    """An OrderedDict as Python 2 pickles it."""
    return b"ccollections\nOrderedDict\n](" + b"".join(b"](" + short(k) + v + b"e" for k, v in pairs) + b"e\x85R"


DATA = numpy.arange(6, dtype="f4").tobytes()


def legacy(path, value, keys=("7",), storages=((6, DATA),), magic=MAGIC, version=1001, machine=MACHINE, behind=b""):
    """A file by hand."""
    first = b"".join(pickle.dumps(item, protocol=2) for item in (magic, version, machine))
    listed = b"\x80\x02](" + b"".join(short(key) for key in keys) + b"e."
    stored = b"".join(struct.pack("<Q", count) + data for count, data in storages)
    path.write_bytes(first + b"\x80\x02" + value + b"." + listed + stored + behind)
    return path


WHOLE = ordered(("w", tensor(storage())))


def test_files_of_python_2(tmp_path):
    """Strings of bytes, lists of lists for mappings, tensors without flags, and views of storages."""
    view = b"(" + short("8") + plain(2) + plain(3) + b"t"
    value = ordered(
        ("w", tensor(storage())),
        ("t", tensor(storage(), 1, (2, 2), (1, 2))),
        ("v", tensor(storage(view=view), 1, (2,), (1,))),
        ("text", b"T\x03\x00\x00\x00\xc3\xa4b"),
    )
    path = legacy(tmp_path / "a.pth", value)
    loaded = torch.load(path, weights_only=False)
    assert loaded["v"].tolist() == [3.0, 4.0] and loaded["text"] == "äb"
    convert(path, tmp_path / "c", verify=True)
    same(dict(loaded), dict(sp.load_full(tmp_path / "c")))
    assert check_same(path) is None


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        ({"magic": MAGIC + 1}, "Unsupported", "plain pickle"),
        ({"version": 1002}, "Unsupported", "version of the format is 1002, expected 1001"),
        ({"version": "x"}, "Unsupported", "version of the format is str, expected 1001"),
        ({"machine": {**MACHINE, "little_endian": False}}, "Unsupported", "big-endian"),
        ({"machine": [1]}, "Corrupt", "is a list, expected a mapping"),
        ({"keys": ()}, "Corrupt", "32 belong to nothing"),
        ({"keys": (), "storages": ()}, "Corrupt", "storage '7' has none, expected 24"),
        ({"keys": ("7", "7"), "storages": ((6, DATA), (6, DATA))}, "Corrupt", "is there twice"),
        ({"keys": ("7", "8"), "storages": ((6, DATA), (6, DATA))}, "Corrupt", "'8' is there for no tensor"),
        ({"storages": ((5, DATA),)}, "Corrupt", "has 5 elements, expected 6"),
        ({"storages": ((2**63, DATA),)}, "Corrupt", "elements, expected 6"),
        ({"storages": ((6, DATA[:-1]),)}, "Incomplete", "expected"),
        ({"behind": b"x"}, "Corrupt", "of which 1 belong to nothing"),
        ({"value": ordered(("w", tensor(storage(count=2**62))))}, "Corrupt", "without a class, a key or a size"),
        ({"value": ordered(("w", tensor(storage(count=2**61))))}, "Corrupt", "has 6 elements, expected 2305843009213693952"),
        ({"value": ordered(("w", tensor(storage(count=2**61)))), "storages": ((2**61, DATA),)}, "Incomplete", "expected"),
        ({"value": ordered(("w", tensor(storage(), 1)))}, "Corrupt", "tensor ends at byte 28 of its storage, which has 24"),
        ({"value": ordered(("w", tensor(storage())), ("v", tensor(storage(count=3))))}, "Corrupt", "two classes"),
        ({"value": ordered(("w", tensor(storage(view=b"K\x01"))))}, "Corrupt", "view of a storage"),
        ({"value": ordered(("w", tensor(storage(view=b"(" + short("8") + b"K\x04K\x03t"))))}, "Corrupt", "ends beyond"),
        ({"value": ordered(("w", tensor(storage(view=b"(" + short("8") + b"K\x04K\x02t"))))}, "Corrupt", "which has 8"),
        ({"value": ordered(("w", tensor(storage(kind="module"))))}, "Corrupt", "a tuple of 6, expected"),
        ({"value": ordered(("w", tensor(plain(("storage", 1)) + b"Q")))}, "Corrupt", "a tuple of 2, expected"),
        ({"value": ordered(("w", tensor(storage(cls=b"ctorch\nQInt8Storage\n"))))}, "Unsupported", "QInt8Storage"),
        ({"value": ordered(("w", b"U\x02\xff\xfe"))}, "Corrupt", "expected UTF-8"),
        ({"value": b"X\xff\xff\xff\x7fx"}, "Incomplete", "expected"),
        ({"value": b"\x8d" + b"\xff" * 7 + b"\x7f"}, "Incomplete", "expected"),
        ({"value": tensor(storage())}, "Unsupported", "expected a mapping"),
    ],
)
def test_malformed_files(change, code, message, tmp_path):
    path = legacy(tmp_path / "a", **{"value": WHOLE, **change})
    with pytest.raises(sealpoint.Error, match=message) as caught:
        open_source(path)
    assert caught.value.code == code and caught.value.path == str(path)
    assert check_same(path) == code


def test_files_that_are_cut_off(tmp_path):
    whole = legacy(tmp_path / "a", WHOLE).read_bytes()
    assert contents(tmp_path / "a")[1]["w"][:2] == ("f32", (2, 3))
    for size in range(20, len(whole), 7):
        (tmp_path / "a").write_bytes(whole[:size])
        with pytest.raises((sealpoint.IncompleteError, sealpoint.CorruptError)):
            open_source(tmp_path / "a")
        assert check_same(tmp_path / "a") in ("Incomplete", "Corrupt")


def test_nothing_is_run(tmp_path):
    save_legacy({"w": torch.ones(2), "a": Attack(tmp_path / "ran")}, tmp_path / "a.pt")
    with pytest.raises(sealpoint.UnsupportedError, match=r"posix\.system"):
        convert(tmp_path / "a.pt", tmp_path / "c")
    convert(tmp_path / "a.pt", tmp_path / "c", drop_unknown=True)
    assert list(sp.load_full(tmp_path / "c")) == ["w"] and check_same(tmp_path / "a.pt") is None
    assert not (tmp_path / "ran").exists()


def test_mutated_files(tmp_path):
    """Random changes: an error of the library, or a state, and both readers agree."""
    save_legacy({"w": torch.arange(6.0), "v": [torch.ones(2, dtype=torch.int8), "x"]}, tmp_path / "a")
    good = (tmp_path / "a").read_bytes()
    generator, codes = random.Random(7), []
    for _ in range(80):
        data = bytearray(good)
        for _ in range(generator.randint(1, 3)):
            at, kind = generator.randrange(len(data)), generator.randrange(3)
            if kind == 0:
                data[at] = generator.randrange(256)
            elif kind == 1:
                del data[at : at + generator.randint(1, 30)]
            else:
                data[at : at + 8] = generator.choice([b"\xff" * 8, b"\0" * 8, (1 << 62).to_bytes(8, "little")])
        (tmp_path / "a").write_bytes(data)
        codes.append(check_same(tmp_path / "a"))
    assert len({*codes}) >= 3, codes
