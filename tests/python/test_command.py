# SPDX-License-Identifier: Apache-2.0
"""The command in the package; and that reading needs no torch."""

import json
import os
import pathlib
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


PROGRAM = pathlib.Path(os.environ["SEALPOINT_BINARY_DIR"]) / "tools/ckpt/ckpt"


def run(*arguments):
    command = [sys.executable, "-m", "sealpoint", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("words", [["--help"], ["ls", "{}"], ["verify", "{}"], ["verify", "{}-none"], ["convert", "{}"], ["frob"]])
def test_both_names_are_one_program(saved, words):
    """The entry points, and the program of an installation without Python, answer alike."""
    words = [word.format(saved) for word in words]
    with_python = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
    program = subprocess.run([PROGRAM, *words], capture_output=True, text=True, check=False,
                             env={**os.environ, "PATH": with_python})  # fmt: skip
    seconds = re.compile(r"\d\.\d\d s")
    answer = (program.returncode, *(seconds.sub("", said) for said in (program.stdout, program.stderr)))
    status, output, errors = run(*words)
    assert (status, seconds.sub("", output), seconds.sub("", errors)) == answer


def test_an_installation_without_the_package(saved, tmp_path):
    """What names the package that is missing; nothing of the current directory is taken for it."""
    (tmp_path / "sealpoint").mkdir()
    (tmp_path / "sealpoint/__init__.py").write_text("raise SystemExit(9)")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {"PATH": "/usr/bin:/bin"}
    for words in (["convert", saved, "x"], ["bench", "--json", saved]):
        done = subprocess.run([PROGRAM, *words], capture_output=True, text=True, check=False, cwd=tmp_path, env=environment)
        assert done.returncode == 3 and "or put the directory of its Python first" in done.stderr + done.stdout
    assert json.loads(done.stdout)["error"]["code"] == "Unsupported" and done.stderr == ""


# Every sub-command, and what it returns if its output can be written. {} is a checkpoint, {}-bad a damaged one, {}-local a
# directory that holds one.
COMMANDS = {
    "verify {}": 0, "verify --json {}": 0, "verify {}-bad": 1,
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
        assert (done.returncode, done.stderr) == (74, f"ckpt: standard output: {message}\n")
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
    code = "import os, sys; from sealpoint._command import run; sys.exit(run(lambda: os.open(os.devnull, os.O_RDONLY), 'x'))"
    done = subprocess.run(["sh", "-c", 'exec "$@" >&- 2>&- <&-', "sh", sys.executable, "-c", code], check=False)
    assert done.returncode >= 3


def test_characters_that_the_terminal_lacks(tmp_path):
    sealpoint.save({"gewicht-\u00e4": b"x"}, tmp_path / "c")
    command = ["convert", tmp_path / "c", tmp_path / "d", "--drop", "*"]
    done = shell("", command, stdout=subprocess.PIPE, env={"PYTHONIOENCODING": "ascii"})
    assert (done.returncode, done.stderr) == (0, "") and "gewicht-\\xe4" in done.stdout


def test_wrong_usage(saved):
    for arguments, said in (
        ((), "ckpt: A subcommand is required; see --help"),
        (("--frob", saved), "ckpt: "),
        (("frob", saved), "ckpt: unknown command frob; see --help"),
        (("--raise-limits", "2", "convert", saved), "ckpt convert: options must follow this command; see --help"),
        (("verify", "-j0", saved), "ckpt verify: "),
        (("convert", saved), "ckpt convert: the following arguments are required: DST; see --help"),
        (("bench", "--rounds", "0", saved), "ckpt bench: argument --rounds: '0' is not a number of 1 to 1,000,000; see --help"),
    ):
        status, output, errors = run(*arguments)
        assert (status, output) == (64, "") and errors.startswith(said) and errors.count("\n") == 1, errors
        status, output, again = run(*arguments, "--json")
        document = json.loads(output)
        assert (status, document["exit_status"], document["error"]["code"]) == (64, 64, "InvalidArgument")
        assert again.startswith(said)


def test_the_document_of_an_error(saved, weights, tmp_path):
    """Of a command of the package as of one of the program: the same members, in the same order, and nothing on standard error."""
    flip_bit_of(saved, raw(weights))
    documents = []
    for words in (["convert", saved, tmp_path / "x"], ["digest", saved]):
        status, output, errors = run(*words, "--json")
        documents.append(json.loads(output))
        assert (status, errors) == (1, "") and output.isascii()
    theirs = documents[1]["digests"][0]["error"]
    assert list(documents[0]) == ["version", "error", "exit_status"] and documents[0]["version"] == documents[1]["version"]
    assert list(documents[0]["error"]) == list(theirs) and theirs["rule"] == documents[0]["error"]["rule"] == "R-CHK-02"


def test_options_pages_and_completion_of_all_commands():
    source = pathlib.Path(os.environ["SEALPOINT_SOURCE_DIR"])
    environment = {**os.environ, "PATH": os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])}
    command = [sys.executable, source / "tests/cli/check_options.py", "--ckpt", PROGRAM, "--with-package"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_bug_is_not_taken_for_damage(monkeypatch, capsys, saved):
    from sealpoint.interop import _command

    monkeypatch.setattr(sys, "argv", ["ckpt", "convert", str(saved), "x"])
    monkeypatch.setattr(_command, "convert", lambda source, *_, **__: source.no_such_member)
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
    shown = "/caf\\xe9.pt: converted from sealpoint to torch"
    for words, said in ((["ls", path], "/caf\\xe9"), (["convert", path, path + b".pt"], shown)):
        done = subprocess.run([sys.executable, "-m", "sealpoint", *words], capture_output=True, text=True, check=True)
        assert said in done.stdout


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
        status, output, errors = run(*convert)
        assert (status, output) == (4, "") and "Mismatch: two checkpoints in one directory: " in errors, errors
        assert "(COMMIT)" in errors and name in errors, errors
        assert not (tmp_path / "out").exists()
        (saved / name).unlink()
    (saved / "metadata.json").write_text('{"sharded_backend": "sealpoint"}')
    assert run("ls", saved)[0] == 0
    (saved / ".metadata").touch()
    (saved / "COMMIT").unlink()
    status, _, errors = run(*convert)
    assert status == 4 and "there is no COMMIT" in errors and ".metadata" in errors, errors
