# SPDX-License-Identifier: Apache-2.0
"""vLLM's Llama, on four tensor-parallel ranks, is filled by its own weight loaders through its load format "sealpoint", and by
its own format from safetensors, and both are the same:  vllm_load.py FOLDER

vLLM is its package for GPUs, which makes and fills models on the CPU as well (VLLM_TARGET_DEVICE); only kernels are absent.
"""

import json
import os
import pathlib
import sys

os.environ["VLLM_TARGET_DEVICE"] = "cpu"
os.environ["VLLM_LOGGING_LEVEL"] = "ERROR"
os.environ["OMP_NUM_THREADS"] = "1"  # threads do not survive the fork

import docstring_examples  # noqa: E402
import framework_stubs  # noqa: E402
import ranks  # noqa: E402

framework_stubs.install("xgrammar", "depyf", "llguidance", "outlines_core", "numba", "flashinfer", "fastsafetensors",
                        "prometheus_fastapi_instrumentator", "pythonjsonlogger")
import sealpoint  # noqa: E402
import sealpoint.torch  # noqa: E402
import sealpoint.vllm  # noqa: E402
import torch  # noqa: E402
import vllm  # noqa: E402
from safetensors.torch import save_file  # noqa: E402
from vllm.config import DeviceConfig, LoadConfig, ModelConfig, ParallelConfig, VllmConfig, set_current_vllm_config  # noqa: E402
from vllm.distributed import init_distributed_environment, initialize_model_parallel  # noqa: E402
from vllm.model_executor.model_loader import get_model_loader  # noqa: E402
from vllm.model_executor.models import llama, registry  # noqa: E402, F401
from vllm.v1.worker.gpu_worker import Worker  # noqa: E402

# As vLLM's own runner for the CPU does.
torch.accelerator.empty_cache = lambda: None
# Packed weights need kernels.
torch.cpu._is_amx_tile_supported = lambda: False
# What a model can do, it finds out in another process, which has no stand-ins.
registry._run_in_subprocess = lambda function: function()

SIZE, HIDDEN, WIDE, LAYERS, VOCABULARY = 4, 256, 512, 2, 1024
# Norms are on all ranks.
SHARE_MAX = 0.27
CONFIG = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": HIDDEN, "intermediate_size": WIDE,
          "num_hidden_layers": LAYERS, "num_attention_heads": 8, "num_key_value_heads": 4, "vocab_size": VOCABULARY,
          "torch_dtype": "bfloat16", "max_position_embeddings": 128, "rms_norm_eps": 1e-5, "tie_word_embeddings": False,
          "hidden_act": "silu"}


def weights_of_hugging_face():
    shapes = {"model.embed_tokens.weight": (VOCABULARY, HIDDEN), "lm_head.weight": (VOCABULARY, HIDDEN),
              "model.norm.weight": (HIDDEN,)}
    for layer in range(LAYERS):
        for name, shape in {
            "self_attn.q_proj": (HIDDEN, HIDDEN), "self_attn.k_proj": (HIDDEN // 2, HIDDEN),
            "self_attn.v_proj": (HIDDEN // 2, HIDDEN), "self_attn.o_proj": (HIDDEN, HIDDEN), "mlp.gate_proj": (WIDE, HIDDEN),
            "mlp.up_proj": (WIDE, HIDDEN), "mlp.down_proj": (HIDDEN, WIDE), "input_layernorm": (HIDDEN,),
            "post_attention_layernorm": (HIDDEN,),
        }.items():  # fmt: skip
            shapes[f"model.layers.{layer}.{name}.weight"] = shape
    random = torch.Generator().manual_seed(3)
    return {name: torch.randn(shape, generator=random).to(torch.bfloat16) for name, shape in shapes.items()}


def model_of(folder, load_format, options):
    """As vLLM makes and fills it."""
    model_config = ModelConfig(model=str(folder), skip_tokenizer_init=True, dtype="bfloat16", max_model_len=64,
                               enforce_eager=True)
    config = VllmConfig(model_config=model_config, device_config=DeviceConfig("cpu"),
                        load_config=LoadConfig(load_format=load_format, model_loader_extra_config=options),
                        parallel_config=ParallelConfig(tensor_parallel_size=SIZE, disable_custom_all_reduce=True))
    with set_current_vllm_config(config):
        return get_model_loader(config.load_config).load_model(vllm_config=config, model_config=model_config)


def run_rank(folder, rank):
    with set_current_vllm_config(VllmConfig(device_config=DeviceConfig("cpu"))):
        init_distributed_environment(SIZE, rank, f"file://{folder}/rendezvous", rank, "gloo")
        initialize_model_parallel(SIZE)
    expected = model_of(folder, "safetensors", {}).state_dict()
    options = {"checkpoint": str(folder / "checkpoint"), "rename": {"state.*": "*"}}
    sealpoint.vllm.register()
    for more in ({}, {"slices": False}):
        found = model_of(folder, "sealpoint", {**options, **more}).state_dict()
        assert found.keys() == expected.keys()
        for name, value in expected.items():
            assert value.numel() > 0 and torch.equal(value, found[name]), name
    model = model_of(folder, "dummy", {})
    report = sealpoint.vllm.load_weights(model, folder / "checkpoint", rename={"state.*": "*"})
    assert all(torch.equal(value, expected[name]) for name, value in model.state_dict().items())
    verify(model, folder / "checkpoint", rank)
    share = report.bytes_requested / report.bytes_offered
    assert share <= SHARE_MAX, share
    (folder / f"share{rank}").write_text(str(share))


def verify(model, checkpoint, rank):
    """The model of each rank holds the checkpoint's tensors, until one element of a fused weight changes on one rank."""
    rename = {"state.*": "*"}
    result = sealpoint.vllm.verify(model, checkpoint, rename=rename)
    assert len(result.verified) == 3 + 9 * LAYERS and not result.unused and not result.unverified, result
    fused = model.get_parameter("model.layers.1.mlp.gate_up_proj.weight").data
    fused[-1, 7] += rank == 2
    try:
        sealpoint.vllm.verify(model, checkpoint, rename=rename)
    except sealpoint.CorruptError as error:
        assert error.tensor == "state.model.layers.1.mlp.up_proj.weight", error
    else:
        raise AssertionError("a wrong element was not seen")


def main(folder):
    state = weights_of_hugging_face()
    (folder / "config.json").write_text(json.dumps(CONFIG))
    save_file(state, folder / "model.safetensors")
    sealpoint.torch.save({"state": state, "optimizer": {"exp_avg": torch.zeros(3)}}, folder / "checkpoint")
    children = [ranks.fork(lambda rank=rank: run_rank(folder, rank)) for rank in range(SIZE)]
    if any([os.waitpid(child, 0)[1] for child in children]):
        sys.exit(1)
    try:
        sealpoint.vllm.register()
        get_model_loader(LoadConfig(load_format="sealpoint", model_loader_extra_config={"path": "x"}))
    except sealpoint.InvalidArgumentError as error:
        assert "'path'" in str(error), error
    else:
        raise AssertionError("an option that is none")
    assert callable(Worker.get_model) and not hasattr(Worker, "sealpoint_verify")  # for sealpoint.vllm.WorkerExtension
    docstring_examples.run(sealpoint.vllm, folder, only=["register"])
    shares = [float((folder / f"share{rank}").read_text()) for rank in range(SIZE)]
    print(f"vLLM {vllm.__version__}: Llama on {SIZE} tensor-parallel ranks; each read {max(shares):.3f} of the bytes at most")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
