# SPDX-License-Identifier: Apache-2.0
"""What four ranks do together; run by test_torch_ranks.py."""

import json
import pathlib
import random
import time

import sealpoint
import sealpoint.torch as sp
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from torch_states import MODES, Model, Tied, Training, assert_same, in_place, whole


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


def case_ranks_of_several_hosts_share_chunks(job):
    from sealpoint.torch._session import session_of

    content = torch.arange(10_000.0)
    sp.save({"t": content}, job.path("c"))
    session = session_of(None)
    own, session.communicator.host, session._spans_hosts = session.communicator.host, f"host {job.rank // 2}", None
    try:
        back = {"t": torch.zeros(10_000)}
        received = torch.tensor([sp.load(back, job.path("c")).bytes_received])
        dist.all_reduce(received)
        assert received.item() == (job.size - 1) * content.nbytes, "each byte came to each rank once"
        assert torch.equal(back["t"], content)
        assert sp.load(back, job.path("c"), share_chunks=False).bytes_received == 0
    finally:
        session.communicator.host, session._spans_hosts = own, None


def case_new_optimizers_get_their_state(job):
    """In a new process no optimizer has moments yet; here that is so on all ranks, or on some."""
    source = Training("fsdp", job.size, seed=1)
    source.optimizer.param_groups[0]["lr"] = 0.5
    sp.save({"model": source.model, "optimizer": source.optimizer}, job.path("c"))
    expected = source.tensors()
    for number, mode in enumerate((*MODES, "tp")):
        other = Training(mode, job.size, seed=2)
        if number < len(MODES) or job.rank % 2 == 0:
            other.optimizer = torch.optim.AdamW(other.model.parameters(), lr=1e-2)
        sp.load({"model": other.model, "optimizer": other.optimizer}, job.path("c"))
        assert_same(expected, other.tensors())
        assert other.optimizer.param_groups[0]["lr"] == 0.5
        for parameter, entries in other.optimizer.state.items():
            assert entries["exp_avg"].placements == parameter.placements, mode
            assert not isinstance(entries["step"], DTensor)
        other.step()
        sp.save({"model": other.model, "optimizer": other.optimizer}, job.path(f"again{number}"))
    back = job.path("again0")
    torch.manual_seed(9)
    plain = Model()
    optimizer = torch.optim.AdamW(plain.parameters())
    sp.load({"model": plain, "optimizer": optimizer}, back)
    alone = Training("fsdp", job.size, seed=3)
    sp.load({"model": alone.model, "optimizer": alone.optimizer}, back)
    found = dict(plain.state_dict())
    for number, one in optimizer.state_dict()["state"].items():
        found.update({f"{number}.{key}": value for key, value in one.items()})
    assert_same(alone.tensors(), found)
    parallel = torch.nn.parallel.DistributedDataParallel(plain)
    error = job.raises(sealpoint.MismatchError, lambda: sp.load({"model": parallel, "optimizer": optimizer}, back))
    assert "of the state's names have a part 'module'" in error.message, error
    sp.load({"model": parallel.module, "optimizer": torch.optim.AdamW(parallel.parameters())}, back)


def case_state_dicts_without_moments_are_refused(job):
    source = Training("fsdp", job.size, seed=1)
    sp.save(source.state(), job.path("c"))
    other = Training("tp", job.size, seed=2)
    if job.rank == 2:
        other.optimizer = torch.optim.AdamW(other.model.parameters())
    partial = sp.Contract.partial()
    error = job.raises(sealpoint.MismatchError, lambda: sp.load(other.state(), job.path("c"), contract=partial))
    assert "give the optimizer itself" in error.message and error.rank == 2, error


def case_all_differences_of_all_ranks_are_in_one_error(job):
    sp.save({"a": torch.ones(2), "b": torch.ones(2), "c": 1}, job.path("c"))
    own = {"a": torch.zeros(3 if job.rank == 1 else 2), **({} if job.rank else {"b": torch.zeros(2)})}
    if job.rank in (1, 3):
        own[f"x{job.rank}"] = 0
    error = job.raises(sealpoint.MismatchError, lambda: sp.load(own, job.path("c")))
    for part in ("1 missing", "x1", "1 unexpected, which no rank's state has: c", "1 of another shape: a",
                 "3 other ranks have other differences, or none"):
        assert part in error.message, error
    assert error.rank == 1, "the one with the most"


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


def case_strided_shards_alone(job):
    mesh = init_device_mesh("cpu", (job.size,))
    from torch.distributed.tensor.placement_types import _StridedShard

    for length in (16, 13, 5):
        content = torch.arange(length * 3.0).reshape(length, 3)
        shard = _StridedShard(0, split_factor=2)
        local, _ = shard._split_tensor(content, job.size, with_padding=False)
        tensor = DTensor.from_local(local[job.rank], mesh, [shard], run_check=False, shape=content.shape, stride=(3, 1))
        sp.save({"t": tensor}, job.path(f"strided{length}"))
        if job.rank == 0:
            assert torch.equal(sp.load_full(job.path(f"strided{length}"))["t"], content), length
        back = DTensor.from_local(torch.zeros_like(local[job.rank]), mesh, [shard], run_check=False,
                                  shape=content.shape, stride=(3, 1))
        dist.barrier()
        sp.load({"t": back}, job.path(f"strided{length}"))
        assert torch.equal(back.to_local(), local[job.rank])


def case_regions_that_the_caller_names(job):
    """Columns of a matrix, cut in two by tensor parallelism; each half is a flat run on two ranks."""
    whole = torch.arange(40.0).reshape(5, 8)
    half, number = divmod(job.rank, 2)

    def state(make):
        box = ((0, 4 * half), (5, 4))
        begin, end = ((0, 7), (7, 20))[number]
        flat = make(whole[:, 4 * half : 4 * half + 4]).reshape(-1)[begin:end]
        rows = [sp.Region(make(whole[job.rank : job.rank + 1]), (job.rank, 0))]
        if job.rank == 3:
            rows.append(sp.Region(make(whole[4:]), (4, 0)))
        return {
            "runs": sp.Regions(whole.shape, whole.dtype, [sp.Region(flat, *box, run=(begin, end))]),
            "rows": sp.Regions(whole.shape, whole.dtype, rows),
        }

    sp.save(state(torch.clone), job.path("c"))
    back, expected = state(torch.zeros_like), state(torch.clone)
    sp.load(back, job.path("c"))
    for name, value in back.items():
        for one, other in zip(value.regions, expected[name].regions, strict=True):
            assert torch.equal(one.tensor, other.tensor), name
    plain = {"runs": torch.zeros(5, 8), "rows": torch.zeros(5, 8)}
    sp.load(plain, job.path("c"))
    assert torch.equal(plain["runs"], whole)
    assert torch.equal(plain["rows"], whole)
    short = sp.Region(torch.zeros(6), (0, 0), (5, 8), run=(0, 7))
    wrong = {"t": sp.Regions((5, 8), torch.float32, [short] if job.rank == 2 else [])}
    error = job.raises(sealpoint.InvalidArgumentError, lambda: sp.save(wrong, job.path("d")))
    assert (error.tensor, error.rank) == ("t", 2), error
    assert "[6], expected torch.float32 [7]" in str(error), error


def case_some_ranks_write(job):
    state = {"t": torch.arange(1000.0), "n": 1}
    sp.save(state, job.path("c"), writer_ranks=[0, 1])
    with sealpoint.open(job.path("c")) as checkpoint:
        assert len(checkpoint.blobs) == 2
        assert checkpoint["t"].tobytes() == state["t"].numpy().tobytes()
    own = {f"own{job.rank}": torch.ones(1)}
    error = job.raises(sealpoint.InvalidArgumentError, lambda: sp.save(own, job.path("d"), writer_ranks=[0, 1]))
    assert "own2" in str(error), error


def case_some_ranks_have_a_mesh(job):
    mesh = DeviceMesh("cpu", [0, 1])
    content = torch.arange(5.0)
    tensor = distribute_tensor(content, mesh, [Shard(0)])
    sp.save({"t": tensor, "everywhere": torch.ones(3)}, job.path("c"))
    if job.rank == 0:
        assert torch.equal(sp.load_full(job.path("c"))["t"], content)


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


def case_tensors_that_disagree_are_refused(job):
    others = {"shape": torch.ones(5), "dtype": torch.ones(4, dtype=torch.float64), "kind": 4}
    for what, other in others.items():
        state = {"t": other if job.rank == 2 else torch.ones(4)}
        error = job.raises(sealpoint.InvalidArgumentError, lambda state=state: sp.save(state, job.path(what)))
        assert "t" in (error.tensor, error.object), error
        assert not job.path(what).exists()


def case_ranks_with_other_keys_are_united(job):
    state = {"model": {f"layer{job.rank}": torch.full((2,), float(job.rank)), "shared": torch.ones(1)},
             "stage": {job.rank: f"stage {job.rank}"}}
    sp.save(state, job.path("c"))
    back = {"model": {f"layer{job.rank}": torch.zeros(2), "shared": torch.zeros(1)}, "stage": {job.rank: ""}}
    sp.load(back, job.path("c"))
    assert back["stage"] == state["stage"]
    assert torch.equal(back["model"][f"layer{job.rank}"], state["model"][f"layer{job.rank}"])


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


def case_one_rank_raises_something_else(job):
    """Of no class of ours: the others must not wait for it until their deadline."""

    class Broken:
        def state_dict(self):
            raise ValueError("no state here")

        def load_state_dict(self, state):
            pass

    wrong = Broken() if job.rank == 1 else {"n": 1}
    error = job.raises(sealpoint.InvalidArgumentError, lambda: sp.save({"x": wrong}, job.path("c")))
    assert "ValueError: no state here" in str(error), error
    assert error.rank == 1, error
    own = {f"own{job.rank}" + ("\n" if job.rank == 2 else ""): torch.ones(1)}
    error = job.raises(sealpoint.InvalidArgumentError, lambda: sp.save(own, job.path("c")))
    assert error.rank == 2, error
    sp.save({"x": {"n": 1}}, job.path("c"))
    error = job.raises(sealpoint.InvalidArgumentError, lambda: sp.load({"x": wrong}, job.path("c")))
    assert error.rank == 1, error


def case_nothing_is_saved_twice(job):
    sp.save({"t": torch.ones(2)}, job.path("c"))
    before = sealpoint.open(job.path("c")).attempt
    job.raises(sealpoint.AlreadyExistsError, lambda: sp.save({"t": torch.zeros(2)}, job.path("c")))
    assert sealpoint.open(job.path("c")).attempt == before


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


def case_a_save_ends_while_all_sleep(job):
    future = sp.save_async({"t": torch.ones(10)}, job.path("c"))
    done = []
    future.add_done_callback(lambda one: done.append(one.result()))
    time.sleep(2)
    assert future.done()
    assert len(done) == 1
    assert (job.path("c") / "COMMIT").exists()


def case_differences_follow_the_contract(job):
    sp.save({"a": torch.ones(2), "b": torch.ones(3), "n": 1, "o": {"x": 1}}, job.path("c"))
    good = {"a": torch.zeros(2), "b": torch.zeros(3), "n": 0, "o": {"x": 0}}

    def load(state, **options):
        return sp.load(state, job.path("c"), **options)

    def differ(what, change, drop=()):
        state = {key: value for key, value in {**good, **change}.items() if key not in drop}
        error = job.raises(sealpoint.MismatchError, lambda: load(state))
        return what, str(error)

    for what, text in (
        differ("more", {"more": torch.zeros(1)}),
        differ("more", {"more": 1}),
        differ("b", {}, drop=("b",)),
        differ("n", {}, drop=("n",)),
        differ("a", {"a": torch.zeros(2, dtype=torch.float64)}),
        differ("a", {"a": torch.zeros(3)}),
        differ("a", {"a": 5}),
        differ("n", {"n": torch.zeros(1)}),
        differ("o", {"o": 3}),
    ):
        assert what in text, (what, text)
    assert torch.equal(good["a"], torch.zeros(2)), "nothing was read"
    partial = {"a": torch.zeros(2)} if job.rank == 0 else {"n": 0}
    load(partial, contract=sp.Contract.partial())
    assert job.rank != 0 or torch.equal(partial["a"], torch.ones(2))
    assert job.rank == 0 or partial["n"] == 1
    report = load({"a": torch.zeros(2), "more": 7}, contract=sp.Contract(missing="report", unexpected="report"))
    assert ("missing", "more", "the checkpoint does not have it") in report.findings
    assert {name for what, name, _ in report.findings if what == "unexpected"} == {"b", "n", "o.x"}
    wide = {"a": torch.zeros(2, dtype=torch.float64), "b": torch.zeros(3), "n": 0, "o": {"x": 0}}
    load(wide, convert="exact")
    assert torch.equal(wide["a"], torch.ones(2, dtype=torch.float64))


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


def case_tensors_that_say_where_they_lie(job):
    """As CheckpointableTensor of newer versions of torch."""
    sp.save({"t": in_place(job, True)}, job.path("c"))
    expected = torch.arange(2.0 * job.size)[:, None].expand(-1, 3)
    assert torch.equal(sp.load_full(job.path("c"))["t"], expected)
    back = in_place(job, False)
    sp.load({"t": back}, job.path("c"))
    assert torch.equal(back, in_place(job, True))
    wrong = (("local_offsets", ((0, 0), (4, 0))), ("local_offsets", ((0, 0), (-1, 0))), ("local_offsets", ((0,), (3,))),
             ("local_sizes", ((1, 3),)))
    for name, value in wrong:
        bad = in_place(job, True)
        setattr(bad, name, value)
        error = job.raises(sealpoint.InvalidArgumentError, lambda bad=bad: sp.save({"t": bad}, job.path("bad")))
        assert error.tensor == "t", error


def case_tied_weights_are_stored_once(job):
    models = [fully_shard(Tied(seed), mesh=init_device_mesh("cpu", (job.size,))) for seed in (1, 2)]
    assert models[0].head.weight is models[0].embedding.weight
    sp.save({"model": models[0].state_dict()}, job.path("c"))
    with sealpoint.open(job.path("c")) as checkpoint:
        assert list(checkpoint) == ["model.embedding.weight"]
    sp.load({"model": models[1].state_dict()}, job.path("c"))
    expected = whole(models[0].head.weight)
    assert torch.equal(whole(models[1].head.weight), expected)
    apart = {"model": {f"{name}.weight": torch.zeros(11, 3) for name in ("embedding", "head")}}
    sp.load(apart, job.path("c"))
    assert all(torch.equal(tensor, expected) for tensor in apart["model"].values())
    full = sp.load_full(job.path("c"))["model"]
    assert full["head.weight"] is full["embedding.weight"]


def case_ranks_see_other_aliases(job):
    """Then each place is stored, and each rank reads both."""
    content = torch.arange(6.0)
    state = {"a": content, "b": content if job.rank == 1 else content.clone()}
    sp.save(state, job.path("c"))
    with sealpoint.open(job.path("c")) as checkpoint:
        assert list(checkpoint) == ["a", "b"]
    one = torch.zeros(6)
    sp.load({"a": one, "b": one if job.rank != 1 else torch.zeros(6)}, job.path("c"))
    assert torch.equal(one, content)
    sp.save({"a": content, "b": -content}, job.path("differ"))
    one = torch.zeros(6)
    other = one if job.rank == 2 else torch.zeros(6)
    error = job.raises(sealpoint.MismatchError, lambda: sp.load({"a": one, "b": other}, job.path("differ")))
    assert (error.tensor, error.rank) == ("b", 2), error
    assert "one tensor here and at a" in error.message, error
    values = sp.per_rank(content) if job.rank == 0 else sp.per_rank(-content)
    sp.save({"a": content, "own": values}, job.path("own"))
    assert torch.equal(sp.load_full(job.path("own"))["own"][1], -content)


def case_what_dead_saves_left_is_removed(job):
    with sp.Checkpointer(job.path("run"), wait=True) as checkpoints:
        checkpoints.save(1, {"t": torch.ones(3)})
        assert checkpoints.clean() == 0
        attempt = job.path("run") / "step-000000000002-0123abcd"
        if job.rank == 0:
            attempt.mkdir()
            writer = sealpoint.BlobWriter(attempt, step=2)
            writer.add("t", torch.ones(1000).numpy())
            writer.finish()
        dist.barrier()
        assert job.all_agree(checkpoints.clean()) >= 4000
        assert not list(attempt.glob("*.blob"))
        checkpoints.clean()  # now without the marker that kept a slow writer out
        assert not attempt.exists()
        assert checkpoints.resume({"t": torch.zeros(3)}) == 1


def case_fsdp1(job):
    from torch.distributed.fsdp import FullyShardedDataParallel, ShardedStateDictConfig, StateDictType

    torch.manual_seed(3)
    plain = torch.nn.Linear(7, 5)
    expected = {name: tensor.clone() for name, tensor in plain.state_dict().items()}
    model = FullyShardedDataParallel(plain, device_id=torch.device("cpu"))
    with FullyShardedDataParallel.state_dict_type(model, StateDictType.SHARDED_STATE_DICT, ShardedStateDictConfig()):
        sp.save({"model": model.state_dict()}, job.path("c"))
        state = {"model": model.state_dict()}
        for value in state["model"].values():
            for shard in value.local_shards():
                shard.tensor.zero_()
        sp.load(state, job.path("c"))
    if job.rank == 0:
        assert_same(sp.load_full(job.path("c"))["model"], expected)


def case_the_tree_is_json(job):
    sp.save({"a": {"b": [1, (2, 3.5)]}, 4: torch.ones(1)}, job.path("c"))
    with sealpoint.open(job.path("c")) as checkpoint:
        tree = json.loads(checkpoint.objects["sealpoint.tree"])
        assert checkpoint.objects.media_type("sealpoint.tree") == "application/vnd.sealpoint.tree+json"
        assert list(checkpoint) == ["4"]
    assert tree == {"$": "dict", "items": [["a", {"b": [1, {"$": "tuple", "items": [2, 3.5]}]}],
                                           [4, {"$": "tensor", "name": "4"}]]}
    assert pathlib.Path(job.path("c")).exists()


def case_messages_arrive(job):
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


def case_small_messages_need_one_exchange(job):
    comm = sp.TorchCommunicator()
    exchanges, run = [], comm._run
    comm._run = lambda options, begin: (exchanges.append(options), run(options, begin))[1]
    for message in (b"", b"x" * 1000):
        for call in (lambda: comm.broadcast(message if comm.rank == 0 else None, 0), lambda: comm.gather(message, 0),
                     lambda: comm.all_gather(message), lambda: comm.all_to_all([message] * comm.size)):
            exchanges.clear()
            call()
            assert len(exchanges) == 1


def case_a_rank_that_is_late_is_an_error(job):
    comm = sp.TorchCommunicator()
    comm.set_deadline(1)
    comm.barrier()
    started = time.monotonic()
    if job.rank == 1:
        time.sleep(3)
    try:
        comm.all_reduce_max([1])
    except (sealpoint.TimeoutError, sealpoint.CommError):
        assert job.rank == 1 or time.monotonic() - started < 2.5
    else:
        assert job.rank == 1


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


def case_losses_go_on_on_fewer_ranks(job):
    """Objects that were saved by all, in new objects of two ranks and of one: losses are those of the job that went on.

    The last case, since torch keeps meshes of groups that are gone.
    """
    def losses(training):
        return [training.loss_of(seed) for seed in range(4)]

    expected = {}
    for mode in ("fsdp", "hsdp"):
        source = Training(mode, job.size, seed=1)
        source.optimizer.param_groups[0]["lr"] = 0.05
        losses(source)
        sp.save({"model": source.model, "optimizer": source.optimizer}, job.path(mode))
        expected[mode] = losses(source)

    def go_on(mode, size, group):
        for saved, first in expected.items():
            resumed = Training(mode, size, seed=2)
            resumed.optimizer = torch.optim.AdamW(resumed.model.parameters(), lr=1e-2)
            state = {"model": resumed.model, "optimizer": resumed.optimizer}
            sp.load(state, job.path(saved), process_group=group)
            assert resumed.optimizer.param_groups[0]["lr"] == 0.05
            torch.testing.assert_close(torch.tensor(losses(resumed)), torch.tensor(first), rtol=1e-5, atol=1e-5)

    def on_fewer():
        go_on("fsdp", 2, None)
        alone = dist.new_group([0])
        if job.rank == 0:
            go_on("plain", 1, alone)

    job.with_ranks(2, on_fewer)
