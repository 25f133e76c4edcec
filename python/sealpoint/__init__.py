# SPDX-License-Identifier: Apache-2.0
"""Checkpoints for distributed training: parallel writes, one atomic commit, strict reads.

    import numpy, sealpoint
    sealpoint.save({"w": numpy.ones((4, 8))}, "checkpoint", step=1)
    with sealpoint.open("checkpoint") as checkpoint:
        rows = checkpoint["w"][0:2, :]  # reads and verifies only the bytes of these rows

Importing this package imports neither numpy nor torch.
"""

try:
    from sealpoint._sealpoint import version as __version__
except ImportError as error:
    from sealpoint._platform import without_extension

    raise ImportError(without_extension(error), name="sealpoint._sealpoint") from None

from sealpoint import _paths
from sealpoint._checkpoint import Blob, Checkpoint, Chunks, Objects, Plan, Shard, Tensor, open
from sealpoint._errors import (
    AlreadyExistsError,
    ArgumentTypeError,
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
from sealpoint._group import Group
from sealpoint._mapped import HostCopy
from sealpoint._repack import RepackReport, RepairReport, RepairedBlob, ThinReport, copy, merge, repair, thin
from sealpoint._save import BlobWriter, commit, list_blobs, new_attempt, read_summary, save
from sealpoint._sealpoint import (
    CommitInfo,
    Engine,
    LoadReport,
    PlanSummary,
    PruneDecision,
    PruneReport,
    SeriesEntry,
    VerifyReport,
)
from sealpoint._series import CleanUp, Newest, Series, Unfinished
from sealpoint._verify import verify

__all__ = [
    "AlreadyExistsError",
    "ArgumentTypeError",
    "Blob",
    "BlobWriter",
    "CancelledError",
    "Checkpoint",
    "Chunks",
    "CleanUp",
    "CommError",
    "CommitInfo",
    "CorruptError",
    "DeviceError",
    "Engine",
    "Error",
    "Group",
    "HostCopy",
    "IncompleteError",
    "InternalError",
    "InvalidArgumentError",
    "IoError",
    "LimitExceededError",
    "LoadReport",
    "MismatchError",
    "Newest",
    "NoSpaceError",
    "NotACheckpointError",
    "NotFoundError",
    "Objects",
    "Plan",
    "PlanSummary",
    "PruneDecision",
    "PruneReport",
    "RepackReport",
    "RepairReport",
    "RepairedBlob",
    "Series",
    "SeriesEntry",
    "Shard",
    "Tensor",
    "ThinReport",
    "TimeoutError",
    "UncommittedError",
    "Unfinished",
    "UnsupportedError",
    "VerifyReport",
    "__version__",
    "commit",
    "copy",
    "list_blobs",
    "merge",
    "new_attempt",
    "open",
    "read_summary",
    "repair",
    "save",
    "thin",
    "verify",
]


def _register_obstore(_: str) -> None:
    from sealpoint.storage import obstore

    obstore.register_all()


def _register_fsspec(scheme: str) -> None:
    from sealpoint.storage import fsspec

    fsspec.register_scheme(scheme)


_paths.default_stores.update(obstore=_register_obstore, fsspec=_register_fsspec)
