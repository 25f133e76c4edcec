# SPDX-License-Identifier: Apache-2.0
"""More of trainings that stopped and go on in new objects, by night."""

import re
import warnings

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: see scripts/python_env.sh")

import sealpoint  # noqa: E402
import sealpoint.torch as sp  # noqa: E402
from sealpoint._hints import extra_part, nearest  # noqa: E402
from test_torch_resume import FORMS, OPTIMIZERS, SCHEDULERS, Model, Training  # noqa: E402
from torch import optim  # noqa: E402
from torch.distributed.checkpoint import state_dict as dcp_states  # noqa: E402


def test_what_a_scheduler_adds_to_groups_is_loaded_before_there_is_one(tmp_path):
    training = Training(OPTIMIZERS["all parameters"], 1, SCHEDULERS["cosine"])
    training.losses(range(3))
    sp.save({"optimizer": training.optimizer}, tmp_path / "c")
    resumed = Training(OPTIMIZERS["all parameters"], 2)
    sp.load({"optimizer": resumed.optimizer}, tmp_path / "c")
    assert resumed.optimizer.param_groups[0]["initial_lr"] == 0.1


@pytest.mark.parametrize("form", FORMS)
def test_either_form_that_was_saved_is_loaded_into_objects(form, tmp_path):
    training = Training(OPTIMIZERS["all parameters"], seed=1)
    training.losses(range(3))
    sp.save(FORMS[form](training), tmp_path / "c")
    training.scaler = Training(OPTIMIZERS["all parameters"], seed=2).scaler
    expected = training.losses(range(3, 7))
    resumed = Training(OPTIMIZERS["all parameters"], seed=2)
    sp.load(FORMS["objects"](resumed), tmp_path / "c")
    assert resumed.losses(range(3, 7)) == expected


FLAT = dcp_states.StateDictOptions(flatten_optimizer_state_dict=True)


def by_names(training, options=None):
    return dict(zip(("model", "optimizer"), dcp_states.get_state_dict(training.model, training.optimizer, options=options),
                    strict=True))


# By what is stored, how the error's way out is gone in new objects: (part of the error, state to load into, what follows).
WAYS_OUT = {
    "objects": ("pass the optimizer itself", FORMS["objects"], None),
    "names": (r"get_state_dict\(model, optimizer\).*set_state_dict", by_names, {}),
    "flat": ("flatten_optimizer_state_dict=True.*set_state_dict", lambda one: by_names(one, FLAT), {"options": FLAT}),
}
ALLOWED = {
    "strict": None,
    "partial": sp.Contract.partial(),
    "all": sp.Contract(**dict.fromkeys(("missing", "unexpected", "dtype", "shape", "kind"), "allow")),
}


@pytest.mark.parametrize("allowed", ALLOWED)
@pytest.mark.parametrize("optimizer", ["momentum", "sgd"])
@pytest.mark.parametrize("own", WAYS_OUT)
@pytest.mark.parametrize("stored", WAYS_OUT)
def test_optimizers_by_numbers_and_by_names_are_told_apart(stored, own, optimizer, allowed, tmp_path):
    """Each form resumes exactly or is refused, whatever is allowed. An optimizer itself takes every form."""
    def make(seed):
        return Training(lambda model: OPTIMIZERS[optimizer](model.requires_grad_()), seed)

    training = make(1)
    training.optimizer.param_groups[0]["lr"] = 0.05
    training.losses(range(3))
    sp.save(WAYS_OUT[stored][1](training), tmp_path / "c")
    training.scaler = make(2).scaler
    expected = training.losses(range(3, 7))
    resumed = make(2)
    form = own
    if own not in (stored, "objects") and optimizer == "momentum":  # plain SGD has no state that could be lost
        with pytest.raises(sealpoint.MismatchError, match=WAYS_OUT[stored][0]) as error:
            sp.load(WAYS_OUT[own][1](resumed), tmp_path / "c", contract=ALLOWED[allowed])
        assert error.value.object == "optimizer" and "partial" not in str(error.value)
        form = stored
    _, make_state, options = WAYS_OUT[form]
    state = make_state(resumed)
    sp.load(state, tmp_path / "c", contract=ALLOWED[allowed])
    if options is not None:
        dcp_states.set_state_dict(resumed.model, resumed.optimizer, model_state_dict=state["model"],
                                  optim_state_dict=state["optimizer"], **options)
    assert resumed.losses(range(3, 7)) == expected
    assert resumed.optimizer.param_groups[0]["lr"] == 0.05


def test_lists_of_optimizers_and_objects_of_each_rank(tmp_path):
    def state_of(one, other):
        return {"optimizers": [one.optimizer, {"second": (other.optimizer, 1)}], "own": sp.per_rank(one.scaler)}

    pair = [Training(OPTIMIZERS["adam, amsgrad"], seed) for seed in (1, 2)]
    for item in pair:
        item.losses(range(2))
    sp.save(state_of(*pair), tmp_path / "c")
    back = [Training(OPTIMIZERS["adam, amsgrad"], seed) for seed in (3, 4)]
    sp.load(state_of(*back), tmp_path / "c")
    for item, other in zip(pair, back, strict=True):
        assert item.optimizer.state_dict()["state"].keys() == other.optimizer.state_dict()["state"].keys()
        for a, b in zip(item.optimizer.state.values(), other.optimizer.state.values(), strict=True):
            assert all(torch.equal(a[key], b[key]) for key in a)
    assert back[0].scaler.get_scale() == pair[0].scaler.get_scale() != pair[1].scaler.get_scale()


class Application:
    """As the tutorials of torch.distributed.checkpoint have it, but with the optimizer itself in its state."""

    def __init__(self, training):
        self.training = training

    def state_dict(self):
        return {"model": self.training.model, "optimizers": [self.training.optimizer], "pair": (1, self.training.optimizer)}

    def load_state_dict(self, state):
        self.training.model.load_state_dict(state["model"])
        for item in (state["optimizers"][0], state["pair"][1]):
            self.training.optimizer.load_state_dict(item)


def test_an_optimizer_within_the_state_of_another_object_is_filled(tmp_path):
    training = Training(OPTIMIZERS["adam, amsgrad"], seed=1)
    training.losses(range(3))
    sp.save({"application": Application(training)}, tmp_path / "c")
    training.scaler = Training(OPTIMIZERS["adam, amsgrad"], seed=2).scaler
    expected = training.losses(range(3, 7))
    resumed = Training(OPTIMIZERS["adam, amsgrad"], seed=2)
    sp.load({"application": Application(resumed)}, tmp_path / "c")
    assert resumed.losses(range(3, 7)) == expected


def test_an_optimizer_with_more_state_than_was_stored_is_told_how_to_go_back(tmp_path):
    training = Training(OPTIMIZERS["momentum"], seed=1)
    sp.save(FORMS["objects"](training), tmp_path / "c")
    training.losses(range(3))
    with pytest.raises(sealpoint.MismatchError, match=r"the optimizer has more state than was stored"):
        sp.load(FORMS["objects"](training), tmp_path / "c")
    training.optimizer.state.clear()
    sp.load(FORMS["objects"](training), tmp_path / "c")
    assert not training.optimizer.state


@pytest.mark.parametrize("contract", [None, sp.Contract.partial()], ids=["strict", "partial"])
def test_a_state_dict_without_room_for_moments_is_refused(contract, tmp_path):
    training = Training(OPTIMIZERS["momentum"], seed=1)
    training.losses(range(2))
    sp.save(FORMS["objects"](training), tmp_path / "c")
    fresh = Training(OPTIMIZERS["momentum"], seed=2)
    with pytest.raises(sealpoint.MismatchError, match="no state yet.*pass the optimizer itself") as error:
        sp.load(FORMS["state dicts"](fresh), tmp_path / "c", contract=contract)
    assert "partial" not in str(error.value), "which would lead to a training that goes on without moments"
    assert error.value.object == "optimizer"
    assert not torch.equal(fresh.model.up.weight, training.model.up.weight), "nothing was read"
    sp.load({"model": fresh.model}, tmp_path / "c", contract=sp.Contract.partial())


def test_hyper_parameters_that_were_loaded_into_a_copy_are_told(tmp_path):
    training = Training(OPTIMIZERS["momentum"], seed=1)
    training.losses(range(2))
    sp.save(FORMS["objects"](training), tmp_path / "c")
    state = FORMS["state dicts"](training)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sp.load(state, tmp_path / "c")  # nothing changes
    training.optimizer.param_groups[0]["lr"] = 0.5
    state = FORMS["state dicts"](training)
    with pytest.warns(RuntimeWarning, match="hyper-parameters of optimizer were loaded into a copy") as warned:
        sp.load(state, tmp_path / "c")
    assert warned[0].filename == __file__
    training.optimizer.load_state_dict(state["optimizer"])
    assert training.optimizer.param_groups[0]["lr"] == 0.1


def test_state_of_a_parameter_that_the_optimizer_does_not_have_is_not_dropped(tmp_path):
    training = Training(OPTIMIZERS["momentum"], seed=1)
    training.losses(range(2))
    state = training.optimizer.state_dict()
    state["state"][99] = {"momentum_buffer": torch.ones(2)}
    sp.save({"optimizer": state}, tmp_path / "c")
    fresh = Training(OPTIMIZERS["momentum"], seed=2)
    with pytest.raises(sealpoint.MismatchError, match="1 unexpected.*optimizer.state.99.momentum_buffer"):
        sp.load({"optimizer": fresh.optimizer}, tmp_path / "c")
    assert not fresh.optimizer.state


def test_a_state_may_be_an_object_or_a_list(tmp_path):
    model, other = Model(), Model()
    sp.save(model, tmp_path / "model")
    sp.load(other, tmp_path / "model")
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), other.parameters(), strict=True))
    sp.save([torch.arange(3.0), 2, {"a": (1, torch.ones(1))}, model], tmp_path / "list")
    back = [torch.zeros(3), 0, {"a": (0, torch.zeros(1))}, other]
    first = back[0]
    sp.load(back, tmp_path / "list")
    assert back[0] is first and torch.equal(first, torch.arange(3.0))
    assert back[1:3] == [2, {"a": (1, torch.ones(1))}]
    sp.save([1, [2, 3]], tmp_path / "values")
    values = same = [0]
    sp.load(values, tmp_path / "values")
    assert same == [1, [2, 3]], "in place"
    optimizer = optim.SGD(model.parameters(), lr=0.25)
    sp.save(optimizer, tmp_path / "optimizer")
    again = optim.SGD(model.parameters(), lr=0.5)
    sp.load(again, tmp_path / "optimizer")
    assert again.param_groups[0]["lr"] == 0.25


@pytest.mark.parametrize("value", [3, "text", None, (1, 2.5), [], {}, [torch.ones(2), 2], sp.per_rank(5)], ids=repr)
def test_whatever_was_saved_comes_back_as_new(value, tmp_path):
    sp.save(value, tmp_path / "c")
    found = sp.load_full(tmp_path / "c")
    if isinstance(value, list) and value:
        assert torch.equal(found[0], value[0]) and found[1:] == value[1:]
    else:
        assert found == ([5] if isinstance(value, sp.PerRank) else value)


def test_states_that_cannot_be_filled_are_refused(tmp_path):
    with pytest.raises(sealpoint.InvalidArgumentError, match="tensor has no name"):
        sp.save(torch.ones(2), tmp_path / "tensor")
    sp.save([1, 2], tmp_path / "c")
    for value in (3, (1, 2), torch.ones(2), sp.per_rank([1, 2]), None):
        with pytest.raises(sealpoint.InvalidArgumentError, match="expected a mapping, a list or an object"):
            sp.load(value, tmp_path / "c")
    for other in ({"a": 1}, Model()):
        with pytest.raises(sealpoint.MismatchError, match="the state itself"):
            sp.load(other, tmp_path / "c")
    sp.save({"a": 1}, tmp_path / "d")
    with pytest.raises(sealpoint.MismatchError, match="the state is a list"):
        sp.load([1, 2], tmp_path / "d")


def test_a_model_without_memory_is_told_how_to_get_some(tmp_path):
    model = Model()
    sp.save({"model": model}, tmp_path / "c")
    with torch.device("meta"):
        blank = Model()
    with pytest.raises(sealpoint.UnsupportedError, match=r"meta.*to_empty\(device="):
        sp.load({"model": blank}, tmp_path / "c")
    blank.to_empty(device="cpu")
    sp.load({"model": blank}, tmp_path / "c")
    assert torch.equal(blank.up.weight, model.up.weight)


def test_tensors_that_differ_are_counted_and_named(tmp_path):
    sp.save({f"t{i}": torch.ones(2) for i in range(6)}, tmp_path / "c")
    wrong = {f"t{i}": torch.zeros(3) if i % 2 else torch.zeros(2, dtype=torch.float64) for i in range(6)}
    with pytest.raises(sealpoint.MismatchError) as error:
        sp.load(wrong, tmp_path / "c")
    text = str(error.value)
    assert re.search(r"3 of another dtype: t0 \(stored as f32, requested as f64\), t2.*; 3 of another shape: t1 ", text), text


@pytest.mark.parametrize(("stored", "own", "text"), [
    ("module.", "", "4 names of the checkpoint differ from names of the state only by the part 'module'"),
    ("", "module.", "4 names of the state differ from names of the checkpoint only by the part 'module'"),
    ("_orig_mod.module.", "", "4 of the checkpoint's names have a part '_orig_mod.module'"),
])
def test_names_with_another_prefix_are_told(stored, own, text, tmp_path):
    tensors = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)).state_dict()
    sp.save({"model": {stored + name: tensor for name, tensor in tensors.items()}}, tmp_path / "c")
    state = {"model": {own + name: tensor for name, tensor in tensors.items()}}
    for contract in (None, sp.Contract.partial()):
        with pytest.raises(sealpoint.MismatchError) as error:
            sp.load(state, tmp_path / "c", contract=contract)
        assert text in str(error.value), error.value


def test_hints():
    names = [f"layers.{i}.weight" for i in range(2000)]
    assert nearest("layers.7.weigth", names) == "layers.7.weight"
    assert nearest("layer.7.weight", names) == "layers.7.weight"
    assert nearest("optimizer", names) is None
    assert nearest("x", []) is None
    assert extra_part(["a.module.b", "a.module.c", "d"], {"a.b", "a.c"}) == ("module", 2)
    assert extra_part(["a.b"], {"a.c"}) is None


def test_a_wrong_name_gets_a_suggestion(tmp_path):
    sp.save({"model": {"weight": torch.ones(2)}}, tmp_path / "c")
    with sealpoint.open(tmp_path / "c") as checkpoint:
        with pytest.raises(KeyError, match="nearest is model.weight"):
            checkpoint["model.weigth"]
        with pytest.raises(sealpoint.NotFoundError) as error:
            checkpoint["x"]
        assert "nearest" not in str(error.value)
        assert checkpoint.get("model.weigth") is None
        assert checkpoint.get("model.weight").shape == (2,)


def test_a_new_training_beside_checkpoints_of_other_programs_is_told(tmp_path, caplog):
    assert sp.Checkpointer(tmp_path).resume({"n": 1}) is None and not caplog.records
    (tmp_path / "step-10").mkdir()
    (tmp_path / "step-10" / ".metadata").write_bytes(b"")
    with pytest.raises(sealpoint.InvalidArgumentError, match=r"1 checkpoints? of other programs \(step-10\)"):
        sp.Checkpointer(tmp_path).resume({"n": 1})
    assert sp.Checkpointer(tmp_path).resume({"n": 1}, allow_foreign=True) is None


def test_a_backward_pass_over_what_was_loaded_meanwhile_is_an_error(tmp_path):
    model = torch.nn.Linear(2, 2)
    sp.save({"model": model}, tmp_path / "c")
    loss = (model(torch.ones(1, 2)) * model.weight).sum()
    sp.load({"model": model.state_dict()}, tmp_path / "c")
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()
    with torch.inference_mode():
        state = {"model": {name: torch.zeros_like(tensor) for name, tensor in model.state_dict().items()}}
    sp.load(state, tmp_path / "c")
    assert torch.equal(state["model"]["weight"], model.weight)


def test_a_checkpoint_given_for_its_series_is_no_new_training(tmp_path):
    with sp.Checkpointer(tmp_path / "run") as checkpoints:
        checkpoints.save(3, {"n": 1})
    path = checkpoints.newest()
    for call in (lambda: sp.Checkpointer(path).resume({"n": 0}), sealpoint.Series(path).newest,
                 sealpoint.Series(path).open_newest):
        with pytest.raises(sealpoint.InvalidArgumentError, match="is a checkpoint, expected.*pass its parent directory"):
            call()
