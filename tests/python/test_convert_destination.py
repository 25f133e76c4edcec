# SPDX-License-Identifier: Apache-2.0
"""The destination of a conversion: what is asked beforehand, and what errors, signals and kills leave there."""

import json
import os
import signal
import subprocess
import sys

import numpy
import pytest
import sealpoint
import test_convert_hostile as hostile
from conftest import noise
from convert_states import contents
from sealpoint.interop import _copy, _destination, _torch_write, convert, open_source

FORMATS = ("sealpoint", "safetensors", "hf", "torch", "dcp")


@pytest.fixture
def model(tmp_path):
    sealpoint.save({f"w{i}": noise((20_000,), "f4", seed=i) for i in range(3)}, tmp_path / "model")
    return tmp_path / "model"


def occupied(path, kind):
    """Puts something in the way of a destination; returns the destination."""
    if kind == "file":
        path.write_text("mine")
    if kind == "directory":
        path.mkdir()
        (path / "f").touch()
    if kind == "link":
        path.symlink_to("nowhere")
    if kind == "below a file":
        path.write_text("mine")
    return {
        "no parent": path / "x", "below a file": path / "x", "long": path.with_name("x" * 240),
        "too long": path.with_name("x" * 300),
    }.get(kind, path)  # fmt: skip


@pytest.mark.parametrize("to", FORMATS)
@pytest.mark.parametrize(
    ("kind", "code", "message"),
    [
        ("file", "AlreadyExists", "the destination exists"),
        ("directory", "AlreadyExists", "the destination exists"),
        ("link", "AlreadyExists", "the destination exists"),
        ("no parent", "NotFound", "does not exist, expected the existing parent directory of the destination"),
        ("below a file", None, None),
        ("long", "Io", "File name too long"),
        ("too long", "Io", "File name too long"),
        ("read-only", "Io", "cannot be written: no permission, or a read-only file system"),
        ("no room", "NoSpace", "the conversion needs 2"),
    ],
)
def test_a_dry_run_says_what_the_conversion_says(to, kind, code, message, model, tmp_path, monkeypatch):
    destination = occupied(tmp_path / "d", kind)
    if kind == "read-only":
        monkeypatch.setattr(os, "access", lambda path, mode: path != str(tmp_path))
    if kind == "no room":
        monkeypatch.setattr(_destination, "free_bytes_in", lambda path: 1536)
    before = sorted(os.walk(tmp_path))
    errors = []
    for dry_run in (True, False):
        with pytest.raises(sealpoint.Error) as caught:
            convert(model, destination, to=to, dry_run=dry_run)
        errors.append(caught.value)
    assert str(errors[0]) == str(errors[1])
    assert code is None or (errors[0].code == code and message in errors[0].message), errors[0]
    if kind == "no room":
        assert "1,536 bytes are free" in errors[0].message
    assert sorted(os.walk(tmp_path)) == before


def test_the_room_is_asked_for_before_a_byte_is_written(tmp_path, monkeypatch):
    """A small file can stand for a large tensor, if its elements share their place."""
    elements = 1 << 40
    data = hostile.tensor_pickle(numel=4, shape=(elements,), strides=(0,))
    hostile.torch_file(tmp_path / "a", data, hostile.STORAGE)
    monkeypatch.setattr(_destination, "free_bytes_in", lambda path: 1 << 32)
    monkeypatch.setattr(_copy.Work, "run", lambda *_: pytest.fail("it began"))
    for to in FORMATS:
        needed = r"needs 4,398,0\d\d,\d\d\d,\d\d\d bytes; 4,294,967,296 bytes are free"
        with pytest.raises(sealpoint.NoSpaceError, match=needed):
            convert(tmp_path / "a", tmp_path / "d", to=to)


def test_the_room_is_asked_for_before_the_parts_are_counted(tmp_path, monkeypatch):
    """A tensor of so many elements has more parts than memory holds descriptions of."""
    data = hostile.tensor_pickle(numel=4, shape=(1 << 50,), strides=(0,))
    hostile.torch_file(tmp_path / "a", data, hostile.STORAGE)
    for maker in ("lay_out_dcp", "lay_out_megatron"):
        monkeypatch.setattr(_torch_write, maker, lambda _: pytest.fail("it was laid out"))
    for to in (*FORMATS, "megatron"):
        for dry_run in (True, False):
            with pytest.raises(sealpoint.NoSpaceError, match=r"needs 4,503,599,627,37\d,\d\d\d bytes; "):
                convert(tmp_path / "a", tmp_path / "d", to=to, dry_run=dry_run)


@pytest.fixture
def disk(tmp_path):
    """A file system of one megabyte."""
    path = tmp_path / "disk"
    path.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "none", path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"no file system can be mounted here: {done.stderr.strip()}")
    yield path
    subprocess.run(["umount", "-l", path], check=True)


def test_disks_that_are_too_small_or_fill_up(disk, tmp_path, monkeypatch):
    sealpoint.save({f"w{i}": noise((100_000,), "f4", seed=i) for i in range(5)}, tmp_path / "c")

    for to in FORMATS:
        with pytest.raises(sealpoint.NoSpaceError, match=r"needs 2,0\d\d,\d\d\d bytes; 1,048,576 bytes are free"):
            convert(tmp_path / "c", disk / "d", to=to)
        with monkeypatch.context() as patched:
            patched.setattr(_destination, "free_bytes_in", lambda path: 1 << 42)  # as if others wrote meanwhile
            with pytest.raises(sealpoint.NoSpaceError, match="No space left on device"):
                convert(tmp_path / "c", disk / "d", to=to)
        assert os.listdir(disk) == [], to
    with pytest.raises(sealpoint.InvalidArgumentError, match="the destination is a mount point, which cannot be replaced"):
        convert(tmp_path / "c", disk)


def test_an_output_that_fails_leaves_nothing(model, tmp_path, monkeypatch):
    def fail(*_, **__):
        raise OSError(28, "No space left on device")

    def full(*_, **__):
        raise sealpoint.NoSpaceError("full")

    def unknown(*_, **__):
        raise sealpoint.IoError("who knows", unknown_outcome=True)

    places = [("pwrite", os, fail), ("sync_all", _copy, full), ("publish", _destination, full), ("commit", _copy, unknown)]
    for name, module, patch in places:
        for to in FORMATS:
            with monkeypatch.context() as patched:
                patched.setattr(module, name, patch)
                try:
                    convert(model, tmp_path / "d", to=to)
                except sealpoint.Error as error:
                    assert error.code in ("NoSpace", "Io")
                    assert os.listdir(tmp_path) == ["model"], (name, to)
                else:  # this format has no such call
                    assert contents(tmp_path / "d")[1] == contents(model)[1]
                    subprocess.run(["rm", "-r", tmp_path / "d"], check=True)


def test_an_empty_directory_becomes_a_checkpoint(model, tmp_path, monkeypatch):
    (tmp_path / "d").mkdir(mode=0o750)
    (tmp_path / "link").symlink_to("d")
    convert(model, tmp_path / "link")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "d").stat().st_mode & 0o777 == 0o750
    assert contents(tmp_path / "d") == contents(model)
    (tmp_path / "e").mkdir()
    monkeypatch.chdir(tmp_path / "e")
    for dry_run in (True, False):
        with pytest.raises(sealpoint.InvalidArgumentError, match="the destination is the working directory"):
            convert(model, ".", dry_run=dry_run)
    convert(model, "here")
    assert sorted(os.listdir(tmp_path)) == ["d", "e", "link", "model"] and os.listdir(tmp_path / "e") == ["here"]


def test_the_suffix_of_the_destination_names_the_format(model, tmp_path):
    made = {"a.safetensors": "safetensors", "a.PT": "torch", "a.pth": "torch", "a.bin": "torch", "a.ckpt": "torch",
            "a.gguf": "gguf", "a": "sealpoint", "step-1.5": "sealpoint", ".pt": "sealpoint"}  # fmt: skip
    for name, to in made.items():
        keys = {"general.architecture": ("string", "llama")} if to == "gguf" else None
        report = convert(model, tmp_path / name, gguf_metadata=keys)
        with open_source(tmp_path / name) as state:
            assert (report.format, state.format) == (to, to), name
    assert convert(model, tmp_path / "b.pt", to="sealpoint").format == "sealpoint"
    for name in ("a.onnx", "a.safetensors.index.json", "a.zarr/"):
        with pytest.raises(sealpoint.InvalidArgumentError, match="not an output format; expected one of"):
            convert(model, f"{tmp_path}/x{name}", dry_run=True)
    command = [sys.executable, "-m", "sealpoint", "convert", model, tmp_path / "c.safetensors", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["format"] == "safetensors"


# Runs each conversion in a process of its own, which is killed at one moment: at the first call of a function, or behind it.
KILLS = """
import os, signal, sys
from sealpoint.interop import _copy, _destination, convert

def kill(module, name, is_after, count):
    real = getattr(module, name)
    def call(*arguments, **options):
        nonlocal count
        count -= 1
        if count == 0 and not is_after:
            os.kill(os.getpid(), signal.SIGKILL)
        result = real(*arguments, **options)
        if count == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return result
    setattr(module, name, call)

MOMENTS = {
    "made": [(os, "mkdir", True, 1)],
    "locked": [(_destination, "_make_locked", True, 1)],
    "writing": [(os, "pwrite", True, 2), (_copy, "_add_tensor", True, 2)],
    "written": [(_copy, "sync_all", False, 1), (_copy, "commit", False, 1)],
    "committed": [(_copy, "commit", True, 1)],
    "whole": [(_destination, "publish", False, 1)],
    "published": [(_destination, "publish", True, 1)],
}
source, folder, to = sys.argv[1:]
for moment, kills in MOMENTS.items():
    child = os.fork()
    if child == 0:
        for one in kills:
            kill(*one)
        convert(source, os.path.join(folder, moment, "d"), to=to, threads=1)
        os._exit(0)
    print(moment, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
MOMENTS = ("made", "locked", "writing", "written", "committed", "whole", "published")


@pytest.mark.parametrize("to", FORMATS)
def test_a_killed_conversion_can_be_repeated(to, model, tmp_path):
    for moment in MOMENTS:
        (tmp_path / moment).mkdir()
    command = [sys.executable, "-c", KILLS, model, tmp_path, to]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    statuses = dict(line.split() for line in done.stdout.splitlines())
    expected = contents(model)[1]
    for moment in MOMENTS:
        folder = tmp_path / moment
        assert statuses[moment] == ("0" if moment == "committed" and to != "sealpoint" else "-9"), (moment, done)
        assert (folder / "d").exists() == (moment == "published" or statuses[moment] == "0"), moment
        for left in folder.rglob("*"):  # neither it nor what is in it passes for a result that it is not
            try:
                found = contents(left)[1]
            except sealpoint.Error:
                continue
            assert found.items() <= expected.items(), left
        try:
            convert(model, folder / "d", to=to, verify=True)
            assert moment not in ("published",) and statuses[moment] != "0"
        except sealpoint.AlreadyExistsError:
            assert moment == "published" or statuses[moment] == "0"
        assert os.listdir(folder) == ["d"], moment
        assert contents(folder / "d")[1] == expected


def test_a_conversion_that_runs_is_left_alone(model, tmp_path):
    """Another to the same destination may be first; then this one says so."""
    for to in FORMATS:
        calls = []

        def other(what, done, total, to=to, calls=calls):
            if not calls:
                calls.append(1)
                convert(model, tmp_path / to, to=to)

        with pytest.raises(sealpoint.AlreadyExistsError):
            convert(model, tmp_path / to, to=to, progress=other, threads=1)
        assert contents(tmp_path / to)[1] == contents(model)[1]
    assert sorted(os.listdir(tmp_path)) == sorted([*FORMATS, "model"])


def test_what_is_not_left_by_a_conversion_stays(model, tmp_path):
    others = ["d.partial", "d.partial-1234567", "d.partial-0123456g", "d.partial-01234567x", "e.partial-01234567"]
    for name in others:
        (tmp_path / name).mkdir()
    (tmp_path / "d.partial-00000000").write_text("mine")
    (tmp_path / "d.partial-00000001").symlink_to("model")
    (tmp_path / "d.partial-00000002").mkdir()
    (tmp_path / "d.partial-00000002/f").touch()
    convert(model, tmp_path / "d", to="hf")
    left = {*others, "model", "d", "d.partial-00000000", "d.partial-00000001"}
    assert set(os.listdir(tmp_path)) == left and sealpoint.verify(model).ok


def test_file_systems_without_locks(model, tmp_path, monkeypatch):
    """Then nobody can say whether a program still writes, and what is there stays."""
    def refuse(*_):
        raise OSError(95, "Operation not supported")

    (tmp_path / "d.partial-00000000").mkdir()
    monkeypatch.setattr(_destination.fcntl, "flock", refuse)
    convert(model, tmp_path / "d", to="dcp")
    assert sorted(os.listdir(tmp_path)) == ["d", "d.partial-00000000", "model"]


# A signal comes from the thread that copies, in the middle of its work.
SIGNALS = """
import os, signal, sys, time
from sealpoint.__main__ import main
from sealpoint.interop import _copy, _destination

number, sent, add = int(sys.argv.pop(1)), [], _copy.Work.add

def slow_add(self, count):
    if not sent:
        sent.append(1)
        os.kill(os.getpid(), number)
        time.sleep(0.3)
    add(self, count)

def remove(*arguments, **options):
    if number != signal.SIGINT:  # another one does not keep it from removing what it wrote
        os.kill(os.getpid(), number)
    rmtree(*arguments, **options)

_copy.Work.add = slow_add
rmtree, _destination.shutil.rmtree = _destination.shutil.rmtree, remove
sys.exit(main())
"""


@pytest.mark.parametrize("to", FORMATS)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_signals_end_it_cleanly(number, to, model, tmp_path):
    if number != signal.SIGTERM and to not in ("sealpoint", "torch"):
        return
    command = [sys.executable, "-c", SIGNALS, str(int(number)), "convert", model, tmp_path / "d", "--to", to]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    said = "ckpt convert: interrupted\n" if number == signal.SIGINT else f"ckpt convert: ended by {number.name}\n"
    assert (done.returncode, done.stdout, done.stderr) == (128 + number, "", said)
    assert os.listdir(tmp_path) == ["model"]


def test_a_signal_that_is_ignored_ends_nothing(model, tmp_path):
    command = [sys.executable, "-c", SIGNALS, str(int(signal.SIGHUP)), "convert", model, tmp_path / "d", "--json"]
    done = subprocess.run(["nohup", *command], capture_output=True, text=True, check=True, timeout=60)
    assert json.loads(done.stdout)["needed_bytes"] >= json.loads(done.stdout)["raw_bytes"]
    assert contents(tmp_path / "d")[1] == contents(model)[1]
