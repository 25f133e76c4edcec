# SPDX-License-Identifier: Apache-2.0
"""What is saved: tensors, how they lie on the ranks, and their bytes, which any rank can compute for any box."""

import zlib
from typing import NamedTuple

import torch

MIB = 1 << 20


class Box(NamedTuple):
    """The part of a tensor that begins at `offset`, one number per dimension."""

    offset: tuple
    shape: tuple

    def slices(self, within=None):
        """Of an array that holds the whole tensor, or the box `within`."""
        starts = self.offset if within is None else [a - b for a, b in zip(self.offset, within.offset, strict=True)]
        return tuple(slice(start, start + size) for start, size in zip(starts, self.shape, strict=True))

    def overlap(self, other):
        """The box that both have; None if there is none."""
        begin = [max(a, b) for a, b in zip(self.offset, other.offset, strict=True)]
        end = [min(a + m, b + n) for a, m, b, n in zip(self.offset, self.shape, other.offset, other.shape, strict=True)]
        if any(e <= b for b, e in zip(begin, end, strict=True)):
            return None
        return Box(tuple(begin), tuple(e - b for b, e in zip(begin, end, strict=True)))


class Tensor(NamedTuple):
    """A tensor of the global state. layout: "rows", "columns" (cut evenly over the ranks), "whole" (all ranks hold it), or
    the number of the only rank that does."""

    name: str
    shape: tuple
    dtype: torch.dtype
    layout: str | int

    @property
    def nbytes(self):
        return torch.Size(self.shape).numel() * self.dtype.itemsize

    def whole(self):
        return Box((0,) * len(self.shape), self.shape)

    def box(self, rank, ranks):
        """What a rank holds; None if nothing."""
        if self.layout == "whole" or self.layout == rank:
            return self.whole()
        if isinstance(self.layout, int):
            return None
        axis = 0 if self.layout == "rows" else 1
        shape, offset = list(self.shape), [0] * len(self.shape)
        shape[axis] //= ranks
        offset[axis] = rank * shape[axis]
        return Box(tuple(offset), tuple(shape))

    def written(self, ranks):
        """(rank, box) of what each rank writes if nobody divides what all hold: that is rank 0's."""
        if self.layout == "whole":
            return [(0, self.whole())]
        return [(rank, box) for rank in range(ranks) if (box := self.box(rank, ranks)) is not None]


class Held(NamedTuple):
    """A tensor, the box of it that this rank holds, and its memory."""

    tensor: Tensor
    box: Box
    local: torch.Tensor


def content(tensor, box):
    """The bytes of a box, in new memory. Rows and columns are numbered at random, so that a box in the wrong place, or of
    another tensor, differs."""
    bits = {1: torch.int8, 2: torch.int16, 4: torch.int32}[tensor.dtype.itemsize]
    random = torch.Generator().manual_seed(zlib.crc32(tensor.name.encode()))
    most = torch.iinfo(bits).max

    def numbers(axis):
        drawn = torch.randint(-most - 1, most, (tensor.shape[axis],), dtype=bits, generator=random)
        return drawn[box.slices()[axis]]

    if len(tensor.shape) == 1:
        return numbers(0).clone().view(tensor.dtype)
    return torch.bitwise_xor(numbers(0)[:, None], numbers(1)[None, :]).view(tensor.dtype)


def equal(held):
    """Whether the memory has the tensor's bytes. Bits are compared: some are no numbers."""
    expected = content(held.tensor, held.box)
    return torch.equal(held.local.contiguous().view(torch.uint8), expected.view(torch.uint8))


class Workload(NamedTuple):
    """`operations`: of those of cell.py, in this order. `one`: the tensor that is read alone, and of which columns are."""

    name: str
    what: str
    tensors: list
    operations: tuple
    one: str

    @property
    def nbytes(self):
        return sum(tensor.nbytes for tensor in self.tensors)

    def held(self, rank, ranks, by_columns=False, filled=True):
        """What a rank holds; not filled: memory to load into, touched, and with other bytes."""
        state = []
        for tensor in self.tensors:
            if by_columns:
                tensor = tensor._replace(layout=other_layout(tensor))
            box = tensor.box(rank, ranks)
            if box is not None:
                local = content(tensor, box) if filled else torch.empty(box.shape, dtype=tensor.dtype)
                if not filled:
                    local.view(torch.uint8).fill_(0x55)
                state.append(Held(tensor, box, local))
        return state

    def chosen(self):
        return next(tensor for tensor in self.tensors if tensor.name == self.one)


def other_layout(tensor):
    """The layout on the other mesh: what was cut by rows is cut by columns, what all held is cut by rows."""
    if len(tensor.shape) != 2:
        return tensor.layout
    return {"rows": "columns", "whole": "rows"}.get(tensor.layout, tensor.layout)


def transformer(mib):
    """Weights in bf16; master weights and both moments in f32; norms, small and many, on all ranks."""
    width = 1024 if mib >= 168 else 512
    layers = max(1, round(mib * MIB / (12 * width * width * 14)))
    tensors = []
    for layer in range(layers):
        for name, shape in (("qkv", (3 * width, width)), ("out", (width, width)), ("up", (4 * width, width)),
                            ("down", (4 * width, width))):
            place = f"layers.{layer}.{name}.weight"
            tensors.append(Tensor(f"model.{place}", shape, torch.bfloat16, "rows"))
            tensors += [Tensor(f"optimizer.{kind}.{place}", shape, torch.float32, "rows")
                        for kind in ("master", "exp_avg", "exp_avg_sq")]
        tensors += [Tensor(f"model.layers.{layer}.norm{i}", (width,), torch.float32, "whole") for i in range(20)]
    every = ("save", "stall", "background", "load", "reshard", "one", "slice", "verify")
    what = f"{layers} layers of a transformer: bf16 weights, f32 master weights and moments by rows, norms on all ranks"
    return Workload("transformer", what, tensors, every, "optimizer.exp_avg.layers.0.up.weight")


def tiny(count, ranks):
    tensors = [Tensor(f"t{i:06}", (64,), torch.float32, i % ranks) for i in range(count)]
    what = f"{count:,} tensors of 256 bytes, each on one rank"
    return Workload("tiny", what, tensors, ("save", "load", "one"), tensors[0].name)


def huge(mib):
    rows = max(64, mib * MIB // 4 // 4096 // 4 // 64 * 64)
    tensors = [Tensor(f"w{i}", (rows, 4096), torch.float32, "rows") for i in range(4)]
    operations = ("save", "stall", "background", "load", "reshard", "slice", "verify")
    return Workload("huge", "4 large tensors, by rows", tensors, operations, "w1")


def replicated(mib):
    rows = max(64, mib * MIB // 8 // 2048 // 4 // 64 * 64)
    tensors = [Tensor(f"r{i}", (rows, 2048), torch.float32, "whole") for i in range(8)]
    return Workload("replicated", "8 tensors that all ranks hold; stored once", tensors,
                    ("save", "stall", "background", "load", "reshard"), "r0")


def workloads(mib, tiny_count, ranks):
    """All of them, of about so many MiB each."""
    made = [transformer(mib), tiny(tiny_count, ranks), huge(mib), replicated(mib // 2)]
    return {workload.name: workload for workload in made}
