# SPDX-License-Identifier: Apache-2.0
"""From blobs to a checkpoint (spec/commit.md, sections 1 and 2), by one process on a local file system."""

import contextlib
import os
import time

from sealpoint_reference.directory import KEEP_NAME, MemoryDirectory, PathDirectory
from sealpoint_reference.index import open_checkpoint
from sealpoint_reference.load import Base, open_base
from sealpoint_reference.registries import INCOMPAT_OF_A_DELTA

from . import index
from .blob import Blob
from .layout import NO_ID, NO_STEP, commit_marker, void_marker

MARKER_NAME = "COMMIT"


class OutcomeIsUnknown(OSError):
    """Nobody can say whether the checkpoint was committed; nothing was removed (R-CMT-07)."""


def _sync(path):
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write_new(path, data):
    """Creates exclusively (R-CMT-14), writes, syncs and closes (R-CMT-10, R-CMT-11)."""
    with open(path, "xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def make_directory(path):
    """Makes each level that is missing, and syncs its parent (R-CMT-22)."""
    path = os.path.abspath(path)
    if not os.path.isdir(path):
        make_directory(os.path.dirname(path))
        os.mkdir(path)
        _sync(os.path.dirname(path))


def _read(directory, name):
    with contextlib.suppress(FileNotFoundError), open(os.path.join(directory, name), "rb") as file:
        return file.read()
    return None


def _read_marker(directory):
    return _read(directory, MARKER_NAME)


def publish(directory, attempt, marker):
    """Steps 9 and 10: the marker gets its name in one step that replaces nothing (section 2.1)."""
    unpublished = os.path.join(directory, f"{attempt.hex()}.commit")
    _write_new(unpublished, marker)
    _sync(directory)
    try:
        os.link(unpublished, os.path.join(directory, MARKER_NAME))
    except OSError as error:
        _settle(directory, unpublished, marker, error)
    try:
        _sync(directory)
    except OSError as error:
        raise OutcomeIsUnknown(f"{directory}: the sync behind the publication failed: {error}") from error
    with contextlib.suppress(FileNotFoundError):
        os.unlink(unpublished)


def _settle(directory, unpublished, marker, error):
    """After an error of the publication, what COMMIT holds decides (R-CMT-06). Returns if the marker was published."""
    try:
        found = _read_marker(directory)
        if found != marker:
            os.unlink(unpublished)
            found = found or _read_marker(directory)
    except OSError as second:
        raise OutcomeIsUnknown(f"{directory}: {error}, then {second}") from error
    if found is None:
        raise error
    if found != marker:
        raise FileExistsError(f"{directory} holds another checkpoint (R-CMT-01)") from error


def publish_void(directory, step=NO_STEP):
    """Bars a directory whose attempt was given up (spec/series.md, section 5, step 1)."""
    attempt = os.urandom(16)
    publish(directory, attempt, void_marker(attempt, step))


class BaseIsGone(OSError):
    """A delta was committed, and its base was deleted meanwhile (R-DLT-10)."""


class Attempt:
    """One attempt at a checkpoint, in a directory of its own. A second try is another attempt, with another id. `base` is the
    directory of a checkpoint: chunks of CODEC_CHANGES are the changes to it, and with one of them this is a delta."""

    def __init__(self, directory, step=NO_STEP, parent=NO_ID, sequence=1, compat=0, identity=None, base=None):
        make_directory(directory)
        if _read_marker(directory) is not None:
            raise FileExistsError(f"{directory} has a marker (R-CMT-01)")
        self.id = identity or os.urandom(16)
        self.directory, self.step, self.parent, self.sequence, self.compat = directory, step, parent, sequence, compat
        self._base_directory, self._base = base, None
        if base is not None:
            self._base = Base(PathDirectory(base), None, open_checkpoint(PathDirectory(base)), base)

    def blob(self, compat=0):
        """A blob of this attempt, whose features are among those of the attempt (R-HDR-09)."""
        return Blob(self.id, self.step, compat & self.compat, base=self._base)

    def _path(self, summary_id):
        return os.path.join(self.directory, f"{summary_id.hex()}.blob")

    def write(self, blob):
        """Steps 3 and 4. Returns the summary; the name is durable once `commit` has synced the directory."""
        data, summary = blob.finish()
        _write_new(self._path(summary.id), data)
        return summary

    def link(self, summary, from_directory):
        """Reuses a blob of another checkpoint (section 2.7). It has the same name in both, and its bytes once. Changes to the
        base of that checkpoint need not be those to the base of this one."""
        if summary.incompat:
            raise ValueError(f"{summary.id.hex()}.blob has chunks that are changes to another checkpoint")
        os.link(os.path.join(from_directory, f"{summary.id.hex()}.blob"), self._path(summary.id))
        return summary

    def commit(self, summaries, mesh=(), provenance=(), created_unix_ns=None):
        """Steps 6 to 10. Mesh is pairs of name and size, provenance a mapping of texts."""
        summaries = sorted(summaries, key=lambda summary: summary.id)
        for summary in summaries:
            path = self._path(summary.id)
            if os.lstat(path).st_size != summary.file_size:
                raise ValueError(f"{path} has another length than the {summary.file_size} bytes written (R-CMT-02)")
            if summary.compat & ~self.compat:
                raise ValueError(f"{path} has features {summary.compat:#x}, of which the attempt lacks some (R-HDR-09)")
        incompat = INCOMPAT_OF_A_DELTA if any(summary.incompat for summary in summaries) else 0
        base = self._base.index if incompat else None
        created_unix_ns = time.time_ns() if created_unix_ns is None else created_unix_ns
        data = index.index_file(self.id, self.step, summaries, created_unix_ns, mesh, dict(provenance), self.compat, incompat,
                                base)
        marker = commit_marker(self.id, self.step, data, len(summaries), sum(summary.file_size for summary in summaries),
                               self.parent, self.sequence, self.compat, incompat)
        name = f"{self.id.hex()}.index"
        files = MemoryDirectory({MARKER_NAME: marker, name: data})
        read = open_checkpoint(files)  # R-CMT-03: a violation ends it before anything of the index is written
        _write_new(os.path.join(self.directory, name), data)
        if base:
            self._keep_base(read)
        publish(self.directory, self.id, marker)
        if base and None in (_read(self._base_directory, found) for found in (MARKER_NAME, KEEP_NAME)):
            raise BaseIsGone(f"{self._base_directory}: deleted while its delta was committed (R-DLT-10)")

    def _keep_base(self, index):
        """R-DLT-09."""
        named = PathDirectory(self._base_directory)
        open_base(PathDirectory(self.directory), index, {index.base.attempt: named})
        series, own = (os.path.dirname(os.path.realpath(path)) for path in (self._base_directory, self.directory))
        with contextlib.suppress(FileExistsError):
            _write_new(os.path.join(self._base_directory, KEEP_NAME), b"delta\n" if series == own else b"")
        _sync(self._base_directory)
