# SPDX-License-Identifier: Apache-2.0
"""Creates and saves torch states, on the ranks of a gloo group or in one process."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.checkpoint.state_dict_loader import load
from torch.distributed.checkpoint.state_dict_saver import async_save, save
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Shard

import sealpoint
import sealpoint.torch
from sealpoint.bench import _disk
from sealpoint.bench._peers import Peer, newest_in
from sealpoint.bench._state import Spec, State, seed_of


class Sealpoint:
    def save(self, state: State, path: str) -> None:
        sealpoint.torch.save(state.given, path)

    def save_async(self, state: State, path: str) -> Callable[[], object] | None:
        return sealpoint.torch.save_async(state.given, path).result

    def load(self, state: State, path: str, saved_ranks: int) -> None:
        sealpoint.torch.load(state.given, path)

    def save_next(self, state: State, folder: str, step: int) -> None:
        sealpoint.torch.save(state.given, folder, series=True, step=step)

    def load_newest(self, state: State, folder: str) -> None:
        self.load(state, newest_in(folder), 1)


class Dcp:
    def __init__(self) -> None:
        # Two threads that share one gloo group would receive each other's data.
        self._group = dist.new_group(backend="gloo") if dist.is_initialized() else None

    def save(self, state: State, path: str) -> None:
        save(state.given, checkpoint_id=path, no_dist=not dist.is_initialized())

    def save_async(self, state: State, path: str) -> Callable[[], object] | None:
        future: Any = async_save(state.given, checkpoint_id=path, process_group=self._group)
        result: Callable[[], object] = future.result
        return result

    def load(self, state: State, path: str, saved_ranks: int) -> None:
        load(state.given, checkpoint_id=path, no_dist=not dist.is_initialized())

    def save_next(self, state: State, folder: str, step: int) -> None:
        self.save(state, folder)

    def load_newest(self, state: State, folder: str) -> None:
        self.load(state, folder, 1)


class _FilePerRank:
    """A peer that does not support several ranks.

    Each rank writes its own file. A load with a different number of ranks opens the files that contain its rows.
    """

    suffix = ""

    def file(self, path: str, rank: int) -> str:
        return os.path.join(path, f"rank{rank}{self.suffix}")

    def save(self, state: State, path: str) -> None:
        os.makedirs(path, exist_ok=True)
        file = self.file(path, state.rank)
        self.write(state.tensors, file)
        _disk.sync(file, path)

    def save_async(self, state: State, path: str) -> Callable[[], object] | None:
        return None

    def load(self, state: State, path: str, saved_ranks: int) -> None:
        if state.ranks == saved_ranks:
            self.read(state.tensors, self.file(path, state.rank), None)
            return
        own = state.spec.rows_of(state.rank, state.ranks)
        for rank in range(saved_ranks):
            stored = state.spec.rows_of(rank, saved_ranks)
            begin, end = max(own.start, stored.start), min(own.stop, stored.stop)
            if begin < end:
                parts = {name: tensor[begin - own.start : end - own.start] for name, tensor in state.tensors.items()}
                self.read(parts, self.file(path, rank), slice(begin - stored.start, end - stored.start))

    def save_next(self, state: State, folder: str, step: int) -> None:
        self.save(state, folder)

    def load_newest(self, state: State, folder: str) -> None:
        self.load(state, folder, 1)

    def write(self, tensors: dict[str, Any], file: str) -> None:
        raise NotImplementedError

    def read(self, into: dict[str, Any], file: str, rows: slice | None) -> None:
        raise NotImplementedError


class TorchSave(_FilePerRank):
    suffix = ".pt"

    def write(self, tensors: dict[str, Any], file: str) -> None:
        torch.save(tensors, file)

    def read(self, into: dict[str, Any], file: str, rows: slice | None) -> None:
        loaded = torch.load(file, map_location="cpu", weights_only=True, mmap=True)
        for name, tensor in into.items():
            tensor.copy_(loaded[name] if rows is None else loaded[name][rows])


class Safetensors(_FilePerRank):
    suffix = ".safetensors"

    def write(self, tensors: dict[str, Any], file: str) -> None:
        from safetensors.torch import save_file

        save_file(tensors, file)

    def read(self, into: dict[str, Any], file: str, rows: slice | None) -> None:
        from safetensors import safe_open

        with safe_open(file, framework="pt") as opened:
            for name, tensor in into.items():
                tensor.copy_(opened.get_tensor(name) if rows is None else opened.get_slice(name)[rows])


class TorchSide:
    peers: dict[str, Callable[[], Peer]] = {
        "sealpoint": Sealpoint, "dcp": Dcp, "torch": TorchSave, "safetensors": Safetensors
    }  # fmt: skip

    def make(self, spec: Spec, rank: int, ranks: int, device: str, generation: int) -> State:
        own = spec.rows_of(rank, ranks) if spec.kind == "big" else range(spec.rows)
        place = f"cuda:{rank % torch.cuda.device_count()}" if device == "cuda" else "cpu"
        tensors = {name: _content(name, generation, spec, own).to(place) for name in spec.names_of(rank, ranks)}
        given: dict[str, Any] = tensors
        if spec.kind == "big" and dist.is_initialized():
            mesh = _mesh(device)
            given = {name: DTensor.from_local(tensor, mesh, [Shard(0)], run_check=False) for name, tensor in tensors.items()}
        return State(spec, rank, ranks, tensors, given)

    def generations(self, state: State) -> set[int | str]:
        found: set[int | str] = set()
        for name, tensor in state.tensors.items():
            bits = tensor.view(torch.int32)
            old, new = (bits == _content(name, item, state.spec, range(state.spec.rows)).view(torch.int32) for item in (1, 2))
            found |= ({1} if bool(old.any()) else set()) | ({2} if bool(new.any()) else set())
            found |= set() if bool((old | new).all()) else {"neither"}
        return found

    def equal(self, one: State, other: State) -> bool:
        pairs = ((one.tensors[name], other.tensors[name]) for name in one.tensors)
        return all(torch.equal(a.view(torch.int32), b.view(torch.int32)) for a, b in pairs)

    def clear(self, state: State) -> None:
        for tensor in state.tensors.values():
            tensor.zero_()

    def settle(self, state: State) -> None:
        if any(tensor.is_cuda for tensor in state.tensors.values()):
            torch.cuda.synchronize()


def _content(name: str, generation: int, spec: Spec, own: range) -> torch.Tensor:
    if generation == 0:
        return torch.zeros((len(own), spec.columns))
    random = torch.Generator().manual_seed(seed_of(name, generation))
    rows, columns = (torch.randint(-(2**31), 2**31 - 1, (count,), dtype=torch.int32, generator=random)
                     for count in (spec.rows, spec.columns))  # fmt: skip
    return torch.bitwise_xor(rows[own.start : own.stop, None], columns[None, :]).view(torch.float32)


@functools.cache
def _mesh(device: str) -> Any:
    return init_device_mesh(device, (dist.get_world_size(),))
