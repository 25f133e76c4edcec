# SPDX-License-Identifier: Apache-2.0
"""States of plain tensors, described and matched all at once: what is reused, and that no change is missed."""

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: see scripts/python_env.sh")

import sealpoint  # noqa: E402
import sealpoint.torch as sp  # noqa: E402
from sealpoint.torch import _state  # noqa: E402
from sealpoint.torch._outline import outline_of  # noqa: E402
from sealpoint.torch._session import session_of  # noqa: E402


def content(path):
    with sealpoint.open(path) as checkpoint:
        tensors = {name: (one.dtype_name, one.shape, bytes(one.read_bytes()) if hasattr(one, "read_bytes") else repr(one.read()))
                   for name, one in checkpoint.items()}  # fmt: skip
        return tensors, {name: bytes(checkpoint.objects[name]) for name in checkpoint.objects}


def forget():
    session_of(None, is_alone=True).memory.clear()


@pytest.fixture
def described(monkeypatch):
    """The states that saves described anew."""
    states, real = [], _state.rank_state

    def note(slots, options):
        states.append(len(slots))
        return real(slots, options)

    monkeypatch.setattr(_state, "rank_state", note)
    forget()
    return states


def new_state():
    torch.manual_seed(1)
    state = {
        "a": torch.randn(4, 4), "b": torch.randn(4, 4), "z": torch.randn(4, dtype=torch.complex64), "n": 1, "x": 0.0, "on": True,
        "states": {0: {"step": torch.tensor(3.0), "lr": 0.1}, 1: {"step": torch.tensor(4.0), "lr": 0.2}},
        "list": [torch.ones(2), "text"], "pair": (2, torch.zeros(3)), "rng": sp.per_rank({"t": torch.ones(5), "i": 3}),
        "none": torch.empty(0),
    }  # fmt: skip
    state["inner"] = {"one": torch.randn(2, 3)}
    return state


def replace_dtype(state):
    state["a"].data = state["a"].data.view(torch.int32)


# The change, and whether tensors are described anew.
SEEN = {
    "nothing": (lambda state: None, False),
    "elements": (lambda state: state["a"].mul_(2), False),
    "number": (lambda state: state.update(n=2), False),
    "sign of zero": (lambda state: state.update(x=-0.0), False),
    "number in a mapping by number": (lambda state: state["states"][1].update(lr=0.5), False),
    "text in a list": (lambda state: state["list"].__setitem__(1, "other"), False),
    "number in a tuple": (lambda state: state.update(pair=(5, state["pair"][1])), False),
    "value of a rank": (lambda state: state["rng"].value.update(i=4), False),
    "tensor of a rank": (lambda state: state["rng"].value.update(t=torch.zeros(5)), False),
    "memory": (lambda state: state.update(a=state["b"] + 1, b=state["a"] + 1), False),
    "kind of a number": (lambda state: state.update(on=1), True),
    "memory shared": (lambda state: state.update(b=state["a"]), True),
    "name": (lambda state: state.update(c=state.pop("a")), True),
    "order": (lambda state: state.update(a=state.pop("a")), True),
    "dtype in place": (replace_dtype, True),
    "shape": (lambda state: state.update(a=state["a"].view(2, 8)), True),
    "shape with the same strides": (lambda state: state.update(a=state["a"][:2]), True),
    "strides": (lambda state: state.update(a=state["a"].t()), True),
    "conjugation": (lambda state: state.update(z=state["z"].conj()), True),
    "negation": (lambda state: state.update(a=torch._neg_view(state["a"])), True),
    "tensor becomes a number": (lambda state: state.update(a=1), True),
    "number becomes a tensor": (lambda state: state.update(n=torch.ones(1)), True),
    "longer list": (lambda state: state["list"].append(1), True),
    "list becomes a tuple": (lambda state: state.update(list=tuple(state["list"])), True),
    "rank's value becomes a common one": (lambda state: state.update(rng=state["rng"].value), True),
    "key of another type": (lambda state: state.update(states={str(key): one for key, one in state["states"].items()}), True),
}  # fmt: skip


@pytest.mark.parametrize("is_plain", [False, True])
@pytest.mark.parametrize("change", SEEN)
def test_change_is_seen(change, is_plain, place, described):
    state, (apply, is_described) = new_state(), SEEN[change]
    if is_plain:
        del state["none"]  # tensors that are described all at once
    assert outline_of({**state, "rng": state["rng"].value}).is_plain() == is_plain
    sp.save(state, place / "first", no_dist=True)
    apply(state)
    described.clear()
    sp.save(state, place / "second", no_dist=True)
    assert bool(described) == is_described
    forget()
    sp.save(state, place / "fresh", no_dist=True)
    assert content(place / "second") == content(place / "fresh")


def test_memory_no_longer_shared_is_seen(place, described):
    state = {"a": torch.ones(2), "b": torch.ones(2)}
    for a, b in ((state["a"], state["a"]), (state["a"], state["b"].mul_(3))):
        sp.save({"a": a, "b": b}, place / f"{float(b[0])}", no_dist=True)
    assert sp.load_full(place / "3.0")["b"].tolist() == [3, 3]
    with sealpoint.open(place / "1.0") as checkpoint:
        assert list(checkpoint) == ["a"], "stored once"


def test_other_outermost_container_is_seen(place, described):
    for made in (list, tuple):
        sp.save(made([torch.ones(2), torch.zeros(2)]), place / made.__name__, no_dist=True)
        assert type(sp.load_full(place / made.__name__)) is made


@pytest.mark.parametrize("option", [{"codec": "zstd"}, {"chunk_size_bytes": 1 << 16}, {"frozen": ["a"]}, {"allow_pickle": True}])
def test_other_option_is_seen(option, place, described):
    state = new_state()
    sp.save(state, place / "first", no_dist=True)
    described.clear()
    sp.save(state, place / "second", no_dist=True, **option)
    assert described
    described.clear()
    sp.save(state, place / "third", no_dist=True, step=3, provenance={"a": "b"}, **option)
    assert not described


def test_option_changed_in_place_is_seen(place, described):
    state, frozen = new_state(), ["a"]
    sp.save(state, place / "first", no_dist=True, frozen=frozen)
    frozen.append("b")
    described.clear()
    sp.save(state, place / "second", no_dist=True, frozen=frozen)
    assert described


def test_other_parameters_of_an_optimizer_are_seen(place, described):
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))
    for number, parameters in enumerate((list(model.parameters()), [*model[1].parameters(), *model[0].parameters()])):
        optimizer = torch.optim.SGD(parameters)
        sp.save({"model": model, "optimizer": optimizer}, place / f"{number}", no_dist=True)
    forget()
    sp.save({"model": model, "optimizer": optimizer}, place / "fresh", no_dist=True)
    assert content(place / "1") == content(place / "fresh")


def test_other_stream_and_mesh_are_other_outlines():
    outline = outline_of({"a": torch.ones(2)})
    assert outline.is_like(outline_of({"a": torch.zeros(2)}))
    assert not outline.is_like(outline._replace(streams={torch.device("cuda:0"): 7}))
    assert not outline._replace(meshes=[object()]).is_like(outline._replace(meshes=[object()]))


def test_background_save_keeps_its_values(place, described):
    state = new_state()
    futures = []
    for number in range(4):
        state["a"].fill_(number)
        state["n"] = number
        state["rng"].value["t"] = torch.full((5,), float(number))
        futures.append(sp.save_async(state, place / f"{number}", no_dist=True))
    for number, future in enumerate(futures):
        future.result()
        found = sp.load_full(place / f"{number}")
        assert found["n"] == number and found["a"][0, 0] == number and found["rng"][0]["t"][0] == number
    assert len(described) == 1


def test_description_does_not_keep_the_tensors_alive(place, described):
    import gc
    import weakref

    state = {"a": torch.ones(2)}
    sp.save(state, place / "c", no_dist=True)
    alive = weakref.ref(state["a"].untyped_storage()), weakref.ref(state["a"])
    del state
    gc.collect()
    assert alive[1]() is None


def test_failed_save_leaves_nothing_wrong(place, described):
    state = new_state()
    sp.save(state, place / "c", no_dist=True)
    state["n"], state["a"] = 5, state["a"] + 1
    with pytest.raises(sealpoint.AlreadyExistsError):
        sp.save(state, place / "c", no_dist=True)
    state["list"][1] = "\ud800"
    with pytest.raises(sealpoint.Error, match="list"):
        sp.save(state, place / "d", no_dist=True)
    state["list"][1] = "text"
    sp.save(state, place / "d", no_dist=True)
    forget()
    sp.save(state, place / "fresh", no_dist=True)
    assert content(place / "d") == content(place / "fresh")


@pytest.mark.parametrize("change, error", [
    (lambda state: state.update(b=state["a"][2:]), None),
    (lambda state: state.update(b=state["a"][1:3]), sealpoint.MismatchError),
    (lambda state: state.update(a=torch.zeros(4, 2)[:, 0]), None),
    (lambda state: state.update(a=torch.zeros(4, dtype=torch.int64)), sealpoint.MismatchError),
    (lambda state: state.update(a=torch.zeros(2, 2)), sealpoint.MismatchError),
    (lambda state: state.update(a=torch.empty(4, device="meta")), sealpoint.UnsupportedError),
    (lambda state: state.update(a=torch._neg_view(torch.zeros(4))), sealpoint.UnsupportedError),
])  # fmt: skip
def test_destinations_that_are_not_apart_or_not_alike(change, error, place):
    sp.save({"a": torch.arange(4.0), "b": torch.tensor([2.0, 3.0])}, place / "c")
    state = {"a": torch.zeros(4), "b": torch.zeros(2)}
    change(state)
    if error is not None:
        with pytest.raises(error):
            sp.load(state, place / "c")
        return
    version = state["a"]._version
    sp.load(state, place / "c")
    assert state["a"].tolist() == [0, 1, 2, 3] and state["b"].tolist() == [2, 3] and state["a"]._version > version
