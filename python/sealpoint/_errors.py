# SPDX-License-Identifier: Apache-2.0
"""Exceptions: one class per error code of the library, all derived from sealpoint.Error.

An exception stores only plain values, so it can be pickled and sent to a different process.
"""

from __future__ import annotations

import builtins
from typing import ClassVar


class Error(Exception):
    """Base class of all errors. ``str()`` returns one line with all attributes.

    Attributes:
        code: Error code, such as "Corrupt" or "NoSpace".
        message: Description of the error, with the found value and the expected value.
        rule: Id of the violated rule of the specification, such as "R-HDR-03", or None.
        path: File or directory, or None.
        offset: Byte offset in ``path``, or None.
        tensor, object: Name of the affected tensor or object, or None.
        rank, host: Rank and host on which the error first occurred, or None.
        unknown_outcome: True if it is unknown whether the save was committed. Check the directory later. Delete nothing before this
            check.
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
    """An argument is invalid, for example a dtype, a shape, a read-only or overlapping destination, or a duplicate name."""

    code = "InvalidArgument"


class ArgumentTypeError(InvalidArgumentError, TypeError):
    """An argument has the wrong type."""


class NotFoundError(Error, KeyError):
    """The requested path, tensor or object does not exist."""

    code = "NotFound"


class AlreadyExistsError(Error):
    """The directory already contains a checkpoint; nothing was changed."""

    code = "AlreadyExists"


class NotACheckpointError(Error):
    """The directory has no Sealpoint files, or the path is a file of a different format."""

    code = "NotACheckpoint"


class UncommittedError(Error):
    """The directory has no commit marker, so the checkpoint does not exist."""

    code = "Uncommitted"


class IncompleteError(Error):
    """A file of the checkpoint is missing or too short, for example because a copy is incomplete."""

    code = "Incomplete"


class CorruptError(Error):
    """The bytes differ from the committed bytes. Restore this checkpoint from a copy, or use an older checkpoint."""

    code = "Corrupt"


class UnsupportedError(Error):
    """The version or feature is unknown to this build, or the file system lacks a required feature."""

    code = "Unsupported"


class LimitExceededError(Error):
    """A limit of the specification is exceeded."""

    code = "LimitExceeded"


class MismatchError(Error):
    """The stored data does not match the data that the caller expects."""

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
    """The communicator failed, or another rank abandoned the collective call."""

    code = "Comm"


class TimeoutError(Error, builtins.TimeoutError):
    """A deadline passed."""

    code = "Timeout"


class CancelledError(Error):
    """The caller cancelled the operation."""

    code = "Cancelled"


class InternalError(Error):
    """A bug in the library."""

    code = "Internal"


def _with_place(message: str, path: str) -> str:
    """Prepends a description of the content at the path to the message."""
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
    """Creates the exception for a code. Called by the compiled module."""
    cls = _CLASSES.get(code, InternalError)
    if cls in (NotFoundError, NotACheckpointError) and path is not None and tensor is object is None:
        message = _with_place(message, path)
    return cls(message, rule, path, offset, tensor, object, rank, host, unknown_outcome)
