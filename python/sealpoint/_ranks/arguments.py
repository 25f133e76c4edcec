# SPDX-License-Identifier: Apache-2.0
"""Argument checks of collective saves and loads, for any framework. The rules for options are in the option table."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from sealpoint import _arguments, _rules
from sealpoint._errors import Error, InvalidArgumentError
from sealpoint._option_table import OPTIONS
from sealpoint._options import StoreOptions
from sealpoint._ranks.call import Call
from sealpoint._ranks.session import Session
from sealpoint._rules import Parsed, Rule, or_none

_SAVE_BUDGET_MIN_BYTES = 8 << 20  # two staging buffers
COUNT = _rules.integer(1, _rules.U64_MAX)
NO_RULES: Mapping[str, Rule] = MappingProxyType({})
# Rules for arguments of collective calls that are not in the option table.
_RULES: dict[str, Rule] = {
    "keys": or_none(_rules.PATTERNS, _rules.PATTERNS.expected),
    "keep_every": or_none(COUNT),
    "on_sigterm": or_none(_rules.words("exit", "save"), "exit, save or None"),
    "keep": or_none(_rules.integer(2, _rules.U64_MAX)),
    "on_error": _rules.words("raise", "warn")._replace(expected="raise or warn"),
}


def _rule_of(name: str, rules: Mapping[str, Rule]) -> Rule | Parsed:
    return rules.get(name) or _RULES.get(name) or _arguments.option_rule(name) or _arguments.rule_of(name)


def check(rules: Mapping[str, Rule] = NO_RULES, /, **arguments: Any) -> None:
    """Checks the arguments. If there is no rule for an argument, it must be a bool.

    ``rules`` contains the rules for framework-specific arguments. Raises InvalidArgumentError, which names the argument, and
    UnsupportedError for an unknown URL scheme.
    """
    for name, value in arguments.items():
        try:
            if name in ("path", "directory"):
                _arguments.path_of(value, name)
            else:
                _rule_of(name, rules).check(name, value)
        except Error:
            raise
        except Exception as error:  # raised by a comparison, or by the conversion to a path
            failed = " ".join(f"{type(error).__name__}: {error}".split())
            raise InvalidArgumentError(f"{name} is {_rules.brief(value)}, expected a different value: {failed}") from error


@contextlib.contextmanager
def checked_call(
    session: Session, kind: str, path: Any, options: Any, *, rules: Mapping[str, Rule] = NO_RULES
) -> Iterator[Call]:
    """Begins a collective call.

    If an option is wrong on any rank, the error is raised on all ranks. All ranks also raise an error if they disagree on an option
    that must be the same on all ranks.

    Args:
        options: Dataclass of options in the option table, including ``deadline`` and ``memory_budget_bytes``.
        rules: Rules for framework-specific options.
    """
    values = vars(options)
    try:
        check(rules, path=path, **{name: value for name, value in values.items() if name != "process_group"})
        budget = values["memory_budget_bytes"]
        if isinstance(options, StoreOptions) and budget is not None and budget < _SAVE_BUDGET_MIN_BYTES:
            raise InvalidArgumentError(f"memory_budget_bytes is {budget}, expected at least {_SAVE_BUDGET_MIN_BYTES} for a save")
    except Error as error:
        session.refuse(kind, error)
    same = {name: OPTIONS[name].compared(value) for name, value in values.items() if OPTIONS[name].is_same}
    with session.call(kind, path, step=values.get("step"), same=same, deadline=options.deadline) as call:
        yield call
