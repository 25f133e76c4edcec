# SPDX-License-Identifier: Apache-2.0
"""Folders of Hugging Face with an index: it says which file has which tensor, as their own loaders take it."""

import json
import subprocess
import sys

import pytest
import sealpoint
import test_convert_hostile as hostile
from convert_states import contents
from sealpoint.interop import convert
from test_inspect_formats import check_same

INDEX = "model.safetensors.index.json"
FIRST, SECOND = (f"pytorch_model-0000{number}-of-00002.bin" for number in (1, 2))


def write(path, **tensors):
    """A file of safetensors of arrays of one byte."""
    header = {name: {"dtype": "U8", "shape": [1], "data_offsets": [i, i + 1]} for i, name in enumerate(tensors)}
    hostile.safetensors_file(path, header, bytes(tensors.values()))


def write_index(path, mapping):
    path.write_text(json.dumps({"metadata": {}, "weight_map": mapping}))


def values(path):
    opened = sealpoint.open(path)
    return {name: int(opened[name].read()[0]) for name in opened}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "m").mkdir()
    write(tmp_path / "m/a.safetensors", w=1, x=2)
    write(tmp_path / "m/b.safetensors", w=3, y=4)
    return tmp_path / "m"


@pytest.mark.parametrize(("file", "other", "value"), [("a", "b", 1), ("b", "a", 3)])
def test_a_tensor_in_two_files_is_that_of_the_index(file, other, value, folder, tmp_path):
    write_index(folder / INDEX, {"w": f"{file}.safetensors", "x": "a.safetensors", "y": "b.safetensors"})
    report = convert(folder, tmp_path / "made", verify=True)
    assert values(tmp_path / "made") == {"w": value, "x": 2, "y": 4} and report.is_whole
    assert [(entry.name, entry.size_bytes) for entry in report.left_out] == [(f"{other}.safetensors/w", 1)]
    assert "names another file" in report.left_out[0].reason
    assert check_same(folder) is None


def test_names_that_no_file_has_are_errors_unless_allowed(folder, tmp_path):
    write_index(folder / INDEX, {"w": "a.safetensors", "x": "a.safetensors", "y": "b.safetensors", "old": "b.safetensors"})
    with pytest.raises(sealpoint.CorruptError, match="--allow-missing") as caught:
        convert(folder, tmp_path / "made")
    assert caught.value.tensor == "old"
    report = convert(folder, tmp_path / "made", allow_missing=["ol?"])
    assert report.missing == ["old"] and report.is_whole and values(tmp_path / "made") == {"w": 1, "x": 2, "y": 4}
    (folder / "b.safetensors").unlink()
    with pytest.raises(sealpoint.IncompleteError, match="or leave out its tensors with --allow-missing") as caught:
        convert(folder, tmp_path / "again", allow_missing=["old"])
    assert caught.value.path == str(folder / "b.safetensors")
    command = [sys.executable, "-m", "sealpoint", "convert", folder, tmp_path / "again", "--allow-missing", "*"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "missing: old, which the index names\nmissing: y, which" in done.stdout, done
    assert values(tmp_path / "again") == {"w": 1, "x": 2}


def test_files_of_an_older_set_are_not_named_by_the_index(folder, tmp_path):
    write_index(folder / INDEX, {"w": "a.safetensors", "x": "a.safetensors"})
    for name in ("pytorch_model-00001-of-00002.bin", "pytorch_model.bin"):
        hostile.torch_file(folder / name, b"\x80\x02}.")
    report = convert(folder, tmp_path / "made")
    assert {entry.name: (entry.reason, entry.may_hold_state) for entry in report.left_out} == {
        name: (f"not named by the index {INDEX}", True)
        for name in ("b.safetensors", "pytorch_model-00001-of-00002.bin", "pytorch_model.bin")
    }
    assert check_same(folder) is None


@pytest.fixture
def torch_folder(tmp_path):
    torch = pytest.importorskip("torch", reason="torch is not installed: see scripts/python_env.sh")
    folder = tmp_path / "t"
    folder.mkdir()
    tied = torch.tensor([5], dtype=torch.uint8)
    torch.save({"w": torch.tensor([1], dtype=torch.uint8), "tied": tied, "again": tied}, folder / FIRST)
    old = {"w": torch.tensor([3], dtype=torch.uint8), "y": torch.tensor([4], dtype=torch.uint8)}
    torch.save(old, folder / SECOND, _use_new_zipfile_serialization=False)
    torch.save({"step": 7}, folder / "optimizer.pt")
    (folder / "config.json").write_text("{}")
    return folder


@pytest.mark.filterwarnings("ignore:.*TypedStorage")
def test_numbered_files_of_torch_are_one_model(torch_folder, tmp_path):
    index = torch_folder / "pytorch_model.bin.index.json"
    write_index(index, {"w": FIRST, "tied": FIRST, "again": FIRST, "y": SECOND})
    report = convert(torch_folder, tmp_path / "made", verify=True)
    assert values(tmp_path / "made") == {"w": 1, "tied": 5, "y": 4} and report.source_format == "hf_torch"
    assert contents(tmp_path / "made")[0] == {
        "w": {"$": "tensor", "name": "w"}, "tied": {"$": "tensor", "name": "tied"}, "again": {"$": "tensor", "name": "tied"},
        "y": {"$": "tensor", "name": "y"}, "optimizer": {"step": 7},
    }  # fmt: skip
    assert [(entry.name, entry.may_hold_state) for entry in report.left_out] == [(f"{SECOND}/w", False), ("config.json", False)]
    assert report.unprotected_count == 1, "files before 1.6 have no digests"
    assert check_same(torch_folder) is None
    write_index(index, {"w": SECOND, "tied": FIRST, "again": FIRST, "y": SECOND, "old": SECOND})
    with pytest.raises(sealpoint.CorruptError, match="--allow-missing"):
        convert(torch_folder, tmp_path / "second")
    report = convert(torch_folder, tmp_path / "second", allow_missing=["old"])
    assert values(tmp_path / "second")["w"] == 3 and report.missing == ["old"]
    (torch_folder / SECOND).unlink()
    with pytest.raises(sealpoint.IncompleteError, match="the index names this file"):
        convert(torch_folder, tmp_path / "third")
    report = convert(torch_folder, tmp_path / "third", allow_missing=["*"])
    assert report.missing == ["old", "w", "y"] and values(tmp_path / "third") == {"tied": 5}
    assert report.left_out[0].name == f"{FIRST}/w", "where the index does not say that it is"
    (torch_folder / FIRST).write_bytes(b"version https://git-lfs.github.com/spec/v1\nsize 9\n")
    with pytest.raises(sealpoint.IncompleteError, match="a pointer of Git LFS to 9 B"):
        convert(torch_folder, tmp_path / "fourth", allow_missing=["*"])


@pytest.mark.filterwarnings("ignore:.*TypedStorage")
def test_numbered_files_of_torch_without_an_index(torch_folder, tmp_path):
    with pytest.raises(sealpoint.CorruptError, match="stored in two files") as caught:
        convert(torch_folder, tmp_path / "made")
    assert caught.value.tensor == "w" and check_same(torch_folder) == "Corrupt"
    (torch_folder / SECOND).unlink()
    with pytest.raises(sealpoint.IncompleteError, match="there are 1 files as .*, expected 2"):
        convert(torch_folder, tmp_path / "made")
    huge = f"pytorch_model-00001-of-{10**30}.bin"
    (torch_folder / FIRST).rename(torch_folder / huge)
    with pytest.raises(sealpoint.IncompleteError, match=r"there are 1 files as .*0{30}\.bin, expected \d+"):
        convert(torch_folder, tmp_path / "made")
    (torch_folder / huge).rename(torch_folder / "pytorch_model.bin")
    assert convert(torch_folder, tmp_path / "made").is_whole
    assert sorted(values(tmp_path / "made")) == ["tied", "w"]


def test_a_clone_without_its_large_files_is_called_so(folder, tmp_path):
    """Each file of a model is a pointer of Git LFS then, and the index is not."""
    write_index(folder / INDEX, {"w": "a.safetensors", "y": "b.safetensors"})
    for name in ("a.safetensors", "b.safetensors"):
        (folder / name).write_bytes(b"version https://git-lfs.github.com/spec/v1\nsize 4936962352\n")
    with pytest.raises(sealpoint.IncompleteError, match="a pointer of Git LFS to 4.9 GB; .*git lfs pull") as caught:
        convert(folder, tmp_path / "made")
    assert caught.value.path == str(folder / "a.safetensors") and check_same(folder) == "Incomplete"
    (folder / INDEX).unlink()
    (folder / ".metadata").write_bytes(b"<html>")
    with pytest.raises(sealpoint.NotACheckpointError, match="an HTML or XML page") as caught:
        convert(folder, tmp_path / "made")
    assert caught.value.path == str(folder / ".metadata")


def test_headers_are_taken_as_the_formats_own_reader_takes_them(tmp_path):
    library = pytest.importorskip("safetensors", reason="safetensors is not installed")
    w = {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}
    headers = {
        "null": ({"__metadata__": None, "w": w}, b"a", True),
        "none": ({"__metadata__": {}, "w": w}, b"a", True),
        "number": ({"__metadata__": {"a": 1}, "w": w}, b"a", False),
        "null within": ({"__metadata__": {"a": None}, "w": w}, b"a", False),
        "list": ({"__metadata__": [], "w": w}, b"a", False),
        "more members": ({"w": {**w, "x": [1, {"y": None}]}}, b"a", True),
        "fewer members": ({"w": {"dtype": "U8", "shape": [1]}}, b"a", False),
        "bytes after its header": ({"w": w}, b"ab", False),
    }
    for name, (header, body, is_read) in headers.items():
        path = hostile.safetensors_file(tmp_path / f"{name}.safetensors", header, body)
        try:
            with library.safe_open(path, "np") as opened:
                found = list(opened.keys())
        except library.SafetensorError:
            found = None
        assert (found == ["w"]) == is_read, name
        if is_read:
            assert convert(path, tmp_path / name).tensor_count == 1
        else:
            with pytest.raises(sealpoint.CorruptError):
                convert(path, tmp_path / name)


def test_the_bound_of_what_is_described_can_be_moved(tmp_path):
    write(tmp_path / "a.safetensors", **{f"w{i}": 1 for i in range(100)})
    hostile.torch_file(tmp_path / "b.pt", b"\x80\x02}X\1\0\0\0x]" + b"]a" * 10_000 + b"s.")
    for path, enough in ((tmp_path / "a.safetensors", "1MB"), (tmp_path / "b.pt", "16MB")):
        with pytest.raises(sealpoint.LimitExceededError, match="more than 10000 bytes of memory; --metadata-memory"):
            convert(path, tmp_path / "made", metadata_memory_bytes=10_000)
        for verb in (["convert", path, tmp_path / path.stem], ["ls", path]):
            command = [sys.executable, "-m", "sealpoint", *verb, "--metadata-memory"]
            for size, status in ((b"10KB", 3), (enough, 0)):
                done = subprocess.run([*command, size], capture_output=True, text=True, check=False)
                assert done.returncode == status, done
