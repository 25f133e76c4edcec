# SPDX-License-Identifier: Apache-2.0
"""States of training, as FSDP2, HSDP and tensor parallelism make them: small, and uneven on four ranks."""

import torch
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

MODES = ("fsdp", "hsdp", "tp")


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(10, 6)
        self.up = nn.Linear(6, 10)  # 10 rows over 4 ranks: 3, 3, 3, 1
        self.down = nn.Linear(10, 6)
        self.norm = nn.LayerNorm(3)  # the last rank holds nothing of it
        self.scale = nn.Parameter(torch.ones(1))
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))

    def forward(self, x):
        y = self.down(torch.relu(self.up(self.embedding(x)))) * self.scale
        return self.norm(y.unflatten(-1, (2, 3))).sum()


def parallel(model, mode, size):
    if mode == "plain":
        return model
    if mode == "fsdp":
        fully_shard(model, mesh=init_device_mesh("cpu", (size,)))
    elif mode == "hsdp":
        fully_shard(model, mesh=init_device_mesh("cpu", (2, size // 2), mesh_dim_names=("replicate", "shard")))
    else:
        mesh = init_device_mesh("cpu", (size // 2, 2), mesh_dim_names=("data", "tensor"))
        parallelize_module(model, mesh["tensor"], {"up": ColwiseParallel(), "down": RowwiseParallel()})
        fully_shard(model, mesh=mesh["data"])
    return model


class Training:
    """A model and its optimizer after a step. All ranks see the same inputs."""

    def __init__(self, mode, size, seed):
        torch.manual_seed(seed)
        self.model = parallel(Model(), mode, size)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-2)
        self.step()

    def step(self):
        loss = self.model(torch.randint(0, 10, (4,)))
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss.item()

    def loss_of(self, seed):
        """Of a step whose inputs follow from the seed."""
        torch.manual_seed(seed)
        return self.step()

    def state(self):
        return {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}

    def tensors(self):
        """Whole, by name."""
        found = dict(self.model.state_dict())
        for number, child in self.optimizer.state_dict()["state"].items():
            found.update({f"{number}.{key}": value for key, value in child.items()})
        return {name: whole(tensor) for name, tensor in found.items()}


def whole(tensor):
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor.clone()


def assert_same(a, b):
    assert a.keys() == b.keys()
    for name, tensor in a.items():
        assert torch.equal(tensor, b[name]), name


class Tied(torch.nn.Module):
    """As language models have it: what reads tokens and what writes them share their weights."""

    def __init__(self, seed):
        super().__init__()
        torch.manual_seed(seed)
        self.embedding = torch.nn.Embedding(11, 3)  # the last rank has less than the others
        self.head = torch.nn.Linear(3, 11, bias=False)
        self.head.weight = self.embedding.weight


def in_place(job, is_filled):
    """A tensor that says where it lies in the whole: two boxes of it, with two rows of padding between them."""
    local = torch.full((4, 3), -1.0)
    local.global_shape = (2 * job.size, 3)
    local.global_offsets = ((job.rank, 0), (job.size + job.rank, 0))
    local.local_offsets = ((0, 0), (3, 0))
    local.local_sizes = ((1, 3), (1, 3))
    if is_filled:
        local[0], local[3] = job.rank, job.size + job.rank
    return local


class Rows8Bit(torch.Tensor):
    """A matrix with 8 bits per element and a scale per row, as libraries of quantization have them."""

    @staticmethod
    def __new__(cls, codes, scale, bits):
        return torch.Tensor._make_wrapper_subclass(cls, codes.shape, dtype=torch.float32)

    def __init__(self, codes, scale, bits):
        self.codes, self.scale, self.bits = codes, scale, bits

    def __tensor_flatten__(self):
        return ["codes", "scale"], {"bits": self.bits, "kernel": object()}

    @classmethod
    def __tensor_unflatten__(cls, parts, context, outer_size, outer_stride):
        return cls(parts["codes"], parts["scale"], context["bits"])

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        name = function.overloadpacket.__name__
        if name in ("detach", "clone", "alias", "view"):
            return cls(args[0].codes, args[0].scale, args[0].bits)
        if name == "copy_":
            args[0].codes.copy_(args[1].codes)
            args[0].scale.copy_(args[1].scale)
            return args[0]
        raise NotImplementedError(name)

    def __repr__(self):
        return "Rows8Bit()"


def rows(seed, bits=8, shape=(3, 4)):
    made = torch.Generator().manual_seed(seed)
    return Rows8Bit(torch.randint(-99, 99, shape, generator=made, dtype=torch.int8), torch.rand(shape[0], generator=made), bits)


class Momentum8Bit(torch.optim.Optimizer):
    """An optimizer whose state is made in its first step."""

    def __init__(self, parameters):
        super().__init__(parameters, {"lr": 0.1})

    def step(self):
        for group in self.param_groups:
            for parameter in group["params"]:
                self.state[parameter].setdefault("moment", rows(5)).codes.add_(1)
