# SPDX-License-Identifier: Apache-2.0
"""Models in GGUF of llama.cpp, read and written.

fixtures/make_gguf.py made the archive by gguf-py, and expected.json has what the reader of gguf-py gives. Malformed files are made
here.
"""

import hashlib
import json
import math
import os
import pathlib
import random
import shutil
import struct
import subprocess

import numpy
import pytest
import sealpoint
from conftest import DTYPES, command, noise
from convert_states import contents
from sealpoint._sealpoint import gguf_types
from sealpoint.interop import convert, open_source

PROGRAM = pathlib.Path(os.environ["SEALPOINT_BINARY_DIR"]) / "tools/ckpt/ckpt"
FIXTURES = "gguf_0.19.0"
LLAMA = {"general.architecture": ("string", "llama")}


@pytest.fixture
def made(unpack):
    return unpack(FIXTURES)


def metadata(path):
    with open_source(path) as state:
        return json.loads(state.objects["gguf.metadata"][1])


def test_types_are_those_of_ggml():
    gguf = pytest.importorskip("gguf", reason="gguf is not installed: see scripts/python_env.sh")
    types, values = gguf_types()
    sizes = {kind.name: (int(kind), *size) for kind, size in gguf.GGML_QUANT_SIZES.items()}
    assert {name: tuple(numbers) for name, *numbers, _ in types} == sizes
    assert values == [gguf.GGUFValueType(number).name.lower() for number in range(len(gguf.GGUFValueType))]


def value_of(kind, value):
    """As Python has it."""
    if kind == "array":
        return [one for item in value[1] for one in (value_of(value[0], item) if value[0] == "array" else [item])]
    if kind in ("float32", "float64") and isinstance(value, str):
        return struct.unpack(">f" if kind == "float32" else ">d", bytes.fromhex(value))[0]
    return value


SPLIT = "split/split-00001-of-00003.gguf"


@pytest.mark.parametrize("name", ["one", "one/one.gguf", "split", SPLIT, SPLIT.replace("-00001", "-00002")])
def test_content_is_that_of_their_own_reader(name, made):
    expected = json.loads((made / name.split("/")[0] / "expected.json").read_text())
    with open_source(made / name) as state:
        assert state.format == "gguf" and state.digest == "none: GGUF has no digests"
        assert list(state.tree) == list(expected["tensors"]), "in the order of the file"
    _, tensors = contents(made / name)
    stored = metadata(made / name)
    for tensor, (kind, shape, digest) in expected["tensors"].items():
        dtype = kind.lower() if kind in ("F16", "BF16", "F32", "F64", "I8", "I16", "I32", "I64") else "u8"
        shape = (*shape[:-1], shape[-1] // 2) if kind == "BF16" else tuple(shape)  # gguf-py gives bytes
        assert tensors[tensor] == (dtype, shape, digest), tensor
    assert stored["types"] == {tensor: kind for tensor, (kind, *_) in expected["tensors"].items()}
    assert tensors.keys() == expected["tensors"].keys() and list(stored["keys"]) == list(expected["keys"])
    for key, (kind, value) in stored["keys"].items():
        kinds, content = expected["keys"][key]
        assert kind.upper() == kinds[0]
        found = value_of(kind, value)
        assert found == content or (math.isnan(found) and math.isnan(content)), key
    assert stored["keys"]["test.float32"] == ["float32", 0.10000000149011612]
    assert stored["keys"]["test.nested"] == ["array", ["array", [["int32", [1, 2]], ["int32", [3]]]]]


@pytest.mark.parametrize("between", ["sealpoint", "safetensors", "hf", "gguf"])
@pytest.mark.parametrize("name", ["one", SPLIT])
def test_the_way_out_is_exact(between, name, made, tmp_path):
    """By every format that keeps objects; a split model becomes one file."""
    middle = tmp_path / ("middle.gguf" if between == "gguf" else "middle")
    convert(made / name, middle, to=between, verify=True)
    report = convert(middle, tmp_path / "again.gguf", verify=True)
    assert (report.format, report.is_whole) == ("gguf", True)
    assert (tmp_path / "again.gguf").read_bytes() == (made / "one/one.gguf").read_bytes()


def test_a_version_2_file_is_written_as_version_3(made, tmp_path):
    good = (made / "one/one.gguf").read_bytes()
    (tmp_path / "old.gguf").write_bytes(good[:4] + struct.pack("<I", 2) + good[8:])
    convert(tmp_path / "old.gguf", tmp_path / "new.gguf")
    assert (tmp_path / "new.gguf").read_bytes() == good


def test_weights_become_gguf(tmp_path):
    names = ("f32", "f16", "bf16", "f64", "i8", "i16", "i32", "i64")
    arrays = {f"{name}.{len(shape)}": noise(shape, DTYPES[name]) for name in names for shape in ((), (3,), (2, 3), (2, 1, 3, 5))}
    sealpoint.save({f"model.{name}": array for name, array in arrays.items()}, tmp_path / "c")
    keys = LLAMA | {
        "general.alignment": ("uint32", 64), "llama.rope.freq_base": ("float32", 1e4), "test.inf": ("float64", math.inf),
        "test.nested": ("array", ("array", [("uint8", [1, 2]), ("bool", [True])])),
    }  # fmt: skip
    convert(tmp_path / "c", tmp_path / "m.gguf", gguf_metadata=keys, rename=[("model.*", "*")], verify=True)
    _, tensors = contents(tmp_path / "m.gguf")
    assert tensors == {
        key: (key.split(".")[0], array.shape, hashlib.sha256(array.tobytes()).hexdigest()) for key, array in arrays.items()
    }
    assert metadata(tmp_path / "m.gguf")["keys"]["test.inf"] == ["float64", "7ff0000000000000"]
    data = (tmp_path / "m.gguf").read_bytes()
    assert len(data) % 64 == 0
    gguf = pytest.importorskip("gguf", reason="gguf is not installed: see scripts/python_env.sh")
    convert(tmp_path / "m.gguf", tmp_path / "n.gguf", drop=["bf16.0"])  # a shape that gguf-py fails on
    reader = gguf.GGUFReader(tmp_path / "n.gguf")
    assert len(reader.tensors) == len(arrays) - 1
    assert reader.alignment == 64 and reader.fields["general.architecture"].contents() == "llama"
    for one in reader.tensors:
        assert one.data_offset % 64 == 0 and one.data.tobytes() == arrays[one.name].tobytes(), one.name
        assert one.tensor_type.name.lower() == one.name.split(".")[0]


def test_keys_are_replaced_and_added(made, tmp_path):
    words = ("--gguf-metadata", "llama.block_count=uint32:7", "--gguf-metadata", "test.new=string:a=b:c",
             "--gguf-metadata", "test.bool=bool:false", "--gguf-metadata", "test.float64=float64:-2.5")  # fmt: skip
    assert command("convert", made / "one", tmp_path / "m.gguf", "--verify", *words)[0] == 0
    before, after = metadata(made / "one"), metadata(tmp_path / "m.gguf")
    changed = {"llama.block_count": ["uint32", 7], "test.new": ["string", "a=b:c"], "test.bool": ["bool", False],
               "test.float64": ["float64", -2.5]}  # fmt: skip
    assert after["keys"] == before["keys"] | changed and after["types"] == before["types"]
    for word in ("a", "a=b", "=string:b", "a=array:1", "a=uint8:x", "a=bool:1", "a=text:b"):
        with pytest.raises(SystemExit) as ended:
            command("convert", made / "one", tmp_path / "n.gguf", "--gguf-metadata", word)
        assert ended.value.code == 64
    sealpoint.save({"w": numpy.ones(2, "f4")}, tmp_path / "c")
    cast = ("--dtype", "bf16", "--gguf-metadata", "general.architecture=string:llama")
    assert command("convert", tmp_path / "c", tmp_path / "o.gguf", *cast)[0] == 0
    assert contents(tmp_path / "o.gguf")[1]["w"][0] == "bf16"


BAD_KEYS = (
    {"a": ("uint8", 256)}, {"a": ("uint8", "1")}, {"a": ("bool", 1)}, {"a": ("uint8", True)}, {"a": ("string", 1)},
    {"a": ("float32", 1e300)}, {"a": ("float32", "xy")}, {"a": ("array", 1)}, {"a": ("array", ("uint8", [300]))}, {"a": ("int", 1)},
    {"a": ("string", "\ud800")},
)  # fmt: skip


@pytest.mark.parametrize(
    ("state", "options", "code", "message"),
    [
        ({"w": 2}, {"gguf_metadata": None}, "InvalidArgument", "GGUF needs the key general.architecture; give it in gguf_metadata"),
        ({"w": noise(2, "u1")}, {}, "Unsupported", "dtype is u8, which GGUF lacks"),
        ({"w": noise(2, "c8")}, {}, "Unsupported", "dtype is c64, which GGUF lacks"),
        ({"w": noise(2, "?")}, {}, "Unsupported", "dtype is bool, which GGUF lacks"),
        ({"w": noise(2, DTYPES["f8_e5m2"])}, {}, "Unsupported", "dtype is f8_e5m2.*--dtype f32, f16 or bf16"),
        ({"w": noise((1,) * 5, "f4")}, {}, "Unsupported", "expected 4 dimensions at most"),
        ({"w": noise((2, 0), "f4")}, {}, "Unsupported", r"shape is \[2, 0\]"),
        ({"w" * 64: 2}, {}, "Unsupported", "name has 64 bytes, expected 63 at most; --rename"),
        ({"w": 2}, {"gguf_metadata": LLAMA | {"general.alignment": ("uint32", 48)}}, "Unsupported", "expected a power of two"),
        ({"w": 2}, {"gguf_metadata": LLAMA | {"general.alignment": ("uint32", 1 << 20)}}, "Unsupported", "up to 65536"),
        ({"w": 2}, {"gguf_metadata": LLAMA | {"general.alignment": ("uint64", 32)}}, "Unsupported", "as uint32"),
        ({"w": 2}, {"to": "safetensors"}, "InvalidArgument", "the destination is not GGUF"),
        *(({"w": 2}, {"gguf_metadata": LLAMA | keys}, "InvalidArgument", "gguf_metadata has 'a'") for keys in BAD_KEYS),
    ],
)
def test_refused(state, options, code, message, tmp_path):
    arrays = {name: numpy.ones(2, "f4") if isinstance(array, int) else array for name, array in state.items()}
    sealpoint.save(arrays, tmp_path / "c")
    with pytest.raises(sealpoint.Error, match=message) as caught:
        convert(tmp_path / "c", tmp_path / "m.gguf", **{"to": "gguf", "gguf_metadata": LLAMA, **options})
    assert caught.value.code == code and not (tmp_path / "m.gguf").exists()
    assert code != "Unsupported" or "alignment" in message or "power" in message or "uint32" in message or "65536" in message or (
        caught.value.tensor in state
    )


@pytest.mark.parametrize("gguf_metadata", [1, {"a": 1}, {1: ("string", "b")}, {"a": ("string",)}])
def test_wrong_arguments(gguf_metadata, tmp_path):
    with pytest.raises((sealpoint.InvalidArgumentError, TypeError), match="gguf_metadata is .*expected a mapping of keys to pairs"):
        convert(tmp_path / "c", tmp_path / "m.gguf", gguf_metadata=gguf_metadata)


def test_what_gguf_cannot_hold(made, tmp_path):
    tree = {"w": {"$": "tensor", "name": "w"}, "v": 1}

    def saved(name, tree, stored=None):
        objects = {"sealpoint.tree": (json.dumps(tree).encode(), "application/vnd.sealpoint.tree+json")}
        objects |= {} if stored is None else {"gguf.metadata": (stored, "application/json")}
        sealpoint.save({"w": numpy.arange(36, dtype="u1").reshape(2, 18)}, tmp_path / name, objects=objects)
        return tmp_path / name

    good = b'{"keys": {}, "types": {"w": "Q4_0"}}'
    with pytest.raises(sealpoint.UnsupportedError, match="a value cannot be stored in GGUF") as caught:
        convert(saved("a", tree), tmp_path / "m.gguf", gguf_metadata=LLAMA)
    assert caught.value.object == "v"
    convert(saved("b", tree, good), tmp_path / "b.gguf", drop=["v"], verify=True)
    assert metadata(tmp_path / "b.gguf") == json.loads(good)
    with pytest.raises(sealpoint.UnsupportedError, match="the same tensor as 'w'; drop one of them"):
        convert(saved("c", {"w": tree["w"], "x": tree["w"]}, good), tmp_path / "m.gguf")
    flat = {"w": tree["w"]}
    for number, stored in enumerate((b"[]", b"{", b'{"keys": {}}', b'{"keys": [], "types": {}}', b"[" * 100000,
                                     b'{"keys": {"a": 1}, "types": {"w": "Q4_0"}}',
                                     b'{"keys": {"a": ["uint8", 256]}, "types": {"w": "Q4_0"}}')):  # fmt: skip
        with pytest.raises(sealpoint.CorruptError, match="malformed") as caught:
            convert(saved(f"d{number}", flat, stored), tmp_path / "m.gguf")
        assert caught.value.object == "gguf.metadata"
    for number, kind in enumerate(("Q4_K", "F32", "x", ["Q4_0"])):
        stored = json.dumps({"keys": {}, "types": {"w": kind}}).encode()
        with pytest.raises(sealpoint.UnsupportedError, match="expected rows of blocks of 144 bytes|dtype is u8") as caught:
            convert(saved(f"e{number}", flat, stored), tmp_path / "m.gguf")
        assert caught.value.tensor == "w"
    with pytest.raises(sealpoint.UnsupportedError, match="dtype is u8.*Quantized tensors are u8 under the names"):
        convert(made / "one", tmp_path / "m.gguf", rename=[("blk.2.*", "x.*")])
    with pytest.raises(sealpoint.UnsupportedError, match="cannot be stored in the format torch; drop it by its name"):
        convert(made / "one", tmp_path / "m.pt")


def test_plain_tensors_become_safetensors(made, tmp_path):
    convert(made / "one", tmp_path / "m.safetensors", match=["*.F32", "*.BF16"], tensors_only=True, verify=True)
    assert {dtype for dtype, *_ in contents(tmp_path / "m.safetensors")[1].values()} == {"f32", "bf16"}


def test_files_of_a_model(made, tmp_path):
    split = made / "split"
    last = split / "split-00003-of-00003.gguf"
    report = convert(last, tmp_path / "part", allow_part=True)
    assert (report.tensor_count, report.is_whole) == (10, False)
    assert [entry.name for entry in report.left_out] == ["split-00001-of-00003.gguf", "split-00002-of-00003.gguf"]
    shutil.copy(last, tmp_path / "alone.gguf")
    with pytest.raises(sealpoint.UnsupportedError, match=r"one of several files of a model \(split.count is \[\"uint16\", 3\]"):
        open_source(tmp_path / "alone.gguf")
    assert len(contents(tmp_path / "alone.gguf", allow_part=True)[1]) == 10
    shutil.copy(made / "one/one.gguf", tmp_path / "one-00001-of-00002.gguf")
    assert len(contents(tmp_path / "one-00001-of-00002.gguf")[1]) == 34, "a name alone makes no part"
    (tmp_path / "both").mkdir()
    for name in ("a.gguf", "b.gguf"):
        shutil.copy(made / "one/one.gguf", tmp_path / "both" / name)
    with pytest.raises(sealpoint.UnsupportedError, match=r"models of several GGUF files \(a.gguf, b.gguf\)"):
        open_source(tmp_path / "both")
    second = split / "split-00002-of-00003.gguf"
    shutil.copy(second, tmp_path / "second")
    for wrong, code, message in (
        (lambda: shutil.copy(last, second), "Corrupt", 'split.no is ["uint16", 2], expected ["uint16", 1]'),
        (second.unlink, "Incomplete", "lacks split-00002-of-00003.gguf, one of 3 files"),
        (lambda: edit(tmp_path / "second", second, b"blk.12.Q6_K", b"blk.10.Q4_K"), "Corrupt", "another file of the model has"),
    ):
        wrong()
        for path in (split, last):
            with pytest.raises(sealpoint.Error) as caught:
                open_source(path)
            assert caught.value.code == code and message in str(caught.value)


def test_keys_of_a_split_model(tmp_path):
    def written(number, *keys, total=2):
        split = [key(b"split.no", 2, struct.pack("<H", number)), key(b"split.count", 2, struct.pack("<H", 2)),
                 key(b"split.tensors.count", 5, struct.pack("<i", total))]  # fmt: skip
        data = file([*split, *keys], [tensor(b"ab"[number : number + 1])], bytes(32))
        (tmp_path / f"m-0000{number + 1}-of-00002.gguf").write_bytes(data)

    one, two = key(b"x", 0, b"\1"), key(b"y", 0, b"\2")
    written(0, one, two)
    written(1, two)
    assert metadata(tmp_path)["keys"] == {"x": ["uint8", 1], "y": ["uint8", 2]}
    for wrong in (key(b"y", 0, b"\3"), key(b"z", 0, b"\2")):
        written(1, wrong)
        with pytest.raises(sealpoint.UnsupportedError, match="is not in the first file of the model, or has another value there"):
            open_source(tmp_path)
    written(1)
    written(0, total=3)
    with pytest.raises(sealpoint.CorruptError, match=r'split.tensors.count is \["int32", 3\], expected \["int32", 2\]'):
        open_source(tmp_path)


def edit(source, target, old, new):
    data = source.read_bytes()
    assert old in data
    target.write_bytes(data.replace(old, new))


# Files made by hand.


def text(data):
    return struct.pack("<Q", len(data)) + data


def key(name, kind, value):
    return text(name) + struct.pack("<I", kind) + value


def tensor(name=b"w", dims=(8,), kind=0, offset=0, ndim=None):
    head = text(name) + struct.pack("<I", len(dims) if ndim is None else ndim)
    return head + struct.pack(f"<{len(dims)}QIQ", *dims, kind, offset)


def file(keys=(), tensors=(), payload=b"", version=3, counts=None, alignment=32):
    header = struct.pack("<4sIQQ", b"GGUF", version, *(counts or (len(tensors), len(keys)))) + b"".join([*keys, *tensors])
    return header + (bytes(-len(header) % alignment) + payload if tensors else b"")


def array(kind, count, data):
    return struct.pack("<IQ", kind, count) + data


W = tensor()
NESTED = b"".join(struct.pack("<IQ", 9, 1) for _ in range(20))
MALFORMED = {
    "magic": (b"GGUF", "Incomplete", "4 bytes of 1 bytes at least are declared"),
    "version 1": (file(version=1), "Unsupported", "version of GGUF is 1: expected 2 or 3"),
    "version 4": (file(version=4), "Unsupported", "version of GGUF is 4"),
    "version 0": (file(version=0), "Unsupported", "version of GGUF is 0: expected"),
    "big endian": (struct.pack(">4sIQQ", b"GGUF", 3, 0, 0), "Unsupported", "the file is big-endian, expected little-endian"),
    "keys": (file(counts=(0, 1 << 40)), "Incomplete", "1099511627776 keys of 13 bytes"),
    "tensors": (file(counts=(1 << 63, 0)), "Incomplete", "9223372036854775808 tensors of 24 bytes"),
    "long name of a key": (file([struct.pack("<Q", 1 << 63) + b"a" * 8]), "Incomplete", "9223372036854775808 bytes of text"),
    "long string": (file([key(b"a", 8, struct.pack("<Q", 2**64 - 1))]), "Incomplete", "18446744073709551615 bytes of text"),
    "long array": (file([key(b"a", 9, array(10, 1 << 62, b""))]), "Incomplete", "elements of an array of 8 bytes"),
    "long array of strings": (file([key(b"a", 9, array(8, 1 << 61, b""))]), "Incomplete", "elements of an array of 8 bytes"),
    "nested arrays": (file([key(b"a", 9, NESTED)]), "LimitExceeded", "arrays are nested more than 8 deep"),
    "type of a value": (file([key(b"a", 13, b"")]), "Corrupt", "type of a value is 13, expected 12 at most"),
    "type of an element": (file([key(b"a", 9, array(99, 0, b""))]), "Corrupt", "type of a value is 99"),
    "bool": (file([key(b"a", 7, b"\2")]), "Corrupt", "a bool is 2, expected 0 or 1"),
    "key of bytes": (file([key(b"\xff", 0, b"\1")]), "Corrupt", "a text is not UTF-8"),
    "string of bytes": (file([key(b"a", 8, text(b"\xed\xa0\x80"))]), "Corrupt", "a text is not UTF-8"),
    "duplicate key": (file([key(b"a", 0, b"\1")] * 2), "Corrupt", "duplicate key a"),
    "alignment 0": (file([key(b"general.alignment", 4, bytes(4))]), "Corrupt", "general.alignment is 0, expected a power of two"),
    "alignment 24": (file([key(b"general.alignment", 4, b"\x18\0\0\0")]), "Corrupt", "general.alignment is 24"),
    "alignment of text": (file([key(b"general.alignment", 8, text(b"a"))]), "Corrupt", "general.alignment is no uint32"),
    "name of bytes": (file(tensors=[tensor(b"\x80")], payload=bytes(32)), "Corrupt", "a text is not UTF-8"),
    "duplicate tensor": (file(tensors=[W, tensor(offset=32)], payload=bytes(64)), "Corrupt", "duplicate tensor"),
    "5 dimensions": (file(tensors=[tensor(dims=(1,) * 5)], payload=bytes(32)), "Corrupt", "tensor has 5 dimensions, expected 4"),
    "2^32 dimensions": (file(tensors=[tensor(ndim=2**32 - 1)], payload=bytes(32)), "Corrupt", "expected 4 at most"),
    "unknown type": (file(tensors=[tensor(kind=99)], payload=bytes(32)), "Unsupported", "type 99 of the tensor is unknown"),
    "removed type": (file(tensors=[tensor(kind=4)], payload=bytes(32)), "Unsupported", "type 4 of the tensor is unknown"),
    "half a block": (file(tensors=[tensor(dims=(48,), kind=2)], payload=bytes(32)), "Corrupt", "expected a multiple of 32"),
    "block of no dimension": (file(tensors=[tensor(dims=(), kind=2)], payload=bytes(32)), "Corrupt", "rows have 1 elements"),
    "overflow": (file(tensors=[tensor(dims=(1 << 32,) * 4)], payload=bytes(32)), "Corrupt", "has more than 2^64 bytes"),
    "overflow of bytes": (file(tensors=[tensor(dims=(1 << 62,))], payload=bytes(32)), "Corrupt", "has more than 2^64 bytes"),
    "overflow of blocks": (file(tensors=[tensor(dims=(1 << 63, 4), kind=15)], payload=bytes(32)), "Corrupt", "2^64 bytes"),
    "large": (file(tensors=[tensor(dims=(1 << 40,))], payload=bytes(32)), "Incomplete", "the tensor ends at 4398046511168"),
    "cut off": (file(tensors=[W], payload=bytes(31)), "Incomplete", "the file has 95 bytes, and the tensor ends at 96"),
    "cut off before": (file(tensors=[W])[:50], "Incomplete", "bytes at least are declared"),
    "unaligned": (file(tensors=[tensor(dims=(1,)), tensor(b"x", offset=4)], payload=bytes(64)), "Corrupt", "begins 4 bytes after"),
    "overlap": (file(tensors=[W, tensor(b"x")], payload=bytes(64)), "Corrupt", "begins 0 bytes after the header, expected 32"),
    "gap": (file(tensors=[W, tensor(b"x", offset=64)], payload=bytes(96)), "Corrupt", "begins 64 bytes after the header"),
    "far": (file(tensors=[tensor(offset=2**64 - 32)], payload=bytes(32)), "Corrupt", "begins 18446744073709551584 bytes after"),
    "bytes after": (file(tensors=[W], payload=bytes(33)), "Corrupt", "1 bytes follow the last tensor"),
    "bytes after keys": (file([key(b"a", 0, b"\1")]) + bytes(40), "Corrupt", "bytes follow the last tensor"),
}  # fmt: skip


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed(name, tmp_path):
    data, code, message = MALFORMED[name]
    path = tmp_path / "m"
    path.write_bytes(data)
    with pytest.raises(sealpoint.Error) as caught:
        open_source(path)
    error = caught.value
    assert (error.code, error.path) == (code, str(path)) and message in str(error)
    assert error.offset is not None
    done = subprocess.run([PROGRAM, "ls", path, "--json"], capture_output=True, text=True, timeout=20, check=False)
    assert json.loads(done.stdout)["error"]["code"] == code


def test_files_by_hand_are_good(tmp_path):
    """So that each malformed one has a single defect."""
    good = {
        "empty": file(), "padded": file([key(b"a", 0, b"\1")]).ljust(64, b"\0"), "tensor": file(tensors=[W], payload=bytes(32)),
        "unpadded": file(tensors=[tensor(dims=(1,))], payload=bytes(4)),
        "no dimension": file(tensors=[tensor(dims=())], payload=bytes(32)),
        "no element": file(tensors=[tensor(dims=(0, 5)), tensor(b"x")], payload=bytes(32)),
        "eight deep": file([key(b"a", 9, NESTED[: 7 * 12] + array(0, 1, b"\1"))]),
        "two": file(tensors=[tensor(dims=(1,)), tensor(b"x", offset=32)], payload=bytes(64)),
        "aligned to 8": file([key(b"general.alignment", 4, b"\x08\0\0\0")], [W, tensor(b"x", offset=32)], bytes(64), alignment=8),
    }  # fmt: skip
    for name, data in good.items():
        (tmp_path / name).write_bytes(data)
        convert(tmp_path / name, tmp_path / f"{name} as sealpoint", verify=True)


def test_damaged_files(made, tmp_path):
    """Each damaged header is read, or is an error of the library that names the file."""
    good = (made / "one/one.gguf").read_bytes()
    header = good.rindex(b"Q1_0") + 40
    dice = random.Random(5)
    codes = {}
    for number in range(400):
        data = bytearray(good)
        if number % 4 == 0:
            del data[dice.randrange(len(data)) :]
        else:
            for _ in range(dice.randrange(1, 4)):
                at = dice.randrange(header)
                data[at] = dice.choice((0, 1, 0x7F, 0x80, 0xFF, data[at] ^ 1 << dice.randrange(8)))
        path = tmp_path / "damaged.gguf"
        path.write_bytes(data)
        code = None
        try:
            with open_source(path) as state:
                json.loads(state.objects["gguf.metadata"][1])
        except sealpoint.Error as error:
            code = error.code
            assert code == "NotACheckpoint" or error.path == str(path)
        codes[code] = codes.get(code, 0) + 1
    assert codes.keys() <= {None, "Corrupt", "Incomplete", "Unsupported", "LimitExceeded", "NotACheckpoint"}, codes
    assert codes["Corrupt"] > 30 and codes["Incomplete"] > 90, codes


def test_ls_shows_types_and_keys(made):
    done = subprocess.run([PROGRAM, "ls", made / "one"], capture_output=True, text=True, timeout=20, check=True)
    assert "one: model in GGUF (llama.cpp), no step, 34 tensors" in done.stdout
    assert "2x3x288              blk.10.Q4_K  (Q4_K)\n" in done.stdout
    assert "GGUF version 3: 27 keys, then the tensors" in done.stdout and "gguf.metadata" in done.stdout
    listed = json.loads(subprocess.run([PROGRAM, "ls", made / "one", "--json"], capture_output=True, check=True).stdout)
    types = metadata(made / "one")["types"]
    for one in listed["tensors"]:
        assert one.get("block_type") == (types[one["name"]] if one["dtype"] == "u8" else None)
