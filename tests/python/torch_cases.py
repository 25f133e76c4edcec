# SPDX-License-Identifier: Apache-2.0
"""What four ranks do together, the rest; run by test_torch_ranks_full.py."""

import json
import pathlib
import time

import sealpoint
import sealpoint.torch as sp
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Shard, distribute_tensor
from torch_basic_cases import sentinel_finds_flips
from torch_states import MODES, Model, Tied, Training, assert_same, in_place, whole


def case_a_sentinel_names_many_flips(job):
    sentinel_finds_flips(job, 300, 150)


def case_ranks_of_several_hosts_share_chunks(job):
    from sealpoint.torch._session import session_of

    content = torch.arange(10_000.0)
    sp.save({"t": content}, job.path("c"))
    session = session_of(None)
    own = session.host
    session.host = session.communicator.host = f"host {job.rank // 2}"
    try:
        back = {"t": torch.zeros(10_000)}
        received = torch.tensor([sp.load(back, job.path("c")).bytes_received])
        dist.all_reduce(received)
        assert received.item() == (job.size - 1) * content.nbytes, "each byte came to each rank once"
        assert torch.equal(back["t"], content)
        assert sp.load(back, job.path("c"), share_chunks=False).bytes_received == 0
    finally:
        session.host = session.communicator.host = own


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
    for number, child in optimizer.state_dict()["state"].items():
        found.update({f"{number}.{key}": value for key, value in child.items()})
    assert_same(alone.tensors(), found)
    parallel = torch.nn.parallel.DistributedDataParallel(plain)
    error = job.raises(sealpoint.MismatchError, lambda: sp.load({"model": parallel, "optimizer": optimizer}, back))
    assert "of the state's names have a part 'module'" in error.message, error
    sp.load({"model": parallel.module, "optimizer": torch.optim.AdamW(parallel.parameters())}, back)


class MuonAndAdamW:
    """As trainings have them: matrices are one's, all else is the other's."""

    def __init__(self, model):
        kinds = [[weight for weight in model.parameters() if (weight.dim() == 2) is is_matrix] for is_matrix in (True, False)]
        self.both = [torch.optim.Muon(kinds[0], lr=1e-2), torch.optim.AdamW(kinds[1], lr=1e-2)]

    def step(self):
        for item in self.both:
            item.step()

    def zero_grad(self):
        for item in self.both:
            item.zero_grad()

    def tensors(self):
        return {f"{number}.{at}.{key}": whole(value) for number, item in enumerate(self.both)
                for at, entries in item.state_dict()["state"].items() for key, value in entries.items()}


def case_muon_beside_adamw_in_any_layout(job):
    """Its state has the shape of the parameter, on the parameter's mesh; what a step makes of it needs whole matrices."""
    def new(mode, seed, size=job.size):
        made = Training(mode, size, seed)
        made.optimizer = MuonAndAdamW(made.model)
        return made, {"model": made.model, "optimizers": made.optimizer.both}

    for saved_on in ("fsdp", "hsdp", "tp"):
        source, state = new(saved_on, 1)
        first = [source.loss_of(seed) for seed in range(3)]
        assert first[0] != first[2]
        state["optimizers"][0].param_groups[0]["lr"] = 0.05
        sp.save(state, job.path(saved_on))
        expected = source.optimizer.tensors(), {name: whole(value) for name, value in source.model.state_dict().items()}
        assert sum("momentum_buffer" in name for name in expected[0]) == 3 and any("exp_avg" in name for name in expected[0])
        losses = [source.loss_of(seed) for seed in range(3, 6)]
        for mode in MODES:
            other, state = new(mode, 2)
            sp.load(state, job.path(saved_on))
            assert_same(expected[0], other.optimizer.tensors())
            assert_same(expected[1], {name: whole(value) for name, value in other.model.state_dict().items()})
            muon = other.optimizer.both[0]
            assert muon.param_groups[0]["lr"] == 0.05
            for parameter, entries in muon.state.items():
                assert entries["momentum_buffer"].placements == parameter.placements, mode
            found = [other.loss_of(seed) for seed in range(3, 6)]
            assert found == losses or mode != saved_on
            torch.testing.assert_close(torch.tensor(found), torch.tensor(losses), rtol=1e-3, atol=1e-3)

    def on_fewer():
        other, state = new("fsdp", 3, 2)
        sp.load(state, job.path("tp"))
        assert_same(expected[0], other.optimizer.tensors())

    job.with_ranks(2, on_fewer)


def case_state_dicts_without_moments_are_refused(job):
    source = Training("fsdp", job.size, seed=1)
    sp.save(source.state(), job.path("c"))
    other = Training("tp", job.size, seed=2)
    if job.rank == 2:
        other.optimizer = torch.optim.AdamW(other.model.parameters())
    partial = sp.Contract.partial()
    error = job.raises(sealpoint.MismatchError, lambda: sp.load(other.state(), job.path("c"), contract=partial))
    assert "pass the optimizer itself" in error.message and error.rank == 2, error


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
        for region, other in zip(value.regions, expected[name].regions, strict=True):
            assert torch.equal(region.tensor, other.tensor), name
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
    assert "the same tensor here and at a" in error.message, error
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


def case_small_messages_need_one_exchange(job):
    comm = sp.TorchCommunicator()
    exchanges, do = [], comm._do
    comm._do = lambda exchange: (exchanges.append(exchange), do(exchange))[1]
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


def case_losses_go_on_on_fewer_ranks(job):
    """Objects that were saved by all, in new objects of two ranks and of one: losses are those of the job that went on."""
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
