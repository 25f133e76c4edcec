# SPDX-License-Identifier: Apache-2.0
"""What ckpt ls shows of other formats is what the package reads."""

import collections
import io
import json
import os
import pathlib
import pickle
import random
import subprocess

import numpy
import pytest
import sealpoint
import test_convert_hostile as hostile
from sealpoint._sealpoint import printable
from sealpoint._tree import text_of
from sealpoint._tree_paths import kind_of
from sealpoint.interop import open_source
from sealpoint.interop._select import leaves
from sealpoint.interop._source import size_of

PROGRAM = pathlib.Path(os.environ["SEALPOINT_BINARY_DIR"]) / "tools/ckpt/ckpt"
STATUS = {"Corrupt": 1, "Unsupported": 3, "LimitExceeded": 3, "Incomplete": 5}
NUMBERS = [0, -1, 2**53 - 1, 2**53, -(2**63), 2**63, 2**200, -(2**200), True, None]
FLOATS = [0.1, 1.0, -0.0, 1e16, 123456789012345680.0, 1e-5, 0.0001, 1e300, 5e-324, float("nan"), float("-inf")]


def run(path, *arguments):
    command = [PROGRAM, "ls", path, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def shown(state):
    """The document of a state, with values by their names alone."""
    tensors = [
        {"name": name, "dtype": tensor.dtype, "shape": list(tensor.shape), "raw_bytes": size_of(tensor),
         "part_count": len(tensor.boxes)}
        for name, tensor in sorted(state.tensors.items())
    ]
    objects = [{"name": name, "media_type": kind, "size_bytes": len(data)} for name, (kind, data) in sorted(state.objects.items())]
    values = [text_of(path) for path, node in leaves(state.tree) if kind_of(node) != "tensor"]
    files = [file._asdict() for file in state.files]
    return {"version": 2, "path": state.path, "format": state.format, "step": state.step, "tensors": tensors, "values": values,
            "objects": objects, "files": files, "source_digest": state.digest, "notes": state.notes,
            "exit_status": 0}  # fmt: skip


def check_same(path):
    """Both answer alike: with the same listing, or with an error that means the same."""
    done = run(path, "--json")
    try:
        with open_source(path, drop_unknown=True, allow_part=True) as state:
            expected = shown(state)
    except sealpoint.Error as error:
        found = json.loads(done.stdout)["error"]["code"]
        # Of a file that is of no format, ckpt ls says that it is no directory.
        assert found == error.code or (found, error.code) == ("NotFound", "NotACheckpoint"), (str(error), done.stdout)
        assert done.returncode == STATUS.get(error.code, 4)
        return error.code
    found = json.loads(done.stdout)
    lines = run(path).stdout.splitlines()
    assert all(any(line.endswith(f"{name} = {brief}") for line in lines) for name, brief in
               ((printable(item["name"]), printable(item["brief"])) for item in found["values"]))  # fmt: skip
    if expected["format"] == "deepspeed":  # a part is a run of elements, which is no box
        for one, other in zip(expected["tensors"], found["tensors"]):
            one["part_count"] = other["part_count"]
    assert found | {"values": [item["name"] for item in found["values"]]} == expected
    assert done.returncode == 0
    return None


@pytest.mark.parametrize("name", ["dcp", "dcp_per_rank", "hf_sharded", "megatron_0.16.1", "megatron_0.19.2"])
def test_what_others_wrote(name, unpack):
    path = unpack(name)
    assert check_same(path) is None
    (path / "notes.txt").write_text("x")
    assert check_same(path) is None
    for file in sorted(path.iterdir()):
        check_same(file)


@pytest.mark.parametrize("to", ["hf", "safetensors", "torch", "dcp"])
def test_what_convert_writes(to, unpack, tmp_path):
    sealpoint.interop.convert(unpack("dcp"), tmp_path / "made", to=to)
    assert check_same(tmp_path / "made") is None


def test_the_newest_of_iterations(unpack, tmp_path):
    unpack("megatron_0.19.2").rename(tmp_path / "iter_0000007")
    (tmp_path / "latest_checkpointed_iteration.txt").write_text(" 7\n")
    assert check_same(tmp_path) is None
    (tmp_path / "latest_checkpointed_iteration.txt").write_text("x")
    assert check_same(tmp_path) == "Corrupt"
    (tmp_path / "latest_checkpointed_iteration.txt").write_text("8")
    assert check_same(tmp_path) == "NotFound"


def test_values_of_all_kinds(tmp_path):
    values = {
        "numbers": NUMBERS + FLOATS,
        "text": ["a'b", 'a"b', "é\n\x7f😀", "x" * 100],
        **{f"number{i}": value for i, value in enumerate(NUMBERS + FLOATS)},
        "bytes": bytes(range(20)), "array": bytearray(b"xy"), "tuple": (1, (2,), ()), "set": {3, 1, 2, "b"},
        "frozen": frozenset([1.5, (1, 2)]), "complex": 1 - 2.5j, "file": io.BytesIO(b"abc"), "empty": [{}, [], ()],
        "numpy": numpy.arange(6, dtype="i2").reshape(2, 3),
        "fortran": numpy.asfortranarray(numpy.arange(6.0).reshape(2, 3)),
        "scalar": numpy.float32(1.5), "ordered": collections.OrderedDict([("b", 1), ("a", [{"deep": 2}])]),
        "keys": {1: "a", (1, "b"): "c", None: 1, 2.5: 2, True: 3, "$": 4}, "$": {"$": "tensor"},
        "list": [{"a": 1}, {2: [3]}],
    }  # fmt: skip
    for protocol in (2, 3, 4, 5):
        path = hostile.torch_file(tmp_path / f"p{protocol}", pickle.dumps(values, protocol=protocol))
        assert check_same(path) is None


def test_values_of_unknown_classes_are_left_out(tmp_path):
    values = {"a": 1, "b": [pathlib.PurePosixPath("x")], "c": {"d": random.Random, "e": 2}}
    assert check_same(hostile.torch_file(tmp_path / "a", pickle.dumps(values, protocol=2))) is None


def inspect_in_time(path):
    """The code of the error; both time and memory are bounded."""
    command = ["bash", "-c", 'ulimit -v 2000000; exec "$0" "$@"', PROGRAM, "ls", path, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    error = json.loads(done.stdout).get("error")
    assert error is None or "not enough memory" not in error["message"]
    return error and error["code"]


def test_keys_that_nest(tmp_path):
    itself = b"\x80\x02}q\0h\0Ns."
    chain = b"\x80\x02" + b"}" * 100_000 + b"Ns" * 99_999 + b"."
    for name, data in (("itself", itself), ("chain", chain)):
        assert inspect_in_time(hostile.torch_file(tmp_path / name, data)) == "LimitExceeded"


@pytest.mark.parametrize("leaf", [b"X\0\x10\0\0" + b"x" * 4096, b"B\0\x10\0\0" + b"x" * 4096, b"N"])
def test_values_in_many_places(leaf, tmp_path):
    lists = leaf + b"q\x000"
    for i in range(3):
        lists += b"](" + (b"h" + bytes([i])) * 90 + b"eq" + bytes([i + 1]) + b"0"
    key = b"}X" + b"\x28\0\0\0" + b"k" * 40
    data = b"\x80\x02" + lists + key * 180 + b"h\3" + b"s" * 180 + b"."
    assert inspect_in_time(hostile.torch_file(tmp_path / "a", data)) == (None if leaf == b"N" else "LimitExceeded")


def test_names_joined_from_one_text(tmp_path):
    text = b"X\x50\xc3\0\0" + b"m" * 50_000 + b"q\x010"
    data = b"\x80\x02" + text + b"](" + b"h\1h\1\x93" * 40_000 + b"e."
    assert inspect_in_time(hostile.torch_file(tmp_path / "a", data)) == "LimitExceeded"


def dcp_of_items(path, files, parts=1):
    """A directory whose metadata names these files, each for an item at a path of so many parts."""

    def described(name, *members):
        module, _, cls = name.rpartition(".")
        text = b"".join(member if isinstance(member, bytes) else pickle.dumps(member, protocol=2)[2:-1] for member in members)
        return b"c" + module.encode() + b"\n" + cls.encode() + b"\n)\x81}(" + text + b"ub"

    module = "torch.distributed.checkpoint.metadata."
    hostile.torch_file(path / "__0_0.distcp", pickle.dumps({"a": 1}, protocol=2))
    size = (path / "__0_0.distcp").stat().st_size
    states, places, paths = b"", b"", {}
    for i, file in enumerate(files):
        states += pickle.dumps(str(i), protocol=2)[2:-1] + described(module + "BytesStorageMetadata")
        places += described(module + "MetadataIndex", "fqn", str(i), "offset", None)
        where = ("relative_path", file, "offset", 0, "length", size)
        places += described("torch.distributed.checkpoint.filesystem._StorageInfo", *where)
        paths[str(i)] = (str(i), *[0] * (parts - 1))
    members = ("state_dict_metadata", b"}(" + states + b"u", "storage_data", b"}(" + places + b"u", "planner_data", paths)
    (path / ".metadata").write_bytes(b"\x80\x02" + described(module + "Metadata", *members) + b".")
    return path


@pytest.mark.parametrize(
    ("files", "parts", "code"),
    [(["__0_0.distcp", "__0_0.distcp"], 1, "Corrupt"), (["__0_0.distcp"], 100_000, "LimitExceeded"), (["."], 1, "Corrupt"),
     ([""], 1, "Corrupt"), (["../a"], 1, "Corrupt"), (["missing"], 1, "NotFound")],
)  # fmt: skip
def test_metadata_that_does_harm(files, parts, code, tmp_path):
    assert inspect_in_time(dcp_of_items(tmp_path, files, parts)) == code


@pytest.mark.parametrize("name", [b"../_0.distcp", b"/_0_0.distcp", b"a/../a.distc", b"__0_\0.distcp"[:12], b"__0_0.distc/"])
def test_no_name_of_a_part_leads_out(name, unpack):
    """Also of parts of tensors, which a listing does not open."""
    path = unpack("dcp")
    data = (path / ".metadata").read_bytes()
    assert data.count(b"__0_0.distcp") > 0 and len(name) == 12
    (path / ".metadata").write_bytes(data.replace(b"__0_0.distcp", name))
    assert check_same(path) == "Corrupt"


@pytest.mark.parametrize("is_inside", [True, False])
def test_links_of_payload(is_inside, unpack, tmp_path):
    path = unpack("dcp")
    for part in list(path.glob("*.distcp")):
        target = path / f"{part.name}.moved" if is_inside else tmp_path / f"{part.name}.outside"
        part.rename(target)
        part.symlink_to(target)
    assert check_same(path) == (None if is_inside else "Unsupported")
    if not is_inside:
        with pytest.raises(sealpoint.UnsupportedError, match="a symbolic link out of the directory"):
            sealpoint.interop.convert(path, tmp_path / "made")


def test_links_of_the_common_state_and_of_files_beside(unpack, tmp_path):
    path = unpack("megatron_0.16.1")
    (path / "common.pt").rename(tmp_path / "outside.pt")
    (path / "common.pt").symlink_to(tmp_path / "outside.pt")
    assert check_same(path) == "Unsupported"
    path = unpack("dcp")
    (path / "optimizer.pt").symlink_to(tmp_path / "outside.pt")
    assert check_same(path) is None
    with open_source(path) as state:
        assert "optimizer" not in state.tree
        (left_out,) = [entry for entry in state.left_out if entry.name == "optimizer.pt"]
    assert left_out.may_hold_state and left_out.reason.startswith("a symbolic link out of the directory"), left_out


@pytest.mark.parametrize("name", [".metadata", "x.safetensors"])
def test_links_that_lead_in_a_circle(name, tmp_path):
    (tmp_path / name).symlink_to(name)
    assert check_same(tmp_path) == "Io"
    assert check_same(tmp_path / name) == "Io"


def test_folders_of_checkpoints(tmp_path):
    for number in (8, 16, 4):
        folder = tmp_path / f"run/checkpoint-{number}"
        folder.mkdir(parents=True)
        sealpoint.save({"w": numpy.ones(2)}, tmp_path / str(number))
        sealpoint.interop.convert(tmp_path / str(number), folder / "model.safetensors")
    (tmp_path / "run/logs").mkdir()
    (tmp_path / "run/trainer_state.json").write_text("{}")
    assert check_same(tmp_path / "run") == "NotACheckpoint"
    with pytest.raises(sealpoint.NotACheckpointError) as caught:
        open_source(tmp_path / "run")
    assert caught.value.message == (
        "a folder of 3 checkpoints of other programs (checkpoint-4, checkpoint-8, checkpoint-16), expected one of them, "
        f"such as {tmp_path}/run/checkpoint-16"
    )


def test_metadata_by_hand_is_some(tmp_path):
    assert check_same(dcp_of_items(tmp_path, ["__0_0.distcp"], 100)) is None


@pytest.mark.parametrize(
    "content", [b"", b"x", b"\x89HDF\r\n\x1a\nx", b"GGUF", b"\x80\x04N.", b"\x1f\x8b\x08", b"PK\x03\x04", b"{}"]
)
def test_other_files(content, tmp_path):
    (tmp_path / "a").write_bytes(content)
    check_same(tmp_path / "a")


def test_directories_that_are_none(tmp_path):
    assert check_same(tmp_path) == "NotACheckpoint"
    (tmp_path / "__0_0.distcp").write_bytes(b"x")
    assert check_same(tmp_path) == "NotACheckpoint"
    (tmp_path / "metadata.json").write_text('{"sharded_backend": "zarr"}')
    assert check_same(tmp_path) == "Unsupported"
    (tmp_path / "metadata.json").write_text('{"sharded_backend": "torch_dist"}')
    assert check_same(tmp_path) == "Incomplete"


def test_exit_statuses(tmp_path):
    hostile.torch_file(tmp_path / "limit", b"\x80\x02\x8b\xff\xff\xff\x7f.")
    corrupt = hostile.torch_file(tmp_path / "corrupt", b"\x80\x02.")
    hostile.torch_file(tmp_path / "unsupported", b"\x80\x01N.")
    (tmp_path / "incomplete").write_bytes(corrupt.read_bytes()[:-30])
    (tmp_path / "fine").write_bytes(hostile.torch_file(tmp_path / "w", b"\x80\x02}.").read_bytes())
    statuses = {"limit": 3, "corrupt": 1, "unsupported": 3, "incomplete": 5, "fine": 0, "nothing": 4}
    for name, status in statuses.items():
        assert run(tmp_path / name).returncode == status, name
