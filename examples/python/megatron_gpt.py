# SPDX-License-Identifier: Apache-2.0
"""A small GPT of Megatron-core trains with its distributed optimizer, saves in the background, and goes on on another mesh.

  torchrun --nproc-per-node 4 examples/python/megatron_gpt.py RUN --tp 2 --steps 40
  torchrun --nproc-per-node 4 examples/python/megatron_gpt.py RUN --tp 4 --steps 60

--die-at 30 kills the last rank in that step.
"""

import argparse
import os
import pathlib
import signal

import sealpoint.megatron
import torch
import torch.distributed as dist
from megatron.core import dist_checkpointing, parallel_state, tensor_parallel
from megatron.core.dist_checkpointing.strategies.async_utils import AsyncCallsQueue
from megatron.core.distributed import DistributedDataParallel, DistributedDataParallelConfig
from megatron.core.models.gpt import GPTModel
from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
from megatron.core.optimizer import OptimizerConfig, get_megatron_optimizer
from megatron.core.transformer.transformer_config import TransformerConfig

METADATA = {"distrib_optim_sharding_type": "dp_reshardable", "chained_optim_avoid_prefix": True}
ASYNC = {"async_strategy": "mcore"} if hasattr(dist_checkpointing.serialization, "load_common") else {}


def make(tp):
    parallel_state.initialize_model_parallel(tp)
    tensor_parallel.model_parallel_cuda_manual_seed(1)
    torch.manual_seed(1 + parallel_state.get_tensor_model_parallel_rank())
    config = TransformerConfig(
        num_layers=2, hidden_size=64, num_attention_heads=4, ffn_hidden_size=128, use_cpu_initialization=True, bf16=True,
        params_dtype=torch.bfloat16, tensor_model_parallel_size=tp, hidden_dropout=0.0, attention_dropout=0.0,
        gradient_accumulation_fusion=False, masked_softmax_fusion=False, apply_rope_fusion=False)
    model = GPTModel(config=config, transformer_layer_spec=get_gpt_layer_local_spec(), vocab_size=64,
                     max_sequence_length=32, position_embedding_type="rope").cuda()
    wrapped = DistributedDataParallel(config=config, module=model, ddp_config=DistributedDataParallelConfig(
        use_distributed_optimizer=True, grad_reduce_in_fp32=True))
    return wrapped, get_megatron_optimizer(OptimizerConfig(
        optimizer="adam", lr=3e-3, bf16=True, params_dtype=torch.bfloat16, use_distributed_optimizer=True), [wrapped])


def train(model, optimizer, step):
    rank, size = parallel_state.get_data_parallel_rank(), parallel_state.get_data_parallel_world_size()
    made = torch.Generator().manual_seed(step)
    starts = torch.randint(0, 64, (8, 1), generator=made).chunk(size)[rank]
    tokens = ((starts + torch.arange(33)) % 64).cuda()  # counts
    positions = torch.arange(32).expand(len(tokens), 32).cuda()
    mask = (torch.tril(torch.ones(32, 32)) < 0.5).view(1, 1, 32, 32).cuda()
    model.zero_grad_buffer()
    loss = model(tokens[:, :-1], positions, mask, labels=tokens[:, 1:].contiguous()).float().mean()
    loss.backward()
    model.finish_grad_sync()
    optimizer.step()
    return loss.item()


def state_of(model, optimizer, metadata, is_loading=False):
    metadata = dict(metadata)
    sharded = model.module.sharded_state_dict(metadata=metadata)
    return {"model": sharded, "optimizer": optimizer.sharded_state_dict(sharded, is_loading=is_loading, metadata=metadata)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=pathlib.Path, help="directory of the checkpoints")
    parser.add_argument("--tp", type=int, default=2)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--die-at", type=int)
    options = parser.parse_args()
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group()
    sealpoint.megatron.enable()
    model, optimizer = make(options.tp)
    first, queue = 1, AsyncCallsQueue()
    newest = sealpoint.Series(options.run).newest()
    if newest is not None:
        path, first = newest.entry.path, newest.entry.step + 1
        metadata = dist_checkpointing.load_content_metadata(path)
        state = dist_checkpointing.load(state_of(model, optimizer, metadata, is_loading=True), path)
        model.module.load_state_dict(state["model"])
        with torch.no_grad():
            optimizer.load_state_dict(state["optimizer"])
    for step in range(first, options.steps + 1):
        loss = train(model, optimizer, step)
        if dist.get_rank() == 0:
            print(f"step {step:3}  loss {loss:.4f}  on tensor {options.tp} x data {dist.get_world_size() // options.tp}",
                  flush=True)
        if step == options.die_at and dist.get_rank() == dist.get_world_size() - 1:
            os.kill(os.getpid(), signal.SIGKILL)
        queue.maybe_finalize_async_calls()
        if step % 10 == 0:
            path = options.run / f"iter_{step:07}"
            path.mkdir(parents=True, exist_ok=True)
            queue.maybe_finalize_async_calls(blocking=True)
            queue.schedule_async_request(dist_checkpointing.save(
                {**state_of(model, optimizer, METADATA), "iteration": step}, str(path), async_sharded_save=True,
                content_metadata=METADATA, **ASYNC))
    queue.close()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
