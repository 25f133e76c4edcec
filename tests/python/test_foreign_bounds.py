# SPDX-License-Identifier: Apache-2.0
"""Both readers of foreign formats stay within the bound of docs/guides/convert.md: memory, and time for what shares values."""

import io
import json
import os
import pathlib
import pickle
import pickletools
import signal
import struct
import subprocess
import sys

import pytest
import sealpoint
import test_convert_gguf as gguf
import test_convert_hostile as hostile
from sealpoint.interop import open_source
from sealpoint.interop._select import leaves

PROGRAM = pathlib.Path(os.environ["SEALPOINT_BINARY_DIR"]) / "tools/ckpt/ckpt"
MIB = 1 << 20
# What the two programs take to read a checkpoint of a few bytes.
BASE_BYTES = {"C++": 16 * MIB, "Python": 64 * MIB}
ORDERED = b"ccollections\nOrderedDict\nq\0"


def pickles(scale):
    """Those that took 3 to 100 times their size."""

    def of(count):
        return int(count * scale)

    return {
        "lists": b"]" * of(5e6) + b"a" * (of(5e6) - 1),
        "tuples": b"N" + b"\x85" * of(5e6),
        "memoize": b"N" + b"\x94" * of(1e7),
        "memo out of order": b"N" + b"".join(b"r" + struct.pack("<I", 2 * i + 1) for i in range(of(2e6))),
        "dup": b"N" + b"2" * of(2e7) + b"0" * of(2e7),
        "marks": b"(" * of(1e7),
        "ordered": b"](" + ORDERED + b")R" + b"h\0)R" * of(3e5) + b"e",
        "mappings": b"](" + b"}" * of(2e6) + b"e",
        "texts": b"](" + b"\x8c\0" * of(2e6) + b"e",
        "numbers": b"](" + b"J\1\2\3\4" * of(2e6) + b"e",
        "numbers that fit": b"](" + b"J\1\2\3\4" * of(9e5) + b"e",
        "large numbers": b"](" + b"\x8a\x09" + b"\1" * 9 + (b"\x8a\x09" + b"\1" * 9) * of(1e6) + b"e",
        "wide text": b"X" + struct.pack("<I", of(4e7) * 4) + "\U0001f600".encode() * of(4e7),
        "entries": b"}(" + b"".join(b"J" + struct.pack("<I", i) + b"N" for i in range(of(1e6))) + b"u",
        "entries that fit": b"}(" + b"".join(b"J" + struct.pack("<I", i) + b"N" for i in range(of(1.5e5))) + b"u",
    }


def safetensors(scale):
    entry = '"%07d":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}'
    small = "{" + ",".join(entry % i for i in range(int(1e6 * scale))) + "}"
    yield "tensors", small.encode()
    yield "metadata", b'{"__metadata__":{"a":"' + b"x" * int(5e7 * scale) + b'"}}'
    yield "wide metadata", b'{"__metadata__":{"a":"' + "\U0001f600".encode() * int(1e7 * scale) + b'"}}'
    yield "lists", b'{"a":' + b"[" * int(5e7 * scale)
    yield "numbers", b'{"a":[' + b"1," * int(2e7 * scale) + b"1]}"


def gguf_files(scale):
    """Those of a few kinds of metadata, all valid."""

    def of(count):
        return int(count * scale)

    names = [b"%07d" % i for i in range(of(1e6))]
    yield "tensors", gguf.file(tensors=[gguf.tensor(name, (0,)) for name in names])
    yield "keys", gguf.file([gguf.key(name, 0, b"x") for name in names])
    for kind, value in {
        "empty strings": gguf.array(8, of(5e6), bytes(8 * of(5e6))),
        "bytes": gguf.array(0, of(4e7), b"\xff" * of(4e7)),
        "numbers": gguf.array(6, of(5e6), struct.pack("<f", 1e-38) * of(5e6)),
    }.items():
        yield kind, gguf.file([gguf.key(b"a", 9, value)])
    yield "wide string", gguf.file([gguf.key(b"a", 8, gguf.text("\U0001f600".encode() * of(1e7)))])
    yield "escapes", gguf.file([gguf.key(b"a", 8, gguf.text(b"\1" * of(3e7)))])


# A program inherits the maximum of the one that starts it, so this one is small.
MEASURE = """if True:
    import os, sys
    process = os.fork()
    if process == 0:
        os.dup2(1, 2)
        os.execv(sys.argv[1], sys.argv[1:])
    _, status, usage = os.wait4(process, 0)
    print()
    print(os.waitstatus_to_exitcode(status), usage.ru_maxrss * 1024)
"""


def measured(command):
    """Exit status, output and the maximum resident set in bytes."""
    command = [sys.executable, "-I", "-S", "-c", MEASURE, *command]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=True)
    output, _, last = done.stdout.rstrip().rpartition("\n")
    status, memory = last.split()
    return int(status), output, int(memory)


OPEN = """if True:
    import sys
    from sealpoint._command import run
    from sealpoint.interop import open_source

    def read():
        with open_source(sys.argv[1], drop_unknown=True, allow_part=True):
            return 0

    sys.exit(run(read, "convert"))
"""


def check_bounded(path, size):
    """Both say the same, within 16 times the files and 64 MiB."""
    answers = []
    for reader, command in {
        "C++": [PROGRAM, "ls", path, "--json"],
        "Python": [sys.executable, "-c", OPEN, path],
    }.items():
        status, output, memory = measured([str(item) for item in command])
        assert memory <= 16 * size + 64 * MIB + BASE_BYTES[reader], (reader, memory / MIB, size / MIB, output[:200])
        assert status in (0, 1, 3, 4) and "Traceback" not in output, (reader, status, output[-500:])
        answers.append(status == 0)
    assert answers[0] == answers[1], (path, answers)
    return answers[0]


# A third of the counts that were found: what they took was then still twice what is allowed.
SCALE = float(os.environ.get("SEALPOINT_BOUNDS_SCALE", "0.34"))


@pytest.mark.parametrize("name", pickles(1e-6))
def test_memory_of_pickles(name, tmp_path):
    data = b"\x80\x02}X\x01\0\0\0x" + pickles(SCALE)[name] + b"s."
    path = hostile.torch_file(tmp_path / "a", data)
    check_bounded(path, path.stat().st_size)
    (tmp_path / "d").mkdir()
    (tmp_path / "d/.metadata").write_bytes(data)
    assert not check_bounded(tmp_path / "d", len(data))


@pytest.mark.parametrize("name", ["lists", "ordered", "wide text", "entries that fit"])
def test_memory_of_pickles_of_unknown_length(name, tmp_path):
    """In files of torch.save before 1.6, which are read in windows."""
    value = b"\x80\x02}X\x01\0\0\0x" + pickles(SCALE)[name] + b"s."
    path = tmp_path / "a"
    path.write_bytes(hostile.LEGACY + b"\x80\x02M\xe9\x03." + b"\x80\x02}." + value + b"\x80\x02].")
    is_read = check_bounded(path, path.stat().st_size)
    assert is_read or name != "entries that fit"
    assert not is_read or name != "lists", "each takes 70 times its bytes"


@pytest.mark.parametrize("name", [name for name, _ in safetensors(1e-6)])
def test_memory_of_safetensors(name, tmp_path):
    header = dict(safetensors(SCALE))[name]
    path = tmp_path / "a.safetensors"
    path.write_bytes(struct.pack("<Q", len(header)) + header)
    check_bounded(path, len(header) + 8)


@pytest.mark.parametrize("name", [name for name, _ in gguf_files(1e-6)])
def test_memory_of_gguf(name, tmp_path):
    data = dict(gguf_files(SCALE))[name]
    path = tmp_path / "a.gguf"
    path.write_bytes(data)
    check_bounded(path, len(data))


def shared(depth):
    """A tuple of itself twice, so many times, as the value 200 of what is kept."""
    return b"Nr\xc8\0\0\0" + b"0j\xc8\0\0\0j\xc8\0\0\0\x86r\xc8\0\0\0" * depth + b"0"


def with_shared(data):
    """The pickle, again and again, with the shared value in place of each value that it has as it stands; and it alone."""
    yield data[:2] + shared(60) + b"j\xc8\0\0\0."
    ops = list(pickletools.genops(data))
    ends = [position for _, _, position in ops[1:]] + [len(data)]
    for (op, _, begin), end in zip(ops, ends, strict=True):
        pushes_one = op.stack_after and len(op.stack_after) == 1 and not op.stack_before
        if pushes_one and op.name not in ("MARK", "BINGET", "BINPUT"):
            yield data[:2] + shared(60) + data[2:begin] + b"j\xc8\0\0\0" + data[end:]


def check_ends(path):
    """Both end soon; whatever they say, they say the same."""

    def stop(*_):
        raise AssertionError("it does not end")

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(10)
    try:
        with open_source(path, drop_unknown=True) as state:
            list(leaves(state.tree))
        code = None
    except sealpoint.Error as error:
        assert len(str(error)) < 1000
        code = error.code
    finally:
        signal.alarm(0)
    done = subprocess.run([PROGRAM, "ls", path, "--json"], capture_output=True, text=True, timeout=20, check=False)
    assert json.loads(done.stdout).get("error", {"code": None})["code"] == code, (done.stdout, code)
    return code


def test_values_that_share_values_in_metadata(unpack):
    path = unpack("dcp")
    seen = {}
    for data in list(with_shared((path / ".metadata").read_bytes()))[::4]:  # which are of many like tensors
        (path / ".metadata").write_bytes(data)
        code = check_ends(path)
        seen[code] = seen.get(code, 0) + 1
    assert seen["Corrupt"] > 20, seen


def test_values_that_share_values_in_states(tmp_path):
    import argparse
    import collections

    import numpy

    values = {
        "a": bytearray(b"xy"), "b": 1 - 2.5j, "c": {3, 1}, "d": numpy.arange(6, dtype="i2"), "e": numpy.float32(1.5),
        "f": collections.OrderedDict([("b", 1)]), "g": argparse.Namespace(a=1), "h": io.BytesIO(b"abc"), "i": (1, "x"),
    }  # fmt: skip
    tensor = hostile.tensor_pickle()
    assert tensor[:2] == b"\x80\x02"
    codes = set()
    for data in (pickle.dumps(values, protocol=2), tensor):
        for i, item in enumerate(with_shared(data)):
            codes.add(check_ends(hostile.torch_file(tmp_path / f"{i}", item, hostile.STORAGE)))
    assert {"Corrupt", "LimitExceeded"} <= codes, codes


def test_memory_of_a_hostile_file_is_bounded(tmp_path):
    """A few kilobytes that say that they are much more."""
    paths = [
        hostile.torch_file(
            tmp_path / "a",
            hostile.tensor_pickle(numel=1 << 50, shape=(1 << 25, 1 << 25), strides=(1 << 25, 1)),
            hostile.STORAGE,
        ),
        hostile.safetensors_file(
            tmp_path / "b.safetensors", {"w": {"dtype": "U8", "shape": [1 << 50], "data_offsets": [0, 1 << 50]}}
        ),
    ]
    code = """if True:
        import resource, sys
        from sealpoint.interop import convert
        import sealpoint
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for path in sys.argv[1:]:
            try:
                convert(path, path + ".out")
            except sealpoint.Error as error:
                print(error.code)
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000)
    """
    done = subprocess.run([sys.executable, "-c", code, *paths], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["Corrupt", "Incomplete", "True"], done
