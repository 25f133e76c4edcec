# SPDX-License-Identifier: Apache-2.0
"""Argument checks of collective saves and loads, for any framework."""

from __future__ import annotations

import contextlib
import operator
import reprlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from sealpoint import _arguments
from sealpoint._errors import Error, InvalidArgumentError
from sealpoint._options import SAVE_BUDGET_MIN_BYTES, StoreOptions
from sealpoint._ranks.call import Call
from sealpoint._ranks.session import Session



def _is_integer(value: Any, minimum: int, maximum: int = 2**64 - 1) -> bool:
    return _arguments.is_integer(value) and minimum <= operator.index(value) <= maximum


def is_count(value: Any) -> bool:
    return _is_integer(value, 1)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_ranks(value: Any) -> bool:
    return isinstance(value, Sequence) and all(_is_integer(one, 0, 2**31 - 1) for one in value)


def _is_frozen(value: Any) -> bool:
    if isinstance(value, str):
        return value == "learned"
    return isinstance(value, Sequence) and all(isinstance(one, str) for one in value)


def _is_renaming(value: Any) -> bool:
    return isinstance(value, Mapping) and all(isinstance(one, str) for pair in value.items() for one in pair)


Rule = tuple[Callable[[Any], bool], str]
_BOOL: Rule = (lambda value: isinstance(value, bool), "True or False")
_SECONDS: Rule = (
    lambda value: value is None or (_is_number(value) and 0 < value < 1e9),
    "seconds above 0 and below 1e9, or None: no limit",
)
_BYTES: Rule = (lambda value: value is None or is_count(value), "a number of bytes of at least 1")
NO_RULES: Mapping[str, Rule] = MappingProxyType({})
_RULES: dict[str, Rule] = {
    "chunk_size_bytes": (is_count, "a number of bytes"),
    "writer_ranks": (_is_ranks, "a sequence of ranks"),
    "deadline": _SECONDS,
    "background_deadline": _SECONDS,
    "memory_budget_bytes": _BYTES,
    "rename": (lambda value: value is None or _is_renaming(value), "a mapping of names to names, with * for any characters"),
    "keys": (lambda value: value is None or (value != "learned" and _is_frozen(value)), "a sequence of patterns of names"),
    "convert": (lambda value: value in (None, "widen", "exact", "nearest"), "widen, exact, nearest or None"),
    "share_chunks": (lambda value: value is None or isinstance(value, bool), "True, False or None"),
    "keep_local": (lambda value: _is_integer(value, 0, 2**31 - 1), "an integer of at least 0"),
    "unpromoted_max": (lambda value: _is_integer(value, 1, 2**31 - 1), "an integer of at least 1"),
    "unpromoted_wait": (lambda value: _is_number(value) and 0 <= value < 1e9, "seconds of at least 0 and below 1e9"),
    "promote_memory_bytes": (is_count, "a number of bytes of at least 1"),
    "frozen": (_is_frozen, "a sequence of patterns of names, or 'learned'"),
    "first_rank": (lambda value: value != "learned" and _is_frozen(value), "a sequence of patterns of names"),
    "full_every": (lambda value: _is_integer(value, 1, 2**31 - 1), "an integer of at least 1"),
    "keep_every": (lambda value: value is None or is_count(value), "an integer of at least 1, or None"),
    "on_sigterm": (lambda value: value in ("exit", "save", None), "exit, save or None"),
    "keep": (lambda value: value is None or _is_integer(value, 2), "an integer of at least 2, or None"),
    "on_error": (lambda value: value in ("raise", "warn"), "raise or warn"),
}
# Other functions of the package take these too, and have their own rules.
_PATHS = ("path", "directory")
_COMMON = ("step", "parent", "codec", "codec_level", "keep_best", "progress")


def check(rules: Mapping[str, Rule] = NO_RULES, /, **arguments: Any) -> None:
    """Checks the arguments. An argument without a rule must be a bool.

    ``rules`` has rules of arguments specific to a framework. Raises InvalidArgumentError, which names the argument, and
    UnsupportedError for a URL.
    """
    for name, value in arguments.items():
        try:
            _check_one(name, value, rules)
        except Error:
            raise
        except Exception as error:  # raised by a comparison, or by the conversion to a path
            failed = " ".join(f"{type(error).__name__}: {error}".split())
            raise InvalidArgumentError(f"{name} is {reprlib.repr(value)}, expected another one: {failed}") from error


def _check_one(name: str, value: Any, rules: Mapping[str, Rule]) -> None:
    if name in _PATHS or (name == "staged" and value is not None):
        _arguments.path_of(value, name)
    elif name == "provenance":
        _arguments.provenance_of(value)
    elif name == "threads":
        _arguments.load_threads(value)
    elif name in _COMMON:
        _arguments.check(**{name: value})
    elif name != "staged":
        is_right, expected = rules.get(name) or _RULES.get(name, _BOOL)
        if not is_right(value):
            raise InvalidArgumentError(f"{name} is {reprlib.repr(value)}, expected {expected}")


# Transformations applied before arguments are compared between ranks.
_COMPARED: dict[str, Callable[[Any], Any]] = {
    "writer_ranks": list,
    "first_rank": list,
    "frozen": lambda value: value if isinstance(value, str) else list(value),
    "deadline": lambda value: value if value is None else float(value),
    "background_deadline": lambda value: value if value is None else float(value),
    "unpromoted_wait": float,
    "rename": lambda value: value if value is None else dict(value),
    "staged": lambda value: value is not None,
}


def _as_it_is(value: Any) -> Any:
    return value


@contextlib.contextmanager
def checked_call(
    session: Session, kind: str, path: Any, options: Any, *, same: Collection[str], rules: Mapping[str, Rule] = NO_RULES
) -> Iterator[Call]:
    """Begins a collective call. A wrong option on one rank is an error on all.

    Args:
        options: Dataclass of options, with ``deadline`` and ``memory_budget_bytes``.
        same: Names of the options that must be equal on all ranks, in addition to ``path`` and ``step``.
        rules: Rules of framework-specific options.
    """
    values = {name: value for name, value in vars(options).items() if name != "process_group"}
    try:
        check(rules, path=path, **values)
        budget = values["memory_budget_bytes"]
        if isinstance(options, StoreOptions) and budget is not None and budget < SAVE_BUDGET_MIN_BYTES:
            raise InvalidArgumentError(f"memory_budget_bytes is {budget}, expected at least {SAVE_BUDGET_MIN_BYTES} for a save")
    except Error as error:
        session.refuse(kind, error)
    compared = {name: _COMPARED.get(name, _as_it_is)(values[name]) for name in same}
    with session.call(kind, path, step=values.get("step"), same=compared, deadline=options.deadline) as call:
        yield call
