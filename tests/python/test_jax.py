# SPDX-License-Identifier: Apache-2.0
"""Pytrees of JAX, on eight devices of one process and on two processes with four each."""

import json
import os
import pathlib
import socket
import subprocess
import sys

import pytest
import ranks

JAX = ranks.PACKAGES / "jax"
if JAX.is_dir():
    sys.path.append(str(JAX))
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
os.environ["JAX_PLATFORMS"] = "cpu"
jax = pytest.importorskip("jax", reason="JAX is not installed: see scripts/python_env.sh")

import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
import sealpoint  # noqa: E402
import sealpoint.jax as sp  # noqa: E402
from jax.sharding import Mesh, NamedSharding, PartitionSpec  # noqa: E402

WRONG = ["InvalidArgumentError"] * 7 + ["committed"]
HEALED = [[*["committed"] * 3, last] for last in ("CommError: rank 1 left", "interrupted")]
WIDE, TALL = (Mesh(np.array(jax.devices()).reshape(shape), ("data", "model")) for shape in ((4, 2), (2, 4)))


def sharded(array, *spec, mesh=WIDE):
    return jax.device_put(array, NamedSharding(mesh, PartitionSpec(*spec)))


def like(array, *spec, mesh=TALL):
    return jax.ShapeDtypeStruct(array.shape, array.dtype, sharding=NamedSharding(mesh, PartitionSpec(*spec)))


def same(found, expected):
    assert found.dtype == expected.dtype and found.shape == expected.shape
    assert np.asarray(found).tobytes() == np.asarray(expected).tobytes()


@pytest.fixture
def state():
    w = jnp.arange(64 * 32, dtype=jnp.bfloat16).reshape(64, 32)
    return {
        "params": {"w": sharded(w, "data", "model"), "b": sharded(jnp.arange(32.0), "model"), "scalar": jnp.float32(3)},
        "opt": ({"mu": sharded(w * 2, None, "data")}, [1, 2.5, None]), "step": 7, "name": "run", "none": np.zeros((0, 3)),
    }


def test_in_another_sharding(state, tmp_path):
    info = sp.save(state, tmp_path / "c", step=7)
    tree = len(bytes(sealpoint.open(tmp_path / "c").objects["sealpoint.tree"]))
    assert info.raw_bytes - tree == 2 * 64 * 32 * 2 + 32 * 4 + 4  # each element once
    wanted = {**state, "params": {**state["params"], "w": like(state["params"]["w"], "model")}}
    found = sp.load(tmp_path / "c", wanted)
    assert jax.tree.structure(found) == jax.tree.structure(state)
    same(found["params"]["w"], state["params"]["w"])
    assert found["params"]["w"].sharding == wanted["params"]["w"].sharding
    same(found["opt"][0]["mu"], state["opt"][0]["mu"])
    assert found["opt"][1] == [1, 2.5, None] and found["step"] == 7 and found["name"] == "run"
    assert isinstance(found["none"], np.ndarray) and found["none"].shape == (0, 3)


def test_every_dtype(tmp_path):
    names = ("bool", "int8", "int16", "int32", "uint8", "uint16", "uint32", "float16", "bfloat16", "float32", "complex64",
             "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu")  # fmt: skip
    state = {name: jnp.arange(6).reshape(2, 3).astype(name) for name in names}
    sp.save(state, tmp_path / "c")
    for name, found in sp.load(tmp_path / "c", state).items():
        same(found, state[name])


def test_memory_is_taken_over(tmp_path):
    """What was read is the array's memory: no copy of it is made."""
    state = {"w": jnp.arange(1 << 20, dtype=jnp.float32)}
    sp.save(state, tmp_path / "c")
    from sealpoint.jax import _arrays

    target, _ = _arrays.target_of(state["w"], "w")
    (memory,) = target.boxes.values()
    assert target.array().unsafe_buffer_pointer() == memory.ctypes.data


def test_keys(tmp_path):
    keys = {"one": jax.random.key(7), "many": sharded(jax.random.split(jax.random.key(1), 8), "data")}
    sp.save(keys, tmp_path / "c")
    blank = {"one": jax.random.key(0), "many": keys["many"][::-1]}
    found = sp.load(tmp_path / "c", blank)
    for name, key in keys.items():
        assert (jax.random.key_data(found[name]) == jax.random.key_data(key)).all()
        assert jax.random.uniform(found["one"]) == jax.random.uniform(keys["one"])
    with pytest.raises(sealpoint.MismatchError, match="keys of fry, expected those of rbg|keys of threefry2x32"):
        sp.load(tmp_path / "c", {**blank, "one": jax.random.key(0, impl="rbg")})


def test_in_the_background(state, tmp_path):
    expected = np.asarray(state["params"]["w"])
    future = sp.save_async(state, tmp_path / "c")
    for leaf in jax.tree.leaves(state["params"]):
        leaf.delete()  # as a donated buffer is
    future.result()
    found = sp.load(tmp_path / "c", {"params": {"w": like(expected, None, "model")}}, partial=True)
    same(found["params"]["w"], expected)


@pytest.mark.parametrize("change, message, name", [
    (lambda s: {**s, "x": 1}, "missing: the checkpoint does not have it", "x"),
    (lambda s: {**s, "step": "a"}, "kind: stored as 7, expected a value of type str", "step"),
    (lambda s: {**s, "step": jnp.zeros(3)}, "kind: stored as 7, expected a tensor", "step"),
    (lambda s: {**s, "params": {**s["params"], "b": 1}}, "stored as a tensor, expected a value", "params.b"),
    (lambda s: {**s, "params": {**s["params"], "b": jnp.zeros(31)}}, "stored with shape", "params.b"),
    (lambda s: {**s, "params": {**s["params"], "b": jnp.zeros(32, "int32")}}, "stored as f32, requested as i32", "params.b"),
    (lambda s: {key: s[key] for key in s if key != "opt"}, "unexpected: the checkpoint has opt.0.mu", "opt.0.mu"),
])  # fmt: skip
def test_what_differs_is_named(state, tmp_path, change, message, name):
    sp.save(state, tmp_path / "c")
    with pytest.raises(sealpoint.MismatchError, match=message) as caught:
        sp.load(tmp_path / "c", change(state))
    assert name in (caught.value.tensor, caught.value.object)


def test_dtypes_are_converted_if_asked(state, tmp_path):
    sp.save({"w": state["params"]["w"]}, tmp_path / "c")
    w = like(state["params"]["w"].astype("float32"), "data")
    same(sp.load(tmp_path / "c", {"w": w}, convert="exact")["w"], state["params"]["w"].astype("float32"))


def test_what_cannot_be_saved(tmp_path):
    twice = {"a": {"b": jnp.zeros(1)}, "a.b": jnp.zeros(1)}
    for state, kind, message in (({"a": jnp.zeros(3, jnp.int4)}, sealpoint.UnsupportedError, "dtype is int4"),
                                 ({"a": np.zeros(3, ">f4")}, sealpoint.UnsupportedError, "dtype is >f4"),
                                 ({"a": object()}, sealpoint.UnsupportedError, "cannot be represented"),
                                 (jnp.zeros(3), sealpoint.InvalidArgumentError, "a single value, expected a container"),
                                 (twice, sealpoint.InvalidArgumentError, "duplicate path")):
        with pytest.raises(kind, match=message):
            sp.save(state, tmp_path / "c")
    assert not (tmp_path / "c").exists()
    with pytest.raises(TypeError, match="stpe"):
        sp.save({"a": jnp.zeros(3)}, tmp_path / "c", stpe=3)


def test_damage_is_found(state, tmp_path):
    sp.save(state, tmp_path / "c")
    blob = max((tmp_path / "c").glob("*.blob"), key=lambda one: one.stat().st_size)
    data = bytearray(blob.read_bytes())
    data[200] ^= 1
    blob.write_bytes(data)
    with pytest.raises(sealpoint.CorruptError):
        sp.load(tmp_path / "c", state)


def test_with_torch(state, tmp_path):
    """By name, bit for bit, both ways."""
    torch = pytest.importorskip("torch")
    import sealpoint.torch as st

    expected = np.asarray(state["params"]["w"])
    sp.save(state, tmp_path / "jax")
    found = {"params": {"w": torch.zeros(64, 32, dtype=torch.bfloat16), "b": torch.zeros(32)}, "step": 0}
    st.load(found, tmp_path / "jax", contract=st.Contract.partial())
    assert found["params"]["w"].view(torch.uint8).numpy().tobytes() == expected.tobytes() and found["step"] == 7
    st.save(found, tmp_path / "torch")
    back = sp.load(tmp_path / "torch", {"params": {"w": like(expected, "model", "data"), "b": jnp.zeros(32)}, "step": 0})
    same(back["params"]["w"], expected)


def test_orbax(state, tmp_path):
    from orbax.checkpoint.experimental import v1 as ocp
    from sealpoint.jax import orbax

    context = ocp.Context()
    context.checkpointables.registry = ocp.handlers.local_registry().add(orbax.Handler, checkpointable_name="train")
    with context:
        ocp.save_checkpointables(tmp_path / "a", {"train": state})
        wanted = {**state, "params": {**state["params"], "w": like(state["params"]["w"], "model")}}
        found = ocp.load_checkpointables(tmp_path / "a", {"train": wanted})["train"]
        same(found["params"]["w"], state["params"]["w"])
        assert found["params"]["w"].sharding == wanted["params"]["w"].sharding
        ocp.save_checkpointables_async(tmp_path / "b", {"train": state}).result()
        same(ocp.load_checkpointables(tmp_path / "b")["train"]["params"]["w"], state["params"]["w"])
    assert sealpoint.verify(tmp_path / "a/train").verdict == "committed"


@pytest.fixture(scope="module")
def two_processes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("two")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([os.environ.get("PYTHONPATH", ""), str(JAX)])}
    program = pathlib.Path(__file__).parent / "jax_ranks.py"
    ranks = [subprocess.Popen([sys.executable, program, str(rank), port, folder], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, env=environment) for rank in range(2)]  # fmt: skip
    printed = [rank.communicate(timeout=200) for rank in ranks]
    found = [dict(json.loads(line) for line in out.splitlines() if line.startswith("[")) for out, _ in printed]
    assert found[0].keys() == found[1].keys() and "case_no_key_stays" in found[0], printed
    return {name: (found[0][name], found[1][name]) for name in found[0]}


@pytest.mark.parametrize("case, expected", [
    ("case_saved_and_loaded", ([True, 3, 0], [True, 3, 10])),
    ("case_in_the_background", (True, True)),
    ("case_replicas_differ", "replica"),
    ("case_values_differ", "ranks differ: 0 on rank 0, 1 on rank 1"),
    ("case_other_calls", "the ranks make different calls: rank 0 calls save "),
    ("case_one_fails_alone", "values of type builtins.object cannot be represented"),
    ("case_one_has_wrong_arguments", (WRONG, WRONG)),
    ("case_one_is_interrupted", ("rank 1 left save ", "interrupted")),
    ("case_one_misses_a_call", (HEALED[0] * 2, HEALED[1] * 2)),
    ("case_one_is_interrupted_at_its_end", "committed"),
    ("case_one_is_late", ("compared what they save: rank 1 did not arrive within 1.5 s", "CommError: rank 0 left save ")),
    ("case_after_all_that", ("committed", "committed")),
])  # fmt: skip
def test_two_processes(two_processes, case, expected):
    found = two_processes[case]
    for item, right in zip(found, expected if isinstance(expected, tuple) else (expected, expected), strict=True):
        assert right in item if isinstance(right, str) else right == item, found


def test_what_one_misspells_is_an_error_of_both(two_processes):
    for save, load, lacks, then in two_processes["case_one_misspells"]:
        assert save.startswith("InvalidArgumentError: save() has no option 'stpe'") and save.endswith("is 'step' / None / 1")
        assert load.startswith("InvalidArgumentError: load() has no option 'stpe'") and load.endswith("/ None / 1")
        assert lacks == "InvalidArgumentError: save(): missing a required argument: 'state' / None / 0"
        assert then == "committed"


def test_the_store_does_not_fill_up(two_processes):
    assert max(two_processes["case_no_key_stays"]) < 40
