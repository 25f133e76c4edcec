# SPDX-License-Identifier: Apache-2.0
"""Megatron's format before torch_dist: the files of the ranks are joined into what torch_dist has of the same model.

fixtures/make_megatron_torch.py made both of models of Megatron-core.
"""

import argparse
import shutil
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: see scripts/python_env.sh")

import numpy  # noqa: E402
import sealpoint  # noqa: E402
from sealpoint.interop import convert  # noqa: E402
from test_inspect_formats import check_same  # noqa: E402

MADE = "megatron_torch_0.19.2"
IN_WHOLE = {"input_layernorm.": "self_attention.linear_qkv.layer_norm_", "pre_mlp_layernorm.": "mlp.linear_fc1.layer_norm_"}


def arrays_of(path):
    checkpoint = sealpoint.open(path)
    return {name: numpy.frombuffer(checkpoint[name].tobytes(), "u2" if checkpoint[name].itemsize == 2 else "u4")
            .reshape(checkpoint[name].shape) for name in checkpoint}  # fmt: skip


@pytest.mark.parametrize("name", ["2_1_g", "2_2_", "2_2_gt"])
@pytest.mark.parametrize("inside", ["", "iter_0000005"])
def test_the_ranks_are_joined_as_in_torch_dist(name, inside, unpack, tmp_path):
    folder = unpack(MADE) / name
    report = convert(folder / "ranks" / inside, tmp_path / "made", drop=["optimizer"], verify=True)
    assert (report.source_format, report.is_whole, report.left_out) == ("megatron_torch", True, [])
    convert(folder / "whole", tmp_path / "whole", drop=["*_extra_state*"])
    found, whole = arrays_of(tmp_path / "made"), arrays_of(tmp_path / "whole")
    seen = set()
    for key, array in found.items():
        for ours, theirs in IN_WHOLE.items():
            key = key.replace(ours, theirs)
        head, layers, rest = key.partition("decoder.layers.")
        if layers:
            number, _, rest = rest.partition(".")
            key, expected = f"{head}{layers}{rest}", whole[f"{head}{layers}{rest}"][int(number)]
        else:
            expected = whole[key]
        seen.add(key)
        assert numpy.array_equal(array, expected), key
    assert seen == whole.keys() and sealpoint.open(tmp_path / "made").step == 5
    assert check_same(folder / "ranks" / inside) is None
    shown = subprocess.run([sys.executable, "-m", "sealpoint", "ls", folder / "ranks"], capture_output=True, text=True, check=True)
    assert "directory of Megatron's ranks (--ckpt-format torch), step 5" in shown.stdout


SIZES = {"hidden_size": 4, "num_attention_heads": 2, "kv_channels": 2, "ffn_hidden_size": 6, "swiglu": False,
         "group_query_attention": False, "padded_vocab_size": 8, "num_experts": None}  # fmt: skip
SHAPES = {"embedding.word_embeddings.weight": (4, 4), "decoder.layers.0.self_attention.linear_qkv.weight": (6, 4),
          "decoder.layers.0.mlp.linear_fc2.weight": (4, 3), "decoder.final_layernorm.weight": (4,)}  # fmt: skip
QKV = "decoder.layers.0.self_attention.linear_qkv.weight"


def write(folder, stages=1, change=lambda rank, stage, state: None, ranks=2, **options):
    for stage in range(stages):
        for rank in range(ranks):
            torch.manual_seed(stage)
            mesh = {"tensor_model_parallel_size": ranks, "pipeline_model_parallel_size": stages,
                    "untie_embeddings_and_output_weights": True}  # fmt: skip
            model = {name: torch.randn(shape) + (0 if "norm" in name else rank) for name, shape in SHAPES.items()
                     if (stage == 0 or "embedding" not in name) and (stage == stages - 1 or "final" not in name)}  # fmt: skip
            state = {"args": argparse.Namespace(**SIZES, **mesh), "iteration": 5, "model": model}
            change(rank, stage, state)
            path = folder / f"mp_rank_0{rank}{f'_00{stage}' if stages > 1 else ''}"
            path.mkdir(parents=True)
            torch.save(state, path / "model_optim_rng.pt", **options)
    return folder


def put(key, value, of=((1, 0),)):
    def change(rank, stage, state):
        if (rank, stage) in of:
            state["model"][key] = value

    return change


def argument(of=((0, 0), (1, 0)), **values):
    def change(rank, stage, state):
        if (rank, stage) in of:
            vars(state["args"]).update(values)

    return change


def lose(key, of=((1, 0),)):
    def change(rank, stage, state):
        if (rank, stage) in of:
            del state[key]

    return change


BOTH = ((0, 0), (1, 0))
REFUSED = {
    "another iteration": (lambda rank, _stage, state: state.update(iteration=5 + rank), "Corrupt",
                          "iteration 6 on 2 x 1 ranks, expected 5"),
    "another mesh": (argument(((1, 0),), tensor_model_parallel_size=4), "Corrupt",
                     "iteration 5 on 4 x 1 ranks, expected 5 on 2 x 1"),
    "more ranks": (argument(tensor_model_parallel_size=3), "Incomplete", "tensor-parallel rank 2 of pipeline stage 0 is missing"),
    "more stages": (argument(pipeline_model_parallel_size=2), "Incomplete", "rank 0 of pipeline stage 1 is missing"),
    "fewer ranks": (argument(tensor_model_parallel_size=1), "Unsupported", "how 1 ranks divide"),
    "a norm that differs": (put("decoder.final_layernorm.weight", torch.ones(4)), "Corrupt", "here it differs from rank 0"),
    "another size": (argument(ffn_hidden_size=7), "Unsupported", "is not known"),
    "gated without gates": (put("decoder.layers.0.mlp.linear_fc1.weight", torch.ones(6, 4), BOTH), "Unsupported", "is not known"),
    "an unknown name": (put("decoder.layers.0.mixer.weight", torch.ones(2), BOTH), "Unsupported", "is not known"),
    "experts": (put("decoder.layers.0.mlp.experts.linear_fc2.weight", torch.ones(4, 3), BOTH), "Unsupported", "is not known"),
    "a model with experts": (argument(num_experts=8), "Unsupported", "a model with experts, expected none"),
    "another shape": (put(QKV, torch.ones(5, 4)), "Corrupt", r"expected \[6, 4\] and the same dtype, as in rank 0"),
    "another dtype": (put(QKV, torch.ones(6, 4).bfloat16()), "Corrupt", r"expected \[6, 4\] and the same dtype, as in rank 0"),
    "one more": (put("more", torch.ones(1)), "Corrupt", "has 5 tensors, expected 4, as in rank 0"),
    "a vector": (put(QKV, torch.ones(6, 4, 1), BOTH), "Unsupported", "is not known"),
    "a value": (put("decoder.x", 7, BOTH), "Unsupported", "is a value, expected a tensor; "),
    "a model before Megatron-core": (put("language_model", {"a": torch.ones(1)}, BOTH), "Unsupported",
                                     "is a mapping, expected a tensor; "),
    "pieces": (lose("model", BOTH), "Unsupported", "several pieces of the model"),
    "no arguments": (lose("args", BOTH), "Corrupt", "the entry args is missing"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_files_that_do_not_fit_are_errors(name, tmp_path):
    change, code, message = REFUSED[name]
    folder = write(tmp_path / "iter_0000005", change=change)
    with pytest.raises(sealpoint.Error, match=message) as caught:
        convert(folder, tmp_path / "made")
    assert caught.value.code == code
    assert check_same(folder) == code


def test_stages_and_files_that_are_missing_or_too_many(tmp_path):
    folder = write(tmp_path / "iter_0000005", stages=3)
    assert convert(folder, tmp_path / "made").tensor_count == 4 + 2 * 3 - 2
    names = [*sealpoint.open(tmp_path / "made")]
    assert [name for name in names if "qkv" in name] == [QKV.replace("0", str(layer)) for layer in range(3)]
    shutil.copytree(folder / "mp_rank_00_000", folder / "mp_rank_02_000")
    with pytest.raises(sealpoint.UnsupportedError, match="the directory of a rank beyond 2 x 3"):
        convert(folder, tmp_path / "other")
    shutil.rmtree(folder / "mp_rank_02_000")
    whole = (folder / "mp_rank_01_002/model_optim_rng.pt").read_bytes()
    for size in (0, 100, len(whole) - 1):
        (folder / "mp_rank_01_002/model_optim_rng.pt").write_bytes(whole[:size])
        with pytest.raises(sealpoint.Error):
            convert(folder, tmp_path / "other")
    shutil.rmtree(folder / "mp_rank_01_002")
    with pytest.raises(sealpoint.IncompleteError, match="tensor-parallel rank 1 of pipeline stage 2 is missing"):
        convert(folder, tmp_path / "other")


def test_files_without_crc(tmp_path):
    """As torch wrote them before 1.6: one rank needs no comparison."""
    sizes = {"padded_vocab_size": 4, "ffn_hidden_size": 3, "num_attention_heads": 1}
    old = {"_use_new_zipfile_serialization": False}
    folder = write(tmp_path / "one/iter_0000005", change=argument(((0, 0),), **sizes), ranks=1, **old)
    assert convert(folder, tmp_path / "made", verify=True).tensor_count == 4
    expected = torch.load(folder / "mp_rank_00/model_optim_rng.pt", weights_only=False)["model"]
    made = sealpoint.open(tmp_path / "made")
    assert all(made[name].tobytes() == tensor.numpy().tobytes() for name, tensor in expected.items())
    with pytest.raises(sealpoint.CorruptError, match=r"has no CRC-32 \[tensor decoder.final_layernorm.weight"):
        convert(write(tmp_path / "two/iter_0000005", **old), tmp_path / "other")


def test_tied_embeddings_that_differ(tmp_path):
    def tie(rank, stage, state):
        state["args"].untie_embeddings_and_output_weights = False
        if stage == 1:
            state["model"]["output_layer.weight"] = torch.ones(4, 4)

    with pytest.raises(sealpoint.CorruptError, match="differs from the embeddings"):
        convert(write(tmp_path / "iter_0000005", 2, tie), tmp_path / "made")
