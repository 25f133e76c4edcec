# SPDX-License-Identifier: Apache-2.0
"""Rules for the values of arguments. An error names the argument, the found value and the expected values.

This module imports only ``_errors`` from the package, so that scripts/options.py can read the option table without a build.
"""

from __future__ import annotations

import operator
import os
import re
import reprlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from sealpoint._errors import ArgumentTypeError, InvalidArgumentError

T = TypeVar("T")
THREADS_MAX = 1024
U32_MAX, U64_MAX = 2**32 - 1, 2**64 - 1


def brief(value: Any) -> str:
    return reprlib.repr(value)


def is_text(value: Any) -> bool:
    """Tells whether a value is a str that UTF-8 can encode, that is, a str without lone surrogates."""
    try:
        return isinstance(value, str) and value.encode() is not None
    except UnicodeEncodeError:
        return False


def is_integer(value: Any) -> bool:
    if isinstance(value, bool):
        return False
    try:
        operator.index(value)
        return True
    except TypeError:
        return False


def is_string(value: Any) -> bool:
    return isinstance(value, str)


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def always(_: Any) -> bool:
    return True


class Rule(NamedTuple):
    """Type and range of a value."""

    has_type: Callable[[Any], bool]
    has_value: Callable[[Any], bool]
    expected: str

    def check(self, name: str, value: Any) -> None:
        """Raises ArgumentTypeError and InvalidArgumentError."""
        if not self.has_type(value):
            raise ArgumentTypeError(f"{name} is {brief(value)}, expected {self.expected}")
        if not self.has_value(value):
            raise InvalidArgumentError(f"{name} is {brief(value)}, expected {self.expected}")


class Parsed(NamedTuple):
    """Rule for a value that is checked by the function that parses it."""

    parse: Callable[[str, Any], Any]

    def check(self, name: str, value: Any) -> None:
        self.parse(name, value)


def or_none(rule: Rule, expected: str = "") -> Rule:
    return Rule(
        lambda value: value is None or rule.has_type(value),
        lambda value: value is None or rule.has_value(value),
        expected or f"{rule.expected}, or None",
    )


def integer(minimum: int, maximum: int, unit: str = "an integer") -> Rule:
    limits = f"{unit} of {minimum} to {maximum}" if maximum < U32_MAX else f"{unit} of at least {minimum}"
    return Rule(is_integer, lambda value: minimum <= operator.index(value) <= maximum, limits)


def c_integer(minimum: int) -> Rule:
    """Returns the rule for an integer that is passed as a C int. No caller needs a value above the range of a C int."""
    return integer(minimum, 2**31 - 1)._replace(expected=f"an integer of at least {minimum}")


def words(*known: str) -> Rule:
    return Rule(is_string, lambda value: value in known, "one of " + ", ".join(known))


def of_type(kind: Any, expected: str) -> Rule:
    return Rule(lambda value: isinstance(value, kind), always, expected)


def sequence(has_type: Callable[[Any], bool], has_value: Callable[[Any], bool], expected: str) -> Rule:
    return Rule(
        lambda value: isinstance(value, Sequence) and not isinstance(value, (str, bytes)) and all(map(has_type, value)),
        lambda value: all(map(has_value, value)),
        expected,
    )


_parents: list[type] = []


def may_be_parent(cls: type[T]) -> type[T]:
    """Registers a class whose instances are accepted as ``parent``."""
    _parents.append(cls)
    return cls


def _is_parent(value: Any) -> bool:
    from sealpoint._sealpoint import CommitInfo

    return isinstance(value, (*_parents, CommitInfo)) or (
        isinstance(value, tuple) and len(value) in (2, 3) and isinstance(value[0], str) and is_integer(value[1])
        and all(isinstance(item, str) for item in value[2:])
    )


def is_list(value: Any) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, (str, bytes, os.PathLike))


def is_attempt(value: str) -> bool:
    return re.fullmatch("[0-9a-f]{32}", value) is not None and value != "0" * 32


def _is_renaming(value: Any) -> bool:
    return isinstance(value, Mapping) and all(isinstance(item, str) for pair in value.items() for item in pair)


def _is_cuts(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes)) and all(map(is_integer, value))


def _has_cuts(value: Any) -> bool:
    return all(is_text(name) and all(0 <= n <= U64_MAX for n in map(operator.index, cuts)) for name, cuts in value.items())


BOOL = of_type(bool, "True or False")
TEXT = Rule(is_string, is_text, "a str that UTF-8 can encode")
BYTES = integer(0, U64_MAX, "a number of bytes")
COUNT = integer(0, U64_MAX)
SOME_BYTES = integer(1, U64_MAX, "a number of bytes")
THREADS = or_none(integer(1, THREADS_MAX))
STRINGS = sequence(is_string, is_text, "a sequence of strings")
PATTERNS = sequence(is_string, always, "a sequence of patterns of names")
SECONDS = or_none(
    Rule(is_number, lambda value: 0 < value < 1e9, ""), "seconds above 0 and below 1e9, or None: no limit"
)
STEP = or_none(integer(0, U64_MAX - 1))
RANKS = sequence(is_integer, lambda value: 0 <= operator.index(value) < 2**31, "a sequence of ranks")
RENAMING = or_none(Rule(_is_renaming, always, ""), "a mapping of names to names, with * for any characters")
CUTS = or_none(
    Rule(
        lambda value: isinstance(value, Mapping) and all(map(is_string, value)) and all(map(_is_cuts, value.values())),
        _has_cuts,
        "a mapping of patterns of names to sequences of integers of at least 0",
    )
)
PARENT = or_none(
    Rule(
        _is_parent,
        lambda value: not isinstance(value, tuple)
        or (is_attempt(value[0]) and 0 <= value[1] <= U64_MAX and all(map(is_text, value[2:]))),
        "a Checkpoint, a CommitInfo, or (attempt, sequence), with its directory or without",
    )
)
PROGRESS = Rule(
    lambda value: value is None or isinstance(value, bool) or callable(value), always, "True, False, None or a function"
)
