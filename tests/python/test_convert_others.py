# SPDX-License-Identifier: Apache-2.0
"""What is not read is called by what it is, with the step that makes it readable; and no part of a state passes for a whole."""

import json
import pickle
import struct
import subprocess
import sys
import zipfile

import numpy
import pytest
import sealpoint
import test_convert_hostile as hostile
from sealpoint.interop import convert, open_source
from test_inspect_formats import check_same

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"4d" * 32 + b"\nsize 4936962352\n"
PAGE = b"\n<!DOCTYPE html><html><head><title>Sign in</title>"


def zipped(*names):
    def write(path):
        with zipfile.ZipFile(path, "w") as archive:
            for name in names:
                archive.writestr(name, b"x")

    return write


def stored(data):
    return lambda path: path.write_bytes(data)


FILES = {
    "model.safetensors": (stored(POINTER), "Incomplete", "a pointer of Git LFS to 4.9 GB", "git lfs pull"),
    "pointer.bin": (stored(POINTER), "Incomplete", "a pointer of Git LFS to 4.9 GB", "git lfs pull"),
    "page.safetensors": (stored(PAGE), "NotACheckpoint", "an HTML or XML page", "download the file again"),
    "page.pt": (stored(b"\xef\xbb\xbf<?xml version='1.0'?><Error>"), "NotACheckpoint", "an HTML or XML page", "download"),
    "empty.safetensors": (stored(b""), "Incomplete", "an empty file", "copy it again"),
    "short.safetensors": (stored(b"\2\0"), "Incomplete", "file has 2 bytes, a file of safetensors 8 at least", "copy it again"),
    "a.npz": (zipped("w.npy", "b.npy"), "Unsupported", "arrays of numpy (.npz)", "sealpoint.save(dict(numpy.load(SRC)), DST)"),
    "a.keras": (zipped("metadata.json", "config.json", "model.weights.h5"), "Unsupported", "a model of Keras (.keras)",
                "safetensors.numpy.save_file"),
    "a.pt2": (zipped("a/archive_format", "a/models/model.json", "a/data/weights/weight_0"), "Unsupported",
              "a program of torch.export (.pt2)", "torch.export.load"),
    "b.safetensors": (stored(b"\x89HDF\r\n\x1a\n\0"), "Unsupported", "an HDF5 file", "safetensors.numpy.save_file"),
    "a.nemo": (stored(b"./model" + bytes(250) + b"ustar\0" + bytes(600)), "Unsupported", "a tar archive, such as .nemo", "tar -xf"),
    "a.joblib": (stored(b"\x78\x9c" + bytes(40)), "Unsupported", "compressed by zlib, as joblib does", "joblib.load"),
    "b.joblib": (stored(b"BZh9" + bytes(40)), "Unsupported", "compressed by bzip2", "joblib.load"),
    "c.joblib": (stored(b"\xfd7zXZ\0" + bytes(40)), "Unsupported", "compressed by xz", "joblib.load"),
    "ggml.bin": (stored(b"lmgg" + bytes(40)), "Unsupported", "a file of llama.cpp in a format before GGUF", "convert the model"),
    "ggjt.bin": (stored(b"tjgg" + bytes(40)), "Unsupported", "a file of llama.cpp in a format before GGUF", "convert the model"),
    "a.plan": (stored(b"ftrt" + bytes(40)), "Unsupported", "an engine of TensorRT", "convert the model it was made from"),
    "a.tflite": (stored(b"\x1c\0\0\0TFL3" + bytes(40)), "Unsupported", "a model of TensorFlow Lite", "convert the model"),
    "a.onnx": (stored(b"\x08\x08\x12\x07pytorch"), "Unsupported", "a model of ONNX", "onnx.numpy_helper"),
    "a.msgpack": (stored(b"\x81\xa6params\x80"), "Unsupported", "weights of Flax", "safetensors.flax.save_file"),
    "a.mlmodel": (stored(b"\x08\x04\x12\x07pytorch"), "Unsupported", "a model of Core ML", "convert the model it was made from"),
    "a.npy": (stored(b"\x93NUMPY\1\0"), "Unsupported", "an array of numpy (.npy)", "sealpoint.save"),
    "a.pkl": (stored(pickle.dumps({"w": 1})), "Unsupported", "a plain pickle, which is a program", "torch.save"),
    "distrib_optim.pt": (lambda path: hostile.torch_file(path, b"\x80\x02}."), "Unsupported",
                         "optimizer state of one Megatron rank in its format before torch_dist", "--ckpt-convert-format"),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_files_are_called_by_what_they_are(name, tmp_path):
    write, code, what, way = FILES[name]
    path = tmp_path / name
    write(path)
    for call in (lambda: convert(path, tmp_path / "made"), lambda: open_source(path)):
        with pytest.raises(sealpoint.Error) as caught:
            call()
        assert caught.value.code == code and caught.value.message.startswith(what), caught.value
        assert way in caught.value.message and caught.value.path == str(path)
        assert "ckpt convert" not in str(caught.value), "the command that was just run"
    check_same(path)
    if name not in ("short.safetensors", "distrib_optim.pt"):  # which by their first bytes may be what is read
        with pytest.raises(sealpoint.Error) as caught:
            sealpoint.open(path)
        assert what in str(caught.value) and "ckpt convert" not in str(caught.value)


def test_safetensors_by_another_name_are_read(tmp_path):
    hostile.safetensors_file(tmp_path / "pytorch_model.bin", {"w": {"dtype": "U8", "shape": [2], "data_offsets": [0, 2]}}, b"ab")
    assert convert(tmp_path / "pytorch_model.bin", tmp_path / "made").source_format == "safetensors"


def test_a_header_that_is_longer_than_its_file_is_no_limit(tmp_path):
    (tmp_path / "a.safetensors").write_bytes(struct.pack("<Q", 1 << 60) + b"{}" * 20)
    with pytest.raises(sealpoint.IncompleteError, match="but its header has 1152921504606846976 according to the first 8"):
        convert(tmp_path / "a.safetensors", tmp_path / "made")


# Folders of other programs: what lies in them (a name with a slash is in a directory), what is said, and the way out.
FOLDERS = {
    "zero": (["global_step4/zero_pp_rank_0_mp_rank_00_model_states.pt", "zero_to_fp32.py"], "a folder of DeepSpeed (global_step4)",
             "give one of these directories"),
    "zero3": (["zero_pp_rank_0_mp_rank_00_model_states.pt"], "per-rank files of one DeepSpeed state", "load it there"),
    "pipeline": (["layer_00-model_00-model_states.pt"], "per-rank files of one DeepSpeed state", "load it there"),
    "accelerate": (["pytorch_model_fsdp_0/.metadata", "pytorch_model_fsdp_1/.metadata", "optimizer_0/.metadata", "scheduler.bin"],
                   "a directory of accelerate for FSDP; its state consists of optimizer_0, pytorch_model_fsdp_0, "
                   "pytorch_model_fsdp_1, scheduler.bin", "convert each"),
    "lightning": (["checkpoints/a.ckpt", "hparams.yaml"], "a run of Lightning, whose checkpoints are in the directory checkpoints",
                  "(a.ckpt), expected one of them"),
    "lite": (["model.tflite"], "a model of TensorFlow Lite", "convert the model it was made from"),
    "onnx": (["model.onnx", "config.json"], "a model of ONNX", "onnx.numpy_helper"),
    "engine": (["rank0.engine", "config.json"], "an engine of TensorRT", "convert the model it was made from"),
    "coreml": (["Manifest.json", "Data/x"], "a model of Core ML", "convert the model it was made from"),
    "openvino": (["openvino_model.xml", "openvino_model.bin"], "a model of OpenVINO", "convert the model it was made from"),
    "npz": (["weights.npz", "config.json"], "arrays of numpy", "numpy.load"),
    "zarr": ([".zgroup", "w/.zarray"], "an array or a group of zarr", "zarr.open"),
    "zarr3": (["zarr.json", "w/zarr.json"], "an array or a group of zarr", "zarr.open"),
    "zarr_array": ([".zarray", "0.0"], "an array or a group of zarr", "zarr.open"),
    "torchtune": (["epoch_0/model-00001-of-00001.safetensors", "recipe_state/recipe_state.pt"], "a folder of torchtune",
                  "convert both"),
    "torch_checkpointing": (["metadata.pkl", "model_0.pt"], "a checkpoint of torch_checkpointing",
                            "torch.distributed.checkpoint"),
    "keras": (["model.weights.h5", "config.json"], "weights of Keras", "safetensors.numpy.save_file"),
    "keras3": (["model.keras"], "weights of Keras", "safetensors.numpy.save_file"),
    "flax": (["flax_model.msgpack", "config.json"], "weights of Flax", "safetensors.flax.save_file"),
    "tensorflow": (["model.ckpt-7.index", "model.ckpt-7.data-00000-of-00001", "checkpoint"], "a checkpoint of TensorFlow",
                   "tf.train.load_checkpoint"),
    "saved_model": (["saved_model.pb", "variables/x"], "a checkpoint of TensorFlow", "tf.train.load_checkpoint"),
}  # fmt: skip


@pytest.mark.parametrize("name", FOLDERS)
def test_folders_of_other_programs_are_called_by_what_they_are(name, tmp_path):
    files, what, way = FOLDERS[name]
    for file in files:
        (tmp_path / "run" / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "run" / file).write_bytes(b"PK\3\4\0")
    with pytest.raises(sealpoint.UnsupportedError) as caught:
        convert(tmp_path / "run", tmp_path / "made")
    assert caught.value.message.startswith(what) and way in caught.value.message, caught.value
    assert check_same(tmp_path / "run") == "Unsupported"
    with pytest.raises(sealpoint.Error) as caught:
        sealpoint.open(tmp_path / "run")
    assert what in str(caught.value) and "ckpt convert" not in str(caught.value)


def test_a_series_beside_files_of_other_programs_is_read(tmp_path):
    sealpoint.save({"w": numpy.ones(2)}, tmp_path / "run", series=True, step=4)
    (tmp_path / "run/model.h5").write_bytes(b"\x89HDF")
    assert convert(tmp_path / "run", tmp_path / "made").tensor_count == 1


def torch_saved(path, **values):
    path.parent.mkdir(parents=True, exist_ok=True)
    return hostile.torch_file(path, pickle.dumps(values, protocol=2))


PARTS = {
    "llama": ["consolidated.00.pth", "consolidated.01.pth"],
    "deepspeed": ["mp_rank_00_model_states.pt", "zero_pp_rank_0_mp_rank_00_optim_states.pt"],
    "zero3": ["zero_pp_rank_0_mp_rank_00_model_states.pt", "zero_pp_rank_1_mp_rank_00_model_states.pt"],
    "megatron": ["mp_rank_00/model_optim_rng.pt", "mp_rank_01/model_optim_rng.pt"],
    "megatron_optimizer": ["mp_rank_00/model_optim_rng.pt", "mp_rank_00/distrib_optim.pt"],
    "verl": ["model_world_size_2_rank_0.pt", "model_world_size_2_rank_1.pt"],
    "fsdp": ["pytorch_model_fsdp_rank0.bin", "pytorch_model_fsdp_rank1.bin"],
    "numbered": ["pytorch_model-00001-of-00002.bin", "pytorch_model-00002-of-00002.bin"],
    "dcp": ["__0_0.distcp", "__1_0.distcp"],
}
# As of "../mp_rank_01": the whole directory of the other rank.
OTHERS = {"megatron": "../mp_rank_01", "megatron_optimizer": "distrib_optim.pt"}


@pytest.mark.parametrize("name", PARTS)
def test_a_part_of_a_state_passes_for_no_whole(name, tmp_path):
    """Followed, such hints made one of two parts into a checkpoint, with status 0."""
    first, second = (tmp_path / "run" / file for file in PARTS[name])
    torch_saved(first, n=1)
    torch_saved(second, n=2)
    other = OTHERS.get(name, PARTS[name][1])
    with pytest.raises(sealpoint.UnsupportedError, match="one of several parts of a state") as caught:
        convert(first, tmp_path / "made")
    assert other in caught.value.message and "--allow-part" in caught.value.message
    report = convert(first, tmp_path / "made", allow_part=True)
    assert [(entry.name, entry.may_hold_state) for entry in report.left_out] == [(other, True)] and not report.is_whole
    command = [sys.executable, "-m", "sealpoint", "convert", first, tmp_path / "again", "--allow-part"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 6 and f"LEFT OUT: {other}" in done.stdout
    assert convert(first, tmp_path / "meant", allow_part=True, drop=[other]).is_whole
    assert check_same(first) is None


@pytest.mark.parametrize("name", ["consolidated.00.pth", "mp_rank_00_model_states.pt", "mp_rank_00/model_optim_rng.pt",
                                  "pytorch_model-00001-of-00001.bin", "model_0.pt", "checkpoint-1-of-run.pt"])  # fmt: skip
def test_what_is_whole_by_itself_is_read(name, tmp_path):
    path = torch_saved(tmp_path / "run" / name, n=1)
    torch_saved(tmp_path / "run/model_1.pt", n=2)
    assert convert(path, tmp_path / "made").is_whole


def test_a_part_whose_others_are_not_there(tmp_path):
    path = torch_saved(tmp_path / "pytorch_model-00001-of-00002.bin", n=1)
    with pytest.raises(sealpoint.UnsupportedError, match="one of several parts"):
        convert(path, tmp_path / "made")


def test_what_lies_beside_a_directory_of_the_same_state_is_named(tmp_path):
    """The hint for a folder of torchtune or accelerate leads to one directory of several."""
    hostile_model = {"w": {"dtype": "U8", "shape": [2], "data_offsets": [0, 2]}}
    for folder in ("tune/epoch_0", "tune/recipe_state", "fsdp/pytorch_model_fsdp_0", "fsdp/optimizer_0", "plain/epoch_0"):
        (tmp_path / folder).mkdir(parents=True)
        hostile.safetensors_file(tmp_path / folder / "model.safetensors", hostile_model, b"ab")
    (tmp_path / "fsdp/scheduler.bin").write_bytes(b"x")
    for folder, names in (
        ("tune/epoch_0", ["../recipe_state"]),
        ("fsdp/pytorch_model_fsdp_0", ["../optimizer_0", "../scheduler.bin"]),
        ("fsdp/optimizer_0", ["../pytorch_model_fsdp_0", "../scheduler.bin"]),
        ("plain/epoch_0", []),
    ):
        report = convert(tmp_path / folder, tmp_path / folder.replace("/", "-"))
        assert [entry.name for entry in report.left_out] == names and report.is_whole == (not names)
    assert convert(tmp_path / "tune/epoch_0", tmp_path / "meant", drop=["../recipe_state"]).is_whole


def test_a_directory_of_megatron_fsdp_is_one_of_dcp(unpack, tmp_path):
    source = unpack("dcp")
    before = convert(source, tmp_path / "before")
    (source / "metadata.json").write_text(json.dumps({"sharded_backend": "fsdp_dtensor", "sharded_backend_version": 1}))
    report = convert(source, tmp_path / "made")
    assert (report.source_format, report.tensor_count, report.is_whole) == ("dcp", before.tensor_count, True)
    assert check_same(source) is None


def test_pointers_and_pages_in_the_place_of_state_beside_are_no_text(tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    hostile.safetensors_file(source / "model.safetensors", {"w": {"dtype": "U8", "shape": [2], "data_offsets": [0, 2]}}, b"ab")
    for name, data in {"optimizer.pt": POINTER, "scheduler.pt": PAGE, "tokenizer.json": POINTER, "page.html": PAGE}.items():
        (source / name).write_bytes(data)
    left_out = {entry.name: entry for entry in convert(source, tmp_path / "made").left_out}
    assert {name for name, entry in left_out.items() if entry.may_hold_state} == {"optimizer.pt", "scheduler.pt"}
    assert "Git LFS" in left_out["optimizer.pt"].reason and "HTML" in left_out["scheduler.pt"].reason


def test_arrays_that_numpy_wrote(tmp_path):
    for name, save in (("a.npz", numpy.savez), ("b.npz", numpy.savez_compressed)):
        save(tmp_path / name, w=numpy.ones(2))
        with pytest.raises(sealpoint.UnsupportedError, match=r"arrays of numpy \(\.npz\)"):
            convert(tmp_path / name, tmp_path / "made")
    sealpoint.save(dict(numpy.load(tmp_path / "a.npz")), tmp_path / "way")
    assert "w" in sealpoint.open(tmp_path / "way")
