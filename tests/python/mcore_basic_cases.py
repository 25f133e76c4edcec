# SPDX-License-Identifier: Apache-2.0
"""Megatron-core on four ranks, the part that runs with each commit; run by test_megatron.py."""

import argparse
import contextlib
import json
import os
import sys
import types
from unittest import mock

import mcore_shim

mcore_shim.install()

import docstring_examples  # noqa: E402
import sealpoint  # noqa: E402
import sealpoint.megatron  # noqa: E402
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from megatron.core import dist_checkpointing as dc  # noqa: E402
from megatron.core.dist_checkpointing import LocalNonpersistentObject, ShardedObject, ShardedTensor  # noqa: E402
from megatron.core.dist_checkpointing.mapping import ShardedTensorFactory  # noqa: E402
from megatron.core.dist_checkpointing.validation import StrictHandling  # noqa: E402
from megatron.core.transformer.enums import AttnBackend  # noqa: E402
from sealpoint import _directories, _sealpoint  # noqa: E402
from sealpoint._ranks import promotions  # noqa: E402
from store_paths import names  # noqa: E402

mcore_shim.fork_helpers()
HAS_REGISTRY = hasattr(dc.serialization, "get_default_strategy")
sealpoint.megatron.enable()
OPTIONS = {} if HAS_REGISTRY else {"async_strategy": "mcore"}


def numbers(*shape, base=0.0):
    return torch.arange(float(torch.Size(shape).numel())).reshape(shape) + base


def state(rank, tp, dp, *, empty=False, vocabulary=3):
    """As Megatron makes them, on ``tp`` times ``dp`` ranks: rank 1 is the second tensor-parallel one."""
    t, d = rank % tp, rank // tp
    whole = {"w": numbers(6, 4), "norm": torch.ones(5), "b": numbers(8).bfloat16(), "gated": numbers(8, 2),
             "layers": numbers(2, 4, 4, base=1000), "vocabulary": numbers(tp * vocabulary, 2), "odd": numbers(7)}
    if empty:
        whole = {name: torch.full_like(tensor, -1) for name, tensor in whole.items()}
    replica = (0, 0, d)

    def split(key, data, replica_id, _):
        first, second = torch.chunk(data, 2, 0)
        return {"w": ShardedTensor.from_rank_offsets(key, first, (0, t, 2 * tp), replica_id=replica_id),
                "v": ShardedTensor.from_rank_offsets(key, second, (0, tp + t, 2 * tp), replica_id=replica_id)}

    def merge(parts):
        return torch.cat([parts["w"], parts["v"]])

    gated = torch.cat([half.chunk(tp)[t] for half in whole["gated"].chunk(2)])
    odd = whole["odd"][: 3 if t == 0 else 7][0 if t == 0 else 3 :] if tp == 2 else whole["odd"]
    found = {
        "w": ShardedTensor.from_rank_offsets("decoder.w", whole["w"].chunk(tp)[t], (0, t, tp), replica_id=replica),
        "norm": ShardedTensor.from_rank_offsets("decoder.norm", whole["norm"], replica_id=(0, t, d)),
        "layers": [ShardedTensor.from_rank_offsets("decoder.layers.w", whole["layers"][layer].chunk(tp, 1)[t].clone(),
                                                   (0, layer, 2), (2, t, tp), replica_id=replica, prepend_axis_num=1)
                   for layer in range(2)],
        "vocabulary": ShardedTensor.from_rank_offsets("embedding.w", whole["vocabulary"].chunk(tp)[t], (0, t, tp),
                                                      replica_id=replica, allow_shape_mismatch=True),
        "b": ShardedTensor.from_rank_offsets("b", whole["b"].chunk(tp)[t], (0, t, tp), replica_id=replica),
        "odd": ShardedTensor("odd", odd, odd.dtype, tuple(odd.shape), (7,), (3 * t,), None, replica),
        "gated": ShardedTensorFactory("decoder.gated", gated, split, merge, replica_id=replica),
        "extra": ShardedObject("extra", None if empty else {"amax": torch.ones(2) * t, "t": t, "none": None}, (tp,), (t,),
                               replica_id=replica),
        "rng": ShardedObject("rng", None if empty else [{"torch": torch.get_rng_state(), "rank": rank}], (dp, tp), (d, t)),
        "own": LocalNonpersistentObject({"rank": rank}),
        0: {"number": ShardedTensor.from_rank_offsets("scalar", torch.tensor(-1.0 if empty else 3.5), replica_id=rank)},
    }
    if not empty:
        found["iteration"] = 7
        found["args"] = argparse.Namespace(tp=tp, dtype=torch.bfloat16, backend=AttnBackend.auto, betas=(0.9, 0.95))
        found["opt"] = {"param_groups": [{"lr": 0.1, "step": 3}]}
    return found


def expected(rank, tp, dp, **options):
    """What a load returns."""
    def one(value):
        if isinstance(value, dict):
            return {key: one(inner) for key, inner in value.items()}
        if isinstance(value, list) and value and isinstance(value[0], ShardedTensor):
            return [one(inner) for inner in value]
        return value.obj if isinstance(value, LocalNonpersistentObject) else getattr(value, "data", value)

    return one(state(rank, tp, dp, **options))


def same(a, b):
    if isinstance(a, torch.Tensor):
        return isinstance(b, torch.Tensor) and a.dtype == b.dtype and torch.equal(a, b)
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b


def folder(job, name="iter_0000007"):
    path = job.at(name)
    if job.rank == 0:
        path.mkdir(parents=True, exist_ok=True)
    dist.barrier()
    return str(path)


def check(job, loaded, tp=2, dp=2, but=()):
    want = expected(job.rank, tp, dp)
    for key in want:
        if key not in but:
            assert same(loaded[key], want[key]), (key, loaded[key], want[key])


def check_files(path):
    assert "COMMIT" in names(path)
    assert [name for name in names(path) if name.endswith((".distcp", ".metadata", ".pt"))] == []
    assert json.loads(_sealpoint.read_file(f"{path}/metadata.json", 1000))["sharded_backend"] == "sealpoint"


def case_states_come_back(job, at):
    path = folder(job)
    dc.save(state(job.rank, 2, 2), path, content_metadata={"name": "test"})
    check_files(path)
    loaded, missing, unexpected = dc.load(state(job.rank, 2, 2, empty=True), path, strict=StrictHandling.RETURN_ALL)
    check(job, loaded)
    assert (missing, unexpected) == (set(), set())
    assert dc.load_content_metadata(path)["name"] == "test"
    assert list(dc.load(state(job.rank, 2, 2, empty=True), path, strict=StrictHandling.RAISE_ALL))
    plain = dc.load_plain_tensors(path)
    assert torch.equal(plain["decoder.w"], numbers(6, 4))
    assert plain["b"].dtype == torch.bfloat16
    if job.rank == 0:
        assert sealpoint.verify(path).ok
        with sealpoint.open(path) as checkpoint:
            assert checkpoint.step == 7
            stored = {name: tensor.nbytes for name, tensor in checkpoint.items()}
            assert stored["decoder.w"] == 6 * 4 * 4
            assert sum(stored.values()) == sum(tensor.nbytes for tensor in checkpoint.values())
        plain = sealpoint.torch.load_full(path)
        assert torch.equal(plain["decoder.layers.w"], numbers(2, 4, 4, base=1000))
        assert plain["common_state/shard_0_1"]["iteration"] == 7


def case_another_number_of_ranks_loads(job, at):
    path = folder(job)
    dc.save(state(job.rank, 2, 2), path)
    back = state(job.rank, 1, 4, empty=True, vocabulary=6)
    del back["rng"], back["extra"]
    loaded = dc.load(back, path)
    want = expected(job.rank, 1, 4, vocabulary=6)
    for key in ("w", "norm", "layers", "vocabulary", "b", "odd", "gated", 0):
        assert same(loaded[key], want[key]), (key, loaded[key], want[key])


def case_keys_that_differ(job):
    path = folder(job)
    dc.save(state(job.rank, 2, 2), path)

    def other():
        back = state(job.rank, 2, 2, empty=True)
        del back["norm"]
        back["new"] = ShardedTensor.from_rank_offsets("new", torch.zeros(2), replica_id=job.rank)
        return back

    _, missing, unexpected = dc.load(other(), path, strict=StrictHandling.RETURN_ALL)
    assert (missing, unexpected) == ({"decoder.norm"}, {"new"})
    error = job.raises(sealpoint.MismatchError, lambda: dc.load(other(), path))
    assert error.tensor == "new", error
    back = state(job.rank, 2, 2, empty=True)
    back["more"] = ShardedObject("more", None, (1,), (0,), replica_id=job.rank)
    assert job.raises(sealpoint.MismatchError, lambda: dc.load(back, path)).object == "more/shard_0_1"


def empty(job, path, but=()):
    """As if the job had been killed before its copy."""
    dist.barrier()
    if job.rank == 0:
        for name in names(path):
            if name not in but:
                (job.at("run/iter_0000007") / name).unlink()
    dist.barrier()


def case_saves_go_to_local_disks_first(job, at):
    """A restart takes the newest of both places, by a load or by newest(); and what is replaced makes way in both."""
    staged = {"staged": str(job.path(f"disk{job.rank}")), "keep_local": 9}
    path, look = folder(job, "run/iter_0000007"), _directories.is_checkpoint
    for options in {}, {"replace": True}, {"replace": True, "codec": "zstd"}:
        sealpoint.megatron.enable(**staged, **options)
        # However long the copy takes.
        with mock.patch.object(_directories, "is_checkpoint", lambda one: one != path and look(one)):
            if "codec" in options:
                dc.save(state(job.rank, 2, 2), path, async_sharded_save=True, **OPTIONS).execute_sync()
            else:
                dc.save(state(job.rank, 2, 2), path)
        assert json.loads(_sealpoint.read_file(f"{path}/metadata.json", 1000))["sharded_backend"] == "sealpoint"
        assert promotions.await_promotions(60)
        dist.barrier()
        check_files(path)
    empty(job, path, but=["metadata.json"])
    sealpoint.megatron.enable(staged=str(job.path(f"gone{job.rank}")))
    job.raises(sealpoint.UncommittedError, lambda: dc.load(state(job.rank, 2, 2, empty=True), path))
    sealpoint.megatron.enable(**staged)
    check(job, dc.load(state(job.rank, 2, 2, empty=True), path))
    empty(job, path)
    run = str(at("run"))
    assert sealpoint.megatron.newest(run, **staged) == path
    check_files(path)
    assert at("run/latest_checkpointed_iteration.txt").read_text() == "7"
    assert sealpoint.megatron.newest(at("other"), **staged) is None, "what is of another run stays there"
    job.raises(sealpoint.InvalidArgumentError, lambda: sealpoint.megatron.enable(staged=7))
    sealpoint.megatron.enable()


def case_what_is_frozen_is_linked(job, at):
    """Between directories that Megatron names, from what this run saved or loaded last; and learned."""
    for frozen, reused in ((["decoder.*"], [False, True, True]), ("learned", [False, False, False])):
        sealpoint.megatron.enable(frozen=frozen)
        infos, save = [], sealpoint.megatron._save.save_gathered

        def noting(*arguments, infos=infos, save=save):
            infos.append(save(*arguments))
            return infos[-1]

        for number in range(3):
            path = folder(job, f"{frozen[0][:3]}/iter_{number:07d}")
            with mock.patch.object(sealpoint.megatron._save, "save_gathered", noting):
                dc.save(state(job.rank, 2, 2), path)
            check(job, dc.load(state(job.rank, 2, 2, empty=True), path))
        assert [info.reused_bytes > 0 for info in infos] == reused, "too little is learned of"
        if job.rank == 0:
            assert sealpoint.verify(path).ok
    job.raises(sealpoint.InvalidArgumentError, lambda: sealpoint.megatron.enable(frozen="decoder"))
    sealpoint.megatron.enable()


def case_files_of_megatron_in_an_object_store(job, at):
    """What its training script asks for, and what cannot be had."""
    if not HAS_REGISTRY:
        from megatron.core.msc_utils import maybe_msc

        tracker = str(at(f"run{job.rank}/latest_checkpointed_iteration.txt"))
        assert not maybe_msc.os.path.isfile(tracker) and not maybe_msc.path_isdir(os.path.dirname(tracker))
        maybe_msc.os.makedirs(os.path.dirname(tracker), exist_ok=True)
        for text in "12", "9":
            with maybe_msc.open(tracker, "w") as file:
                file.write(text)
            assert maybe_msc.open(tracker).read() == text and maybe_msc.os.path.exists(tracker)
        with contextlib.suppress(ZeroDivisionError), maybe_msc.open(tracker, "w") as file:
            file.write("half")
            1 / 0  # noqa: B018
        assert maybe_msc.open(tracker).read() == ("9" if job.is_remote else "half")
        place = maybe_msc.Path(os.path.dirname(tracker))
        assert [item.name for item in place.iterdir()] == [os.path.basename(tracker)] and not place.joinpath("x").exists()
    if not job.is_remote:
        return
    path = folder(job)
    if job.rank == 0:
        (at("iter_0000007") / ".metadata").touch()
        (at("iter_0000007") / "metadata.json").write_text('{"sharded_backend": "torch_dist", "sharded_backend_version": 1}')
    dist.barrier()
    error = job.raises(sealpoint.UnsupportedError, lambda: dc.load(state(job.rank, 2, 2, empty=True), path))
    assert "and Megatron reads its own checkpoints only from file" in str(error), error
    with mock.patch.dict(sys.modules, {"megatron.training.checkpointing": types.ModuleType("of 0.16")}):
        error = job.raises(sealpoint.UnsupportedError, lambda: dc.save(state(job.rank, 2, 2), str(at("iter_0000009"))))
        assert "as a file of this machine" in str(error), error


def alone_docstrings(place):
    """That of bucket_layout has an optimizer in mcore_cases.py."""
    docstring_examples.run(sealpoint.megatron, place, left_out=["bucket_layout"])


def case_weights_are_published(job):
    """On another mesh with other numbers, the tensors are those that a load gives."""
    from sealpoint.weights import Follower, Publisher

    publisher = Publisher(job.path("weights"))
    for version, (tp, dp) in enumerate([(2, 2), (2, 2), (1, 4)]):
        dist.barrier()
        found = publisher.publish(state(job.rank, tp, dp), version)
        assert job.all_agree((found.base, found.attempt)) and (found.base is None or version == 1)
        if job.rank == 0:
            with Follower(job.path("weights"), host_folder=job.path("host")) as follower:
                assert follower.update().version == version and follower.verify() > 8
                tensors = follower.torch_tensors()
                assert torch.equal(tensors["decoder.w"], numbers(6, 4))
                assert torch.equal(tensors["decoder.layers.w"], numbers(2, 4, 4, base=1000))
                assert torch.equal(tensors["decoder.gated"], numbers(8, 2)) and torch.equal(tensors["b"], numbers(8).bfloat16())
