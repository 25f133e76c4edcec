# SPDX-License-Identifier: Apache-2.0
"""What four ranks do through torch.distributed.checkpoint, the part that runs with each commit; run by test_torch_dcp.py."""

import random

import sealpoint
import sealpoint.torch as sp
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from sealpoint.torch.dcp import StorageReader, StorageWriter
from torch.distributed.checkpoint import FileSystemWriter
from torch.distributed.checkpoint._nested_dict import flatten_state_dict
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.metadata import TensorStorageMetadata
from torch_states import MODES, Training, assert_same, whole


def save(state, path, **options):
    return dcp.save(state, storage_writer=StorageWriter(path, **options))


def load(state, path, **options):
    dcp.load(state, storage_reader=StorageReader(path, **options))


def fails(job, kind, call):
    """The error that call() has on some rank, which DCP raises on all of them."""
    try:
        call()
    except CheckpointException as failure:
        errors = [error for error, _ in failure.failures.values()]
        assert isinstance(errors[0], kind), failure
        job.all_agree(sorted(failure.failures))
        return errors[0]
    raise AssertionError(f"no {kind.__name__} on rank {job.rank}")


def texts(state):
    return {name: str(value) for name, value in flatten_state_dict(state)[0].items()}


def unique_bytes(training):
    return sum(tensor.numel() * tensor.element_size() for tensor in training.tensors().values())


def case_each_layout_comes_back(job):
    """With DCP's own keys; each byte is stored once; all routes store the same."""
    for mode in MODES:
        training = Training(mode, job.size, seed=7)
        state = dict(training.state(), step=3, betas=(0.9, 0.95), names=["a", "b"], nested={"empty": [], "none": None})
        save(state, job.path(mode), step=3)
        save(state, job.path(mode + "-plain"), through_coordinator=True)
        theirs = dcp.save(state, storage_writer=FileSystemWriter(job.path(mode + "-theirs")))
        total = unique_bytes(training)  # gathers
        for name in (mode, mode + "-plain"):
            metadata = StorageReader(job.path(name)).read_metadata()
            assert set(metadata.state_dict_metadata) == set(theirs.state_dict_metadata)
            assert metadata.planner_data == theirs.planner_data
            for key, expected in theirs.state_dict_metadata.items():
                found = metadata.state_dict_metadata[key]
                assert type(found) is type(expected), key
                if isinstance(found, TensorStorageMetadata):
                    assert (found.size, found.properties.dtype) == (expected.size, expected.properties.dtype), key
            other = Training(mode, job.size, seed=99)
            back = dict(other.state(), step=0, betas=None, names=None, nested={"empty": 1, "none": 1})
            load(back, job.path(name))
            other.model.load_state_dict(back["model"])
            other.optimizer.load_state_dict(back["optimizer"])
            assert_same(training.tensors(), other.tensors())
            assert {key: back[key] for key in ("step", "betas", "names", "nested")} == {
                "step": 3, "betas": (0.9, 0.95), "names": ["a", "b"], "nested": {"empty": [], "none": None}}
            with sealpoint.open(job.path(name)) as checkpoint:
                assert sum(tensor.nbytes for tensor in checkpoint.values()) == total, "each byte is stored once"
        if job.rank == 0:
            assert sealpoint.verify(job.path(mode)).ok
            assert sealpoint.verify(job.path(mode + "-plain")).ok
            assert sealpoint.open(job.path(mode)).step == 3
            full, plain = sp.load_full(job.path(mode)), sp.load_full(job.path(mode + "-plain"))
            assert texts(full) == texts(plain), "the same by both routes"
            assert full["optimizer"]["param_groups"][0]["betas"] == (0.9, 0.999)


def case_layouts_and_numbers_of_ranks_change(job):
    source = Training("fsdp", job.size, seed=1)
    save(source.state(), job.path("fsdp"))
    expected = source.tensors()
    for mode in ("tp", "hsdp"):
        other = Training(mode, job.size, seed=2)
        state = other.state()
        load(state, job.path("fsdp"))
        other.optimizer.load_state_dict(state["optimizer"])
        assert_same(expected, other.tensors())
    model = {name: whole(tensor) for name, tensor in source.model.state_dict().items()}
    groups = [dist.new_group([0, 1]), dist.new_group([0, 1, 2]), dist.new_group([3])]
    for group in groups:
        if job.rank in dist.get_process_group_ranks(group):
            state = {"model": {name: torch.zeros_like(tensor) for name, tensor in model.items()}}
            reader = StorageReader(job.path("fsdp"), process_group=group, unexpected="allow")
            dcp.load(state, storage_reader=reader, process_group=group)
            assert_same(state["model"], model)
    dist.barrier()
    if job.rank == 2:
        state = {"model": {name: torch.zeros_like(tensor) for name, tensor in model.items()}}
        dcp.load(state, storage_reader=StorageReader(job.path("fsdp"), no_dist=True, unexpected="allow"), no_dist=True)
        assert_same(state["model"], model)
        dcp.save(state, storage_writer=StorageWriter(job.path("alone"), no_dist=True), no_dist=True)
        assert_same(sp.load_full(job.path("alone"))["model"], model)


def case_a_frozen_base_is_linked(job):
    """From what the process saved last into the same folder, or from a parent that is named."""
    state = {"base": torch.arange(1 << 18, dtype=torch.float32), "rank": {str(job.rank): torch.ones(5) * job.rank}}
    for step in range(3):
        dcp.save(state, checkpoint_id=job.path(f"frozen/step-{step}"),
                 storage_writer=StorageWriter(step=step, frozen=["base"], full_every=2))
        dist.barrier()
    if job.rank == 0:
        inodes = [{item.name: item.stat().st_ino for item in job.path(f"frozen/step-{step}").glob("*.blob")}
                  for step in range(3)]
        shared = [set(before.items()) & set(after.items()) for before, after in zip(inodes, inodes[1:], strict=False)]
        assert shared[0] and not shared[1], "as full_every says"
        entries = sealpoint.Series(job.path("frozen")).list()
        assert [entry.sequence for entry in entries] == [entries[-1].sequence + 2, entries[-1].sequence + 1,
                                                         entries[-1].sequence]
        assert all(sealpoint.verify(entry.path).ok for entry in entries)
    error = job.raises(sealpoint.InvalidArgumentError, lambda: StorageWriter("x", through_coordinator=True, frozen=["base"]))
    assert "through_coordinator=False" in str(error)


def case_replicas_that_differ_are_refused(job):
    good = {"t": torch.ones(4), "n": 1}
    for name, wrong in (("t", torch.tensor([1.0, 1, 1, 2])), ("n", 2)):
        state = dict(good, **({name: wrong} if job.rank == 1 else {}))
        error = fails(job, sealpoint.InvalidArgumentError, lambda state=state: save(state, job.path("c")))
        assert name in (error.tensor, error.object), error
        assert error.rank == 1, error
        assert "differ" in error.message, error
        dist.barrier()
        assert list(job.folder.iterdir()) == []
    save(dict(good, t=torch.full((4,), float(job.rank))), job.path("any"), compare_replicas=False)
    random.seed(job.rank)
    state = {"rng": sp.per_rank(random.getstate()), "n": {"r": sp.per_rank(job.rank)}}
    save(state, job.path("own"))
    back = {"rng": None, "n": {"r": sp.per_rank(0)}}
    load(back, job.path("own"))
    assert back["rng"] == random.getstate()
    assert back["n"]["r"] == job.rank


def case_asynchronous_in_a_thread(job):
    """What is stored is what the state was when the call returned; training's own group is in use meanwhile."""
    own = dist.new_group(backend="gloo")
    tensor, n = torch.zeros(1000, 100), torch.zeros(1)
    for number in range(2):
        tensor.fill_(number * 10 + job.rank)
        n.fill_(number)
        state = {f"own{job.rank}": tensor, "n": n, "step": number}
        future = dcp.async_save(state, storage_writer=StorageWriter(job.path(f"c{number}")), process_group=own)
        tensor.fill_(-1)
        n.fill_(-1)
        for _ in range(100):
            total = torch.tensor([job.rank + 1.0])
            dist.all_reduce(total)
            assert total.item() == job.size * (job.size + 1) / 2
        future.result(timeout=60)
    for number in range(2):
        full = sp.load_full(job.path(f"c{number}"))
        assert full["step"] == number
        for rank in range(job.size):
            assert torch.equal(full[f"own{rank}"], torch.full((1000, 100), float(number * 10 + rank)))
        assert full["n"].item() == number
