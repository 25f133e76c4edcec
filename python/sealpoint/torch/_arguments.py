# SPDX-License-Identifier: Apache-2.0
"""What arguments of saves and loads must be."""

from __future__ import annotations

import contextlib
import functools
import inspect
import math
import operator
import os
import reprlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NoReturn, TypeVar, get_args

from sealpoint._errors import InvalidArgumentError
from sealpoint._save import Codec, parent_of
from sealpoint.torch._options import DEADLINE_DEFAULT_SECONDS, Contract, LoadOptions, SaveOptions, refuse_unknown
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
    return isinstance(value, (int, float)) and not isinstance(value, bool) and not math.isnan(value)


def _is_path(value: Any) -> bool:
    return isinstance(value, (str, bytes, os.PathLike)) and len(os.fspath(value)) > 0


def _is_parent(value: Any) -> bool:
    parent = parent_of(value)
    return parent is None or (
        isinstance(parent, tuple) and len(parent) == 2 and isinstance(parent[0], str) and _is_integer(parent[1], 0)
    )


def _is_text(value: Any) -> bool:
    try:
        return isinstance(value, str) and value.encode() is not None
    except UnicodeEncodeError:
        return False


def _is_provenance(value: Any) -> bool:
    return value is None or (
        isinstance(value, Mapping) and all(_is_text(text) for pair in value.items() for text in pair)
    )


def _is_ranks(value: Any) -> bool:
    return isinstance(value, Sequence) and all(_is_integer(one, 0, 2**31 - 1) for one in value)


_Rule = tuple[Callable[[Any], bool], str]
_BOOL: _Rule = (lambda value: isinstance(value, bool), "True or False")
_SECONDS: _Rule = (lambda value: value is None or (_is_number(value) and value > 0), "seconds above 0, or None")
_BYTES: _Rule = (lambda value: value is None or _is_integer(value, 1), "a number of bytes of at least 1")
_RULES: dict[str, _Rule] = {
    "path": (_is_path, "a path"),
    "directory": (_is_path, "a path"),
    "step": (lambda value: value is None or _is_integer(value, 0, _U64_MAX - 1), "an integer of at least 0, or None"),
    "parent": (_is_parent, "a Checkpoint, a CommitInfo, (attempt, sequence), or None"),
    "provenance": (_is_provenance, "a mapping of strings to strings, or None"),
    "codec": (lambda value: value in get_args(Codec), "one of " + ", ".join(get_args(Codec))),
    "codec_level": (lambda value: _is_integer(value, 0, 1000), "an integer"),
    "chunk_size_bytes": (lambda value: _is_integer(value, 1), "a number of bytes"),
    "writer_ranks": (_is_ranks, "a sequence of ranks"),
    "deadline": _SECONDS,
    "background_deadline": _SECONDS,
    "memory_budget_bytes": _BYTES,
    "contract": (lambda value: value is None or isinstance(value, Contract), "a Contract, or None"),
    "convert": (lambda value: value in (None, "widen", "exact", "nearest"), "widen, exact, nearest or None"),
    "threads": (lambda value: _is_integer(value, 1, 2**31 - 1), "an integer of at least 1"),
    "share_chunks": (lambda value: value is None or isinstance(value, bool), "True, False or None"),
    "progress": (
        lambda value: value is None or isinstance(value, bool) or callable(value), "True, False, None or a function"
    ),
    "every": (lambda value: _is_integer(value, 1), "an integer of at least 1"),
    "keep": (lambda value: value is None or _is_integer(value, 2), "an integer of at least 2, or None"),
    "on_error": (lambda value: value in ("raise", "warn"), "raise or warn"),
}


def check(**arguments: Any) -> None:
    """Errors: InvalidArgumentError, which names the argument. What has no rule must be a bool."""
    for name, value in arguments.items():
        is_right, expected = _RULES.get(name, _BOOL)
        try:
            if is_right(value):
                continue
        except (TypeError, ValueError):  # of a comparison with it, or of its own conversion to a path
            pass
        raise InvalidArgumentError(f"{name} is {reprlib.repr(value)}, expected {expected}")


# How arguments are compared between ranks, if not as they are.
_COMPARED: dict[str, Callable[[Any], Any]] = {
    "writer_ranks": list,
    "deadline": lambda value: value if value is None else float(value),
    "background_deadline": lambda value: value if value is None else float(value),
    "contract": lambda value: vars(value or Contract()),
}


@contextlib.contextmanager
def checked_call(
    session: Session, kind: str, path: Any, options: SaveOptions | LoadOptions, *, same: Collection[str]
) -> Iterator[Call]:
    """A call of all ranks. A wrong option on one of them is the error of all.

    ``same``: names of the options that must be the same on all ranks; ``path`` and ``step`` must be, too.
    """
    values = {name: value for name, value in vars(options).items() if name != "process_group"}
    wrong: InvalidArgumentError | None = None
    try:
        check(path=path, **values)
    except InvalidArgumentError as error:
        wrong = error
    if wrong is not None:
        refuse(session, kind, wrong)
    with session.call(kind, path, step=values.get("step"), deadline=options.deadline) as call:
        call.must_be_same({name: _COMPARED.get(name, _as_it_is)(values[name]) for name in same})
        yield call


def _as_it_is(value: Any) -> Any:
    return value


def refuse(session: Session, kind: str, error: InvalidArgumentError) -> NoReturn:
    """Raises the error on all ranks that make this call, or another one."""

    def fail() -> tuple[None, bytes]:
        raise error

    with session.call(kind, deadline=DEADLINE_DEFAULT_SECONDS) as call:
        agree(call, fail, "began the call")
    raise AssertionError


def _check_call(name: str, signature: inspect.Signature, args: tuple[Any, ...], keywords: dict[str, Any]) -> None:
    """Errors: TypeError."""
    refuse_unknown(f"{name}()", keywords, signature.parameters)
    try:
        signature.bind(*args, **keywords)
    except TypeError as error:
        raise TypeError(f"{name}(): {error}") from None


F = TypeVar("F", bound=Callable[..., Any])


def tells_other_ranks(function: F) -> F:
    """Keywords that the function does not have, and ones that lack, are errors of all ranks that call it."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def call(*args: Any, **keywords: Any) -> Any:
        try:
            _check_call(function.__name__, signature, args, keywords)
        except TypeError as error:
            session = session_of(keywords.get("process_group"), is_alone=keywords.get("no_dist") is True)
            if session.size == 1:
                raise
            refuse(session, function.__name__, InvalidArgumentError(str(error)))
        return function(*args, **keywords)

    return call  # type: ignore[return-value]
