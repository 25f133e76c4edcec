# SPDX-License-Identifier: Apache-2.0
"""What is said of a path at which there is no checkpoint: what is there, and the command or call that reads it."""

import importlib.util
import os
import subprocess
import sys

import numpy
import pytest
import sealpoint
from conftest import blob_of
from sealpoint.interop import convert
from test_convert_hostile import LEGACY

FOREIGN = {
    "torch": "a file of torch.save",
    "safetensors": "a file of safetensors",
    "hf": "a directory of safetensors (Hugging Face)",
    "dcp": "a directory of torch.distributed.checkpoint",
    "megatron": "a directory of Megatron",
}


def openers():
    yield sealpoint.open
    yield lambda path: raise_first(sealpoint.verify(path).violations)
    if importlib.util.find_spec("torch") is not None:
        from sealpoint.torch import load, load_full

        yield lambda path: load({}, path)
        yield load_full


def raise_first(errors):
    raise errors[0]


def refused(path, *parts):
    for opener in openers():
        with pytest.raises((sealpoint.NotFoundError, sealpoint.NotACheckpointError)) as caught:
            opener(path)
        assert all(part in str(caught.value) for part in parts), str(caught.value)
        assert caught.value.rule.startswith("R-DIR-")


@pytest.mark.parametrize(("to", "what"), FOREIGN.items())
def test_other_formats(tmp_path, to, what):
    sealpoint.save({"w": numpy.ones(4, "f4")}, tmp_path / "c")
    path = tmp_path / "foreign"  # no extension tells
    convert(tmp_path / "c", path, to=to)
    refused(path, f"it is {what}; `ckpt convert {path} DST` converts it, `ckpt ls {path}` shows it (")
    listed = subprocess.run([sys.executable, "-m", "sealpoint", "ls", path], capture_output=True, text=True, check=True)
    assert what.removeprefix("a ") in listed.stdout


def test_old_files_of_torch(tmp_path):
    (tmp_path / "m.pt").write_bytes(LEGACY + b"...")
    refused(tmp_path / "m.pt", "it is a file of torch.save; `ckpt convert ")


def test_a_series(tmp_path):
    infos = [sealpoint.save({"w": b"x"}, tmp_path / "run", series=True, step=step) for step in (1, 2)]
    newest = os.path.basename(infos[1].directory)
    call = "sealpoint.Series(path).open_newest() opens it"
    refused(tmp_path / "run", f"it is a series; its newest checkpoint is {newest}; {call}")
    for info in infos:
        os.truncate(os.path.join(info.directory, "COMMIT"), 3)
    refused(tmp_path / "run", "it is a series, but none of its checkpoints can be opened")


def test_a_folder_of_checkpoints_of_other_programs(tmp_path):
    for number in (9, 10):
        (tmp_path / f"run/checkpoint-{number}").mkdir(parents=True)
        (tmp_path / f"run/checkpoint-{number}/model.safetensors").write_bytes(b"")
    refused(tmp_path / "run", "a folder of 2 checkpoints of other programs (checkpoint-9, checkpoint-10), "
            f"expected one of them, such as {tmp_path}/run/checkpoint-10")


def test_a_folder_of_files_of_torch(tmp_path):
    """A Trainer without safetensors leaves such a folder, and a training that stores a file per epoch."""
    (tmp_path / "run/logs").mkdir(parents=True)
    for name in ("notes.txt", "notes.bin"):
        (tmp_path / "run" / name).write_text("none")
    os.mkfifo(tmp_path / "run/pipe.pt")
    (tmp_path / "run/optimizer.pt").write_bytes(b"PK\x03\x04")
    refused(tmp_path / "run", f"a folder with a file of torch.save, expected that file: {tmp_path}/run/optimizer.pt")
    for name in ("a.ckpt", "b.pth", "model.bin"):
        (tmp_path / "run" / name).write_bytes(LEGACY)
    said = "a folder with 4 files of torch.save (a.ckpt, b.pth, model.bin and 1 more), expected one of them, if each"
    refused(tmp_path / "run", said)
    with pytest.raises(sealpoint.NotACheckpointError) as caught:
        convert(tmp_path / "run", tmp_path / "made")
    assert caught.value.message.startswith(said)


def test_a_file_given_for_a_series(tmp_path, saved):
    (tmp_path / "t.pt").write_bytes(b"PK\x03\x04")
    for path, said in (
        (tmp_path / "t.pt", f"it is a file of torch.save; `ckpt convert {tmp_path}/t.pt DST` converts it"),
        (saved / "COMMIT", f"it is a file of a checkpoint; pass its directory, {saved}"),
    ):
        series = sealpoint.Series(path)
        for call in (series.newest, series.open_newest, series.list):
            with pytest.raises(sealpoint.InvalidArgumentError) as caught:
                call()
            assert f"expected a directory of checkpoints; {said}" in str(caught.value)


def test_a_missing_path(tmp_path, monkeypatch, saved):
    said = f"there is no {tmp_path}/a/b/c: {tmp_path} exists, but has no entry a (openat: "
    refused(tmp_path / "a/b/c", said, "errno 2")
    refused(f"{saved}s", f"there is no {saved}s: ", f"has no entry checkpoints; did you mean {saved}?")
    refused(f"{saved}s/", f"did you mean {saved}?")
    monkeypatch.chdir(tmp_path)
    refused("nothing/c", "there is no nothing/c: the working directory has no entry nothing")
    (tmp_path / "dangling").symlink_to("nowhere")
    with pytest.raises(sealpoint.NotFoundError):
        sealpoint.open("dangling")


def test_a_file_of_a_checkpoint_and_other_files(saved, tmp_path):
    for path in (saved / "COMMIT", blob_of(saved)):
        refused(path, f"it is a file of a checkpoint; pass its directory, {saved} (")
    (tmp_path / "text").write_text("hello, this is none")
    refused(tmp_path / "text", "it is a file, but not a checkpoint of a known format")
    (tmp_path / "empty").mkdir()
    refused(tmp_path / "empty", "directory contains no Sealpoint files")


def test_errors_of_what_is_there_are_as_they_were(saved):
    with sealpoint.open(saved) as checkpoint, pytest.raises(sealpoint.NotFoundError) as caught:
        checkpoint["none"]
    assert "there is no" not in str(caught.value)
    error = sealpoint.NotFoundError("x", path=str(saved))
    again = sealpoint._errors.make_error("NotFound", "x", None, str(saved / "n"), None, None, None, None, None, False)
    twice = sealpoint._errors.make_error("NotFound", again.message, None, again.path, None, None, None, None, None, False)
    assert error.message == "x" and "there is no" in again.message and twice.message == again.message, "from another rank"
