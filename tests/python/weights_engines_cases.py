# SPDX-License-Identifier: Apache-2.0
"""Four tensor-parallel ranks of engines that take versions of weights; run by test_weights_engines.py.

The engines are stand-ins: see engine_interfaces.py.
"""

import asyncio
import time
from unittest import mock

import engine_interfaces
import sealpoint
import torch
import torch.distributed as dist
from engine_layers import Layers, whole_state
from sealpoint.weights import Follower, Publisher, _engine, publish, sglang, vllm

engine_interfaces.install()
from sealpoint.weights import verl  # noqa: E402

vllm.register()


def state_of(version):
    """With the dtypes of the engine, so that all of it can be compared."""
    state = {name: tensor + version for name, tensor in whole_state().items()}
    return {**state, "norm": state["norm"].bfloat16()}


def has(model, version):
    """Whether each parameter is what the engine's own loader makes of this version."""
    expected = Layers(model.rank, model.size)
    expected.load_weights(state_of(version).items())
    return all(torch.equal(*pair) for pair in zip(model.parameters(), expected.parameters(), strict=True))


def vllm_engine(job, **init_info):
    model = Layers(job.rank, job.size)
    return model, engine_interfaces.vllm_worker(model, place=str(job.path("p")), host_folder=str(job.path("host")), **init_info)


def update(engine, version):
    engine.start_weight_update()
    engine.update_weights({"version": version})
    engine.finish_weight_update()


def case_vllm_takes_versions(job):
    model, engine = vllm_engine(job)
    for version in (1, 2, 3):
        publish(state_of(version), job.path("p"), version)
        update(engine, version)
        assert has(model, version) and model.reloads == ["begun", "done"] * version
    update(engine, 2)
    assert has(model, 2), "an older one"
    engine.shutdown()
    assert not engine.supports_draft_weight_update


def case_vllm_renames(job):
    publish({"model": state_of(1), "optimizer": torch.ones(9)}, job.path("p"), 1)
    model, engine = vllm_engine(job, rename={"model.*": "*"})
    update(engine, 1)
    assert has(model, 1) and "optimizer" not in engine._receiver.follower.tensors()


def case_a_rank_cannot_fetch(job):
    """No rank changes its model; the next try succeeds."""
    for version in (1, 3):
        publish(state_of(version), job.path("p"), version)
    model, engine = vllm_engine(job)
    if job.rank == 2:  # the leader
        assert engine._receiver.follower._host.lead()
    dist.barrier()
    update(engine, 1)
    failing = sealpoint.IoError("the network is down") if job.rank == 2 else None
    with mock.patch.object(Follower, "torch_tensors", side_effect=AssertionError("not reached")):
        real = Follower.update
        with mock.patch.object(Follower, "update", lambda *args, **more: fail(failing) or real(*args, **more)):
            error = job.raises(sealpoint.IoError, lambda: update(engine, 3))
    assert "rank 2" in str(error) and has(model, 1) and model.reloads == ["begun", "done"]
    job.raises(sealpoint.NotFoundError, lambda: update(engine, 9))
    update(engine, 3)
    assert has(model, 3)


def fail(error):
    if error is not None:
        raise error


def case_a_rank_cannot_load(job):
    """All ranks get back the version that they had."""
    for version in (1, 2):
        publish(state_of(version), job.path("p"), version)
    broken = []
    model, engine = vllm_engine(job)
    model.odd = lambda model, name, loaded: fail(broken.pop() if broken and name == "q" else None)
    broken += [RuntimeError("no memory")] * (job.rank == 1)
    error = job.raises(sealpoint.InvalidArgumentError, lambda: update(engine, 1))
    assert "no memory" in str(error) and "no earlier version" in error.__notes__[0]
    update(engine, 1)
    broken += [RuntimeError("no memory")] * (job.rank == 1)
    error = job.raises(sealpoint.InvalidArgumentError, lambda: update(engine, 2))
    assert "RuntimeError: no memory" in str(error) and has(model, 1) and model.reloads[-4:] == ["begun", "done"] * 2


def case_what_the_engine_has_is_proven(job):
    """A loader of one rank stores a wrong element: an error on all ranks, which get back the version that they had."""
    for version in (1, 2):
        publish(state_of(version), job.path("p"), version)
    wrong = []
    model, engine = vllm_engine(job)
    load = model.load_weights

    def load_wrongly(weights):
        load(weights)
        if wrong and job.rank == 3:
            model.qkv.data[-1, 7] += wrong.pop()

    model.load_weights = load_wrongly
    update(engine, 1)
    wrong.append(1)
    assert job.raises(sealpoint.CorruptError, lambda: update(engine, 2)).tensor == "v"
    assert has(model, 1)
    loose, unproven = vllm_engine(job, verify="off")
    with mock.patch.object(_engine, "verify", side_effect=AssertionError("not reached")):
        update(unproven, 2)
    assert has(loose, 2)
    publish(state_of(3), job.path("q"), 3, fingerprints=False)
    unproven = engine_interfaces.vllm_worker(loose, place=str(job.path("q")), host_folder=str(job.path("host")))
    assert "no fingerprint" in str(job.raises(sealpoint.InvalidArgumentError, lambda: update(unproven, 3))) and has(loose, 2)


def case_sglang_takes_versions(job):
    model = Layers(job.rank, job.size)
    for version in (1, 2):
        publish(state_of(version), job.path("p"), version)
        sglang.load_weights(model, sglang.message(job.path("p"), version, host_folder=str(job.path("host"))))
        assert has(model, version)
    dist.barrier()
    publish({"of": state_of(3)}, job.path("q"), 3)
    sglang.load_weights(model, sglang.message(job.path("q"), 3, rename={"of.*": "*"}, host_folder=str(job.path("host"))))
    assert has(model, 3), "another place"


def case_verl_publishes_and_receives(job):
    """Ranks 0 and 1 train; ranks 2 and 3 are rollout workers, which wait for the trainers and take no version of an earlier run."""
    pairs = [dist.new_group([0, 1]), dist.new_group([2, 3])]
    trains, group, place = job.rank < 2, pairs[job.rank // 2], str(job.path("p"))
    engine = engine_interfaces.CheckpointEngineRegistry.new(
        "sealpoint", bucket_size=1 << 20, is_master=job.rank == 0, place=place, host_folder=str(job.path("host")),
        process_group=group, timeout=50.0)  # fmt: skip
    for run in range(2):
        for version in (5, 6):
            metadata = [None] * job.size
            dist.all_gather_object(metadata, engine.prepare())
            topology = type(engine).build_topology(2, 2, metadata)[0 if trains else 1]
            if trains:
                time.sleep(0.3)
            state = state_of(version + 10 * run)
            found = asyncio.run(engine_interfaces.verl_update(engine, iter(state.items()) if trains else None,
                                                              topology["after"][job.rank % 2], version))  # fmt: skip
            if trains:
                assert found["sealpoint/bytes_written"] > 0
            else:
                assert found.keys() == state.keys() and all(torch.equal(found[name], state[name]) for name in state)
            dist.barrier()
        if trains:
            engine._publisher = Publisher(place, process_group=group)  # a trainer that was restarted
    if not trains:
        unproven = sealpoint.CorruptError("other bytes") if engine._receiver.follower.is_leader else None
        with mock.patch.object(Follower, "verify", lambda self: fail(unproven)):
            asyncio.run(refused(engine, 6, sealpoint.CorruptError))
        asyncio.run(refused(engine, None, sealpoint.InvalidArgumentError))
    dist.barrier()


async def refused(engine, step, kind):
    engine.init_process_group(after=-1)
    try:
        async for _ in engine.receive_weights(global_steps=step):
            raise AssertionError("weights that are not proven")
    except kind:
        return
    raise AssertionError(f"no {kind.__name__}")


def alone_the_shares_of_trainers(folder):
    """Each trainer holds as many bytes as the others, whatever the order."""
    held = {}
    for rank in range(2):
        engine = verl.SealpointCheckpointEngine(0, place=str(folder / "p"))
        publisher = mock.Mock(**{"publish.return_value": mock.Mock(bytes_written=1, seconds=1.0)})
        engine._publisher = publisher
        with mock.patch.object(verl, "session_of", return_value=mock.Mock(size=2, rank=rank)):
            asyncio.run(engine.send_weights(iter(whole_state().items()), global_steps=1))
        (own, _), _ = publisher.publish.call_args
        assert held.keys().isdisjoint(own)
        held.update(own)
        assert 0.4 < sum(t.nbytes for t in own.values()) / sum(t.nbytes for t in whole_state().values()) < 0.6
    assert held.keys() == whole_state().keys()
