# SPDX-License-Identifier: Apache-2.0
"""Llama models in the files that Meta publishes, one for each model-parallel rank.

No program that writes them can be installed: the files are made as llama/model.py divides its layers (ColumnParallelLinear,
RowParallelLinear, and the embeddings by columns until Llama 2, by rows since Llama 3).
"""

import subprocess
import sys

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: see scripts/python_env.sh")

import sealpoint  # noqa: E402
from sealpoint.interop import convert  # noqa: E402
from test_inspect_formats import check_same  # noqa: E402

WIDTH, KV, HIDDEN, WORDS = 8, 4, 12, 16
BY_ROWS = (".wq.weight", ".wk.weight", ".wv.weight", ".w1.weight", ".w3.weight", "output.weight")
BY_COLUMNS = (".wo.weight", ".w2.weight")


def model():
    generator = torch.Generator().manual_seed(1)
    shapes = {"tok_embeddings.weight": (WORDS, WIDTH), "norm.weight": (WIDTH,), "output.weight": (WORDS, WIDTH),
              "rope.freqs": (3,)}
    for layer in range(2):
        of = {"attention.wq": (WIDTH, WIDTH), "attention.wk": (KV, WIDTH), "attention.wv": (KV, WIDTH),
              "attention.wo": (WIDTH, WIDTH), "feed_forward.w1": (HIDDEN, WIDTH), "feed_forward.w2": (WIDTH, HIDDEN),
              "feed_forward.w3": (HIDDEN, WIDTH), "attention_norm": (WIDTH,), "ffn_norm": (WIDTH,)}
        shapes |= {f"layers.{layer}.{name}.weight": shape for name, shape in of.items()}
    return {name: torch.randn(shape, generator=generator).bfloat16() for name, shape in shapes.items()}


def part(name, tensor, rank, ranks, embeddings_by):
    dim = 0 if name.endswith(BY_ROWS) else 1 if name.endswith(BY_COLUMNS) else None
    dim = embeddings_by if name == "tok_embeddings.weight" else dim
    return tensor.clone() if dim is None else tensor.chunk(ranks, dim)[rank].clone()


def write(folder, ranks, embeddings_by=0, change=lambda rank, state: None):
    folder.mkdir()
    (folder / "params.json").write_text('{"dim": 8}')
    for rank in range(ranks):
        state = {name: part(name, tensor, rank, ranks, embeddings_by) for name, tensor in model().items()}
        change(rank, state)
        torch.save(state, folder / f"consolidated.{rank:02}.pth")
    return folder


def raw(tensor):
    return tensor.contiguous().view(torch.uint8).numpy().tobytes()


@pytest.mark.parametrize("embeddings_by", [0, 1])
@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_the_parts_are_joined(ranks, embeddings_by, tmp_path):
    folder = write(tmp_path / "llama", ranks, embeddings_by)
    report = convert(folder, tmp_path / "made", verify=True)
    assert (report.source_format, [entry.name for entry in report.left_out], report.is_whole) == ("llama", ["params.json"], True)
    found = sealpoint.open(tmp_path / "made")
    assert {name: found[name].tobytes() for name in found} == {name: raw(tensor) for name, tensor in model().items()}
    assert check_same(folder) is None
    shown = subprocess.run([sys.executable, "-m", "sealpoint", "ls", folder], capture_output=True, text=True, check=True).stdout
    assert "directory of a Llama model (Meta), no step, 22 tensors" in shown


def test_tied_embeddings_in_one_file(tmp_path):
    def tie(_rank, state):
        state["output.weight"] = state["tok_embeddings.weight"]

    convert(write(tmp_path / "llama", 1, change=tie), tmp_path / "made")
    found = sealpoint.open(tmp_path / "made")
    assert found["tok_embeddings.weight"].tobytes() == raw(model()["tok_embeddings.weight"])


def put(name, tensor, of=(0, 1)):
    def change(rank, state):
        if rank in of:
            state[name] = tensor

    return change


def leave_out(rank, state):
    if rank == 1:
        state["more"] = state.pop("layers.1.ffn_norm.weight")


REFUSED = {
    "a norm that differs": (put("norm.weight", torch.ones(WIDTH).bfloat16(), (1,)), sealpoint.CorruptError,
                            "differs from rank 0"),
    "another name": (put("layers.0.moe.weight", torch.ones(4, WIDTH)), sealpoint.UnsupportedError, "is not known"),
    "another width": (put("layers.0.attention.wo.weight", torch.ones(WIDTH - 1, 4)), sealpoint.UnsupportedError, "is not known"),
    "divided by rows": (put("layers.0.feed_forward.w2.weight", torch.ones(4, HIDDEN)), sealpoint.UnsupportedError,
                        "is not known"),
    "embeddings of another width": (put("tok_embeddings.weight", torch.ones(4, 5)), sealpoint.UnsupportedError, "is not known"),
    "another shape": (put("output.weight", torch.ones(3, WIDTH).bfloat16(), (1,)), sealpoint.CorruptError,
                      r"shape \[3, 8\], expected \[8, 8\]"),
    "another dtype": (put("output.weight", torch.ones(8, WIDTH), (1,)), sealpoint.CorruptError, "the same dtype"),
    "a value": (put("step", 7), sealpoint.UnsupportedError, "the file has 23 entries and 22 tensors"),
    "one more": (put("more", torch.ones(1), (1,)), sealpoint.UnsupportedError, "23 entries"),
    "one for another": (leave_out, sealpoint.CorruptError, "the rank lacks the tensor"),
    "no norm": (lambda _rank, state: state.pop("norm.weight"), sealpoint.UnsupportedError, "of a model of width 0 is not known"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_parts_that_do_not_fit_are_errors(name, tmp_path):
    change, error, message = REFUSED[name]
    folder = write(tmp_path / "llama", 2, change=change)
    with pytest.raises(error, match=message):
        convert(folder, tmp_path / "made")
    assert check_same(folder) == error.__name__.removesuffix("Error")


def test_a_part_that_is_missing_or_cut_off(tmp_path):
    folder = write(tmp_path / "llama", 2)
    (folder / "consolidated.00.pth").rename(folder / "consolidated.02.pth")
    with pytest.raises(sealpoint.IncompleteError, match=r"consolidated\.01\.pth, expected consolidated\.00\.pth"):
        convert(folder, tmp_path / "made")
    (folder / "consolidated.02.pth").rename(folder / "consolidated.00.pth")
    whole = (folder / "consolidated.01.pth").read_bytes()
    for size in (0, 1000, len(whole) - 1):
        (folder / "consolidated.01.pth").write_bytes(whole[:size])
        with pytest.raises(sealpoint.Error):
            convert(folder, tmp_path / "made")
    (folder / "consolidated.01.pth").write_bytes(whole)
    with pytest.raises(sealpoint.UnsupportedError, match="give their directory"):
        convert(folder / "consolidated.01.pth", tmp_path / "made")
    assert convert(folder, tmp_path / "made").tensor_count == 22
