# SPDX-License-Identifier: Apache-2.0
"""Folders as the Trainer, accelerate and Lightning leave them: all state goes in, and each file that does not is named."""

import json
import os
import random
import subprocess
import sys
import types

import numpy
import pytest

pytest.importorskip("torch", reason="torch is not installed: see scripts/python_env.sh")
library = pytest.importorskip("safetensors.torch", reason="safetensors is not installed")

import sealpoint  # noqa: E402
import sealpoint.torch as sp  # noqa: E402
import torch  # noqa: E402
import torch.distributed.checkpoint as dcp  # noqa: E402
from convert_states import contents, same  # noqa: E402
from sealpoint.interop import convert, open_source  # noqa: E402
from test_inspect_formats import check_same  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:torch.distributed is disabled", "ignore:.*TypedStorage")


class TrainingArguments:
    """Stands for transformers' class of this name, as the Trainer pickles it."""

    def __init__(self):
        self.learning_rate = 5e-5


def save_arguments(path, monkeypatch):
    module = types.ModuleType("transformers.training_args")
    monkeypatch.setitem(sys.modules, "transformers", types.ModuleType("transformers"))
    monkeypatch.setitem(sys.modules, "transformers.training_args", module)
    module.TrainingArguments = TrainingArguments
    monkeypatch.setattr(TrainingArguments, "__module__", module.__name__)
    torch.save(TrainingArguments(), path)


def trained():
    model = torch.nn.Linear(4, 3)
    optimizer = torch.optim.AdamW(model.parameters())
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (1 + step))
    model(torch.randn(5, 4)).sum().backward()
    optimizer.step()
    scheduler.step()
    return model, optimizer, scheduler


@pytest.fixture
def trainer(tmp_path, monkeypatch):
    """checkpoint-4 of the Trainer, and its state."""
    model, optimizer, scheduler = trained()
    folder = tmp_path / "checkpoint-4"
    folder.mkdir()
    library.save_file(model.state_dict(), folder / "model.safetensors", metadata={"format": "pt"})
    rng = {"python": random.getstate(), "numpy": numpy.random.get_state(), "cpu": torch.get_rng_state()}
    state = {
        "optimizer": optimizer.state_dict(), "scheduler": scheduler.state_dict(), "rng_state": rng,
        "scaler": torch.amp.GradScaler("cpu").state_dict(),
    }  # fmt: skip
    endings = {"rng_state": "pth"}
    for name, value in state.items():
        torch.save(value, folder / f"{name}.{endings.get(name, 'pt')}")
    progress = json.dumps({"global_step": 4, "log_history": [{"loss": float("nan")}]}, indent=2)
    (folder / "trainer_state.json").write_text(progress)
    for name in ("config.json", "generation_config.json", "tokenizer.json"):
        (folder / name).write_text('{"é": 1}' * 1000, encoding="utf-8")
    (folder / "tokenizer.model").write_bytes(b"\x0a\x0e\xff\0")
    save_arguments(folder / "training_args.bin", monkeypatch)
    return folder, {**model.state_dict(), **state, "trainer_state": progress}


@pytest.fixture
def accelerated(tmp_path):
    """The folder of Accelerator.save_state, of two optimizers on two ranks."""
    model, optimizer, scheduler = trained()
    folder = tmp_path / "accelerate"
    folder.mkdir()
    library.save_file(model.state_dict(), folder / "model.safetensors", metadata={"format": "pt"})
    rng = {
        "step": 3, "random_state": random.getstate(), "numpy_random_seed": numpy.random.get_state(),
        "torch_manual_seed": torch.get_rng_state(), "torch_cuda_manual_seed": [],
    }  # fmt: skip
    state = {
        "optimizer": optimizer.state_dict(), "optimizer_1": optimizer.state_dict(), "scheduler": scheduler.state_dict(),
        "random_states_0": rng, "random_states_1": rng, "custom_checkpoint_0": {"epoch": 2}, "dl_state_dict": {"a": 1},
    }  # fmt: skip
    for name, value in state.items():
        torch.save(value, folder / f"{name}.{'pkl' if name[0] in 'rc' else 'bin'}")
    return folder, {**model.state_dict(), **state}


def run(*arguments):
    command = [sys.executable, "-m", "sealpoint", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_folder_of_the_trainer(trainer, tmp_path):
    folder, state = trainer
    report = convert(folder, tmp_path / "made", verify=True)
    same(state, sp.load_full(tmp_path / "made"))
    described = {"config.json", "generation_config.json", "tokenizer.json", "tokenizer.model"}
    assert {entry.name for entry in report.left_out} == {*described, "training_args.bin"} and not report.is_whole
    assert [entry.name for entry in report.left_out if entry.may_hold_state] == ["training_args.bin"]
    done = run("convert", folder, tmp_path / "again")
    assert done.returncode == 6 and "LEFT OUT: training_args.bin" in done.stdout and "tokenizer.json" in done.stdout
    done = run("convert", folder, tmp_path / "json", "--json", "--drop", "training_args.bin")
    assert done.returncode == 0 and {load["name"] for load in json.loads(done.stdout)["left_out"]} == described
    assert json.loads(done.stdout)["dropped"] == ["training_args.bin"]
    for number, options in enumerate(({"drop_unknown": True}, {"match": ["weight", "bias"]})):
        assert convert(folder, tmp_path / f"whole{number}", **options).is_whole
    model = {name: state[name] for name in ("weight", "bias")}
    same(model, sp.load_full(tmp_path / "whole1"))
    convert(folder, tmp_path / "model", drop=["optimizer", "scheduler.*", "scaler.*", "rng_state.*", "trainer_state"])
    same(model, sp.load_full(tmp_path / "model"))


@pytest.mark.parametrize("to", ["torch", "dcp", "hf", "safetensors"])
def test_a_folder_of_the_trainer_in_other_formats(to, trainer, tmp_path):
    folder, state = trainer
    convert(folder, tmp_path / "there", to=to, verify=True)
    convert(tmp_path / "there", tmp_path / "made", verify=True)
    loaded = sp.load_full(tmp_path / "made")
    if to != "dcp":  # whose keys are strings
        same(state, loaded)
    moments = loaded["optimizer"]["state"]["0" if to == "dcp" else 0]["exp_avg"]
    assert torch.equal(moments, state["optimizer"]["state"][0]["exp_avg"])


def test_a_folder_of_accelerate(accelerated, tmp_path):
    folder, state = accelerated
    assert convert(folder, tmp_path / "made", verify=True).left_out == []
    same(state, sp.load_full(tmp_path / "made"))
    assert run("convert", folder, tmp_path / "again").returncode == 0
    optimizer = torch.optim.AdamW(torch.nn.Linear(4, 3).parameters())
    optimizer.load_state_dict(sp.load_full(tmp_path / "made")["optimizer"])
    same(state["optimizer"], optimizer.state_dict())


def test_a_folder_of_lightning(tmp_path):
    dcp.save({"w": torch.ones(2)}, checkpoint_id=tmp_path / "source", no_dist=True)
    torch.save({"epoch": 3, "loops": {"odd": TrainingArguments(), "n": 1}, "t": torch.ones(1)}, tmp_path / "source/meta.pt")
    (tmp_path / "source/__7_0.distcp").write_bytes(b"left over")
    report = convert(tmp_path / "source", tmp_path / "made")
    same({"w": torch.ones(2), "meta": {"epoch": 3, "loops": {"n": 1}, "t": torch.ones(1)}}, sp.load_full(tmp_path / "made"))
    assert [(entry.name, entry.may_hold_state) for entry in report.left_out] == [("__7_0.distcp", False), ("meta.loops.odd", True)]
    assert convert(tmp_path / "source", tmp_path / "less", drop=["meta.loops.odd"]).is_whole
    assert check_same(tmp_path / "source") is None


OTHERS = {
    "global_step4/mp_rank_00_model_states.pt": b"PK\3\4\0",
    "tf_model.h5": b"\x89HDF\r\n\x1a\n", "flax_model.msgpack": b"\x80\0",
    "pytorch_model.bin": b"PK\3\4\0", "consolidated.00.pth": b"PK\3\4\0",
    "legacy.bin": b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9 ",
    "optimizer.npz": b"PK\3\4\0", "unnamed": b"\0\1",
}  # fmt: skip
NO_STATE = {"vocab.txt": b"a\nb", "README.md": "é".encode() * 5000, "empty": b"", ".gitattributes": b"x", ".cache/x": b"\0"}


@pytest.mark.parametrize("format", ["hf", "dcp", "megatron"])
@pytest.mark.parametrize("names", [OTHERS, NO_STATE], ids=["others", "no_state"])
def test_no_file_of_any_folder_is_lost_silently(names, format, unpack, tmp_path):
    if format == "hf":
        sealpoint.save({"w": numpy.ones(2, "f4")}, tmp_path / "c")
        convert(tmp_path / "c", tmp_path / "source", to="hf")
        source = tmp_path / "source"
    else:
        source = unpack("dcp" if format == "dcp" else "megatron_0.16.1")
    before = convert(source, tmp_path / "before")
    assert before.is_whole
    for name, data in names.items():
        (source / name).parent.mkdir(exist_ok=True)
        (source / name).write_bytes(data)
    os.symlink("nowhere", source / "broken")
    os.mkfifo(source / "pipe")
    report = convert(source, tmp_path / "made", drop=["broken", "pipe"])
    assert {entry.name for entry in report.left_out} - {entry.name for entry in before.left_out} == {
        name.split("/")[0] for name in names
    }
    assert report.is_whole == (names is NO_STATE)
    assert {entry.name for entry in report.left_out if entry.may_hold_state} == (
        {name.split("/")[0] for name in OTHERS} if names is OTHERS else set()
    )
    assert contents(tmp_path / "made") == contents(tmp_path / "before")
    os.unlink(source / "pipe")
    assert check_same(source) is None
    done = run("convert", source, tmp_path / "whole", "--dry-run", "--drop", "broken")
    assert done.returncode == (0 if names is NO_STATE else 6), done
    for name in names:
        assert name.split("/")[0] in done.stdout


def test_files_of_torch_before_1_6_beside_the_weights(accelerated, tmp_path):
    folder, state = accelerated
    torch.save(state["optimizer"], folder / "optimizer.bin", _use_new_zipfile_serialization=False)
    assert convert(folder, tmp_path / "c").is_whole
    same(state, sp.load_full(tmp_path / "c"))
    assert check_same(folder) is None


def test_damaged_files_beside_are_errors(trainer, tmp_path):
    folder, _ = trainer
    data = (folder / "optimizer.pt").read_bytes()
    (folder / "optimizer.pt").write_bytes(data[: len(data) // 2])
    with pytest.raises(sealpoint.Error) as caught:
        convert(folder, tmp_path / "made")
    assert caught.value.code in ("Corrupt", "Incomplete") and caught.value.path == str(folder / "optimizer.pt")
    assert check_same(folder) is not None
    convert(folder, tmp_path / "made", drop=["optimizer", "training_args.bin"])


def test_names_that_are_taken(tmp_path):
    (tmp_path / "a").mkdir()
    library.save_file({"optimizer": torch.ones(1), "$": torch.ones(1)}, tmp_path / "a/model.safetensors")
    for name in ("optimizer.pt", "optimizer.bin", "$.pt", "rest.pt", "rest.bin"):
        torch.save({"n": name}, tmp_path / "a" / name)
    with open_source(tmp_path / "a") as state:
        found = {key: value["n"] for key, value in state.tree["items"] if value.get("$") != "tensor"}
    assert found == {
        "$.pt": "$.pt", "optimizer.bin": "optimizer.bin", "optimizer.pt": "optimizer.pt",
        "rest": "rest.bin", "rest.pt": "rest.pt"
    }  # fmt: skip
    assert check_same(tmp_path / "a") is None


def test_ckpt_ls_shows_the_same(trainer, accelerated):
    for folder in (trainer[0], accelerated[0]):
        assert check_same(folder) is None
        (folder / "trainer_state.json").write_bytes(b"\xff no text")
        assert check_same(folder) is None
        torch.save({"a": [torch.ones(2), TrainingArguments()], "b": torch.ones(3)}, folder / "meta.pt")
        torch.save(torch.ones(2), folder / "tensor.pt")
        torch.save({"l": torch.ones(1)}, folder / "legacy.bin", _use_new_zipfile_serialization=False)
        torch.save({"s": torch.ones(2).to_sparse()}, folder / "sparse.pt")
        assert check_same(folder) is None
