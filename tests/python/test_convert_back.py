# SPDX-License-Identifier: Apache-2.0
"""A mapping there and back: what is joined is what was taken apart."""

import json
import pathlib
import tarfile

import pytest
import sealpoint
from conftest import noise
from convert_states import contents
from sealpoint.interop import convert

FIXTURES = pathlib.Path(__file__).parent / "fixtures"
GPT = [
    {"from": "decoder.fc1.weight", "to": "model.{part}.weight", "split": {"gate": 2, "up": 1}},
    {"from": "decoder.norm.weight", "to": "model.norm.weight"},
    {"from": "decoder.layers.*.weight", "to": "model.layers.{layer}.{1}.{part}", "unstack": 0, "groups": 2,
     "split": {"q": 1, "k": 1}},
    {"from": "embedding.*_embeddings.weight", "to": "model.{1}"},
]  # fmt: skip


@pytest.fixture
def rules(tmp_path):
    def call(content):
        path = tmp_path / "rules.json"
        path.write_text(json.dumps({"rules": content}))
        return path

    return call


def saved(tmp_path, **shapes):
    """A checkpoint with tensors of these shapes, of i4 if not said otherwise."""
    arrays = {name: noise(shape, "i4", seed=i) for i, (name, shape) in enumerate(shapes.items())}
    sealpoint.save(arrays, tmp_path / "c")
    return tmp_path / "c"


@pytest.mark.parametrize("name", ["megatron_0.16.1", "megatron_0.19.2"])
def test_a_gpt_goes_to_hugging_face_and_comes_back(name, rules, tmp_path):
    with tarfile.open(FIXTURES / f"{name}.tar.gz") as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # not before Python 3.11.4
        archive.extractall(tmp_path)
    options = {"mapping": rules(GPT), "tensors_only": True, "verify": True}
    convert(tmp_path / name, tmp_path / "hf", to="hf", drop=["*/shard_*"], **options)
    tensors = contents(tmp_path / "hf")[1]
    assert len(tensors) == 2 + 1 + 4 + 1 and tensors["model.layers.1.mlp.k"][:2] == ("bf16", (2, 6))
    expected = {key: content for key, content in contents(tmp_path / name)[1].items() if "/shard_" not in key}
    for to in ("megatron", "sealpoint"):
        convert(tmp_path / "hf", tmp_path / to, to=to, mapping_back=True, **options)
        assert contents(tmp_path / to)[1] == expected and len(expected) == 4


@pytest.mark.parametrize(
    ("axis", "shape"), [(0, (3, 4, 5)), (1, (4, 3, 5)), (2, (4, 5, 3)), (0, (3,)), (None, (4, 6)), (None, ())]
)
def test_every_axis(axis, shape, rules, tmp_path, monkeypatch):
    monkeypatch.setattr("sealpoint.interop._copy._SLAB_BYTES_MAX", 28)
    monkeypatch.setattr("sealpoint.interop._copy._SLAB_BYTES_MIN", 28)
    rule = {"from": "a.*", "to": "{1}.{layer}" if axis is not None else "{1}"} | ({} if axis is None else {"unstack": axis})
    source = saved(tmp_path, **{"a.w": shape})
    mapping = rules([rule])
    convert(source, tmp_path / "there", to="hf", mapping=mapping)
    convert(tmp_path / "there", tmp_path / "back", mapping=mapping, mapping_back=True, verify=True)
    assert contents(tmp_path / "back")[1] == contents(source)[1]


LAYERED = {"from": "w", "to": "w.{layer}.{part}", "unstack": 0, "split": {"a": 1, "b": 2}}
WHOLE = {"w.0.a": (2, 3), "w.0.b": (4, 3)}


@pytest.mark.parametrize(
    ("rule", "shapes", "error", "message"),
    [
        (LAYERED, {"w.0.a": (2, 3)}, sealpoint.NotFoundError, "part 'b' of layer 0 is missing"),
        (LAYERED, WHOLE | {"w.2.a": (2, 3), "w.2.b": (4, 3)}, sealpoint.NotFoundError, "part 'a' of layer 1 is missing"),
        (LAYERED, WHOLE | {"v": (2,)}, sealpoint.NotFoundError, "no rule of the mapping makes it"),
        (LAYERED, WHOLE | {"w.00.a": (2,)}, sealpoint.NotFoundError, "no rule of the mapping makes it"),
        (LAYERED, {"v": (2,)}, sealpoint.NotFoundError, "no rule of the mapping makes it"),
        (LAYERED, {"w.0.a": (2, 3), "w.0.b": (5, 3)}, sealpoint.InvalidArgumentError, r"\[5, 3\], expected i32 \[4, 3\]"),
        (LAYERED, {"w.0.a": (2, 3), "w.0.b": (4, 2)}, sealpoint.InvalidArgumentError, r"\[4, 2\], expected i32 \[4, 3\]"),
        (LAYERED | {"groups": 4}, WHOLE, sealpoint.InvalidArgumentError, r"expected i32 \[0, 3\]"),
        (LAYERED | {"unstack": 3}, WHOLE, sealpoint.InvalidArgumentError, "no axis 3 can be added"),
        ({"from": "w.*", "to": "v"}, {"v": (2,)}, sealpoint.InvalidArgumentError, "lacks {1}"),
        ({"from": "w", "to": "v", "unstack": 0}, {"v": (2,)}, sealpoint.InvalidArgumentError, "lacks {layer}"),
        ({"from": "w", "to": "v{2}"}, {"v": (2,)}, sealpoint.InvalidArgumentError, "which is nothing of its rule"),
    ],
)
def test_what_does_not_fit(rule, shapes, error, message, rules, tmp_path):
    with pytest.raises(error, match=message):
        convert(saved(tmp_path, **shapes), tmp_path / "back", mapping=rules([rule]), mapping_back=True)
    assert not (tmp_path / "back").exists()


def test_rules_that_disagree(rules, tmp_path):
    source = saved(tmp_path, a=(2,), b=(2,))
    both = [{"from": "w", "to": "a"}, {"from": "w", "to": "b"}]
    with pytest.raises(sealpoint.InvalidArgumentError, match="produced from more than one tensor or by"):
        convert(source, tmp_path / "back", mapping=rules(both), mapping_back=True)
    unused = [{"from": "w", "to": "{1}"}, {"from": "v", "to": "c"}]
    with pytest.raises(sealpoint.InvalidArgumentError, match="nothing of its rule"):
        convert(source, tmp_path / "back", mapping=rules(unused), mapping_back=True)
    unused = [{"from": "*", "to": "{1}"}, {"from": "v", "to": "c"}, {"from": "x", "drop": True}]
    with pytest.raises(sealpoint.NotFoundError, match="no tensor matches the result of the rule for 'c'"):
        convert(source, tmp_path / "back", mapping=rules(unused), mapping_back=True)
    with pytest.raises(sealpoint.InvalidArgumentError, match="expected a mapping with it"):
        convert(source, tmp_path / "back", mapping_back=True)


def test_dtypes_have_to_be_the_same(rules, tmp_path):
    sealpoint.save({"w.0.a": noise((2, 3), "i4"), "w.0.b": noise((4, 3), "f4")}, tmp_path / "c")
    with pytest.raises(sealpoint.InvalidArgumentError, match=r"f32 \[4, 3\], expected i32 \[4, 3\] beside 'w.0.a'"):
        convert(tmp_path / "c", tmp_path / "back", mapping=rules([LAYERED]), mapping_back=True)
