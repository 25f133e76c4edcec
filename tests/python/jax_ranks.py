# SPDX-License-Identifier: Apache-2.0
"""One of two processes of jax.distributed, with four devices each:  jax_ranks.py RANK PORT FOLDER

Prints a line of JSON per case: what it found. test_jax.py says what is right.
"""

import json
import os
import pathlib
import sys
import time

RANK, PORT, FOLDER = int(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3])
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax  # noqa: E402
import numpy as np  # noqa: E402
from jax.sharding import Mesh, NamedSharding, PartitionSpec  # noqa: E402

jax.config.update("jax_cpu_collectives_implementation", "gloo")
jax.distributed.initialize(f"127.0.0.1:{PORT}", 2, RANK)

import sealpoint  # noqa: E402
import sealpoint.jax as sp  # noqa: E402
from sealpoint.jax import _save as save_module  # noqa: E402
from sealpoint.jax._session import session  # noqa: E402

MESH = Mesh(np.array(jax.devices()).reshape(4, 2), ("data", "model"))
FULL = np.arange(64 * 32, dtype=np.float32).reshape(64, 32)


def put(*spec):
    return jax.make_array_from_callback(FULL.shape, NamedSharding(MESH, PartitionSpec(*spec)), lambda index: FULL[index])


def state():
    arrays = {"w": put("data", "model"), "all": put(), "columns": put(None, "model")}
    return {**arrays, "step": 3, "mine": sp.per_rank(RANK * 10)}


def is_right(array):
    return all(bool((np.asarray(shard.data) == FULL[shard.index]).all()) for shard in array.addressable_shards)


def said(call):
    try:
        return str(call())
    except sealpoint.Error as error:
        return f"{type(error).__name__}: {error.message} / {error.tensor or error.object} / {error.rank}"


def case_saved_and_loaded():
    sp.save(state(), FOLDER / "a", step=3)
    like = {**state(), "w": put("model", "data"), "all": put("data")}
    got = sp.load(FOLDER / "a", like)
    return [all(is_right(got[name]) for name in ("w", "all", "columns")), got["step"], got["mine"].value]


def case_in_the_background():
    tensors = {name: value for name, value in state().items() if isinstance(value, jax.Array)}
    future = sp.save_async(tensors, FOLDER / "b")
    for value in tensors.values():
        value.delete()
    future.result()
    return is_right(sp.load(FOLDER / "b", {"w": put("model")}, partial=True)["w"])


def case_replicas_differ():
    mine = np.full(4, RANK, dtype=np.float32)
    return said(lambda: sp.save({"w": mine}, FOLDER / "c"))


def case_values_differ():
    return said(lambda: sp.save({**state(), "step": RANK}, FOLDER / "d"))


def case_other_calls():
    return said(lambda: sp.save(state(), FOLDER / f"e{RANK}"))


def case_one_fails_alone():
    return said(lambda: sp.save({**state(), "x": object()} if RANK == 1 else state(), FOLDER / "f"))


def case_one_has_wrong_arguments():
    """The calls that follow are in step again."""
    mine = RANK == 1
    found = [said(lambda: sp.save(state(), FOLDER / "k", **options)) for options in (
        {"provenance": {"metric.loss": jax.numpy.ones(1)}} if mine else {}, {"frozen": "w*"} if mine else {},
        {"codec": "lz4"} if mine else {}, {"memory_budget_bytes": 1} if mine else {})]
    found += [said(lambda: sp.save(state(), 7 if mine else FOLDER / "k"))]
    found += [said(lambda: sp.load(7 if mine else FOLDER / "a", state()))]
    found += [said(lambda: sp.load(FOLDER / "a", state(), threads=-1 if mine else None))]
    sp.save(state(), FOLDER / "k")
    return [text.partition(": ")[0] for text in found] + [sealpoint.verify(FOLDER / "k").verdict]


def case_one_misspells():
    """And the calls that follow are in step."""
    found = [said(lambda: call(**({"stpe": 1} if RANK == 1 else {}))) for call in (
        lambda **more: sp.save(state(), FOLDER / "l", **more), lambda **more: sp.load(FOLDER / "a", state(), **more))]
    found += [said(lambda: sp.save() if RANK == 0 else sp.save(state(), FOLDER / "l"))]
    sp.save(state(), FOLDER / "l")
    return [*found, sealpoint.verify(FOLDER / "l").verdict]


def one_is_interrupted(name, has_begun):
    """The other one hears of it when it waits."""
    if RANK == 0:
        return said(lambda: sp.save(state(), FOLDER / name, deadline=20))
    collect = save_module.collect

    def interrupt(*arguments):
        if has_begun:
            collect(*arguments)
        raise KeyboardInterrupt

    save_module.collect = interrupt
    try:
        sp.save(state(), FOLDER / name, deadline=20)
    except KeyboardInterrupt:
        return "interrupted"
    finally:
        save_module.collect = collect


def case_one_is_interrupted():
    """Where no exchange would tell the other one."""
    return one_is_interrupted("g", has_begun=True)


def case_one_misses_a_call():
    """Each in turn: the one that hands on what all say, too. Then they are in step, or an interrupt would not be heard of."""
    found = []
    for absent in range(2):
        if absent == RANK:
            time.sleep(2)
        else:
            said_alone = said(lambda: sp.save(state(), FOLDER / "m", deadline=1))
            assert f"rank {absent} did not arrive" in said_alone, said_alone
        for number in range(3):
            sp.save(state(), FOLDER / f"m{absent}{number}", deadline=10)
            found.append(sealpoint.verify(FOLDER / f"m{absent}{number}").verdict)
        found.append(one_is_interrupted(f"n{absent}", has_begun=False)[:22])
    return found


def case_one_is_interrupted_at_its_end():
    """When the other one waits in the next call already, which succeeds."""
    try:
        with session().call("probe", deadline=20) as call:
            call.agree(lambda: (None, b""), "probed")
            if RANK == 1:
                time.sleep(0.5)
                raise KeyboardInterrupt
    except KeyboardInterrupt:
        pass
    sp.save(state(), FOLDER / "o", deadline=10)
    return sealpoint.verify(FOLDER / "o").verdict


def case_one_is_late():
    if RANK == 1:
        time.sleep(3)
    return said(lambda: sp.save(state(), FOLDER / "h", deadline=1.5))


def case_after_all_that():
    if RANK == 0:
        time.sleep(2)
    sp.save(state(), FOLDER / "i")
    return sealpoint.verify(FOLDER / "i").verdict


def case_no_key_stays():
    """Of what was exchanged, the store keeps the last messages only."""
    for number in range(5):
        sp.save(state(), FOLDER / f"j{number}")
    return len(jax._src.distributed.global_state.client.key_value_dir_get_bytes("sealpoint"))


for name, case in list(globals().items()):
    if name.startswith("case_"):
        print(json.dumps([name, case()]), flush=True)
