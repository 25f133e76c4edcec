# SPDX-License-Identifier: Apache-2.0
"""What arguments of saves and loads must be."""

from __future__ import annotations

import contextlib
import operator
import reprlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NoReturn

import torch.distributed as dist

from sealpoint import _arguments
from sealpoint._errors import Error, InvalidArgumentError
from sealpoint._keywords import tells_others
from sealpoint._options import DEADLINE_DEFAULT_SECONDS, SAVE_BUDGET_MIN_BYTES
from sealpoint.torch._options import Contract, LoadOptions, SaveOptions
from sealpoint.torch._schedule import period_of
from sealpoint.torch._session import Call, Session, session_of
from sealpoint.torch._state import agree

_U64_MAX = 2**64 - 1


def _is_integer(value: Any, minimum: int, maximum: int = _U64_MAX) -> bool:
    if isinstance(value, bool):
        return False
    try:
        return minimum <= operator.index(value) <= maximum
    except TypeError:
        return False


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


_Rule = tuple[Callable[[Any], bool], str]
_BOOL: _Rule = (lambda value: isinstance(value, bool), "True or False")
_SECONDS: _Rule = (
    lambda value: value is None or (_is_number(value) and 0 < value < 1e9),
    "seconds above 0 and below 1e9, or None: no limit",
)
_BYTES: _Rule = (lambda value: value is None or _is_integer(value, 1), "a number of bytes of at least 1")
_RULES: dict[str, _Rule] = {
    "chunk_size_bytes": (lambda value: _is_integer(value, 1), "a number of bytes"),
    "writer_ranks": (_is_ranks, "a sequence of ranks"),
    "deadline": _SECONDS,
    "background_deadline": _SECONDS,
    "memory_budget_bytes": _BYTES,
    "contract": (lambda value: value is None or isinstance(value, Contract), "a Contract, or None"),
    "rename": (lambda value: value is None or _is_renaming(value), "a mapping of names to names, with * for any characters"),
    "keys": (lambda value: value is None or (value != "learned" and _is_frozen(value)), "a sequence of patterns of names"),
    "convert": (lambda value: value in (None, "widen", "exact", "nearest"), "widen, exact, nearest or None"),
    "share_chunks": (lambda value: value is None or isinstance(value, bool), "True, False or None"),
    "progress": (
        lambda value: value is None or isinstance(value, bool) or callable(value), "True, False, None or a function"
    ),
    "keep_local": (lambda value: _is_integer(value, 0, 2**31 - 1), "an integer of at least 0"),
    "unpromoted_max": (lambda value: _is_integer(value, 1, 2**31 - 1), "an integer of at least 1"),
    "unpromoted_wait": (lambda value: _is_number(value) and 0 <= value < 1e9, "seconds of at least 0 and below 1e9"),
    "promote_memory_bytes": (lambda value: _is_integer(value, 1), "a number of bytes of at least 1"),
    "frozen": (_is_frozen, "a sequence of patterns of names, or 'learned'"),
    "first_rank": (lambda value: value != "learned" and _is_frozen(value), "a sequence of patterns of names"),
    "full_every": (lambda value: _is_integer(value, 1, 2**31 - 1), "an integer of at least 1"),
    "every": (lambda value: _is_integer(value, 1) or period_of(value) is not None,
              'an integer of at least 1, a time such as "30s", "10min" or "2h", or a timedelta'),
    "keep_every": (lambda value: value is None or _is_integer(value, 1), "an integer of at least 1, or None"),
    "on_sigterm": (lambda value: value in ("exit", "save", None), "exit, save or None"),
    "keep": (lambda value: value is None or _is_integer(value, 2), "an integer of at least 2, or None"),
    "on_error": (lambda value: value in ("raise", "warn"), "raise or warn"),
    "process_group": (lambda value: value is None or isinstance(value, dist.ProcessGroup), "a group of torch.distributed"),
}
# Other functions of the package take these, too, and have their rules.
_PATHS = ("path", "directory")
_COMMON = ("step", "parent", "codec", "codec_level", "keep_best")


def check(**arguments: Any) -> None:
    """Errors: InvalidArgumentError, which names the argument; UnsupportedError (a URL). What has no rule must be a bool."""
    for name, value in arguments.items():
        try:
            _check_one(name, value)
        except Error:
            raise
        except Exception as error:  # of a comparison with it, or of its own conversion to a path
            failed = " ".join(f"{type(error).__name__}: {error}".split())
            raise InvalidArgumentError(f"{name} is {reprlib.repr(value)}, expected another one: {failed}") from error


def _check_one(name: str, value: Any) -> None:
    if name in _PATHS:
        _arguments.path_of(value, name)
    elif name == "staged":
        if value is not None:
            _arguments.path_of(value, name)
    elif name == "provenance":
        _arguments.provenance_of(value)
    elif name == "threads":
        _arguments.load_threads(value)
    elif name in _COMMON:
        _arguments.check(**{name: value})
    else:
        is_right, expected = _RULES.get(name, _BOOL)
        if not is_right(value):
            raise InvalidArgumentError(f"{name} is {reprlib.repr(value)}, expected {expected}")


# How arguments are compared between ranks, if not as they are.
_COMPARED: dict[str, Callable[[Any], Any]] = {
    "writer_ranks": list,
    "first_rank": list,
    "frozen": lambda value: value if isinstance(value, str) else list(value),
    "deadline": lambda value: value if value is None else float(value),
    "background_deadline": lambda value: value if value is None else float(value),
    "unpromoted_wait": float,
    "contract": lambda value: vars(value or Contract()),
    "rename": lambda value: value if value is None else dict(value),
}


@contextlib.contextmanager
def checked_call(
    session: Session, kind: str, path: Any, options: SaveOptions | LoadOptions, *, same: Collection[str]
) -> Iterator[Call]:
    """A call of all ranks. A wrong option on one of them is the error of all.

    ``same``: names of the options that must be the same on all ranks; ``path`` and ``step`` must be, too.
    """
    values = {name: value for name, value in vars(options).items() if name != "process_group"}
    wrong: Error | None = None
    try:
        check(path=path, **values)
        budget = values["memory_budget_bytes"]
        if isinstance(options, SaveOptions) and budget is not None and budget < SAVE_BUDGET_MIN_BYTES:
            raise InvalidArgumentError(f"memory_budget_bytes is {budget}, expected at least {SAVE_BUDGET_MIN_BYTES} for a save")
    except Error as error:
        wrong = error
    if wrong is not None:
        refuse(session, kind, wrong)
    with session.call(kind, path, step=values.get("step"), deadline=options.deadline) as call:
        call.must_be_same({name: _COMPARED.get(name, _as_it_is)(values[name]) for name in same})
        yield call


def _as_it_is(value: Any) -> Any:
    return value


def refuse(session: Session, kind: str, error: Error) -> NoReturn:
    """Raises the error on all ranks that make this call, or another one."""

    def fail() -> tuple[None, bytes]:
        raise error

    with session.call(kind, deadline=DEADLINE_DEFAULT_SECONDS) as call:
        agree(call, fail, "began the call")
    raise AssertionError


def _tell(name: str, keywords: Mapping[str, Any], error: InvalidArgumentError) -> None:
    session = session_of(keywords.get("process_group"), is_alone=keywords.get("no_dist") is True)
    if session.size > 1:
        refuse(session, name, error)


tells_other_ranks = tells_others(_tell)
