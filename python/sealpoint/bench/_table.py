# SPDX-License-Identifier: Apache-2.0
"""Formats the results for standard output."""

from __future__ import annotations

from typing import Any

from sealpoint._sealpoint import printable
from sealpoint.bench import _words
from sealpoint.bench._peers import INFOS, OURS
from sealpoint.bench._results import Results, Row, bits_words, kills_words

_WIDTH = max(len(info.title) for info in INFOS.values()) + 2


def lines(results: Results, facts: dict[str, Any]) -> list[str]:
    found = ["", "Where Sealpoint is slower"]
    slower = results.slower()
    found += [f"  {_words.slower(item, facts)}" for item in slower] or [f"  {_words.nowhere_slower(results)}"]
    found += ["", _words.HOW_TO_READ]
    for row in results.rows:
        found += _row(row, facts)
    for (title, text), tallies, words in ((_words.BITS, results.bits, bits_words), (_words.KILLS, results.kills, kills_words)):
        if tallies:
            found += ["", title, f"  {text}"]
            found += [f"  {INFOS[peer].title:<{_WIDTH}}{words(tally)}" for peer, tally in tallies.items()]
    missing = _words.missing(results)
    found += ["", "Left out, failed, and noted", *(f"  {printable(name)}" for name in missing)] if missing else []
    machine = facts["machine"]
    found += ["", f"{facts['file_system']}; {machine['processors']} processors of {machine['processor']}; {machine['kernel']}; "
              f"load average {machine['load_average']}; " + ", ".join(f"{k} {v}" for k, v in facts["versions"].items()),
              f"Page cache: {facts['page_cache']}."]  # fmt: skip
    return found


def _row(row: Row, facts: dict[str, Any]) -> list[str]:
    found = ["", f"{_words.title(row, facts)}, {_words.size(row.nbytes)}", f"  {_words.sentence(row, facts)}"]
    for peer in INFOS:
        if peer not in row.figures:
            continue
        spread = row.figures[peer].spread()
        rate = "" if row.operation == "stall" else f"{_words.size(row.nbytes / spread.median)}/s"
        ratio = row.times_as_fast(peer)
        said = "" if peer == OURS or ratio is None else f"  {_words.times(ratio)} times"
        found.append(f"  {INFOS[peer].title:<{_WIDTH}}{_words.spread(spread):<34}{rate:>11}{said}".rstrip())
    return found
