# SPDX-License-Identifier: Apache-2.0
"""Arrays of other libraries as sources and destinations, and tensors for other libraries, by DLPack."""

import ctypes
import gc
import pathlib
import pickle
import subprocess
import sys

import numpy
import pytest
import sealpoint
from sealpoint._dtypes import ITEM_SIZE

from conftest import noise

torch = pytest.importorskip("torch", reason="torch is not installed: see scripts/python_env.sh")
from sealpoint.torch._dtypes import DTYPE_OF  # noqa: E402

W = noise((512, 64), "f4")
BF16 = noise((64, 8), "u2")
NEW = {"max_version": (1, 0)}


@pytest.fixture
def path(tmp_path):
    dtypes = {f"each.{name}": (noise((3, 2, size), "u1"), name) for name, size in ITEM_SIZE.items() if name != "bool"}
    with sealpoint.BlobWriter(tmp_path / "c") as writer:
        for name, array in {"w": W, "bf16": (BF16, "bf16"), "each.bool": numpy.array([[True, False]]),
                            "scalar": numpy.float64(2.5),
                            "empty": numpy.zeros((0, 3), "f4"), **dtypes}.items():
            writer.add(name, array)
        for begin in (0, 32):
            writer.add("halves", (BF16[begin : begin + 32], "bf16"), shape=BF16.shape, offset=(begin, 0))
        writer.add("coded", W * 0, codec="zstd")
        sealpoint.commit(tmp_path / "c", writer.finish())
    return tmp_path / "c"


@pytest.fixture
def checkpoint(path):
    with sealpoint.open(path) as opened:
        yield opened


def same(found, expected):
    """Bit for bit: some are NaN, which equals nothing."""
    return torch.equal(found.contiguous().view(torch.uint8), expected.contiguous().view(torch.uint8))


class Library:
    """An array of a library that has nothing but DLPack; an old one if it knows no versions."""

    def __init__(self, array, is_old=False):
        self.array, self.is_old = array, is_old

    def __dlpack__(self, **arguments):
        if self.is_old and arguments:
            raise TypeError("unexpected argument")
        return self.array.__dlpack__(**arguments)

    def __dlpack_device__(self):
        return 1, 0


def is_mapped(path):
    gc.collect()
    return str(path) in pathlib.Path("/proc/self/maps").read_text()


def bits(tensor):
    return tensor.contiguous().flatten().view(torch.uint8).numpy().tobytes()



# Out.


def test_a_tensor_of_every_dtype(checkpoint):
    names = [name for name in checkpoint if name.startswith("each.")]
    assert len(names) == 22
    for name in names:
        for copy in (None, True, False):
            found = torch.from_dlpack(checkpoint[name], **({} if copy is None else {"copy": copy}))
            assert found.dtype == DTYPE_OF[checkpoint[name].dtype_name] and found.shape == checkpoint[name].shape, name
            assert bits(found) == checkpoint[name].tobytes(), name


def test_a_copy_may_be_written(checkpoint, path):
    found = numpy.from_dlpack(checkpoint["w"])
    assert found.flags.writeable and found.tobytes() == W.tobytes() and not is_mapped(path)
    found[0, 0] = 1
    assert numpy.from_dlpack(checkpoint["coded"]).shape == W.shape
    assert numpy.from_dlpack(checkpoint["scalar"])[()] == 2.5
    assert numpy.from_dlpack(checkpoint["empty"]).shape == numpy.from_dlpack(checkpoint["empty"], copy=False).shape == (0, 3)
    old = Library(checkpoint["w"], is_old=True)
    assert same(torch.from_dlpack(old), torch.from_numpy(W))
    assert checkpoint["w"].__dlpack_device__() == (1, 0)


def test_the_stored_bytes_live_as_long_as_their_last_consumer(path):
    with sealpoint.open(path) as checkpoint:
        found = torch.from_dlpack(checkpoint["bf16"], copy=False)
        array = numpy.from_dlpack(checkpoint["w"], copy=False)
        unused = checkpoint["w"].__dlpack__(copy=False, **NEW)
    for file in path.iterdir():
        file.unlink()
    assert not array.flags.writeable and array.tobytes() == W.tobytes() and bits(found) == BF16.tobytes()
    part = found[3:, 1]
    del array, unused, found
    assert is_mapped(path) and bits(part) == BF16[3:, 1].tobytes()
    del part
    assert not is_mapped(path)


def test_a_consumer_that_cannot_be_told_gets_no_memory_that_may_not_be_written(checkpoint):
    for array in (checkpoint["w"], checkpoint["bf16"].map()):
        with pytest.raises(BufferError, match=r"memory is read-only.*max_version=\(1, 0\), or a copy"):
            array.__dlpack__(copy=False)
        with pytest.raises(BufferError, match="which DLPack before version 1"):
            array.__dlpack__(copy=False, max_version=(0, 8))
    with pytest.raises(sealpoint.UnsupportedError, match="codec"):
        checkpoint["coded"].__dlpack__(copy=False, **NEW)
    with pytest.raises(sealpoint.UnsupportedError, match="stored in 2 shards"):
        checkpoint["halves"].__dlpack__(copy=False, **NEW)


def test_arrays_of_the_package(checkpoint):
    """Also those whose dtypes numpy's own __dlpack__ does not know."""
    mapped, read = checkpoint["bf16"].map(), checkpoint["bf16"][...]
    assert isinstance(mapped, numpy.ndarray) and mapped.dtype == read.dtype == "bfloat16"
    for array in (mapped, read, checkpoint["bf16"].host_copy().array):
        assert bits(torch.from_dlpack(array)) == BF16.tobytes()
        part = torch.from_dlpack(array[::-2, 1:3][::-1])
        assert part.dtype == torch.bfloat16 and bits(part) == BF16[::-2, 1:3][::-1].tobytes()
    for shard, array in checkpoint["halves"].map_shards():
        assert bits(torch.from_dlpack(array)) == BF16[shard.offset[0] :][:32].tobytes()
    assert torch.from_dlpack(mapped.view("u2")).dtype == torch.uint16
    assert same(torch.from_dlpack(checkpoint["w"].map()), torch.from_numpy(W))
    copy = torch.from_dlpack(mapped, copy=True)
    copy[0, 0] = 1  # which ends the process if it is none
    read[0, 0] = 3
    assert torch.from_dlpack(read)[0, 0] == 3
    again = pickle.loads(pickle.dumps(mapped))
    assert again.tobytes() == BF16.tobytes() and again.flags.writeable and bits(torch.from_dlpack(again)) == BF16.tobytes()


def flags_of(array, **arguments):
    """Those of DLManagedTensorVersioned: 1: read only, 2: a copy."""
    capsule = array.__dlpack__(**NEW, **arguments)
    address = ctypes.pythonapi.PyCapsule_GetPointer
    address.restype, address.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return ctypes.c_uint64.from_address(address(capsule, b"dltensor_versioned") + 24).value


def test_flags(checkpoint):
    mapped, read = checkpoint["bf16"].map(), checkpoint["bf16"][...]
    assert (flags_of(checkpoint["w"]), flags_of(checkpoint["w"], copy=False)) == (2, 1)
    assert (flags_of(mapped), flags_of(mapped, copy=True), flags_of(read)) == (1, 2, 0)


@pytest.mark.parametrize(("wrong", "error", "said"), [
    ({"stream": 1}, sealpoint.InvalidArgumentError, "stream is 1, expected None"),
    ({"max_version": 1}, sealpoint.ArgumentTypeError, "max_version is 1, expected two integers"),
    ({"dl_device": "cpu"}, sealpoint.ArgumentTypeError, "dl_device is 'cpu', expected two integers"),
    ({"dl_device": (2, 0)}, BufferError, r"dl_device is \(2, 0\), expected \(1, 0\)"),
    ({"copy": "no"}, sealpoint.ArgumentTypeError, "copy is 'no', expected True, False or None"),
])  # fmt: skip
def test_what_cannot_be_asked_for(checkpoint, wrong, error, said):
    for array in (checkpoint["w"], checkpoint["bf16"].map()):
        with pytest.raises(error, match=said):
            array.__dlpack__(**wrong)


def flip(path):
    """A bit of the tensor w."""
    (blob,) = path.glob("*.blob")
    data = bytearray(blob.read_bytes())
    data[data.index(W.tobytes()[:64])] ^= 1
    blob.write_bytes(data)


def test_damage_is_found_before_anything_is_given_out(path):
    flip(path)
    with sealpoint.open(path) as checkpoint:
        for copy in (True, False):
            with pytest.raises(sealpoint.CorruptError) as caught:
                checkpoint["w"].__dlpack__(copy=copy, **NEW)
            assert caught.value.tensor == "w"


def test_a_program_ends_that_has_tensors_of_a_checkpoint(path):
    program = ("import sealpoint, sys, torch; opened = sealpoint.open(sys.argv[1]); "
               "torch.kept = [torch.from_dlpack(opened['w']), "
               "torch.from_dlpack(opened['bf16'], copy=False)]; capsule = opened['w'].__dlpack__(); print('end')")
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "end\n", "")


# In.


def saved(array, folder):
    sealpoint.save({"t": array}, folder)
    return sealpoint.open(folder)["t"]


@pytest.mark.parametrize("name", sorted(DTYPE_OF))
def test_tensors_of_torch_are_saved(tmp_path, name):
    whole = torch.from_numpy(noise((6, 4, ITEM_SIZE[name]), "u1") & 1).view(DTYPE_OF[name]).reshape(6, 4)
    for number, tensor in enumerate((whole, whole.t(), whole[1::2, 2:], whole[0, 0], whole[:0])):
        found = saved(tensor, tmp_path / str(number))
        assert (found.dtype_name, found.shape) == (name, tuple(tensor.shape)) and found.tobytes() == bits(tensor)


def test_arrays_of_any_library_are_saved(tmp_path, checkpoint):
    for number, array in enumerate((Library(W[::-1, ::3]), Library(W[::-1, ::3], is_old=True))):
        assert saved(array, tmp_path / str(number))[...].tobytes() == W[::-1, ::3].tobytes()
    assert saved(checkpoint["bf16"], tmp_path / "again").tobytes() == BF16.tobytes()
    found = saved((Library(BF16), "bf16"), tmp_path / "named")
    assert found.dtype_name == "bf16" and found.tobytes() == BF16.tobytes()


class Capsule:
    def __init__(self, made):
        self.made = made

    def __dlpack__(self, **_):
        return self.made


@pytest.mark.parametrize(("make", "said"), [
    (lambda: torch.zeros(3, requires_grad=True), "require gradient"),
    (lambda: torch.zeros(3, device="meta"), "meta"),
    (lambda: torch.eye(3).to_sparse(), "strided"),
    (lambda: Capsule(7), "__dlpack__ did not return an unused DLPack capsule"),
    (lambda: torch.zeros(3, dtype=torch.complex64).conj(), "conjugate"),
])
def test_what_cannot_be_saved(tmp_path, make, said):
    with pytest.raises(sealpoint.InvalidArgumentError, match=said) as caught:
        sealpoint.save({"t": make()}, tmp_path / "c")
    assert caught.value.tensor == "t" and not (tmp_path / "c").exists()


def test_damage_of_a_tensor_that_is_saved_again_is_damage(path, tmp_path):
    flip(path)
    with sealpoint.open(path) as checkpoint, pytest.raises(sealpoint.CorruptError):
        sealpoint.save({"t": checkpoint["w"]}, tmp_path / "d")


def test_a_capsule_is_taken_once(tmp_path):
    used = Capsule(W.__dlpack__(**NEW))
    sealpoint.save({"t": used}, tmp_path / "c")
    with pytest.raises(sealpoint.InvalidArgumentError, match="__dlpack__ did not return an unused DLPack capsule"):
        sealpoint.save({"t": used}, tmp_path / "d")


def test_distributed_tensors_have_no_memory_of_their_own(tmp_path):
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import DTensor, Shard

    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/rendezvous", rank=0, world_size=1)
    try:
        tensor = DTensor.from_local(torch.zeros(4), init_device_mesh("cpu", (1,)), [Shard(0)])
        with pytest.raises(sealpoint.InvalidArgumentError, match="DTensor has no memory of its own; use sealpoint.torch"):
            sealpoint.save({"t": tensor}, tmp_path / "c")
    finally:
        dist.destroy_process_group()


def test_tensors_of_torch_are_read_into(checkpoint):
    whole, columns = torch.empty(512, 64), torch.empty(64, 512).t()
    checkpoint.read({"w": whole}, unexpected="allow")
    assert checkpoint["w"].read(columns) is columns
    assert same(whole, torch.from_numpy(W)) and same(columns, whole)
    half = torch.empty(4, 8, dtype=torch.bfloat16)
    checkpoint["bf16"].read(half, box=numpy.s_[2:6])
    assert bits(half) == BF16[2:6].tobytes()


@pytest.mark.parametrize(("make", "said"), [
    (lambda: torch.empty(4, 64), r"shape of the array is \[4, 64\], expected \[512, 64\]"),
    (lambda: torch.empty(512, 64, dtype=torch.float64), "f64"),
    (lambda: Library(W.copy(), is_old=True), "Library may be read-only, which DLPack before version 1 does not report"),
    (lambda: Library(numpy.broadcast_to(W, W.shape)), "destination is read-only, or a copy"),
])
def test_what_cannot_be_read_into(checkpoint, make, said):
    with pytest.raises(sealpoint.Error, match=said) as caught:
        checkpoint["w"].read(make())
    assert caught.value.tensor == "w"
