# SPDX-License-Identifier: Apache-2.0
"""Counts the outcomes of loads after a bit was flipped or a save was killed.

Every access to a checkpoint runs in a forked child, which can be killed. A child starts quickly because this process has imported
all libraries. This process has no threads.
"""

from __future__ import annotations

import collections
import contextlib
import functools
import json
import os
import select
import signal
import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from sealpoint import _sealpoint
from sealpoint.bench import _disk
from sealpoint.bench._peers import Peer, Side
from sealpoint.bench._state import State, big

# Timeout for a child, which runs one load or one save.
_LIMIT_SECONDS = 60.0
_ERROR_MAX = 300
# Outcomes of a load. Any other outcome is the text of an error.
STATES = ("old", "new", "mixed", "wrong")


def one_line(error: BaseException) -> str:
    """Returns the library's own error in one line.

    If the error combines the errors of several ranks, the first of these errors is used.
    """
    inner = getattr(error, "failures", None)  # of torch.distributed.checkpoint
    if inner:
        error = next(iter(inner.values()))[0]
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else 'no message'}"[:_ERROR_MAX]


class _Child(NamedTuple):
    pid: int
    pipe: int

    @staticmethod
    def start(work: Callable[[Callable[[], None]], Any]) -> _Child:
        """Starts a child that calls ``work``.

        ``work`` receives a callback, which it calls when it begins, and must return a JSON-serializable value.
        """
        reading, writing = os.pipe()
        pid = os.fork()
        if pid:
            os.close(writing)
            return _Child(pid, reading)

        def begin() -> None:
            os.write(writing, b"\n")

        try:
            answer = {"done": work(begin)}
        except BaseException as error:
            answer = {"error": one_line(error)}
        os.write(writing, json.dumps(answer).encode())
        os._exit(0)

    def wait_for_begin(self) -> None:
        if not select.select([self.pipe], [], [], _LIMIT_SECONDS)[0] or os.read(self.pipe, 1) != b"\n":
            self.kill()
            raise RuntimeError("the save to be killed did not start")

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.pipe)

    def answer(self) -> dict[str, Any]:
        """Returns {"done": result} or {"error": message}. If the child does not answer in time, kills the child."""
        said, end = b"", time.monotonic() + _LIMIT_SECONDS
        while select.select([self.pipe], [], [], max(0.0, end - time.monotonic()))[0]:
            part = os.read(self.pipe, 1 << 16)
            if not part:
                _, status = os.waitpid(self.pid, 0)
                os.close(self.pipe)
                answer: dict[str, Any] = json.loads(said or "{}")
                return answer or {"error": f"it died with {os.waitstatus_to_exitcode(status)}"}
            said += part
        self.kill()
        return {"error": f"it did not finish within {_LIMIT_SECONDS:.0f} s"}


def _do(work: Callable[[], Any]) -> Any:
    """Runs ``work`` in a child and returns its result. Raises RuntimeError."""
    answer = _Child.start(lambda begin: work()).answer()
    if "error" in answer:
        raise RuntimeError(answer["error"])
    return answer["done"]


class _Bench:
    """Creates and loads the states of one process for a bit-flip or kill test."""

    def __init__(self, side: Side, size_bytes: int) -> None:
        self._side, self._spec = side, big(size_bytes, 1)

    def state(self, generation: int) -> State:
        return self._side.make(self._spec, 0, 1, "cpu", generation)

    def loaded(self, load: Callable[[State], None]) -> str:
        """Loads in a child. Returns one of STATES, or the error if the load fails."""

        def work(begin: Callable[[], None]) -> str:
            state = self.state(0)
            load(state)
            found = self._side.generations(state)
            if "neither" in found:
                return "wrong"
            return "mixed" if len(found) > 1 else "old" if 1 in found else "new"

        answer = _Child.start(work).answer()
        return str(answer.get("done") or answer["error"])


def _spread(count: int) -> list[int]:
    """Returns all numbers below ``count``, in an order in which the first few are spread evenly.

    The order matters if there is not enough time for all numbers.
    """
    golden = (5**0.5 - 1) / 2
    return sorted(range(count), key=lambda number: number * golden % 1)


def flip_bits(side: Side, peer: Peer, path: str, size_bytes: int, count: int, seconds: float) -> dict[str, int]:
    """Counts the outcomes of loads. Before each load, a different bit of the checkpoint is flipped."""
    end, bench = time.monotonic() + seconds, _Bench(side, size_bytes)
    _do(lambda: peer.save(bench.state(1), path))
    tally: collections.Counter[str] = collections.Counter()
    places = _do(lambda: _disk.places(path, count))
    for number in _spread(len(places)):
        flip = functools.partial(_disk.flip, path, *places[number])
        _do(flip)
        tally[bench.loaded(lambda state: peer.load(state, path, 1))] += 1
        _do(flip)
        if time.monotonic() > end:
            break
    return dict(tally)


def kill_saves(side: Side, peer: Peer, path: str, size_bytes: int, count: int, seconds: float) -> dict[str, int]:
    """Counts the outcomes of loads after a second save was killed.

    The times of the kills are spread evenly over the duration of a save.
    """
    end, bench = time.monotonic() + seconds, _Bench(side, size_bytes)

    def begin_anew() -> None:
        _do(lambda: _sealpoint.remove_path(path))
        _do(lambda: peer.save_next(bench.state(1), path, 1))

    def save(begin: Callable[[], None]) -> float:
        state = bench.state(2)
        begin()
        began = time.monotonic()
        peer.save_next(state, path, 2)
        return time.monotonic() - began

    took = []
    for _ in range(2):
        begin_anew()
        child = _Child.start(save)
        child.wait_for_begin()
        answer = child.answer()
        if "error" in answer:
            raise RuntimeError(answer["error"])
        took.append(answer["done"])
    tally: collections.Counter[str] = collections.Counter()
    for number in _spread(count):
        begin_anew()
        child = _Child.start(save)
        child.wait_for_begin()
        time.sleep(statistics.median(took) * (number + 0.5) / count)
        child.kill()
        tally[bench.loaded(lambda state: peer.load_newest(state, path))] += 1
        if time.monotonic() > end:
            break
    with contextlib.suppress(RuntimeError):  # the complete folder is removed at the end
        _do(lambda: _sealpoint.remove_path(path))
    return dict(tally)
