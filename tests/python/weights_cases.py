# SPDX-License-Identifier: Apache-2.0
"""What four ranks of a trainer publish, and followers take; run by test_weights_torch.py."""

import contextlib
import os
import pathlib

import ranks
import sealpoint
import sealpoint.torch as sp
import torch
import torch.distributed as dist
from sealpoint import fingerprint
from sealpoint.weights import Follower, Publisher, publish
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor
from torch_states import MODES, Model, Training, parallel, whole


@contextlib.contextmanager
def follower_on_first(job, place):
    """One process follows; the other ranks wait."""
    if job.rank > 0:
        yield None
    else:
        with Follower(place, host_folder=job.path("host")) as follower:
            yield follower


def check(job, follower, state, version):
    """The follower gets exactly the weights of the trainer."""
    expected = {name: whole(tensor) for name, tensor in state.items()}
    computed = sp.fingerprints(state)
    if job.rank == 0:
        update = follower.update(version)
        found = follower.torch_tensors()
        assert found.keys() == expected.keys()
        for name, tensor in expected.items():
            assert found[name].dtype == tensor.dtype and torch.equal(found[name], tensor), name
        assert follower.verify() == len(expected)
        assert fingerprint.differences(follower.fingerprints(), computed) == []
        return update
    return None


def case_each_layout_is_published(job, at):
    for mode in MODES:
        training = Training(mode, job.size, seed=3)
        publisher = Publisher(at(mode), full_every=3)
        with follower_on_first(job, at(mode)) as follower:
            for version in range(1, 6):
                training.step()
                state = training.model.state_dict()
                found = publisher.publish(state, version)
                assert job.all_agree((found.version, found.attempt, found.base, found.bytes_written))[0] == version
                check(job, follower, state, version)


def case_two_publishers(job):
    state = {"w": distribute_tensor(torch.arange(12.0), init_device_mesh("cpu", (job.size,)), [Shard(0)])}
    first, second = (Publisher(job.path("p")) for _ in range(2))
    first.publish(state, 1)
    state["w"].to_local().add_(1)
    assert second.publish(state, 2).base is None, "one that begins publishes a full version"
    error = job.raises(sealpoint.AlreadyExistsError, lambda: first.publish(state, 2))
    assert "another job saved step 2" in str(error)
    dist.barrier()
    assert [entry.step for entry in sealpoint.Series(job.path("p")).list()] == [2, 1]
    state["w"].to_local().add_(1)
    assert second.publish(state, 3).base == 2


def case_a_publisher_is_restarted(job):
    mesh = init_device_mesh("cpu", (job.size,))
    with follower_on_first(job, job.path("p")) as follower:
        for start in (0, 3):
            publisher = Publisher(job.path("p"), keep=3)
            for version in range(start, start + 3):
                state = {"w": distribute_tensor(torch.full((9, 3), float(version)), mesh, [Shard(0)])}
                found = publisher.publish(state, version)
                assert found.base == (None if version == start else version - 1)
                check(job, follower, state, version)
    dist.barrier()
    entries = sealpoint.Series(job.path("p")).list()
    assert [entry.sequence for entry in entries][:3] == [6, 5, 4]


def case_other_tensors_make_a_full_version(job):
    mesh = init_device_mesh("cpu", (job.size,))
    sharded = distribute_tensor(torch.ones(8, 4), mesh, [Shard(0)])
    states = [{"w": sharded}, {"w": sharded}, {"w": sharded, "v": torch.ones(3)}, {"w": distribute_tensor(torch.ones(8, 4), mesh,
              [Shard(1)]), "v": torch.ones(3)}, {"w": sharded.to(torch.bfloat16), "e": torch.zeros(0, 2), "t": torch.ones(4, 6).t(),
              "c": torch.ones(2, dtype=torch.complex64).conj()}]  # fmt: skip
    publisher = Publisher(job.path("p"), full_every=10)
    with follower_on_first(job, job.path("p")) as follower:
        for version, state in enumerate([*states, states[-1]]):
            with torch.no_grad():
                state["w"].to_local().add_(1)
            found = publisher.publish(state, version)
            assert found.base == (version - 1 if version in (1, 5) else None), version
            check(job, follower, state, version)


def case_a_failed_version_does_not_exist(job):
    """And the next is full."""
    mesh = init_device_mesh("cpu", (job.size,))
    good = {"w": distribute_tensor(torch.ones(8, 4), mesh, [Shard(0)])}
    publisher = Publisher(job.path("p"), compare_replicas=True)
    publisher.publish(good, 1)
    bad = {**good, "r": torch.full((2,), float(job.rank))}
    error = job.raises(sealpoint.InvalidArgumentError, lambda: publisher.publish(bad, 2))
    assert "r" in str(error)
    dist.barrier()
    assert [e.step for e in sealpoint.Series(job.path("p")).list() if e.verdict == "committed"] == [1]
    assert publisher.publish(good, 3).base is None
    good["w"].to_local().add_(1)
    assert publisher.publish(good, 4).base == 3
    job.raises(sealpoint.InvalidArgumentError, lambda: publisher.publish(good, -1))
    count = 66 if job.rank == 1 else 10
    job.raises(sealpoint.InvalidArgumentError, lambda: Publisher(job.path("p"), full_every=count).publish(good, 9))


def case_nothing_changes(job):
    """Neither on one rank, nor at all."""
    state = {f"own{job.rank}": torch.ones(5), "shared": torch.ones(3)}
    publisher = Publisher(job.path("p"))
    for version in range(4):
        state[f"own{job.rank}"].add_(float(job.rank == 0 and version < 3))
        publisher.publish(state, version)
    dist.barrier()
    if job.rank == 0:
        with Follower(job.path("p"), host_folder=job.path("host")) as follower:
            assert follower.update().version == 3 and follower.verify() == 1 + job.size
            assert follower.tensors()["own0"].tolist() == [4.0] * 5 and follower.tensors()["own1"].tolist() == [1.0] * 5


def case_the_base_is_gone(job):
    state = {"w": torch.ones(4, 4)}
    publisher = Publisher(job.path("p"))
    publisher.publish(state, 1)
    if job.rank == 0:
        sealpoint._sealpoint.remove_path(str(job.path("p")))
    dist.barrier()
    assert publisher.publish(state, 2).base is None
    with follower_on_first(job, job.path("p")) as follower:
        check(job, follower, state, 2)


def case_buffers_of_the_first_rank(job):
    """What DistributedDataParallel lets differ is that of the first rank."""
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.BatchNorm1d(3))
    state = {"model": torch.nn.parallel.DistributedDataParallel(model)}
    publisher = Publisher(job.path("p"))
    for version in (1, 2):
        model[1].running_mean.fill_(job.rank + version)
        found = publisher.publish(state, version)
        assert version == 1 or found.base == 1
    if job.rank == 0:
        with Follower(job.path("p"), host_folder=job.path("host")) as follower:
            follower.update()
            (name,) = (name for name in follower.tensors() if name.endswith("running_mean"))
            assert follower.tensors()[name].tolist() == [2.0] * 3


def case_old_versions_are_deleted(job):
    state = {"w": torch.ones(4, 4)}
    for version in range(8):
        publish({"w": state["w"].add_(1)}, job.path("p"), version, full_every=3, keep=2)
    dist.barrier()
    left = [entry.step for entry in sealpoint.Series(job.path("p")).list()]
    assert left[:2] == [7, 6] and 2 not in left, "version 2 is nobody's base"
    with follower_on_first(job, job.path("p")) as follower:
        check(job, follower, state, 7)


def changed(weights, share, seed):
    """Weights of which this share has changed in the last bits, as by a step of reinforcement learning."""
    random = torch.Generator().manual_seed(seed)
    mask = (torch.rand(weights.shape, generator=random) < share).to(torch.int16)
    return (weights.view(torch.int16) ^ mask).view(torch.bfloat16)


def alone_followers_read_the_shortest_chain(folder):
    place, weights = folder / "p", torch.randn(1 << 19, generator=torch.Generator().manual_seed(1)).bfloat16()
    publisher = Publisher(place, full_every=5)
    with Follower(place, host_folder=folder / "a") as each, Follower(place, host_folder=folder / "b") as some:
        for version in range(12):
            weights = changed(weights, 0.01, version)
            state = {"w": weights, "same": torch.ones(9)}
            found = publisher.publish(state, version)
            assert found.base == (version - 1 if version % 5 else None), version
            assert found.bytes_written < weights.nbytes / 20 or found.base is None
            update = each.update()
            assert update.chain == [version] and update.changed == (["same", "w"] if version == 0 else ["w"])
            assert update.bytes_fetched < weights.nbytes / 20 or found.base is None
            assert torch.equal(each.torch_tensors()["w"].view(torch.int16), weights.view(torch.int16)) and each.verify() == 2
            if version in (2, 4, 7):
                update = some.update()
                # In the middle of a chain, on its way, behind the next full version.
                assert update.chain == {2: [2], 4: [3, 4], 7: [7]}[version], update
                assert torch.equal(some.torch_tensors()["w"].view(torch.int16), weights.view(torch.int16))
        assert some.update(9).chain == [8, 9] and some.update(6).chain == [6] and some.verify() == 2


def alone_a_damaged_delta_is_not_followed(folder):
    place, weights = folder / "p", torch.randn(1 << 19, generator=torch.Generator().manual_seed(1)).bfloat16()
    publisher = Publisher(place, full_every=4)
    with Follower(place, host_folder=folder / "host") as follower, Follower(place, host_folder=folder / "late") as late:
        for version in range(5):
            directory = publisher.publish({"w": changed(weights, 0.01, version)}, version).directory
            if version == 2:
                (blob,) = pathlib.Path(directory).glob("*.blob")
                content = bytearray(blob.read_bytes())
                content[5000] ^= 1
                blob.write_bytes(content)
            for one in (follower, late)[: 1 + (version > 1)]:
                try:
                    assert one.update().version == version and version not in (2, 3)
                except sealpoint.CorruptError as error:
                    assert version in (2, 3) and error.rule.startswith("R-"), error
        assert follower.version == late.version == 4
        assert torch.equal(follower.torch_tensors()["w"].view(torch.int16), changed(weights, 0.01, 4).view(torch.int16))


def alone_without_ranks(folder):
    job = ranks.Job(0, 1, folder)
    model = parallel(Model(), "plain", 1).to(torch.bfloat16)
    with Follower(job.path("p"), host_folder=job.path("host")) as follower:
        for version in range(5):
            with torch.no_grad():
                for parameter in model.parameters():
                    parameter.mul_(1.01)
            found = publish(model.state_dict(), job.path("p"), version, full_every=3)
            assert found.bytes_total > 0 and os.path.isdir(found.directory)
            check(job, follower, model.state_dict(), version)
    for options in ({"full_every": 0}, {"keep": 1}, {"codec": "lz4"}):
        try:
            Publisher(job.path("p"), **options)
        except sealpoint.InvalidArgumentError:
            continue
        raise AssertionError(options)
    try:
        Publisher(job.path("p"), staged="x")
    except TypeError as error:
        assert "no option 'staged'" in str(error)
