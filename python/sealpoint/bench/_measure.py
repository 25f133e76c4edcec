# SPDX-License-Identifier: Apache-2.0
"""Runs each peer once per round, in an order that changes from round to round. Then flips bits and kills saves."""

from __future__ import annotations

import dataclasses
import functools
import math
import time
from collections.abc import Callable
from typing import TypeVar

from sealpoint import _sealpoint
from sealpoint._errors import CommError
from sealpoint.bench import _state
from sealpoint.bench._peers import INFOS, OURS
from sealpoint.bench._place import Place
from sealpoint.bench._ranks import RankError, Ranks
from sealpoint.bench._results import Figures, Results

# Share of the time for each part of the run, in the order of the parts.
_SHARES = {"big": 6.0, "small": 3.0, "others": 2.0, "bits": 1.5, "kills": 2.5}
# If a call is still running when the time is over, it may take this additional share of --minutes.
_GRACE, _GRACE_LEAST_SECONDS = 0.25, 30.0
_SPARE_BYTES = 64 << 20
# With this number of rounds, a single slow round does not change the median much.
_ROUNDS_WANTED = 3
# Timeout for the start of the ranks, which import all peers before the clock starts.
_START_LIMIT_SECONDS = 300.0


@dataclasses.dataclass
class Options:
    size_bytes: int
    minutes: float
    ranks: int
    other_ranks: int
    rounds: int
    small: int
    flips: int
    kills: int
    side: str
    peers: list[str]

    def rows_multiple(self) -> int:
        return math.lcm(self.ranks, self.other_ranks)

    def disk_bytes(self) -> int:
        """Maximum size of the folder: one checkpoint of each peer, and one more that is being written."""
        return (len(self.peers) + 1) * (self.size_bytes + self.size_bytes // 16) + _SPARE_BYTES

    def memory_bytes(self) -> int:
        """Estimated memory for the state, for the destination of loads, and for the copies that saves make."""
        return 4 * self.size_bytes


class Clock:
    """The time of the whole run and of its parts."""

    def __init__(self, minutes: float, parts: list[str]) -> None:
        self._end = time.monotonic() + 60 * minutes
        self._grace = max(_GRACE_LEAST_SECONDS, 60 * minutes * _GRACE)
        self._parts = parts
        self.part_end = self._end

    def begin(self, part: str) -> None:
        """Begins a part of the run, which gets a share of the remaining time."""
        now = time.monotonic()
        left = sum(_SHARES[item] for item in self._parts)
        self._parts.remove(part)
        self.part_end = now + max(0.0, self._end - now) * _SHARES[part] / left

    def has(self, seconds: float) -> bool:
        return time.monotonic() + seconds <= self.part_end

    def limit(self) -> float:
        """Returns the number of seconds after which a call that is still running is ended."""
        return max(_GRACE_LEAST_SECONDS, self._end + self._grace - time.monotonic())


Say = Callable[[str], None]
T = TypeVar("T")


class Run:
    def __init__(self, options: Options, place: Place, say: Say) -> None:
        self.options, self.place, self.say = options, place, say
        self.results = Results()
        self.gpus: list[str] = []
        self.kept: dict[str, str] = {}  # paths of checkpoints of the big state, by peer
        self._big = _state.big(options.size_bytes, options.rows_multiple())

    def all(self) -> None:
        """Runs all measurements. Raises CommError if the ranks do not start, and OSError if output cannot be removed."""
        options, has_others = self.options, self.options.side == "torch"
        if self.place.is_memory:
            self.results.left_out["load_cold"] = f"{self.place.file_system} keeps files in memory"
        with Ranks(options.ranks, options.side) as ranks:
            self.say("starting ranks")
            try:
                self.gpus = ranks.call("devices", _START_LIMIT_SECONDS)[0]
            except RankError as error:
                raise CommError(f"the {options.ranks} processes did not start: {error}") from None
            devices = ["cpu", "cuda"] if self.gpus else ["cpu"]
            clock = Clock(options.minutes, ["big"] * len(devices) + ["small"] + ["others"] * has_others + ["bits", "kills"])
            for device in devices:
                clock.begin("big")
                _Part(self, ranks, clock, self._big, device).rounds()
            clock.begin("small")
            _Part(self, ranks, clock, _state.small(options.small), "cpu").rounds()
        if has_others:
            with Ranks(options.other_ranks, options.side) as ranks:
                self.attempt("load on other ranks", functools.partial(ranks.start, _START_LIMIT_SECONDS))
                clock.begin("others")
                _Part(self, ranks, clock, self._big, devices[-1], is_other=True).rounds()
        else:
            self.results.left_out["load_others"] = "torch is not installed: without it there is one process"
        with Ranks(1, options.side) as ranks:
            self._mishaps(ranks, clock, "bits", options.flips)
            if self.place.is_url:
                self.results.left_out["kills"] = "a killed save may leave an unfinished upload, which no client here can remove"
            else:
                self._mishaps(ranks, clock, "kills", options.kills)

    def _mishaps(self, ranks: Ranks, clock: Clock, part: str, count: int) -> None:
        """Runs the bit-flip test or the kill test. Each peer gets an equal share of the time."""
        clock.begin(part)
        call, size, found = _MISHAPS[part]
        peers = self.peers() if count else []
        for number, peer in enumerate(peers):
            self.say(f"{part}: {peer}")
            seconds = max(0.0, clock.part_end - time.monotonic()) / (len(peers) - number)
            arguments = {"peer": peer, "path": self.place.join(f"{part}-{peer}"), "count": count, "seconds": seconds,
                         "size": min(size, self.options.size_bytes)}  # fmt: skip
            answers = self.attempt(f"{part}: {peer}", functools.partial(ranks.call, call, clock.limit() + seconds, **arguments))
            if answers is not None:
                found(self.results)[peer] = answers[0]
            _sealpoint.remove_path(self.place.join(f"{part}-{peer}"))

    def peers(self) -> list[str]:
        """Returns the peers that have not failed so far."""
        failed = {part.rpartition(": ")[2] for part in self.results.failed}
        return [peer for peer in self.options.peers if peer not in failed]

    def attempt(self, part: str, work: Callable[[], T]) -> T | None:
        """Runs a measurement. If the measurement fails, records the failure and returns None, so that the run continues."""
        try:
            return work()
        except RankError as error:
            self.results.failed[part] = str(error)
            return None


# By part of the run: the rank function, the size of the saved state, and the place for the results.
_MISHAPS: dict[str, tuple[str, int, Callable[[Results], dict[str, dict[str, int]]]]] = {
    "bits": ("flip_bits", 4 << 20, lambda results: results.bits),
    "kills": ("kill_saves", 64 << 20, lambda results: results.kills),
}


def those_that_fit(took: dict[str, float], has: Callable[[float], bool]) -> list[str]:
    """Selects the peers for further rounds by the duration of their first round.

    The slowest peer is dropped if it takes more than half of a round, and if ``_ROUNDS_WANTED`` rounds fit only without this peer.
    After that, the slowest remaining peers are dropped until a round fits. If only Sealpoint would remain, no peer is returned.
    """
    fit, total = sorted(took, key=lambda peer: (peer != OURS, took[peer])), sum(took.values())
    rest = total - took[fit[-1]] if fit else 0.0
    if len(fit) > 2 and rest < total / 2 and not has(_ROUNDS_WANTED * total) and has(_ROUNDS_WANTED * rest):
        fit.pop()
    while len(fit) > 1 and not has(sum(took[peer] for peer in fit)):
        fit.pop()
    return fit if len(fit) > 1 or (len(took) == 1 and has(total)) else []


class _Part:
    """The rounds for one state on one device.

    The first round is a warm-up. It counts only for peers that ran no other round.
    """

    def __init__(self, run: Run, ranks: Ranks, clock: Clock, spec: _state.Spec, device: str, is_other: bool = False) -> None:
        self._run, self._ranks, self._clock, self._spec = run, ranks, clock, spec
        self._device, self._is_other = device, is_other
        self._name = "load on other ranks" if is_other else "small tensors" if spec.kind == "small" else f"state on {device}"
        self._peers = [peer for peer in run.peers() if not is_other or peer in run.kept]
        self._is_prepared = False

    def rounds(self) -> None:
        once: set[str] = set()
        for number in range(self._run.options.rounds + 1):
            took: dict[str, float] = {}
            shift = number % max(1, len(self._peers))
            for peer in self._peers[shift:] + self._peers[:shift]:
                self._run.say(f"{self._name}: round {number} of at most {self._run.options.rounds}: {peer}")
                began = time.monotonic()
                if self._run.attempt(f"{self._name}: {peer}", functools.partial(self._one, peer, number)) is None:
                    self._peers.remove(peer)
                    self._is_prepared = False  # the error has ended the ranks
                took[peer] = time.monotonic() - began
            took = {peer: took[peer] for peer in self._peers}
            if number == 0:
                fit = those_that_fit(took, self._clock.has)
                once = set(self._peers) - set(fit)
                self._peers = [peer for peer in self._peers if peer in fit]
            elif not self._clock.has(sum(took.values())):
                break
            if not self._peers:
                break
        if once:
            names = ", ".join(INFOS[peer].title for peer in INFOS if peer in once)
            self._run.results.notes.append(f"{self._name}: there was time for one round only of {names}, which is also the "
                                           "warm-up: give more --minutes or a smaller --size")  # fmt: skip

    def _call(self, name: str, peer: str, **arguments: object) -> list[object]:
        limit = self._clock.limit()
        if not self._is_prepared:
            self._ranks.call("prepare", limit, spec=list(self._spec), device=self._device)
            self._is_prepared = True
        return self._ranks.call(name, limit, peer=peer, **arguments)

    def _one(self, peer: str, number: int) -> bool:
        """Runs all operations of a peer. Raises RankError."""
        if self._is_other:
            self._load(peer, number, self._run.kept[peer], "load_others", "warm")
        elif self._spec.kind == "small":
            path = self._run.place.join(f"small-{peer}-{number}")
            self._add("save_small", peer, number, self._call("save", peer, path=path))
            self._load(peer, number, path, "load_small", "warm")
            _sealpoint.remove_path(path)
        else:
            self._big(peer, number)
        return True

    def _big(self, peer: str, number: int) -> None:
        path = self._run.place.join(f"big-{peer}-{number}-{self._device}")
        if (older := self._run.kept.pop(peer, None)) is not None:
            _sealpoint.remove_path(older)
        self._add("save", peer, number, self._call("save", peer, path=path))
        self._run.kept[peer] = path
        if self._run.place.is_url:
            self._load(peer, number, path, "load", "")
        else:
            self._load(peer, number, path, "load_warm", "warm")
            if not self._run.place.is_memory:
                self._load(peer, number, path, "load_cold", "cold")
        self._save_async(peer, number)

    def _save_async(self, peer: str, number: int) -> None:
        path = self._run.place.join(f"background-{peer}-{number}-{self._device}")
        answers = [item for item in self._call("save_async", peer, path=path) if isinstance(item, list)]
        if answers:
            self._add("stall", peer, number, [answer[0] for answer in answers])
            self._add("background", peer, number, [answer[1] for answer in answers])
        _sealpoint.remove_path(path)

    def _load(self, peer: str, number: int, path: str, operation: str, cache: str) -> None:
        cache = "" if self._run.place.is_url else cache
        answers = self._call("load", peer, path=path, saved_ranks=self._run.options.ranks, cache=cache)
        found = [answer for answer in answers if isinstance(answer, dict)]
        if not all(item["is_right"] for item in found):
            self._run.results.wrong[f"{operation}: {peer}"] = number
        figures = self._add(operation, peer, number, [item["seconds"] for item in found])
        read = [item["from_storage"] for item in found]
        figures.from_storage[number] = None if None in read else sum(read)

    def _add(self, operation: str, peer: str, number: int, seconds: list[object]) -> Figures:
        """Records a duration. Ranks work at the same time, so the duration of the slowest rank counts."""
        row = self._run.results.row(operation, self._device, self._spec.nbytes)
        figures = row.figures.setdefault(peer, Figures())
        figures.seconds[number] = max(second for second in seconds if isinstance(second, float))
        return figures
