# SPDX-License-Identifier: Apache-2.0
"""What ranks tell each other of a step that may fail on one of them alone: its error becomes that of all."""

from __future__ import annotations

from sealpoint import _tree
from sealpoint._errors import Error, InvalidArgumentError, make_error

# How a message begins: with an error, or with the answer.
ERROR, ANSWER = b"E", b"A"


def dump_error(raised: Exception, rank: int, host: str) -> bytes:
    """An error for all ranks. One that is not the library's comes from code of the caller, or of a framework."""
    text = f"{type(raised).__name__}: {' '.join(str(raised).split())}"
    error = raised if isinstance(raised, Error) else InvalidArgumentError(text)
    return _tree.dump(
        [error.code, error.message, error.rule, error.path, error.offset, error.tensor, error.object,
         rank if error.rank is None else error.rank, host if error.rank is None else error.host, error.unknown_outcome]
    )


def parse_error(data: bytes) -> Error:
    return make_error(*_tree.parse(data))
