# SPDX-License-Identifier: Apache-2.0
"""States that DeepSpeed's ZeRO divided among ranks: the weights are those of its zero_to_fp32.py, the moments of ds_to_universal.

fixtures/make_deepspeed.py made the archive with DeepSpeed itself. The files of the malformed states are made here, in its layout.
"""

import shutil
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: see scripts/python_env.sh")

import sealpoint  # noqa: E402
from fixtures.make_deepspeed import Net  # noqa: E402
from sealpoint.interop import convert, open_source  # noqa: E402
from sealpoint.torch import load  # noqa: E402
from test_inspect_formats import check_same  # noqa: E402

MADE = "deepspeed_0.19.8"
FOLDERS = ["1_3_fp32", "2_2_bf16", "3_2_bf16", "3_4_fp32", "2_2_bf16_universal", "3_2_bf16_universal"]


def tensors_of(path):
    checkpoint = sealpoint.open(path)
    return {name: torch.frombuffer(bytearray(checkpoint[name].tobytes()), dtype=getattr(torch, checkpoint[name].dtype.name))
            .reshape(checkpoint[name].shape) for name in checkpoint}  # fmt: skip


def lose_expected(folder):
    for name in ("expected.bin", "moments.bin"):
        (folder / name).unlink()


@pytest.mark.parametrize("name", FOLDERS)
def test_the_moments_are_those_of_ds_to_universal(name, unpack, tmp_path):
    folder = unpack(MADE) / name
    weights, expected = torch.load(folder / "expected.bin"), torch.load(folder / "moments.bin")
    lose_expected(folder)
    report = convert(folder, tmp_path / "made.pt", verify=True)
    assert (report.left_out, report.is_whole) == ([], True)
    found = torch.load(tmp_path / "made.pt")["optimizer"]
    assert found["state"].keys() == expected.keys() and len(expected) == 7
    for parameter, kinds in expected.items():
        state = found["state"][parameter]
        assert state.keys() == {"exp_avg", "exp_avg_sq", "step"} and state["step"].item() == 3
        for kind, tensor in kinds.items():
            assert torch.equal(state[kind].flatten(), tensor.flatten()), (parameter, kind)
            assert state[kind].shape == (() if kind == "step" else weights[parameter].shape)
    decayed = {group["weight_decay"]: set(group["params"]) for group in found["param_groups"]}
    assert decayed == {0.1: {key for key in expected if weights[key].ndim > 1},
                       0.0: {key for key in expected if weights[key].ndim == 1}}  # fmt: skip
    assert all(group["lr"] == 1e-2 and group["betas"] == (0.9, 0.999) for group in found["param_groups"])


@pytest.mark.parametrize("has_module", [False, True])
def test_torch_loads_it(has_module, unpack, tmp_path):
    from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict

    folder = unpack(MADE) / "1_3_fp32"
    expected = torch.load(folder / "moments.bin")
    lose_expected(folder)
    convert(folder, tmp_path / "made")
    net = Net()
    trained = [one for one in net.parameters() if one.requires_grad]
    groups = [[one for one in trained if one.ndim > 1], [one for one in trained if one.ndim == 1]]
    optimizer = torch.optim.AdamW([{"params": group, "weight_decay": 0.5} for group in groups], lr=0.5)
    if has_module:
        names = {f"{name}*": f"model.{name}*" for name in ("a", "b", "count", "embed", "frozen", "head", "norm", "offset", "scale")}
        load({"model": net, "optimizer": optimizer}, tmp_path / "made", rename=names)
    else:
        weights, state = get_state_dict(net, optimizer)
        assert load({**weights, "optimizer": state}, tmp_path / "made").findings == []
        set_state_dict(net, optimizer, model_state_dict=weights, optim_state_dict=state)
    for name, parameter in net.named_parameters():
        if parameter.requires_grad:
            state = optimizer.state[parameter]
            assert all(torch.equal(state[kind].flatten(), tensor.flatten()) for kind, tensor in expected[name].items())
    assert [(group["lr"], group["weight_decay"]) for group in optimizer.param_groups] == [(1e-2, 0.1), (1e-2, 0.0)]


@pytest.mark.parametrize("name", FOLDERS)
@pytest.mark.parametrize("is_tag", [False, True])
def test_the_weights_are_those_of_zero_to_fp32(name, is_tag, unpack, tmp_path):
    folder = unpack(MADE) / name
    expected = torch.load(folder / "expected.bin")
    lose_expected(folder)
    if is_tag:
        (folder,) = folder.glob("global_step3*")
    report = convert(folder, tmp_path / "made.pt", drop=["optimizer"], verify=True)
    assert (report.source_format, report.is_whole) == ("deepspeed", True)
    found = torch.load(tmp_path / "made.pt")
    more = {"frozen.weight", "frozen.bias"} if name.startswith("1") else set()  # zero_to_fp32 loses them
    assert found.keys() == expected.keys() | more
    for key, tensor in expected.items():
        assert torch.equal(found[key].to(tensor.dtype), tensor), key
    assert found["head.weight"].data_ptr() == found["embed.weight"].data_ptr()
    assert check_same(folder) is None


def test_a_universal_checkpoint_without_a_parameter(unpack, tmp_path):
    (folder,) = (unpack(MADE) / "3_2_bf16_universal").glob("global_step3*")
    torch.save(torch.zeros(41), folder / "zero/a.weight/fp32.pt")
    with pytest.raises(sealpoint.CorruptError, match="the parameters have 42 elements, and the partitions 41"):
        convert(folder, tmp_path / "made")
    torch.save({"params": torch.zeros(7, 6)}, folder / "zero/a.weight/fp32.pt")
    with pytest.raises(sealpoint.CorruptError, match="the entry param is missing"):
        convert(folder, tmp_path / "made")
    shutil.rmtree(folder / "zero/a.weight")
    with pytest.raises(sealpoint.IncompleteError, match="zero/a.weight/fp32.pt"):
        convert(folder, tmp_path / "made")


def test_a_universal_checkpoint_with_other_moments(unpack, tmp_path):
    (folder,) = (unpack(MADE) / "3_2_bf16_universal").glob("global_step3*")
    moment = folder / "zero/a.weight/exp_avg.pt"
    torch.save(torch.ones(42), folder / "zero/a.weight/momentum.pt")
    shutil.copy(folder / "zero/a.weight/momentum.pt", folder / "zero/a.weight/exp_avg.pt.bak")
    assert [entry.name for entry in convert(folder, tmp_path / "one").left_out] == [
        "optimizer.state.*.exp_avg.pt.bak", "optimizer.state.*.momentum"]  # fmt: skip
    expected = torch.load(moment).numpy().tobytes()
    assert sealpoint.open(tmp_path / "one")["optimizer.state.a.weight.exp_avg"].tobytes() == expected
    torch.save(torch.zeros(43), moment)
    with pytest.raises(sealpoint.CorruptError, match="the parameters have 42 elements, and the partitions 43"):
        convert(folder, tmp_path / "made")
    moment.unlink()
    with pytest.raises(sealpoint.IncompleteError, match="zero/a.weight/exp_avg.pt"):
        convert(folder, tmp_path / "made")
    (folder / "zero/optimizer_state.pt").unlink()
    assert [entry.name for entry in convert(folder, tmp_path / "made").left_out] == ["optimizer"]


def test_what_is_not_read_is_told(unpack, tmp_path):
    folder = unpack(MADE) / "3_2_bf16"
    (folder / "global_step3/notes.txt").write_text("x")
    report = convert(folder, tmp_path / "made")
    assert ([entry.name for entry in report.left_out], report.is_whole) == (["notes.txt"], True)
    assert "the newest iteration: global_step3" in report.notes
    shown = subprocess.run([sys.executable, "-m", "sealpoint", "ls", folder], capture_output=True, text=True, check=True).stdout
    assert "directory of DeepSpeed (ZeRO), step 3, 32 tensors" in shown


def test_a_model_beside_the_ranks_is_the_checkpoint(unpack, tmp_path):
    """As the Trainer of Hugging Face leaves it."""
    folder = unpack(MADE) / "2_2_bf16"
    sealpoint.save({"w": torch.ones(2).numpy()}, tmp_path / "model")
    convert(tmp_path / "model", folder / "model.safetensors")
    lose_expected(folder)
    with open_source(folder) as source:
        assert (source.format, [*source.tensors]) == ("hf", ["w"])


def test_latest_leads_nowhere(unpack, tmp_path):
    folder = unpack(MADE) / "2_2_bf16"
    lose_expected(folder)
    for tag in ("global_step9", "..", "../2_2_bf16/global_step3", "", "x" * 1000):
        (folder / "latest").write_text(tag)
        with pytest.raises(sealpoint.UnsupportedError, match=r"global_step3.*give one of these directories"):
            convert(folder, tmp_path / "made")


PIECES = "single_partition_of_fp32_groups"
WEIGHTS = {"a": torch.arange(7.0), "b": torch.arange(6.0).reshape(2, 3) / 4, "c": torch.tensor(9.0)}


def write(folder, stage, ranks=2, change=lambda file, rank, state: None):
    """One parameter group; `change` alters the state of a file ("model" or "partition") before it is written."""
    folder.mkdir()
    pieces = []
    for rank in range(ranks):
        if stage == 3:
            parts = []
            for tensor in WEIGHTS.values():
                size = -(-tensor.numel() // ranks)
                parts.append(torch.nn.functional.pad(tensor.flatten(), (0, size * ranks - tensor.numel()))[rank * size :][:size])
            pieces.append(torch.cat(parts))
        else:
            pieces.append(torch.cat([tensor.flatten() for tensor in WEIGHTS.values()]).chunk(ranks)[rank].clone())
    for rank, piece in enumerate(pieces):
        moments = {"state": {0: {"step": torch.tensor(4.0), "exp_avg": piece * 2}}}
        if stage == 3:
            state = {"fp32_flat_groups": [piece], "optimizer_state_dict": moments, "partition_count": ranks}
        else:
            state = {PIECES: [piece], "base_optimizer_state": moments, "partition_count": [ranks]}
        change("partition", rank, state)
        torch.save({"optimizer_state_dict": state}, folder / f"zero_pp_rank_{rank}_mp_rank_00_optim_states.pt")
    for rank in range(ranks if stage == 3 else 1):
        whole = {name: torch.zeros(0) if stage == 3 else tensor.bfloat16() for name, tensor in WEIGHTS.items()}
        shapes = {name: tensor.shape for name, tensor in WEIGHTS.items()}
        state = {"module": whole | {"buffer": torch.ones(2)}, "param_shapes": [shapes], "shared_params": {}, "global_steps": 4}
        change("model", rank, state)
        torch.save(state, folder / f"{f'zero_pp_rank_{rank}_' if stage == 3 else ''}mp_rank_00_model_states.pt")
    return folder


@pytest.mark.parametrize("stage", [2, 3])
@pytest.mark.parametrize("ranks", [1, 2, 3, 5])
def test_any_number_of_ranks(stage, ranks, tmp_path):
    convert(write(tmp_path / "run", stage, ranks), tmp_path / "made", verify=True)
    found = tensors_of(tmp_path / "made")
    state = {f"optimizer.state.{name}.{kind}" for name in WEIGHTS for kind in ("exp_avg", "step")}
    assert found.keys() == WEIGHTS.keys() | {"buffer"} | state
    for name, tensor in WEIGHTS.items():
        assert torch.equal(found[name], tensor) and torch.equal(found[f"optimizer.state.{name}.exp_avg"], tensor * 2)
        assert found[f"optimizer.state.{name}.step"] == 4


def put(file, key, value, rank=1):
    def change(at, of, state):
        if (at, of) == (file, rank):
            if value is None:
                del state[key]
            else:
                state[key] = value(state[key]) if callable(value) else value

    return change


def stepped(value):
    return lambda moments: moments | {"state": {0: {"step": value}}}


def moments(change):
    """`change` alters the state of the only group."""

    def of(file, rank, state):
        if file == "partition":
            inner = state["base_optimizer_state" if "base_optimizer_state" in state else "optimizer_state_dict"]
            change(rank, inner["state"][0])

    return of


def with_groups(numbers, more=()):
    return lambda optimizer: optimizer | {"param_groups": [{"params": params, **dict(more)} for params in numbers]}


def both(*changes):
    def change(*args):
        for one in changes:
            one(*args)

    return change


REFUSED = {
    "another step": (2, put("partition", "base_optimizer_state", stepped(torch.tensor(5.0))), "Corrupt", "of different saves"),
    "another step of stage 3": (3, put("partition", "optimizer_state_dict", stepped(torch.tensor(5.0))), "Corrupt",
                                "another number of steps than in zero_pp_rank_0"),
    "another step of the model": (3, put("model", "global_steps", 5), "Corrupt", "step 5, expected 4, as in zero_pp_rank_0"),
    "more ranks": (2, put("partition", "partition_count", [3]), "Incomplete", "one of 3 ranks, and the directory files of 2"),
    "more ranks of a group": (2, put("partition", "partition_count", [2, 4], 0), "Incomplete", "one of 4 ranks"),
    "experts": (3, put("partition", "ds_zero_partition_groups", [1]), "Unsupported", "experts"),
    "experts of the model": (2, put("model", "ds_autoep_layers", [1], 0), "Unsupported", "experts"),
    "a longer partition": (2, put("partition", PIECES, [torch.zeros(11)]), "Corrupt", "14 elements, and the partitions 18"),
    "a shorter partition": (2, put("partition", PIECES, [torch.zeros(6)]), "Corrupt", "have 13 elements, expected 14"),
    "a longer partition of stage 3": (3, put("partition", "fp32_flat_groups", [torch.zeros(9)]), "Corrupt", "the partitions 9"),
    "a shorter partition of stage 3": (3, put("partition", "fp32_flat_groups", [torch.zeros(7)]), "Corrupt", "the partitions 7"),
    "more groups": (2, put("partition", PIECES, [torch.zeros(7)] * 2), "Corrupt", "2 parameter groups, expected 1"),
    "more groups of shapes": (2, put("model", "param_shapes", lambda shapes: shapes * 2, 0), "Corrupt", "the shapes of 2"),
    "a matrix": (2, put("partition", PIECES, [torch.zeros(7, 1)]), "Corrupt", r"shape \[7, 1\]"),
    "a view": (2, put("partition", PIECES, [torch.zeros(14)[::2]]), "Corrupt", "expected one dense dimension"),
    "a number": (2, put("partition", PIECES, [7]), "Corrupt", "a partition is not a tensor"),
    "no partition": (2, put("partition", PIECES, None), "Corrupt", "the entry single_partition_of_fp32_groups is missing"),
    "another dtype": (2, put("partition", PIECES, [torch.zeros(7).double()]), "Corrupt", "different dtypes"),
    "a name twice": (2, put("model", "shared_params", {"a": "b"}, 0), "Corrupt", "a is stored twice"),
    "a name that is no string": (2, put("model", "param_shapes", [{1: torch.Size([14])}], 0), "Corrupt", "a name is a int"),
    "a shape too large": (2, put("model", "param_shapes", [{"a": torch.Size([1 << 40, 1 << 40])}], 0), "Corrupt", "2\\^64"),
    "no shapes": (2, put("model", "param_shapes", None, 0), "Corrupt", "the entry param_shapes is missing"),
    "shapes of another kind": (2, put("model", "param_shapes", 7, 0), "Corrupt", "expected a list or tuple"),
    "moments that a rank lacks": (2, moments(lambda rank, state: state.pop("exp_avg") if rank else None), "Corrupt",
                                  "the entry exp_avg is missing"),
    "longer moments": (3, moments(lambda rank, state: state.update(exp_avg=torch.zeros(8 + rank))), "Corrupt", "the partitions 9"),
    "moments in other parts": (2, moments(lambda rank, state: state.update(exp_avg=torch.zeros(6 + 2 * rank))), "Corrupt",
                               "divided in another way than the weights"),
    "moments of another dtype": (2, moments(lambda rank, state: state.update(exp_avg=torch.zeros(7).double()) if rank else None),
                                 "Corrupt", "different dtypes"),
    "a group that is unknown": (2, put("partition", "base_optimizer_state", with_groups([[1]]), 0), "Corrupt", "parameters 1 are"),
    "a group twice": (2, put("partition", "base_optimizer_state", with_groups([[0], [0]]), 0), "Corrupt", "or in two groups"),
    "a group of numbers": (2, put("partition", "base_optimizer_state", with_groups([[0]], {1: 2}), 0), "Corrupt", "beside names"),
    "a buffer named as a moment": (2, put("model", "module", {"optimizer.state.a.exp_avg": torch.ones(1)}, 0), "Corrupt",
                                   "optimizer.state.a.exp_avg is stored twice"),
    "a buffer named as all": (2, put("model", "module", {"optimizer": torch.ones(1)}, 0), "Corrupt", "optimizer is stored twice"),
    "a weight named as a value": (2, both(
        put("partition", "base_optimizer_state", with_groups([[0]], {"lr": torch.ones(1)}), 0),
        put("model", "param_shapes", [{"optimizer.param_groups.0.lr": torch.Size([14])}], 0)), "Corrupt", "lr is stored twice"),
    "no fragments": (3, put("model", "frozen_param_shapes", {"f": torch.Size([2])}, 0), "Corrupt", "frozen_param_fragments"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_files_that_do_not_fit_are_errors(name, tmp_path):
    stage, change, code, message = REFUSED[name]
    folder = write(tmp_path / "run", stage, change=change)
    with pytest.raises(sealpoint.Error, match=message) as caught:
        convert(folder, tmp_path / "made")
    assert caught.value.code == code
    assert check_same(folder) == code


@pytest.mark.parametrize("stage", [2, 3])
def test_other_state_is_left_out_by_name(stage, tmp_path):
    def change(file, rank, state):
        moments(lambda _, one: one.update(exp_avg_sq=one["exp_avg"] + rank, row=torch.ones(2), step=4))(file, rank, state)
        if file == "model":
            state |= {"lr_scheduler": {"last_epoch": 3}, "epoch": 7}
        else:
            state["dynamic_loss_scale"] = True

    folder = write(tmp_path / "run", stage, change=change)
    report = convert(folder, tmp_path / "made")
    names = ["loss_scaler", "lr_scheduler", "epoch", "optimizer.state.*.row"]
    assert ([entry.name for entry in report.left_out], report.is_whole) == (names, False)
    made = sealpoint.open(tmp_path / "made")
    assert sorted(made) == sorted([*WEIGHTS, "buffer", *(f"optimizer.state.{name}.{kind}" for name in WEIGHTS
                                                         for kind in ("exp_avg", "exp_avg_sq"))])  # fmt: skip
    with open_source(folder) as source:
        assert source.tree["optimizer"]["state"]["a"]["step"] == 4
    report = convert(folder, tmp_path / "other", drop=["optimizer", "loss_scaler", "epoch"])
    assert (report.left_out, sorted(sealpoint.open(tmp_path / "other"))) == ([], sorted([*WEIGHTS, "buffer"]))


def test_moments_take_no_memory_beyond_the_budget(tmp_path):
    def change(file, rank, state):
        moments(lambda _, one: one.update({kind: one["exp_avg"] for kind in ("exp_avg_sq", "exp_inf", "square_avg")}))(
            file, rank, state)  # fmt: skip
        if file == "model":
            state["param_shapes"][0] |= {str(number): torch.Size([0]) for number in range(30_000)}

    with pytest.raises(sealpoint.LimitExceededError):
        convert(write(tmp_path / "run", 2, change=change), tmp_path / "made")


def test_files_that_are_missing_or_of_parts(tmp_path):
    folder = write(tmp_path / "run", 3, ranks=3)
    second = folder / "zero_pp_rank_1_mp_rank_00_optim_states.pt"
    whole = second.read_bytes()
    second.unlink()
    with pytest.raises(sealpoint.IncompleteError, match="zero_pp_rank_1_mp_rank_00_optim_states.pt is missing, of the files of 2"):
        convert(folder, tmp_path / "made")
    for size in (0, 100, len(whole) // 2, len(whole) - 1):
        second.write_bytes(whole[:size])
        with pytest.raises(sealpoint.Error):
            convert(folder, tmp_path / "made")
    second.write_bytes(whole)
    model = folder / "zero_pp_rank_2_mp_rank_00_model_states.pt"
    shutil.move(model, tmp_path / "model")
    with pytest.raises(sealpoint.IncompleteError, match="zero_pp_rank_2_mp_rank_00_model_states.pt is missing"):
        convert(folder, tmp_path / "made")
    shutil.move(tmp_path / "model", model)
    for name in ("zero_pp_rank_0_mp_rank_01_optim_states.pt", "layer_00-model_00-model_states.pt",
                 "layer_0_expert_0_mp_rank_00_model_states.pt", "expp_rank_0_mp_rank_00_optim_states.pt"):  # fmt: skip
        (folder / name).write_bytes(whole)
        with pytest.raises(sealpoint.UnsupportedError, match="expected ZeRO alone; load it there"):
            convert(folder, tmp_path / "made")
        (folder / name).unlink()
    with pytest.raises(sealpoint.UnsupportedError, match="give their directory"):
        convert(second, tmp_path / "made")
    assert convert(folder, tmp_path / "made").tensor_count == 4 + 2 * 3
