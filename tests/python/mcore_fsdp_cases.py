# SPDX-License-Identifier: Apache-2.0
"""DTensors that Megatron-FSDP makes, on four ranks; run by test_megatron_fsdp.py.

Their ranks hold whole rows, as many as fit a padded buffer, or are tensor-parallel first: torch's placements say neither.
"""

import random

import mcore_shim

mcore_shim.install()

import pytest  # noqa: E402
import sealpoint  # noqa: E402
import sealpoint.torch as sp  # noqa: E402
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
import torch.distributed.checkpoint as dcp  # noqa: E402
from megatron.core.distributed.fsdp.src.megatron_fsdp.experimental.dbuffer import DBuffer  # noqa: E402
from megatron.core.distributed.fsdp.src.megatron_fsdp.experimental.placement import Flat, Replicate  # noqa: E402
from megatron.core.distributed.fsdp.src.megatron_fsdp.param_and_grad_buffer import make_fsdp_dtensor  # noqa: E402
from megatron.core.distributed.fsdp.src.megatron_fsdp.uneven_dtensor import (  # noqa: E402
    preprocess_state_dict_for_uneven_dtensor,
)
from megatron.core.distributed.fsdp.src.megatron_fsdp.utils import FSDPDistributedIndex  # noqa: E402
from sealpoint.torch.dcp import StorageReader, StorageWriter  # noqa: E402
from torch.distributed.checkpoint.api import CheckpointException  # noqa: E402
from torch.distributed.device_mesh import init_device_mesh  # noqa: E402
from torch.distributed.tensor import Shard, distribute_tensor  # noqa: E402

REMEDY = r"preprocess_state_dict_for_uneven_dtensor\(state\)"
FLAT = {"line": ((4,), [Flat()]), "replicated": ((2, 2), [Replicate(), Flat()]), "twice": ((2, 2), [Flat(), Flat()])}


def numbers(*shape, base=0):
    return torch.arange(float(torch.Size(shape).numel())).reshape(shape) + base


def packed(tensors, kind):
    shape, placements = FLAT[kind]
    mesh = init_device_mesh("cpu", shape)
    buffer = DBuffer.distribute_tensors(tensors, mesh=mesh, placements=placements)
    return {f"p{i}": buffer.get_dtensor(i) for i in range(len(tensors))}


def parallel(whole, rows, order="tp"):
    """As Megatron-FSDP makes a column-parallel weight on 2 times 2 ranks; ``rows``: where a tensor-parallel half is cut."""
    if order == "tp":
        mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
        index = FSDPDistributedIndex(mesh, dp_shard_dim="dp", tp_dim="tp")
        inner, outer = mesh.get_coordinate()
    else:
        mesh = init_device_mesh("cpu", (2, 2, 1), mesh_dim_names=("outer", "dp", "tp"))
        both = mesh[("outer", "dp")]._flatten("both").get_group()
        index = FSDPDistributedIndex(mesh, dp_shard_dim="dp", dp_outer_dim="outer", tp_dim="tp", hybrid_fsdp_group=both,
                                     hsdp_outer_dp_shard=True)
        inner, outer, _ = mesh.get_coordinate()
    half = whole.chunk(2)[outer]
    parameter = torch.nn.Parameter(torch.empty_like(half if order == "tp" else whole))
    if order == "tp":
        parameter.tensor_model_parallel, parameter.partition_dim, parameter.partition_stride = True, 0, 1
    local = half[:rows] if inner == 0 else half[rows:]
    return make_fsdp_dtensor(local.clone(), parameter, index)


def saved_right(job, name, state, wholes):
    """By the two ways to save; and what was saved loads into the state, and into another layout."""
    sp.save(state, job.path(name))
    dcp.save(state, storage_writer=StorageWriter(job.path(f"{name}-dcp")))
    others = {"sp": lambda path: sp.load(state, path), "dcp": lambda path: dcp.load(state, storage_reader=StorageReader(path))}
    for path in (job.path(name), job.path(f"{name}-dcp")):
        full = sp.load_full(path)
        for key, whole in wholes.items():
            assert torch.equal(full[key], whole), (path, key, full[key])
        line = init_device_mesh("cpu", (job.size,))
        spread = {key: distribute_tensor(torch.zeros_like(whole), line, [Shard(0)]) for key, whole in wholes.items()}
        sp.load(spread, path)
        for key, whole in wholes.items():
            assert torch.equal(spread[key].full_tensor(), whole), (path, key)
        for load in others.values():
            expected = {key: value.to_local().clone() for key, value in state.items()}
            for value in state.values():
                value.to_local().fill_(-1)
            load(path)
            for key, value in state.items():
                assert torch.equal(value.to_local(), expected[key]), (path, key)


def case_rows_of_padded_buffers(job):
    shuffled = random.Random(3)
    shapes = [[(2, 6), (4, 4), (4, 4), (1, 2), (1, 6)], [(5, 3), (7,), (3, 2, 2)]]
    shapes += [[(shuffled.randint(1, 9), shuffled.choice([1, 2, 3, 4])) for _ in range(shuffled.randint(1, 5))] for _ in range(4)]
    for number, group in enumerate(shapes):
        tensors = [numbers(*shape, base=100 * i) for i, shape in enumerate(group)]
        state = packed(tensors, [*FLAT][number % len(FLAT)])
        preprocess_state_dict_for_uneven_dtensor(state)
        saved_right(job, str(number), state, {f"p{i}": tensor for i, tensor in enumerate(tensors)})


def case_rows_whose_offsets_are_unknown(job):
    tensors = [numbers(2, 6), numbers(4, 4)]
    right = {f"p{i}": distribute_tensor(tensor, init_device_mesh("cpu", (4,)), [Shard(0)]) for i, tensor in enumerate(tensors)}
    sp.save(right, job.path("right"))
    for kind in FLAT:
        state = packed(tensors, kind)
        with pytest.raises(sealpoint.InvalidArgumentError, match=REMEDY):
            sp.save(state, job.path(kind))
        with pytest.raises(Exception, match=REMEDY):
            sp.load(state, job.path("right"))
        with pytest.raises(CheckpointException, match=REMEDY):
            dcp.save(state, storage_writer=StorageWriter(job.path(f"{kind}-dcp")))


def case_even_rows_in_an_unknown_order(job):
    """On each rank as many as torch's placements say, but others."""
    state = packed([numbers(4, 2)], "twice")
    assert not torch.equal(state["p0"].full_tensor(), numbers(4, 2)), "torch itself has them right"
    with pytest.raises(Exception, match="order of the placements"):
        sp.save(state, job.path("none"))
    with pytest.raises(CheckpointException, match="order of the placements"):
        dcp.save(state, storage_writer=StorageWriter(job.path("none-dcp")))


def case_tensor_parallel_first(job):
    for order in ("tp", "outer"):
        whole = numbers(8, 2)
        state = {"w": parallel(whole, 2, order)}
        saved_right(job, order, state, {"w": whole})
        preprocess_state_dict_for_uneven_dtensor(state)
        saved_right(job, f"{order}-listed", state, {"w": whole})
        whole = numbers(12, 2)
        state = {"w": parallel(whole, 4, order)}
        with pytest.raises(Exception, match=REMEDY):
            sp.save(state, job.path(f"{order}-uneven"))
        preprocess_state_dict_for_uneven_dtensor(state)
        saved_right(job, f"{order}-uneven", state, {"w": whole})


def case_offsets_that_change_between_saves(job):
    """Of a tensor in the same memory: a save that knows its predecessor is not to take that one's offsets."""
    whole = numbers(8, 2)
    state = {"w": distribute_tensor(whole, init_device_mesh("cpu", (4,)), [Shard(0)])}
    sp.save(state, job.path("first"))
    for rank in (job.rank, 3 - job.rank):
        local = state["w"].to_local()
        local.copy_(whole[2 * rank : 2 * rank + 2])
        chunk = dcp.metadata.ChunkStorageMetadata(torch.Size([2 * rank, 0]), torch.Size([2, 2]))
        state["w"]._local_tensor.__create_chunk_list__ = lambda chunk=chunk: [chunk]
        sp.save(state, job.path(f"at-{rank == job.rank}"))
        assert torch.equal(sp.load_full(job.path(f"at-{rank == job.rank}"))["w"], whole)


def case_chunk_lists_of_other_memory(job):
    state = {"w": distribute_tensor(numbers(8, 2), init_device_mesh("cpu", (4,)), [Shard(0)])}
    chunk = dcp.metadata.ChunkStorageMetadata(torch.Size([0, 0]), torch.Size([3, 2]))
    state["w"]._local_tensor.__create_chunk_list__ = lambda: [chunk]
    with pytest.raises(Exception, match="chunk list"):
        sp.save(state, job.path("none"))
    dist.barrier()
