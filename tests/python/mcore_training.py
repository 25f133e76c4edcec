# SPDX-License-Identifier: Apache-2.0
"""A small training of Megatron-core, with its distributed optimizer; imported behind mcore_shim.install()."""

import contextlib
import copy
import re

import mcore_shim
import torch
import torch._dynamo  # as optimizers do when they step: once, before ranks are forked
import torch.distributed as dist
from megatron.core import dist_checkpointing, parallel_state, tensor_parallel
from megatron.core.dist_checkpointing import ShardedTensor
from megatron.core.dist_checkpointing.dict_utils import nested_values
from megatron.core.dist_checkpointing.mapping import apply_factories
from megatron.core.distributed import DistributedDataParallel, DistributedDataParallelConfig
from megatron.core.models.gpt import GPTModel
from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
from megatron.core.optimizer import OptimizerConfig, get_megatron_optimizer
from megatron.core.transformer.transformer_config import TransformerConfig

MODEL = {"singleton_local_shards": False, "chained_optim_avoid_prefix": True}


def _globals():
    """What Megatron knows of the mesh that the process is on."""
    return {name: value for name, value in vars(parallel_state).items() if re.fullmatch("_[A-Z0-9_]+", name)}


# By mesh; that of no mesh first. Making the groups of one takes longer than anything else that is tested.
_meshes = {None: {name: copy.copy(value) for name, value in _globals().items()}}


def forget_meshes():
    """After the groups of torch.distributed are gone."""
    vars(parallel_state).update({name: copy.copy(value) for name, value in _meshes[None].items()})
    for mesh in [mesh for mesh in _meshes if mesh is not None]:
        del _meshes[mesh]


def enter_mesh(tp, pp, ep=1):
    vars(parallel_state).update({name: copy.copy(value) for name, value in _meshes[None].items()})
    if (tp, pp, ep) in _meshes:
        vars(parallel_state).update(_meshes[tp, pp, ep])
    else:
        parallel_state.initialize_model_parallel(tp, pp, expert_model_parallel_size=ep)
        _meshes[tp, pp, ep] = _globals()
    tensor_parallel.random.initialize_rng_tracker(force_reset=True)
    tensor_parallel.get_cuda_rng_tracker().fork = lambda *_, **__: contextlib.nullcontext()


class Training:
    """A GPT of two layers with Megatron's distributed optimizer, on tp times pp times the other ranks.

    With ``experts`` its second layer is a mixture of them, on ep ranks each. ``is_muon``: its matrices have Muon, all else
    Adam, and each data-parallel rank has the state of whole parameters (layer-wise).
    """

    def __init__(self, tp, pp, seed=1, vocabulary=64, has_biases=False, hidden=16, experts=None, ep=1, is_muon=False):
        mcore_shim.use_own_adam()
        mcore_shim.have_routers()
        enter_mesh(tp, pp, ep)
        torch.manual_seed(seed + 10 * parallel_state.get_tensor_model_parallel_rank())
        config = TransformerConfig(
            num_layers=2, hidden_size=hidden, num_attention_heads=4, ffn_hidden_size=2 * hidden, use_cpu_initialization=True,
            pipeline_dtype=torch.bfloat16, params_dtype=torch.bfloat16, bf16=True, gated_linear_unit=True,
            activation_func=torch.nn.functional.silu, add_bias_linear=has_biases, hidden_dropout=0.0, attention_dropout=0.0,
            tensor_model_parallel_size=tp, pipeline_model_parallel_size=pp, bias_activation_fusion=False,
            bias_dropout_fusion=False, masked_softmax_fusion=False, gradient_accumulation_fusion=False,
            apply_rope_fusion=False, num_moe_experts=experts, expert_model_parallel_size=ep, moe_router_topk=2,
            moe_token_dispatcher_type="allgather", moe_router_load_balancing_type="none",
        )
        self.model = GPTModel(
            config=config, transformer_layer_spec=get_gpt_layer_local_spec(num_experts=experts), vocab_size=vocabulary,
            max_sequence_length=16, position_embedding_type="rope", pre_process=parallel_state.is_pipeline_first_stage(),
            post_process=parallel_state.is_pipeline_last_stage(), share_embeddings_and_output_weights=False,
        )
        if is_muon:
            self.model.bfloat16()  # as Megatron's scripts do; its sharded state dict wants it here
        self.wrapped = DistributedDataParallel(
            config=config, module=self.model, ddp_config=DistributedDataParallelConfig(
                use_distributed_optimizer=not is_muon, bucket_size=4096, overlap_grad_reduce=False,
                grad_reduce_in_fp32=True))
        layer_wise = {"optimizer": "muon", "use_layer_wise_distributed_optimizer": True} if is_muon else {}
        self.optimizer = get_megatron_optimizer(OptimizerConfig(**{
            "optimizer": "adam", "lr": 1e-2, "bf16": True, "params_dtype": torch.bfloat16,
            "use_distributed_optimizer": not is_muon, "use_precision_aware_optimizer": False, **layer_wise}), [self.wrapped])

    def step(self, seed):
        """Without pipeline stages. Returns the loss."""
        made = torch.Generator().manual_seed(seed + 100 * parallel_state.get_data_parallel_rank())
        tokens = torch.randint(0, 64, (2, 8), generator=made)
        mask = torch.tril(torch.ones(8, 8)).view(1, 1, 8, 8) < 0.5
        self.wrapped.zero_grad_buffer()
        loss = self.wrapped(tokens, torch.arange(8).repeat(2, 1), mask, labels=tokens).float().mean()
        loss.backward()
        self.wrapped.finish_grad_sync()
        self.optimizer.step()
        return loss.item()

    def state(self, metadata, is_loading=False):
        metadata = dict(metadata)
        model = self.model.sharded_state_dict(metadata=metadata)
        return {"model": model,
                "optimizer": self.optimizer.sharded_state_dict(model, is_loading=is_loading, metadata=metadata)}

    def load(self, path, metadata):
        loaded = dist_checkpointing.load(self.state(metadata, is_loading=True), path)
        self.model.load_state_dict(loaded["model"])
        with torch.no_grad():
            self.optimizer.load_state_dict(loaded["optimizer"])

    def whole(self):
        """All of the optimizer's state, whole, by key: gathered as Megatron does it, without this library."""
        model = self.model.sharded_state_dict(metadata=dict(MODEL))
        return gather([optimizer.sharded_param_state_fully_reshardable(model, False, {})
                       for optimizer in self.optimizer.chained_optimizers])

    def whole_layer_wise(self):
        return gather([self.state(MODEL)["optimizer"]])


def gather(states):
    """The ShardedTensors of all ranks, whole, by key."""
    # As arrays: of a tensor each pickle is a file of torch.save.
    parts = []
    for found in states:
        apply_factories(found)
        parts += [(item.key, item.global_shape, item.global_slice(), item.data.numpy()) for item in nested_values(found)
                  if isinstance(item, ShardedTensor)]
    gathered = [None] * dist.get_world_size()
    dist.all_gather_object(gathered, parts)
    result = {}
    for key, shape, place, data in (item for rank in gathered for item in rank):
        result.setdefault(key, torch.full(shape, float("nan")))[place] = torch.from_numpy(data)
    return result
