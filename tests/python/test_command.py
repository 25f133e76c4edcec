# SPDX-License-Identifier: Apache-2.0
"""python -m sealpoint; and that reading needs no torch."""

import json
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys

import ml_dtypes
import numpy
import pytest
import sealpoint
from conftest import DTYPES, blob_of, flip_bit_of, noise, raw
from sealpoint.__main__ import main


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


# Every sub-command, and what it returns if its output can be written. {} is a checkpoint, {}-bad a damaged one, {}-local a
# directory that holds one.
COMMANDS = {
    "{}": 0, "--json {}": 0, "--verify {}": 0, "verify {}": 0, "verify --json {}": 0, "verify {}-bad": 1,
    "ls {}": 0, "ls --json {}": 0, "convert --dry-run {} {}-dry": 0, "convert {} {}-copy --json": 0,
    "promote --adopt --dry-run {}-local {}-series": 0, "promote --adopt {}-local {}-series --json": 0, "promote --help": 0,
    "--help": 0, "verify --help": 0, "ls --help": 0, "convert --help": 0, "bench --help": 0, "--version": 0,
}
UNWRITABLE = {">/dev/full": "No space left on device (errno 28)", ">&-": "Bad file descriptor (errno 9)"}


def shell(redirection, arguments, **options):
    options["env"] = {k: v for k, v in os.environ.items() if k != "PYTHONUNBUFFERED"} | options.pop("env", {})
    command = ["sh", "-c", f'exec "$@" {redirection}', "sh", sys.executable, "-m", "sealpoint", *arguments]
    return subprocess.run(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False, **options)


@pytest.mark.parametrize(("command", "usual"), COMMANDS.items(), ids=COMMANDS)
def test_output_that_cannot_be_written(saved, weights, command, usual):
    shutil.copytree(saved, f"{saved}-local/{saved.name}")
    shutil.copytree(saved, f"{saved}-bad")
    flip_bit_of(f"{saved}-bad", raw(weights))

    def arguments():  # each conversion makes a directory of its own
        return [word.format(saved).replace("-copy", f"-{secrets.token_hex(4)}") for word in command.split()]

    for redirection, message in UNWRITABLE.items():
        done = shell(redirection, arguments())
        assert (done.returncode, done.stderr) == (74, f"sealpoint: standard output: {message}\n")
    assert shell(">&- 2>&- <&-", arguments()).returncode == 74
    reading, writing = os.pipe()
    os.close(reading)
    done = shell("", arguments(), stdout=writing)
    os.close(writing)
    assert (done.returncode, done.stderr) == (-signal.SIGPIPE, "")
    for redirection in ("2>/dev/full", "2>&-"):  # nothing is in the way of the answer
        done = shell(redirection, arguments(), stdout=subprocess.PIPE)
        assert done.returncode == usual and done.stdout
    assert shell("2>/dev/full", ["ls", f"{saved}-none"], stdout=subprocess.PIPE).returncode == 4


def test_no_file_takes_the_number_of_a_closed_stream():
    code = "import os, sys; from sealpoint._command import run; sys.exit(run(lambda: os.open(os.devnull, os.O_RDONLY)))"
    done = subprocess.run(["sh", "-c", 'exec "$@" >&- 2>&- <&-', "sh", sys.executable, "-c", code], check=False)
    assert done.returncode >= 3


def test_characters_that_the_terminal_lacks(tmp_path):
    sealpoint.save({"gewicht-\u00e4": b"x"}, tmp_path / "c")
    done = shell("", [tmp_path / "c"], stdout=subprocess.PIPE, env={"PYTHONIOENCODING": "ascii"})
    assert (done.returncode, done.stderr) == (0, "") and "gewicht-\\xe4" in done.stdout


def test_wrong_usage(saved):
    for arguments, said in (
        ((), "sealpoint: a PATH or a command is expected; see sealpoint --help"),
        (("--verify",), "sealpoint verify: the following arguments are required: PATH; see sealpoint verify --help"),
        (("--frob", saved), "sealpoint: unknown option --frob; see sealpoint --help"),
        ((saved, "more"), "sealpoint: one PATH is expected, more is another; see sealpoint --help"),
        (("verify", "-j0", saved), "argument -j/--threads: '0' is not a number of threads, expected 1 to 1024"),
        (("verify", "-j1025", saved), "argument -j/--threads: '1025' is not a number of threads, expected 1 to 1024"),
        (("lss", saved), "sealpoint: lss is neither a command (verify, convert, ls, promote, bench) nor a path that exists; "
                         "did you mean `sealpoint ls`?; see sealpoint --help"),
        (("convrt",), "did you mean `sealpoint convert`?"),
        (("frob", saved), "sealpoint: frob is neither a command (verify, convert, ls, promote, bench) nor a path that exists; see"),
        (("ls", "--frob", saved), "sealpoint ls: unrecognized arguments: --frob; see sealpoint ls --help"),
    ):
        status, output, errors = run(*arguments)
        assert (status, output) == (64, "") and said in errors and errors.count("\n") == 1, errors


def test_for_programs(saved, weights):
    content = json.loads(run("--json", saved)[1])
    assert (content["step"], content["provenance"]["metric.loss"], content["path"]) == (7, "1.25", str(saved))
    assert content["tensors"][0] == {"name": "b", "dtype": "bf16", "shape": [4, 6], "bytes": 48}
    assert content["objects"][0] == {"name": "args", "media_type": "application/json", "bytes": 2}
    flip_bit_of(saved, raw(weights))
    status, output, _ = run("verify", "--json", saved)
    report = json.loads(output)
    assert (status, report["exit_status"], report["verdict"], report["violation_count"]) == (1, 1, "corrupt", 1)
    assert report["violations"][0]["rule"] == "R-CHK-02" and report["violations"][0]["path"] == str(blob_of(saved))
    assert json.loads(run("verify", "--level", "files", "--json", saved)[1])["verdict"] == "committed"
    version = rf"sealpoint {re.escape(sealpoint.__version__)} \(format version 1; XXH3 by .+, byte split by .+\)\n"
    assert re.fullmatch(version, run("--version")[1])


def test_a_bug_is_not_taken_for_damage(monkeypatch, capsys, saved):
    monkeypatch.setattr(sys, "argv", ["sealpoint", str(saved)])
    monkeypatch.setattr(sealpoint, "open", lambda path: path.no_such_member)
    assert main() == 70
    assert "AttributeError" in capsys.readouterr().err


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
        with pytest.raises(sealpoint.MismatchError, match="two checkpoints in one directory"):
            sealpoint.open(saved)
        convert = ["convert", saved, tmp_path / "out", "--to", "torch"]
        for command in ([saved], ["ls", saved], ["ls", "--json", saved], convert):
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
