# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of four ranks, as DCP and Megatron made them (fixtures/make.py), and what other versions write; by night."""

import importlib.util
import io
import json
import pathlib
import pickle

import pytest

pytest.importorskip("torch", reason="torch is not installed: see scripts/python_env.sh")

import sealpoint  # noqa: E402
import sealpoint.torch as sp  # noqa: E402
import torch  # noqa: E402
import torch.distributed.checkpoint as dcp  # noqa: E402
from convert_states import contents, same  # noqa: E402
from sealpoint.interop import convert, open_source  # noqa: E402
from test_convert_fixtures import MEGATRON, changed  # noqa: E402
from torch.distributed.checkpoint import FileSystemReader, metadata  # noqa: E402
from torch.distributed.checkpoint.format_utils import dcp_to_torch_save  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:torch.distributed is disabled")
FIXTURES = pathlib.Path(__file__).parent / "fixtures"
_spec = importlib.util.spec_from_file_location("make_fixtures", FIXTURES / "make.py")
make = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(make)


def test_they_stay_small():
    assert sum(path.stat().st_size for path in FIXTURES.iterdir()) < 600_000


@pytest.mark.parametrize("name", ["dcp", "dcp_per_rank"])
def test_parts_of_ranks(name, unpack, tmp_path):
    source = unpack(name)
    expected = {"model": make.expected(), "lr": 0.1, "groups": [{"betas": (0.9, 0.99), "name": "a.b"}]}
    with open_source(source) as state:
        assert len(state.tensors["model.cells"].boxes) == 4
    convert(source, tmp_path / "c", verify=True)
    same(expected, sp.load_full(tmp_path / "c"))
    assert len(sealpoint.open(tmp_path / "c").shards("model.cells")) == 4, "regions are kept"
    for before, to in ((source, "hf"), (source, "dcp"), (tmp_path / "c", "torch")):
        convert(before, tmp_path / f"made-{to}", to=to, verify=True)
    same(expected, torch.load(tmp_path / "made-torch"))
    dcp_to_torch_save(tmp_path / "made-dcp", tmp_path / "t")
    same(expected, torch.load(tmp_path / "t"))
    loaded = {"model": {key: torch.zeros_like(value) for key, value in make.expected().items()}, "lr": 0.0}
    dcp.load(loaded, checkpoint_id=tmp_path / "made-dcp", no_dist=True)
    same({"model": make.expected(), "lr": 0.1}, loaded)
    paths = FileSystemReader(tmp_path / "made-dcp").read_metadata().planner_data
    assert paths["groups.0.name"] == ("groups", 0, "name") and paths["model.rows"] == ("model", "rows")


def test_parts_of_ranks_in_safetensors(unpack, tmp_path):
    convert(unpack("hf_sharded"), tmp_path / "c", verify=True)
    same({name: make.expected()[name] for name in ("rows", "cells", "uneven")}, sp.load_full(tmp_path / "c"))


def test_what_each_rank_has_of_its_own(unpack, tmp_path):
    source = unpack("dcp_per_rank")
    for rank, lr in ((1, 0.5), (3, 0.25)):
        file = source / f"__{rank}_0.distcp"
        index = pickle.loads((source / f"__{rank}.metadata").read_bytes())
        (place,) = [info for key, info in index.storage_data.items() if key.fqn == "lr"]
        torch.save(lr, item := io.BytesIO())
        good = file.read_bytes()
        file.write_bytes(good[: place.offset] + item.getvalue() + good[place.offset + place.length :])
    with pytest.raises(sealpoint.MismatchError, match="if it differs by rank"):
        open_source(source)
    convert(source, tmp_path / "c", per_rank=["lr", "model.plain"], verify=True)
    loaded = sp.load_full(tmp_path / "c")
    assert loaded["lr"] == [0.1, 0.5, 0.1, 0.25]
    same(loaded["model"]["plain"], [make.expected()["plain"]] * 4)
    for to in ("safetensors", "hf"):
        convert(tmp_path / "c", tmp_path / to, to=to, verify=True)
        convert(tmp_path / to, tmp_path / f"back-{to}", verify=True)
        assert contents(tmp_path / f"back-{to}") == contents(tmp_path / "c")
        assert sp.load_full(tmp_path / f"back-{to}")["lr"] == [0.1, 0.5, 0.1, 0.25]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("sealpoint.interop._source.State.all_objects", property(lambda self: self.objects))
        with pytest.raises(sealpoint.MismatchError, match="values of ranks in the destination differ"):
            convert(tmp_path / "c", tmp_path / "lossy", drop=["model.plain"], verify=True)
    with pytest.raises(sealpoint.UnsupportedError, match="per-rank value") as caught:
        convert(tmp_path / "c", tmp_path / "d", to="dcp")
    assert caught.value.object in ("lr", "model.plain")
    report = convert(tmp_path / "c", tmp_path / "d", to="dcp", drop=["lr", "model.plain"], verify=True)
    assert (sorted(report.dropped), report.tensor_count) == (["lr", "model.plain"], 5)
    convert(tmp_path / "c", tmp_path / "e", match=["model.*"], verify=True)
    assert len(sp.load_full(tmp_path / "e")["model"]["plain"]) == 4
    with pytest.raises(sealpoint.UnsupportedError, match="cannot be renamed"):
        convert(tmp_path / "c", tmp_path / "f", rename=[("lr", "rate")])
    with pytest.raises(sealpoint.CorruptError, match="fit together: .* elements of .* are stored"):
        open_source(source, per_rank=["model.rows"])
    (source / "__2.metadata").unlink()
    with pytest.raises(sealpoint.MismatchError, match="the rank has no value of its own"):
        open_source(source, per_rank=["lr"])


def test_damage_of_dcp(unpack, tmp_path):
    source = unpack("dcp")
    distcp = source / "__1_0.distcp"
    good = distcp.read_bytes()
    part = make.expected()["rows"][2:4].numpy().tobytes()
    at = good.index(part)
    distcp.write_bytes(good[:at] + b"\x01" + good[at + 1 :])
    with pytest.raises(sealpoint.CorruptError, match=r"CRC-32 of 'archive/data/0' is [0-9a-f]{8}, expected") as caught:
        convert(source, tmp_path / "c")
    assert (caught.value.tensor, caught.value.path, caught.value.offset) == ("model.rows", str(distcp), at)
    distcp.write_bytes(good[:-10])
    with pytest.raises(sealpoint.IncompleteError, match=f"has {len(good) - 10} bytes, expected {len(good)}"):
        contents(source)
    distcp.unlink()
    with pytest.raises(sealpoint.NotFoundError) as caught:
        contents(source)
    assert caught.value.path == str(distcp) and not (tmp_path / "c").exists()


def test_properties_of_newer_versions(unpack, monkeypatch):
    """torch 2.15 adds strides to the five members."""
    source = unpack("dcp")
    before = contents(source)
    state_of = metadata.TensorProperties.__getstate__
    monkeypatch.setattr(metadata.TensorProperties, "__getstate__", lambda self: (*state_of(self), (8, 1)))
    changed(source, lambda stored: None)
    monkeypatch.undo()
    with pytest.raises(ValueError, match="too many values"):
        pickle.loads((source / ".metadata").read_bytes())
    assert contents(source) == before


@pytest.mark.parametrize("name", MEGATRON)
def test_megatron(name, unpack, tmp_path):
    source = unpack(name)
    with open_source(source) as state:
        assert (state.format, state.step, len(state.tensors["decoder.layers.mlp.weight"].boxes)) == ("megatron", 7, 4)
    convert(source, tmp_path / "c", verify=True)
    checkpoint = sp.load_full(tmp_path / "c")
    same(make.expected_of_megatron(), {key: child for key, child in checkpoint.items() if "shard_" not in key})
    for rank in range(4):
        value = checkpoint[f"rng_state/shard_{rank // 2}.{rank % 2}_2.2"]
        same(value, [{"torch": torch.arange(4) + rank, "np": (1, "x")}])
    assert checkpoint["decoder._extra_state/shard_1_2"].read() == b"fp8 1"
    common = checkpoint["common_state/shard_0_1"]
    assert (common["iteration"], common["args"].params_dtype, common["args"].backend.members["value"]) == (
        7,
        torch.bfloat16,
        4,
    )
    assert json.loads((tmp_path / "c/metadata.json").read_text()) == {
        "sharded_backend": "sealpoint",
        "sharded_backend_version": 1,
    }
    assert sealpoint.open(tmp_path / "c").step == 7


@pytest.mark.parametrize("name", MEGATRON)
def test_megatron_and_back(name, unpack, tmp_path):
    """What is exported has the keys, the tensors and the common state of the original, as torch reads them."""
    source = unpack(name)
    convert(source, tmp_path / "c")
    convert(tmp_path / "c", tmp_path / "m", to="megatron", verify=True)
    assert contents(tmp_path / "m") == contents(source)
    stored = [FileSystemReader(path).read_metadata() for path in (source, tmp_path / "m")]
    keys = [set(item.state_dict_metadata) - {"common_state/shard_0_1"} for item in stored]
    assert keys[0] == keys[1] and stored[1].planner_data is None
    marker = json.loads((tmp_path / "m/metadata.json").read_text())
    assert (marker["sharded_backend"], marker["common_backend"]) == ("torch_dist", "torch")
    with open_source(tmp_path / "m") as state:
        assert state.step == 7 and {file.name for file in state.files} >= {"common.pt", "metadata.json", ".metadata"}
    loaded = {"decoder.fc1.weight": torch.zeros(6, 4)}
    dcp.load(loaded, checkpoint_id=tmp_path / "m", no_dist=True)
    same(loaded["decoder.fc1.weight"], make.expected_of_megatron()["decoder.fc1.weight"])


def test_folders_of_iterations(unpack, tmp_path):
    source = unpack(MEGATRON[0])
    (tmp_path / "run").mkdir()
    source.rename(tmp_path / "run/iter_0000007")
    (tmp_path / "run/latest_checkpointed_iteration.txt").write_text("7\n")
    with open_source(tmp_path / "run") as state:
        assert state.notes == ["the newest iteration: iter_0000007"] and state.step == 7


def test_states_that_are_none_of_megatron(tmp_path):
    torch.save({"w": torch.ones(2), "lr": 0.1}, tmp_path / "a")
    with pytest.raises(sealpoint.UnsupportedError, match="neither a tensor nor a per-rank object") as caught:
        convert(tmp_path / "a", tmp_path / "m", to="megatron")
    assert caught.value.object == "lr" and not (tmp_path / "m").exists()
    convert(tmp_path / "a", tmp_path / "m", to="megatron", tensors_only=True)


@pytest.mark.parametrize("item_bytes", [1 << 20, 24, 16, 8])
def test_flattened_optimizer_states_of_old_megatron(item_bytes, tmp_path, monkeypatch):
    """A tensor of 4 x 6 as a grid of 2 x 2 cells, each flattened, of which ranks store runs."""
    whole = torch.arange(24.0).reshape(4, 6)
    flattened = whole.reshape(2, 2, 2, 3).transpose(1, 2).reshape(2, 2, 6).contiguous()
    torch.save({"optimizer.state.exp_avg.w": flattened, "w": whole}, tmp_path / "a")
    monkeypatch.setattr("sealpoint.interop._torch_write.ITEM_BYTES_MAX", item_bytes)
    convert(tmp_path / "a", tmp_path / "m", to="megatron")

    def add(stored):
        stored.mcore_data = {"optimizer.state.exp_avg.w": {"nd_reformulated_orig_global_shape": (4, 6)}, "w": {}}

    changed(tmp_path / "m", add)
    if item_bytes > 24:  # a part of several cells is nothing that Megatron wrote
        with pytest.raises(sealpoint.CorruptError, match="expected a grid of equal parts of"):
            contents(tmp_path / "m")
        return
    monkeypatch.setattr("sealpoint.interop._copy._SLAB_BYTES_MAX", 20)
    monkeypatch.setattr("sealpoint.interop._copy._SLAB_BYTES_MIN", 20)
    convert(tmp_path / "m", tmp_path / "c", verify=True)
    same(
        {"optimizer.state.exp_avg.w": whole, "w": whole},
        {k: v for k, v in sp.load_full(tmp_path / "c").items() if "/" not in k},
    )


def test_transposed_items_with_prepended_axes(tmp_path):
    """Megatron prepends axes of one element to what it stores."""
    whole = torch.arange(12.0).reshape(4, 3)
    dcp.save({"w": whole.t()}, checkpoint_id=tmp_path / "d", no_dist=True)

    def prepend(stored):
        tensor = stored.state_dict_metadata["w"]
        tensor.size = torch.Size([1, 3, 4])
        tensor.chunks[0].offsets, tensor.chunks[0].sizes = torch.Size([0, 0, 0]), torch.Size([3, 4])
        stored.storage_data = {metadata.MetadataIndex("w", (0, 0, 0)): next(iter(stored.storage_data.values()))}

    changed(tmp_path / "d", prepend)
    convert(tmp_path / "d", tmp_path / "c", verify=True)
    same(sp.load_full(tmp_path / "c")["w"], whole.t().reshape(1, 3, 4))


def test_what_files_are_for(unpack):
    source = unpack("dcp")
    for name in (".metadata.tmp", "__9_0.distcp", "notes.txt"):
        (source / name).write_text("x")
    (source / "__3_0.distcp").write_bytes(b"")
    with open_source(source) as state:
        meanings = {file.name: file.meaning for file in state.files}
    assert meanings[".metadata.tmp"] == "leftover of a save" and meanings["notes.txt"].startswith("not part")
    assert meanings["__9_0.distcp"] == "leftover: not named by the index" and meanings["__3_0.distcp"].startswith("MISSING")


def test_what_torch_reads_of_a_directory_of_safetensors(unpack, tmp_path):
    """With its own reader for Hugging Face."""
    hf_storage = pytest.importorskip("torch.distributed.checkpoint.hf_storage", reason="this torch has no such reader")
    convert(unpack("dcp"), tmp_path / "hf", to="hf", match=["model.*"], rename=[("model.*", "*")], max_shard_bytes=200)
    loaded = {name: torch.zeros_like(value) for name, value in make.expected().items()}
    dcp.load(loaded, storage_reader=hf_storage.HuggingFaceStorageReader(tmp_path / "hf"), no_dist=True)
    same(loaded, make.expected())
