# SPDX-License-Identifier: Apache-2.0
"""The iterator that vLLM is given; its loaders themselves are run by scripts/frameworks.sh."""

import importlib.util

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
    assert all(one.dtype == expected[name].dtype and torch.equal(one, expected[name]) for name, one in found.items())


def test_names_are_those_of_the_model(path):
    same(dict(sealpoint.vllm.weights(path)), MODEL)
    of_model = {name.removeprefix("model."): one for name, one in MODEL.items() if name.startswith("model.")}
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
    with pytest.raises(sealpoint.NotFoundError, match="'none.\\*' fits no name"):
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
