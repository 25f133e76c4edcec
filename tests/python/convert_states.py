# SPDX-License-Identifier: Apache-2.0
"""What tests of conversions have in common: a state with everything, and looking at what came out."""

import argparse
import hashlib
import io
import json
import math
import random

import numpy
from sealpoint.interop import _boxes, open_source
from sealpoint.interop._source import size_of


def zoo():
    """A state of torch: every dtype, views, tied weights, odd shapes, and values of all kinds."""
    import torch

    generator = torch.Generator().manual_seed(3)
    w = torch.randn(6, 8, generator=generator)
    dtypes = {
        str(dtype).removeprefix("torch."): torch.arange(1, 7).to(dtype)
        for dtype in (
            torch.bool,
            torch.int8,
            torch.int16,
            torch.int32,
            torch.int64,
            torch.uint8,
            torch.uint16,
            torch.uint32,
            torch.uint64,
            torch.float16,
            torch.bfloat16,
            torch.float32,
            torch.float64,
            torch.complex64,
            torch.float8_e4m3fn,
            torch.float8_e5m2,
            torch.float8_e4m3fnuz,
            torch.float8_e5m2fnuz,
        )
    }
    return {
        "model": {
            "w": w, "tied": w, "transposed": w.t(), "part": w[1:4, 2:5],
            "flipped": torch.randn(2, 3, 4, 5).permute(2, 0, 3, 1),
            "last": torch.randn(2, 3, 4, 4).to(memory_format=torch.channels_last), "scalar": torch.tensor(3.5),
            "empty": torch.zeros(0, 4), "e8": torch.tensor([1, 2, 3], dtype=torch.uint8).view(torch.float8_e8m0fnu),
            "f4": torch.tensor([[1, 2], [3, 4]], dtype=torch.uint8).view(torch.float4_e2m1fn_x2), **dtypes,
        },
        "optimizer": {
            "state": {"0": {"step": torch.tensor(5.0), "exp_avg": torch.randn(6, 8)}},
            "param_groups": [{"lr": 0.1, "betas": (0.9, 0.999), "params": [0, 1], "none": None}],
        },
        "values": {
            "int": -3, "big": 2**100, "huge": -(2**3000), "text": "ä\n", "true": True, "nan": math.nan, "inf": -math.inf,
            "bytes": b"\xff\0", "set": {1, 2}, "frozen": frozenset(["x"]), "complex": 1 + 2j, "size": torch.Size([2, 3]),
            "dtype": torch.bfloat16, "device": torch.device("cuda:1"), "namespace": argparse.Namespace(a=1, b=[2]),
            "array": numpy.arange(6.0).reshape(2, 3),
            "fortran": numpy.asfortranarray(numpy.arange(6, dtype="i2").reshape(2, 3)),
            "scalar": numpy.float32(2), "file": io.BytesIO(b"in memory"), "random": random.Random(7).getstate(),
            "inner": (torch.arange(3), {"x": torch.ones(2)}),
        },
    }  # fmt: skip


def same(a, b, path=""):
    """Asserts that two states of torch are equal, to the bit and to the type."""
    import torch

    if isinstance(a, torch.Tensor):
        assert isinstance(b, torch.Tensor) and (a.dtype, a.shape) == (b.dtype, b.shape), path
        first, second = (item.detach().contiguous().reshape(-1) for item in (a, b))
        assert a.numel() == 0 or torch.equal(first.view(torch.uint8), second.view(torch.uint8)), path
    elif isinstance(a, dict):
        assert isinstance(b, dict) and sorted(a) == sorted(b), (path, list(a), list(b))
        for key in a:
            same(a[key], b[key], f"{path}.{key}")
    elif isinstance(a, (list, tuple)):
        assert type(a) is type(b) and len(a) == len(b), path
        for i, (x, y) in enumerate(zip(a, b, strict=True)):
            same(x, y, f"{path}.{i}")
    elif isinstance(a, io.BytesIO):
        assert isinstance(b, io.BytesIO) and a.getvalue() == b.getvalue() and b.tell() == 0, path
    elif isinstance(a, numpy.ndarray):
        assert a.dtype == b.dtype and (a == b).all(), path
    else:
        assert type(a) is type(b) and (a == b or (a != a and b != b)), (path, a, b)


def contents(path, **options):
    """Of a checkpoint of any format: the tree, and dtype, shape and digest of each tensor, which are all read."""
    with open_source(path, **options) as state:
        return state.tree, {name: digest_of(tensor) for name, tensor in state.tensors.items()}


def digest_of(tensor, slab_bytes=1 << 20):
    data = memoryview(bytearray(size_of(tensor)))
    reader, at = tensor.reader(1 << 28), 0
    whole = _boxes.whole(tensor.shape)
    item = max(1, len(data) // max(1, whole.size))
    for slab in _boxes.slabs(whole, slab_bytes // item) if whole.size else ():
        reader.read(slab, data[at : at + slab.size * item])
        at += slab.size * item
    reader.finish()
    return tensor.dtype, tensor.shape, hashlib.sha256(data).hexdigest()


def load_safetensors(path):
    """An independent reader of a file: names to (dtype, shape, bytes), and the metadata."""
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    assert size % 8 == 0
    header = json.loads(data[8 : 8 + size])
    metadata = header.pop("__metadata__")
    body = data[8 + size :]
    tensors = {name: (value["dtype"], value["shape"], body[slice(*value["data_offsets"])]) for name, value in header.items()}
    assert sum(len(tensor[2]) for tensor in tensors.values()) == len(body)
    return tensors, metadata
