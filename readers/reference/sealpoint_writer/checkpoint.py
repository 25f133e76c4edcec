# SPDX-License-Identifier: Apache-2.0
"""From blobs to a checkpoint (spec/commit.md, sections 1 and 2), by one process on a local file system."""

import contextlib
import os
import time

from sealpoint_reference.directory import MemoryDirectory
from sealpoint_reference.index import read_index
from sealpoint_reference.marker import read_marker

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


def _read_marker(directory):
    with contextlib.suppress(FileNotFoundError), open(os.path.join(directory, MARKER_NAME), "rb") as file:
        return file.read()
    return None


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


class Attempt:
    """One attempt at a checkpoint, in a directory of its own. A second try is another attempt, with another id."""

    def __init__(self, directory, step=NO_STEP, parent=NO_ID, sequence=1, compat=0, identity=None):
        make_directory(directory)
        if _read_marker(directory) is not None:
            raise FileExistsError(f"{directory} has a marker (R-CMT-01)")
        self.id = identity or os.urandom(16)
        self.directory, self.step, self.parent, self.sequence, self.compat = directory, step, parent, sequence, compat

    def blob(self, compat=0):
        """A blob of this attempt, whose features are among those of the attempt (R-HDR-09)."""
        return Blob(self.id, self.step, compat & self.compat)

    def _path(self, summary_id):
        return os.path.join(self.directory, f"{summary_id.hex()}.blob")

    def write(self, blob):
        """Steps 3 and 4. Returns the summary; the name is durable once `commit` has synced the directory."""
        data, summary = blob.finish()
        _write_new(self._path(summary.id), data)
        return summary

    def link(self, summary, from_directory):
        """Reuses a blob of another checkpoint (section 2.7). It has the same name in both, and its bytes once."""
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
        created_unix_ns = time.time_ns() if created_unix_ns is None else created_unix_ns
        data = index.index_file(self.id, self.step, summaries, created_unix_ns, mesh, dict(provenance), self.compat)
        marker = commit_marker(self.id, self.step, data, len(summaries), sum(summary.file_size for summary in summaries),
                               self.parent, self.sequence, self.compat)
        name = f"{self.id.hex()}.index"
        files = MemoryDirectory({MARKER_NAME: marker, name: data})
        read_index(files, read_marker(files))  # R-CMT-03: a violation ends it before anything of the index is written
        _write_new(os.path.join(self.directory, name), data)
        publish(self.directory, self.id, marker)
