# SPDX-License-Identifier: Apache-2.0
"""A rank process, which answers the calls of its parent until its input ends."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from sealpoint.bench import _disk, _mishaps
from sealpoint.bench._mishaps import one_line
from sealpoint.bench._peers import Peer, Side
from sealpoint.bench._state import Spec, State

# This timeout is long, because the parent ends a rank that hangs.
_GROUP_LIMIT_SECONDS = 1800


def side_of(name: str) -> Side:
    if name == "numpy":
        from sealpoint.bench._numpy_side import NumpySide

        return NumpySide()
    from sealpoint.bench._torch_side import TorchSide

    return TorchSide()


class Rank:
    """A rank. The parent can call its public methods; arguments and results are JSON."""

    def __init__(self, side: str) -> None:
        self._is_torch = side == "torch"
        if self._is_torch:
            import torch

            torch.set_num_threads(1)  # no other threads, because _mishaps.py forks
        self._side = side_of(side)
        self._rank, self._ranks = 0, 1
        self._peers: dict[str, Peer] = {}
        self._store: Any = None
        self._state: State | None = None
        self._target: State | None = None

    def listen(self) -> int:
        """Returns the port on which the other ranks connect to this rank."""
        import torch

        dist: Any = torch.distributed
        self._store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
        return int(self._store.port)

    def join(self, rank: int, ranks: int, port: int) -> None:
        from datetime import timedelta

        import torch

        dist: Any = torch.distributed
        store = self._store or dist.TCPStore("127.0.0.1", port, is_master=False)
        limit = timedelta(seconds=_GROUP_LIMIT_SECONDS)
        dist.init_process_group("gloo", store=store, rank=rank, world_size=ranks, timeout=limit)
        self._rank, self._ranks = rank, ranks
        dist.barrier()  # all have connected

    def begin(self) -> None:
        """Returns once all imports are done. The parent waits for this."""

    def devices(self) -> list[str]:
        """Returns the names of the GPUs."""
        if not self._is_torch:
            return []
        import torch

        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        return [torch.cuda.get_device_name(number) for number in range(count)]

    def prepare(self, spec: list[Any], device: str) -> None:
        self._state = self._target = None
        self._state = self._side.make(Spec(*spec), self._rank, self._ranks, device, 1)
        self._target = self._side.make(Spec(*spec), self._rank, self._ranks, device, 0)

    def save(self, peer: str, path: str) -> float:
        one, state = self._peer(peer), self._held(self._state)
        return self._seconds(state, lambda: one.save(state, path))

    def save_async(self, peer: str, path: str) -> list[float] | None:
        """Returns the duration of the call, and the time from the call until the save was durable."""
        one, state = self._peer(peer), self._held(self._state)
        self._wait_for_others()
        began = time.perf_counter()
        wait = one.save_async(state, path)
        stall = time.perf_counter() - began
        if wait is None:
            return None
        wait()
        return [stall, time.perf_counter() - began]

    def load(self, peer: str, path: str, saved_ranks: int, cache: str) -> dict[str, Any]:
        """Loads a checkpoint. ``cache``: "warm", "cold", or "" if the files are not in a local file system."""
        one, state, target = self._peer(peer), self._held(self._state), self._held(self._target)
        self._side.clear(target)
        self._side.settle(target)
        self._wait_for_others()
        if self._rank == 0 and cache:
            (_disk.warm if cache == "warm" else _disk.cool)(path)
        before = _disk.bytes_from_storage()
        seconds = self._seconds(target, lambda: one.load(target, path, saved_ranks))
        after = _disk.bytes_from_storage()
        read = None if before is None or after is None else after - before
        return {"seconds": seconds, "from_storage": read, "is_right": self._side.equal(target, state)}

    def flip_bits(self, peer: str, path: str, size: int, count: int, seconds: float) -> dict[str, int]:
        return _mishaps.flip_bits(self._side, self._peer(peer), path, size, count, seconds)

    def kill_saves(self, peer: str, path: str, size: int, count: int, seconds: float) -> dict[str, int]:
        return _mishaps.kill_saves(self._side, self._peer(peer), path, size, count, seconds)

    def _peer(self, name: str) -> Peer:
        if name not in self._peers:
            self._peers[name] = self._side.peers[name]()
        return self._peers[name]

    @staticmethod
    def _held(state: State | None) -> State:
        assert state is not None, "prepare() makes it"
        return state

    def _wait_for_others(self) -> None:
        if self._ranks > 1:
            import torch.distributed as dist

            dist.barrier()

    def _seconds(self, state: State, call: Callable[[], None]) -> float:
        """Returns the number of seconds from the time when all ranks have arrived until this rank is done."""
        self._wait_for_others()
        began = time.perf_counter()
        call()
        self._side.settle(state)
        return time.perf_counter() - began


def serve(descriptor: int, side: str) -> None:
    """Answers calls until the input ends."""
    connection = Connection(descriptor)
    rank: Rank | None = None
    while True:
        try:
            request = json.loads(connection.recv_bytes())
        except (EOFError, OSError):
            os._exit(0)  # exits despite library threads, which may wait for other ranks
        try:
            rank = rank or Rank(side)
            answer = {"done": getattr(rank, request.pop("call"))(**request)}
        except BaseException as error:
            answer = {"error": one_line(error)}
        connection.send_bytes(json.dumps(answer).encode())
