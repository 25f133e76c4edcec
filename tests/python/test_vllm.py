# SPDX-License-Identifier: Apache-2.0
"""The iterator that vLLM is given; its loaders themselves are run by scripts/frameworks.sh."""

import importlib.util
from collections.abc import Iterable

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: see scripts/python_env.sh")

import sealpoint  # noqa: E402
import sealpoint.torch as sp  # noqa: E402
import sealpoint.vllm  # noqa: E402

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


class Layers(torch.nn.Module):
    """Of one of ``size`` tensor-parallel ranks, with weight loaders in the ways of vLLM's layers."""

    def __init__(self, rank, size, odd=None):
        super().__init__()
        self.rank, self.size, self.odd = rank, size, odd
        self.embed, self.up, self.down = (torch.nn.Parameter(torch.zeros(shape)) for shape in (
            (64 // size, 8), (32 // size, 16), (16, 32 // size)))  # fmt: skip
        self.qkv = torch.nn.Parameter(torch.zeros(3 * 16 // size, 16))
        self.experts = torch.nn.Parameter(torch.zeros(4, 24 // size, 8))
        self.norm = torch.nn.Parameter(torch.zeros(16, dtype=torch.bfloat16))
        self.scale = torch.nn.Parameter(torch.zeros(1))

    def rows(self, loaded):
        count = loaded.shape[0] // self.size
        return loaded.narrow(0, self.rank * count, count)

    def load_weights(self, weights):
        for name, loaded in weights:
            if name in ("embed", "up"):
                part = self.rows(loaded)
                assert part.shape == getattr(self, name).shape
                getattr(self, name).data.copy_(part)
            elif name == "down":
                self.down.data.copy_(loaded.t().chunk(self.size)[self.rank].t())
            elif name in "qkv":
                self.qkv.data.view(3, -1, 16)["qkv".index(name)].copy_(self.rows(loaded)[:])
            elif name.startswith("expert"):
                self.experts.data[int(name[6:])].copy_(self.rows(loaded))
            elif name == "norm":
                self.norm.data.copy_(loaded.to(torch.bfloat16))
            elif name == "scale":
                if self.rank == 0:
                    self.scale.data.copy_(loaded.view(self.scale.shape))  # as vLLM's default_weight_loader for one element
                else:
                    self.scale.data.fill_(loaded.item())  # as SGLang's
            if self.odd:
                self.odd(self, name, loaded)


def whole_state():
    random = torch.Generator().manual_seed(5)
    shapes = {"embed": (64, 8), "up": (32, 16), "down": (16, 32), "q": (16, 16), "k": (16, 16), "v": (16, 16), "norm": (16,),
              "scale": (), **{f"expert{i}": (24, 8) for i in range(4)}}  # fmt: skip
    return {name: torch.randn(shape, generator=random) for name, shape in shapes.items()}


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
