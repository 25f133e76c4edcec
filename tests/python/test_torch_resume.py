# SPDX-License-Identifier: Apache-2.0
"""A training that stopped goes on in new objects, with the losses that it would have had; or one error says why not."""

import collections
import warnings

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: see scripts/python_env.sh")

import sealpoint  # noqa: E402
import sealpoint.torch as sp  # noqa: E402
from sealpoint._hints import extra_part, nearest  # noqa: E402
from torch import optim  # noqa: E402
from torch.distributed.checkpoint import state_dict as dcp_states  # noqa: E402


class Model(torch.nn.Module):
    """With a frozen parameter, one that is used at two places, and a scalar."""

    def __init__(self):
        super().__init__()
        self.frozen = torch.nn.Linear(4, 4)
        self.frozen.requires_grad_(False)
        self.up, self.down = torch.nn.Linear(4, 6), torch.nn.Linear(6, 4, bias=False)
        self.tied = torch.nn.Linear(6, 4, bias=False)
        self.tied.weight = self.down.weight
        self.scale = torch.nn.Parameter(torch.tensor(1.5))

    def forward(self, x):
        hidden = torch.tanh(self.up(self.frozen(x)))
        return (self.down(hidden) + self.tied(hidden).square()) * self.scale


class Training:
    def __init__(self, make_optimizer, seed, make_scheduler=None):
        torch.manual_seed(seed)
        self.model = Model()
        self.optimizer = make_optimizer(self.model)
        self.scheduler = make_scheduler and make_scheduler(self.optimizer)
        self.scaler = torch.amp.GradScaler("cpu", init_scale=2.0**seed, growth_interval=2)

    def step(self, number):
        torch.manual_seed(number)
        x = torch.randn(8, 4)
        self.optimizer.zero_grad()
        value = self.model(x).square().mean()
        self.scaler.scale(value).backward()
        self.scaler.unscale_(self.optimizer)
        if isinstance(self.optimizer, optim.LBFGS):
            self.optimizer.step(lambda: self.plain_loss(x))
        else:
            self.scaler.step(self.optimizer)
        self.scaler.update()
        if self.scheduler:
            self.scheduler.step()
        return value.item()

    def plain_loss(self, x):
        self.optimizer.zero_grad()
        value = self.model(x).square().mean()
        value.backward()
        return value

    def state(self):
        state = {"model": self.model, "optimizer": self.optimizer, "scaler": self.scaler}
        return state | ({"scheduler": self.scheduler} if self.scheduler else {})

    def losses(self, steps):
        return [self.step(number) for number in steps]


def used(model):
    return [one for one in model.parameters() if one.requires_grad]


OPTIMIZERS = {
    "sgd": lambda model: optim.SGD(used(model), lr=0.1),
    "momentum": lambda model: optim.SGD(used(model), lr=0.1, momentum=0.9, nesterov=True),
    "adam, amsgrad": lambda model: optim.Adam(used(model), lr=0.1, amsgrad=True),
    "adamw, fused": lambda model: optim.AdamW(used(model), lr=0.1, fused=True),
    "adamw, a tensor for lr": lambda model: optim.AdamW(used(model), lr=torch.tensor(0.1), foreach=False),
    "all parameters": lambda model: optim.AdamW(model.parameters(), lr=0.1),
    "two groups": lambda model: optim.AdamW(
        [{"params": model.up.parameters(), "lr": 0.3}, {"params": [model.scale, model.down.weight]}], lr=0.1),
    "named": lambda model: optim.AdamW(model.named_parameters(), lr=0.1),
    "nadam": lambda model: optim.NAdam(used(model), lr=0.1),
    "radam": lambda model: optim.RAdam(used(model), lr=0.1),
    "adagrad": lambda model: optim.Adagrad(used(model), lr=0.1),
    "adadelta": lambda model: optim.Adadelta(used(model)),
    "adamax": lambda model: optim.Adamax(used(model), lr=0.1),
    "asgd": lambda model: optim.ASGD(used(model), lr=0.1),
    "rmsprop": lambda model: optim.RMSprop(used(model), lr=0.01, centered=True, momentum=0.5),
    "rprop": lambda model: optim.Rprop(used(model), lr=0.01),
    "adafactor": lambda model: optim.Adafactor(used(model), lr=0.1),
    "lbfgs": lambda model: optim.LBFGS(used(model), lr=0.1, max_iter=2),
}  # fmt: skip


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_losses_are_those_of_a_training_that_was_not_interrupted(name, tmp_path):
    training = Training(OPTIMIZERS[name], seed=1)
    training.losses(range(3))
    for group in training.optimizer.param_groups:
        group["weight_decay"] = 0.07  # of a run that was tuned by hand
    sp.save(training.state(), tmp_path / "c")
    expected = training.losses(range(3, 7))
    resumed = Training(OPTIMIZERS[name], seed=2)
    sp.load(resumed.state(), tmp_path / "c")
    assert resumed.losses(range(3, 7)) == expected
    assert [group["weight_decay"] for group in resumed.optimizer.param_groups] == [0.07] * len(
        training.optimizer.param_groups
    )


SCHEDULERS = {
    "cosine": lambda optimizer: optim.lr_scheduler.CosineAnnealingLR(optimizer, 5),
    "one cycle": lambda optimizer: optim.lr_scheduler.OneCycleLR(optimizer, 0.3, total_steps=10),
    "lambda": lambda optimizer: optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.9**step),
    "sequence": lambda optimizer: optim.lr_scheduler.SequentialLR(
        optimizer, [optim.lr_scheduler.LinearLR(optimizer), optim.lr_scheduler.StepLR(optimizer, 2)], [2]),
}  # fmt: skip


@pytest.mark.parametrize("name", SCHEDULERS)
def test_schedules_of_the_learning_rate_go_on(name, tmp_path):
    training = Training(OPTIMIZERS["all parameters"], 1, SCHEDULERS[name])
    training.losses(range(3))
    sp.save(training.state(), tmp_path / "c")
    expected = training.losses(range(3, 7))
    resumed = Training(OPTIMIZERS["all parameters"], 2, SCHEDULERS[name])
    sp.load(resumed.state(), tmp_path / "c")
    assert resumed.losses(range(3, 7)) == expected


def test_what_a_scheduler_adds_to_groups_is_loaded_before_there_is_one(tmp_path):
    training = Training(OPTIMIZERS["all parameters"], 1, SCHEDULERS["cosine"])
    training.losses(range(3))
    sp.save({"optimizer": training.optimizer}, tmp_path / "c")
    resumed = Training(OPTIMIZERS["all parameters"], 2)
    sp.load({"optimizer": resumed.optimizer}, tmp_path / "c")
    assert resumed.optimizer.param_groups[0]["initial_lr"] == 0.1


FORMS = {
    "objects": lambda one: {"model": one.model, "optimizer": one.optimizer},
    "state dicts": lambda one: {"model": one.model.state_dict(), "optimizer": one.optimizer.state_dict()},
}


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
    "objects": ("give the optimizer itself", FORMS["objects"], None),
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
    """Whatever is allowed: nothing of the state of one form is found in another."""
    def make(seed):
        return Training(lambda model: OPTIMIZERS[optimizer](model.requires_grad_()), seed)

    training = make(1)
    training.optimizer.param_groups[0]["lr"] = 0.05
    training.losses(range(3))
    sp.save(WAYS_OUT[stored][1](training), tmp_path / "c")
    training.scaler = make(2).scaler
    expected = training.losses(range(3, 7))
    resumed = make(2)
    words, make_state, options = WAYS_OUT[stored]
    if own != stored:
        with pytest.raises(sealpoint.MismatchError, match=words) as error:
            sp.load(WAYS_OUT[own][1](resumed), tmp_path / "c", contract=ALLOWED[allowed])
        assert error.value.object == "optimizer" and "partial" not in str(error.value)
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
    for one in pair:
        one.losses(range(2))
    sp.save(state_of(*pair), tmp_path / "c")
    back = [Training(OPTIMIZERS["adam, amsgrad"], seed) for seed in (3, 4)]
    sp.load(state_of(*back), tmp_path / "c")
    for one, other in zip(pair, back, strict=True):
        assert one.optimizer.state_dict()["state"].keys() == other.optimizer.state_dict()["state"].keys()
        for a, b in zip(one.optimizer.state.values(), other.optimizer.state.values(), strict=True):
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
        for one in (state["optimizers"][0], state["pair"][1]):
            self.training.optimizer.load_state_dict(one)


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
    with pytest.raises(sealpoint.MismatchError, match=r"emptied by optimizer\.state\.clear\(\) before the load"):
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
    with pytest.raises(sealpoint.MismatchError, match="no state yet.*give the optimizer itself") as error:
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


def test_optimizers_of_other_parameters_are_refused_before_a_byte_is_read(tmp_path):
    training = Training(OPTIMIZERS["two groups"], seed=1)
    training.losses(range(2))
    sp.save(FORMS["objects"](training), tmp_path / "c")
    for name, text in (("all parameters", "1 elements, the checkpoint 2"), ("fewer", "1 parameters, the checkpoint 2")):
        fresh = Training(OPTIMIZERS.get(name, lambda model: optim.AdamW(
            [{"params": model.up.parameters()}, {"params": [model.scale]}])), seed=2)  # fmt: skip
        with pytest.raises(sealpoint.MismatchError, match=text):
            sp.load(FORMS["objects"](fresh), tmp_path / "c")
        assert not fresh.optimizer.state
        assert not torch.equal(fresh.model.up.weight, training.model.up.weight)


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


def test_an_error_leaves_a_new_optimizer_as_it_was(tmp_path):
    training = Training(OPTIMIZERS["adam, amsgrad"], seed=1)
    training.losses(range(2))
    sp.save({"optimizer": training.optimizer, "n": 1}, tmp_path / "c")
    fresh = Training(OPTIMIZERS["adam, amsgrad"], seed=2)
    del training.optimizer.state[training.model.scale]["exp_avg"]
    for one in (fresh, training):
        before = {number: set(entries) for number, entries in one.optimizer.state_dict()["state"].items()}
        with pytest.raises(sealpoint.MismatchError):
            sp.load({"optimizer": one.optimizer}, tmp_path / "c")
        assert {number: set(entries) for number, entries in one.optimizer.state_dict()["state"].items()} == before


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


def test_all_differences_are_in_one_error(tmp_path):
    stored = {"weight": torch.ones(2, 3), "bias": torch.ones(3), "scale": torch.ones(1), "n": 1, "list": [torch.ones(1)]}
    sp.save({"model": stored}, tmp_path / "c")
    own = {"weigth": torch.zeros(2, 3), "bias": torch.zeros(3, dtype=torch.float64), "scale": torch.zeros(2),
           "n": torch.zeros(1), "list": [torch.zeros(1), torch.zeros(1)], "more": {f"x{i}": 0 for i in range(9)}}
    with pytest.raises(sealpoint.MismatchError) as error:
        sp.load({"model": own}, tmp_path / "c")
    text = str(error.value)
    for part in ("10 missing", "model.weigth (the checkpoint has model.weight)", "model.more.x3 and 5 more",
                 "1 unexpected, which no rank's state has: model.weight", "2 of another kind",
                 "model.n (the state has a tensor, the checkpoint 1)", "2 elements, the checkpoint 1 elements",
                 "1 of another dtype: model.bias (stored as f32, requested as f64)",
                 "1 of another shape: model.scale (stored with [1], requested with [2])"):  # fmt: skip
        assert part in text, (part, text)
    assert error.value.object == "model.weigth"
    report = sp.load({"model": own | {"bias": torch.zeros(3), "scale": torch.zeros(1)}}, tmp_path / "c",
                     contract=sp.Contract(missing="report", unexpected="report", kind="report"))
    assert collections.Counter(kind for kind, _, _ in report.findings) == {"missing": 10, "unexpected": 1, "kind": 2}


def test_tensors_that_differ_are_counted_and_named(tmp_path):
    """These the library finds, if nothing else differs."""
    sp.save({f"t{i}": torch.ones(2) for i in range(6)}, tmp_path / "c")
    wrong = {f"t{i}": torch.zeros(3) if i % 2 else torch.zeros(2, dtype=torch.float64) for i in range(6)}
    with pytest.raises(sealpoint.MismatchError) as error:
        sp.load(wrong, tmp_path / "c")
    text = str(error.value)
    assert "t1, t2, t3, t4, ...; in all 3 dtype, 3 shape" in text, text


@pytest.mark.parametrize(("stored", "own", "text"), [
    ("module.", "", "4 of the checkpoint's names have a part 'module', without which they are the state's"),
    ("", "module.", "4 of the state's names have a part 'module', without which they are the checkpoint's"),
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


def test_a_mount_that_is_not_there_is_no_new_training(tmp_path):
    state = {"n": 1}
    for lost in (tmp_path / "mount" / "job", tmp_path / "a" / "b" / "c"):
        with pytest.raises(sealpoint.IoError, match="mount it, or make it for a new training"):
            sp.Checkpointer(lost).resume(state)
        with pytest.raises(sealpoint.IoError, match="mount it"):
            sealpoint.Series(lost).newest()
        assert sealpoint.Series(lost).list() == []
    new = sp.Checkpointer(tmp_path / "new")
    assert new.resume(state) is None
    with pytest.raises(sealpoint.NotFoundError, match="required is True"):
        new.resume(state, required=True)
    with new:
        new.save(3, state)
    assert new.resume({"n": 0}, required=True) == 3


def test_a_new_training_beside_checkpoints_of_other_programs_is_told(tmp_path, caplog):
    assert sp.Checkpointer(tmp_path).resume({"n": 1}) is None and not caplog.records
    (tmp_path / "step-10").mkdir()
    (tmp_path / "step-10" / ".metadata").write_bytes(b"")
    assert sp.Checkpointer(tmp_path).resume({"n": 1}) is None
    (record,) = caplog.records
    assert record.name == "sealpoint" and "a folder of 1 checkpoints of other programs (step-10)" in record.message


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
        with pytest.raises(sealpoint.InvalidArgumentError, match="is a checkpoint itself.*give its parent directory"):
            call()
