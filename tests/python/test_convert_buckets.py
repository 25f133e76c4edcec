# SPDX-License-Identifier: Apache-2.0
"""Buckets of Megatron's optimizer, taken apart by a layout; mcore_cases.py has those that Megatron made."""

import copy
import json

import numpy
import pytest
import sealpoint
from sealpoint.interop import _buckets, convert, open_source

GROUP = "optimizer.distributed.dp_group_idx_0"
BUCKET = f"{GROUP}.gbuf_idx_0.dtype_(torch.bfloat16, torch.float32).bucket_idx_0"
KINDS = ("param", "exp_avg")
COMMON = "common_state/shard_0_1"


def whole(kind):
    return numpy.arange(24, dtype="f4").reshape(4, 6) / 7 + KINDS.index(kind)


def rounded(array):
    """To bf16, as the bytes of a checkpoint have it."""
    import ml_dtypes

    return array.astype(ml_dtypes.bfloat16)


def run(row, at, **changes):
    """One of the two boxes of two rows each."""
    return {"tensor": "w", "shape": [4, 6], "offset": [row, 0], "extent": [2, 6], "run": [0, 12], "at": at, **changes}


LAYOUT = {"sealpoint_buckets": 1, "buckets": {
    # The second box lies first, as Megatron has parameters; 4 elements of padding follow, and a column-wise one at the end.
    BUCKET: {"size": 40, "runs": [run(2, 0), run(0, 16), *(
        {"tensor": "t", "shape": [2, 3], "offset": [0, 0], "extent": [2, 3], "run": [i, i + 1], "at": 28 + 2 * i}
        for i in range(6))]},
}}


@pytest.fixture
def source(tmp_path):
    """As Megatron stores it: buckets of one axis, values of each group of ranks, and what they have in common."""
    tensors = {"w": rounded(whole("param"))}
    for kind in KINDS:
        bucket = numpy.full(40, -1, dtype="f4")
        bucket[:12], bucket[16:28] = whole(kind)[2:].reshape(-1), whole(kind)[:2].reshape(-1)
        bucket[28::2] = numpy.arange(6)
        tensors[f"{BUCKET}.{kind}"] = bucket
    types = {"param_state_sharding_type": "dp_reshardable"}
    tree = {name: {"$": "tensor", "name": name} for name in tensors}
    tree |= {
        f"{GROUP}.optimizer/shard_0_1": {"param_groups": [{"lr": 0.5}]}, f"{GROUP}.per_bucket_numel/shard_0_1": [40],
        "optimizer.distributed.dp_group_idx_1.optimizer/shard_0_1": {"param_groups": [{"lr": 0.5}]},
        COMMON: {"iteration": 7, "optimizer": types,
                 "content_metadata": {"distrib_optim_sharding_type": "dp_reshardable"}},
    }
    sealpoint.save(tensors, tmp_path / "saved", objects={
        "sealpoint.tree": (json.dumps(tree).encode(), "application/vnd.sealpoint.torch-tree+json")})
    convert(tmp_path / "saved", tmp_path / "megatron", to="megatron")
    return tmp_path / "megatron"


def layout_file(tmp_path, layout=LAYOUT):
    path = tmp_path / "layout.json"
    path.write_text(layout if isinstance(layout, str) else json.dumps(layout))
    return path


def test_buckets_become_parameters(source, tmp_path):
    report = convert(source, tmp_path / "c", buckets=layout_file(tmp_path), verify=True)
    assert report.notes == [] and report.unprotected_count == 0
    with sealpoint.open(tmp_path / "c") as checkpoint:
        assert sorted(checkpoint) == sorted(["w", *(f"optimizer.state.{kind}.{key}" for kind in KINDS for key in "tw")])
        for kind in KINDS:
            assert numpy.array_equal(checkpoint[f"optimizer.state.{kind}.w"][...], whole(kind))
            assert numpy.array_equal(checkpoint[f"optimizer.state.{kind}.t"][...].reshape(-1), numpy.arange(6))
        assert len(checkpoint.shards("optimizer.state.param.w")) == 2, "regions are kept"
    with open_source(tmp_path / "c") as state:
        assert state.tree[COMMON] == {
            "iteration": 7, "content_metadata": {"distrib_optim_sharding_type": "fully_reshardable"},
            "optimizer": {"param_state_sharding_type": "fully_reshardable", "optimizer": {"param_groups": [{"lr": 0.5}]}},
        }
        assert not any("dp_group_idx" in name for name in state.tree)


def test_without_a_layout_it_says_what_they_are(source, tmp_path):
    report = convert(source, tmp_path / "c")
    assert any("which Megatron loads only with the same tensor" in note for note in report.notes)
    convert(tmp_path / "c", tmp_path / "d", buckets=layout_file(tmp_path))
    with sealpoint.open(tmp_path / "d") as checkpoint:
        assert numpy.array_equal(checkpoint["optimizer.state.param.w"][...], whole("param"))
    with pytest.raises(sealpoint.NotFoundError, match="has no buckets"):
        convert(tmp_path / "d", tmp_path / "e", buckets=layout_file(tmp_path))


def changed(change):
    layout = copy.deepcopy(LAYOUT)
    change(layout["buckets"][BUCKET])
    return layout


def swap(bucket):
    bucket["runs"][0]["at"], bucket["runs"][1]["at"] = 16, 0


@pytest.mark.parametrize(("layout", "kind", "message", "tensor"), [
    (changed(swap), "Mismatch", "for the optimizer, rounded to bf16, and .* in the model", "optimizer.state.param.w"),
    (changed(lambda bucket: bucket.update(size=41)), "Mismatch", r"shape \[40\], the layout \[41\]", None),
    ({**LAYOUT, "buckets": {}}, "Mismatch", "is in the checkpoint, not in the layout", BUCKET),
    ({**LAYOUT, "buckets": {**LAYOUT["buckets"], "more": LAYOUT["buckets"][BUCKET]}}, "Mismatch",
     "is in the layout, not in the checkpoint", "more"),
    (changed(lambda bucket: bucket["runs"].pop(0)), "InvalidArgument", "12 elements of 24 are stored", None),
    (changed(lambda bucket: bucket["runs"].pop(3)), "InvalidArgument", "element 1 of the box .* followed by 2", None),
    (changed(lambda bucket: bucket["runs"].pop()), "InvalidArgument", "has 6 elements, of which 5", None),
    (changed(lambda bucket: bucket["runs"].append(run(0, 16))), "InvalidArgument", "element 12 of the box", None),
    (changed(lambda bucket: bucket["runs"].append(run(1, 16))), "InvalidArgument", "two boxes share", None),
    (changed(lambda bucket: bucket["runs"][0].update(shape=[5, 6])), "InvalidArgument", r"\[4, 6\], and \[5, 6\]", None),
    (changed(lambda bucket: bucket["runs"][0].update(at=29)), "InvalidArgument", "lies outside", None),
    (changed(lambda bucket: bucket["runs"][0].update(run=[0, 13])), "InvalidArgument", "lies outside", None),
    (changed(lambda bucket: bucket["runs"][0].update(offset=[3, 0])), "InvalidArgument", "run of 'w' at 0 lies", None),
    (changed(lambda bucket: bucket["runs"][0].update(at=-1)), "InvalidArgument", "expected a list of sizes", None),
    (changed(lambda bucket: bucket["runs"][0].update(extra=1)), "InvalidArgument", "expected a run", None),
    (changed(lambda bucket: bucket["runs"][0].update(run=[0])), "InvalidArgument", "not a layout", None),
    ({"buckets": {}}, "InvalidArgument", "sealpoint_buckets: 1", None),
    ("[" * 100_000, "InvalidArgument", "not a layout", None),
    ("\ud800".encode("utf-8", "surrogatepass").decode("latin-1"), "InvalidArgument", "not a layout", None),
])
def test_layouts_that_do_not_fit(layout, kind, message, tensor, source, tmp_path):
    with pytest.raises(sealpoint.Error, match=message) as caught:
        convert(source, tmp_path / "c", buckets=layout_file(tmp_path, layout))
    assert caught.value.code == kind and tensor in (None, caught.value.tensor), caught.value
    assert not (tmp_path / "c").exists()
    with pytest.raises(sealpoint.NotFoundError):
        convert(source, tmp_path / "c", buckets=tmp_path / "none")


def test_chained_optimizers_have_numbers(source, tmp_path):
    """The first prefix of a bucket's name is that of the optimizer in the common state."""
    def chained(name):
        return f"chained_1.{name}" if name.startswith("optimizer.") else name

    with open_source(source) as state:
        state.tensors = {chained(name): tensor for name, tensor in state.tensors.items()}
        tree = {chained(name): node for name, node in state.tree.items() if name not in state.tensors}
        state.tree = {**tree, **{name: {"$": "tensor", "name": name} for name in state.tensors}}
        state.tree[COMMON] = {"optimizer": {
            "$": "dict", "items": [[number, {"param_state_sharding_type": "dp_reshardable"}] for number in (0, 1)]}}
        layout = {**LAYOUT, "buckets": {f"chained_1.{BUCKET}": LAYOUT["buckets"][BUCKET]}}
        made = _buckets.resolve(state, _buckets.read_layout(layout_file(tmp_path, layout)), 1 << 20)
    assert "optimizer.state.param.w" in made.tensors
    first, second = (value for _, value in made.tree[COMMON]["optimizer"]["items"])
    assert first == {"param_state_sharding_type": "fully_reshardable"}
    assert second == {"param_state_sharding_type": "fully_reshardable", "optimizer": {"param_groups": [{"lr": 0.5}]}}
