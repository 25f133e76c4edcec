# SPDX-License-Identifier: Apache-2.0
"""Rules for arguments. An error names the argument, and the found and expected values."""

from __future__ import annotations

import math
import numbers
import operator
import os
import re
import reprlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from sealpoint._errors import ArgumentTypeError, InvalidArgumentError

Path = str | bytes | os.PathLike[str]
# Values are stored as text, numbers as repr() writes them.
Provenance = Mapping[str, str | float | bool]

T = TypeVar("T")

THREADS_MAX = 1024
_U32_MAX, _U64_MAX = 2**32 - 1, 2**64 - 1


def path_of(path: Any, name: str = "path") -> str:
    """Returns a file system path with ``~`` expanded, or an object store URL. Every path from a caller passes through here.

    Raises ArgumentTypeError, InvalidArgumentError, and UnsupportedError (a URL with an unregistered scheme).
    """
    if not isinstance(path, (str, bytes, os.PathLike)):
        raise ArgumentTypeError(f"{name} is {_brief(path)}, expected a path: str, bytes or os.PathLike")
    try:
        text = os.fsdecode(path)
        os.fsencode(text)
    except (TypeError, UnicodeError) as error:
        raise InvalidArgumentError(f"{name} is {_brief(path)}, expected a path: {error}") from None
    if not text or "\0" in text:
        problem = "it has a NUL" if text else "it is empty"
        raise InvalidArgumentError(f"{name} is {text!r}, expected a path: {problem}")
    from sealpoint import _paths

    if (uri := _paths.resolve(text, name)) is not None:
        return uri
    if text.startswith("~"):
        text = os.path.expanduser(text)
        if text.startswith("~"):
            raise InvalidArgumentError(
                f"{name} is {text!r}, of a user who is unknown here, expected a path; a folder of that name is ./{text}"
            )
    return text


def local_path_of(path: Any, name: str, what: str) -> str:
    """Returns a local path. Refuses a URL for ``what``, which needs a file system."""
    from sealpoint import _paths

    return _paths.local(path_of(path, name), name, what)


def _brief(value: Any) -> str:
    return reprlib.repr(value)


def is_text(value: Any) -> bool:
    """Tells whether it is a str with a UTF-8 form, without lone surrogates."""
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


class _Rule(NamedTuple):
    has_type: Callable[[Any], bool]
    has_value: Callable[[Any], bool]
    expected: str


def _always(_: Any) -> bool:
    return True


def _or_none(rule: _Rule) -> _Rule:
    return _Rule(
        lambda value: value is None or rule.has_type(value),
        lambda value: value is None or rule.has_value(value),
        f"{rule.expected}, or None",
    )


def _integer(minimum: int, maximum: int, unit: str = "an integer") -> _Rule:
    limits = f"{unit} of {minimum} to {maximum}" if maximum < _U32_MAX else f"{unit} of at least {minimum}"
    return _Rule(is_integer, lambda value: minimum <= operator.index(value) <= maximum, limits)


def _words(*words: str) -> _Rule:
    return _Rule(lambda value: isinstance(value, str), lambda value: value in words, "one of " + ", ".join(words))


def _of_type(kind: Any, expected: str) -> _Rule:
    return _Rule(lambda value: isinstance(value, kind), _always, expected)


def _sequence(has_type: Callable[[Any], bool], has_value: Callable[[Any], bool], expected: str) -> _Rule:
    return _Rule(
        lambda value: isinstance(value, Sequence) and not isinstance(value, (str, bytes)) and all(map(has_type, value)),
        lambda value: all(map(has_value, value)),
        expected,
    )


_parents: list[type] = []


def may_be_parent(cls: type[T]) -> type[T]:
    """Registers a class with instances accepted as ``parent``."""
    _parents.append(cls)
    return cls


def _is_parent(value: Any) -> bool:
    from sealpoint._sealpoint import CommitInfo

    return isinstance(value, (*_parents, CommitInfo)) or (
        isinstance(value, tuple) and len(value) in (2, 3) and isinstance(value[0], str) and is_integer(value[1])
        and all(isinstance(one, str) for one in value[2:])
    )


def _is_engine(value: Any) -> bool:
    from sealpoint._sealpoint import Engine

    return isinstance(value, Engine)


def _is_list(value: Any) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, (str, bytes, os.PathLike))


def _is_attempt(value: str) -> bool:
    return re.fullmatch("[0-9a-f]{32}", value) is not None and value != "0" * 32


def _is_best(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) == 3 and is_text(value[0]) and is_integer(value[2])


_BOOL = _of_type(bool, "True or False")
_TEXT = _Rule(lambda value: isinstance(value, str), is_text, "a str that UTF-8 can encode")
_BYTES = _integer(0, _U64_MAX, "a number of bytes")
_COUNT = _integer(0, _U64_MAX)
_THREADS = _integer(1, THREADS_MAX)
_EXTENTS = _or_none(_sequence(is_integer, lambda value: 0 <= value <= _U64_MAX, "a sequence of integers of at least 0"))
_STRINGS = _sequence(lambda value: isinstance(value, str), is_text, "a sequence of strings")
_ON_MISMATCH = _words("error", "report", "allow")
_ID = _Rule(lambda value: isinstance(value, str), _is_attempt, "32 hexadecimal digits")

# By the name of the argument, which means the same in all functions. What is not here must be a bool.
_RULES: dict[str, _Rule] = {
    "tensors": _of_type(Mapping, "a mapping of names to arrays"),
    "objects": _or_none(_of_type(Mapping, "a mapping of names to bytes")),
    "name": _TEXT,
    "group": _TEXT,
    "blob": _ID,
    "attempt": _or_none(_ID),
    "step": _or_none(_integer(0, _U64_MAX - 1)),
    "parent": _or_none(
        _Rule(
            _is_parent,
            lambda value: not isinstance(value, tuple)
            or (_is_attempt(value[0]) and 0 <= value[1] <= _U64_MAX and all(map(is_text, value[2:]))),
            "a Checkpoint, a CommitInfo, or (attempt, sequence), with its directory or without",
        )
    ),
    "codec": _words("none", "zstd", "bytesplit+zstd"),
    "codec_level": _integer(-(2**31), 2**31 - 1),
    "chunk_size_bytes": _BYTES,
    "blob_size_max_bytes": _BYTES,
    "blob_count": _integer(0, _U32_MAX - 1),
    "size_max_bytes": _BYTES,
    "memory_budget_bytes": _BYTES,
    "raise_limits": _integer(1, 1_000_000),
    "staging_buffer_size_bytes": _BYTES,
    "io_thread_count": _or_none(_THREADS),
    "engine": _or_none(_Rule(_is_engine, _always, "an Engine")),
    "progress": _Rule(
        lambda value: value is None or isinstance(value, bool) or callable(value), _always, "True, False, None or a function"
    ),
    "shape": _EXTENTS,
    "offset": _EXTENTS,
    "extent": _EXTENTS,
    "run": _or_none(
        _Rule(
            lambda value: isinstance(value, (tuple, list)) and len(value) == 2 and all(map(is_integer, value)),
            lambda value: all(0 <= one <= _U64_MAX for one in value),
            "(begin, end), integers of at least 0",
        )
    ),
    "placement": _STRINGS,
    "summaries": _sequence(lambda value: isinstance(value, bytes), _always, "bytes, as BlobWriter.finish returns them"),
    "requests": _of_type(Iterable, "{name: out}, or names, or (name, box, out) of parts"),
    "sources": _Rule(_is_list, _always, "paths of checkpoints"),
    "replicas": _Rule(_is_list, _always, "paths of directories"),
    "mode": _words("average", "union"),
    "accumulate": _words("f32", "f64"),
    "weights": _sequence(
        lambda value: isinstance(value, numbers.Real) and not isinstance(value, bool), math.isfinite, "finite numbers"
    ),
    "to": _words("sealpoint", "safetensors", "hf", "torch", "dcp", "megatron"),
    "match": _STRINGS,
    "drop": _STRINGS,
    "per_rank": _STRINGS,
    "allow_missing": _STRINGS,
    "metadata_memory_bytes": _or_none(_BYTES),
    "rename": _sequence(
        lambda value: isinstance(value, tuple) and len(value) == 2 and all(isinstance(one, str) for one in value),
        lambda value: all(map(is_text, value)),
        "pairs of (pattern, name)",
    ),
    "dtype": _or_none(_TEXT),
    "max_shard_bytes": _integer(1, _U64_MAX, "a number of bytes"),
    "memory_bytes": _integer(1 << 20, _U64_MAX, "a number of bytes"),
    "patterns": _STRINGS,
    "threads": _THREADS,
    "level": _words("files", "structure", "full"),
    "violations_per_file_max": _COUNT,
    "missing": _ON_MISMATCH,
    "unexpected": _ON_MISMATCH,
    "coverage": _ON_MISMATCH,
    "convert": _or_none(_words("exact", "nearest")),
    "keep_last": _integer(0, _U32_MAX),
    "keep_every_n_steps": _COUNT,
    "keep_within": _integer(0, 2**63 - 1, "seconds, or a timedelta,"),
    "max_bytes": _BYTES,
    "keep_per_period": _sequence(
        lambda value: isinstance(value, tuple) and len(value) == 2 and all(map(is_integer, value)),
        lambda value: 1 <= value[0] < 2**63 and 1 <= value[1] <= _U32_MAX,
        "pairs of (seconds, count), integers of at least 1",
    ),
    "keep_best": _or_none(
        _Rule(
            _is_best,
            lambda value: value[0].startswith("metric.") and value[1] in ("least", "greatest") and 1 <= value[2] <= _U32_MAX,
            '(metric, "least" or "greatest", count), whose metric begins with "metric."',
        )
    ),
}


def load_threads(threads: int | None) -> int:
    """Returns the thread count for native loads: 0 for None, which lets the library choose. Raises as ``check`` does."""
    if threads is None:
        return 0
    check(threads=threads)
    return threads


def check(**arguments: Any) -> None:
    """Checks arguments by name. Raises ArgumentTypeError and InvalidArgumentError."""
    for name, value in arguments.items():
        rule = _RULES.get(name, _BOOL)
        if not rule.has_type(value):
            raise ArgumentTypeError(f"{name} is {_brief(value)}, expected {rule.expected}")
        if not rule.has_value(value):
            raise InvalidArgumentError(f"{name} is {_brief(value)}, expected {rule.expected}")


def provenance_of(provenance: Any) -> list[tuple[str, str]]:
    """Returns pairs of strings, with numbers formatted as in Python. Raises ArgumentTypeError and InvalidArgumentError."""
    if provenance is None:
        return []
    expected = "a mapping of strings to strings or numbers"
    if not isinstance(provenance, Mapping):
        raise ArgumentTypeError(f"provenance is {_brief(provenance)}, expected {expected}, or None")
    return [(_text_in("provenance", key, expected), _entry(key, value)) for key, value in provenance.items()]


def _entry(key: str, value: Any) -> str:
    if isinstance(value, bool):
        return repr(value)
    if isinstance(value, numbers.Integral):
        return repr(int(value))
    if isinstance(value, numbers.Real):
        return repr(float(value))
    return _text_in(f"provenance[{key!r}]", value, "a string or a number")


def _text_in(where: str, value: Any, expected: str) -> str:
    if not isinstance(value, str):
        raise ArgumentTypeError(f"{where} has {_brief(value)}, expected {expected}")
    if not is_text(value):
        raise InvalidArgumentError(f"{where} has {_brief(value)}, which UTF-8 cannot encode, expected {expected}")
    return value


def mesh_of(mesh: Any) -> list[tuple[str, int]]:
    """Returns pairs of name and size. Raises ArgumentTypeError and InvalidArgumentError."""
    if mesh is None:
        return []
    expected = "a mapping of names to sizes"
    if not isinstance(mesh, Mapping) or not all(map(is_integer, mesh.values())):
        raise ArgumentTypeError(f"mesh is {_brief(mesh)}, expected {expected}, or None")
    if not all(0 <= size <= _U32_MAX for size in mesh.values()):
        raise InvalidArgumentError(f"mesh is {_brief(mesh)}, expected {expected} of at least 1")
    return [(_text_in("mesh", name, expected), operator.index(size)) for name, size in mesh.items()]


def listed(name: str, values: Iterable[Any]) -> list[Any]:
    """Returns a list of an iterable's items. Raises ArgumentTypeError."""
    try:
        return list(values)
    except TypeError:
        raise ArgumentTypeError(f"{name} is {_brief(values)}, expected {_RULES[name].expected}") from None
