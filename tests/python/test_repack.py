# SPDX-License-Identifier: Apache-2.0
"""Copies, merges, repairs and thinned checkpoints, from Python; what is averaged agrees with torch to the last bit."""

import pathlib
import shutil

import numpy
import pytest
import sealpoint
from conftest import DTYPES, noise, raw

STATE = {"model.w": noise((300, 40), "f4"), "model.n": noise((7,), "i8", 2), "optimizer.m": noise((300, 40), "f8", 3)}
OBJECTS = {"rng": b"state"}


def save(path, state=STATE, **options):
    return sealpoint.save(state, path, objects=OBJECTS, step=5, provenance={"x.of": "test"}, **options)


def content(path):
    with sealpoint.open(path) as checkpoint:
        return {name: raw(checkpoint[name].read()) for name in checkpoint} | dict(checkpoint.objects.items())


def test_a_copy_has_the_same_content(place, tmp_path):
    saved = save(tmp_path / "saved")
    expected = content(tmp_path / "saved")
    calls = []
    same = sealpoint.copy(tmp_path / "saved", f"{place}/same", progress=lambda *values: calls.append(values))
    assert same.is_identical and same.attempt == saved.attempt and content(f"{place}/same") == expected
    assert all(done <= total == saved.total_bytes for _, done, total in calls)
    other = sealpoint.copy(f"{place}/same", f"{place}/other", codec="zstd", chunk_size_bytes=4096, blob_count=1)
    assert not other.is_identical and other.blob_count == 1 and other.step == 5
    assert content(f"{place}/other") == expected
    with sealpoint.open(f"{place}/other") as checkpoint:
        assert checkpoint.provenance["repack.from"] == saved.attempt and checkpoint.provenance["x.of"] == "test"
        assert checkpoint["model.w"].chunk_size_bytes == 4096
    again = sealpoint.copy(f"{place}/same", f"{place}/other", codec="zstd", chunk_size_bytes=4096, blob_count=1)
    assert again.was_committed and again.attempt == other.attempt
    sealpoint.copy(f"{place}/same", f"{place}/part", match=["model.*", "rng"], drop=["model.n"])
    assert set(content(f"{place}/part")) == {"model.w", "rng"}
    with pytest.raises(sealpoint.AlreadyExistsError):
        sealpoint.copy(f"{place}/same", f"{place}/part")


def test_ctrl_c_ends_a_copy_and_leaves_nothing(tmp_path):
    save(tmp_path / "saved")

    def stop(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sealpoint.copy(tmp_path / "saved", tmp_path / "copy", blob_count=1, progress=stop)
    assert list((tmp_path / "copy").iterdir()) == []


FLOATS = ["f16", "bf16", "f32", "f64", "f8_e4m3fn", "f8_e5m2", "f8_e4m3fnuz", "f8_e5m2fnuz", "c64", "c128"]
WEIGHTS = [0.5, 0.3, -1.7]


@pytest.mark.parametrize("accumulate", ["f32", "f64"])
def test_an_average_agrees_with_torch_to_the_last_bit(tmp_path, accumulate):
    torch = pytest.importorskip("torch")
    torch_dtypes = {
        name: getattr(torch, {"f16": "float16", "f32": "float32", "f64": "float64", "c64": "complex64", "c128": "complex128"}
                      .get(name, numpy.dtype(DTYPES[name]).name)) for name in FLOATS
    }  # fmt: skip
    states = []
    for seed in range(3):
        random = numpy.random.default_rng(seed)
        # All patterns of the small ones; of the others numbers that round, and some of all patterns.
        small = {name: noise((40000,), DTYPES[name], seed) for name in FLOATS}
        for name in ("f32", "f64"):
            small[name][100:] = random.standard_normal(39900) * 10.0 ** random.integers(-30, 30, 39900)
        for name, part in (("c64", "f4"), ("c128", "f8")):
            small[name] = random.standard_normal(80000).astype(part).view(DTYPES[name])
        states.append(small)
    paths = [tmp_path / str(i) for i in range(3)]
    for i, (path, state) in enumerate(zip(paths, states, strict=True)):
        writer = sealpoint.BlobWriter(path)  # each in another layout
        for name, array in state.items():
            for cut in range(i + 1):
                begin, end = 40000 * cut // (i + 1), 40000 * (cut + 1) // (i + 1)
                writer.add(name, array[begin:end], shape=(40000,), offset=(begin,), extent=(end - begin,))
        sealpoint.commit(path, writer.finish(), step=1)
    # A budget that cuts the tensors.
    sealpoint.merge(paths, tmp_path / "out", weights=WEIGHTS, accumulate=accumulate, threads=1, memory_budget_bytes=1 << 20)
    with sealpoint.open(tmp_path / "out") as merged:
        for name in FLOATS:
            kept = {"c64": torch.complex64, "c128": torch.complex128, "f64": torch.float64}.get(name, torch.float32)
            wide = {"c64": torch.complex128}.get(name, kept if kept.itemsize >= 8 else torch.float64)
            tensors = [torch.from_numpy(state[name].view("u1")).view(torch_dtypes[name]).to(
                kept if accumulate == "f32" else wide) for state in states]  # fmt: skip
            total = WEIGHTS[0] * tensors[0]
            for weight, tensor in zip(WEIGHTS[1:], tensors[1:], strict=True):
                total = total + weight * tensor
            expected = total.to(torch_dtypes[name])
            found = torch.from_numpy(numpy.ascontiguousarray(merged[name].read()).view("u1")).view(torch_dtypes[name])
            is_nan = torch.isnan(expected.to(wide))
            if name == "f8_e4m3fn":  # what is beyond its greatest is NaN; versions of torch differ
                is_nan |= total.abs() > 464
            assert torch.equal(torch.isnan(found.to(wide)), is_nan), name
            size = expected.element_size()
            bits = [item.view(torch.uint8).view(-1, size)[~is_nan] for item in (found, expected)]
            assert torch.equal(*bits), name
            assert not is_nan.all()


def test_what_is_not_averaged_has_to_be_equal(tmp_path):
    changed = STATE | {"model.n": noise((7,), "i8", 9)}
    save(tmp_path / "a")
    save(tmp_path / "b", changed)
    with pytest.raises(sealpoint.MismatchError) as raised:
        sealpoint.merge([tmp_path / "a", tmp_path / "b"], tmp_path / "out")
    assert raised.value.tensor == "model.n"
    for name, value in {"weights": [1.0], "accumulate": "f64"}.items():
        with pytest.raises(sealpoint.InvalidArgumentError, match=name):
            sealpoint.merge([tmp_path / "a"], tmp_path / "out", mode="union", **{name: value})
    sealpoint.save({"expert.1": noise((5,), "f4")}, tmp_path / "c")
    sealpoint.merge([tmp_path / "a", tmp_path / "c"], tmp_path / "out", mode="union")
    assert content(tmp_path / "out") == content(tmp_path / "a") | content(tmp_path / "c")


def test_a_checkpoint_of_a_series_is_thinned(tmp_path):
    paths = [sealpoint.save(STATE, tmp_path, objects=OBJECTS, series=True, step=step).directory for step in (1, 2)]
    with pytest.raises(sealpoint.InvalidArgumentError, match="newest"):
        sealpoint.thin(paths[1], ["optimizer.*"], remove_source=True)
    thin = sealpoint.thin(paths[0], ["optimizer.*"], remove_source=True)
    assert thin.is_source_removed and not pathlib.Path(paths[0]).exists()
    assert set(content(thin.path)) == {"model.w", "model.n", "rng"}
    assert [entry.path for entry in sealpoint.Series(tmp_path).list()] == [paths[1], thin.path]


def test_a_damaged_one_is_repaired_from_a_copy(tmp_path):
    save(tmp_path / "saved", blob_size_max_bytes=1 << 20)
    sealpoint.copy(tmp_path / "saved", tmp_path / "spare")
    blob = next((tmp_path / "saved").glob("*.blob"))
    blob.write_bytes(blob.read_bytes()[:5000] + b"\xff" + blob.read_bytes()[5001:])
    report = sealpoint.repair(tmp_path / "saved", [tmp_path / "spare"], tmp_path / "whole")
    (repaired,) = report.blobs
    assert repaired.source == str(tmp_path / "spare") and isinstance(repaired.problems[0], sealpoint.CorruptError)
    assert content(tmp_path / "whole") == content(tmp_path / "spare") and sealpoint.verify(tmp_path / "whole").ok
    shutil.rmtree(tmp_path / "spare")
    with pytest.raises(sealpoint.IncompleteError) as raised:
        sealpoint.repair(tmp_path / "saved", [tmp_path / "spare"], tmp_path / "other")
    assert raised.value.report.lost_tensors == sorted(STATE) and raised.value.report.lost_objects == ["rng"]
