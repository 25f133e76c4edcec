# SPDX-License-Identifier: Apache-2.0
"""More conversions among all formats, by night, as torch itself reads them."""

import collections
import datetime
import decimal
import fractions
import functools
import ipaddress
import pickle
import random
import re
import types
import uuid

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed: see scripts/python_env.sh")

import sealpoint  # noqa: E402
import sealpoint.torch as sp  # noqa: E402
import test_convert_hostile as hostile  # noqa: E402
import torch  # noqa: E402
import torch.distributed.checkpoint as dcp  # noqa: E402
from convert_states import contents, load_safetensors, same  # noqa: E402
from sealpoint.interop import convert, open_source  # noqa: E402
from sealpoint.interop._dtypes import OF_TORCH  # noqa: E402
from test_convert import sources  # noqa: E402, F401
from test_inspect_formats import check_same  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:torch.distributed is disabled", "ignore:.*TypedStorage")


def test_states_of_plain_tensors_need_no_trust(tmp_path):
    """Files for torch.load as it is by default."""
    module = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3))
    optimizer = torch.optim.AdamW(module.parameters())
    module(torch.randn(5, 4)).sum().backward()
    optimizer.step()
    state = {"model": module.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3}
    torch.save(state, tmp_path / "a")
    convert(tmp_path / "a", tmp_path / "b")
    convert(tmp_path / "b", tmp_path / "c", to="torch")
    loaded = torch.load(tmp_path / "c")
    module.load_state_dict(loaded["model"])
    optimizer.load_state_dict(loaded["optimizer"])
    same(state["optimizer"], loaded["optimizer"])
    dcp_state = {"model": {name: torch.zeros_like(t) for name, t in state["model"].items()}}
    convert(tmp_path / "b", tmp_path / "d", to="dcp")
    dcp.load(dcp_state, checkpoint_id=tmp_path / "d", no_dist=True)
    same(dict(state["model"]), dcp_state["model"])
    same(dict(state["model"]), dict(sp.load_full(tmp_path / "b")["model"]))


def test_parameters_and_subclasses(tmp_path):
    parameter = torch.nn.Parameter(torch.randn(3))
    parameter.tensor_model_parallel = True  # as Megatron marks them
    plain = torch.randn(2)
    plain.mark = 1
    torch.save({"p": parameter, "q": plain}, tmp_path / "a")
    convert(tmp_path / "a", tmp_path / "b", to="torch")
    same({"p": parameter.detach(), "q": plain}, torch.load(tmp_path / "b"))


def test_archives_without_crc(tmp_path):
    torch.serialization.set_crc32_options(False)
    try:
        torch.save({"w": torch.ones(2), "e": torch.zeros(0)}, tmp_path / "a")
    finally:
        torch.serialization.set_crc32_options(True)
    assert convert(tmp_path / "a", tmp_path / "b").unprotected_count == 1


def test_a_flipped_bit_of_a_tensor_names_it(sources, tmp_path):
    folder, state = sources
    data = bytearray((folder / "torch").read_bytes())
    at = data.index(state["optimizer"]["state"]["0"]["exp_avg"].numpy().tobytes())
    data[at + 5] ^= 1
    (tmp_path / "a").write_bytes(data)
    for to in ("sealpoint", "dcp", "torch"):
        with pytest.raises(sealpoint.CorruptError, match=r"CRC-32 of '.*/data/\d+' is [0-9a-f]{8}, expected") as caught:
            convert(tmp_path / "a", tmp_path / "b", to=to)
        assert caught.value.tensor == "optimizer.state.0.exp_avg" and caught.value.path == str(tmp_path / "a")
        assert sorted(path.name for path in tmp_path.iterdir()) == ["a"], "nothing is left behind"


def test_what_dcp_stores_otherwise_is_noted(tmp_path):
    torch.save({"w": torch.ones(2), "empty": {}, "ints": {0: 1}}, tmp_path / "a")
    assert convert(tmp_path / "a", tmp_path / "b", to="dcp").notes == ["empty is an empty mapping, which DCP does not keep"]
    assert contents(tmp_path / "b")[0] == {"ints": {"0": 1}, "w": {"$": "tensor", "name": "w"}}
    torch.save({"a.b": torch.ones(2), "a": {"b": torch.ones(3)}}, tmp_path / "c")
    with pytest.raises(sealpoint.UnsupportedError, match="duplicate path of a tensor in the state"):
        open_source(tmp_path / "c")
    torch.save({"a.b": 1, "a": {"b": 2}}, tmp_path / "e")
    with pytest.raises(sealpoint.UnsupportedError, match="two places of the state have the same key in DCP"):
        convert(tmp_path / "e", tmp_path / "f", to="dcp")


def test_safetensors_of_odd_dtypes(sources, tmp_path):
    folder, _ = sources
    convert(folder / "torch", tmp_path / "m", to="hf", tensors_only=True)
    tensors, metadata = load_safetensors(tmp_path / "m/model.safetensors")
    assert metadata["format"] == "pt"
    assert tensors["model.f4"][:2] == ("F4", [2, 4]) and tensors["model.scalar"][1:] == ([], b"\0\0\x60\x40")
    assert tensors["model.empty"] == ("F32", [0, 4], b"") and tensors["model.e8"] == ("F8_E8M0", [3], b"\1\2\3")
    for dtype in (torch.complex128, torch.complex32):
        torch.save({"c": torch.ones(2, dtype=dtype), "d": torch.ones(1, dtype=dtype)}, tmp_path / "c")
        assert convert(tmp_path / "c", tmp_path / str(dtype), to="dcp", verify=True).tensor_count == 2
        with pytest.raises(sealpoint.UnsupportedError, match=r"c\d+, which safetensors lacks \(nor those of 1") as caught:
            convert(tmp_path / "c", tmp_path / "d", to="safetensors")
        assert caught.value.tensor == "c"


def test_the_library_of_safetensors_reads_it(sources, tmp_path):
    library = pytest.importorskip("safetensors.torch", reason="safetensors is not installed")
    folder, state = sources
    convert(folder / "torch", tmp_path / "m.safetensors", to="safetensors", match=["model.*"], rename=[("model.*", "*")])
    loaded = library.load_file(tmp_path / "m.safetensors")
    expected = {name: tensor for name, tensor in state["model"].items() if name != "tied"}
    same(expected, loaded)
    library.save_file({name: tensor.contiguous() for name, tensor in expected.items() if name != "part"}, tmp_path / "n")
    convert(tmp_path / "n", tmp_path / "c")
    same({name: tensor for name, tensor in expected.items() if name != "part"}, sp.load_full(tmp_path / "c"))


def test_torch_opens_every_dtype_of_every_format(tmp_path):
    """Not only by the code that wrote it: by torch, and by the library of safetensors."""
    library = pytest.importorskip("safetensors.torch", reason="safetensors is not installed")
    patterns = torch.arange(64, dtype=torch.uint8).reshape(2, 32)
    state = {name: (patterns % 2 if name == "bool" else patterns.clone()).view(getattr(torch, name)) for name in OF_TORCH}
    assert {str(tensor.dtype).removeprefix("torch.") for tensor in state.values()} == set(OF_TORCH)
    torch.save(state, tmp_path / "source")
    for name, tensor in state.items():
        for to in ("torch", "dcp", "safetensors"):
            made = tmp_path / f"{name}.{to}"
            try:
                convert(tmp_path / "source", made, to=to, match=[name], verify=True)
            except sealpoint.UnsupportedError as error:
                assert (to, error.tensor) == ("safetensors", name) and name in ("complex32", "complex128"), error
                assert "leave it out (--drop), or choose another format (--to)" in str(error)
                assert not made.exists()
                continue
            if to == "torch":
                loaded = torch.load(made, weights_only=True)
            elif to == "dcp":
                loaded = {name: torch.empty_like(tensor)}
                dcp.load(loaded, checkpoint_id=made, no_dist=True)
            else:
                loaded = library.load_file(made)
            assert list(loaded) == [name] and loaded[name].dtype == tensor.dtype, (name, to)
            assert torch.equal(loaded[name].view(torch.uint8), tensor.view(torch.uint8)), (name, to)


class Plugin:
    """Of a class that no converter knows."""

    def __init__(self):
        self.rate = 0.5


UNKNOWN = [
    datetime.timedelta(1), range(3), slice(1), Plugin(),
    fractions.Fraction(1, 2), uuid.UUID(int=1),
    decimal.Decimal(1), types.SimpleNamespace(a=1), functools.partial(print), print, Plugin,
    re.compile("a"), ipaddress.ip_address(1),
]  # fmt: skip


@pytest.mark.parametrize("kind", ["torch", "dcp"])
@pytest.mark.parametrize("value", UNKNOWN, ids=[type(value).__name__ for value in UNKNOWN])
def test_a_selection_comes_before_what_cannot_be_read(kind, value, tmp_path):
    weights = torch.randn(3)
    state = {"model": {"w": weights}, "optimizer": {"plugin": value, "step": 3, "moments": torch.ones(2)}}
    source = tmp_path / "source"
    if kind == "dcp":
        dcp.save(state, checkpoint_id=source, no_dist=True)
    else:
        torch.save(state, source)
    with pytest.raises(sealpoint.UnsupportedError, match="cannot be represented.* by drop_unknown") as caught:
        convert(source, tmp_path / "refused")
    assert (caught.value.object, caught.value.tensor) == ("optimizer.plugin", None)
    with pytest.raises(sealpoint.UnsupportedError, match="cannot be represented"):
        convert(source, tmp_path / "refused", match=["optimizer.plugin"])
    for number, options in enumerate(
        ({"match": ["model.*"]}, {"drop": ["optimizer.plugin"]}, {"tensors_only": True}, {"drop": ["optimizer"]},
         {"drop_unknown": True}, {"drop_unknown": True, "match": ["*"]})
    ):  # fmt: skip
        report = convert(source, tmp_path / f"made{number}", verify=True, **options)
        loaded = sp.load_full(tmp_path / f"made{number}")
        assert torch.equal(loaded["model"]["w"], weights), options
        assert ("optimizer" in loaded) == (options not in ({"match": ["model.*"]}, {"drop": ["optimizer"]})), options
        assert "plugin" not in loaded.get("optimizer", {})
        if "drop_unknown" in options:
            assert [note for note in report.notes if "optimizer.plugin is left out: its class is" in note], report.notes
        else:
            assert "optimizer.plugin" in report.dropped


NO_FORM = {
    "big-endian": np.ones(2, ">f4"), "strings": np.array(["a", "b"]), "dates": np.array(["2020-01-01"], "M8[D]"),
    "objects": np.array([1, "a"], object), "records": np.zeros(2, [("a", "i4"), ("b", "f4")]),
}  # fmt: skip


@pytest.mark.parametrize("kind", ["torch", "old torch", "dcp"])
@pytest.mark.parametrize("name", NO_FORM)
def test_arrays_without_a_form_are_values_of_unknown_classes(kind, name, tmp_path):
    state = {"w": torch.ones(2), "log": {"x": NO_FORM[name], "n": 1}}
    if kind == "dcp":
        dcp.save(state, checkpoint_id=tmp_path / "source", no_dist=True)
    else:
        torch.save(state, tmp_path / "source", _use_new_zipfile_serialization=kind == "torch")
    with pytest.raises(sealpoint.UnsupportedError, match="values of 'numpy.ndarray of .* cannot be represented") as caught:
        convert(tmp_path / "source", tmp_path / "refused")
    assert caught.value.object == "log.x"
    options_of = ({"drop_unknown": True}, {"drop": ["log.x"]}, {"match": ["w"]}, {"tensors_only": True})
    for number, options in enumerate(options_of):
        convert(tmp_path / "source", tmp_path / f"made{number}", verify=True, **options)
        assert torch.equal(sp.load_full(tmp_path / f"made{number}")["w"], torch.ones(2))


@pytest.mark.parametrize("is_zip", [True, False])
def test_what_is_left_out_of_a_file_of_torch_need_not_be_readable(is_zip, tmp_path):
    """Values of known classes that cannot be represented, each in a mapping next to others, in the file and in a sidecar file."""
    cycle = []
    cycle.append(cycle)
    values = [torch._neg_view(torch.arange(4)), "\ud800", {b"key": 1}, {frozenset([1]): 1}, cycle]
    if is_zip:
        values.append(torch.arange(4, dtype=torch.uint8).view(torch.bits8))
    for number, value in enumerate(values):
        state = {"w": torch.ones(2), "o": {"x": [torch.zeros(2), value], "n": 1}}
        source, made = tmp_path / f"source{number}", tmp_path / f"made{number}"
        torch.save(state, source, _use_new_zipfile_serialization=is_zip)
        with pytest.raises(sealpoint.Error) as caught:
            convert(source, tmp_path / "refused")
        assert caught.value.object.startswith("o.x.1"), caught.value
        report = convert(source, made, drop=["o.x"], verify=True)
        assert report.dropped == ["o.x"]
        loaded = sp.load_full(made)
        assert torch.equal(loaded["w"], torch.ones(2)) and loaded["o"] == {"n": 1}
        convert(source, tmp_path / f"w{number}", match=["w"], verify=True)


def test_values_that_cannot_be_read_take_no_memory_beyond_the_bound(tmp_path):
    data = b"\x80\x02}(" + b"".join(b"X\4\0\0\0%04x}C\1aNs" % i for i in range(60_000)) + b"u."
    hostile.torch_file(tmp_path / "a", data)
    with pytest.raises(sealpoint.LimitExceededError, match="its metadata takes more than"):
        convert(tmp_path / "a", tmp_path / "made", match=["nothing"])


def test_damage_to_what_nobody_selects_is_no_matter(tmp_path):
    """A missing file of values, and bytes of one that are wrong, are errors if the values are asked for."""
    dcp.save({"w": torch.ones(2), "o": "a text that is stored"}, checkpoint_id=tmp_path / "source", no_dist=True)
    file = next((tmp_path / "source").glob("*.distcp"))
    data = bytearray(file.read_bytes())
    data[data.index(b"a text that is stored")] ^= 1
    file.write_bytes(data)
    with pytest.raises(sealpoint.CorruptError) as caught:
        convert(tmp_path / "source", tmp_path / "made")
    assert caught.value.object == "o"
    convert(tmp_path / "source", tmp_path / "made", match=["w"], verify=True)
    assert torch.equal(sp.load_full(tmp_path / "made")["w"], torch.ones(2))
    with pytest.raises(sealpoint.CorruptError):
        open_source(tmp_path / "source")


@pytest.mark.parametrize("kind", ["torch", "dcp"])
def test_conjugate_and_negative_views_are_read_as_torch_reads_them(kind, tmp_path):
    """The bits are flipped where torch would, also of infinities, zeros and what is no number."""
    patterns = torch.randint(0, 256, (6, 64), dtype=torch.uint8, generator=torch.Generator().manual_seed(1))
    patterns[0] = 0
    state = {}
    for dtype in (torch.complex64, torch.complex128):
        name = str(dtype).removeprefix("torch.")
        values = patterns.clone().view(dtype)
        state |= {f"{name}_plain": values, f"{name}_conj": values.conj(), f"{name}_part": values.conj()[1:4, 1:2],
                  f"{name}_transposed": values.conj().t(), f"{name}_imag": values.clone().conj().imag}  # fmt: skip
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        state[str(dtype).removeprefix("torch.")] = torch._neg_view(patterns.clone().view(dtype))
    assert sum(tensor.is_conj() or tensor.is_neg() for tensor in state.values()) == 12
    source = tmp_path / "source"
    if kind == "dcp":
        dcp.save(state, checkpoint_id=source, no_dist=True)
    else:  # which refuses views of one memory as different types
        torch.save({name: tensor for name, tensor in state.items() if "imag" not in name}, source)
        torch.save({name: tensor for name, tensor in state.items() if "imag" in name}, tmp_path / "imag")
        convert(tmp_path / "imag", tmp_path / "made_imag", verify=True)
    report = convert(source, tmp_path / "made", verify=True)
    assert report.unprotected_count == 0
    loaded = sp.load_full(tmp_path / "made")
    if kind == "torch":
        loaded |= sp.load_full(tmp_path / "made_imag")
    for name, tensor in state.items():
        expected = tensor.resolve_conj().resolve_neg().contiguous()
        assert torch.equal(loaded[name].view(torch.uint8), expected.view(torch.uint8)), name
    assert check_same(source) is None


def test_containers_of_the_standard_library(tmp_path):
    state = {
        "count": collections.Counter("aab"), "lists": collections.defaultdict(list, {"a": [torch.ones(1)], "b": []}),
        "nothing": collections.defaultdict(None), "ordered": collections.OrderedDict(b=1, a=torch.zeros(2)),
        "queue": collections.deque([1, (2, torch.ones(2))], maxlen=3), "none": collections.deque(),
        "odd": collections.defaultdict(only_here, {"a": 1}), "empty": collections.Counter(),
    }  # fmt: skip
    expected = {
        "count": {"a": 2, "b": 1}, "lists": {"a": [torch.ones(1)], "b": []}, "nothing": {},
        "ordered": {"b": 1, "a": torch.zeros(2)},
        "queue": [1, (2, torch.ones(2))], "none": [], "odd": {"a": 1}, "empty": {},
    }  # fmt: skip
    for protocol in (2, 4):
        source, made = tmp_path / f"source{protocol}", tmp_path / f"made{protocol}"
        torch.save(state, source, pickle_protocol=protocol)
        convert(source, made, verify=True)
        same(expected, sp.load_full(made))
        assert check_same(source) is None
    with pytest.raises(sealpoint.UnsupportedError, match="UserDict"):
        torch.save({"u": collections.UserDict(a=1)}, tmp_path / "user")
        convert(tmp_path / "user", tmp_path / "refused")
    assert check_same(tmp_path / "user") is None


def only_here():
    """Makes values of a defaultdict, by a function that only the program that stored it has."""


@pytest.mark.parametrize("what", ["dtype", "gap", "no place", "no file", "transformed"])
def test_tensors_that_nobody_selects_need_not_be_whole(what, tmp_path):
    """Of DCP: the rest comes out, whatever is wrong with one tensor, and without a selection it is an error as before."""
    source = tmp_path / "source"
    torch.manual_seed(1)
    other = torch.quantize_per_tensor(torch.ones(4), 0.1, 0, torch.qint8) if what == "dtype" else torch.ones(4)
    dcp.save({"w": torch.ones(2), "other": other, "o": 3}, checkpoint_id=source, no_dist=True)
    metadata = pickle.loads((source / ".metadata").read_bytes())
    [index] = [index for index in metadata.storage_data if index.fqn == "other"]
    if what == "gap":
        metadata.state_dict_metadata["other"].chunks[0].sizes = torch.Size([3])
    elif what == "no place":
        del metadata.storage_data[index]
    elif what == "no file":
        metadata.storage_data[index].relative_path = "__9_0.distcp"
    elif what == "transformed":
        metadata.storage_data[index].transform_descriptors = ("zstd",)
    (source / ".metadata").write_bytes(pickle.dumps(metadata))
    with pytest.raises(sealpoint.Error) as caught:
        convert(source, tmp_path / "made")
    assert caught.value.tensor == "other" or what == "no file"
    for number, options in enumerate(({"match": ["w", "o"]}, {"drop": ["other"]})):
        convert(source, tmp_path / f"made{number}", verify=True, **options)
        same({"w": torch.ones(2), "o": 3}, sp.load_full(tmp_path / f"made{number}"))
    check_same(source)


def test_mutated_files(tmp_path):
    """Random changes of small files: an error of the library, or a state; never another exception, and never a wait."""
    arrays = {"w": np.arange(12, dtype="f4").reshape(3, 4), "layers.0": np.arange(5), "s": np.float64(1)}
    sealpoint.save(arrays, tmp_path / "c", objects={"x": b"123"})
    convert(tmp_path / "c", tmp_path / "a.safetensors", to="safetensors")
    convert(tmp_path / "c", tmp_path / "t", to="torch", drop=["x"])
    convert(tmp_path / "c", tmp_path / "d", to="dcp", drop=["x"])
    generator = random.Random(5)
    victims = [tmp_path / "a.safetensors", tmp_path / "t", tmp_path / "d/.metadata", tmp_path / "d/__0_0.distcp"]
    for victim in victims:
        good = victim.read_bytes()
        errors = 0
        for _ in range(150):
            data = bytearray(good)
            for _ in range(generator.randint(1, 4)):
                at, kind = generator.randrange(len(data)), generator.randrange(4)
                if kind == 0:
                    data[at] = generator.randrange(256)
                elif kind == 1:
                    del data[at : at + generator.randint(1, 30)]
                elif kind == 2:
                    data[at:at] = data[at : at + generator.randint(1, 30)]
                else:
                    data[at : at + 8] = generator.choice([b"\xff" * 8, b"\0" * 8, (1 << 62).to_bytes(8, "little"), b"}" * 8])
            victim.write_bytes(data)
            try:
                contents(victim if victim.parent == tmp_path else victim.parent)
            except sealpoint.Error as error:
                errors += 1
                assert str(error) and error.path
        victim.write_bytes(good)
        assert errors > 50, victim


def test_many_small_values_are_within_the_bound(tmp_path):
    names = [f"model.layers.{i}.weight" for i in range(60_000)]
    header = {name: {"dtype": "U8", "shape": [1], "data_offsets": [i, i + 1]} for i, name in enumerate(names)}
    hostile.safetensors_file(tmp_path / "a.safetensors", header, bytes(len(names)))
    torch.save({f"w{i}": torch.ones(32) for i in range(20_000)}, tmp_path / "b.pt")
    torch.save({"tokens": list(range(2_000_000))}, tmp_path / "c.pt")
    assert convert(tmp_path / "a.safetensors", tmp_path / "a").tensor_count == 60_000
    assert convert(tmp_path / "b.pt", tmp_path / "b").tensor_count == 20_000
    assert convert(tmp_path / "c.pt", tmp_path / "c").tensor_count == 0


def test_a_program_of_torch_export(tmp_path):
    torch.export.save(torch.export.export(torch.nn.Linear(2, 2), (torch.ones(1, 2),)), tmp_path / "a.pt2")
    with pytest.raises(sealpoint.UnsupportedError, match=r"torch\.export"):
        convert(tmp_path / "a.pt2", tmp_path / "made")
