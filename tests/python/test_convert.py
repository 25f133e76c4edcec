# SPDX-License-Identifier: Apache-2.0
"""Conversions among all formats, of a state with everything that torch saves, as torch itself reads them."""

import pytest

pytest.importorskip("torch", reason="torch is not installed: see scripts/python_env.sh")

import sealpoint  # noqa: E402
import sealpoint.torch as sp  # noqa: E402
import torch  # noqa: E402
import torch.distributed.checkpoint as dcp  # noqa: E402
from convert_states import contents, load_safetensors, same, zoo  # noqa: E402
from sealpoint.convert import convert, open_source  # noqa: E402
from torch.distributed.checkpoint.format_utils import dcp_to_torch_save  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:torch.distributed is disabled", "ignore:.*TypedStorage")


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sources")
    state = zoo()
    torch.save(state, folder / "torch")
    dcp.save(state, checkpoint_id=folder / "dcp", no_dist=True)
    sp.save(state, folder / "sealpoint")
    return folder, state


def load(path, folder):
    """What torch itself reads of a file, or of a directory of DCP."""
    if path.is_dir():
        dcp_to_torch_save(path, folder / "loaded.pt")
        path = folder / "loaded.pt"
    return torch.load(path, weights_only=False)


@pytest.mark.parametrize("source", ["torch", "dcp", "sealpoint"])
@pytest.mark.parametrize("to", ["torch", "dcp", "sealpoint", "hf", "safetensors"])
def test_every_pair(source, to, sources, tmp_path):
    folder, state = sources
    made = tmp_path / "made"
    report = convert(folder / source, made, to=to, verify=True)
    assert (report.source_format, report.format, report.unprotected_count) == (source, to, 0)
    assert report.verified_bytes >= report.raw_bytes > 1000
    if to in ("hf", "safetensors"):  # these have the tree, so that nothing is lost on the way back
        assert convert(made, tmp_path / "back", to="torch", verify=True).unprotected_count == report.tensor_count
        made = tmp_path / "back"
    if to == "sealpoint":
        assert sealpoint.verify(made).ok
        same(state, sp.load_full(made))
    else:
        same(state, load(made, tmp_path))


def test_tied_weights_stay_tied(sources, tmp_path):
    folder, _ = sources
    convert(folder / "torch", tmp_path / "c")
    convert(tmp_path / "c", tmp_path / "t", to="torch")
    model = torch.load(tmp_path / "t", weights_only=False)["model"]
    assert model["w"].data_ptr() == model["tied"].data_ptr() != model["transposed"].data_ptr()
    assert "model.tied" not in sealpoint.open(tmp_path / "c")
    assert any("model.transposed shares memory with model.w" in note for note in open_source(folder / "torch").notes)


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


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (torch.tensor([1 + 2j]).conj(), "conjugate"),
        (torch.sparse_coo_tensor([[0]], [1.0], (2,)), "_rebuild_sparse_tensor"),
        (torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8), "qint8|QInt8Storage|_rebuild_qtensor"),
        (torch.ones(2, device="meta"), "meta"),
        (torch.nn.Linear(1, 1), r"torch\.nn\.modules\.linear\.Linear"),
        (torch.distributed.ReduceOp, "ReduceOp"),
    ],
)
def test_what_has_no_form_is_refused_by_name(value, expected, tmp_path):
    torch.save({"ok": torch.ones(2), "inner": {"v": value}}, tmp_path / "a")
    with pytest.raises(sealpoint.UnsupportedError, match=expected) as caught:
        convert(tmp_path / "a", tmp_path / "b")
    assert caught.value.path == str(tmp_path / "a") and not (tmp_path / "b").exists()


def test_unknown_values_are_left_out_if_asked_for(tmp_path):
    import datetime

    torch.save({"w": torch.ones(2), "when": datetime.timedelta(1), "l": [datetime.timedelta(1)]}, tmp_path / "a")
    with pytest.raises(sealpoint.UnsupportedError, match=r"datetime\.timedelta"):
        convert(tmp_path / "a", tmp_path / "b")
    report = convert(tmp_path / "a", tmp_path / "b", drop_unknown=True)
    assert report.notes == [f"{name} is left out: its class is datetime.timedelta" for name in ("when", "l")]
    assert list(sp.load_full(tmp_path / "b")) == ["w"]


def test_what_holds_no_mapping_is_refused(tmp_path):
    for number, value in enumerate(([torch.ones(2)], torch.ones(2), 3)):
        torch.save(value, tmp_path / str(number))
        with pytest.raises(sealpoint.UnsupportedError, match=r"holds a .*, expected a mapping"):
            open_source(tmp_path / str(number))


def test_other_archives_are_refused_by_what_they_are(tmp_path):
    torch.jit.script(torch.nn.Linear(1, 1)).save(tmp_path / "script")
    with pytest.raises(sealpoint.UnsupportedError, match="TorchScript"):
        open_source(tmp_path / "script")


def test_archives_without_crc(tmp_path):
    torch.serialization.set_crc32_options(False)
    try:
        torch.save({"w": torch.ones(2), "e": torch.zeros(0)}, tmp_path / "a")
    finally:
        torch.serialization.set_crc32_options(True)
    assert convert(tmp_path / "a", tmp_path / "b").unprotected_count == 1


def test_flipped_bits_are_named(sources, tmp_path):
    """Of a file with digests: whatever bit is flipped, there is an error, or the state is unchanged."""
    folder, _ = sources
    (tmp_path / "d").mkdir()
    for source, victim in ((folder / "torch", "torch"), (folder / "dcp", "__0_0.distcp")):
        good = contents(source)
        original = (source if source.is_file() else source / victim).read_bytes()
        copy = tmp_path / "d" / victim
        if source.is_dir():
            (tmp_path / "d/.metadata").write_bytes((source / ".metadata").read_bytes())
        outcomes = {"same": 0, "error": 0}
        for at in range(0, len(original), len(original) // 150):
            copy.write_bytes(original[:at] + bytes([original[at] ^ 1 << at % 8]) + original[at + 1 :])
            try:
                assert contents(copy if source.is_file() else tmp_path / "d") == good, at
                outcomes["same"] += 1
            except sealpoint.Error as error:
                assert error.path == str(copy), error
                assert error.code in ("Corrupt", "Incomplete", "Unsupported", "NotACheckpoint"), error
                outcomes["error"] += 1
        assert outcomes["error"] > 30 and outcomes["same"] > 10, "some bytes are padding"


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
    with pytest.raises(sealpoint.UnsupportedError, match="two tensors of the state have this path"):
        open_source(tmp_path / "c")
    torch.save({"a.b": 1, "a": {"b": 2}}, tmp_path / "e")
    with pytest.raises(sealpoint.UnsupportedError, match="two places of the state have this key in DCP"):
        convert(tmp_path / "e", tmp_path / "f", to="dcp")


def test_large_tensors_become_several_items(tmp_path, monkeypatch):
    from sealpoint.convert import _torch_write

    monkeypatch.setattr(_torch_write, "ITEM_BYTES_MAX", 100)
    monkeypatch.setattr(_torch_write, "FILE_BYTES_MAX", 3000)
    state = {"w": torch.randn(9, 7), "row": torch.randn(2, 40), "s": torch.tensor(1.0)}
    torch.save(state, tmp_path / "a")
    report = convert(tmp_path / "a", tmp_path / "b", to="dcp", verify=True)
    assert len(report.files) > 3
    with open_source(tmp_path / "b") as made:
        assert [len(made.tensors[name].boxes) for name in ("w", "row", "s")] == [3, 4, 1]
    same(state, load(tmp_path / "b", tmp_path))


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
