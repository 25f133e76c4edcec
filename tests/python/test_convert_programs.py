# SPDX-License-Identifier: Apache-2.0
"""States as people have them, of accelerate, PEFT, Lightning, torchao, bitsandbytes and Orbax, beside what their own loaders give.

fixtures/make_folders.py made the archive with these programs. Malformed states are made here, of the same files.
"""

import enum
import json
import os
import pathlib
import shutil
import sys

import numpy
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: see scripts/python_env.sh")

import sealpoint  # noqa: E402
import sealpoint.torch as sp  # noqa: E402
import test_convert_hostile as hostile  # noqa: E402
from convert_states import same  # noqa: E402
from sealpoint._tree import TensorParts  # noqa: E402
from sealpoint.interop import convert, open_source  # noqa: E402
from test_inspect_formats import check_same, run  # noqa: E402

JAX = pathlib.Path(os.environ.get("SEALPOINT_SOURCE_DIR", "."), "build/frameworks/jax")


@pytest.fixture
def folders(unpack):
    return unpack("folders")


@pytest.fixture
def orbax(folders, monkeypatch):
    if JAX.is_dir():
        monkeypatch.syspath_prepend(str(JAX))
    pytest.importorskip("tensorstore", reason="tensorstore is not installed: see scripts/python_env.sh")
    return folders


def expected(folders, name):
    return torch.load(folders / "expected" / f"{name}.pt", weights_only=False)


def refused(path, made, kind, match, **options):
    with pytest.raises(kind, match=match) as caught:
        convert(path, made, **options)
    assert not made.exists()
    return caught.value


@pytest.mark.parametrize("name", ["fsdp1_sharded", "fsdp2_sharded"])
def test_a_folder_of_accelerate_for_fsdp_is_one_state(name, folders, tmp_path):
    report = convert(folders / name, tmp_path / "made", verify=True)
    assert (report.source_format, report.is_whole, report.left_out) == ("accelerate", True, [])
    found = sp.load_full(tmp_path / "made")
    own = expected(folders, name)
    same(own, {key: found[key] for key in own})
    assert set(found) == {"model", "optimizer", "scheduler", "random_states_0", "random_states_1"}
    check_same(folders / name)
    convert(folders / name, tmp_path / "model", match=["model.*"])
    same({"model": own["model"]}, sp.load_full(tmp_path / "model"))


def test_the_whole_state_of_fsdp_in_files_of_torch(folders, tmp_path):
    report = convert(folders / "fsdp2_full", tmp_path / "made", verify=True)
    found = sp.load_full(tmp_path / "made")
    assert report.is_whole and set(found) >= {"0.weight", "1.bias", "optimizer", "scheduler", "random_states_1"}
    same(torch.load(folders / "fsdp2_full/pytorch_model_fsdp.bin")["0.weight"], found["0.weight"])


def test_malformed_folders_of_accelerate(folders, tmp_path):
    source, made = folders / "fsdp2_sharded", tmp_path / "made"
    shutil.copytree(source / "pytorch_model_fsdp_0", source / "pytorch_model_fsdp_1")
    refused(source, made, sealpoint.UnsupportedError, "pytorch_model_fsdp_1")
    shutil.rmtree(source / "pytorch_model_fsdp_1")
    (source / "optimizer_0/__1_0.distcp").unlink()
    refused(source, made, sealpoint.Error, "optimizer_0")
    (source / "optimizer_0/.metadata").unlink()
    refused(source, made, sealpoint.IncompleteError, r"no \.metadata: an unfinished save")
    shutil.rmtree(source / "optimizer_0")
    shutil.copytree(source / "pytorch_model_fsdp_0", source / "optimizer_0")  # which holds the model again
    refused(source, made, sealpoint.UnsupportedError, "expected only the entry optimizer")
    shutil.rmtree(source / "optimizer_0")
    assert convert(source, made).is_whole, "accelerate saves a model without an optimizer, too"
    refused(folders / "fsdp1_local", tmp_path / "local", sealpoint.UnsupportedError, "pytorch_model_fsdp_rank0.bin")


@pytest.mark.parametrize("name", ["peft", "peft_bin"])
def test_an_adapter_of_peft(name, folders, tmp_path):
    source = folders / name
    config = (source / "adapter_config.json").read_text()
    report = convert(source, tmp_path / "made", verify=True)
    assert report.is_whole and report.left_out == []
    same({**expected(folders, name), "adapter_config": config}, sp.load_full(tmp_path / "made"))
    convert(tmp_path / "made", tmp_path / "back", to="hf", verify=True)
    assert sorted(os.listdir(tmp_path / "back")) == ["adapter_config.json", "adapter_model.safetensors"]
    assert (tmp_path / "back/adapter_config.json").read_text() == config
    same(expected(folders, name), pytest.importorskip("safetensors.torch").load_file(tmp_path / "back/adapter_model.safetensors"))
    convert(tmp_path / "back", tmp_path / "again", verify=True)
    same(sp.load_full(tmp_path / "made"), sp.load_full(tmp_path / "again"))


def test_malformed_adapters(folders, tmp_path):
    source, made = folders / "peft_bin", tmp_path / "made"
    shutil.copy(source / "adapter_model.bin", source / "pytorch_model.bin")
    refused(source, made, sealpoint.UnsupportedError, "several models: adapter_model.bin and pytorch_model.bin")
    (source / "pytorch_model.bin").unlink()
    data = (source / "adapter_model.bin").read_bytes()
    (source / "adapter_model.bin").write_bytes(data[: len(data) // 2])
    refused(source, made, sealpoint.Error, "adapter_model.bin|zip|end")
    (source / "adapter_model.bin").write_bytes(data)
    (source / "adapter_config.json").write_bytes(b"\xff\xfe")
    assert not convert(source, made).is_whole, "a configuration that is no text is named"


def test_checkpoints_of_lightning_have_their_hyperparameters(folders, tmp_path):
    run = folders / "lightning/version_0"
    convert(run / "checkpoints/last.ckpt", tmp_path / "made", to="sealpoint", verify=True)
    own, found = expected(folders, "lightning"), sp.load_full(tmp_path / "made")
    own["hyper_parameters"]["config"]["data"] = "/data/set"  # as sealpoint.torch.save stores paths
    same(own, {key: found[key] for key in own})
    for folder, name in ((run, "in the directory checkpoints"), (run.parent, "in version_0: a run of Lightning")):
        refused(folder, tmp_path / "again", sealpoint.UnsupportedError, f"{name}.*last.ckpt")
        check_same(folder)


@pytest.mark.parametrize("name", ["torchao_float8", "torchao_int8"])
def test_quantized_tensors_of_torchao_keep_their_parts(name, folders, tmp_path):
    convert(folders / f"{name}.pt", tmp_path / "made", to="sealpoint", verify=True)
    own, found = expected(folders, name), sp.load_full(tmp_path / "made")["0.weight"]
    assert isinstance(found, TensorParts) and found.shape == own["shape"]
    same(own["parts"], found.parts[""])
    context = dict(map(tuple, found.context["items"]))
    for key, value in own["types"].items():
        assert context[key] == {"$": "type", "name": value}
    for key, value in own["context"].items():
        stored = {"$": "dtype", "name": str(value).removeprefix("torch.")} if isinstance(value, torch.dtype) else value
        assert context[key] == stored
    convert(tmp_path / "made", tmp_path / "again", verify=True)
    refused(tmp_path / "made", tmp_path / "made.pt", sealpoint.UnsupportedError, "'tensor_parts' cannot be represented")


class Note(str, enum.Enum):
    ONE = "one"
    TWO = "two"


class Scaled(torch.Tensor):
    """As the classes of torchao: parts that are attributes, and a description."""

    @staticmethod
    def __new__(cls, data, scale, block, dtype=torch.float32, note=None):
        return torch.Tensor._make_wrapper_subclass(cls, data.shape, dtype=dtype)

    def __init__(self, data, scale, block, dtype=torch.float32, note=None):
        self.note, self.block, self.data_, self.scale = note, block, data, scale

    def __tensor_flatten__(self):
        return ["data_", "scale"], {"block": self.block, "dtype": self.dtype, "note": self.note}

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        if function is torch.ops.aten.detach.default:
            return args[0]
        raise NotImplementedError(function)


def scaled(fill, block=4):
    return Scaled(torch.full((4, 2), fill, dtype=torch.int8), torch.full((4, 1), float(fill)), block, note=Note.ONE)


def test_a_converted_quantized_tensor_loads_into_its_class(tmp_path):
    torch.save({"w": scaled(3)}, tmp_path / "a.pt")
    convert(tmp_path / "a.pt", tmp_path / "made", verify=True)
    live = {"w": scaled(0)}
    sp.load(live, tmp_path / "made")
    assert torch.equal(live["w"].data_, scaled(3).data_) and torch.equal(live["w"].scale, scaled(3).scale)
    with pytest.raises(sealpoint.MismatchError, match="its class describes it as"):
        sp.load({"w": scaled(0, block=2)}, tmp_path / "made")


def wrapped(path, **parts):
    """A file with a tensor of a class, of these arguments of its pickle."""

    class Call:
        def __init__(self, name, *args):
            self.name, self.args = name, args

    def dump(value):
        if isinstance(value, Call):
            return b"c" + value.name.replace("/", "\n").encode() + b"\n" + dump(value.args) + b"R"
        if isinstance(value, tuple):
            return b"(" + b"".join(map(dump, value)) + b"t"
        if isinstance(value, dict):
            return b"}(" + b"".join(dump(item) for pair in value.items() for item in pair) + b"u"
        if isinstance(value, int):
            return b"J" + value.to_bytes(4, "little", signed=True)
        if value.startswith("c:"):
            return b"c" + value[2:].replace("/", "\n").encode() + b"\n"
        return b"X" + len(value).to_bytes(4, "little") + value.encode()

    name = parts.get("kind", "c:some.library/Quantized")
    outer = parts.get("outer", (name, "c:torch/float32", (2, 2)))
    call = Call("torch._tensor/_rebuild_from_type_v2", "c:torch._utils/_rebuild_wrapper_subclass", name, outer, parts["state"])
    return hostile.torch_file(path, b"\x80\x02" + dump({"w": call}) + b".")


@pytest.mark.parametrize(("parts", "match"), [
    ({"state": {"block": 4}}, "values of 'some.library.Quantized' cannot be represented"),
    ({"state": 3}, "malformed"),
    ({"state": {3: 4}}, "a name is a int"),
    ({"state": {"block": 4}, "kind": "text"}, "a tensor without a class"),
    ({"state": {"block": 4}, "kind": "c:torch.distributed.tensor/DTensor"}, "'torch.distributed.tensor.DTensor' cannot be"),
    ({"state": {"block": 4}, "outer": ("c:some.library/Quantized",)}, "malformed"),
])  # fmt: skip
def test_malformed_quantized_tensors(parts, match, tmp_path):
    path = wrapped(tmp_path / "a.pt", **parts)
    refused(path, tmp_path / "made", sealpoint.Error, match)
    check_same(path)


def test_states_of_bitsandbytes(folders, tmp_path):
    """A state_dict has all of a 4-bit weight as tensors; a parameter alone has its scales as attributes, which no file keeps."""
    convert(folders / "nf4.pt", tmp_path / "made", to="sealpoint", verify=True)
    found = sp.load_full(tmp_path / "made")
    same(dict(torch.load(folders / "nf4.pt")), found)
    assert {"weight.absmax", "weight.nested_absmax", "weight.quant_map", "weight.quant_state.bitsandbytes__nf4"} < set(found)
    refused(folders / "nf4_parameter.pt", tmp_path / "no", sealpoint.UnsupportedError, "quantized weight of bitsandbytes")
    parameter = type("Params4bit", (torch.nn.Parameter,), {"quant_state": object()})(torch.zeros(4))
    with pytest.raises(sealpoint.UnsupportedError, match="quantized weight of bitsandbytes"):
        sp.save({"w": parameter}, tmp_path / "save")


def orbax_same(folders, state, prefix=""):
    with numpy.load(folders / "expected/orbax.npz") as own:
        for name in own:
            found = state[prefix + name]
            assert found.shape == own[name].shape and found.tobytes() == own[name].tobytes(), name
    assert str(state[f"{prefix}params.dense.bias"].dtype.name) == "bfloat16"


@pytest.mark.parametrize("name", ["orbax_pytree", "orbax_files", "orbax_zarr3"])
def test_checkpoints_of_orbax(name, orbax, tmp_path):
    report = convert(orbax / name, tmp_path / "made", verify=True)
    assert (report.source_format, report.tensor_count, report.is_whole) == ("orbax", 5, True)
    orbax_same(orbax, sealpoint.open(tmp_path / "made"))
    found = sp.load_full(tmp_path / "made")
    plain = {"steps": 7, "rate": 0.5, "none": None, "empty": {}, "is_on": True, "name": "run"}
    assert {key: found[key] for key in plain} == plain and isinstance(found["params"]["layers"], list)
    convert(orbax / name, tmp_path / "hf", to="hf", drop=["steps"], verify=True)


def test_the_newest_step_of_orbax(orbax, tmp_path):
    report = convert(orbax / "orbax_manager", tmp_path / "made", verify=True)
    assert "the newest step: 10" in report.notes
    orbax_same(orbax, sealpoint.open(tmp_path / "made"), "state.")
    found = sp.load_full(tmp_path / "made")
    assert (found["state"]["steps"], found["about"]) == (10, {"loss": [0.5, None]})
    assert sealpoint.open(tmp_path / "made").step == 10
    convert(orbax / "orbax_manager/9", tmp_path / "nine")
    assert sp.load_full(tmp_path / "nine")["state"]["steps"] == 9
    (orbax / "orbax_manager/9/more").mkdir()
    assert [entry.name for entry in convert(orbax / "orbax_manager/9", tmp_path / "more").left_out] == ["more"]


def change(path, **members):
    path.write_text(json.dumps({**json.loads(path.read_text()), **members}))


def test_malformed_checkpoints_of_orbax(orbax, tmp_path, monkeypatch):
    def broken(name, kind, match, act, **options):
        place = tmp_path / "broken" / name
        shutil.copytree(orbax / name, place)
        act(place)
        refused(place, tmp_path / "made", kind, match, **options)
        shutil.rmtree(place)

    def data_of(place):
        return max(place.rglob("d/*"), key=lambda path: path.stat().st_size)

    key = [{"key": "../../secret", "key_type": 2}]
    value = {"value_type": "jax.Array"}
    broken("orbax_files", sealpoint.IncompleteError, "tensorstore cannot read", lambda place: (place / "array/0").unlink())
    broken("orbax_files", sealpoint.IncompleteError, "tensorstore cannot read", lambda place: shutil.rmtree(place / "array"))
    broken("orbax_files", sealpoint.CorruptError, "tensorstore", lambda place: (place / "array/0").write_bytes(b"\x28\xb5\x2f\xfd"))
    broken("orbax_files", sealpoint.CorruptError, "leads out",
           lambda place: change(place / "_METADATA", tree_metadata={"x": {"key_metadata": key, "value_metadata": value}}))
    broken("orbax_files", sealpoint.UnsupportedError, "symbolic link",
           lambda place: ((place / "array/0").unlink(), (place / "array/0").symlink_to("/etc/passwd")))  # fmt: skip
    broken("orbax_pytree", sealpoint.Error, "tensorstore cannot read", lambda place: change(place / "_METADATA", use_zarr3=True))
    broken("orbax_pytree", sealpoint.CorruptError, "expected JSON", lambda place: (place / "_METADATA").write_text("{"))
    broken("orbax_pytree", sealpoint.CorruptError, "expected JSON", lambda place: (place / "_METADATA").write_text("[" * 100_000))
    broken("orbax_pytree", sealpoint.CorruptError, "metadata is malformed", lambda place: (place / "_METADATA").write_text("{}"))
    broken("orbax_pytree", sealpoint.IncompleteError, "_METADATA", lambda place: (place / "_METADATA").unlink())
    broken("orbax_pytree", sealpoint.IncompleteError, "does not have the string",
           lambda place: (place / "_strings.json").write_text("{}"))
    broken("orbax_pytree", sealpoint.Error, "tensorstore cannot read", lambda place: (place / "manifest.ocdbt").unlink())
    broken("orbax_pytree", sealpoint.Error, "tensorstore cannot read", lambda place: os.truncate(data_of(place), 20))
    big = {"chunks": [1 << 40], "compressor": None, "dtype": "<i8", "fill_value": None, "filters": None, "order": "C",
           "shape": [1 << 40], "zarr_format": 2, "dimension_separator": "."}  # fmt: skip
    broken("orbax_files", sealpoint.NoSpaceError, "needs 8,796,093,022,276 bytes",
           lambda place: (place / "array/.zarray").write_text(json.dumps(big)))
    big["shape"] = [1]
    broken("orbax_files", sealpoint.LimitExceededError, "a chunk has 8796093022208 bytes",
           lambda place: (place / "array/.zarray").write_text(json.dumps(big)))
    big.update(chunks=[1], dtype="|S1")
    broken("orbax_files", sealpoint.UnsupportedError, "dtype is char",
           lambda place: (place / "array/.zarray").write_text(json.dumps(big)))

    def entry(kind, *keys):
        return {"key_metadata": [{"key": key, "key_type": 2} for key in keys], "value_metadata": {"value_type": kind}}

    def described(*entries):
        return lambda place: change(place / "_METADATA", tree_metadata={str(at): one for at, one in enumerate(entries)})

    kernel = "params", "dense", "kernel"
    broken("orbax_pytree", sealpoint.UnsupportedError, "two arrays have this name",
           described(entry("jax.Array", *kernel), entry("jax.Array", ".".join(kernel))))  # fmt: skip
    broken("orbax_pytree", sealpoint.CorruptError, "_METADATA: ", described(entry("scalar", "steps"), entry("None", "steps", "x")))
    broken("orbax_pytree", sealpoint.CorruptError, r"shape of a scalar is \[3\]", described(entry("scalar", "array")))
    broken("orbax_pytree", sealpoint.CorruptError, "a value without a key", described(entry("None")))
    monkeypatch.setattr("sealpoint.interop._orbax._JSON_BYTES_MAX", 99)
    broken("orbax_pytree", sealpoint.LimitExceededError, "expected 99 at most", lambda place: None)
    unfinished = (orbax / "orbax_pytree").rename(orbax / "7.orbax-checkpoint-tmp-3")
    refused(unfinished, tmp_path / "made", sealpoint.IncompleteError, "did not finish")


def test_orbax_without_tensorstore(folders, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorstore", None)
    refused(folders / "orbax_pytree", tmp_path / "made", sealpoint.UnsupportedError, "pip install 'sealpoint")
    with pytest.raises(sealpoint.UnsupportedError, match="pip install"):
        open_source(folders / "orbax_manager")
    for name in ("orbax_pytree", "orbax_manager"):
        done = run(folders / name)
        assert done.returncode == 3 and "a checkpoint of Orbax" in done.stderr and "sealpoint[orbax]" in done.stderr
