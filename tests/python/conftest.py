# SPDX-License-Identifier: Apache-2.0
import itertools
import os
import pathlib
import sys
import tarfile
import tempfile

import ml_dtypes
import numpy
import pytest
import sealpoint
from object_stores import BucketPath, StorePath, new_place, running, servers
from sealpoint.__main__ import main

# Every dtype that numpy or ml_dtypes has, by its name in the specification.
DTYPES = {
    "bool": "bool", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64",
    "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64",
    "f16": "float16", "bf16": ml_dtypes.bfloat16, "f32": "float32", "f64": "float64",
    "c64": "complex64", "c128": "complex128",
    "f8_e4m3fn": ml_dtypes.float8_e4m3fn, "f8_e5m2": ml_dtypes.float8_e5m2, "f8_e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
    "f8_e5m2fnuz": ml_dtypes.float8_e5m2fnuz, "f8_e8m0fnu": ml_dtypes.float8_e8m0fnu,
}


def noise(shape, dtype, seed=1):
    """Every bit pattern that comes; a bool has two."""
    dtype = numpy.dtype(dtype)
    random = numpy.random.default_rng(seed)
    if dtype == numpy.bool_:
        return random.integers(0, 2, shape).astype(bool)
    count = int(numpy.prod(shape, dtype=int))
    return random.integers(0, 256, count * dtype.itemsize, dtype="u1").view(dtype).reshape(shape)


def raw(array):
    return numpy.ascontiguousarray(array).tobytes()


def command(*words):
    """Status, output and errors of a command of the program, in this process, whose storages it sees."""
    before, argv = [os.dup(number) for number in (1, 2)], sys.argv
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        try:
            for number, file in ((1, output), (2, errors)):
                os.dup2(file.fileno(), number)
            sys.argv = ["ckpt", *map(str, words)]
            status = main()
        finally:
            sys.argv = argv
            for number, item in enumerate(before, 1):
                os.dup2(item, number)
                os.close(item)
        said = [os.pread(file.fileno(), 1 << 30, 0).decode() for file in (output, errors)]
    return status, *said


@pytest.fixture
def unpack(tmp_path):
    """Unpacks one of the archives of fixtures/, and gives its folder."""
    archives = pathlib.Path(__file__).parent / "fixtures"

    def call(name):
        with tarfile.open(archives / f"{name}.tar.gz") as archive:
            archive.extraction_filter = getattr(tarfile, "data_filter", None)  # not before Python 3.11.4
            archive.extractall(tmp_path)
        return tmp_path / name

    return call


@pytest.fixture
def weights():
    return numpy.arange(96, dtype="f4").reshape(8, 12)


NO_OBSTACLE = "a file is in the way of a directory, and of none in a bucket"
# Those that make no sense there, or whole files, and why.
NOT_IN_A_BUCKET = {
    "test_command.test_a_path_that_is_not_utf8": "a key is UTF-8",
    "test_command.test_an_installation_without_the_package": "it is about an installation, not about places",
    "test_command.test_no_file_takes_the_number_of_a_closed_stream": "it is about streams, not about places",
    "test_command.test_output_that_cannot_be_written": "it is about streams, not about places",
    "test_command.test_two_checkpoints_in_one_directory": "a bucket has no FIFO",
    "test_command.test_wrong_usage": "it is about usage, not about places",
    "test_places": "what is there instead of a checkpoint is told of file systems; of a bucket by the library's own words",
    "test_torch.test_a_failed_save_is_told_by_the_future": NO_OBSTACLE,
    "test_torch.test_a_failed_save_is_logged_if_nobody_asks": NO_OBSTACLE,
    "test_torch.test_a_loop_goes_on_after_a_failed_save": NO_OBSTACLE,
    "test_torch_resume.test_a_mount_that_is_not_there_is_no_new_training": "a bucket has no mounts",
    "test_torch_resume.test_what_is_there_is_taken_or_named": "the program beside it makes a directory of its own",
    "test_save.test_after_fork": "obstore makes no requests in a forked child: test_object_stores",
    "test_save.test_a_storage_that_fails": "the limit is one of files",
    "test_read.test_paths": "a key is UTF-8",
}
# Suites run once more in a bucket of a real server (python.in_a_bucket, python.torch_in_a_bucket), also what they do in processes
# of their own.
IN_A_BUCKET = os.environ.get("SEALPOINT_TEST_PLACE") == "s3"
_numbers = itertools.count()


def pytest_collection_modifyitems(items):
    for item in items if IN_A_BUCKET else ():
        names = (item.path.stem, f"{item.path.stem}.{item.originalname}")
        if reason := next((NOT_IN_A_BUCKET[name] for name in names if name in NOT_IN_A_BUCKET), None):
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session")
def bucket():
    pytest.importorskip("obstore", reason="obstore is not installed: see scripts/python_env.sh")
    with running(servers.seaweedfs) as server:
        os.environ.update(server.environment)
        yield "s3://bucket"


@pytest.fixture
def tmp_path(request, tmp_path):
    return BucketPath(f"{request.getfixturevalue('bucket')}/{next(_numbers)}") if IN_A_BUCKET else tmp_path


@pytest.fixture(params=["path"] if IN_A_BUCKET else ["path", "objects"])
def place(request, tmp_path):
    """A directory, and one in an object store."""
    return tmp_path if request.param == "path" else new_place()


@pytest.fixture
def saved(tmp_path, weights):
    """A small checkpoint: a matrix, a bf16 tensor, a scalar, an empty tensor, objects."""
    return save_small(tmp_path / "checkpoint", weights)


@pytest.fixture
def stored(place, weights):
    """The same, in a directory and in an object store."""
    return save_small(place / "checkpoint", weights)


def save_small(path, weights):
    tensors = {
        "w": weights,
        "b": noise((4, 6), ml_dtypes.bfloat16),
        "scalar": numpy.float64(3.5),
        "empty": numpy.zeros((0, 3), "i8"),
        "layers.0.w": weights * 2,
    }
    sealpoint.save(tensors, path, step=7, objects={"rng": b"\0\1\2", "args": (b"{}", "application/json")},
                   provenance={"metric.loss": "1.25"}, mesh={"data": 1})
    return path


@pytest.fixture
def checkpoint(stored):
    with sealpoint.open(stored) as opened:
        yield opened


def blob_of(path):
    (blob,) = (path if isinstance(path, StorePath) else pathlib.Path(path)).glob("*.blob")
    return blob


def flip_bit_of(path, content: bytes) -> int:
    """Flips a bit in the middle of these stored bytes; returns their offset."""
    blob = blob_of(path)
    data = bytearray(blob.read_bytes())
    at = data.index(content)
    data[at + len(content) // 2] ^= 1
    blob.write_bytes(data)
    return at
