# SPDX-License-Identifier: Apache-2.0
"""Numbers and sentences that both the table and the page show."""

from __future__ import annotations

from typing import Any

from sealpoint.bench._peers import INFOS
from sealpoint.bench._results import OPERATIONS, Results, Row, Slower, Spread


def size(nbytes: float) -> str:
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if nbytes >= factor:
            return f"{nbytes / factor:.3g} {unit}"
    return f"{nbytes:.0f} B"


def seconds(value: float) -> str:
    return f"{value:.3g} s" if value >= 1 else f"{1000 * value:.3g} ms"


def spread(values: Spread) -> str:
    more = f"({seconds(values.least)} to {seconds(values.greatest)})" if values.rounds > 1 else "(one round)"
    return f"{seconds(values.median)} {more}"


def times(ratio: Spread) -> str:
    return f"{ratio.median:.2f}" + (f" ({ratio.least:.2f} to {ratio.greatest:.2f})" if ratio.rounds > 1 else "")


def ranks(count: int | None) -> str:
    return "one process" if count == 1 else f"{count} ranks"


def _filled(text: str, facts: dict[str, Any]) -> str:
    options = facts["options"]
    return text.format(ranks=ranks(options["ranks"]), others=ranks(options["other_ranks"]), small=f"{options['small']:,}")


def title(row: Row, facts: dict[str, Any]) -> str:
    gpu = "" if row.device == "cpu" else ", to the GPU" if row.operation.startswith("load") else ", from the GPU"
    return _filled(OPERATIONS[row.operation].title, facts) + gpu


def sentence(row: Row, facts: dict[str, Any]) -> str:
    return _filled(OPERATIONS[row.operation].text, facts)


def slower(one: Slower, facts: dict[str, Any]) -> str:
    ratios = [f"{times(ratio)} times as fast as {INFOS[peer].title}" for peer, ratio in one.ratios]
    return f"{title(one.row, facts)}: {', '.join(ratios)}"


def nowhere_slower(results: Results) -> str:
    compared = any(row.times_as_fast(peer) is not None for row in results.rows for peer in row.figures)
    return "Nowhere in this run, by the medians." if compared else "There was no peer to compare with."


HOW_TO_READ = (
    "All libraries run in turn in each round. Seconds are medians of the rounds (least to greatest); \"times as fast\" is the "
    "median of the per-round ratios. In a load Sealpoint compares the digest of every chunk, and the other libraries compare "
    "nothing."
)

# Titles and explanations of the two results that are not times.
BITS = ("One flipped bit", "One bit of the checkpoint is flipped, at a position spread evenly over all bytes. Then it is loaded.")
KILLS = ("A killed save", "A second save is killed by SIGKILL at moments spread evenly over its duration. Then the newest "
         "checkpoint is loaded. Sealpoint saves the second checkpoint next to the first, in the same series; the other libraries "
         "overwrite the first."
         )  # fmt: skip


def missing(results: Results) -> list[str]:
    """Returns the omitted and the failed measurements, with the reasons."""
    found = [f"{_part(part)} is left out: {why}" for part, why in results.left_out.items()]
    found += [f"{part} failed: {why}" for part, why in results.failed.items()]
    return found + [f"{what} loaded other data than was saved" for what in results.wrong] + results.notes


def _part(name: str) -> str:
    if name in INFOS:
        return INFOS[name].title
    return {"load_cold": "Load, cold", "load_others": "Load with a different number of ranks", "kills": KILLS[0]}[name]
