# SPDX-License-Identifier: Apache-2.0
"""Lightning on two ranks, and in one process; run by test_lightning.py."""

import concurrent.futures
import io
import os
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
from sealpoint.torch import save  # noqa: E402
from store_paths import names  # noqa: E402
from torch_states import assert_same  # noqa: E402

if "SEALPOINT_PLACE" in os.environ:  # Lightning looks for checkpoints by fsspec
    from obstore.fsspec import register

    register("s3")
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


def case_ranks_of_ddp(job, at):
    """One rank saves, all load; a run resumes with the same losses."""
    os.environ.update(RANK=str(job.rank), LOCAL_RANK=str(job.rank), WORLD_SIZE=str(job.size), MASTER_ADDR="localhost")
    of_two = {"strategy": "ddp", "devices": job.size}
    whole = fit(str(at("whole")), SealpointCheckpointIO(), 6, **of_two)
    before = fit(str(at("run")), SealpointCheckpointIO(codec="zstd"), 4, **of_two)
    last = at("run/last.ckpt")
    with sealpoint.open(last) as checkpoint:
        assert checkpoint.step == 4
    assert sealpoint.verify(last).ok
    after = fit(str(at("run")), SealpointCheckpointIO(), 6, ckpt_path=str(last), **of_two)
    assert sorted(after.losses) == [4, 5]
    assert before.losses | after.losses == whole.losses
    assert_same(after.state_dict(), whole.state_dict())
    assert [name for name in names(at("run")) if name != "last.ckpt"] == ["step=6.ckpt"], "save_top_k"


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


def alone_the_interface(folder, at):
    plugin, path = SealpointCheckpointIO(), at("a/b.ckpt")
    state = {"state_dict": {"w": torch.arange(6.0)}, "global_step": 3, "callbacks": {"K{'a': 1}": {"best": None, 3: "x"}}}
    plugin.save_checkpoint(state, path)
    loaded = plugin.load_checkpoint(path, map_location="cpu", weights_only=True)
    assert torch.equal(loaded["state_dict"].pop("w"), torch.arange(6.0))
    assert loaded == {**state, "state_dict": {}}
    first = sealpoint.open(path).attempt
    plugin.save_checkpoint(state, str(path))
    assert sealpoint.open(path).attempt != first
    assert names(path.parent) == ["b.ckpt"]
    strict = SealpointCheckpointIO(replace=False)
    fails(sealpoint.AlreadyExistsError, lambda: strict.save_checkpoint(state, path), "is there already")
    at("foreign").mkdir()
    at("foreign/file").touch()
    fails(sealpoint.AlreadyExistsError, lambda: plugin.save_checkpoint(state, at("foreign")), "is there already")
    assert at("foreign/file").exists()
    fails(sealpoint.UnsupportedError, lambda: plugin.save_checkpoint({"f": print}, at("c")), "")
    with mock.patch.object(sealpoint.lightning, "save", side_effect=[sealpoint.IoError("killed here")]):
        fails(sealpoint.IoError, lambda: plugin.save_checkpoint(state, path), "killed here")
    assert sealpoint.verify(path).ok, "the old one stays until the new one is durable"
    fails(sealpoint.InvalidArgumentError, lambda: plugin.save_checkpoint(state, at("c"), {"a": 1}), "storage_options")
    fails(sealpoint.UnsupportedError, lambda: plugin.load_checkpoint(path, map_location=lambda one, _: one), "a device")
    assert sorted(names(at(""))) == ["a", "foreign"]
    at("a/b.ckpt/KEEP").touch()
    fails(sealpoint.AlreadyExistsError, lambda: plugin.save_checkpoint(state, path), "KEEP")
    plugin.remove_checkpoint(path)
    assert sealpoint.verify(path).ok


def alone_a_frozen_base_is_linked(folder, at):
    """From what was last saved, under another name or the same, or loaded."""
    infos = []

    def noting(*arguments, **options):
        infos.append(save(*arguments, **options))
        return infos[-1]

    state = {"state_dict": {"base.w": torch.arange(1e5), "adapter": torch.ones(3)}, "global_step": 3}
    with mock.patch.object(sealpoint.lightning, "save", noting):
        plugin = SealpointCheckpointIO(frozen=["state_dict.base.*"])
        for name in ("first.ckpt", "last.ckpt", "last.ckpt"):
            plugin.save_checkpoint(state, at(name))
        again = SealpointCheckpointIO(frozen=["state_dict.base.*"])
        assert torch.equal(again.load_checkpoint(at("last.ckpt"))["state_dict"]["base.w"], torch.arange(1e5))
        again.save_checkpoint(state, at("next.ckpt"))
    assert [info.reused_bytes > 0 for info in infos] == [False] + [True] * (len(infos) - 1)
    assert all(sealpoint.verify(at(name)).ok for name in ("first.ckpt", "last.ckpt", "next.ckpt"))
    fails(sealpoint.InvalidArgumentError, lambda: SealpointCheckpointIO(frozen="base"), "or 'learned'")


def alone_files_of_torch(folder, at):
    """What a training saved before it used the plugin."""
    plugin, path, content = SealpointCheckpointIO(), at("old.ckpt"), io.BytesIO()
    torch.save({"state_dict": {"w": torch.ones(2)}}, content)
    path.write_bytes(content.getvalue())
    assert torch.equal(plugin.load_checkpoint(path)["state_dict"]["w"], torch.ones(2))
    plugin.save_checkpoint({"state_dict": {"w": torch.zeros(2)}}, path)
    assert path.is_dir()
    assert torch.equal(plugin.load_checkpoint(path)["state_dict"]["w"], torch.zeros(2))
    if isinstance(path, os.PathLike) and os.path.isdir(path):
        os.symlink("old.ckpt", folder / "last.ckpt")
        assert torch.equal(plugin.load_checkpoint(folder / "last.ckpt")["state_dict"]["w"], torch.zeros(2))
        plugin.remove_checkpoint(folder / "last.ckpt")
    assert path.is_dir()
    plugin.remove_checkpoint(path)
    plugin.remove_checkpoint(path)
    assert names(at("")) == []
