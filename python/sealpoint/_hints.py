# SPDX-License-Identifier: Apache-2.0
"""Suggestions for unknown names."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Collection, Iterable, Set

_COMPARED_MAX = 1000  # each comparison takes about 20 microseconds
_LOOKED_AT_MAX = 10_000
_PARTS_MAX = 3


def nearest(name: str, names: Collection[str]) -> str | None:
    """Returns the most similar name. If there are many names, considers only names with the same first or last part as ``name``."""
    candidates: Iterable[str] = names
    if len(names) > _COMPARED_MAX:
        begin, end = name.rpartition(".")[0] + ".", "." + name.rpartition(".")[2]
        candidates = [item for item in names if item.startswith(begin) or item.endswith(end)][:_COMPARED_MAX]
    found = difflib.get_close_matches(name, candidates, n=1)
    return found[0] if found else None


def extra_part(longer: Iterable[str], shorter: Set[str]) -> tuple[str, int] | None:
    """Finds a name part, such as "module", that most of the longer names contain and the shorter names do not.

    Returns the part, and the number of longer names that equal a shorter name except for this part.
    """
    votes: Counter[str] = Counter()
    for name, _ in zip(longer, range(_LOOKED_AT_MAX), strict=False):
        parts = name.split(".")
        cuts = ((i, j) for i in range(len(parts)) for j in range(i + 1, min(len(parts), i + _PARTS_MAX + 1)))
        found = {".".join(parts[i:j]) for i, j in cuts if ".".join(parts[:i] + parts[j:]) in shorter}
        votes.update(found)
    best = votes.most_common(1)
    return best[0] if best else None
