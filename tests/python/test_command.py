# SPDX-License-Identifier: Apache-2.0
"""python -m sealpoint; and that reading needs no torch."""

import os
import subprocess
import sys

import ml_dtypes
import numpy
import pytest
import sealpoint
from conftest import DTYPES, blob_of, flip_bit_of, noise, raw


def run(*arguments):
    command = [sys.executable, "-m", "sealpoint", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def test_listing(saved):
    status, output, errors = run(saved)
    lines = [line.split() for line in output.splitlines()]
    assert (status, errors) == (0, "") and output.startswith(f"{saved}: step 7, ")
    assert lines[1:] == [
        ["48", "bf16", "4x6", "b"], ["0", "i64", "0x3", "empty"], ["384", "f32", "8x12", "layers.0.w"],
        ["8", "f64", "scalar", "scalar"], ["384", "f32", "8x12", "w"],
        ["2", "object", "application/json", "args"], ["3", "object", "application/octet-stream", "rng"]]
    status, output, errors = run(saved / "none")
    assert (status, output) == (4, "") and errors.startswith("NotFound: ")


def test_names_cannot_write_to_the_terminal(tmp_path):
    sealpoint.save({"a\u202eb": b"x"}, tmp_path / "c")
    assert "a\\u{202e}b" in run(tmp_path / "c")[1]


def test_verification(saved, weights):
    status, output, errors = run("--verify", "-j2", saved)
    assert (status, errors) == (0, "") and output.startswith(f"{saved}: committed, ")
    flip_bit_of(saved, raw(weights))
    status, output, _ = run("--verify", saved)
    assert status == 1 and output.startswith("Corrupt: ") and "R-CHK-02" in output
    blob_of(saved).unlink()
    assert run("--verify", saved)[0] == 5
    (saved / "COMMIT").unlink()
    assert run("--verify", saved)[0] == 2
    assert run("--verify")[0] == 2, "usage, by argparse"


READER = """
import sys, sealpoint
report = sealpoint.verify(sys.argv[1])
with sealpoint.open(sys.argv[1]) as checkpoint:
    sums = {name: repr(tensor[...].astype("f8").tobytes()) for name, tensor in checkpoint.items()}
print(report.ok, "torch" in sys.modules, sums)
"""


def test_reading_takes_no_torch(tmp_path):
    tensors = {name: noise((4, 5), DTYPES[name]) for name in ("f32", "bf16", "f8_e4m3fn", "f8_e5m2")}
    sealpoint.save(tensors, tmp_path / "c")
    done = subprocess.run([sys.executable, "-c", READER, tmp_path / "c"], capture_output=True, text=True, check=True)
    expected = {name: repr(tensors[name].astype("f8").tobytes()) for name in sorted(tensors)}
    assert done.stdout == f"True False {expected}\n"


def test_without_ml_dtypes_and_without_numpy(saved, weights):
    hide = "import sys; sys.modules.update({names}); import sealpoint; c = sealpoint.open(sys.argv[1]); "
    command = [sys.executable, "-c"]
    bf16 = noise((4, 6), ml_dtypes.bfloat16)
    code = hide.format(names="ml_dtypes=None")
    code += "t = c['b']; print(t.dtype, t[1:3].shape, t[...].tobytes() == t.tobytes())"
    assert subprocess.check_output([*command, code, saved], text=True) == "bf16 (2, 6, 2) True\n"
    code = hide.format(names="numpy=None") + "print(c['b'].tobytes().hex(), c['w'].read(bytearray(384))[4:8].hex())"
    assert subprocess.check_output([*command, code, saved], text=True) == f"{raw(bf16).hex()} {raw(weights)[4:8].hex()}\n"
    code = hide.format(names="numpy=None") + "c['w'][0]"
    done = subprocess.run([*command, code, saved], capture_output=True, text=True, check=False)
    assert "ImportError: sealpoint needs numpy to make arrays" in done.stderr


def test_an_exit_with_open_things_is_clean(saved, tmp_path):
    code = ("import sys, numpy, sealpoint; c = sealpoint.open(sys.argv[1]); t = c['w']; e = sealpoint.Engine(); "
            "w = sealpoint.BlobWriter(sys.argv[2]); w.add('x', numpy.ones(1 << 21)); t[0]; "
            "r = sealpoint.verify(sys.argv[1])")
    command = [sys.executable, "-X", "dev", "-c", code, saved, tmp_path / "blobs"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert list((tmp_path / "blobs").iterdir()) == [], "an unfinished writer takes its files with it"


@pytest.mark.parametrize("convert", ["exact", "nearest"])
def test_conversion_needs_a_destination(checkpoint, convert):
    with pytest.raises(ValueError, match="convert needs out"):
        checkpoint["w"].read(convert=convert)
    out = numpy.empty((8, 12), "f8")
    assert checkpoint["w"].read(out, convert=convert)[1, 1] == 13


def test_a_path_that_is_not_utf8(tmp_path):
    path = bytes(tmp_path) + b"/caf\xe9"
    sealpoint.save({"w": b"x"}, path)
    done = subprocess.run([sys.executable, "-m", "sealpoint", path], capture_output=True, text=True, check=True)
    assert done.stdout.startswith(f"{tmp_path}/caf\\xe9: no step")


def test_two_checkpoints_in_one_directory(saved, tmp_path):
    """A native one beside one of this library is named, and none of them is taken for the directory's."""
    (saved / "metadata.json").write_text('{"of": "somebody else"}')
    assert run("ls", saved)[0] == 0
    (saved / "metadata.json").unlink()
    os.mkfifo(saved / "metadata.json")
    assert run("ls", saved)[0] == 0
    (saved / "metadata.json").unlink()
    for name, text in (("metadata.json", '{"sharded_backend": "torch_dist"}'), (".metadata", ""), ("__3_0.distcp", "")):
        (saved / name).write_text(text)
        for command in (["ls", saved], ["ls", "--json", saved], ["convert", saved, tmp_path / "out", "--to", "torch"]):
            status, output, errors = run(*command)
            assert (status, output) == (4, "") and errors.startswith("Mismatch: two checkpoints in one directory: "), errors
            assert "(COMMIT)" in errors and name in errors, errors
        assert not (tmp_path / "out").exists()
        (saved / name).unlink()
    (saved / "metadata.json").write_text('{"sharded_backend": "sealpoint"}')
    assert run("ls", saved)[0] == 0
    (saved / ".metadata").touch()
    (saved / "COMMIT").unlink()
    status, _, errors = run("ls", saved)
    assert status == 4 and "there is no COMMIT" in errors and ".metadata" in errors, errors
