# SPDX-License-Identifier: Apache-2.0
"""States of one process: values, tensors of every kind, and what is refused."""

import argparse
import concurrent.futures
import enum
import json
import math
import os
import random
import subprocess
import sys
import textwrap
import time

import numpy
import pytest

from conftest import IN_A_BUCKET

torch = pytest.importorskip("torch", reason="torch is not installed: see scripts/python_env.sh")

import sealpoint  # noqa: E402
import sealpoint.torch as sp  # noqa: E402
from sealpoint.interop import convert  # noqa: E402
from sealpoint import _directories  # noqa: E402


class Color(enum.Enum):
    RED = 1
    DARK = "dark"
    PAIR = (1, 2)


class Secret:
    def __eq__(self, other):
        return isinstance(other, Secret)

    __hash__ = None


def back(state, path, **options):
    sp.save(state, path, **{key: value for key, value in options.items() if key == "allow_pickle"})
    assert sealpoint.verify(path).ok
    return sp.load_full(path, **options)


VALUES = {
    "true": True, "false": False, "none": None, "int": 7, "negative": -(2**53), "big": 2**100, "float": 0.1,
    "inf": math.inf, "text": "ä\n\0", "empty": "", "bytes": b"\0\xff", "complex": 1 - 2.5j, "list": [1, [2, "x"]],
    "tuple": (1, (2.0, None)), "set": {1, 2}, "frozenset": frozenset("ab"), "dict": {"a": {}, "$": 1, "b": []},
    "int keys": {0: "a", 1: {2: 3}}, "mixed keys": {(1, "x"): 1, None: 2, True: 3},
    "namespace": argparse.Namespace(lr=0.1, names=["a"]), "dtype": torch.bfloat16, "size": torch.Size([2, 0]),
    "device": torch.device("cpu"), "python rng": random.getstate(), "numpy scalar": numpy.float32(3.5),
    "numpy bool": numpy.bool_(True),
}


@pytest.mark.parametrize("name", VALUES)
def test_value_comes_back(name, place):
    value = VALUES[name]
    found = back({"v": value}, place / "c")["v"]
    assert found == value
    assert type(found) is type(value)
    state = {"v": None if not isinstance(value, dict) else {key: None for key in value}}
    if not isinstance(value, dict):
        sp.load(state, place / "c")
        assert state["v"] == value


def test_numpy_arrays_and_nan_come_back(place):
    state = numpy.random.RandomState(3).get_state()
    found = back({"rng": state, "nan": math.nan, "a": numpy.arange(6.0).reshape(2, 3).T}, place / "c")
    assert math.isnan(found["nan"])
    assert numpy.array_equal(found["a"], numpy.arange(6.0).reshape(2, 3).T)
    numpy.random.RandomState().set_state(found["rng"])
    assert numpy.array_equal(found["rng"][1], state[1])


def test_enumerations_are_registered_first(tmp_path):
    with pytest.raises(sealpoint.UnsupportedError, match="register_enum") as error:
        sp.save({"a": {"color": Color.RED}}, tmp_path / "c")
    assert error.value.object == "a.color"
    sp.register_enum(Color)
    assert back({"color": Color.RED}, tmp_path / "c")["color"] is Color.RED


def test_enumerations_have_names_and_the_values_that_pickles_need(tmp_path):
    sp.register_enum(Color)
    state = {"colors": [Color.RED, Color.DARK, Color.PAIR]}
    assert back(state, tmp_path / "c") == state
    name = f"{Color.__module__}.Color"
    assert json.loads(sealpoint.open(tmp_path / "c").objects["sealpoint.tree"]) == {"colors": [
        {"$": "enum", "class": name, "name": "RED", "value": 1},
        {"$": "enum", "class": name, "name": "DARK", "value": "dark"}, {"$": "enum", "class": name, "name": "PAIR"},
    ]}  # fmt: skip
    for number, (members, found) in enumerate((
        ('"name":"RED"', Color.RED), ('"value":1', Color.RED), ('"name":"RED","value":"dark"', Color.RED),
    )):  # fmt: skip
        path = tmp_path / str(number)
        tree = f'{{"v":{{"$":"enum","class":"{name}",{members}}}}}'.encode()
        sealpoint.save({}, path, objects={"sealpoint.tree": tree})
        assert sp.load_full(path)["v"] is found, "by its name, if there is one"


def test_pickles_are_asked_for_twice(place):
    with pytest.raises(sealpoint.UnsupportedError, match="Secret"):
        sp.save({"s": Secret()}, place / "c")
    sp.save({"s": Secret()}, place / "c", allow_pickle=True)
    with pytest.raises(sealpoint.UnsupportedError, match="allow_pickle"):
        sp.load_full(place / "c")
    with pytest.raises(sealpoint.UnsupportedError, match="allow_pickle") as error:
        sp.load({"s": None}, place / "c")
    assert error.value.object == "s"
    assert sp.load_full(place / "c", allow_pickle=True)["s"] == Secret()


DTYPES = [
    dtype for name in
    ("bool complex32 uint8 int8 int16 int32 int64 uint16 uint32 uint64 float16 bfloat16 float32 float64 complex64 "
     "complex128 float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz float8_e8m0fnu float4_e2m1fn_x2").split()
    if (dtype := getattr(torch, name, None)) is not None
]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_dtype_comes_back(dtype, place):
    torch.manual_seed(5)
    size = torch.empty(0, dtype=dtype).element_size()
    noise = torch.randint(0, 2 if dtype == torch.bool else 256, (3, 8 * size), dtype=torch.uint8)
    tensor = noise.view(dtype)
    found = back({"t": tensor}, place / "c")["t"]
    assert found.dtype == dtype
    assert torch.equal(found.view(torch.uint8), noise)
    into = torch.zeros_like(noise).view(dtype)
    sp.load({"t": into}, place / "c")
    assert torch.equal(into.view(torch.uint8), noise)


def test_views_are_stored_as_they_read(place):
    base = torch.arange(24.0).reshape(4, 6)
    pair = torch.tensor([[1 - 2j, 3j]])
    views = {
        "transposed": base.t(), "every second": base[::2, 1:4], "offset": base[2], "scalar": base[3, 5],
        "empty": base[:0], "expanded": torch.ones(1, 3).expand(4, 3), "conjugated": pair.conj(),
        "negated": pair.conj().imag, "channels last": torch.rand(2, 3, 4, 5).to(memory_format=torch.channels_last),
        "parameter": torch.nn.Parameter(torch.ones(2)),
    }
    found = back(views, place / "c")
    for name, view in views.items():
        assert torch.equal(found[name], view), name
    into = {name: torch.zeros(view.shape, dtype=view.dtype) for name, view in views.items()}
    into["transposed"] = torch.zeros(4, 6).t()
    into["every second"] = torch.zeros(4, 6)[::2, 1:4]
    sp.load(into, place / "c")
    for name, view in views.items():
        assert torch.equal(into[name], view), name


@pytest.mark.parametrize(("name", "make"), [
    ("sparse", lambda: torch.ones(2).to_sparse()),
    ("meta", lambda: torch.empty(2, device="meta")),
    ("quantized", lambda: torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8)),
    ("nested", lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])),
])
def test_tensors_without_plain_elements_are_refused(name, make, tmp_path):
    with pytest.raises(sealpoint.UnsupportedError, match=name) as error:
        sp.save({"a": [{"t": make()}]}, tmp_path / "c")
    assert error.value.tensor == "a.0.t"
    assert not (tmp_path / "c").exists()


class Overlapping:
    """Notices if two threads are within a save or a load at a time."""

    def __init__(self):
        self.inside, self.most = 0, 0

    def state_dict(self):
        self.inside += 1
        self.most = max(self.most, self.inside)
        time.sleep(0.02)
        self.inside -= 1
        return {"n": 1}

    def load_state_dict(self, state):
        assert state == {"n": 1}


def test_threads_take_turns(tmp_path):
    shared = Overlapping()

    def work(number):
        state = {"t": torch.full((1000,), float(number)), "shared": shared}
        sp.save(state, tmp_path / str(number))
        state["t"].zero_()
        sp.load(state, tmp_path / str(number))
        return torch.equal(state["t"], torch.full((1000,), float(number)))

    with concurrent.futures.ThreadPoolExecutor(4) as threads:
        assert all(threads.map(work, range(8)))
    assert shared.most == 1


def test_destinations_that_overlap_are_refused(place):
    sp.save({"t": torch.ones(4, 3)}, place / "c")
    with pytest.raises(sealpoint.InvalidArgumentError) as error:
        sp.load({"t": torch.zeros(1, 3).expand(4, 3)}, place / "c")
    assert error.value.tensor == "t"


def test_paths_with_one_text_are_refused(place):
    with pytest.raises(sealpoint.InvalidArgumentError, match="duplicate path") as error:
        sp.save({"a.b": torch.ones(1), "a": {"b": torch.ones(1)}}, place / "c")
    assert error.value.tensor == "a.b"


def test_what_has_a_state_dict_is_saved_and_loaded(place):
    def make():
        model = torch.nn.Linear(3, 2)
        optimizer = torch.optim.AdamW(model.parameters())
        model(torch.ones(3)).sum().backward()
        optimizer.step()
        return model, optimizer, torch.optim.lr_scheduler.StepLR(optimizer, 10)

    model, optimizer, scheduler = make()
    scheduler.last_epoch = 5
    sp.save({"model": model, "optimizer": optimizer, "scheduler": scheduler}, place / "c")
    model2, optimizer2, scheduler2 = make()
    with torch.no_grad():
        model2.weight.fill_(9)
    sp.load({"model": model2, "optimizer": optimizer2, "scheduler": scheduler2}, place / "c")
    assert torch.equal(model.weight, model2.weight)
    assert scheduler2.last_epoch == 5
    for value, other in zip(optimizer.state.values(), optimizer2.state.values(), strict=True):
        assert torch.equal(value["exp_avg"], other["exp_avg"])


def test_values_change_only_if_all_is_well(tmp_path):
    sp.save({"n": 1, "t": torch.arange(1000.0)}, tmp_path / "c")
    (blob,) = (tmp_path / "c").glob("*.blob")
    data = bytearray(blob.read_bytes())
    data[data.index(torch.arange(500.0, 510.0).numpy().tobytes())] ^= 1
    blob.write_bytes(data)
    state = {"n": 0, "t": torch.zeros(1000)}
    with pytest.raises(sealpoint.CorruptError):
        sp.load(state, tmp_path / "c")
    assert state["n"] == 0


def test_a_damaged_tree_is_an_error(tmp_path):
    for text in (b"{", b"[1", b"\xff", b'{"$":"int"}', b'{"$":"array","dtype":"f32","base64":"!"}'):
        path = tmp_path / str(hash(text))
        sealpoint.save({}, path, objects={"sealpoint.tree": text})
        with pytest.raises(sealpoint.CorruptError):
            sp.load_full(path)


def test_no_type_is_looked_up_by_a_name_in_the_file(tmp_path):
    for node in ('{"$":"enum","class":"os.system","name":"x"}', '{"$":"dtype","name":"load"}', '{"$":"other","a":1}'):
        path = tmp_path / str(hash(node))
        sealpoint.save({}, path, objects={"sealpoint.tree": b'{"v":' + node.encode() + b"}"})
        assert isinstance(sp.load_full(path)["v"], sp.Foreign)


def test_a_tree_of_a_later_version_is_unsupported(tmp_path):
    later = ('{"$":"tree","version":2,"root":{}}', '{"v":{"$":"int","value":"7","base":16}}',
             '{"v":[{"$":"tensor","name":"v","x":1}]}')
    for text in later:
        path = tmp_path / str(hash(text))
        sealpoint.save({"v": b"x"}, path, objects={"sealpoint.tree": text.encode()})
        with pytest.raises(sealpoint.UnsupportedError, match="tree has"):
            sp.load_full(path)


def test_a_file_of_an_unknown_kind_goes_with_its_checkpoint_and_not_before(tmp_path):
    sp.save({"t": torch.ones(2)}, tmp_path / "c")
    parity = tmp_path / "c" / ("ab" * 16 + ".parity")
    parity.write_bytes(b"x")
    _directories.remove_leftovers(tmp_path / "c")
    assert parity.exists()
    _directories.remove(tmp_path / "c")
    assert list((tmp_path / "c").iterdir()) == []


def test_a_flat_checkpoint_of_another_program_is_loaded(place):
    sealpoint.save({"a.b": numpy.ones(3, "f4")}, place / "c")
    state = {"a.b": torch.zeros(3)}
    sp.load(state, place / "c")
    assert torch.equal(state["a.b"], torch.ones(3))
    assert torch.equal(sp.load_full(place / "c")["a.b"], torch.ones(3))


def test_plain_tensors_do_not_import_what_takes_long(tmp_path):
    code = """
        import sys, torch
        import sealpoint.torch as sp
        state = {"model": torch.nn.Linear(3, 2), "step": 3}
        sp.save(state, sys.argv[1])
        sp.load(state, sys.argv[1], rename={"model.*": "model.*"})
        print([name for name in ("torch.distributed.tensor", "sealpoint.interop", "sympy") if name in sys.modules])
    """
    printed = subprocess.check_output([sys.executable, "-c", textwrap.dedent(code), str(tmp_path / "c")], text=True)
    assert printed == "[]\n"


def test_what_torch_saved_is_read_without_torch(tmp_path):
    sp.save({"model": {"f32": torch.arange(6.0).reshape(2, 3), "bf16": torch.tensor([1.5, -2], dtype=torch.bfloat16),
                       "f8": torch.tensor([0.5, 448], dtype=torch.float8_e4m3fn)}, "step": 3}, tmp_path / "c")
    code = """
        import sys
        sys.modules["torch"] = None  # no import of it can succeed
        import json, ml_dtypes, sealpoint
        assert sealpoint.verify(sys.argv[1]).ok
        with sealpoint.open(sys.argv[1]) as checkpoint:
            assert sorted(checkpoint) == ["model.bf16", "model.f32", "model.f8"]
            assert checkpoint["model.f32"][1].tolist() == [3, 4, 5]
            bf16, f8 = checkpoint["model.bf16"][:], checkpoint["model.f8"][:]
            assert bf16.dtype == ml_dtypes.bfloat16 and bf16.astype("f4").tolist() == [1.5, -2]
            assert f8.dtype == ml_dtypes.float8_e4m3fn and f8.astype("f4").tolist() == [0.5, 448]
            assert json.loads(checkpoint.objects["sealpoint.tree"])["step"] == 3
        assert sys.modules["torch"] is None
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code), str(tmp_path / "c")], check=True)


@pytest.mark.parametrize("save", [sp.save, lambda *args, **options: sp.save_async(*args, **options).result()])
def test_a_frozen_base_is_written_once(save, tmp_path):
    base, adapter = torch.rand(1 << 20), torch.rand(1000)
    infos = []
    for step in range(1, 5):
        state = {"base": {"w": base, "b": base[:10]}, "adapter": adapter * step}
        infos.append(save(state, tmp_path / "run", series=True, step=step, frozen=["base.*"], full_every=3))
    shared = [info.reused_bytes > 4 << 20 for info in infos]
    assert shared == [False, True, True, IN_A_BUCKET], "full_every bounds links; in a bucket each has a copy of its own"
    written = infos[1].total_bytes - infos[1].reused_bytes
    assert written <= 1.05 * (adapter.nbytes + 4096 * 3), "blob of the adapter: its bytes, and pages of what describes them"
    sealpoint.Series(tmp_path / "run").delete(os.path.basename(infos[0].directory))
    for step, info in enumerate(infos[1:], 2):
        assert sealpoint.verify(info.directory).ok
        loaded = sp.load_full(info.directory)
        assert torch.equal(loaded["base"]["w"], base) and torch.equal(loaded["adapter"], adapter * step)
    # A base that is trained after all is stored as it is.
    base[0] += 1
    changed = save({"base": {"w": base}}, tmp_path / "run", series=True, step=9, frozen=["base.*"])
    assert changed.reused_bytes == 0
    assert torch.equal(sp.load_full(changed.directory)["base"]["w"], base)
    with pytest.raises(sealpoint.InvalidArgumentError, match="frozen is 'base', expected a sequence of patterns"):
        save({}, tmp_path / "c", frozen="base")


def test_a_frozen_base_is_reused_between_directories_of_own_names(tmp_path, monkeypatch):
    prefix = f"{tmp_path}/" if IN_A_BUCKET else ""
    if not IN_A_BUCKET:
        monkeypatch.chdir(tmp_path)
    state = {"base": torch.rand(1 << 19), "adapter": torch.rand(10)}
    path = f"{prefix}step-1"
    first = sp.save(state, path, step=1, frozen=["base"])
    for number, parent in enumerate(
        [first, (first.attempt, first.sequence, path), sealpoint.open(path), (first.attempt, first.sequence)]
    ):
        second = sp.save(state, f"{prefix}other-{number}", step=2, parent=parent, frozen=["base"])
        assert (second.reused_bytes > 2 << 20) == (number < 3), "of a parent whose place is not known nothing is reused"
        assert second.parent == first.attempt and torch.equal(sp.load_full(second.directory)["base"], state["base"])
    with pytest.raises(sealpoint.InvalidArgumentError, match="with its directory or without"):
        sp.save(state, "d", parent=(first.attempt, 1, 7))


def test_a_frozen_base_is_learned(tmp_path):
    base, adapter = torch.rand(1 << 19), torch.rand(10)
    reused = []
    for step in range(1, 6):
        if step == 4:
            base[-1] += 1
        info = sp.save({"base": base, "adapter": adapter * step}, tmp_path / "run", series=True, step=step, frozen="learned")
        assert torch.equal(sp.load_full(info.directory)["base"], base)
        reused.append(info.reused_bytes > base.nbytes)
    assert reused == [False, False, True, False, False], "found at the second save, trained after all at the fourth"


def test_a_program_that_ends_waits_for_its_save(tmp_path):
    program = f"""
        import torch, sealpoint.torch as sp
        sp.save_async({{"t": torch.ones(1000)}}, {str(tmp_path / "c")!r})
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert sealpoint.verify(tmp_path / "c").ok


def test_a_failed_save_is_told_by_the_future(tmp_path):
    (tmp_path / "file").write_text("")
    future = sp.save_async({"t": torch.ones(3)}, tmp_path / "file" / "c")
    with pytest.raises(sealpoint.Error):
        future.result(60)
    assert sp.save_async({"t": torch.ones(3)}, tmp_path / "good").result(60)


UNHEARD = """
import sys, pathlib
import sealpoint, sealpoint.torch as sp, torch
path, how = sys.argv[1:]
if how == "forgotten":
    sp.save_async({"t": torch.ones(3)}, path)
elif how == "kept":
    future = sp.save_async({"t": torch.ones(3)}, path)
elif how == "checkpointer":
    checkpoints = sp.Checkpointer(path)
    checkpoints.step(1, {"t": torch.ones(3)})
elif how == "within an error":
    try:
        with sp.Checkpointer(path) as checkpoints:
            checkpoints.step(1, {"t": torch.ones(3)})
            raise ValueError("of the training")
    except ValueError:
        pass
elif how == "raised":
    future = sp.save_async({"t": torch.ones(3)}, path)
    try:
        future.result()
    except sealpoint.Error:
        pass
else:
    future = sp.save_async({"t": torch.ones(3)}, path)
    assert future.exception() is not None
"""


@pytest.mark.parametrize("how", ["forgotten", "kept", "checkpointer", "within an error", "raised", "heard"])
def test_a_failed_save_is_logged_if_nobody_asks(tmp_path, how):
    (tmp_path / "file").write_text("")
    command = [sys.executable, "-c", UNHEARD, tmp_path / "file" / "c", how]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    if how == "within an error":
        assert "the save of step 1 failed: " in done.stderr, done.stderr
    else:
        assert ("failed, and its result was not requested" in done.stderr) == (how not in ("raised", "heard")), done.stderr
    assert done.stderr.count(" failed") <= 1, f"by the library below, too: {done.stderr}"
    assert "Traceback" not in done.stderr, done.stderr


def test_a_loop_goes_on_after_a_failed_save(tmp_path, caplog):
    (tmp_path / "file").write_text("")
    for wait in (False, True):
        with sp.Checkpointer(tmp_path / "file" / "c", on_error="warn", wait=wait) as checkpoints:
            for step in (1, 2):
                checkpoints.step(step, {"t": torch.ones(3)})
        with pytest.raises(sealpoint.Error), sp.Checkpointer(tmp_path / "file" / "c", wait=wait) as checkpoints:
            checkpoints.step(1, {"t": torch.ones(3)})
    told = [record.message for record in caplog.records if record.name == "sealpoint" and "training continues" in record.message]
    assert len(told) == 4 and all(f"the save of step {1 + i % 2} failed" in item for i, item in enumerate(told)), told


def test_the_best_stay_beside_the_newest(tmp_path):
    keep = {"keep": 2, "keep_best": ("metric.loss", "least", 1)}
    with sp.Checkpointer(tmp_path, **keep, provenance={"run": "x"}) as checkpoints:
        for step, loss in enumerate((3.0, 1.0, 2.0, 4.0, 5.0), 1):
            checkpoints.step(step, {"n": step}, provenance={"metric.loss": loss})
    entries = sealpoint.Series(tmp_path).list()
    assert [entry.step for entry in entries] == [5, 4, 2]
    with sealpoint.open(entries[-1].path) as checkpoint:
        assert (checkpoint.provenance["run"], checkpoint.provenance["metric.loss"]) == ("x", "1.0")
    with pytest.raises(sealpoint.InvalidArgumentError, match="provenance is 3"):
        checkpoints.save(6, {"n": 6}, provenance=3)


@pytest.mark.parametrize(("options", "words"), [
    ({"keep_last": 3}, "keep_last"), ({"keep_best": ("metric.loss", "most", 1)}, "keep_best is"),
    ({"step": 3}, "step"), ({"every": "x"}, "every is 'x'"), ({"every": 0}, "every is 0"),
    ({"keep": 1.5}, "keep is 1.5"), ({"wait": 1}, "wait is 1"), ({"on_error": "ignore"}, "on_error is 'ignore'"),
    ({"deadline": -1}, "deadline is -1"), ({"wait": True, "background_deadline": 5}, "background_deadline"),
    ({"directory": "hf://bucket/run"}, "directory is a URL of hf"), ({"directory": "a\0b"}, "it has a NUL"),
    ({"directory": "~nobody-of-this-name/x"}, "for a directory of that name"), ({"process_group": 3}, "process_group is 3"),
    ({"parent": ("x", 1)}, "no option 'parent'"), ({"provenance": {"a": [1]}}, "provenance"),
])
def test_options_of_a_loop_are_checked_at_once(tmp_path, options, words):
    with pytest.raises((TypeError, sealpoint.InvalidArgumentError, sealpoint.UnsupportedError), match=words):
        sp.Checkpointer(**{"directory": tmp_path, **options})


def test_a_forked_child_cannot_ask_a_save(tmp_path):
    future = sp.save_async({"t": torch.ones(3)}, tmp_path / "c")
    child = os.fork()
    if child == 0:
        refused = 0
        for ask in (future.result, future.done, future.exception, future.cancel, future.running):
            try:
                ask()
            except sealpoint.InvalidArgumentError:
                refused += 1
        os._exit(0 if refused == 5 else 1)
    deadline = time.monotonic() + 20
    while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0) and time.monotonic() < deadline:
        time.sleep(0.05)
    if ended == (0, 0):
        os.kill(child, 9)
        os.waitpid(child, 0)
    assert ended == (child, 0)
    assert future.result(60)


def test_options_are_checked(tmp_path):
    with pytest.raises(sealpoint.InvalidArgumentError, match="missing is 'never'"):
        sp.Contract(missing="never")
    with pytest.raises(ValueError, match="keep is 1"):
        sp.Checkpointer(tmp_path, keep=1)
    for step in ("x", 1.5, True):
        with pytest.raises(ValueError, match="step is "):
            sp.Checkpointer(tmp_path, every=5).step(step, {"n": 1})
    with pytest.raises(ValueError, match="allow_pickle is 'no', expected True or False"):
        sp.load_full(tmp_path, allow_pickle="no")
    with pytest.raises(ValueError, match="cls is 3, expected a class of enum.Enum"):
        sp.register_enum(3)


@pytest.mark.parametrize(("shape", "region", "words"), [
    ((-4,), {}, r"shape is \(-4,\)"), ("x", {}, "shape is"), ((4,), {"offset": ("x",)}, "offset is"),
    ((4,), {"extent": 4}, "extent is 4"), ((4,), {"run": 5}, "run is 5"), ((4,), {"run": (3, -1)}, "run is"),
])
def test_wrong_regions_are_named(shape, region, words):
    with pytest.raises(sealpoint.InvalidArgumentError, match=words):
        sp.Regions(shape, torch.float32, [sp.Region(torch.ones(4), **{"offset": (0,), **region})])
    with pytest.raises(sealpoint.InvalidArgumentError, match="regions has 3, expected values of Region"):
        sp.Regions((4,), torch.float32, [3])


def test_arguments_that_sealpoint_save_takes_are_taken(place):
    """Numbers in provenance, and levels of a codec below 0."""
    with sp.Checkpointer(place / "run", provenance={"metric.loss": 1.25}, codec="zstd", codec_level=-5) as checkpoints:
        checkpoints.step(1, {"t": torch.ones(3)})
    with sealpoint.open(checkpoints.newest()) as checkpoint:
        assert checkpoint.provenance["metric.loss"] == "1.25"


def test_a_call_that_ends_just_behind_a_look_is_no_error():
    from sealpoint.torch._communicator import TorchCommunicator

    class Options:
        timeout = None

    class Work:
        """Ends between the end of the first slice of waiting and the look."""

        def __init__(self, fails):
            self.fails, self.waits = fails, 0

        def wait(self, timeout=None):
            self.waits += 1
            if timeout is not None or self.fails:
                raise RuntimeError("Operation timed out!")

        def is_completed(self):
            return True

    comm = TorchCommunicator.of_links(None, "", 0, 1, 60.0)
    good = Work(fails=False)
    comm._do(lambda run: run(Options(), lambda options: good))
    assert good.waits == 2
    with pytest.raises(sealpoint.CommError, match="Operation timed out"):
        comm._do(lambda run: run(Options(), lambda options: Work(fails=True)))


def test_values_of_each_rank_may_be_in_lists(tmp_path):
    def state(number, element):
        ranks = [sp.per_rank(number), sp.per_rank({"a": torch.full((2,), element)})]
        return {"rng": ranks, "pair": (sp.per_rank(number), [sp.per_rank("x" * number)])}

    sp.save(state(3, 1.0), tmp_path / "c")
    found = state(0, 0.0)
    sp.load(found, tmp_path / "c")
    first, second = found["rng"]
    assert first.value == 3 and torch.equal(second.value["a"], torch.ones(2))
    assert found["pair"][0].value == 3 and found["pair"][1][0].value == "xxx"
    with pytest.raises(sealpoint.UnsupportedError, match="a Namespace with per-rank values"):
        sp.save({"args": argparse.Namespace(seed=sp.per_rank(1))}, tmp_path / "d")
    with pytest.raises(sealpoint.UnsupportedError, match="within a tuple"):
        convert(tmp_path / "c", tmp_path / "e")
    sp.save({"rng": state(3, 1.0)["rng"]}, tmp_path / "f")
    convert(tmp_path / "f", tmp_path / "g", verify=True)
    again = {"rng": state(0, 0.0)["rng"]}
    sp.load(again, tmp_path / "g")
    assert again["rng"][0].value == 3 and torch.equal(again["rng"][1].value["a"], torch.ones(2))


def test_shards_that_are_wrapped_say_where_they_are(tmp_path):
    """As torchrec has them: they have local_shards() and the protocol of DCP."""
    from torch.distributed.tensor._shards_wrapper import LocalShardsWrapper

    def wrapped(left, right):
        return LocalShardsWrapper([left, right], [(0, 0), (0, 2)])

    whole = torch.arange(8.0).reshape(2, 4)
    sp.save({"w": wrapped(whole[:, :2].contiguous(), whole[:, 2:].contiguous())}, tmp_path / "c")
    assert torch.equal(sp.load_full(tmp_path / "c")["w"], whole)
    state = {"w": wrapped(torch.zeros(2, 2), torch.zeros(2, 2))}
    sp.load(state, tmp_path / "c")
    assert torch.equal(torch.cat(state["w"].local_shards(), 1), whole)


def test_values_of_ranks_have_one_place_each(tmp_path):
    for state in ({"a.b": sp.per_rank(1), "a": {"b": sp.per_rank(2)}}, {1: sp.per_rank("int"), "1": sp.per_rank("text")}):
        with pytest.raises(sealpoint.InvalidArgumentError, match="duplicate path"):
            sp.save(state, tmp_path / "same")
    sp.save({"r": sp.per_rank(1), "w": torch.ones(2)}, tmp_path / "whole")
    sealpoint.copy(tmp_path / "whole", tmp_path / "part", drop=["sealpoint.tree.rank*"])
    place = {"r": sp.per_rank(0), "w": torch.ones(2)}
    for load in (lambda: sp.load_full(tmp_path / "part"), lambda: sp.load(place, tmp_path / "part")):
        with pytest.raises(sealpoint.CorruptError, match="rank 0"):
            load()
