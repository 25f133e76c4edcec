# SPDX-License-Identifier: Apache-2.0
"""Versions of weights as slime, miles, SGLang and ModelExpress exchange them; a publisher and a receiver of the format are here."""

import ctypes
import ctypes.util
import json
import shutil
import tracemalloc
import zlib

import numpy as np
import pytest
import safetensors.numpy
import sealpoint
from sealpoint.interop import convert, open_source
from test_inspect_formats import check_same

INDEX = "model.safetensors.index.json"
ZSTD = ctypes.CDLL(ctypes.util.find_library("zstd"))
ZSTD.ZSTD_compressBound.restype = ZSTD.ZSTD_compress.restype = ZSTD.ZSTD_decompress.restype = ctypes.c_size_t
for call in (ZSTD.ZSTD_compressBound, ZSTD.ZSTD_compress, ZSTD.ZSTD_decompress):
    call.argtypes = [(ctypes.c_void_p, ctypes.c_size_t)[i % 2] for i in range(4)] + [ctypes.c_int]
ZSTD.ZSTD_compressBound.argtypes = [ctypes.c_size_t]
ZSTD.ZSTD_decompress.argtypes = [ctypes.c_void_p, ctypes.c_size_t] * 2


def frame(data, level=1):
    out = ctypes.create_string_buffer(ZSTD.ZSTD_compressBound(len(data)))
    size = ZSTD.ZSTD_compress(out, len(out), data, len(data), level)
    return out.raw[:size]


def unframe(data, size):
    out = ctypes.create_string_buffer(size + 1)
    assert ZSTD.ZSTD_decompress(out, size + 1, data, len(data)) == size
    return out.raw[:size]


def adler32(data):
    return f"{zlib.adler32(data):08x}"


def xxh3(data):
    name = ctypes.util.find_library("xxhash")
    if name is None:
        pytest.skip("libxxhash is not installed")

    class Hash(ctypes.Structure):
        _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]

    library = ctypes.CDLL(name)
    library.XXH3_128bits.restype, library.XXH3_128bits.argtypes = Hash, [ctypes.c_char_p, ctypes.c_size_t]
    found = library.XXH3_128bits(data, len(data))
    return f"{found.high:016x}{found.low:016x}"


def xor(a, b):
    return (np.frombuffer(a, "u1") ^ np.frombuffer(b, "u1")).tobytes()


def publish(folder, number, old, new, checksum=adler32, **metadata):
    """Writes a delta: one file of the frames of changed tensors."""
    folder = folder / f"weight_v{number:06}"
    folder.mkdir(parents=True)
    changed = [name for name in new if new[name].tobytes() != old[name].tobytes()]
    frames = {name: np.frombuffer(frame(xor(new[name].tobytes(), old[name].tobytes())), "u1") for name in changed}
    if changed:
        sums = {name: checksum(new[name].tobytes()) for name in changed}
        safetensors.numpy.save_file(frames, folder / "model-00000-of-00001.safetensors", metadata=sums)
    told = {"version": f"{number:06}", "base_version": f"{number - 1:06}", "delta_encoding": "xor", "compression_format": "zstd",
            "checksum_format": "adler32" if checksum is adler32 else "xxh3-128", **metadata}  # fmt: skip
    names = dict.fromkeys(changed, "model-00000-of-00001.safetensors")
    (folder / INDEX).write_text(json.dumps({"metadata": told, "weight_map": names}))
    return folder


def pull(full, folder):
    """Returns the tensors after a delta, as receivers apply it. ``full``: tensors before it."""
    after = dict(full)
    for file in folder.glob("*.safetensors"):
        with safetensors.safe_open(file, "np") as opened:
            for name in opened.keys():  # noqa: SIM118
                old = full[name].tobytes()
                new = xor(old, unframe(opened.get_tensor(name).tobytes(), len(old)))
                assert adler32(new) == opened.metadata()[name]
                after[name] = np.frombuffer(new, full[name].dtype).reshape(full[name].shape)
    return after


def states(count):
    """Weights after 0, 1, … steps. ``still`` never changes, and ``w`` has more than one block."""
    random = np.random.default_rng(7)
    state = {"w": random.normal(size=(300, 257)).astype("f4"), "b": np.arange(5, dtype="f2"), "still": np.ones((2, 3), "i8"),
             "none": np.zeros((0, 3), "f4"), "one": np.array(1.5, "f8")}  # fmt: skip
    found = [state]
    for _ in range(count):
        state = {name: array.copy() for name, array in state.items()}
        state["w"][random.integers(0, 300, 40), random.integers(0, 257, 40)] += 1
        state["b" if len(found) % 2 else "one"][...] += 1
        found.append(state)
    return found


def loaded(path):
    opened = sealpoint.open(path)
    return {name: opened[name].read() for name in opened}


def same(a, b):
    return a.keys() == b.keys() and all(np.array_equal(a[name], b[name]) and a[name].dtype == b[name].dtype for name in a)


@pytest.fixture
def chain(tmp_path):
    """The complete version 0 in a directory of its own, and the deltas 1 to 3."""
    found = states(3)
    (tmp_path / "base").mkdir()
    safetensors.numpy.save_file(found[0], tmp_path / "base/model.safetensors")
    for version, (old, new) in enumerate(zip(found, found[1:], strict=False), 1):
        publish(tmp_path / "run", version, old, new)
    return found


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("checksum", [adler32, xxh3])
def test_a_chain_is_read_as_complete_tensors(checksum, threads, chain, tmp_path):
    publish(tmp_path / "run", 4, chain[3], chain[2], checksum)
    shutil.copytree(tmp_path / "base", tmp_path / "run/weight_v000000")
    source = tmp_path / "run/weight_v000004"
    report = convert(source, tmp_path / "made", threads=threads, verify=True)
    assert same(loaded(tmp_path / "made"), chain[2]) and report.source_format == "delta" and report.is_whole
    assert report.unprotected_count == 1  # no delta changed it
    assert check_same(source) is None
    convert(source, tmp_path / "hf", to="hf", verify=True)
    assert same(safetensors.numpy.load_file(tmp_path / "hf/model.safetensors"), chain[2])
    convert(source, tmp_path / "dcp", to="dcp", verify=True)


def test_a_complete_version_ends_the_chain_and_a_base_may_be_elsewhere(chain, tmp_path):
    source = tmp_path / "run/weight_v000003"
    with pytest.raises(sealpoint.IncompleteError, match=r"base, version 000000, is not beside it.*weight_v000000; --base"):
        convert(source, tmp_path / "made")
    convert(source, tmp_path / "made", base=tmp_path / "base", verify=True)
    assert same(loaded(tmp_path / "made"), chain[3])
    shutil.rmtree(tmp_path / "run/weight_v000001")
    (tmp_path / "run/weight_v000001").mkdir()
    safetensors.numpy.save_file(chain[1], tmp_path / "run/weight_v000001/model.safetensors")
    convert(source, tmp_path / "again", verify=True)
    assert same(loaded(tmp_path / "again"), chain[3])


def test_versions_may_be_numbers_or_any_texts(chain, tmp_path):
    first = publish(tmp_path / "numbers", 1, chain[0], chain[1], version=1, base_version=0)
    convert(first, tmp_path / "a", base=tmp_path / "base")
    shutil.copytree(tmp_path / "base", tmp_path / "texts/sync-a")
    publish(tmp_path / "texts", 9, chain[0], chain[1], version="b", base_version="a").rename(tmp_path / "texts/sync-b")
    convert(tmp_path / "texts/sync-b", tmp_path / "b")
    assert same(loaded(tmp_path / "a"), chain[1]) and same(loaded(tmp_path / "b"), chain[1])


def test_boxes_in_any_order(chain, tmp_path):
    with open_source(tmp_path / "run/weight_v000002", base=tmp_path / "base") as state:
        reader = state.tensors["w"].reader(1 << 25)
        for box in [((200, 0), (50, 257)), ((3, 5), (7, 11)), ((0, 0), (300, 257)), ((299, 256), (1, 1))]:
            array = np.zeros(box[1], "f4")
            reader.read(type(state.tensors["w"].boxes[0])(*box), memoryview(array).cast("B"))
            assert np.array_equal(array, chain[2]["w"][tuple(slice(x, x + n) for x, n in zip(*box, strict=True))])
        reader.finish()


@pytest.mark.parametrize("base", ["hf", "sealpoint"])
def test_deltas_are_written_for_receivers(base, chain, tmp_path):
    sealpoint.save(chain[1], tmp_path / "new")
    sealpoint.save(chain[0], tmp_path / "sealpoint")
    old = tmp_path / ("base" if base == "hf" else "sealpoint")
    report = convert(tmp_path / "new", tmp_path / "weight_v000001", to="delta", base=old, verify=base == "hf")
    told = json.loads((tmp_path / "weight_v000001" / INDEX).read_text())
    assert told["metadata"] == {"version": "000001", "base_version": "000000", "delta_encoding": "xor",
                                "compression_format": "zstd", "checksum_format": "adler32"}  # fmt: skip
    assert set(told["weight_map"]) == {"w", "b"} and len(report.files) == 2
    assert same(pull(chain[0], tmp_path / "weight_v000001"), chain[1])
    convert(tmp_path / "weight_v000001", tmp_path / "back", base=tmp_path / "base")
    assert same(loaded(tmp_path / "back"), chain[1])


def test_a_series_of_versions_round_trips(chain, tmp_path):
    convert(tmp_path / "base", tmp_path / "weight_v000000", to="delta")
    told = json.loads((tmp_path / "weight_v000000" / INDEX).read_text())["metadata"]
    assert told["version"] == "000000" and "delta_encoding" not in told
    for version in (1, 2, 3):
        sealpoint.save(chain[version], tmp_path / f"step-{version}")
        convert(tmp_path / f"step-{version}", tmp_path / f"weight_v{version:06}", to="delta",
                base=tmp_path / f"weight_v{version - 1:06}", verify=True)  # fmt: skip
    convert(tmp_path / "weight_v000003", tmp_path / "made", verify=True)
    assert same(loaded(tmp_path / "made"), chain[3])
    # Three deltas in one.
    convert(tmp_path / "weight_v000003", tmp_path / "weight_v000009", to="delta", base=tmp_path / "weight_v000000", verify=True)
    assert same(pull(chain[0], tmp_path / "weight_v000009"), chain[3])
    # No tensor changed.
    convert(tmp_path / "weight_v000003", tmp_path / "weight_v000010", to="delta", base=tmp_path / "weight_v000009", verify=True)
    assert [path.name for path in (tmp_path / "weight_v000010").iterdir()] == [INDEX]


def test_files_of_a_delta_do_not_depend_on_threads(chain, tmp_path, monkeypatch):
    monkeypatch.setattr("sealpoint.interop._delta_write._FILE_BYTES_MIN", 1000)
    made = []
    for threads in (1, 4):
        folder = tmp_path / str(threads)
        folder.mkdir()
        sealpoint.save(chain[3], folder / "new")
        convert(folder / "new", folder / "weight_v000001", to="delta", base=tmp_path / "base", threads=threads)
        assert same(pull(chain[0], folder / "weight_v000001"), chain[3])
        made.append({path.name: path.read_bytes() for path in (folder / "weight_v000001").iterdir()})
    assert made[0] == made[1] and len(made[0]) > 2


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"w": np.ones((300, 256), "f4")}, sealpoint.UnsupportedError,
         r"is f32 \[300, 256\], but f32 \[300, 257\] in the base.*tensor w"),
        ({"b": np.ones(5, "f4")}, sealpoint.UnsupportedError, r"is f32 \[5\], but f16 \[5\] in the base.*tensor b"),
        ({"more": np.ones(5, "f4")}, sealpoint.UnsupportedError, "only in the new state.*tensor more"),
        ({}, sealpoint.UnsupportedError, "its value differs from the base's.*--tensors-only.*object note"),
    ],
)
def test_what_a_delta_cannot_say_is_refused(change, error, message, chain, tmp_path):
    sealpoint.save({**chain[1], **change}, tmp_path / "new", objects={} if change else {"note": b"text"})
    with pytest.raises(error, match=message):
        convert(tmp_path / "new", tmp_path / "weight_v000001", to="delta", base=tmp_path / "base")
    assert not (tmp_path / "weight_v000001").exists() and not list(tmp_path.glob("*.partial-*"))


@pytest.mark.parametrize(
    ("name", "base", "message"),
    [
        ("delta-1", "base", "named weight_v and six digits"),
        ("weight_v000001", "run/weight_v000003", "the base is version 3"),
        ("weight_v000000", "base", "the base is version -1"),
    ],
)
def test_versions_that_no_receiver_finds_are_refused(name, base, message, chain, tmp_path):
    with pytest.raises(sealpoint.InvalidArgumentError, match=message):
        convert(tmp_path / "base", tmp_path / name, to="delta", base=tmp_path / base)


def test_a_base_that_nothing_uses_is_refused(chain, tmp_path):
    with pytest.raises(sealpoint.InvalidArgumentError, match="neither the source nor the destination is a delta"):
        convert(tmp_path / "base", tmp_path / "made", base=tmp_path / "base")


def test_an_existing_version_stays(chain, tmp_path):
    with pytest.raises(sealpoint.AlreadyExistsError):
        convert(tmp_path / "base", tmp_path / "run/weight_v000002", to="delta", base=tmp_path / "base")
    assert len(list((tmp_path / "run/weight_v000002").iterdir())) == 2


def edit(folder, change):
    index = json.loads((folder / INDEX).read_text())
    change(index["metadata"])
    (folder / INDEX).write_text(json.dumps(index))


HOSTILE = [
    ("delta_encoding", "overwrite", sealpoint.UnsupportedError, "delta_encoding is 'overwrite', expected xor"),
    ("compression_format", "lz4", sealpoint.UnsupportedError, "compression_format is 'lz4', expected zstd"),
    ("checksum_format", "blake3", sealpoint.UnsupportedError, "checksum_format is 'blake3', expected xxh3-128 or adler32"),
    ("checksum_format", None, sealpoint.UnsupportedError, "checksum_format is ''"),
    ("checksum_format", "xxh3-128", sealpoint.CorruptError, "expected 32 hexadecimal digits"),
    ("base_version", "000003", sealpoint.CorruptError, "deltas of each other"),
    ("base_version", "000004", sealpoint.CorruptError, "deltas of each other"),
    ("base_version", "000007", sealpoint.IncompleteError, "weight_v000007"),
    ("base_version", "", sealpoint.CorruptError, "base_version is ''"),
    ("base_version", "../run/weight_v000002", sealpoint.CorruptError, "expected a version"),
    ("base_version", "000001", sealpoint.CorruptError, "Adler-32 after the delta is"),
]


@pytest.mark.parametrize(("key", "value", "error", "message"), HOSTILE)
def test_metadata_is_checked(key, value, error, message, chain, tmp_path):
    shutil.copytree(tmp_path / "base", tmp_path / "run/weight_v000000")
    publish(tmp_path / "run", 4, chain[3], chain[2])
    source = tmp_path / "run/weight_v000003"
    edit(source, lambda metadata: metadata.pop(key) if value is None else metadata.update({key: value}))
    with pytest.raises(error, match=message):
        convert(tmp_path / "run/weight_v000004", tmp_path / "made")
    assert not (tmp_path / "made").exists()


def test_a_directory_of_another_version_is_no_base(chain, tmp_path):
    shutil.copytree(tmp_path / "base", tmp_path / "run/weight_v000000")
    (tmp_path / "run/weight_v000002").rename(tmp_path / "run/moved")
    (tmp_path / "run/weight_v000001").rename(tmp_path / "run/weight_v000002")
    with pytest.raises(sealpoint.CorruptError, match="version is '000001', but the delta on it was made from version '000002'"):
        convert(tmp_path / "run/weight_v000003", tmp_path / "made")
    with pytest.raises(sealpoint.IncompleteError, match="name does not end in its version, 000002"):
        convert(tmp_path / "run/moved", tmp_path / "made")


def test_a_chain_has_a_limit(tmp_path):
    for version in range(1, 1027):
        publish(tmp_path, version, {}, {})
    with pytest.raises(sealpoint.LimitExceededError, match="more than 1024 deltas"):
        convert(tmp_path / "weight_v001026", tmp_path / "made")
    with pytest.raises(sealpoint.IncompleteError, match="weight_v000000"):
        convert(tmp_path / "weight_v001024", tmp_path / "made")


RAW = 300 * 257 * 4


def shard(folder, entry, checksum="00000000", name="w", **tensor):
    """Replaces the file of a delta by one with a single tensor."""
    tensor = {"dtype": "U8", "shape": [len(entry)], "data_offsets": [0, len(entry)], **tensor}
    text = json.dumps({"__metadata__": {name: checksum}, name: tensor}).encode()
    (folder / "model-00000-of-00001.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + entry)
    (folder / INDEX).write_text(json.dumps({**json.loads((folder / INDEX).read_text()),
                                            "weight_map": {name: "model-00000-of-00001.safetensors"}}))  # fmt: skip


def unsized(blocks, window=0x48):
    """A frame that does not declare its size, of blocks (size, is_last) of one repeated zero."""
    text = b"\x28\xb5\x2f\xfd\x00" + bytes([window])
    for size, is_last in blocks:
        text += (size << 3 | 1 << 1 | is_last).to_bytes(3, "little") + b"\0"
    return text


ZEROS = frame(bytes(RAW))
ENTRIES = [
    (b"", "expected the bytes of a zstd frame"),
    (b"no frame at all", "begins with no zstd frame"),
    (ZEROS[:-3], "cut off"),
    (ZEROS + b"x", "bytes follow the zstd frame"),
    (ZEROS + ZEROS, "bytes follow the zstd frame"),
    (frame(bytes(RAW - 1)), f"declares {RAW - 1} bytes, expected those of the tensor, {RAW}"),
    (unsized([(1000, True)]), f"has 1000 bytes, expected those of the tensor, {RAW}"),
    (unsized([(100_000, False)] * 4000 + [(1, True)]), f"goes on after the {RAW} bytes"),
    (unsized([(100_000, False)] * 3 + [(RAW - 300_000, False)]), "cut off"),
    (ZEROS, "Adler-32 after the delta is"),
]


@pytest.mark.parametrize(("entry", "message"), ENTRIES, ids=range(len(ENTRIES)))
def test_frames_are_checked(entry, message, chain, tmp_path):
    source = tmp_path / "run/weight_v000001"
    shard(source, entry)
    with pytest.raises(sealpoint.CorruptError, match=message) as caught:
        convert(source, tmp_path / "made", base=tmp_path / "base")
    assert caught.value.tensor == "w" and "weight_v000001" in caught.value.path


@pytest.mark.parametrize(
    ("name", "tensor", "checksum", "message"),
    [
        ("w", {"dtype": "I8"}, "00000000", "expected the bytes of a zstd frame, u8 in one dimension"),
        ("w", {"shape": [1, len(ZEROS)]}, "00000000", "in one dimension"),
        ("w", {}, "0000000G", "expected 8 hexadecimal digits"),
        ("w", {}, "", "expected 8 hexadecimal digits"),
        ("other", {}, "00000000", "its base, version 000000, has no such tensor"),
    ],
)
def test_entries_are_checked(name, tensor, checksum, message, chain, tmp_path):
    source = tmp_path / "run/weight_v000001"
    shard(source, ZEROS, checksum, name, **tensor)
    with pytest.raises(sealpoint.CorruptError, match=message) as caught:
        convert(source, tmp_path / "made", base=tmp_path / "base")
    assert caught.value.tensor == name
    assert check_same(source) == "Incomplete"


def test_a_window_beyond_the_memory_is_refused(chain, tmp_path):
    source = tmp_path / "run/weight_v000001"
    shard(source, unsized([(1000, True)], window=(27 - 10) << 3))
    with pytest.raises(sealpoint.LimitExceededError, match="to decode 1 deltas takes 134742016 bytes of memory"):
        convert(source, tmp_path / "made", base=tmp_path / "base")


def test_a_damaged_base_or_delta_is_found(chain, tmp_path):
    file = tmp_path / "run/weight_v000001/model-00000-of-00001.safetensors"
    data = bytearray(file.read_bytes())
    for path, at in ((tmp_path / "base/model.safetensors", -400), (file, len(data) - 40)):
        kept = path.read_bytes()
        damaged = bytearray(kept)
        damaged[at] ^= 1
        path.write_bytes(damaged)
        with pytest.raises(sealpoint.CorruptError):
            convert(tmp_path / "run/weight_v000001", tmp_path / "made", base=tmp_path / "base")
        path.write_bytes(kept)


def test_memory_does_not_grow_with_the_tensors(tmp_path):
    big = {"w": np.zeros(64 << 20, "u1")}
    (tmp_path / "base").mkdir()
    safetensors.numpy.save_file(big, tmp_path / "base/model.safetensors")
    new = {"w": big["w"].copy()}
    new["w"][:: 1 << 20] = 1
    sealpoint.save(new, tmp_path / "new")
    tracemalloc.start()
    convert(tmp_path / "new", tmp_path / "weight_v000001", to="delta", base=tmp_path / "base", memory_bytes=8 << 20)
    convert(tmp_path / "weight_v000001", tmp_path / "made", base=tmp_path / "base", memory_bytes=8 << 20)
    assert tracemalloc.get_traced_memory()[1] < 16 << 20
    tracemalloc.stop()
    assert same(loaded(tmp_path / "made"), new)
