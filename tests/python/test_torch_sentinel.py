# SPDX-License-Identifier: Apache-2.0
"""A sentinel in one process: what it compares, and what it leaves out. With four ranks: torch_basic_cases.py."""

import logging

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: see scripts/python_env.sh")

import sealpoint  # noqa: E402
import sealpoint.torch as sp  # noqa: E402


def flip(tensor, element, bit=0):
    kind = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[tensor.element_size()]
    tensor.detach().view(-1).view(kind)[element] ^= 1 << bit


def test_finds_each_bit_and_leaves_out_buffers(caplog):
    model = torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.BatchNorm1d(5))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    state = {"model": model, "optimizer": optimizer, "rng": sp.per_rank(torch.zeros(4)), "loader": torch.zeros(2)}
    sentinel = sp.Sentinel(state, exclude=["load*"])
    assert sentinel.provenance() == {"sdc.state": "unchecked"}
    for step in range(1, 4):
        model(torch.randn(4, 3)).square().sum().backward()
        state["rng"].value.add_(1)
        state["loader"].add_(1)
        sentinel.before_optimizer(step)
        optimizer.step()
        sentinel.end_of_step(step)
    assert sentinel.findings == [] and sentinel.provenance() == {"sdc.state": "checked", "sdc.upto": "2"}
    for bit in range(32):
        sentinel.end_of_step(4)
        flip(model[0].weight, bit % 15, bit)
        with caplog.at_level(logging.ERROR, "sealpoint"):
            sentinel.before_optimizer(5)
        found = sentinel.findings[-1]
        assert (len(sentinel.findings), found[:4]) == (bit + 1, ("changed_between_steps", 4, "model.0.weight", (0,)))
        assert caplog.messages[-1] == found.text
    assert sentinel.provenance() == {"sdc.state": "found", "sdc.upto": "2"}
    assert repr(sentinel) == "<sealpoint.torch.Sentinel: every=1, 32 findings>"


def test_steps_between_two_checks_change_the_state():
    state = {"w": torch.zeros(3)}
    sentinel = sp.Sentinel(state, every=3)
    for step in range(1, 12):
        state["w"].add_(1)
        sentinel.end_of_step(step)
        if step != 6:  # a loop may skip a call
            sentinel.before_optimizer(step + 1)
    assert sentinel.findings == [] and sentinel.provenance()["sdc.upto"] == "9"


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_copy_is_the_cast_of_its_master(dtype):
    masters = {"whole": torch.randn(700, 700), "one": torch.tensor(-0.0), "odd": torch.tensor([float("nan"), float("inf"), 1e-9])}
    copies = {name: master.to(dtype) for name, master in masters.items()}
    for paired in ({f"copies.{name}": f"masters.{name}" for name in masters},
                   lambda name: name.replace("copies", "masters") if name.startswith("copies") else None):  # fmt: skip
        sentinel = sp.Sentinel({"masters": masters, "copies": copies}, paired=paired)
        sentinel.end_of_step(1)
        assert sentinel.findings == [] and sentinel.provenance()["sdc.upto"] == "1"
        for name, element, bit in (("whole", 489_999, 0), ("one", 0, 14), ("odd", 0, 3)):
            flip(copies[name], element, bit)
            sentinel.end_of_step(2)
            flip(copies[name], element, bit)
            assert sentinel.findings[-1][:3] == ("cast_differs", 2, f"copies.{name}")
            assert "1 elements are not the cast of" in sentinel.findings[-1].text
        copies["one"].neg_()  # 0.0, which is equal to -0.0
        sentinel.end_of_step(3)
        assert sentinel.findings[-1][:3] == ("cast_differs", 3, "copies.one") and len(sentinel.findings) == 4
        copies["one"].neg_()


def test_errors_name_the_tensor():
    for state, keywords, name in (
        ({"w": torch.zeros(2, device="meta")}, {}, "w"),
        ({"w": torch.zeros(2), "v": torch.zeros(3)}, {"paired": {"w": "v"}}, "w"),
        ({"w": torch.zeros(2)}, {"paired": {"w": "none"}}, "none"),
    ):
        with pytest.raises(sealpoint.Error) as raised:
            sp.Sentinel(state, **keywords).end_of_step(1)
        assert raised.value.tensor == name
    for keywords in ({"every": 0}, {"every": "1s"}, {"on_finding": 1}, {"paired": ["w"]}, {"paired": {"w": 1}}, {"exclude": "w"}):
        with pytest.raises(sealpoint.InvalidArgumentError, match=next(iter(keywords))):
            sp.Sentinel({}, **keywords)
    with pytest.raises(sealpoint.InvalidArgumentError, match="step is 'x', expected an integer"):
        sp.Sentinel({"w": torch.zeros(2)}).end_of_step("x")
