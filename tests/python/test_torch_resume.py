# SPDX-License-Identifier: Apache-2.0
"""A training that stopped goes on in new objects, with the losses that it would have had; or one error says why not."""

import collections

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: see scripts/python_env.sh")

import sealpoint  # noqa: E402
import sealpoint.torch as sp  # noqa: E402
from torch import optim  # noqa: E402


def test_moments_go_to_their_parameters(tmp_path):
    """By names, whatever the order of parameters and groups; without names a moment of another shape is an error."""
    def training(make_groups):
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 4), torch.nn.Linear(4, 2))
        return model, optim.AdamW(make_groups(dict(model.named_parameters())))

    def groups(*names):
        return lambda all_of: [{"params": [(name, all_of[name]) for name in item.split()], "lr": 0.1 * len(item.split())}
                               for item in names]

    order = ["0.weight", "0.bias", "1.weight", "1.bias", "2.weight", "2.bias"]
    model, optimizer = training(groups(" ".join(order[:4]), " ".join(order[4:])))
    for number in range(2):
        torch.manual_seed(number)
        model(torch.randn(8, 4)).square().mean().backward()
        optimizer.step()
    sp.save({"model": model, "optimizer": optimizer}, tmp_path / "named")
    other, theirs = training(groups("2.bias 2.weight", "1.bias 1.weight 0.bias 0.weight"))
    sp.load({"model": other, "optimizer": theirs}, tmp_path / "named")
    for name, parameter in other.named_parameters():
        mine = dict(model.named_parameters())[name]
        assert torch.equal(theirs.state[parameter]["exp_avg"], optimizer.state[mine]["exp_avg"]), name
    assert [group["param_names"][0] for group in theirs.param_groups] == ["2.bias", "1.bias"]
    assert [group["lr"] for group in theirs.param_groups] == [optimizer.param_groups[1]["lr"], optimizer.param_groups[0]["lr"]]
    for names, said in ((("0.weight", " ".join(order[1:])), "other groups"), ((" ".join(order[1:]), ), "parameters differ")):
        other, theirs = training(groups(*names))
        with pytest.raises(sealpoint.MismatchError, match=said):
            sp.load({"model": other, "optimizer": theirs}, tmp_path / "named", contract=sp.Contract(kind="allow"))
    plain = optim.AdamW(model.parameters())
    plain.load_state_dict({**optimizer.state_dict(), "param_groups": [
        {**optim.AdamW(model.parameters()).state_dict()["param_groups"][0]}]})
    sp.save({"optimizer": plain}, tmp_path / "plain")
    other, _ = training(groups(" ".join(order)))
    reversed_one = optim.AdamW(list(other.parameters())[::-1])
    with pytest.raises(sealpoint.MismatchError, match="the order of the optimizer"):
        sp.load({"optimizer": reversed_one}, tmp_path / "plain")


def test_keys_with_dots_are_nested_mappings(tmp_path):
    """As they are in checkpoints of safetensors and of numpy; where nothing is found, nothing is loaded."""
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
    flat = {f"model.{name}": tensor for name, tensor in model.state_dict().items()}
    sp.save(flat, tmp_path / "flat")
    sealpoint.save({name: tensor.numpy() for name, tensor in flat.items()}, tmp_path / "numpy")
    sp.save({"model": model}, tmp_path / "nested")
    for name in ("flat", "numpy"):
        other = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
        sp.load({"model": other}, tmp_path / name)
        assert torch.equal(other[0].weight, model[0].weight), name
    target = {name: torch.zeros_like(tensor) for name, tensor in flat.items()}
    sp.load(target, tmp_path / "nested")
    assert torch.equal(target["model.0.weight"], model[0].weight)
    with pytest.raises(sealpoint.MismatchError, match="nothing would be loaded; stored names are model.0.weight"):
        sp.load({"other": torch.zeros(2)}, tmp_path / "nested", contract=sp.Contract(missing="allow", unexpected="allow"))


class Turned(torch.nn.Module):
    """Its weights were stored the other way round before version 2."""

    _version = 2

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(2, 2))

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, *rest):
        if local_metadata.get("version", 1) < 2:
            state_dict[prefix + "weight"] = state_dict[prefix + "weight"].t()
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)


def test_versions_of_modules_come_back(tmp_path):
    def model(**weights):
        made = torch.nn.Sequential(torch.nn.BatchNorm1d(2), Turned())
        if weights:
            made[1].weight.data = weights["weight"]
        return made

    source = model(weight=torch.arange(4.0).reshape(2, 2))
    sp.save({"model": source, "nested": {"too": [source.state_dict()]}}, tmp_path / "new")
    for load in (lambda other: sp.load({"model": other}, tmp_path / "new", contract=sp.Contract.partial()),
                 lambda other: other.load_state_dict(sp.load_full(tmp_path / "new")["model"]),
                 lambda other: other.load_state_dict(sp.load_full(tmp_path / "new")["nested"]["too"][0])):  # fmt: skip
        other = model()
        load(other)
        assert torch.equal(other[1].weight, source[1].weight)
    old = model(weight=source[1].weight.detach().t().clone())
    old[1]._version = 1
    sp.save({"model": old}, tmp_path / "old")
    other = model()
    sp.load({"model": other}, tmp_path / "old")
    assert torch.equal(other[1].weight, source[1].weight), "converted, as torch does"
    sp.save({"model": dict(source.state_dict())}, tmp_path / "plain")  # as 1.0.0 stored a module
    other = model()
    sp.load({"model": other}, tmp_path / "plain")
    assert torch.equal(other[1].weight, source[1].weight)


def test_what_is_there_is_taken_or_named(tmp_path, monkeypatch):
    state = {"w": torch.ones(3)}
    run, steps = tmp_path / "runs/a", tmp_path / "steps"
    sp.save(state, run, series=True, step=3)
    sp.save(state, steps / "last")
    (tmp_path / "theirs").mkdir()
    torch.save(state, tmp_path / "theirs/model.pt")
    for place, said in ((tmp_path / "runs", "a directory of series"), (steps, "has no step"), (tmp_path / "theirs", "torch.save")):
        with pytest.raises(sealpoint.InvalidArgumentError, match=said):
            sp.Checkpointer(place).resume(state)
    assert sp.Checkpointer(tmp_path / "theirs").resume(state, allow_foreign=True) is None
    assert sp.Checkpointer(tmp_path / "new").resume(state) is None
    assert sp.Checkpointer(run).resume(state) == 3
    monkeypatch.setenv("WORLD_SIZE", "2")
    for save in (lambda: sp.save(state, run, series=True, step=4), lambda: sp.Checkpointer(run)):
        with pytest.raises(sealpoint.InvalidArgumentError, match="init_process_group"):
            save()
    sp.save(state, run, series=True, step=4, no_dist=True)
    assert sp.Checkpointer(run, no_dist=True).resume(state) == 4


def test_a_step_without_its_metric_deletes_nothing(tmp_path, caplog):
    def kept(given, name):
        caplog.clear()
        with sp.Checkpointer(tmp_path / name, keep=2, keep_best=("metric.loss", "least", 1)) as checkpoints:
            for step, loss in enumerate((3.0, 1.0, 2.0, 4.0, 5.0, 6.0), 1):
                checkpoints.step(step, {"w": torch.ones(2)}, provenance=given(step, loss))
        return sorted(entry.step for entry in sealpoint.Series(tmp_path / name).list())

    assert kept(lambda step, loss: {"metric.loss": loss}, "right") == [2, 5, 6] and not caplog.text
    for number, given in enumerate((lambda step, loss: {"loss": loss}, lambda step, loss: None,
                                    lambda step, loss: {"metric.loss": f"{loss} nats"})):  # fmt: skip
        assert kept(given, f"wrong{number}") == [1, 2, 3, 4, 5, 6]
        assert caplog.text.count("is not ranked by keep_best") == 1
    assert kept(lambda step, loss: {"metric.loss": loss} if step % 3 == 0 else None, "sometimes") == [3, 5, 6]
    with pytest.raises(sealpoint.InvalidArgumentError, match="begins with"):
        sp.Checkpointer(tmp_path, keep=2, keep_best=("loss", "least", 1))


def test_a_training_goes_on_before_a_silent_corruption(tmp_path, caplog):
    def save(checkpoints, step, state, upto):
        checkpoints.step(step, {"w": torch.full((2,), step)}, provenance={"sdc.state": state, "sdc.upto": str(upto)})

    def resumed(**options):
        state = {"w": torch.zeros(2, dtype=torch.int64)}
        checkpoints = sp.Checkpointer(tmp_path / "run", keep=2, keep_checked=1)
        step = checkpoints.resume(state, **options)
        assert step is None or state["w"].tolist() == [step, step]
        return checkpoints, step

    assert resumed(require="checked")[1] is None
    with sp.Checkpointer(tmp_path / "run", keep=2, keep_checked=1) as checkpoints:
        for step, state, upto in ((1, "checked", 0), (2, "checked", 1), (3, "checked", 2), (4, "found", 2), (5, "found", 2)):
            save(checkpoints, step, state, upto)
    assert sorted(entry.step for entry in sealpoint.Series(tmp_path / "run").list()) == [2, 4, 5]
    assert resumed()[1] == 5
    checkpoints, step = resumed(require="checked")
    assert step == 2 and caplog.text.count("not resumed from") == 2 and "R-FPR-04" in caplog.text
    with checkpoints:
        save(checkpoints, 3, "checked", 2)  # although others are newer
    assert resumed()[1] == resumed(require="checked")[1] == 3
    sp.save({"w": torch.ones(2, dtype=torch.int64)}, tmp_path / "none", series=True, step=1)
    with pytest.raises(sealpoint.InvalidArgumentError, match="has no sdc.state") as caught:
        sp.Checkpointer(tmp_path / "none").resume({"w": torch.zeros(2, dtype=torch.int64)}, require="checked")
    assert caught.value.rule == "R-FPR-04"
    with pytest.raises(sealpoint.InvalidArgumentError, match="require is 'verified', expected checked"):
        resumed(require="verified")
    assert sealpoint.Series(tmp_path / "run").open_newest(require="checked").step == 3


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
    return [parameter for parameter in model.parameters() if parameter.requires_grad]


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
    "muon": lambda model: optim.Muon([item for item in used(model) if item.dim() == 2], lr=0.1),
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


FORMS = {
    "objects": lambda one: {"model": one.model, "optimizer": one.optimizer},
    "state dicts": lambda one: {"model": one.model.state_dict(), "optimizer": one.optimizer.state_dict()},
}
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


def test_optimizers_of_other_parameters_are_refused_before_a_byte_is_read(tmp_path):
    training = Training(OPTIMIZERS["two groups"], seed=1)
    training.losses(range(2))
    sp.save(FORMS["objects"](training), tmp_path / "c")
    for name, text in (("all parameters", "only here model.frozen.bias, model.frozen.weight"),
                       ("fewer", "only in the checkpoint model.down.weight")):
        fresh = Training(OPTIMIZERS.get(name, lambda model: optim.AdamW(
            [{"params": model.up.parameters()}, {"params": [model.scale]}])), seed=2)  # fmt: skip
        with pytest.raises(sealpoint.MismatchError, match=text):
            sp.load(FORMS["objects"](fresh), tmp_path / "c")
        assert not fresh.optimizer.state
        assert not torch.equal(fresh.model.up.weight, training.model.up.weight)


def test_an_error_leaves_a_new_optimizer_as_it_was(tmp_path):
    training = Training(OPTIMIZERS["adam, amsgrad"], seed=1)
    training.losses(range(2))
    sp.save({"optimizer": training.optimizer, "n": 1}, tmp_path / "c")
    fresh = Training(OPTIMIZERS["adam, amsgrad"], seed=2)
    del training.optimizer.state[training.model.scale]["exp_avg"]
    for item in (fresh, training):
        before = {number: set(entries) for number, entries in item.optimizer.state_dict()["state"].items()}
        with pytest.raises(sealpoint.MismatchError):
            sp.load({"optimizer": item.optimizer}, tmp_path / "c")
        assert {number: set(entries) for number, entries in item.optimizer.state_dict()["state"].items()} == before


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
    assert collections.Counter(kind for kind, _, _ in report.findings) == {"missing": 2, "unexpected": 1, "kind": 2}


def test_a_mount_that_is_not_there_is_no_new_training(tmp_path):
    state = {"n": 1}
    for lost in (tmp_path / "mount" / "job", tmp_path / "a" / "b" / "c"):
        with pytest.raises(sealpoint.IoError, match="or create it for a new training"):
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
