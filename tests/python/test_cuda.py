# SPDX-License-Identifier: Apache-2.0
"""States on a CUDA device: what torch, JAX and any array with DLPack hold there is saved from there and loaded to there."""

import threading

import numpy as np
import pytest
import sealpoint
import sealpoint.fingerprint

torch = pytest.importorskip("torch", reason="torch is not installed: see scripts/python_env.sh")
import sealpoint.torch as sp  # noqa: E402
from sealpoint.torch import _random  # noqa: E402

if not torch.cuda.is_available():
    pytest.skip("torch finds no CUDA device", allow_module_level=True)


def new_state(device="cuda"):
    model = torch.nn.Sequential(torch.nn.Linear(300, 500), torch.nn.Linear(500, 70, dtype=torch.float32)).to(device)
    model.register_buffer("table", torch.zeros(33, 7, dtype=torch.bfloat16, device=device).t())
    return {"model": model, "optimizer": torch.optim.AdamW(model.parameters(), lr=1e-3), "step": 0}


def train(state, steps):
    losses = []
    device = next(state["model"].parameters()).device
    for state["step"] in range(state["step"] + 1, state["step"] + 1 + steps):
        torch.manual_seed(state["step"])
        loss = state["model"](torch.randn(16, 300, device=device)).square().mean()
        loss.backward()
        state["optimizer"].step()
        state["optimizer"].zero_grad()
        losses.append(loss.item())
    return losses


def tensors_of(state):
    moments = [moment for value in state["optimizer"].state.values() for moment in value.values()]
    return [tensor.detach().cpu() for tensor in [*state["model"].state_dict().values(), *moments]]


def same(found, expected):
    assert len(found) == len(expected)
    for item, other in zip(found, expected, strict=True):
        assert item.dtype == other.dtype and item.shape == other.shape and torch.equal(item, other)


@pytest.mark.parametrize("target", ["cuda", "cpu"])
def test_a_resumed_training_goes_on_alike(tmp_path, target):
    state = new_state()
    state["model"].table.copy_(torch.randn(7, 33))
    train(state, 3)
    sp.save(state, tmp_path / "c", step=3)
    resumed = new_state(target)
    sp.load(resumed, tmp_path / "c")
    assert resumed["step"] == 3
    assert {tensor.device.type for tensor in resumed["model"].state_dict().values()} == {target}
    same(tensors_of(resumed), tensors_of(state))
    if target == "cuda":
        assert train(resumed, 3) == train(state, 3)
        same(tensors_of(resumed), tensors_of(state))


def test_a_save_in_the_background_has_what_the_state_was(tmp_path):
    state = {"w": torch.arange(64 << 20, dtype=torch.int32, device="cuda")}
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(200_000_000)  # what is queued on the stream before the save is in it
        state["w"].add_(5)
        future = sp.save_async(state, tmp_path / "c", step=1)
        state["w"].zero_()  # what is queued after it is not
    future.result()
    torch.cuda.synchronize()
    assert not state["w"].any()
    found = {"w": torch.zeros_like(state["w"])}
    sp.load(found, tmp_path / "c")
    assert torch.equal(found["w"], torch.arange(64 << 20, dtype=torch.int32, device="cuda") + 5)


def test_load_full_on_the_device(tmp_path):
    state = new_state()
    train(state, 1)
    sp.save(state, tmp_path / "c")
    found = sp.load_full(tmp_path / "c", device="cuda")
    for name, tensor in state["model"].state_dict().items():
        assert found["model"][name].is_cuda and torch.equal(found["model"][name], tensor)


def test_a_flipped_bit_is_found_on_the_way_to_the_device(tmp_path):
    state = {"w": torch.randn(1 << 20, device="cuda")}
    info = sp.save(state, tmp_path / "c")
    (blob,) = [path for path in (tmp_path / "c").iterdir() if path.stat().st_size > 1 << 20]
    content = bytearray(blob.read_bytes())
    content[1 << 21] ^= 1
    blob.write_bytes(content)
    with pytest.raises(sealpoint.CorruptError, match="w"):
        sp.load({"w": torch.zeros(1 << 20, device="cuda")}, tmp_path / "c")
    assert info.raw_bytes >= 4 << 20


def test_fingerprints_are_those_of_the_host(tmp_path):
    state = new_state()
    train(state, 2)
    sp.save(state, tmp_path / "c", fingerprints=True)
    found = sp.fingerprints(state)
    assert not sealpoint.fingerprint.differences(found, sealpoint.fingerprint.of_checkpoint(tmp_path / "c"))
    tensor = torch.randn(2000, 1500, device="cuda").t()
    assert sealpoint.fingerprint.of_array(tensor) == sealpoint.fingerprint.of_array(tensor.cpu())
    sentinel = sp.Sentinel(state)
    sentinel.before_optimizer(1)
    sentinel.end_of_step(1)
    state["model"][0].weight.data[7, 9] += 1
    sentinel.before_optimizer(2)
    (finding,) = sentinel.findings
    assert finding.tensor == "model.0.weight"


def test_random_states_of_the_device(tmp_path):
    torch.cuda.manual_seed(7)
    torch.randn(3, device="cuda")
    states = _random.random_states()
    assert "torch.cuda" in [name for name, _ in states]
    expected = torch.randn(100, device="cuda")
    sp.save({"states": states}, tmp_path / "c")
    torch.cuda.manual_seed(8)
    found = {"states": None}
    sp.load(found, tmp_path / "c")
    _random.set_random_states(found["states"])
    assert torch.equal(torch.randn(100, device="cuda"), expected)


def test_arrays_by_dlpack(tmp_path):
    w = torch.randn(1000, 33, device="cuda")
    half = torch.randn(64, 8, device="cuda").to(torch.bfloat16).t()
    sealpoint.save({"w": w, "half": half}, tmp_path / "c")
    with sealpoint.open(tmp_path / "c") as checkpoint:
        into = torch.zeros_like(w)
        checkpoint["w"].read(into)
        assert torch.equal(into, w)
        rows = torch.zeros(10, 33, device="cuda")
        checkpoint["w"].read(rows, np.s_[5:15])
        assert torch.equal(rows, w[5:15])
        assert torch.equal(torch.from_dlpack(checkpoint["half"]), half.cpu())
        with pytest.raises(sealpoint.Error, match="expected"):
            checkpoint["w"].read(torch.zeros(999, 33, device="cuda"))


def test_two_loads_at_once_on_streams_of_their_own(tmp_path):
    w = torch.randn(8 << 20, device="cuda")
    sp.save({"w": w}, tmp_path / "c")
    found, errors = [torch.zeros_like(w) for _ in range(4)], []

    def load(target):
        try:
            with torch.cuda.stream(torch.cuda.Stream()):
                sp.load({"w": target}, tmp_path / "c")
        except BaseException as error:  # told below, in the thread of the test
            errors.append(error)

    threads = [threading.Thread(target=load, args=[target]) for target in found]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert all(torch.equal(target, w) for target in found)


def test_arrays_of_jax(tmp_path):
    jax = pytest.importorskip("jax", reason="JAX is not installed: see scripts/python_env.sh")
    import sealpoint.jax as sj

    if jax.default_backend() != "gpu":
        pytest.skip("JAX finds no CUDA device")
    state = {"w": jax.numpy.arange(70000, dtype=jax.numpy.bfloat16).reshape(700, 100), "key": jax.random.key(3), "step": 4}
    sj.save(state, tmp_path / "c", step=4)
    found = sj.load(tmp_path / "c", state)
    assert np.array_equal(np.asarray(found["w"]), np.asarray(state["w"])) and found["w"].devices() == state["w"].devices()
    assert jax.random.key_data(found["key"]).tolist() == jax.random.key_data(state["key"]).tolist()
    there = torch.zeros(700, 100, dtype=torch.bfloat16, device="cuda")
    with sealpoint.open(tmp_path / "c") as checkpoint:
        checkpoint["w"].read(there)
    assert there.cpu().view(torch.uint8).numpy().tobytes() == np.asarray(state["w"]).tobytes()


def test_a_trainer_of_hugging_face_goes_on_alike(tmp_path):
    """With dropout, whose random numbers are those of the device."""
    transformers = pytest.importorskip("transformers", reason="transformers is not installed: see scripts/python_env.sh")
    pytest.importorskip("accelerate", reason="accelerate is not installed: see scripts/python_env.sh")
    from sealpoint.transformers import SealpointTrainer

    config = {"vocab_size": 30, "hidden_size": 32, "intermediate_size": 40, "num_hidden_layers": 2, "num_attention_heads": 2,
              "attention_dropout": 0.2, "max_position_embeddings": 16}
    rows = torch.randint(0, 30, (48, 8), generator=torch.Generator().manual_seed(3))

    def trained(folder, seed, steps, resume=False):
        torch.manual_seed(seed)
        arguments = transformers.TrainingArguments(
            str(tmp_path / folder), max_steps=steps, save_steps=2, learning_rate=0.01, per_device_train_batch_size=6,
            report_to=[], disable_tqdm=True, seed=5, lr_scheduler_type="constant")
        model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**config))
        data = [{"input_ids": row, "labels": row} for row in rows]
        trainer = SealpointTrainer(model, arguments, train_dataset=data)
        trainer.train(resume_from_checkpoint=resume or None)
        assert next(trainer.model.parameters()).is_cuda
        return trainer

    whole = trained("whole", 1, 6)
    trained("run", 1, 4)
    resumed = trained("run", 2, 6, resume=True)
    for name, tensor in whole.model.state_dict().items():
        assert torch.equal(resumed.model.state_dict()[name], tensor), name
