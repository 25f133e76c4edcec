# SPDX-License-Identifier: Apache-2.0
"""torch.distributed.checkpoint on four ranks, each case of dcp_basic_cases.py a test, and in one process without a group."""

import pytest

pytest.importorskip("torch", reason="torch is not installed: see scripts/python_env.sh")

import ranks  # noqa: E402
import sealpoint  # noqa: E402
import sealpoint.torch as sp  # noqa: E402
import torch  # noqa: E402
import torch.distributed.checkpoint as dcp  # noqa: E402
from sealpoint import _tree_paths  # noqa: E402
from sealpoint.torch._dtypes import DTYPE_OF  # noqa: E402
from sealpoint.torch.dcp import StorageReader, StorageWriter  # noqa: E402
from torch.distributed.checkpoint import DefaultLoadPlanner, DefaultSavePlanner  # noqa: E402
from torch.distributed.checkpoint.api import CheckpointException  # noqa: E402
from torch.distributed.checkpoint.planner import SavePlan  # noqa: E402

# One process may do without a group, says torch.
pytestmark = pytest.mark.filterwarnings("ignore:torch.distributed is disabled")

RANKS = 4


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    return ranks.run("dcp_basic_cases", RANKS, tmp_path_factory.mktemp("job"), fork=True)


@pytest.mark.parametrize("case", [*ranks.cases_of("dcp_basic_cases"), "end"])
def test(case, outcomes):
    assert not outcomes[case], f"\n{outcomes[case]}"


def test_one_process(tmp_path):
    state = {"model": {"w": torch.arange(6.0).reshape(2, 3)}, "step": 3}
    for through_coordinator in (False, True):
        path = tmp_path / str(through_coordinator)
        dcp.save(state, storage_writer=StorageWriter(path, through_coordinator=through_coordinator))
        back = {"model": {"w": torch.zeros(2, 3)}, "step": 0}
        dcp.load(back, storage_reader=StorageReader(path))
        assert torch.equal(back["model"]["w"], state["model"]["w"])
        assert back["step"] == 3


@pytest.mark.parametrize("dtype", [torch.bool, torch.int8, torch.uint8, torch.float8_e5m2, torch.bfloat16, torch.complex64])
def test_every_size_of_element_goes_through_the_coordinator(dtype, place):
    state = {f"t{len(shape)}": torch.ones(shape).to(dtype) for shape in ((), (0,), (3, 1), (2, 3, 4))}
    save(state, place / "c", through_coordinator=True)
    back = sp.load_full(place / "c")
    assert all(value.dtype == dtype and value.shape == state[name].shape for name, value in back.items())
    assert all(torch.equal(value.float(), state[name].float()) for name, value in back.items() if dtype != torch.complex64)


def save(state, path, planner=None, **options):
    dcp.save(state, storage_writer=StorageWriter(path, **options), planner=planner)


def load(state, path, planner=None):
    dcp.load(state, storage_reader=StorageReader(path), planner=planner)


def error_of(call, *arguments, **options):
    with pytest.raises(CheckpointException) as caught:
        call(*arguments, **options)
    ((error, _),) = caught.value.failures.values()
    return error


def tree(text, **objects):
    objects["sealpoint.tree"] = (text.encode(), "application/vnd.sealpoint.tree+json")
    return objects


@pytest.mark.parametrize("unexpected", ["error", "allow"])
def test_an_optimizer_whose_state_would_be_left_out_is_refused(unexpected, tmp_path):
    """DCP asks an object for its state_dict(), which has no moments in a new process."""
    def make():
        model = torch.nn.Linear(3, 2)
        return model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    def state_of(pair):
        return {"model": pair[0], "optimizer": pair[1]}

    trained = make()
    trained[0](torch.ones(3)).sum().backward()
    trained[1].step()
    save(state_of(trained), tmp_path / "c")
    fresh = make()
    with pytest.raises(CheckpointException) as caught:
        dcp.load(state_of(fresh), storage_reader=StorageReader(tmp_path / "c", unexpected=unexpected))
    (error, _), = caught.value.failures.values()
    assert "because an optimizer has no places for it" in str(error) and "allow" not in str(error) and error.object == "optimizer"
    dcp.load({"model": fresh[0]}, storage_reader=StorageReader(tmp_path / "c", unexpected="allow"))
    sp.load(state_of(fresh), tmp_path / "c")
    assert len(fresh[1].state) == 2


def test_trees_of_flattened_names():
    leaves = [(("a", 0, "x"), 1), (("a", 1), [2]), (("b", 1), 3), (("$",), 4)]
    assert _tree_paths.nest(leaves) == {"$": "dict", "items": [["a", [{"x": 1}, [2]]],
                                                              ["b", {"$": "dict", "items": [[1, 3]]}], ["$", 4]]}
    assert list(_tree_paths.flatten(_tree_paths.nest(leaves))) == [
        (("a", 0, "x"), 1), (("a", 1), [2]), (("b", "1"), 3), (("$",), 4)]
    for wrong in ([(("a",), 1), (("a", "b"), 2)], [(("a", "b"), 2), (("a",), 1)]):
        with pytest.raises(sealpoint.InvalidArgumentError, match=r"object a"):
            _tree_paths.nest(wrong)


def test_names_that_dcp_cannot_tell_apart(place):
    sp.save({"a.b": 1, "a": {"b": 2}}, place / "c")
    with pytest.raises(sealpoint.UnsupportedError, match=r"a\.b"):
        StorageReader(place / "c").read_metadata()


def test_damaged_trees(tmp_path):
    import numpy as np

    for number, (objects, kind, name) in enumerate((
        (tree('{"t":{"$":"tensor"}}'), sealpoint.CorruptError, "no name"),
        (tree('{"t":{"$":"tensor","name":"none"}}'), sealpoint.NotFoundError, "none"),
        (tree('{"t":{"$":"per_rank","size":1}}', **{"sealpoint.tree.rank0": b"{}"}), sealpoint.CorruptError, "object t"),
        (tree('{"t":{"$":"per_rank","size":2}}'), sealpoint.MismatchError, "2 ranks saved it, 1 load"),
        (tree('{"t":{"$":"pickle","base64":""}}'), sealpoint.UnsupportedError, "object t"),
    )):
        path = tmp_path / str(number)
        sealpoint.save({"w": np.ones(2)}, path, objects=objects)
        error = error_of(load, {"t": torch.zeros(2) if number < 2 else 1}, path)
        assert isinstance(error, kind), error
        assert name in str(error), error


def test_dtypes_that_this_torch_lacks(tmp_path, monkeypatch):
    save({"t": torch.ones(2), "pair": (torch.ones(2, dtype=torch.int8),)}, tmp_path / "c")
    monkeypatch.delitem(DTYPE_OF, "f32")
    assert "f32" in str(error_of(load, {"t": torch.zeros(2)}, tmp_path / "c"))
    monkeypatch.delitem(DTYPE_OF, "i8")
    assert "pair.0" in str(error_of(load, {"pair": ()}, tmp_path / "c"))


class WrongShape(DefaultSavePlanner):
    def resolve_data(self, item):
        return torch.ones(3, 5)


class WrongDestination(DefaultLoadPlanner):
    def resolve_tensor(self, item):
        return torch.ones(3, 2)


class WithoutLookup(DefaultSavePlanner):
    lookup_object = None


def test_planners_that_are_wrong(tmp_path):
    assert "(3, 5)" in str(error_of(save, {"t": torch.ones(2, 3)}, tmp_path / "c", WrongShape()))
    assert "lookup_object" in str(error_of(save, {"n": 1}, tmp_path / "c", WithoutLookup()))
    writer = StorageWriter(tmp_path / "c")
    with pytest.raises(sealpoint.InvalidArgumentError, match="returned no plan and has no cached one"):
        writer.write_data(SavePlan([], usable=False), DefaultSavePlanner())
    assert list(tmp_path.iterdir()) == []
    save({"t": torch.ones(2, 3)}, tmp_path / "c")
    assert "(3, 2)" in str(error_of(load, {"t": torch.ones(2, 3)}, tmp_path / "c", WrongDestination()))


def test_what_the_coordinator_cannot_store(tmp_path):
    for value in (sp.per_rank(1), (torch.ones(2), 1)):
        assert "v" in str(error_of(save, {"v": value}, tmp_path / "c", through_coordinator=True))
        assert list((tmp_path / "c").iterdir()) == [], "nothing is left behind"
    save({"n": 1}, tmp_path / "c", through_coordinator=True)
    before = sorted(tmp_path.rglob("*"))
    error = error_of(save, {"n": 2}, tmp_path / "c", through_coordinator=True)
    assert isinstance(error, sealpoint.AlreadyExistsError)
    assert sorted(tmp_path.rglob("*")) == before


def test_misuse(tmp_path):
    assert "has no path" in str(error_of(dcp.save, {"n": 1}, storage_writer=StorageWriter()))
    with pytest.raises(sealpoint.InvalidArgumentError, match="has no path"):
        StorageReader().read_metadata()
    with pytest.raises(sealpoint.InvalidArgumentError, match="is not open"):
        StorageReader(tmp_path).read_data(dcp.LoadPlan([]), DefaultLoadPlanner())
    with pytest.raises(sealpoint.InvalidArgumentError, match="unexpected is"):
        StorageReader(tmp_path, unexpected="report")
    assert not StorageWriter.validate_checkpoint_id("")
    assert not StorageWriter.validate_checkpoint_id(3)
