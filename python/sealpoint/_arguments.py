# SPDX-License-Identifier: Apache-2.0
"""Checks of function arguments: paths, provenance, and one rule for each argument name."""

from __future__ import annotations

import math
import numbers
import operator
import os
from collections.abc import Iterable, Mapping
from typing import Any

from sealpoint._errors import ArgumentTypeError, InvalidArgumentError
from sealpoint._option_table import OPTIONS
from sealpoint._rules import (
    BOOL,
    BYTES,
    COUNT,
    STRINGS,
    TEXT,
    THREADS,
    U32_MAX,
    U64_MAX,
    Parsed,
    Rule,
    brief,
    integer,
    is_attempt,
    is_integer,
    always,
    is_list,
    is_string,
    is_text,
    of_type,
    or_none,
    sequence,
    words,
)

Path = str | bytes | os.PathLike[str]
# Values are stored as text. Numbers are converted by repr().
Provenance = Mapping[str, str | float | bool]
# A string, number or truth value, or a list of such values of one type. Arrays and scalars of numpy are converted.
Attribute = str | int | float | bool | list[str] | list[int] | list[float] | list[bool]
Attributes = Mapping[str, Any]


def path_of(path: Any, name: str = "path") -> str:
    """Returns a file system path with ``~`` expanded, or an object store URL.

    Every path that a caller passes is converted by this function.

    Raises ArgumentTypeError and InvalidArgumentError. Raises UnsupportedError if the scheme of a URL is not registered.
    """
    if not isinstance(path, (str, bytes, os.PathLike)):
        raise ArgumentTypeError(f"{name} is {brief(path)}, expected a path: str, bytes or os.PathLike")
    try:
        text = os.fsdecode(path)
        os.fsencode(text)
    except (TypeError, UnicodeError) as error:
        raise InvalidArgumentError(f"{name} is {brief(path)}, expected a path: {error}") from None
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
                f"{name} is {text!r}, which names an unknown user, expected a path; for a directory of that name, pass ./{text}"
            )
    return text


def local_path_of(path: Any, name: str, what: str) -> str:
    """Returns a local path. If the path is a URL, raises an error saying that ``what`` needs a file system."""
    from sealpoint import _paths

    return _paths.local(path_of(path, name), name, what)


def _is_engine(value: Any) -> bool:
    from sealpoint._sealpoint import Engine

    return isinstance(value, Engine)


def _is_best(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) == 3 and is_text(value[0]) and is_integer(value[2])


_EXTENTS = or_none(sequence(is_integer, lambda value: 0 <= value <= U64_MAX, "a sequence of integers of at least 0"))
_ON_MISMATCH = words("error", "report", "allow")
_ID = Rule(is_string, is_attempt, "32 hexadecimal digits")

# Rules by argument name. A name has the same meaning in all functions. An argument that is neither listed here nor an option must
# be a bool.
_RULES: dict[str, Rule] = {
    "tensors": of_type(Mapping, "a mapping of names to arrays"),
    "objects": or_none(of_type(Mapping, "a mapping of names to bytes")),
    "name": TEXT,
    "group": TEXT,
    "function": Rule(callable, always, "a function"),
    "separator": Rule(is_string, lambda value: is_text(value) and value != "", "a str that is not empty, such as '/'"),
    "blob": _ID,
    "attempt": or_none(_ID),
    "blob_count": integer(0, U32_MAX - 1),
    "size_bytes": integer(0, U64_MAX),
    "size_max_bytes": BYTES,
    "memory_budget_bytes": BYTES,
    "raise_limits": integer(1, 1_000_000),
    "base_paths": or_none(
        Rule(
            lambda value: isinstance(value, Mapping),
            lambda value: all(is_string(attempt) and is_attempt(attempt) for attempt in value),
            "a mapping of attempts, 32 hexadecimal digits, to paths",
        )
    ),
    "staging_buffer_size_bytes": BYTES,
    "io_thread_count": THREADS,
    "engine": or_none(Rule(_is_engine, always, "an Engine")),
    "shape": _EXTENTS,
    "offset": _EXTENTS,
    "extent": _EXTENTS,
    "run": or_none(
        Rule(
            lambda value: isinstance(value, (tuple, list)) and len(value) == 2 and all(map(is_integer, value)),
            lambda value: all(0 <= item <= U64_MAX for item in value),
            "(begin, end), integers of at least 0",
        )
    ),
    "placement": STRINGS,
    "summaries": sequence(lambda value: isinstance(value, bytes), always, "bytes, as BlobWriter.finish returns them"),
    "requests": of_type(Iterable, "{name: out}, or names, or (name, box, out) of parts"),
    "sources": Rule(is_list, always, "paths of checkpoints"),
    "replicas": Rule(is_list, always, "paths of directories"),
    "mode": words("average", "union"),
    "accumulate": words("f32", "f64"),
    "weights": sequence(
        lambda value: isinstance(value, numbers.Real) and not isinstance(value, bool), math.isfinite, "finite numbers"
    ),
    "to": words("sealpoint", "safetensors", "hf", "torch", "dcp", "megatron", "delta", "gguf", "hdf5"),
    "match": STRINGS,
    "drop": STRINGS,
    "per_rank": STRINGS,
    "allow_missing": STRINGS,
    "metadata_memory_bytes": or_none(BYTES),
    "rename": sequence(
        lambda value: isinstance(value, tuple) and len(value) == 2 and all(isinstance(item, str) for item in value),
        lambda value: all(map(is_text, value)),
        "pairs of (pattern, name)",
    ),
    "dtype": or_none(TEXT),
    "gguf_metadata": or_none(
        Rule(
            lambda value: isinstance(value, Mapping),
            lambda value: all(is_text(key) and isinstance(item, (tuple, list)) and len(item) == 2 for key, item in value.items()),
            "a mapping of keys to pairs of (type, value)",
        )
    ),
    "max_shard_bytes": integer(1, U64_MAX, "a number of bytes"),
    "memory_bytes": integer(1 << 20, U64_MAX, "a number of bytes"),
    "patterns": STRINGS,
    "level": words("files", "structure", "full"),
    "violations_per_file_max": COUNT,
    "missing": _ON_MISMATCH,
    "unexpected": _ON_MISMATCH,
    "coverage": _ON_MISMATCH,
    "convert": or_none(words("exact", "nearest")),
    "keep_last": integer(0, U32_MAX),
    "keep_every_n_steps": COUNT,
    "keep_within": integer(0, 2**63 - 1, "seconds, or a timedelta,"),
    "max_bytes": BYTES,
    "keep_per_period": sequence(
        lambda value: isinstance(value, tuple) and len(value) == 2 and all(map(is_integer, value)),
        lambda value: 1 <= value[0] < 2**63 and 1 <= value[1] <= U32_MAX,
        "pairs of (seconds, count), integers of at least 1",
    ),
    "keep_checked": integer(0, U32_MAX),
    "require": or_none(words("checked"), "checked"),
    "keep_best": or_none(
        Rule(
            _is_best,
            lambda value: value[0].startswith("metric.") and value[1] in ("least", "greatest") and 1 <= value[2] <= U32_MAX,
            '(metric, "least" or "greatest", count), whose metric begins with "metric."',
        )
    ),
}


_FORMS = {
    "path": Parsed(lambda name, value: value is None or path_of(value, name)),
    "provenance": Parsed(lambda name, value: provenance_of(value)),
    "attributes": Parsed(lambda name, value: attributes_of(value)),
}


def option_rule(name: str) -> Rule | Parsed | None:
    """Returns the rule for an option, or None if the framework checks the option itself."""
    rule = OPTIONS[name].rule if name in OPTIONS else None
    return _FORMS.get(rule) if isinstance(rule, str) else rule


def rule_of(name: str) -> Rule | Parsed:
    """Returns the rule for an argument of a single-process function."""
    return _RULES.get(name) or option_rule(name) or BOOL


def threads_of(threads: int | None) -> int:
    """Returns the thread count for the library. None becomes 0, which lets the library choose the count.

    Raises the errors of ``check``.
    """
    check(threads=threads)
    return threads or 0


def check(**arguments: Any) -> None:
    """Checks arguments by name. Raises ArgumentTypeError and InvalidArgumentError."""
    for name, value in arguments.items():
        rule_of(name).check(name, value)


def provenance_of(provenance: Any) -> list[tuple[str, str]]:
    """Returns the provenance as pairs of strings. Numbers are converted by ``repr``.

    Raises ArgumentTypeError and InvalidArgumentError.
    """
    if provenance is None:
        return []
    expected = "a mapping of strings to strings or numbers"
    if not isinstance(provenance, Mapping):
        raise ArgumentTypeError(f"provenance is {brief(provenance)}, expected {expected}, or None")
    return [(_text_in("provenance", key, expected), _entry(key, value)) for key, value in provenance.items()]


def _entry(key: str, value: Any) -> str:
    if isinstance(value, bool):
        return repr(value)
    if isinstance(value, numbers.Integral):
        return repr(int(value))
    if isinstance(value, numbers.Real):
        return repr(float(value))
    return _text_in(f"provenance[{key!r}]", value, "a string or a number")


def attributes_of(attributes: Any, name: str = "attributes") -> dict[str, Attribute]:
    """Returns attributes as values of Python's own types.

    Raises ArgumentTypeError and InvalidArgumentError.
    """
    if attributes is None:
        return {}
    if not isinstance(attributes, Mapping):
        raise ArgumentTypeError(f"{name} is {brief(attributes)}, expected a mapping of strings to values, or None")
    return {_text_in(name, key, "strings as names"): _attribute(f"{name}[{key!r}]", value) for key, value in attributes.items()}


def _attribute(where: str, value: Any) -> Any:
    plain = _plain(value)
    if not isinstance(plain, (list, tuple)):
        return _attribute_value(where, plain)
    values = [_attribute_value(where, _plain(each)) for each in plain]
    if len(set(map(type, values))) > 1:
        raise ArgumentTypeError(f"{where} is {brief(value)}, expected values of one type")
    return values


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else value  # an array or a scalar of numpy


def _attribute_value(where: str, value: Any) -> str | int | float | bool:
    if isinstance(value, (bool, float)):
        return value if isinstance(value, bool) else float(value)
    if not isinstance(value, int):
        return _text_in(where, value, "a string, an integer, a float or a bool, or a list of them")
    if not -(2**63) <= value < 2**63:
        raise InvalidArgumentError(f"{where} is {brief(value)}, expected an integer of 64 bits")
    return int(value)


def attributes_by_tensor(given: Any, tensors: Mapping[str, Any]) -> dict[str, dict[str, Attribute]]:
    """Returns the attributes of the tensors of a save. Raises ArgumentTypeError and InvalidArgumentError."""
    if not isinstance(given or {}, Mapping):
        raise ArgumentTypeError(f"tensor_attributes is {brief(given)}, expected a mapping of names to attributes, or None")
    unknown = sorted(map(str, set(given or {}) - set(tensors)))
    if unknown:
        raise InvalidArgumentError(f"tensor_attributes has {brief(unknown[0])}, expected names of tensors of the save")
    return {name: attributes_of(value, f"tensor_attributes[{name!r}]") for name, value in (given or {}).items()}


def _text_in(where: str, value: Any, expected: str) -> str:
    if not isinstance(value, str):
        raise ArgumentTypeError(f"{where} has {brief(value)}, expected {expected}")
    if not is_text(value):
        raise InvalidArgumentError(f"{where} has {brief(value)}, which UTF-8 cannot encode, expected {expected}")
    return value


def mesh_of(mesh: Any) -> list[tuple[str, int]]:
    """Returns the mesh axes as (name, size) pairs. Raises ArgumentTypeError and InvalidArgumentError."""
    if mesh is None:
        return []
    expected = "a mapping of names to sizes"
    if not isinstance(mesh, Mapping) or not all(map(is_integer, mesh.values())):
        raise ArgumentTypeError(f"mesh is {brief(mesh)}, expected {expected}, or None")
    if not all(0 <= size <= U32_MAX for size in mesh.values()):
        raise InvalidArgumentError(f"mesh is {brief(mesh)}, expected {expected} of at least 1")
    return [(_text_in("mesh", name, expected), operator.index(size)) for name, size in mesh.items()]


def listed(name: str, values: Iterable[Any]) -> list[Any]:
    """Returns a list of the items of an iterable. Raises ArgumentTypeError."""
    try:
        return list(values)
    except TypeError:
        raise ArgumentTypeError(f"{name} is {brief(values)}, expected {_RULES[name].expected}") from None
