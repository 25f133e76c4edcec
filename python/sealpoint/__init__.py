# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of distributed training: parallel writes, one commit, strict reads."""

from sealpoint._errors import (
    AlreadyExistsError,
    CancelledError,
    CommError,
    CorruptError,
    DeviceError,
    Error,
    IncompleteError,
    InternalError,
    InvalidArgumentError,
    IoError,
    LimitExceededError,
    MismatchError,
    NoSpaceError,
    NotACheckpointError,
    NotFoundError,
    TimeoutError,
    UncommittedError,
    UnsupportedError,
)
from sealpoint._sealpoint import version as __version__

__all__ = [
    "AlreadyExistsError",
    "CancelledError",
    "CommError",
    "CorruptError",
    "DeviceError",
    "Error",
    "IncompleteError",
    "InternalError",
    "InvalidArgumentError",
    "IoError",
    "LimitExceededError",
    "MismatchError",
    "NoSpaceError",
    "NotACheckpointError",
    "NotFoundError",
    "TimeoutError",
    "UncommittedError",
    "UnsupportedError",
    "__version__",
]
