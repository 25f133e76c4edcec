# SPDX-License-Identifier: Apache-2.0
"""Values and objects whose form is another one at the load than it was at the save; what a save refuses; names that changed."""

import collections
import datetime
import pathlib

import pytest
import sealpoint
import sealpoint.torch as sp
import torch
from torch_states import Momentum8Bit, Rows8Bit, rows


class Holder:
    """An object with a state of its own."""

    def __init__(self, state):
        self.state = state

    def state_dict(self):
        return self.state

    def load_state_dict(self, state):
        self.state = state


def loaded(stored, live, path, **options):
    sp.save({"w": torch.ones(2), "x": stored}, path)
    state = {"w": torch.zeros(2), "x": live}
    report = sp.load(state, path, **options)
    assert state["w"].tolist() == [1, 1]
    return state["x"], report


FORMS = {
    "empty": ({"_snapshot": {"step": 3}}, {}), "none": ({"a": [1, 2]}, None),
    "history": ({"history": [{"a": 1}, {"a": 2}]}, {"history": []}),
    "grown": ({"1": 1, "2": 2}, {"1": 0}), "shrunk": ({"1": 1}, {"1": 0, "2": 0}), "list": ([{"a": 1}], []), "nothing": (None, [1]),
    "bytes": ([b"x"], None),
}


@pytest.mark.parametrize(("stored", "live"), FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("of", [Holder, lambda value: value], ids=["object", "value"])
def test_what_has_no_tensor_is_replaced_as_a_whole(tmp_path, stored, live, of):
    found, report = loaded(of(stored), of(live), tmp_path / "c")
    assert (found.state if isinstance(found, Holder) else found) == stored
    assert [finding[:2] for finding in report.findings] == ([("missing", "x.2")] if stored == {"1": 1} else [])


def test_a_number_is_not_replaced_by_a_container(tmp_path):
    for stored, live in (({"a": 1}, 3), (3, {"a": 1}), ([1], {"a": 1}), ({"a": 1}, [1])):
        with pytest.raises(sealpoint.MismatchError):
            loaded(stored, live, tmp_path / f"{stored}{live}".replace("'", ""))


def test_an_object_without_its_tensors_yet_gets_new_ones(tmp_path):
    state = {"queue": [torch.arange(3), torch.arange(2)], "rng": torch.ones(4, dtype=torch.uint8), "at": 7}
    for number, live in enumerate(({}, {"queue": [], "rng": None, "at": 0}, {"queue": [torch.zeros(9)], "rng": None, "at": 0})):
        found, _ = loaded(Holder(state), Holder(live), tmp_path / str(number))
        assert [item.tolist() for item in found.state["queue"]] == [[0, 1, 2], [0, 1]]
        assert found.state["rng"].dtype == torch.uint8 and found.state["at"] == 7
    with pytest.raises(sealpoint.MismatchError):  # no place for the weights of a model that is not there
        loaded({"a": torch.ones(1)}, {}, tmp_path / "model")
    with pytest.raises(sealpoint.MismatchError):
        loaded(torch.nn.Linear(2, 2), torch.nn.Identity(), tmp_path / "identity")


class Scaled(torch.nn.Module):
    def __init__(self, extra):
        super().__init__()
        self.weight, self.extra = torch.nn.Parameter(torch.ones(2)), extra

    def get_extra_state(self):
        return self.extra

    def set_extra_state(self, extra):
        self.extra = extra


@pytest.mark.parametrize("fresh", [torch.zeros(4, dtype=torch.uint8), torch.zeros(0), torch.zeros(50), None, {}])
def test_extra_state_is_made_anew(tmp_path, fresh):
    model = torch.nn.Sequential(Scaled(torch.arange(50, dtype=torch.uint8)))
    sp.save({"model": model}, tmp_path / "c")
    for contract in (None, sp.Contract(shape="allow")):
        other = torch.nn.Sequential(Scaled(fresh))
        sp.load({"model": other}, tmp_path / "c", contract=contract)
        assert torch.equal(other[0].extra, torch.arange(50, dtype=torch.uint8))


def lbfgs(steps):
    torch.manual_seed(1)
    parameter = torch.nn.Parameter(torch.randn(3))
    optimizer = torch.optim.LBFGS([parameter], max_iter=1, history_size=9)
    for _ in range(steps):
        optimizer.step(lambda: closure(parameter))
    return parameter, optimizer


def closure(parameter):
    parameter.grad = None
    loss = ((parameter - torch.tensor([1.0, 2.0, 3.0])) ** 4).sum()
    loss.backward()
    return loss


@pytest.mark.parametrize("live", [0, 1, 6])
def test_the_history_of_lbfgs_comes_back(tmp_path, live):
    parameter, optimizer = lbfgs(3)
    sp.save({"p": parameter, "o": optimizer}, tmp_path / "c")
    other_parameter, other = lbfgs(live)
    sp.load({"p": other_parameter, "o": other}, tmp_path / "c")
    for _ in range(3):
        assert torch.equal(optimizer.step(lambda: closure(parameter)), other.step(lambda: closure(other_parameter)))
        assert torch.equal(parameter, other_parameter)


def scheduler(kind, **options):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
    return kind(optimizer, **options)


def stepped(one, count):
    for _ in range(count):
        one.optimizer.step()
        one.step()
    return one


def test_milestones_stay_a_counter(tmp_path):
    kind = torch.optim.lr_scheduler.MultiStepLR
    sp.save({"s": stepped(scheduler(kind, milestones=[2, 4]), 3)}, tmp_path / "c")
    other = scheduler(kind, milestones=[2, 6])
    sp.load({"s": other}, tmp_path / "c")
    assert other.milestones == collections.Counter([2, 4]) and other.milestones[99] == 0
    with pytest.warns(UserWarning):
        other.step(5)


def test_a_scheduler_of_another_class_is_refused(tmp_path):
    sp.save({"s": scheduler(torch.optim.lr_scheduler.StepLR, step_size=3)}, tmp_path / "c")
    with pytest.raises(sealpoint.MismatchError, match="T_max"):
        sp.load({"s": scheduler(torch.optim.lr_scheduler.CosineAnnealingLR, T_max=3)}, tmp_path / "c")


def test_a_scaler_that_is_disabled_on_one_side(tmp_path):
    for is_enabled in (True, False):
        path = tmp_path / str(is_enabled)
        sp.save({"w": torch.ones(1), "s": torch.amp.GradScaler("cpu", enabled=is_enabled)}, path)
        state = {"w": torch.zeros(1), "s": torch.amp.GradScaler("cpu", enabled=not is_enabled)}
        with pytest.raises(sealpoint.MismatchError, match="leave it out of the state"):
            sp.load(state, path)
        sp.load({"w": torch.zeros(1)}, path, contract=sp.Contract(unexpected="allow"))


class Overlapping(torch.nn.Module):
    """A weight, its transpose, a flat buffer and its first elements."""

    def __init__(self, is_flat_first):
        super().__init__()
        self.encoder = torch.nn.Parameter(torch.randn(3, 4))
        self.decoder = torch.nn.Parameter(self.encoder.data.t())
        flat = torch.randn(10)
        views = {"flat": flat, "first": flat[:6].view(2, 3)}
        for name in ("flat", "first") if is_flat_first else ("first", "flat"):
            self.register_buffer(name, views[name])


@pytest.mark.parametrize("is_flat_first", [True, False])
def test_views_that_overlap_are_loaded(tmp_path, is_flat_first):
    model, other = Overlapping(is_flat_first), Overlapping(is_flat_first)
    sp.save({"model": model}, tmp_path / "c")
    sp.load({"model": other}, tmp_path / "c")
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, other.state_dict()[name]), name
    stored = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    stored["first"][0, 0] += 1
    sp.save({"model": stored}, tmp_path / "differs")
    with pytest.raises(sealpoint.MismatchError, match="the state has the same tensor here and"):
        sp.load({"model": other}, tmp_path / "differs")


def test_views_side_by_side_are_no_copies(tmp_path):
    both = torch.zeros(4, 6)
    state = {"left": both[:, :2], "right": both[:, 2:]}
    sp.save({"left": torch.ones(4, 2), "right": torch.full((4, 4), 2.0)}, tmp_path / "c")
    sp.load(state, tmp_path / "c")
    assert both.tolist() == [[1, 1, 2, 2, 2, 2]] * 4


def test_hyper_parameters_that_a_load_changes_are_found(tmp_path):
    sp.save({"o": torch.optim.AdamW([torch.nn.Parameter(torch.ones(1))], lr=1e-3, weight_decay=0.1)}, tmp_path / "c")
    other = torch.optim.AdamW([torch.nn.Parameter(torch.ones(1))], lr=1e-4, weight_decay=0.5)
    report = sp.load({"o": other}, tmp_path / "c")
    assert [(kind, path) for kind, path, _ in report.findings] == [
        ("value", "o.param_groups.0.lr"), ("value", "o.param_groups.0.weight_decay")]
    assert report.findings[1][2] == "it was 0.5, and is 0.1 now, as stored"
    assert sp.load({"o": other}, tmp_path / "c").findings == []
    scheduled = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
    decay = torch.optim.lr_scheduler.StepLR(scheduled, 1)
    sp.save({"o": scheduled, "s": stepped(decay, 2)}, tmp_path / "scheduled")
    fresh = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
    state = {"o": fresh, "s": torch.optim.lr_scheduler.StepLR(fresh, 1)}
    assert sp.load(state, tmp_path / "scheduled").findings == [], "a schedule is no change"


def test_an_object_of_which_nothing_is_stored_is_one_finding(tmp_path):
    model = torch.nn.Linear(2, 2)
    sp.save({"model": model, "step": 3}, tmp_path / "c")
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.ones(2)).sum().backward()
    optimizer.step()
    state = {"model": model, "optimizer": optimizer, "step": 0, "new": 1}
    with pytest.raises(sealpoint.MismatchError, match=r'contract=Contract\(missing="allow"\) keeps'):
        sp.load(state, tmp_path / "c")
    for rule, expected in (("allow", ["optimizer"]), ("report", ["optimizer", "new"])):
        report = sp.load(state, tmp_path / "c", contract=sp.Contract(missing=rule))
        assert [path for _, path, _ in report.findings] == expected


Point = collections.namedtuple("Point", "x y")


class Name(str):
    pass


def test_subclasses_of_plain_values_are_saved_by_value(tmp_path):
    state = {"path": pathlib.PurePosixPath("a/b"), "version": torch.__version__, "name": Name("n"), "point": Point(1, 2.5),
             "queue": collections.deque([1, 2]), "counts": collections.Counter("aab"),
             "many": collections.defaultdict(list, {"a": [1]})}
    sp.save(state, tmp_path / "c")
    assert sp.load_full(tmp_path / "c") == {
        "path": "a/b", "version": str(torch.__version__), "name": "n", "point": (1, 2.5), "queue": [1, 2],
        "counts": {"a": 2, "b": 1}, "many": {"a": [1]}}
    live = {"path": pathlib.PurePosixPath("c"), "version": "", "name": "", "point": Point(0, 0),
            "queue": collections.deque(maxlen=5), "counts": collections.Counter(), "many": collections.defaultdict(list)}
    sp.load(live, tmp_path / "c")
    assert live == {**state, "version": str(torch.__version__), "name": "n"}
    assert live["point"].y == 2.5 and live["counts"]["z"] == 0 and live["many"]["z"] == [] and live["queue"].maxlen == 5


class Opaque:
    pass


class Flattened(torch.Tensor):
    pass


def test_all_refused_values_are_named_at_once(tmp_path):
    state = {"a": Opaque(), "b": [datetime.timedelta(1), {"c": Opaque()}], "d": torch.ones(2).to_sparse(), "ok": torch.ones(2)}
    for refuse in (lambda: sp.save(state, tmp_path / "c"), lambda: sp.check(state)):
        with pytest.raises(sealpoint.UnsupportedError) as caught:
            refuse()
        assert str(caught.value).startswith("Unsupported: 4 values cannot be saved: a: ")
        assert all(path in str(caught.value) for path in ("b.0: ", "b.1.c: ", "d: layout is torch.sparse_coo"))
    sp.check({"ok": torch.ones(2), "model": torch.nn.Linear(2, 2)})
    with pytest.raises(sealpoint.UnsupportedError, match=r"get_state\(\) returns a value that can be saved \[object g\]|get_state"):
        sp.check({"g": torch.Generator()})
    with pytest.raises(sealpoint.InvalidArgumentError, match=r"lazy module has no shape yet.*\[tensor head.weight\]"):
        sp.check({"head": torch.nn.LazyLinear(3)})
    assert not (tmp_path / "c").exists() or not list((tmp_path / "c").iterdir())


class AnyAttribute(dict):
    def __getattr__(self, name):
        return AnyAttribute()


def test_a_mapping_that_has_any_attribute_is_a_mapping(tmp_path):
    sp.save({"config": AnyAttribute(a=1)}, tmp_path / "c")
    assert sp.load_full(tmp_path / "c") == {"config": {"a": 1}}


def test_a_load_makes_ordinary_tensors_in_any_mode(tmp_path):
    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(2)).sum().backward()
    optimizer.step()
    sp.save({"model": model, "optimizer": optimizer}, tmp_path / "c")
    for mode in (torch.inference_mode, lambda: torch.device("meta")):
        other = torch.nn.Linear(2, 2)
        fresh = torch.optim.Adam(other.parameters())
        with mode():
            sp.load({"model": other, "optimizer": fresh}, tmp_path / "c")
            whole = sp.load_full(tmp_path / "c")
        tensors = [whole["model"]["weight"], other.weight, *fresh.state[other.weight].values()]
        assert not any(tensor.is_inference() or tensor.is_meta for tensor in tensors)
        other(torch.ones(2)).sum().backward()
        fresh.step()


def test_stored_names_are_renamed(tmp_path):
    old, new = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
    sp.save({"model": {"backbone": old, "head": {"w": torch.ones(1)}}, "step": sp.per_rank(3)}, tmp_path / "c")
    state = {"model": {"encoder": new, "head": {"w": torch.zeros(1)}}, "at": sp.per_rank(0)}
    rules = {"model.backbone.*": "model.encoder.*", "step": "at"}
    sp.load(state, tmp_path / "c", rename=rules)
    assert torch.equal(new.weight, old.weight) and state["at"].value == 3
    other = torch.nn.Linear(2, 2)
    part = {"encoder.weight": other.weight}
    sp.load(part, tmp_path / "c", rename={"model.backbone.*": "encoder.*"}, contract=sp.Contract.partial())
    assert torch.equal(other.weight, old.weight)
    for wrong, text in (({"model.bakbone.*": "x"}, "matches no stored name"), ({"model.*": "model.x"}, "two stored names become"),
                        ({"model.backbone.weight": "model.backbone.bias"}, "is a stored name already"), ([1], "rename is")):
        with pytest.raises(sealpoint.InvalidArgumentError, match=text):
            sp.load(state, tmp_path / "c", rename=wrong)


def test_a_part_is_loaded_by_names(tmp_path):
    state = {"model": {"a": torch.ones(1), "b": torch.ones(2)}, "optimizer": {"lr": 1, "m": torch.ones(3)}, "step": 3}
    sp.save(state, tmp_path / "c")
    assert sp.load_full(tmp_path / "c", keys=["step"]) == {"step": 3}
    assert list(sp.load_full(tmp_path / "c", keys=["model"])["model"]) == ["a", "b"]
    found = sp.load_full(tmp_path / "c", keys=["*.b", "optimizer.lr"])
    assert found["optimizer"] == {"lr": 1} and list(found["model"]) == ["b"] and list(found) == ["model", "optimizer"]
    with pytest.raises(sealpoint.InvalidArgumentError, match="keys: 'modle' matches no stored name; the nearest is model"):
        sp.load_full(tmp_path / "c", keys=["modle"])
    with pytest.raises(sealpoint.InvalidArgumentError, match="keys is 'model'"):
        sp.load_full(tmp_path / "c", keys="model")


@pytest.mark.parametrize(("call", "text"), [
    (lambda path: sp.load({}, path, strict=False), r"contract=Contract.partial\(\)"),
    (lambda path: sp.load({}, path, map_location="cpu"), "loaded into the memory of the state"),
    (lambda path: sp.load_full(path, map_location="cpu"), "named device"),
    (lambda path: sp.load_full(path, weights_only=True), "nothing is unpickled"),
    (lambda path: sp.Checkpointer(path, keep_last=3), "named keep here"),
    (lambda path: sp.Checkpointer(path, save_total_limit=3), "named keep here"),
    (lambda path: sp.Checkpointer(path, save_steps=3), "named every here"),
])
def test_options_of_other_programs_lead_to_ours(tmp_path, call, text):
    with pytest.raises(TypeError, match=text):
        call(tmp_path / "c")


def test_a_mismatch_of_dtypes_names_the_conversion(tmp_path):
    sp.save({"w": torch.ones(2).bfloat16()}, tmp_path / "c")
    with pytest.raises(sealpoint.MismatchError, match='convert="widen" converts'):
        sp.load({"w": torch.ones(2)}, tmp_path / "c")


def test_state_of_get_state_dict_for_a_parameter_without_gradient_has_a_way_out(tmp_path):
    def pair():
        model = torch.nn.ModuleDict({"used": torch.nn.Linear(2, 2), "never": torch.nn.Linear(2, 2)})
        return model, torch.optim.AdamW(model.parameters())

    model, optimizer = pair()
    model["used"](torch.ones(2)).sum().backward()
    optimizer.step()
    sp.save({"o": optimizer, "m": model}, tmp_path / "c")
    other, fresh = pair()
    sp.load({"o": fresh, "m": other}, tmp_path / "c")
    assert len(fresh.state) == 2
    names = {f"never.{item}": torch.zeros(2, 2) for item in ("weight", "bias")}
    sp.save({"o": {"state": {"used.weight": {"exp_avg": torch.ones(2, 2)}}}}, tmp_path / "named")
    states = {"used.weight": torch.ones(2, 2), **names}
    live = {"o": {"state": {name: {"exp_avg": state} for name, state in states.items()}}}
    with pytest.raises(sealpoint.MismatchError, match='optimizer itself, or keep .*missing="allow"'):
        sp.load(live, tmp_path / "named")


def test_a_tensor_that_is_made_of_others_is_stored_in_parts(tmp_path):
    model, other = torch.nn.Module(), torch.nn.Module()
    model.weight, other.weight = (torch.nn.Parameter(rows(seed), requires_grad=False) for seed in (1, 2))
    sp.check({"model": model})
    sp.save({"model": model, "moment": rows(3)}, tmp_path / "c")
    with sealpoint.open(tmp_path / "c") as checkpoint:
        assert list(checkpoint) == ["model.weight.codes", "model.weight.scale", "moment.codes", "moment.scale"]
    state = {"model": other, "moment": rows(4)}
    sp.load(state, tmp_path / "c")
    for found, expected in ((other.weight, rows(1)), (state["moment"], rows(3))):
        assert torch.equal(found.codes, expected.codes) and torch.equal(found.scale, expected.scale)
    whole = sp.load_full(tmp_path / "c")
    assert whole["moment"].class_name.endswith(".Rows8Bit") and whole["moment"].shape == [3, 4]
    assert torch.equal(whole["moment"].parts[""]["codes"], rows(3).codes)
    sp.save(whole, tmp_path / "again")
    sp.load(state, tmp_path / "again")
    for wrong, text in ((rows(4, bits=4), "describes it as"), (rows(4, shape=(2, 4)), "the shape is"),
                        (torch.ones(3, 4), "parts of a tensor of")):
        with pytest.raises(sealpoint.MismatchError, match=text):
            sp.load({"model": other, "moment": wrong}, tmp_path / "c")
    sp.save({"moment": torch.ones(3, 4)}, tmp_path / "plain")
    with pytest.raises(sealpoint.MismatchError, match="Rows8Bit, the checkpoint a tensor"):
        sp.load({"moment": rows(4)}, tmp_path / "plain")


def test_the_state_of_an_8_bit_optimizer_is_loaded_before_its_first_step(tmp_path):
    def pair():
        model = torch.nn.Linear(4, 3, bias=False)
        return model, Momentum8Bit(model.parameters())

    model, optimizer = pair()
    optimizer.step()
    sp.save({"model": model, "optimizer": optimizer}, tmp_path / "c")
    other, fresh = pair()
    sp.load({"model": other, "optimizer": fresh}, tmp_path / "c")
    found = fresh.state[other.weight]["moment"]
    assert type(found) is Rows8Bit and torch.equal(found.codes, rows(5).codes + 1) and torch.equal(found.scale, rows(5).scale)

    class Elsewhere(Momentum8Bit):
        """Of no package that has the class."""

    Elsewhere.__mro__[1].__module__, saved = "elsewhere", Elsewhere.__mro__[1].__module__
    try:
        with pytest.raises(sealpoint.MismatchError, match="an optimizer gets its state from one step before the load"):
            sp.load({"model": other, "optimizer": Elsewhere(other.parameters())}, tmp_path / "c")
    finally:
        Momentum8Bit.__module__ = saved
