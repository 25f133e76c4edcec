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
from sealpoint.interop import convert, open_source  # noqa: E402
from test_inspect_formats import check_same  # noqa: E402

MADE = "megatron_torch_0.19.2"
IN_WHOLE = {"input_layernorm.": "self_attention.linear_qkv.layer_norm_", "pre_mlp_layernorm.": "mlp.linear_fc1.layer_norm_"}


def arrays_of(path):
    checkpoint = sealpoint.open(path)
    return {name: numpy.frombuffer(checkpoint[name].tobytes(), "u2" if checkpoint[name].itemsize == 2 else "u4")
            .reshape(checkpoint[name].shape) for name in checkpoint}  # fmt: skip


MOMENTS = ("exp_avg", "exp_avg_sq")


@pytest.mark.parametrize("name", ["2_1_g", "2_2_d", "2_2_gt"])
@pytest.mark.parametrize("inside", ["", "iter_0000005"])
def test_the_ranks_are_joined_as_in_torch_dist(name, inside, unpack, tmp_path):
    folder = unpack(MADE) / name
    drop = ["optimizer"] if "d" in name else ["optimizer", "opt_param_scheduler"]
    report = convert(folder / "ranks" / inside, tmp_path / "made", drop=drop, verify=True)
    assert (report.source_format, report.is_whole, report.left_out) == ("megatron_torch", True, [])
    convert(folder / "whole", tmp_path / "whole", drop=["*_extra_state*", "optimizer.*", "common_state*"])
    check_values(arrays_of(tmp_path / "made"), arrays_of(tmp_path / "whole"))
    assert sealpoint.open(tmp_path / "made").step == 5 and check_same(folder / "ranks" / inside) is None
    shown = subprocess.run([sys.executable, "-m", "sealpoint", "ls", folder / "ranks"], capture_output=True, text=True, check=True)
    assert "directory of Megatron's ranks (--ckpt-format torch), step 5" in shown.stdout


def check_values(found, whole):
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
    assert seen == whole.keys()


@pytest.mark.parametrize("name", ["2_1_g", "2_2_gt"])
def test_the_moments_are_those_that_megatron_loads(name, unpack, tmp_path):
    folder = unpack(MADE) / name
    report = convert(folder / "ranks", tmp_path / "made", verify=True)
    assert [entry.name for entry in report.left_out] == ["opt_param_scheduler"]
    convert(folder / "whole", tmp_path / "whole", match=["optimizer.state.*"])
    found, whole = arrays_of(tmp_path / "made"), arrays_of(tmp_path / "whole")
    prefix = "optimizer.state."
    for kind in MOMENTS:
        check_values({key.removeprefix(prefix).removesuffix(f".{kind}"): array for key, array in found.items()
                      if key.startswith(prefix) and key.endswith(f".{kind}")},
                     {key.removeprefix(f"{prefix}{kind}."): array for key, array in whole.items()
                      if key.startswith(f"{prefix}{kind}.")})  # fmt: skip
    with open_source(folder / "ranks") as source:
        state = source.tree["optimizer"]
        names = [key for key in found if not key.startswith(prefix)]
        decayed, others = (set(group["params"]) for group in state["param_groups"])
        assert decayed | others == set(names) == state["state"].keys() and not decayed & others
        assert others == {key for key in names if found[key].ndim == 1}
        assert [group["wd_mult"] for group in state["param_groups"]] == [1.0, 0.0]
    steps = {found[key].view("f4").item() for key in found if key.endswith(".step")} if name == "2_1_g" else {
        one["step"] for one in state["state"].values()}  # fmt: skip
    assert steps == {2}


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
    assert convert(write(tmp_path / "two/iter_0000005", **old), tmp_path / "joined").tensor_count == 4
    differs = write(tmp_path / "other/iter_0000005", change=put("decoder.final_layernorm.weight", torch.ones(4)), **old)
    with pytest.raises(sealpoint.CorruptError, match="here it differs from rank 0"):
        convert(differs, tmp_path / "other_made")


def test_tied_embeddings_that_differ(tmp_path):
    def tie(rank, stage, state):
        state["args"].untie_embeddings_and_output_weights = False
        if stage == 1:
            state["model"]["output_layer.weight"] = torch.ones(4, 4)

    with pytest.raises(sealpoint.CorruptError, match="differs from the embeddings"):
        convert(write(tmp_path / "iter_0000005", 2, tie), tmp_path / "made")


def with_optimizer(rank, stage, state):
    """As Float16OptimizerWithFloat16Params stores it: the weights, then the norms."""
    model = state["model"]
    for name in model:
        model[name] = model[name].bfloat16()
    groups = [[name for name in model if "norm" not in name], [name for name in model if "norm" in name]]
    order = [*groups[0], *groups[1]]
    made = {number: {"exp_avg": model[name].float() + number, "exp_avg_sq": model[name].float() * 2}
            for number, name in enumerate(order)}  # fmt: skip
    numbers = [[order.index(name) for name in group] for group in groups]
    state["optimizer"] = {
        "optimizer": {"state": made, "param_groups": [{"lr": 0.1, "step": 7, "params": group} for group in numbers]},
        "fp32_from_fp16_params": [[model[name].float() for name in group] for group in groups],
    }


def changed(change, of=(1,)):
    def both(rank, stage, state):
        with_optimizer(rank, stage, state)
        if rank in of:
            change(state["optimizer"])

    return both


def swap(groups):
    groups[0][0], groups[0][1] = groups[0][1], groups[0][0]


UNCONFIRMED = {
    "copies in another order": lambda one: swap(one["fp32_from_fp16_params"]),
    "a copy of another training": lambda one: one["fp32_from_fp16_params"][1][0].add_(1),
    "a copy that differs at its end": lambda one: one["fp32_from_fp16_params"][0][0].view(-1)[-1:].add_(1),
    "another shape": lambda one: one["optimizer"]["state"][0].update(exp_avg=torch.ones(16)),
    "a moment of a norm that differs": lambda one: one["optimizer"]["state"][3]["exp_avg"].add_(1),
    "another step": lambda one: one["optimizer"]["param_groups"][0].update(step=8),
    "a parameter without state": lambda one: one["optimizer"]["state"].pop(1),
    "a parameter without a moment": lambda one: one["optimizer"]["state"][1].pop("exp_avg"),
    "a parameter without a number": lambda one: one["optimizer"]["param_groups"][0]["params"].pop(),
    "a copy too many": lambda one: (one["fp32_from_fp16_params"][1].append(torch.ones(4)),
                                    one["optimizer"]["param_groups"][1]["params"].append(9)),
    "a copy that fits two groups": lambda one: (one["fp32_from_fp16_params"].append([one["fp32_from_fp16_params"][0][0]]),
                                                one["optimizer"]["param_groups"].append({"params": [0]})),
    "a group too few": lambda one: one["fp32_from_fp16_params"].pop(),
    "no copies": lambda one: one.pop("fp32_from_fp16_params"),
    "no state": lambda one: one.clear(),
}  # fmt: skip


@pytest.mark.parametrize("name", UNCONFIRMED)
@pytest.mark.parametrize("of", [(1,), (0, 1)])
def test_moments_that_cannot_be_confirmed_are_left_out(name, of, tmp_path):
    fits = of == (0, 1) and name in ("a moment of a norm that differs", "another step", "a parameter without a moment")
    folder = write(tmp_path / "iter_0000005", change=changed(UNCONFIRMED[name], of))
    report = convert(folder, tmp_path / "made")
    assert [entry.name for entry in report.left_out] == ([] if fits else ["optimizer"])
    assert report.is_whole == fits
    made = sealpoint.open(tmp_path / "made")
    assert (sorted(made) == sorted(SHAPES)) == (not fits) and check_same(folder) is None


def test_other_state_is_left_out_by_name(tmp_path):
    folder = write(tmp_path / "iter_0000005", change=changed(
        lambda one: (one.update(grad_scaler={"scale": 1.0}), one["optimizer"]["state"][0].update(row=torch.ones(2))), (0, 1)))
    report = convert(folder, tmp_path / "made", verify=True)
    assert [entry.name for entry in report.left_out] == ["optimizer.state.*.row", "grad_scaler"]
    with open_source(folder) as source:
        assert source.tree["optimizer"]["state"][QKV]["step"] == 7
    with pytest.raises(sealpoint.LimitExceededError):
        convert(folder, tmp_path / "other", metadata_memory_bytes=20_000)
