# SPDX-License-Identifier: Apache-2.0
import pathlib
import tarfile

import ml_dtypes
import numpy
import pytest
import sealpoint
from object_stores import new_place

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


@pytest.fixture
def unpack(tmp_path):
    """Unpacks one of the archives of fixtures/, and gives its folder."""
    archives = pathlib.Path(__file__).parent / "fixtures"

    def call(name):
        with tarfile.open(archives / f"{name}.tar.gz") as archive:
            archive.extractall(tmp_path, filter="data")
        return tmp_path / name

    return call


@pytest.fixture
def weights():
    return numpy.arange(96, dtype="f4").reshape(8, 12)


@pytest.fixture(params=["path", "objects"])
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


def blob_of(path) -> pathlib.Path:
    (blob,) = pathlib.Path(path).glob("*.blob")
    return blob


def flip_bit_of(path, content: bytes) -> int:
    """Flips a bit in the middle of these stored bytes; returns their offset."""
    blob = blob_of(path)
    data = bytearray(blob.read_bytes())
    at = data.index(content)
    data[at + len(content) // 2] ^= 1
    blob.write_bytes(data)
    return at
