# SPDX-License-Identifier: Apache-2.0
"""Exceptions: one class per code of the library, all of them sealpoint.Error.

They are made of plain values, so that they can be pickled and sent to another process.
"""

from __future__ import annotations

import builtins
from typing import ClassVar


class Error(Exception):
    """What the library could not do, and where. ``str()`` is one line with all of it.

    Attributes:
        code: what went wrong, as far as a program acts differently on it ("Corrupt", "NoSpace", ...).
        message: what was found and what was expected.
        rule: id of the broken rule of the specification, such as "R-HDR-03", or None.
        path: file or directory, or None.
        offset: byte offset in ``path``, or None.
        tensor, object: name of what the error is about, or None.
        rank, host: where the first cause happened, or None.
        unknown_outcome: True if nobody can say whether a save took effect: look at the directory later,
            and delete nothing.
    """

    code: ClassVar[str] = "Internal"

    def __init__(
        self,
        message: str,
        rule: str | None = None,
        path: str | None = None,
        offset: int | None = None,
        tensor: str | None = None,
        object: str | None = None,
        rank: int | None = None,
        host: str | None = None,
        unknown_outcome: bool = False,
    ) -> None:
        super().__init__(message, rule, path, offset, tensor, object, rank, host, unknown_outcome)
        self.message = message
        self.rule = rule
        self.path = path
        self.offset = offset
        self.tensor = tensor
        self.object = object
        self.rank = rank
        self.host = host
        self.unknown_outcome = unknown_outcome

    def __str__(self) -> str:
        from sealpoint import _sealpoint

        return _sealpoint.error_text(self)


class InvalidArgumentError(Error, ValueError):
    """The caller's argument is wrong: a dtype, a shape, a read-only or overlapping destination, a name twice."""

    code = "InvalidArgument"


class ArgumentTypeError(InvalidArgumentError, TypeError):
    """The caller's argument is of a wrong type."""


class NotFoundError(Error, KeyError):
    """What was asked for by name does not exist: a path, a tensor, an object."""

    code = "NotFound"


class AlreadyExistsError(Error):
    """The directory already holds a checkpoint; nothing was changed."""

    code = "AlreadyExists"


class NotACheckpointError(Error):
    """The directory has no file of Sealpoint, or the path is a file of another kind."""

    code = "NotACheckpoint"


class UncommittedError(Error):
    """The directory has no commit marker: this checkpoint does not exist."""

    code = "Uncommitted"


class IncompleteError(Error):
    """A file of the checkpoint is missing or too short, as after a partial copy."""

    code = "Incomplete"


class CorruptError(Error):
    """The bytes are not those that were committed. Restore this checkpoint or use an older one."""

    code = "Corrupt"


class UnsupportedError(Error):
    """Valid, but written with a version or feature that this build does not know; or the file system lacks something."""

    code = "Unsupported"


class LimitExceededError(Error):
    """A limit of the specification was passed."""

    code = "LimitExceeded"


class MismatchError(Error):
    """What is stored is not what the caller's contract asks for."""

    code = "Mismatch"


class IoError(Error):
    """The storage reported an error."""

    code = "Io"


class NoSpaceError(Error):
    """The storage is full."""

    code = "NoSpace"


class DeviceError(Error):
    """A CUDA call failed."""

    code = "Device"


class CommError(Error):
    """The communicator failed, or another rank left."""

    code = "Comm"


class TimeoutError(Error, builtins.TimeoutError):
    """A deadline passed."""

    code = "Timeout"


class CancelledError(Error):
    """The caller cancelled what was under way."""

    code = "Cancelled"


class InternalError(Error):
    """A bug in the library."""

    code = "Internal"


def _with_place(message: str, path: str) -> str:
    """With what is at the path, in plain words, before it."""
    from sealpoint import _sealpoint

    found = _sealpoint.describe_place(path)
    return message if not found or message.startswith(found) else f"{found} ({message})"


_CLASSES = {cls.code: cls for cls in Error.__subclasses__()}


def make_error(
    code: str,
    message: str,
    rule: str | None,
    path: str | None,
    offset: int | None,
    tensor: str | None,
    object: str | None,
    rank: int | None,
    host: str | None,
    unknown_outcome: bool,
) -> Error:
    """The exception of a code; called by the compiled module."""
    cls = _CLASSES.get(code, InternalError)
    if cls in (NotFoundError, NotACheckpointError) and path is not None and tensor is object is None:
        message = _with_place(message, path)
    return cls(message, rule, path, offset, tensor, object, rank, host, unknown_outcome)
