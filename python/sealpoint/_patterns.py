# SPDX-License-Identifier: Apache-2.0
"""Patterns of tensor names, and renaming by patterns."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from sealpoint._errors import InvalidArgumentError


def pattern(text: str) -> re.Pattern[str]:
    """Compiles a pattern. ``*`` matches any characters including dots; ``?`` matches one character."""
    return re.compile("".join({"*": "(.*)", "?": "(.)"}.get(c) or re.escape(c) for c in text), re.DOTALL)


def renamer(rules: Iterable[tuple[str, str]]) -> Callable[[str], str]:
    """Returns a function that renames a name by the first rule whose pattern matches the whole name.

    The n-th ``*`` in a new name stands for the text that the n-th wildcard in the pattern matched.
    """
    compiled = []
    for source, target in rules:
        stars = sum(c in "*?" for c in source)
        if target.count("*") > stars:
            raise InvalidArgumentError(f"{target!r} has more * than {source!r}")
        compiled.append((pattern(source), target))

    def rename(name: str) -> str:
        for fits, target in compiled:
            match = fits.fullmatch(name)
            if match:
                groups = iter(match.groups())
                return "".join(next(groups) if c == "*" else c for c in target)
        return name

    return rename
