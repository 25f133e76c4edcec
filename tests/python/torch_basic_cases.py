# SPDX-License-Identifier: Apache-2.0
"""What four ranks do together, the part that runs with each commit; run by test_torch_ranks.py."""

import importlib
import os
import random
import signal
import time
from unittest import mock

import sealpoint
import sealpoint.torch as sp
import sealpoint.vllm
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from engine_layers import Layers, whole_state
from sealpoint import fingerprint
from sealpoint._ranks.session import Session
from sealpoint.torch._communicator import TorchCommunicator
from sealpoint.torch.dcp import StorageWriter
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.placement_types import _StridedShard
from torch_states import MODES, Rows8Bit, Training, assert_same, rows, whole


def unique_bytes(training):
    return sum(tensor.numel() * tensor.element_size() for tensor in training.tensors().values())


def case_each_layout_comes_back(job):
    for mode in MODES:
        training = Training(mode, job.size, seed=7)
        info = sp.save(training.state(), job.path(mode), step=3)
        assert job.all_agree(info.attempt)
        other = Training(mode, job.size, seed=99)
        state = other.state()
        sp.load(state, job.path(mode))
        other.optimizer.load_state_dict(state["optimizer"])
        assert_same(training.tensors(), other.tensors())
        if job.rank == 0:
            assert sealpoint.verify(job.path(mode)).ok
            with sealpoint.open(job.path(mode)) as checkpoint:
                stored = sum(tensor.nbytes for tensor in checkpoint.values())
                assert stored == unique_bytes(training), "each byte is stored once"
        else:
            unique_bytes(training)  # gathers


def case_fingerprints_are_the_same_on_each_mesh(job):
    """Of a state in memory, in each layout, and of its checkpoint, which stores them."""
    for mode in MODES:
        training = Training(mode, job.size, seed=7)
        sp.save(training.state(), job.path(mode), fingerprints=True)
        found = sp.fingerprints(training.state())
        assert job.all_agree({name: str(value) for name, value in found.items()})
        with sealpoint.open(job.path(mode)) as checkpoint:
            assert all(tensor.fingerprint is not None for tensor in checkpoint.values())
            assert not fingerprint.differences(fingerprint.of_checkpoint(checkpoint), found)
    line, square = init_device_mesh("cpu", (job.size,)), init_device_mesh("cpu", (2, 2))
    tensor = torch.randn((13, 10), generator=torch.Generator().manual_seed(1))
    expected = fingerprint.of_array(tensor.numpy())
    for mesh, placements in (
        (line, [Shard(0)]), (line, [Shard(1)]), (line, [Replicate()]), (square, [Shard(0), Shard(1)]),
        (square, [Shard(1), Shard(0)]), (square, [Replicate(), Shard(0)]),
    ):  # fmt: skip
        state = {"w": distribute_tensor(tensor, mesh, placements)}
        assert sp.fingerprints(state)["w"].fingerprint == expected
    assert sp.fingerprints({"w": tensor})["w"].fingerprint == expected
    assert sp.fingerprints({"w": tensor.t()})["w"].fingerprint != expected


def case_a_load_compares_what_arrived(job):
    for mode in MODES:
        training = Training(mode, job.size, seed=7)
        sp.save(training.state(), job.path(mode), fingerprints=True)
        other = Training(mode, job.size, seed=99)
        state = other.state()
        sp.load(state, job.path(mode), verify_arrival=True, share_chunks=True)
        other.optimizer.load_state_dict(state["optimizer"])
        assert_same(training.tensors(), other.tensors())
    sp.save({"w": torch.arange(8.0)}, job.path("without"))
    error = job.raises(sealpoint.UnsupportedError, lambda: sp.load({"w": torch.zeros(8)}, job.path("without"), verify_arrival=True))
    assert error.tensor == "w" and "no stored fingerprint" in str(error)
    error = job.raises(
        sealpoint.InvalidArgumentError, lambda: sp.load({"w": torch.zeros(8)}, job.path("without"), verify_arrival=job.rank == 2)
    )
    assert "verify_arrival" in str(error)


def case_an_engine_proves_that_it_holds_the_weights_of_a_trainer(job):
    """Trained with FSDP on four ranks, run with tensor parallelism on four, or whole on each."""
    mesh, state = init_device_mesh("cpu", (job.size,)), whole_state()
    state["norm"] = state["norm"].to(torch.bfloat16)
    sharded = {name: distribute_tensor(value, mesh, [Shard(0)]) if value.dim() else value for name, value in state.items()}
    trained = sp.fingerprints(sharded)
    model = Layers(job.rank, job.size)
    model.load_weights(iter(state.items()))
    result = sealpoint.vllm.verify(model, trained)
    assert result == (tuple(sorted(state)), (), {}) and job.all_agree(result)
    sp.save(sharded, job.path("c"))
    with mock.patch("sealpoint.torch._copies.of_checkpoint", side_effect=fingerprint.of_checkpoint) as read:
        assert sealpoint.vllm.verify(model, job.path("c")) == result and read.call_count == (job.rank == 0)
    whole_model = Layers(0, 1)
    whole_model.load_weights(iter(state.items()))
    assert sealpoint.vllm.verify(whole_model, trained) == result
    whole_model.down.data[1, 1] += job.rank == 3
    try:
        alone = sealpoint.vllm.verify(whole_model, trained, no_dist=True)
    except sealpoint.CorruptError as error:
        alone = error.tensor
    assert alone == ("down" if job.rank == 3 else result)
    error = job.raises(sealpoint.CorruptError, lambda: sealpoint.vllm.verify(whole_model, trained))
    assert error.tensor == "down" and "3 against 0, 1, 2" in str(error)

    for rank, name in enumerate(("embed", "qkv", "experts", "down")):
        memory = model.get_parameter(name).data.view(-1)
        if job.rank == rank:
            memory[-1] += 1
        error = job.raises(sealpoint.CorruptError, lambda: sealpoint.vllm.verify(model, trained))
        assert error.tensor == {"qkv": "v", "experts": "expert3"}.get(name, name)
        if job.rank == rank:
            memory[-1] = {"embed": state["embed"][15, -1], "qkv": state["v"][7, -1], "experts": state["expert3"][17, -1],
                          "down": state["down"][-1, -1]}[name]  # fmt: skip
    assert sealpoint.vllm.verify(model, trained) == result


def case_a_rank_whose_loader_raises_is_named(job):
    """Also a rank that has no model, or other arguments."""
    state = {"up": torch.ones(32, 16)}
    expected, model = sp.fingerprints(state), Layers(job.rank, job.size)

    def load(weights):
        for name, loaded in weights:
            if job.rank == 2:
                raise KeyError(name)
            model.up.data.copy_(model.rows(loaded))

    model.load_weights = load
    result = sealpoint.vllm.verify(model, expected, unverified="allow")
    assert result.unverified["up"] == "rank 2: the model's loader raised KeyError: 'up'" and job.all_agree(result)
    assert result.unverified["down"] == "rank 0: parameter into which no tensor is copied"
    error = job.raises(sealpoint.Error, lambda: sealpoint.vllm.verify(None if job.rank == 1 else model, expected))
    assert error.rank == 1
    job.raises(sealpoint.Error, lambda: sealpoint.vllm.verify(model, expected, **({"renam": {}} if job.rank == 3 else {})))
    assert sealpoint.vllm.verify(model, expected, unverified="allow") == result


def case_fingerprints_name_ranks_with_other_elements(job):
    mesh = init_device_mesh("cpu", (job.size,))
    local = torch.arange(6.0).view(2, 3)
    state = {"w": DTensor.from_local(local, mesh, [Replicate()]), "v": distribute_tensor(torch.ones(9), mesh, [Shard(0)])}
    good = sp.fingerprints(state)
    if job.rank == 2:
        local.view(torch.int32)[1, 2] ^= 1 << 20
    error = job.raises(sealpoint.CorruptError, lambda: sp.fingerprints(state))
    assert error.tensor == "w" and "2 against 0, 1, 3" in str(error)
    if job.rank == 2:
        local.view(torch.int32)[1, 2] ^= 1 << 20
    assert sp.fingerprints(state) == good
    # One rank alone raises: all hear it.
    job.raises(sealpoint.Error, lambda: sp.fingerprints({"w": object()} if job.rank == 1 else state))


class Guarded:
    """Data-parallel replicas and a sharded matrix under AdamW, and a bf16 copy of one parameter."""

    def __init__(self, job):
        torch.manual_seed(0)
        mesh = init_device_mesh("cpu", (job.size,))
        self.copies, self.shards = torch.nn.Linear(4, 6), torch.nn.Module()
        self.shards.weight = torch.nn.Parameter(distribute_tensor(torch.randn(10, 5), mesh, [Shard(0)]))
        self.optimizers = [torch.optim.AdamW(module.parameters()) for module in (self.copies, self.shards)]
        self.half = torch.empty(6, 4, dtype=torch.bfloat16)
        self.step(0)
        self.state = {"copies": self.copies, "shards": self.shards, "copies_optimizer": self.optimizers[0],
                      "shards_optimizer": self.optimizers[1], "half": self.half}  # fmt: skip

    def step(self, step):
        torch.manual_seed(step)
        self.copies(torch.randn(3, 4)).square().mean().backward()
        self.shards.weight.grad = torch.randn(()).item() * self.shards.weight.detach()
        for optimizer in self.optimizers:
            optimizer.step()
            optimizer.zero_grad()
        self.half.copy_(self.copies.weight.detach())

    def tensors(self):
        """What this rank holds, by name."""
        found = {"half": self.half}
        for name, module, optimizer in zip(("copies", "shards"), (self.copies, self.shards), self.optimizers, strict=True):
            for own, parameter in module.named_parameters():
                found[f"{name}.{own}"] = parameter
                found |= {f"{name}_optimizer.state.{name}.{own}.{key}": value for key, value in optimizer.state[parameter].items()}
        return {name: (value.to_local() if isinstance(value, DTensor) else value).detach() for name, value in found.items()}


def flip(tensor, places):
    """Flips the bits at these places, from 0 to 1; flips them back if called again."""
    content = tensor.reshape(-1).view(torch.uint8)
    for bit in {int(place * 8 * len(content)) for place in places}:
        content[bit // 8] ^= 1 << bit % 8


def sentinel_finds_flips(job, steps, flips):
    """One or more bits on one rank: between two steps, or in an optimizer step. No alarm in all other steps."""
    training, chosen, found = Guarded(job), random.Random(1), []
    sentinel = sp.Sentinel(training.state, on_finding=found.append, paired={"half": "copies.weight"})
    for step in range(1, steps + 1):
        sentinel.before_optimizer(step)
        training.step(step)
        sentinel.end_of_step(step)
        assert not found, found
        if step % (steps // flips) != 0:
            continue
        assert sentinel.findings or sentinel.provenance() == {"sdc.state": "checked", "sdc.upto": str(step)}
        name, tensor = chosen.choice(sorted(training.tensors().items(), key=lambda pair: pair[0]))
        rank, places = chosen.randrange(job.size), [chosen.random() for _ in range(chosen.choice((1, 1, 2, 9)))]
        is_late = chosen.random() < 0.5 or name.startswith("shards")
        if job.rank == rank:
            flip(tensor, places)
        sentinel.before_optimizer(step + 1) if is_late else sentinel.end_of_step(step)
        kind = "changed_between_steps" if is_late else "replicas_differ"
        assert [one.tensor for one in found if one.kind == kind] == [name], (name, rank, found)
        others = {one.tensor for one in found if one.kind != kind}  # a copy; a cast may lose the bits of its master
        assert not others or (not is_late and name in ("half", "copies.weight") and others == {"half"}), (name, found)
        assert all(one.ranks == (rank,) for one in found), (name, rank, found)
        if job.rank == rank:
            flip(tensor, places)
        found.clear()
        sentinel.end_of_step(step)
    assert sentinel.provenance()["sdc.state"] == "found" and len(sentinel.findings) >= flips


def case_a_sentinel_names_each_flip(job):
    sentinel_finds_flips(job, 60, 30)


def case_a_sentinel_names_the_minority(job):
    mesh = init_device_mesh("cpu", (2, 2))
    whole_one, half = torch.arange(6.0), torch.arange(6.0).view(3, 2)
    state = {"w": whole_one, "v": DTensor.from_local(half, mesh, [Shard(0), Replicate()], run_check=False), "n": 1}
    sentinel = sp.Sentinel(state)

    def found_at(step, tensor=None, rank=None):
        before = len(sentinel.findings)
        if job.rank == rank:
            flip(tensor, [0.4])
        sentinel.end_of_step(step)
        if job.rank == rank:
            flip(tensor, [0.4])
        return [(one.kind, one.tensor, one.ranks) for one in sentinel.findings[before:]]

    assert found_at(1) == [] and sentinel.provenance() == {"sdc.state": "checked", "sdc.upto": "1"}
    assert found_at(2, whole_one, 2) == [("replicas_differ", "w", (2,))]
    (finding,) = job.all_agree(sentinel.findings)
    assert len(finding.hosts) == 1 and finding.hosts[0] in finding.text and "2 against 0, 1, 3" in finding.text, finding
    assert found_at(3, half, 1) == [("replicas_differ", "v", (0, 1))]
    assert sentinel.provenance() == {"sdc.state": "found", "sdc.upto": "1"}
    # Another layout, on one rank: no alarm, and what is wrong then is found.
    if job.rank == 1:
        state["more"] = torch.ones(3)
    sentinel.before_optimizer(4)
    assert found_at(4) == []
    state["more"] = torch.full((3,), 2.0)
    sentinel.before_optimizer(5)
    assert found_at(5) == [] and found_at(6, state["more"], 3) == [("replicas_differ", "more", (3,))]


def case_a_sentinel_raises_on_all_ranks_or_on_none(job):
    def stop(finding):
        if job.rank == 1:
            raise ValueError("stop")

    began, state = time.monotonic(), {"w": torch.full((3,), float(job.rank == 2))}
    error = job.raises(sealpoint.Error, lambda: sp.Sentinel(state, on_finding=stop).end_of_step(1))
    assert "ValueError: stop" in str(error) and error.rank == 1, error
    sentinel = sp.Sentinel(state, exclude=["w"])
    sentinel.end_of_step(1)
    state["bad"] = lambda: 0
    if job.rank != 3:
        del state["bad"]
    assert job.raises(sealpoint.Error, lambda: sentinel.before_optimizer(2)).rank == 3
    state.pop("bad", None)
    sentinel.end_of_step(2)
    assert sentinel.findings == []
    # Wrong arguments of one rank are an error of the next call of all others.
    wrong = {"every": 0} if job.rank == 0 else {}
    assert "every is 0" in str(job.raises(sealpoint.InvalidArgumentError, lambda: sp.Sentinel(state, **wrong).end_of_step(1)))
    error = job.raises(sealpoint.InvalidArgumentError, lambda: sp.Sentinel(state, paired={"w": "master"}).end_of_step(1))
    assert error.tensor == "master", error
    assert time.monotonic() - began < 30


def case_change_on_one_rank_is_agreed_on(job):
    """The ranks keep the description of the preceding save; one of them describes its state anew."""
    local = torch.arange(4.0).view(2, 2) + 10 * job.rank
    state = {"same": torch.ones(2), "tied": torch.zeros(3), "n": 0}

    def saved(name, **own):
        sp.save(state | (own if job.rank == 1 else {}), job.path(name))
        return sp.load_full(job.path(name))

    def stored(name):
        with sealpoint.open(job.path(name)) as checkpoint:
            return set(checkpoint)

    saved("first")
    state["n"] = 1
    assert saved("values")["n"] == 1
    found = saved("more", own=torch.full((2,), 7.0))
    assert found["own"].tolist() == [7, 7] and found["tied"].tolist() == [0, 0, 0]
    assert saved("fewer")["n"] == 1 and stored("fewer") == {"same", "tied"}
    state["tied"] = state["tied"] + 1
    assert saved("memory")["tied"].tolist() == [1, 1, 1]
    failure = job.raises(sealpoint.InvalidArgumentError, lambda: saved("other", same=torch.full((2,), 3.0)))
    assert "replicas differ" in str(failure) and failure.tensor == "same", failure
    mesh, other = init_device_mesh("cpu", (job.size,)), DeviceMesh("cpu", list(reversed(range(job.size))))
    parts = [torch.arange(4.0).view(2, 2) + 10 * rank for rank in range(job.size)]
    strided = [part[row : row + 1] for row in range(2) for part in parts]
    placed = [(mesh, Shard(0), parts), (mesh, Shard(0), parts), (mesh, _StridedShard(0, split_factor=2), strided),
              (mesh, Shard(1), parts), (other, Shard(1), parts[::-1])]  # fmt: skip
    for number, (on, shard, expected) in enumerate(placed):
        state["d"] = DTensor.from_local(local, on, [shard], run_check=False, shape=torch.cat(expected, shard.dim).shape,
                                        stride=torch.cat(expected, shard.dim).stride())
        assert torch.equal(saved(f"d{number}")["d"], torch.cat(expected, shard.dim)), number


def case_calls_need_few_exchanges(job):
    """Calls and declarations are compared in one exchange; a rank that declares something else in the next save is noticed."""
    counted, real = [], TorchCommunicator._do

    def count(self, exchange):
        counted.append(self)
        return real(self, exchange)

    def exchanges(call):
        counted.clear()
        with mock.patch.object(TorchCommunicator, "_do", count):
            call()
        return len(counted)

    def save(name, **more):
        return exchanges(lambda: sp.save({"same": torch.ones(2), **more}, job.path(name)))

    save("first")
    counts = save("second"), exchanges(lambda: sp.load({"same": torch.zeros(2)}, job.path("second")))
    assert counts == (13, 14), counts
    save("other", **({"own": sp.per_rank(torch.ones(3))} if job.rank == 1 else {}))
    with sealpoint.open(job.path("other")) as checkpoint:
        assert len(checkpoint) == 2, list(checkpoint)
    save("third")
    assert save("fourth") == 13


def case_layouts_change(job):
    source = Training("fsdp", job.size, seed=1)
    sp.save(source.state(), job.path("fsdp"))
    for mode in ("tp", "hsdp"):
        other = Training(mode, job.size, seed=2)
        state = other.state()
        report = sp.load(state, job.path("fsdp"), share_chunks=True)
        other.optimizer.load_state_dict(state["optimizer"])
        assert_same(source.tensors(), other.tensors())
        reads = torch.tensor([report.bytes_read])
        dist.all_reduce(reads)
        with sealpoint.open(job.path("fsdp")) as checkpoint:
            assert reads.item() == sum(tensor.nbytes for tensor in checkpoint.values()), "each byte is read once"
        alone = Training(mode, job.size, seed=3)
        state = alone.state()
        assert sp.load(state, job.path("fsdp")).bytes_received == 0, "all are on one host"
        alone.optimizer.load_state_dict(state["optimizer"])
        assert_same(source.tensors(), alone.tensors())
    expected = source.tensors()
    if job.rank == 0:
        full = sp.load_full(job.path("fsdp"))
        for name in source.model.state_dict():
            assert torch.equal(full["model"][name], expected[name]), name


def case_fewer_ranks_load(job):
    source = Training("fsdp", job.size, seed=1)
    sp.save({"model": source.model.state_dict()}, job.path("all"))
    expected = {name: whole(tensor) for name, tensor in source.model.state_dict().items()}
    groups = [dist.new_group([0, 1]), dist.new_group([0, 1, 2]), dist.new_group([3])]
    for group in groups:
        if job.rank in dist.get_process_group_ranks(group):
            state = {"model": {name: torch.zeros_like(tensor) for name, tensor in expected.items()}}
            sp.load(state, job.path("all"), process_group=group)
            assert_same(state["model"], expected)


def case_each_rank_maps_memory_for_its_share(job):
    """Replicas are divided; a rank that does not write maps none."""
    mesh = init_device_mesh("cpu", (2, job.size // 2))
    state = {"sharded": distribute_tensor(torch.ones(1024, 1024), mesh, [Replicate(), Shard(0)]), "same": torch.ones(1024, 1024)}
    share = 2 * (4 << 20) // job.size
    asked = []
    with mock.patch.object(Session, "map_ahead", lambda self, options, size_bytes: asked.append(size_bytes())):
        sp.Checkpointer(job.path("all"), every=2).resume(state)
        sp.Checkpointer(job.path("two"), every=2, writer_ranks=[0, 1]).resume({"same": state["same"]})
    assert asked == [share] + [2 << 20] * (job.rank < 2), asked


def case_uneven_and_empty_shards(job):
    mesh = init_device_mesh("cpu", (job.size,))
    contents = {"five": torch.arange(5.0), "three": torch.arange(3.0), "one": torch.ones(1), "none": torch.zeros(0, 2),
                "columns": torch.arange(12.0).reshape(2, 6)}
    placements = {"columns": [Shard(1)]}
    state = {name: distribute_tensor(tensor, mesh, placements.get(name, [Shard(0)]))
             for name, tensor in contents.items()}
    state["scalar"] = distribute_tensor(torch.tensor(3.5), mesh, [Replicate()])
    sp.save(state, job.path("c"))
    back = {name: DTensor.from_local(torch.zeros_like(tensor.to_local()), mesh, tensor.placements, run_check=False,
                                     shape=tensor.shape, stride=tensor.stride()) for name, tensor in state.items()}
    sp.load(back, job.path("c"))
    for name, tensor in state.items():
        assert torch.equal(back[name].to_local(), tensor.to_local()), name


def case_replicas_that_differ_are_refused(job):
    good = {"t": torch.ones(4), "n": 1}
    for name, wrong in (("t", torch.tensor([1.0, 1, 1, 2])), ("n", 2)):
        state = dict(good, **({name: wrong} if job.rank == 1 else {}))
        error = job.raises(sealpoint.InvalidArgumentError, lambda state=state: sp.save(state, job.path("c")))
        assert name in (error.tensor, error.object), error
        assert error.rank == 1, error
        assert "rank" in error.message, error
        assert "differ" in error.message, error
        assert list(job.folder.iterdir()) == []
        dist.barrier()
    sp.save(dict(good, t=torch.full((4,), float(job.rank))), job.path("any"), compare_replicas=False)


def case_what_may_differ_is_of_one_rank(job):
    """Statistics of BatchNorm under DDP, of many layers: never a mixture."""
    torch.manual_seed(0)
    layers = [layer for _ in range(6) for layer in (torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4))]
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(*layers))
    torch.manual_seed(job.rank)
    model(torch.randn(8, 4)).square().mean().backward()
    given = [model.state_dict()]
    dist.broadcast_object_list(given)
    plain = {"model": model.state_dict()}
    error = job.raises(sealpoint.InvalidArgumentError, lambda: sp.save(plain, job.path("refused")))
    assert "first_rank" in str(error)
    for name, state, options in (
        ("module", {"model": model}, {}),
        ("patterns", plain, {"first_rank": ["*.running_*"]}),
        ("unchecked", plain, {"compare_replicas": False}),
    ):
        sp.save(state, job.path(name), **options)
        assert_same(sp.load_full(job.path(name))["model"], given[0])
    dist.barrier()


def case_wrong_arguments_of_a_checkpointer_are_errors_of_all(job):
    state = {"w": torch.ones(3)}

    def use(options, resume):
        checkpoints = sp.Checkpointer(job.path("run"), **(options if job.rank == 1 else {}))
        return checkpoints.resume(state, **(resume if job.rank == 1 else {}))

    for options, resume, said in (({"keep": 1}, {}, "keep is 1"), ({"kep": 2}, {}, "kep"), ({}, {"conract": 1}, "conract"),
                                  ({"keep": 5}, {}, "keep")):  # fmt: skip
        began = time.monotonic()
        assert said in str(job.raises(sealpoint.InvalidArgumentError, lambda options=options, resume=resume: use(options, resume)))
        assert time.monotonic() - began < 30
    assert use({}, {}) is None


def case_values_of_each_rank(job):
    random.seed(job.rank)
    torch.manual_seed(100 + job.rank)
    state = {"rng": sp.per_rank({"torch": torch.get_rng_state(), "python": random.getstate(), "n": job.rank})}
    sp.save(state, job.path("c"))
    back = {"rng": sp.per_rank({"torch": torch.zeros_like(torch.get_rng_state()), "python": None, "n": None})}
    sp.load(back, job.path("c"))
    assert torch.equal(back["rng"].value["torch"], state["rng"].value["torch"])
    assert back["rng"].value["python"] == random.getstate()
    assert back["rng"].value["n"] == job.rank
    if job.rank == 0:
        assert [item["n"] for item in sp.load_full(job.path("c"))["rng"]] == list(range(job.size))
    pair = dist.new_group([0, 1])
    if job.rank < 2:
        try:
            sp.load(back, job.path("c"), process_group=pair)
        except sealpoint.MismatchError as error:
            assert "4 ranks saved it, 2 load" in str(error), error
        else:
            raise AssertionError("another number of ranks")
        sp.load(back, job.path("c"), process_group=pair, contract=sp.Contract(per_rank="allow", unexpected="allow"))
        everyone = {"rng": None}
        sp.load(everyone, job.path("c"), process_group=pair, all_ranks=True)
        assert [item["n"] for item in everyone["rng"]] == list(range(job.size))
        assert torch.equal(everyone["rng"][job.rank]["torch"], state["rng"].value["torch"])


def case_one_rank_cannot_save_its_state(job):
    for wrong in (lambda: 0, torch.ones(2).to_sparse(), torch.empty(2, device="meta")):
        state = {"a": {"b": wrong if job.rank == 2 else 1}}
        error = job.raises(sealpoint.UnsupportedError, lambda state=state: sp.save(state, job.path("c")))
        assert "a.b" in (error.tensor, error.object), error
        assert error.rank == 2, error
        assert not job.path("c").exists()
    partial = DTensor.from_local(torch.ones(2), init_device_mesh("cpu", (job.size,)), [Partial()], run_check=False)
    error = job.raises(sealpoint.InvalidArgumentError, lambda: sp.save({"p": partial}, job.path("c")))
    assert error.tensor == "p", error


def case_training_goes_on_beside_a_save(job):
    """On a group of its own; what is stored is what the state was when the call returned; nobody polls."""
    tensor = torch.full((1000, 100), float(job.rank))
    state = {f"own{job.rank}": tensor, "n": torch.zeros(1)}
    for number in range(3):
        tensor.fill_(number * 10 + job.rank)
        state["n"].fill_(number)
        future = sp.save_async(state, job.path(f"c{number}"))
        tensor.fill_(-1)
        state["n"].fill_(-1)
        for _ in range(60):
            total = torch.tensor([job.rank + 1.0])
            dist.all_reduce(total)
            assert total.item() == job.size * (job.size + 1) / 2
        future.result(timeout=60)
    for number in range(3):
        full = sp.load_full(job.path(f"c{number}"))
        for rank in range(job.size):
            assert torch.equal(full[f"own{rank}"], torch.full((1000, 100), float(number * 10 + rank)))
        assert full["n"].item() == number


def case_damage_is_an_error_of_all(job):
    content = torch.arange(1000.0)
    sp.save({"t": content}, job.path("c"))
    if job.rank == 0:
        stored = content[500:510].numpy().tobytes()
        (blob,) = [blob for blob in job.path("c").glob("*.blob") if stored in blob.read_bytes()]
        data = bytearray(blob.read_bytes())
        data[data.index(stored)] ^= 1
        blob.write_bytes(data)
    dist.barrier()
    error = job.raises(sealpoint.CorruptError, lambda: sp.load({"t": torch.zeros(1000)}, job.path("c")))
    assert error.path is not None


def case_a_loop_resumes(job):
    with sp.Checkpointer(job.path("run"), every=2, keep=2) as checkpoints:
        state = {"t": torch.zeros(3), "step": 0}
        assert checkpoints.resume(state) is None
        error = job.raises(sealpoint.NotFoundError, lambda: checkpoints.resume(state, required=True))
        assert error.path == str(job.path("run")), error
        for step in range(1, 8):
            state["t"].fill_(step)
            state["step"] = step
            checkpoints.step(step, state)
    lost = sp.Checkpointer(job.path("mount") / "job" / "run", every=2)
    error = job.raises(sealpoint.IoError, lambda: lost.resume(state))
    assert "or create it for a new training" in error.message, error
    again = sp.Checkpointer(job.path("run"), every=2)
    back = {"t": torch.zeros(3), "step": 0}
    assert again.resume(back) == 6
    assert back["step"] == 6
    assert torch.equal(back["t"], torch.full((3,), 6.0))
    assert [entry.step for entry in sealpoint.Series(job.path("run")).list()] == [6, 4]


def case_messages_arrive(job):
    messages_arrive()


def case_messages_arrive_through_a_grid(job):
    """As the ranks of a large job are connected; so do saves and loads."""
    from sealpoint.torch import _links

    before, _links.MESH_RANKS_MAX = _links.MESH_RANKS_MAX, 1
    try:
        messages_arrive()
        group = dist.new_group(list(range(job.size)))
        sp.save({"t": torch.arange(10)}, job.path("c"), process_group=group)
        back = {"t": torch.zeros(10, dtype=torch.int64)}
        assert sp.load(back, job.path("c"), process_group=group, share_chunks=True).bytes_requested == 80
        assert torch.equal(back["t"], torch.arange(10))
        assert type(sp.TorchCommunicator()._links) is _links.Grid
    finally:
        _links.MESH_RANKS_MAX = before


def messages_arrive():
    """Of any size, from any rank, also nothing."""
    comm = sp.TorchCommunicator()
    comm.set_deadline(60)
    rank, size = comm.rank, comm.size
    comm.barrier()
    assert comm.all_reduce_max([rank, 2**64 - 1 - rank, 0]) == [size - 1, 2**64 - 1, 0]
    message = bytes([rank]) * (rank * 1000)  # rank 0 sends nothing
    assert [bytes(answer) for answer in comm.all_gather(message)] == [bytes([r]) * (r * 1000) for r in range(size)]
    large = b"x" * 3_000_000 if rank == 1 else b""  # in turn, and not padded
    assert [len(answer) for answer in comm.all_gather(large)] == [0, 3_000_000, 0, 0]
    assert [len(answer) for answer in comm.all_gather(b"")] == [0] * size
    for root in range(size):
        sent = b"from %d" % root if rank == root else None
        assert bytes(comm.broadcast(sent, root) or b"") == b"from %d" % root
        gathered = comm.gather(message, root)
        assert (gathered is None) == (rank != root)
        assert gathered is None or [len(item) for item in gathered] == [r * 1000 for r in range(size)]
    out = [bytes([rank, to]) * to for to in range(size)]
    assert [bytes(item) for item in comm.all_to_all(out)] == [bytes([r, rank]) * rank for r in range(size)]
    assert [bytes(item) for item in comm.all_to_all([b""] * size)] == [b""] * size
    for longest in (4095, 4096, 4097, 20_000):  # around the room of a first message, on one rank alone
        out = [bytes([rank, to]) * (longest // 2 if to == 1 == rank else to) + b"x" for to in range(size)]
        back = [bytes([r, rank]) * (longest // 2 if r == 1 == rank else rank) + b"x" for r in range(size)]
        assert [bytes(item) for item in comm.all_to_all(out)] == back
        own = bytes([rank]) * (longest if rank == 1 else rank)
        everyone = [bytes([r]) * (longest if r == 1 else r) for r in range(size)]
        assert [bytes(answer) for answer in comm.all_gather(own)] == everyone
        gathered = comm.gather(own, 0)
        assert gathered is None or [bytes(item) for item in gathered] == everyone
        assert bytes(comm.broadcast(own if rank == 1 else None, 1) or b"") == everyone[1]
    other = comm.duplicate_for_background()
    assert other.all_reduce_max([rank]) == [size - 1]


def case_an_interruption_ends_a_call(job):
    import threading

    comm = sp.TorchCommunicator()
    comm.barrier()
    if job.rank == 0:
        timer = threading.Timer(0.5, comm.interrupt, ["enough"])
        timer.start()
        started = time.monotonic()
        try:
            comm.barrier()
        except sealpoint.CommError as error:
            assert "enough" in str(error)
        else:
            raise AssertionError("not interrupted")
        assert time.monotonic() - started < 5
    time.sleep(1)


class Stage(torch.nn.Module):
    """Some layers of a model, by their numbers in the whole of it."""

    def __init__(self, numbers, seed):
        super().__init__()
        torch.manual_seed(seed)
        self.layers = torch.nn.ModuleDict({str(number): torch.nn.Linear(3, 3) for number in numbers})

    def forward(self, x):
        for number, layer in self.layers.items():
            x = layer(x) * (int(number) + 1)
        return x


def trained(model, optimizer, steps=2):
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.ones(2, 3)).pow(2).sum().backward()
        optimizer.step()
    return {"model": model, "optimizer": optimizer}


def moments_of(model, optimizer):
    """By names of parameters."""
    return {f"{name}.{key}": value for name, parameter in model.named_parameters()
            for key, value in optimizer.state[parameter].items()}


def adam_of(model, lr=0.1):
    return torch.optim.AdamW(model.parameters(), lr=lr)


def case_stages_of_a_pipeline_save_their_optimizers(job):
    """Parameter 0 of each rank is another one; other numbers of stages load them by name."""
    stage = Stage([job.rank], seed=job.rank)
    optimizer = adam_of(stage)
    sp.save(trained(stage, optimizer), job.path("c"), step=1)
    every = [None] * job.size
    dist.all_gather_object(every, moments_of(stage, optimizer))
    expected = {name: value for item in every for name, value in item.items()}
    for per_stage in (1, 2, 4):
        group = dist.new_group(list(range(job.size // per_stage)))
        if job.rank >= job.size // per_stage:
            continue
        other = Stage(range(job.rank * per_stage, (job.rank + 1) * per_stage), seed=9)
        fresh = adam_of(other, lr=0.5)
        report = sp.load({"model": other, "optimizer": fresh}, job.path("c"), process_group=group)
        assert_same({name: expected[name] for name in moments_of(other, fresh)}, moments_of(other, fresh))
        assert fresh.param_groups[0]["lr"] == 0.1 and [path for _, path, _ in report.findings] == ["optimizer.param_groups.0.lr"]
        trained(other, fresh, steps=1)
    dist.barrier()
    stage = Stage([job.rank], seed=1)
    wrong = Stage([7], seed=1) if job.rank == 1 else stage
    error = job.raises(sealpoint.MismatchError, lambda: sp.load({"model": wrong, "optimizer": adam_of(wrong)}, job.path("c")))
    assert "only here layers.7.bias" in str(error), error
    error = job.raises(sealpoint.MismatchError, lambda: sp.load({"optimizer": adam_of(stage)}, job.path("c")))
    assert "the checkpoint has its state by parameter name" in str(error), error
    state = {"model": stage, "optimizer": adam_of(stage)} if job.rank > 0 else {"model": stage}
    error = job.raises(sealpoint.MismatchError, lambda: sp.load(state, job.path("c")))
    assert "optimizer.state.layers.0." in str(error), error


def case_the_parts_of_a_zero_redundancy_optimizer_are_saved(job):
    """Each rank has the state of some parameters; another number of ranks loads it."""
    from torch.distributed.optim import ZeroRedundancyOptimizer

    def pair(seed, group, lr=0.1):
        model = Stage(range(3), seed)
        return model, ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW, process_group=group, lr=lr)

    everyone = dist.new_group()
    model, optimizer = pair(1, everyone)
    sp.save(trained(model, optimizer), job.path("c"), step=1)
    for steps in range(2):  # the second time by two ranks
        group = everyone if steps == 0 else dist.new_group([0, 1])
        if steps and job.rank > 1:
            continue
        other, fresh = pair(2, group, lr=0.5)
        sp.load({"model": other, "optimizer": fresh}, job.path("c"), process_group=group)
        assert fresh.param_groups[0]["lr"] == 0.1
        source, whole_one = pair(1, group)
        trained(source, whole_one, steps=3)
        trained(other, fresh, steps=1)
        assert_same(dict(source.state_dict()), dict(other.state_dict()))
    dist.barrier()


def case_state_of_an_optimizer_that_is_sharded_as_its_parameter_stays_so(job):
    """One value per row."""
    mesh = init_device_mesh("cpu", (job.size,))

    def pair():
        parameter = torch.nn.Parameter(distribute_tensor(torch.ones(8, 3), mesh, [Shard(0)]))
        return parameter, torch.optim.SGD([parameter])

    parameter, optimizer = pair()
    rows = distribute_tensor(torch.arange(8.0), mesh, [Shard(0)])
    optimizer.state[parameter] = {"row": rows, "whole": distribute_tensor(torch.arange(5.0), mesh, [Replicate()])}
    sp.save({"p": parameter, "o": optimizer}, job.path("c"))
    other, fresh = pair()
    sp.load({"p": other, "o": fresh}, job.path("c"))
    row, all_of_it = (fresh.state[other][key] for key in ("row", "whole"))
    assert row.placements == (Shard(0),) and torch.equal(row.full_tensor(), torch.arange(8.0))
    assert torch.equal(whole(all_of_it), torch.arange(5.0))


def case_parts_of_tensors_are_saved_by_shard(job):
    """A DTensor whose local tensor is made of others, as 8-bit moments are: loaded in the layout of the save."""

    def sharded(seed, placements, size=job.size):
        mesh = init_device_mesh("cpu", (job.size,)) if size == job.size else init_device_mesh("cpu", (2, 2))
        local = rows(seed, shape=(2, 4))
        return DTensor.from_local(local, mesh, placements, run_check=False, shape=(2 * size, 4), stride=(4, 1))

    sp.save({"m": sharded(job.rank, [Shard(0)]), "plain": torch.ones(1)}, job.path("c"))
    state = {"m": sharded(9, [Shard(0)]), "plain": torch.zeros(1)}
    sp.load(state, job.path("c"))
    found, expected = state["m"].to_local(), rows(job.rank, shape=(2, 4))
    assert isinstance(found, Rows8Bit) and torch.equal(found.codes, expected.codes) and torch.equal(found.scale, expected.scale)
    other = {"m": sharded(9, [Replicate(), Shard(0)], size=2), "plain": torch.zeros(1)}
    error = job.raises(sealpoint.MismatchError, lambda: sp.load(other, job.path("c")))
    assert "the shape is [4, 4] in the state, [8, 4]" in str(error), error
    sp.save({"m": sharded(job.rank % 2, [Replicate(), Shard(0)], size=2), "plain": torch.ones(1)}, job.path("replicas"))
    sp.load(other, job.path("replicas"))
    assert torch.equal(other["m"].to_local().codes, rows(job.rank % 2, shape=(2, 4)).codes)


def case_keys_that_ranks_have_alone_stay_apart(job):
    """Each rank has the place of its loader under a key of its own; a mapping that grew is replaced."""

    def state(place):
        return {"w": torch.ones(1), "loader": {f"rank{job.rank}": {"at": place}, "size": job.size}, "log": {"1": 1}, "none": {}}

    stored = state(job.rank)
    stored["log"], stored["none"] = {"1": 1, "2": 2}, {"a": 1}
    sp.save(stored, job.path("c"))
    live = state(-1)
    sp.load(live, job.path("c"))
    assert live == stored, live


def case_ranks_agree_when_to_save(job):
    """By the clock of rank 0, and when one rank alone is told to end."""
    began = time.monotonic()
    with sp.Checkpointer(job.path("clock"), every="0.3s", wait=True) as checkpoints:
        for step in range(1, 40):
            time.sleep(0.02 + 0.01 * (job.rank == 2))
            saved = checkpoints.step(step, {"n": step})
            job.all_agree(saved is None)
    saves = [entry.step for entry in sealpoint.Series(job.path("clock")).list()]
    assert 2 <= len(saves) <= (time.monotonic() - began) / 0.3, saves
    dist.barrier()
    ended = None
    try:
        with sp.Checkpointer(job.path("told"), every=1000) as checkpoints:
            for step in range(1, 10_000):
                checkpoints.step(step, {"n": step})
                if step == 5 and job.rank == 1:
                    os.kill(os.getpid(), signal.SIGTERM)
                time.sleep(0.002)
    except SystemExit as error:
        ended = error.code
    assert job.all_agree(ended) == 143
    (entry,) = sealpoint.Series(job.path("told")).list()
    assert entry.verdict == "committed" and job.all_agree(step) == entry.step >= 5


def case_a_second_job_is_told_on_all_ranks(job):
    old, new = (sp.Checkpointer(job.path("run"), wait=True) for _ in range(2))
    old.resume({"n": 0})
    old.save(1, {"n": 1})
    assert new.resume({"n": 0}) == 1
    old.save(2, {"n": 2})
    error = job.raises(sealpoint.AlreadyExistsError, lambda: new.save(2, {"n": 2}))
    assert "another job saved step 2" in str(error), error
    old.save(3, {"n": 3})


def case_experts_of_each_rank_are_no_replicas(job):
    """Two meshes without a common rank have a tensor of one name, and nobody compares."""
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("expert", "shard"))
    local = DTensor.from_local(torch.full((2, 3), float(job.rank)), mesh["shard"], [Shard(0)])
    for state in ({"w": local}, {"model": {"w": local}, "n": torch.ones(1)}):
        error = job.raises(
            sealpoint.InvalidArgumentError, lambda state=state: sp.save(state, job.path("c"), compare_replicas=False))
        assert "ranks [0, 1] and the mesh of ranks [2, 3]" in str(error) and "no rank in common" in str(error), error
    job.raises(sealpoint.InvalidArgumentError, lambda: sp.save({"w": local}, job.path("c")))
    whole_one = DTensor.from_local(torch.full((2, 3), float(job.rank % 2)), mesh, [Replicate(), Shard(0)], run_check=False)
    sp.save({"w": whole_one}, job.path("c"), compare_replicas=False)


def case_tensors_are_stored_in_boxes(job):
    """Of a DTensor, of a replica, and in the background; each rank cuts at the same positions."""
    mesh = init_device_mesh("cpu", (job.size,))
    whole_one = torch.arange(24.0 * 20).reshape(24, 20)
    state = {"grid": distribute_tensor(whole_one, mesh, [Shard(0)]), "copy": whole_one.clone()}
    cuts = {"grid": (5, 6), "copy": (0, 9)}
    sp.save(state, job.path("c"), stored_cuts=cuts)
    sp.save_async(state, job.path("d"), stored_cuts=cuts).result()
    for name in ("c", "d"):
        with sealpoint.open(job.path(name)) as checkpoint:
            for tensor, (rows, columns) in cuts.items():
                assert (checkpoint[tensor][...] == whole_one.numpy()).all()
                for shard in checkpoint.shards(tensor):
                    for at, extent, cut in zip(shard.offset, shard.extent, (rows or 24, columns), strict=True):
                        assert at // cut == (at + extent - 1) // cut, shard
    error = job.raises(sealpoint.InvalidArgumentError, lambda: sp.save(state, job.path("e"), stored_cuts={"grud": (5, 6)}))
    assert "the pattern grud of stored_cuts matches no tensor of any rank" in str(error), error
    error = job.raises(
        sealpoint.InvalidArgumentError, lambda: sp.save(state, job.path("e"), stored_cuts={"grid": (5, 6 + job.rank)}))
    assert "stored_cuts" in str(error), error


def case_a_pattern_that_fits_nothing_is_an_error(job):
    """Of any rank: a stage may have none of the tensors."""
    state = {"base" if job.rank == 0 else "adapter": {"a[0]": torch.ones(1)}}
    for wrong in ({"frozen": ["bas.*"]}, {"frozen": ["base.*", "base.a[0]"]}, {"first_rank": ["*.running_mean"]}):
        error = job.raises(sealpoint.InvalidArgumentError, lambda wrong=wrong: sp.save(state, job.path("c"), **wrong))
        assert "of frozen or first_rank matches no tensor of" in str(error), error
    sp.save(state, job.path("c"), frozen=["base.*", "base.a[[]0]"], first_rank=["adapter.*"])


def case_dimensions_that_divide_in_another_order(job):
    """Of a mesh, as torch's specification of a DTensor says: no placement shows it."""
    spec = importlib.import_module("torch.distributed.tensor._dtensor_spec")
    if not hasattr(spec, "ShardOrderEntry"):
        return
    mesh, whole_one = init_device_mesh("cpu", (2, 2)), torch.arange(16.0).reshape(8, 2)
    first, second = mesh.get_coordinate()
    order = (spec.ShardOrderEntry(tensor_dim=0, mesh_dims=(1, 0)),)
    meta = spec.TensorMeta(whole_one.shape, whole_one.stride(), whole_one.dtype)
    local = whole_one.chunk(2)[second].chunk(2)[first].clone()
    state = {"w": DTensor(local, spec.DTensorSpec(mesh, (Shard(0), Shard(0)), meta, shard_order=order), requires_grad=False)}
    sp.save({"w": distribute_tensor(torch.zeros(8, 2), mesh, [Shard(0), Shard(0)])}, job.path("usual"))
    ways = {"sp": sp.save, "dcp": lambda one, path: dcp.save(one, storage_writer=StorageWriter(path))}
    for path, save in ((job.path(name), save) for name, save in ways.items()):
        save(state, path)
        assert torch.equal(sp.load_full(path)["w"], whole_one)
        state["w"].to_local().zero_()
        sp.load(state, path)
        assert torch.equal(state["w"].to_local(), local) and torch.equal(local, whole_one.chunk(2)[second].chunk(2)[first])
