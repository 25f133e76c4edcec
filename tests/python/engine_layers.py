# SPDX-License-Identifier: Apache-2.0
"""A model of an inference engine, divided over tensor-parallel ranks."""

import torch


class Layers(torch.nn.Module):
    """Of one of ``size`` tensor-parallel ranks, with weight loaders in the ways of vLLM's layers."""

    def __init__(self, rank, size, odd=None):
        super().__init__()
        self.rank, self.size, self.odd = rank, size, odd
        self.embed, self.up, self.down = (torch.nn.Parameter(torch.zeros(shape)) for shape in (
            (64 // size, 8), (32 // size, 16), (16, 32 // size)))  # fmt: skip
        self.qkv = torch.nn.Parameter(torch.zeros(3 * 16 // size, 16))
        self.experts = torch.nn.Parameter(torch.zeros(4, 24 // size, 8))
        self.norm = torch.nn.Parameter(torch.zeros(16, dtype=torch.bfloat16))
        self.scale = torch.nn.Parameter(torch.zeros(1))

    def rows(self, loaded):
        count = loaded.shape[0] // self.size
        return loaded.narrow(0, self.rank * count, count)

    def load_weights(self, weights):
        for name, loaded in weights:
            if name in ("embed", "up"):
                part = self.rows(loaded)
                assert part.shape == getattr(self, name).shape
                getattr(self, name).data.copy_(part)
            elif name == "down":
                self.down.data.copy_(loaded.t().chunk(self.size)[self.rank].t())
            elif name in "qkv":
                self.qkv.data.view(3, -1, 16)["qkv".index(name)].copy_(self.rows(loaded)[:])
            elif name.startswith("expert"):
                self.experts.data[int(name[6:])].copy_(self.rows(loaded))
            elif name == "norm":
                self.norm.data.copy_(loaded.to(torch.bfloat16))
            elif name == "scale":
                if self.rank == 0:
                    self.scale.data.copy_(loaded.view(self.scale.shape))  # as vLLM's default_weight_loader for one element
                else:
                    self.scale.data.fill_(loaded.item())  # as SGLang's
            if self.odd:
                self.odd(self, name, loaded)


def whole_state():
    random = torch.Generator().manual_seed(5)
    shapes = {"embed": (64, 8), "up": (32, 16), "down": (16, 32), "q": (16, 16), "k": (16, 16), "v": (16, 16), "norm": (16,),
              "scale": (), **{f"expert{i}": (24, 8) for i in range(4)}}  # fmt: skip
    return {name: torch.randn(shape, generator=random) for name, shape in shapes.items()}
