# SPDX-License-Identifier: Apache-2.0
"""Creates and saves numpy states in one process, for environments without torch."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

import sealpoint
from sealpoint.bench import _disk
from sealpoint.bench._peers import Peer, newest_in
from sealpoint.bench._state import Spec, State, seed_of


class Sealpoint:
    def save(self, state: State, path: str) -> None:
        sealpoint.save(state.tensors, path)

    def save_async(self, state: State, path: str) -> Callable[[], object] | None:
        return None

    def load(self, state: State, path: str, saved_ranks: int) -> None:
        with sealpoint.open(path) as checkpoint:
            checkpoint.read(state.tensors)

    def save_next(self, state: State, folder: str, step: int) -> None:
        sealpoint.save(state.tensors, folder, series=True, step=step)

    def load_newest(self, state: State, folder: str) -> None:
        self.load(state, newest_in(folder), 1)


class Safetensors:
    def save(self, state: State, path: str) -> None:
        from safetensors.numpy import save_file

        os.makedirs(path, exist_ok=True)
        file = os.path.join(path, "state.safetensors")
        save_file(state.tensors, file)
        _disk.sync(file, path)

    def save_async(self, state: State, path: str) -> Callable[[], object] | None:
        return None

    def load(self, state: State, path: str, saved_ranks: int) -> None:
        from safetensors import safe_open

        with safe_open(os.path.join(path, "state.safetensors"), framework="np") as opened:
            for name, tensor in state.tensors.items():
                tensor[...] = opened.get_tensor(name)

    def save_next(self, state: State, folder: str, step: int) -> None:
        self.save(state, folder)

    def load_newest(self, state: State, folder: str) -> None:
        self.load(state, folder, 1)


class NumpySide:
    peers: dict[str, Callable[[], Peer]] = {"sealpoint": Sealpoint, "safetensors": Safetensors}

    def make(self, spec: Spec, rank: int, ranks: int, device: str, generation: int) -> State:
        shape = (spec.rows, spec.columns)
        tensors = {name: _content(name, generation, shape) for name in spec.names()}
        return State(spec, rank, ranks, tensors, tensors)

    def generations(self, state: State) -> set[int | str]:
        found: set[int | str] = set()
        for name, tensor in state.tensors.items():
            old, new = (tensor.view("i4") == _content(name, item, tensor.shape).view("i4") for item in (1, 2))
            found |= ({1} if old.any() else set()) | ({2} if new.any() else set())
            found |= set() if (old | new).all() else {"neither"}
        return found

    def equal(self, one: State, other: State) -> bool:
        return all(np.array_equal(one.tensors[name].view("i4"), other.tensors[name].view("i4")) for name in one.tensors)

    def clear(self, state: State) -> None:
        for tensor in state.tensors.values():
            tensor.fill(0)

    def settle(self, state: State) -> None:
        pass


def _content(name: str, generation: int, shape: Any) -> Any:
    if generation == 0:
        return np.zeros(shape, "f4")
    random = np.random.default_rng(seed_of(name, generation))
    rows, columns = (random.integers(0, 1 << 32, count, "u4") for count in shape)
    return np.bitwise_xor(rows[:, None], columns[None, :]).view("f4")
