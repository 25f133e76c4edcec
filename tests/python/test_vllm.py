# SPDX-License-Identifier: Apache-2.0
"""The iterator that vLLM is given; its loaders themselves are run by scripts/frameworks.sh."""

import importlib.util
from collections.abc import Iterable

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: see scripts/python_env.sh")

import sealpoint  # noqa: E402
import sealpoint.torch as sp  # noqa: E402
import sealpoint.vllm  # noqa: E402
from engine_layers import Layers, whole_state  # noqa: E402

MODEL = {"model.a.weight": torch.arange(6.0).reshape(2, 3), "model.b": torch.ones(4, dtype=torch.bfloat16),
         "model.scalar": torch.tensor(3), "optimizer.exp_avg": torch.zeros(5)}


@pytest.fixture
def path(tmp_path):
    sp.save(MODEL, tmp_path / "c")
    return tmp_path / "c"


def same(found, expected):
    assert found.keys() == expected.keys()
    assert all(item.dtype == expected[name].dtype and torch.equal(item, expected[name]) for name, item in found.items())


def test_names_are_those_of_the_model(path):
    same(dict(sealpoint.vllm.weights(path)), MODEL)
    of_model = {name.removeprefix("model."): value for name, value in MODEL.items() if name.startswith("model.")}
    same(dict(sealpoint.vllm.weights(path, rename={"model.*": "*"}, threads=2)), of_model)
    chosen = dict(sealpoint.vllm.weights(path, rename={"*.b": "h.*", "model.a.*": "a.*"}))
    same(chosen, {"h.model": MODEL["model.b"], "a.weight": MODEL["model.a.weight"]})


def test_one_tensor_is_read_at_a_time(path):
    blob = next(path.glob("*.blob"))
    data = bytearray(blob.read_bytes())
    at = data.index(MODEL["model.b"].view(torch.uint8).numpy().tobytes())
    data[at] ^= 1
    blob.write_bytes(data)
    found = sealpoint.vllm.weights(path)
    assert next(found)[0] == "model.a.weight"
    with pytest.raises(sealpoint.CorruptError) as caught:
        next(found)
    assert caught.value.tensor == "model.b"


def test_what_is_wrong_is_said_before_the_first(path, monkeypatch):
    with pytest.raises(sealpoint.NotFoundError, match="'none.\\*' matches no name"):
        next(sealpoint.vllm.weights(path, rename={"model.*": "*", "none.*": "*"}))
    with pytest.raises(sealpoint.InvalidArgumentError, match="becomes 'x', as 'model.a.weight' does") as caught:
        next(sealpoint.vllm.weights(path, rename={"model.*": "x"}))
    assert caught.value.tensor == "model.b"
    with pytest.raises(sealpoint.NotFoundError):
        next(sealpoint.vllm.weights(path / "none"))
    monkeypatch.delitem(sealpoint.vllm.DTYPE_OF, "bf16")
    with pytest.raises(sealpoint.UnsupportedError, match="no dtype bf16") as caught:
        next(sealpoint.vllm.weights(path))
    assert caught.value.tensor == "model.b"


@pytest.mark.skipif(importlib.util.find_spec("vllm") is not None, reason="vllm is installed")
def test_without_vllm():
    with pytest.raises(ImportError, match="sealpoint.vllm needs vllm"):
        sealpoint.vllm.register()


def parameters_of(model):
    return {name: parameter.detach().clone() for name, parameter in model.named_parameters()}


@pytest.mark.parametrize("size", [1, 2, 4])
def test_a_rank_reads_what_it_copies(tmp_path, size, caplog):
    state = whole_state()
    sp.save(state, tmp_path / "c")
    for rank in range(size):
        expected, found = Layers(rank, size), Layers(rank, size)
        expected.load_weights(iter(state.items()))
        report = sealpoint.vllm.load_weights(found, tmp_path / "c", threads=2)
        same(parameters_of(found), parameters_of(expected))
        assert all(type(parameter.data) is torch.Tensor for parameter in found.parameters())
        assert report.bytes_requested <= (1 / size + 0.02) * report.bytes_offered
    assert caplog.text == ""


class Sglang(torch.nn.Module):
    """With the interface of SGLang's models: parameters have weight loaders, of which those of several tensors in one take
    which it is."""

    def __init__(self, rank, size):
        super().__init__()
        self.gate_up = torch.nn.Parameter(torch.zeros(2, 8 // size, 4))

        def weight_loader(param, loaded_weight, shard_id):
            param.data.narrow(0, shard_id, 1)[0].copy_(loaded_weight.narrow(0, rank * 8 // size, 8 // size))

        self.gate_up.weight_loader = weight_loader

    def load_weights(self, weights: Iterable[tuple[str, torch.Tensor]]):
        params_dict = dict(self.named_parameters())
        for name, loaded_weight in weights:
            param = params_dict["gate_up"]
            param.weight_loader(param, loaded_weight, ("gate", "up").index(name))


def test_a_model_with_the_interface_of_sglang(tmp_path, caplog):
    state = {"gate": torch.randn(8, 4), "up": torch.randn(8, 4)}
    sp.save(state, tmp_path / "c")
    for rank in range(2):
        model = Sglang(rank, 2)
        report = sealpoint.vllm.load_weights(model, tmp_path / "c")
        rows = slice(4 * rank, 4 * rank + 4)
        assert torch.equal(model.gate_up.data, torch.stack([state["gate"][rows], state["up"][rows]]))
        assert report.bytes_requested * 2 == report.bytes_offered
    assert caplog.text == ""


def test_damage_of_other_parts_is_not_met(tmp_path):
    tensor = torch.arange(4 << 20, dtype=torch.int32).reshape(4, -1)
    sp.save({"w": tensor}, tmp_path / "c", chunk_size_bytes=1 << 20)
    (blob,) = (tmp_path / "c").glob("*.blob")
    data = bytearray(blob.read_bytes())
    data[9 << 20] ^= 1  # in the third of four rows
    blob.write_bytes(data)

    class Model:
        def __init__(self, row):
            self.row, self.memory = row, torch.zeros(1 << 20, dtype=torch.int32)

        def load_weights(self, weights):
            for _, loaded in weights:
                self.memory.copy_(loaded[self.row])

    good = Model(1)
    report = sealpoint.vllm.load_weights(good, tmp_path / "c")
    assert torch.equal(good.memory, tensor[1]) and report.bytes_requested == 4 << 20
    with pytest.raises(sealpoint.CorruptError):
        sealpoint.vllm.load_weights(Model(2), tmp_path / "c")


def looks_at_values(model, name, loaded):
    if name == "up" and loaded.abs().max().item() > 100:
        raise AssertionError


def keeps_the_tensor(model, name, loaded):
    if name == "up":
        model.up.data = model.rows(loaded)


def changes_its_mind(model, name, loaded):
    model.calls = getattr(model, "calls", 0) + 1
    if name == "up" and model.calls > len(whole_state()):  # not the first time
        model.up.data.copy_(model.rows(loaded.flip(0)).flip(0) if model.rank == 0 else loaded[:8])
        model.up.data.copy_(model.rows(loaded))


@pytest.mark.parametrize("odd, why", [(looks_at_values, "Error"), (keeps_the_tensor, "keeps the tensors"),
                                      (changes_its_mind, "the loading code copied different elements in its")])  # fmt: skip
def test_whole_tensors_are_read_if_need_be(tmp_path, odd, why, caplog):
    state = whole_state()
    sp.save(state, tmp_path / "c")
    expected, found = Layers(1, 4), Layers(1, 4, odd)
    expected.load_weights(iter(state.items()))
    report = sealpoint.vllm.load_weights(found, tmp_path / "c")
    same(parameters_of(found), parameters_of(expected))
    assert report.bytes_requested == report.bytes_offered and why in caplog.text
    assert all(type(parameter.data) is torch.Tensor for parameter in found.parameters())


@pytest.fixture
def engine(tmp_path):
    """A model of one rank that was filled from a checkpoint, and the checkpoint's tensors."""
    state = whole_state()
    state["norm"] = state["norm"].to(torch.bfloat16)
    sp.save(state, tmp_path / "c", fingerprints=True)
    sp.save(state, tmp_path / "without")
    model = Layers(0, 1)
    sealpoint.vllm.load_weights(model, tmp_path / "c")
    return model, state


def test_a_model_is_verified_and_does_not_change(engine, tmp_path):
    model, state = engine
    before = parameters_of(model)
    for expected in (tmp_path / "c", tmp_path / "without", sp.fingerprints(state), sealpoint.open(tmp_path / "c")):
        assert sealpoint.vllm.verify(model, expected) == (tuple(sorted(state)), (), {})
        same(parameters_of(model), before)


def test_each_wrong_element_is_named(engine, tmp_path):
    model, state = engine
    expected = sp.fingerprints(state)
    random = torch.Generator().manual_seed(1)
    for name, parameter in model.named_parameters():
        bits = parameter.data.view({2: torch.int16, 4: torch.int32}[parameter.element_size()]).view(-1)
        for at in torch.randint(len(bits), (12,), generator=random).tolist():
            bits[at] ^= 1
            third = 3 * at // len(bits)
            named = {"qkv": "qkv"[third], "experts": f"expert{4 * at // len(bits)}"}.get(name, name)
            with pytest.raises(sealpoint.CorruptError, match="are not those expected") as caught:
                sealpoint.vllm.verify(model, expected)
            assert caught.value.tensor == named
            bits[at] ^= 1
    swapped = model.experts.data[[1, 0, 2, 3]]
    model.experts.data.copy_(swapped)
    with pytest.raises(sealpoint.CorruptError, match="expected; also expert1") as caught:
        sealpoint.vllm.verify(model, expected)
    assert caught.value.tensor == "expert0"


def test_a_cast_is_verified_against_a_checkpoint(engine, tmp_path):
    model, _ = engine
    state = {**whole_state(), "more": torch.zeros(3)}
    sp.save(state, tmp_path / "f32")
    sealpoint.vllm.load_weights(model, tmp_path / "f32")
    model.norm.data.copy_(state["norm"])

    def load(weights):
        for name, loaded in weights:
            if name == "norm":
                model.norm.data.copy_(loaded)
            else:
                Layers.load_weights(model, [(name, loaded)])

    model.load_weights = load
    result = sealpoint.vllm.verify(model, tmp_path / "f32")
    assert "norm" in result.verified and result.unused == ("more",) and not result.unverified
    with pytest.raises(sealpoint.UnsupportedError, match="as bf16, and the expected fingerprint is of f32") as caught:
        sealpoint.vllm.verify(model, sp.fingerprints(state))
    assert caught.value.tensor == "norm"
    model.norm.data[3] += 1
    with pytest.raises(sealpoint.CorruptError) as caught:
        sealpoint.vllm.verify(model, tmp_path / "f32")
    assert caught.value.tensor == "norm"


class Odd(torch.nn.Module):
    """Its loader treats each tensor as its function says."""

    def __init__(self, **functions):
        super().__init__()
        self.functions = functions
        for name in functions:
            self.register_parameter(name, torch.nn.Parameter(torch.zeros(4, 6)))

    def load_weights(self, weights):
        for name, loaded in weights:
            self.functions[name](self.get_parameter(name), loaded)


def test_a_tensor_that_cannot_be_compared_has_a_reason():
    half = torch.zeros(2, 6, dtype=torch.float16)

    def copies(parameter, loaded):
        parameter.data.copy_(loaded)

    def through_memory_of_its_own(parameter, loaded):
        parameter.data.copy_(torch.empty_like(loaded).copy_(loaded))

    def raises(parameter, loaded):
        raise KeyError("no such name")

    def keeps(parameter, loaded):
        parameter.data = loaded

    def changes(parameter, loaded):
        parameter.data.copy_(loaded.mul_(2))

    def several(parameter, loaded):
        parameter.data[:2].copy_(loaded[:2])
        half.copy_(loaded[2:])

    def drops(parameter, loaded):
        parameter.data[:3].copy_(loaded[:3])

    model = Odd(
        copies=copies, clones=lambda parameter, loaded: parameter.data.copy_(loaded.clone()), raises=raises, keeps=keeps,
        changes=changes, drops=drops, own=through_memory_of_its_own,
        computes=lambda parameter, loaded: parameter.data.copy_(loaded * 2),
        ignores=lambda parameter, loaded: None,
        broadcasts=lambda parameter, loaded: parameter.data.copy_(loaded[:1]),
        gathers=lambda parameter, loaded: parameter.data[:2].copy_(loaded[::2]),
        repeats=lambda parameter, loaded: parameter.data.view(2, 2, 6).copy_(loaded[::3].unsqueeze(1).expand(2, 2, 6)),
        rounds=lambda parameter, loaded: parameter.data.copy_(loaded.to(torch.float16)),
        several=several,
        transposes=lambda parameter, loaded: parameter.data.copy_(loaded.t()),
        turns=lambda parameter, loaded: parameter.data.copy_(loaded.view(torch.int32)),
        halves=lambda parameter, loaded: (parameter.data[:2].copy_(loaded[:2]), parameter.data[2:].copy_(loaded[2:])),
    )  # fmt: skip
    state = {name: torch.randn((6, 4) if name == "transposes" else (4, 6)) for name in model.functions}
    for name in ("clones", "copies", "halves", "transposes"):
        model.get_parameter(name).data.copy_(state[name].t() if name == "transposes" else state[name])
    before = parameters_of(model)
    addresses = {name: parameter.data_ptr() for name, parameter in model.named_parameters()}
    with pytest.raises(sealpoint.UnsupportedError, match='not compared: .*; also .* and 4 more; unverified="allow"'):
        sealpoint.vllm.verify(model, sp.fingerprints(state))
    result = sealpoint.vllm.verify(model, sp.fingerprints(state), unverified="allow")
    assert result.verified == ("clones", "copies", "halves", "transposes") and result.unused == ()
    for name, reason in {
        "own": "computes with it", "computes": "computes with it", "raises": "raised KeyError: 'no such name'",
        "keeps": "no tensor is copied", "changes": "changes its elements", "drops": "hold 18 elements in different parts, exp",
        "ignores": "rank 0: parameter into which no tensor is copied", "broadcasts": "broadcasts it",
        "gathers": "not a box of the tensor", "turns": "torch.int32",
        "repeats": "not a box of the tensor", "rounds": "computes with it", "several": "in several dtypes",
    }.items():  # fmt: skip
        assert reason in result.unverified.pop(name)
    assert not result.unverified
    for name, parameter in model.named_parameters():
        assert parameter.data_ptr() == addresses[name]
    same(parameters_of(model), before)
    assert not half.any()


def test_a_number_is_verified_if_memory_is_filled_with_it():
    def load(fill):
        model = Odd()
        model.scale, model.count = (torch.nn.Parameter(torch.tensor(value), requires_grad=False) for value in ([2.5], 7))
        model.functions = {name: fill for name in ("scale", "count")}
        return model

    expected = sp.fingerprints({"scale": torch.tensor(2.5), "count": torch.tensor(7)})
    good = load(lambda parameter, loaded: parameter.data.fill_(loaded.item()))
    assert sealpoint.vllm.verify(good, expected).verified == ("count", "scale")
    good.count.data.fill_(8)
    with pytest.raises(sealpoint.CorruptError) as caught:
        sealpoint.vllm.verify(good, expected)
    assert caught.value.tensor == "count"
    doubled = load(lambda parameter, loaded: parameter.data.fill_(2 * loaded.item()))
    assert sealpoint.vllm.verify(doubled, expected, unverified="allow").verified == ()
    many = Odd(**{f"w{number:02}": lambda parameter, loaded: 1 / 0 for number in range(20)})
    expected = sp.fingerprints({name: torch.zeros(4, 6) for name in many.functions})
    result = sealpoint.vllm.verify(many, expected, unverified="allow")
    assert "ZeroDivisionError" in result.unverified["w15"] and "raised for 16 tensors before" in result.unverified["w16"]


def test_wrong_arguments_of_a_verification(engine, tmp_path):
    model, state = engine
    with pytest.raises(sealpoint.InvalidArgumentError, match="unverified is 'no', expected one of error, allow"):
        sealpoint.vllm.verify(model, tmp_path / "c", unverified="no")
    with pytest.raises(sealpoint.InvalidArgumentError, match="load_weights"):
        sealpoint.vllm.verify(torch.nn.Linear(2, 2), tmp_path / "c")
    with pytest.raises(sealpoint.NotFoundError, match="'none' matches no name"):
        sealpoint.vllm.verify(model, tmp_path / "c", rename={"none": "x"})
    with pytest.raises(sealpoint.NotFoundError):
        sealpoint.vllm.verify(model, tmp_path / "none")
    with pytest.raises(sealpoint.InvalidArgumentError, match="expected\\['w'\\] is 5, expected a TensorFingerprint"):
        sealpoint.vllm.verify(model, {"w": 5})


def test_workers_of_vllm_verify_their_model(engine, tmp_path):
    model, state = engine
    sp.save({"model": state}, tmp_path / "run")

    class Worker(sealpoint.vllm.WorkerExtension):
        def get_model(self):
            return model

    assert len(Worker().sealpoint_verify(str(tmp_path / "run"), {"model.*": "*"}).verified) == len(state)
