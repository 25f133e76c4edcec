# SPDX-License-Identifier: Apache-2.0
"""Conversions among all formats, of a state with everything that torch saves, as torch itself reads them."""

import datetime

import pytest

pytest.importorskip("torch", reason="torch is not installed: see scripts/python_env.sh")

import sealpoint  # noqa: E402
import sealpoint.torch as sp  # noqa: E402
import torch  # noqa: E402
import torch.distributed.checkpoint as dcp  # noqa: E402
from convert_states import contents, same, zoo  # noqa: E402
from sealpoint.interop import convert, open_source  # noqa: E402
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
        back = convert(made, tmp_path / "back", to="torch", verify=True)
        empty_count = sum("empty" in name for name in contents(made)[1])  # of which nothing can be damaged
        assert back.unprotected_count == report.tensor_count - empty_count
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


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (torch._neg_view(torch.tensor([1])), "tensor of i64 is a view with unknown bits"),
        (torch._neg_view(torch.tensor([1j])), "tensor of c64 is a view with unknown bits"),
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


def test_large_tensors_become_several_items(tmp_path, monkeypatch):
    from sealpoint.interop import _torch_write

    monkeypatch.setattr(_torch_write, "ITEM_BYTES_MAX", 100)
    monkeypatch.setattr(_torch_write, "FILE_BYTES_MAX", 3000)
    state = {"w": torch.randn(9, 7), "row": torch.randn(2, 40), "s": torch.tensor(1.0)}
    torch.save(state, tmp_path / "a")
    report = convert(tmp_path / "a", tmp_path / "b", to="dcp", verify=True)
    assert len(report.files) > 3
    with open_source(tmp_path / "b") as made:
        assert [len(made.tensors[name].boxes) for name in ("w", "row", "s")] == [3, 4, 1]
    same(state, load(tmp_path / "b", tmp_path))
