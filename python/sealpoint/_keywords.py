# SPDX-License-Identifier: Apache-2.0
"""Options. Public functions accept options as keywords; internal functions pass all options as one dataclass."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar

from sealpoint._errors import InvalidArgumentError
from sealpoint._hints import nearest

# Former names of keywords.
_RENAMED = {"pass_on": "share_chunks"}
# Options of other libraries, with our equivalents and usage. The error suggests the first equivalent that the function accepts.
_ELSEWHERE = {
    "strict": [("contract", 'contract=Contract.partial() loads a part of a checkpoint, and contract=Contract(missing="allow") '
                            "keeps what the checkpoint does not have")],
    "map_location": [("device", "it is named device here"),
                     ("contract", "tensors are loaded into the memory of the state, on any device")],
    "weights_only": [("allow_pickle", "nothing is unpickled without allow_pickle=True")],
    "dtype": [("convert", "convert= converts to the dtypes of the state")],
    "async_save": [("wait", "saves are asynchronous unless wait=True")],
    **{name: [("keep", "it is named keep here")] for name in (
        "keep_last", "keep_last_n", "keep_latest_k", "max_to_keep", "save_total_limit", "total_limit")},
    **{name: [("keep_best", 'it is keep_best=("metric.loss", "least", count) here')] for name in ("save_top_k", "monitor", "mode")},
    **{name: [("every", "it is named every here")] for name in (
        "interval", "save_interval", "save_interval_steps", "save_steps", "every_n_steps", "save_every", "frequency")},
    **{name: [("process_group", "it is named process_group here")] for name in ("group", "pg")},
    **{name: [("threads", "it is named threads here")] for name in ("num_threads", "workers", "num_workers", "thread_count")},
}  # fmt: skip
F = TypeVar("F", bound=Callable[..., Any])


def names_of(keywords: Any) -> list[str]:
    """Returns the names of a TypedDict in declaration order."""
    return list(keywords.__annotations__)


def takes(keywords: Any, options: Any) -> Callable[[F], F]:
    """Makes ``help()`` and ``inspect.signature`` show each keyword of a function with its default."""

    def set_signature(function: F) -> F:
        signature = inspect.signature(function)
        positional = [parameter for parameter in signature.parameters.values() if parameter.kind != parameter.VAR_KEYWORD]
        fields = {field.name: field for field in dataclasses.fields(options)}
        added = [
            inspect.Parameter(keyword.name, inspect.Parameter.KEYWORD_ONLY, default=keyword.default, annotation=keyword.type)
            for keyword in (fields[name] for name in names_of(keywords))
        ]
        function.__signature__ = signature.replace(parameters=[*positional, *added])  # type: ignore[attr-defined]
        return function

    return set_signature


def refuse_unknown(what: str, given: Mapping[str, Any], known: Collection[str]) -> None:
    """Raises TypeError for an unknown keyword. The error suggests a similar name."""
    for name in given:
        if name in known:
            continue
        if name in _RENAMED:
            raise TypeError(f"{what} has no option {name!r}: it is named {_RENAMED[name]!r} now")
        for ours, text in _ELSEWHERE.get(name, ()):
            if ours in known:
                raise TypeError(f"{what} has no option {name!r}: {text}")
        near = nearest(name, known)
        hint = "" if near is None else f"; the nearest is {near!r}"
        raise TypeError(f"{what} has no option {name!r}, expected one of {', '.join(known)}{hint}")


def _check_call(name: str, signature: inspect.Signature, args: tuple[Any, ...], keywords: dict[str, Any]) -> None:
    """Raises TypeError if the arguments do not match the signature."""
    refuse_unknown(f"{name}()", keywords, signature.parameters)
    try:
        signature.bind(*args, **keywords)
    except TypeError as error:
        raise TypeError(f"{name}(): {error}") from None


def tells_others(tell: Callable[[str, Mapping[str, Any], InvalidArgumentError], None]) -> Callable[[F], F]:
    """Decorates a function so that ``tell`` is called if keywords are wrong or arguments are missing.

    ``tell`` receives the error, and the name and the keywords of the function.

    ``tell`` raises the error on all calling ranks, or returns if this rank is alone.
    """

    def checked(function: F) -> F:
        signature = inspect.signature(function)

        @functools.wraps(function)
        def call(*args: Any, **keywords: Any) -> Any:
            try:
                _check_call(function.__name__, signature, args, keywords)
            except TypeError as error:
                tell(function.__name__, keywords, InvalidArgumentError(str(error)))
                raise
            return function(*args, **keywords)

        return call  # type: ignore[return-value]

    return checked


def refuses_unknown(function: F) -> F:
    """Decorates a single-process function: applies ``refuse_unknown`` to each call."""
    return tells_others(lambda name, keywords, error: None)(function)
