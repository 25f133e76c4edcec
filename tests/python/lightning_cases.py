# SPDX-License-Identifier: Apache-2.0
"""Lightning on two ranks, and in one process; run by test_lightning.py."""

import concurrent.futures
import os
import pathlib
import threading
import time
import warnings
from unittest import mock

import framework_stubs
import torch

framework_stubs.install("yaml", "aiohttp")
import lightning.pytorch as pl  # noqa: E402
import sealpoint  # noqa: E402
import sealpoint.lightning  # noqa: E402
import torch._dynamo  # noqa: E402  # as optimizers do when they step: once, before ranks are forked
from lightning.pytorch.callbacks import ModelCheckpoint  # noqa: E402
from lightning.pytorch.plugins.io import AsyncCheckpointIO  # noqa: E402
from sealpoint.lightning import SealpointCheckpointIO  # noqa: E402
from torch_states import assert_same  # noqa: E402

warnings.filterwarnings("ignore", module="lightning")
warnings.filterwarnings("ignore", message=".*(pynvml|LeafSpec|barrier).*")


class Module(pl.LightningModule):
    def __init__(self, width=4):
        super().__init__()
        self.save_hyperparameters()
        torch.manual_seed(1)
        self.layer = torch.nn.Linear(width, 1)
        self.losses = {}

    def training_step(self, batch, _):
        loss = self.layer(batch).square().mean()
        self.losses[self.global_step] = loss.item()
        self.log("loss", loss, sync_dist=True)
        return loss

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=0.1)
        return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)]

    def train_dataloader(self):
        return torch.utils.data.DataLoader(torch.ones(8, 4), batch_size=1)  # it begins anew when a run resumes


def trainer(folder, plugin, steps, **options):
    keep = ModelCheckpoint(folder, filename="{step}", monitor="step", mode="max", every_n_train_steps=2, save_top_k=1,
                           save_last=True)
    return pl.Trainer(
        default_root_dir=folder, max_steps=steps, plugins=[plugin], callbacks=[keep], logger=False, accelerator="cpu",
        enable_progress_bar=False, enable_model_summary=False, use_distributed_sampler=False, **options)


def fit(folder, plugin, steps, ckpt_path=None, **options):
    module, made = Module(), trainer(folder, plugin, steps, **options)
    made.fit(module, ckpt_path=ckpt_path)
    made.strategy.teardown()
    return module


def case_ranks_of_ddp(job):
    """One rank saves, all load; a run resumes with the same losses."""
    os.environ.update(RANK=str(job.rank), LOCAL_RANK=str(job.rank), WORLD_SIZE=str(job.size), MASTER_ADDR="localhost")
    of_two = {"strategy": "ddp", "devices": job.size}
    whole = fit(job.path("whole"), SealpointCheckpointIO(), 6, **of_two)
    before = fit(job.path("run"), SealpointCheckpointIO(codec="zstd"), 4, **of_two)
    last = job.path("run/last.ckpt")
    with sealpoint.open(last) as checkpoint:
        assert checkpoint.step == 4
    assert sealpoint.verify(last).ok
    after = fit(job.path("run"), SealpointCheckpointIO(), 6, ckpt_path=last, **of_two)
    assert sorted(after.losses) == [4, 5]
    assert before.losses | after.losses == whole.losses
    assert_same(after.state_dict(), whole.state_dict())
    assert len([path for path in job.path("run").iterdir() if not path.name.startswith("last")]) == 1, "save_top_k"


def alone_with_a_thread_of_lightning(folder):
    fit(folder / "run", AsyncCheckpointIO(SealpointCheckpointIO()), 4)
    again = fit(folder / "run", SealpointCheckpointIO(), 6, ckpt_path=folder / "run/last.ckpt")
    assert sorted(again.losses) == [4, 5]
    names = sorted(path.name for path in (folder / "run").iterdir())
    assert set(names) >= {"last.ckpt", "step=6.ckpt"}, names
    assert all(sealpoint.verify(folder / "run" / name).ok for name in names)


def alone_what_is_being_saved_is_deleted_behind_it(folder):
    plugin, path = SealpointCheckpointIO(), folder / "c"
    begun, real = threading.Event(), sealpoint.lightning.save

    def slow(*arguments, **options):
        begun.set()
        time.sleep(0.2)
        return real(*arguments, **options)

    with mock.patch.object(sealpoint.lightning, "save", slow), concurrent.futures.ThreadPoolExecutor() as pool:
        saving = pool.submit(plugin.save_checkpoint, {"w": torch.ones(2)}, path)
        begun.wait()
        plugin.remove_checkpoint(path)
        saving.result()
    assert os.listdir(folder) == []


def fails(kind, call, message):
    try:
        call()
    except kind as error:
        assert message in str(error), error
    else:
        raise AssertionError(f"no {kind.__name__}")


def alone_the_interface(folder):
    plugin, path = SealpointCheckpointIO(), folder / "a/b.ckpt"
    state = {"state_dict": {"w": torch.arange(6.0)}, "global_step": 3, "callbacks": {"K{'a': 1}": {"best": None, 3: "x"}}}
    plugin.save_checkpoint(state, path)
    loaded = plugin.load_checkpoint(path, map_location="cpu", weights_only=True)
    assert torch.equal(loaded["state_dict"].pop("w"), torch.arange(6.0))
    assert loaded == {**state, "state_dict": {}}
    first = sealpoint.open(path).attempt
    plugin.save_checkpoint(state, str(path))
    assert sealpoint.open(path).attempt != first
    assert os.listdir(path.parent) == ["b.ckpt"]
    strict = SealpointCheckpointIO(replace=False)
    fails(sealpoint.AlreadyExistsError, lambda: strict.save_checkpoint(state, path), "is there already")
    (folder / "foreign").mkdir()
    (folder / "foreign/file").touch()
    fails(sealpoint.AlreadyExistsError, lambda: plugin.save_checkpoint(state, folder / "foreign"), "is there already")
    assert (folder / "foreign/file").exists()
    fails(sealpoint.UnsupportedError, lambda: plugin.save_checkpoint({"f": print}, folder / "c"), "")
    expected = "path is a URL, expected a path of a file system"
    fails(sealpoint.UnsupportedError, lambda: plugin.save_checkpoint(state, "s3://bucket/c"), expected)
    fails(sealpoint.InvalidArgumentError, lambda: plugin.save_checkpoint(state, folder / "c", {"a": 1}), "storage_options")
    fails(sealpoint.UnsupportedError, lambda: plugin.load_checkpoint(path, map_location=lambda one, _: one), "a device")
    assert sorted(os.listdir(folder)) == ["a", "foreign"]


def alone_files_of_torch(folder):
    """What a training saved before it used the plugin."""
    plugin, path = SealpointCheckpointIO(), pathlib.Path(folder, "old.ckpt")
    torch.save({"state_dict": {"w": torch.ones(2)}}, path)
    assert torch.equal(plugin.load_checkpoint(path)["state_dict"]["w"], torch.ones(2))
    plugin.save_checkpoint({"state_dict": {"w": torch.zeros(2)}}, path)
    assert path.is_dir()
    assert torch.equal(plugin.load_checkpoint(path)["state_dict"]["w"], torch.zeros(2))
    os.symlink("old.ckpt", folder / "last.ckpt")
    assert torch.equal(plugin.load_checkpoint(folder / "last.ckpt")["state_dict"]["w"], torch.zeros(2))
    plugin.remove_checkpoint(folder / "last.ckpt")
    assert path.is_dir()
    plugin.remove_checkpoint(path)
    plugin.remove_checkpoint(path)
    assert os.listdir(folder) == []
