# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of four ranks, as DCP and Megatron made them: what disagrees or is malformed is refused by name."""

import enum
import pickle
import shutil

import pytest

pytest.importorskip("torch", reason="torch is not installed: see scripts/python_env.sh")

import sealpoint  # noqa: E402
import sealpoint.torch as sp  # noqa: E402
import torch  # noqa: E402
import torch.distributed.checkpoint as dcp  # noqa: E402
from convert_states import contents  # noqa: E402
from sealpoint.interop import convert, open_source  # noqa: E402
from torch.distributed.checkpoint import metadata  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:torch.distributed is disabled")
MEGATRON = ["megatron_0.16.1", "megatron_0.19.2"]


def changed(source, change):
    """Rewrites .metadata, as torch itself reads and writes it."""
    stored = pickle.loads((source / ".metadata").read_bytes())
    (source / ".metadata").write_bytes(pickle.dumps(change(stored) or stored, 4))


def test_metadata_that_does_not_fit_the_items(unpack, tmp_path):
    def shape(stored):
        stored.state_dict_metadata["model.plain"].size = torch.Size([4])
        stored.state_dict_metadata["model.plain"].chunks[0].sizes = torch.Size([4])

    def dtype(stored):
        stored.state_dict_metadata["model.rows"].properties.dtype = torch.int32

    def hole(stored):
        del stored.state_dict_metadata["model.rows"].chunks[1]

    def outside(stored):
        stored.storage_data = {key: info for key, info in stored.storage_data.items() if key.fqn != "lr"}

    def transformed(stored):
        for info in stored.storage_data.values():
            info.transform_descriptors = ["stream.zstd/1"]

    def object_as_tensor(stored):
        place = next(info for key, info in stored.storage_data.items() if key.fqn == "lr")
        key = metadata.MetadataIndex("model.plain", (0,))
        stored.storage_data[key] = place

    def paths(stored):
        stored.planner_data["lr"] = ("model",)

    cases = [
        (paths, "Corrupt", "both a value and children|duplicate path", None),
        (shape, "Corrupt", r"item is bool \[3\], the metadata says bool \[4\]", "model.plain"),
        (dtype, "Corrupt", r"item is f32 \[2, 8\], the metadata says i32 \[2, 8\]", "model.rows"),
        (hole, "Corrupt", "32 elements of 48 are stored", "model.rows"),
        (outside, "Corrupt", "metadata names no file for the part", "lr"),
        (transformed, "Unsupported", "transformed by stream.zstd/1", None),
        (object_as_tensor, "Corrupt", "the item is a .*, expected one tensor", "model.plain"),
    ]
    for change, code, message, name in cases:
        source = unpack("dcp")
        changed(source, change)
        with pytest.raises(sealpoint.Error, match=message) as caught:
            contents(source)
        assert caught.value.code == code and name in (None, caught.value.tensor), (change, caught.value)
        shutil.rmtree(source)


def test_metadata_of_python_3_11_0(unpack):
    """Python 3.11.0 to 3.11.3 pickle members of enumerations by name."""
    source = unpack("dcp")
    expected = contents(source)

    class ByName(pickle.Pickler):
        def reducer_override(self, value):
            return (getattr, (type(value), value.name)) if isinstance(value, enum.Enum) else NotImplemented

    stored = pickle.loads((source / ".metadata").read_bytes())
    with open(source / ".metadata", "wb") as file:
        ByName(file, 4).dump(stored)
    assert b"getattr" in (source / ".metadata").read_bytes()
    assert contents(source) == expected


@pytest.mark.parametrize("name", ["dcp", "dcp_per_rank"])
def test_tensors_of_unknown_dtypes_are_left_out_if_asked_for(name, unpack, tmp_path):
    source = unpack(name)

    def unknown(stored):
        stored.state_dict_metadata["model.rows"].properties.dtype = torch.qint8

    for path in [source / ".metadata"] if name == "dcp" else sorted(source.glob("__*.metadata")):
        stored = pickle.loads(path.read_bytes())
        unknown(stored)
        path.write_bytes(pickle.dumps(stored, 4))
    with pytest.raises(sealpoint.UnsupportedError, match="dtype is torch.qint8") as caught:
        convert(source, tmp_path / "refused")
    assert caught.value.tensor == "model.rows"
    report = convert(source, tmp_path / "made", drop_unknown=True)
    assert [note for note in report.notes if "model.rows" in note] == ["model.rows is left out: its dtype is torch.qint8"]
    assert report.is_whole and "rows" not in sp.load_full(tmp_path / "made")["model"]


def test_metadata_that_no_version_writes(unpack, monkeypatch):
    def dimensions(stored):
        stored.state_dict_metadata["model.plain"].chunks[0].sizes = torch.Size([3, 1])

    def dtype(stored):
        stored.state_dict_metadata["model.plain"].properties.dtype = torch.qint8

    def no_dtype(stored):
        stored.state_dict_metadata["model.plain"].properties.dtype = torch.Size

    def size(stored):
        next(iter(stored.storage_data.values())).offset = -1

    def name(stored):
        next(iter(stored.storage_data.values())).relative_path = 7

    def surrogate(stored):
        stored.state_dict_metadata["\ud800"] = stored.state_dict_metadata.pop("lr")

    def shape(stored):
        stored.state_dict_metadata["model.plain"].size = 3

    def chunk(stored):
        stored.state_dict_metadata["model.plain"].chunks = [3]

    for change, message in (
        (dimensions, "has 2 dimensions, expected 1"),
        (dtype, "torch.qint8"),
        (no_dtype, "dtype is torch.Size, which the format lacks"),
        (size, "a value is .*, expected a size"),
        (name, "a name in storage_data is of kind .*, expected str"),
        (surrogate, "a name has surrogates, expected UTF-8"),
        (shape, "a value is a .*, expected a list or tuple"),
        (chunk, "a value is of kind .*, expected object"),
        (lambda stored: {"a": 1}, "it holds"),
    ):
        source = unpack("dcp")
        changed(source, change)
        with pytest.raises(sealpoint.Error, match=message) as caught:
            open_source(source)
        assert caught.value.path == str(source / ".metadata") and caught.value.code in ("Corrupt", "Unsupported")
        shutil.rmtree(source)


def test_ranks_that_disagree_about_more(unpack, tmp_path):
    source = unpack("dcp_per_rank")
    index = pickle.loads((source / "__3.metadata").read_bytes())
    index.state_dict_metadata["model.rows"].size = torch.Size([6, 9])
    (source / "__3.metadata").write_bytes(pickle.dumps(index))
    with pytest.raises(sealpoint.Error, match=r"f32 \[6, 9\] on rank 3, f32 \[6, 8\] before"):
        open_source(source)
    torch.serialization.set_crc32_options(False)
    try:
        for rank in range(2):
            state = {"w": torch.ones(2)}
            dcp.save(state, checkpoint_id=tmp_path / str(rank), no_dist=True, use_collectives=False)
    finally:
        torch.serialization.set_crc32_options(True)
    joined = tmp_path / "0"
    index = pickle.loads((tmp_path / "1/__0.metadata").read_bytes())
    for info in index.storage_data.values():
        info.relative_path = "__1_0.distcp"
    (joined / "__1.metadata").write_bytes(pickle.dumps(index))
    (joined / "__1_0.distcp").write_bytes((tmp_path / "1/__0_0.distcp").read_bytes())
    with pytest.raises(sealpoint.UnsupportedError, match="and an earlier rank stored it without a"):
        open_source(joined)


def test_damaged_directories_of_megatron(unpack, tmp_path):
    source = unpack(MEGATRON[1])
    changed(source, lambda stored: setattr(stored, "mcore_data", {"decoder.norm.weight": 3}))
    with pytest.raises(sealpoint.CorruptError, match="not the metadata of a checkpoint"):
        open_source(source)
    shutil.rmtree(source)
    source = unpack(MEGATRON[1])
    (source / "metadata.json").write_text("[]")
    assert open_source(source).format == "dcp", "what it is without the marker"
    (source / "metadata.json").write_text('{"sharded_backend": "torch_dist"}')
    (source / ".metadata").unlink()
    with pytest.raises(sealpoint.IncompleteError, match=r"\.metadata is missing"):
        open_source(source)
    dcp.save(
        {"rng_state/shard_0_1": {"no": "list"}},
        checkpoint_id=tmp_path / "d",
        no_dist=True,
        planner=dcp.DefaultSavePlanner(flatten_state_dict=False),
    )
    (tmp_path / "d/metadata.json").write_text('{"sharded_backend": "torch_dist"}')
    with pytest.raises(sealpoint.CorruptError, match="expected a list of one object") as caught:
        open_source(tmp_path / "d")
    assert caught.value.object == "rng_state/shard_0_1"
