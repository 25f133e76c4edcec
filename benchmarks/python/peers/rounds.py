# SPDX-License-Identifier: Apache-2.0
"""Cells in turns: in each round every peer runs once on a workload, in another order than in the round before."""

import dataclasses
import pathlib
import shutil
import statistics

from peers.cell import Cell, bytes_of, run_cell
from peers.peer import OURS


@dataclasses.dataclass
class Options:
    folder: pathlib.Path
    ranks: int = 2
    rounds: int = 5
    with_cold: bool = False
    limit_seconds: float = 300
    # An operation that took longer in the first round is measured once.
    slow_seconds: float = 15


@dataclasses.dataclass
class Figures:
    """Of one operation of one peer on one workload: a value per round."""

    nbytes: int
    seconds: list = dataclasses.field(default_factory=list)
    cpu_seconds: list = dataclasses.field(default_factory=list)
    read_calls: list = dataclasses.field(default_factory=list)
    read_storage: list = dataclasses.field(default_factory=list)
    peak_bytes: list = dataclasses.field(default_factory=list)
    rounds: list = dataclasses.field(default_factory=list)

    def add(self, number, costs):
        """Ranks work at the same time: the slowest counts, of the memory the greatest, all else is added up."""
        self.rounds.append(number)
        self.seconds.append(max(cost.seconds for cost in costs))
        self.cpu_seconds.append(sum(cost.cpu_seconds for cost in costs))
        self.read_calls.append(sum(cost.read_calls for cost in costs))
        self.read_storage.append(sum(cost.read_storage for cost in costs))
        self.peak_bytes.append(max(cost.peak_bytes for cost in costs))

    def rates(self):
        """GB/s."""
        return [self.nbytes / seconds / 1e9 for seconds in self.seconds]

    def times_of(self, other):
        """How many times as long another one takes, in the rounds that both have."""
        theirs = dict(zip(other.rounds, other.seconds, strict=True))
        ours = zip(self.rounds, self.seconds, strict=True)
        return [theirs[number] / seconds for number, seconds in ours if number in theirs]


class Results:
    def __init__(self):
        self.figures = {}  # (workload, operation, peer) -> Figures
        self.errors = {}  # (workload, peer) -> why it ended

    def rows(self, workload):
        """Operations of a workload that anybody has figures of, in the workload's order; cold ones behind warm ones."""
        order = [name for operation in workload.operations for name in (operation, f"{operation}, cold")]
        seen = {operation for name, operation, _ in self.figures if name == workload.name}
        return [operation for operation in order if operation in seen]

    def of(self, workload, operation, peer):
        return self.figures.get((workload.name, operation, peer))

    def ratios(self, workload, operation, peer):
        """How many times as fast Sealpoint is, by round; empty if one of them has no figures."""
        ours, theirs = self.of(workload, operation, OURS), self.of(workload, operation, peer)
        return ours.times_of(theirs) if ours and theirs else []


def check_space(workload, options):
    """At most two copies of the state are in the folder."""
    needed = 2 * workload.nbytes + workload.nbytes // 4 + (64 << 20)
    free = shutil.disk_usage(options.folder).free
    if free < needed:
        return f"{options.folder} has {free:,} bytes free, expected at least {needed:,}"
    return None


def measure(workloads, peers, options, say):
    """peers: classes by name. The first round is not counted: what is loaded in it is compared."""
    results = Results()
    for workload in workloads:
        why = check_space(workload, options)
        if why is not None:
            results.errors.update({(workload.name, name): why for name in peers})
            say(f"{workload.name}: {why}")
            continue
        slow = {name: frozenset() for name in peers}
        for number in range(options.rounds + 1):
            names = list(peers)
            for name in names[number % len(names):] + names[:number % len(names)]:
                is_done = number > 1 and slow[name]
                if (workload.name, name) not in results.errors and not is_done:
                    slow[name] |= run_one(workload, name, peers[name], number, slow[name], options, results, say)
    return results


def run_one(workload, name, peer, number, slow, options, results, say):
    """Returns the operations that were slow, if this is the first round."""
    cell = Cell(workload, peer, options.ranks, options.folder / f"{workload.name}-{name}-{number}", is_check=number == 0,
                with_cold=options.with_cold, slow=slow, limit_seconds=options.limit_seconds)
    costs, why = run_cell(cell)
    if why is None and number == 0:
        why = why_not_verified(workload, costs)
    if why is not None:
        results.errors[workload.name, name] = why
        say(f"{workload.name}: {name}: {why}")
    if number == 0:
        return frozenset(op for op, ranks in costs.items() if max(cost.seconds for cost in ranks) > options.slow_seconds)
    for operation, ranks in costs.items():
        nbytes = bytes_of(workload, operation.removesuffix(", cold"), options.ranks)
        results.figures.setdefault((workload.name, operation, name), Figures(nbytes)).add(number, ranks)
    spent = sum(max(cost.seconds for cost in ranks) for ranks in costs.values())
    say(f"{workload.name}: round {number} of {options.rounds}: {name}: {spent:.2f} s")
    return frozenset()


def why_not_verified(workload, costs):
    """A verification that does not read all bytes is none."""
    read = sum(cost.read_calls for cost in costs.get("verify", ()))
    if "verify" in costs and read < workload.nbytes:
        return f"verify: read {read:,} bytes, expected at least {workload.nbytes:,}"
    return None


def median(values):
    return statistics.median(values) if values else None
