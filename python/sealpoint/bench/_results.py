# SPDX-License-Identifier: Apache-2.0
"""The results of a run, and the measurements in which Sealpoint is slower."""

from __future__ import annotations

import dataclasses
import statistics
from typing import Any, NamedTuple

from sealpoint.bench._mishaps import STATES
from sealpoint.bench._peers import INFOS, OURS


class Operation(NamedTuple):
    """A row of the table.

    ``text`` explains the row. In this text, ``{ranks}`` is the number of saving ranks, and ``{others}`` is the number of ranks in
    the second load.
    """

    title: str
    text: str


OPERATIONS = {
    "save": Operation("Save", "From the call until all data that {ranks} wrote is synced to the storage."),
    "stall": Operation("Stall of a save in the background", "How long the call delays the next training step."),
    "background": Operation("Save in the background, until it is durable",
                            "From the same call until the checkpoint is synced to the storage, while no training runs."),
    "load_warm": Operation("Load, warm", "By {ranks}, in the layout of the save, with all files in the page cache."),
    "load_cold": Operation("Load, cold",
                           "By {ranks}, in the layout of the save, after posix_fadvise(DONTNEED) dropped all files from the page "
                           "cache."),
    "load": Operation("Load", "By {ranks}, in the layout of the save."),
    "load_others": Operation("Load on {others}", "Each rank loads its rows of the state that {ranks} saved; warm."),
    "save_small": Operation("Save of {small} small tensors",
                            "Vectors of 256 bytes, each on one rank, until all of them are synced to the storage."),
    "load_small": Operation("Load of {small} small tensors", "The same vectors, by {ranks}, in the layout of the save; warm."),
}  # fmt: skip


@dataclasses.dataclass
class Figures:
    """The times of a peer in one row: for each round, the seconds that the slowest rank took. Round 0 is a warm-up.

    ``from_storage``: number of bytes that a load read from a device, if the system reports this number.
    """

    seconds: dict[int, float] = dataclasses.field(default_factory=dict)
    from_storage: dict[int, int | None] = dataclasses.field(default_factory=dict)

    def counted(self) -> list[int]:
        """Returns the rounds that count. Round 0 counts only if there is no other round."""
        return [number for number in self.seconds if number > 0] or list(self.seconds)

    def spread(self) -> Spread:
        return Spread.of([self.seconds[number] for number in self.counted()])


class Spread(NamedTuple):
    median: float
    least: float
    greatest: float
    rounds: int

    @staticmethod
    def of(values: list[float]) -> Spread:
        return Spread(statistics.median(values), min(values), max(values), len(values))


@dataclasses.dataclass
class Row:
    operation: str
    device: str
    nbytes: int
    figures: dict[str, Figures] = dataclasses.field(default_factory=dict)

    def times_as_fast(self, peer: str) -> Spread | None:
        """Returns the speed of Sealpoint divided by the speed of a peer.

        Uses the rounds that count for the peer, except rounds that Sealpoint did not run.
        """
        ours, theirs = self.figures.get(OURS), self.figures.get(peer)
        if ours is None or theirs is None or peer == OURS:
            return None
        both = [theirs.seconds[number] / ours.seconds[number] for number in theirs.counted() if number in ours.seconds]
        return Spread.of(both) if both else None


class Slower(NamedTuple):
    """A row in which Sealpoint is slower.

    ``ratios``: for each faster peer, the speed of Sealpoint divided by the speed of the peer, lowest first.
    """

    row: Row
    ratios: list[tuple[str, Spread]]


@dataclasses.dataclass
class Results:
    rows: list[Row] = dataclasses.field(default_factory=list)
    #: Number of loads per outcome, by peer.
    bits: dict[str, dict[str, int]] = dataclasses.field(default_factory=dict)
    kills: dict[str, dict[str, int]] = dataclasses.field(default_factory=dict)
    #: Reasons for missing results. A key is the name of a peer, of a part of the run, or "part: peer".
    left_out: dict[str, str] = dataclasses.field(default_factory=dict)
    failed: dict[str, str] = dataclasses.field(default_factory=dict)
    notes: list[str] = dataclasses.field(default_factory=list)
    #: The last round in which a load returned wrong data, by "operation: peer".
    wrong: dict[str, int] = dataclasses.field(default_factory=dict)

    def row(self, operation: str, device: str, nbytes: int) -> Row:
        found = next((item for item in self.rows if (item.operation, item.device) == (operation, device)), None)
        if found is None:
            self.rows.append(found := Row(operation, device, nbytes))
            self.rows.sort(key=lambda one: (one.device, list(OPERATIONS).index(one.operation)))
        return found

    def slower(self) -> list[Slower]:
        """Returns the rows in which a peer is faster than Sealpoint in the median of the rounds, largest deficit first."""
        found = []
        for row in self.rows:
            ratios = [(peer, ratio) for peer in INFOS if (ratio := row.times_as_fast(peer)) is not None and ratio.median < 1]
            if ratios:
                found.append(Slower(row, sorted(ratios, key=lambda one: one[1].median)))
        return sorted(found, key=lambda one: one.ratios[0][1].median)

    def peers(self) -> list[str]:
        """Returns the peers that have results, in the order of the report."""
        seen = {peer for row in self.rows for peer in row.figures} | set(self.bits) | set(self.kills)
        return [name for name in INFOS if name in seen]

    def faults(self) -> list[str]:
        """Returns the failures of Sealpoint itself."""
        found = [f"{part}: {why}" for part, why in self.failed.items() if part.endswith(f": {OURS}")]
        found += [f"loaded wrong: {what}" for what in self.wrong if what.endswith(f": {OURS}")]
        found += [f"a flipped bit was loaded {what}" for what in self.bits.get(OURS, {}) if what in STATES[1:]]
        found += [f"a killed save left {what}" for what in self.kills.get(OURS, {}) if what not in STATES[:2]]
        return found


def errors_in(tally: dict[str, int]) -> dict[str, int]:
    """Counts errors by kind."""
    found: dict[str, int] = {}
    for text, count in tally.items():
        if text not in STATES:
            kind = text.partition(":")[0]
            found[kind] = found.get(kind, 0) + count
    return found


def bits_words(tally: dict[str, int]) -> str:
    errors, total = errors_in(tally), sum(tally.values())
    parts = [f"{sum(errors.values())} found ({', '.join(errors)})"] if errors else []
    names = {"wrong": "loaded wrong", "mixed": "loaded wrong", "old": "in bytes that the load does not use"}
    parts += [f"{tally[what]} {words}" for what, words in names.items() if tally.get(what)]
    return f"of {total}: {', '.join(parts)}"


def kills_words(tally: dict[str, int]) -> str:
    errors, total = errors_in(tally), sum(tally.values())
    names = {"old": "the old one", "new": "the new one", "mixed": "old and new mixed", "wrong": "neither"}
    parts = [f"{tally[what]} {words}" for what, words in names.items() if tally.get(what)]
    parts += [f"{sum(errors.values())} nothing loads ({', '.join(errors)})"] if errors else []
    return f"of {total}: {', '.join(parts)}"


def as_json(results: Results, facts: dict[str, Any]) -> dict[str, Any]:
    rows = []
    for row in results.rows:
        ratios = {peer: ratio._asdict() for peer in row.figures if (ratio := row.times_as_fast(peer)) is not None}
        figures = {peer: {**each.spread()._asdict(), "seconds": [each.seconds[number] for number in each.counted()],
                       "from_storage": [each.from_storage[number] for number in each.counted() if number in each.from_storage]}
                   for peer, each in row.figures.items()}  # fmt: skip
        rows.append({"operation": row.operation, "device": row.device, "raw_bytes": row.nbytes, "figures": figures,
                     "sealpoint_is_times_as_fast": ratios})  # fmt: skip
    slower = [{"operation": result.row.operation, "device": result.row.device, "peer": peer, **ratio._asdict()}
              for result in results.slower() for peer, ratio in result.ratios]  # fmt: skip
    return {**facts, "slower": slower, "rows": rows, "bits": results.bits, "kills": results.kills,
            "left_out": results.left_out, "failed": results.failed, "wrong": list(results.wrong), "notes": results.notes,
            "faults": results.faults()}  # fmt: skip
