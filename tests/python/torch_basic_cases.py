# SPDX-License-Identifier: Apache-2.0
"""What four ranks do together, the part that runs with each commit; run by test_torch_ranks.py."""

import random
import time

import sealpoint
import sealpoint.torch as sp
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from torch_states import MODES, Training, assert_same, whole


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
        assert [one["n"] for one in sp.load_full(job.path("c"))["rng"]] == list(range(job.size))
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
        assert [one["n"] for one in everyone["rng"]] == list(range(job.size))
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
    assert "mount it, or make it for a new training" in error.message, error
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
    assert [bytes(one) for one in comm.all_gather(message)] == [bytes([r]) * (r * 1000) for r in range(size)]
    large = b"x" * 3_000_000 if rank == 1 else b""  # in turn, and not padded
    assert [len(one) for one in comm.all_gather(large)] == [0, 3_000_000, 0, 0]
    assert [len(one) for one in comm.all_gather(b"")] == [0] * size
    for root in range(size):
        sent = b"from %d" % root if rank == root else None
        assert bytes(comm.broadcast(sent, root) or b"") == b"from %d" % root
        gathered = comm.gather(message, root)
        assert (gathered is None) == (rank != root)
        assert gathered is None or [len(one) for one in gathered] == [r * 1000 for r in range(size)]
    out = [bytes([rank, to]) * to for to in range(size)]
    assert [bytes(one) for one in comm.all_to_all(out)] == [bytes([r, rank]) * rank for r in range(size)]
    assert [bytes(one) for one in comm.all_to_all([b""] * size)] == [b""] * size
    for longest in (4095, 4096, 4097, 20_000):  # around the room of a first message, on one rank alone
        out = [bytes([rank, to]) * (longest // 2 if to == 1 == rank else to) + b"x" for to in range(size)]
        back = [bytes([r, rank]) * (longest // 2 if r == 1 == rank else rank) + b"x" for r in range(size)]
        assert [bytes(one) for one in comm.all_to_all(out)] == back
        own = bytes([rank]) * (longest if rank == 1 else rank)
        everyone = [bytes([r]) * (longest if r == 1 else r) for r in range(size)]
        assert [bytes(one) for one in comm.all_gather(own)] == everyone
        gathered = comm.gather(own, 0)
        assert gathered is None or [bytes(one) for one in gathered] == everyone
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
