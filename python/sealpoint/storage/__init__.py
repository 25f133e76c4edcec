# SPDX-License-Identifier: Apache-2.0
"""Checkpoints in object stores: paths such as ``s3://bucket/run/step-1``, wherever sealpoint takes a path.

``s3://``, ``gs://``, ``az://`` and ``abfs://`` need obstore (``pip install sealpoint[obstore]``), and take their
credentials from where the clouds' own tools find them. Another store, or one with options of its own, is registered:

    from obstore.store import S3Store
    from sealpoint.storage import register
    from sealpoint.storage.obstore import ObstoreStore
    register("s3", lambda uri: ObstoreStore(S3Store(uri.removeprefix("s3://"), endpoint="https://…"), uri=uri))
"""

from __future__ import annotations

import abc
import errno
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from sealpoint import _paths, _sealpoint
from sealpoint._errors import (
    AlreadyExistsError,
    CancelledError,
    CommError,
    Error,
    InvalidArgumentError,
    IoError,
    NoSpaceError,
    NotFoundError,
    TimeoutError,
    UnsupportedError,
)

__all__ = ["ObjectPage", "ObjectStore", "ObjectUpload", "StoredObject", "UnfinishedUpload", "error_of", "register"]

UPLOAD_MEMORY_BYTES = 256 << 20


class StoredObject(NamedTuple):
    """An object, as the store knows it; ``etag`` is empty if the store gives none."""

    key: str
    size_bytes: int
    etag: str = ""


class ObjectPage(NamedTuple):
    """Objects and prefixes (which end in ``/``) directly below a prefix; ``next`` is empty after the last page."""

    objects: Sequence[StoredObject]
    prefixes: Sequence[str]
    next: str = ""


class UnfinishedUpload(NamedTuple):
    """An upload that was begun and neither completed nor aborted; ``begun_unix_s`` is 0 if the store does not say."""

    key: str
    upload_id: str
    begun_unix_s: int = 0


class ObjectUpload(Protocol):
    """An object that is being written. It does not exist before ``complete`` returned. One caller at a time."""

    def append(self, part: bytes) -> None:
        """The next part, which may be kept. All but the last have ``part_size_bytes``. Waits if too many are under way."""

    def complete(self) -> None:
        """Waits for all parts; the object is durable afterwards."""

    def abort(self) -> None:
        """Gives the upload up, and frees what was sent."""


class ObjectStore(abc.ABC):
    """A client of one bucket, for the library, which calls it on any of its threads, several at a time.

    Keys do not begin with ``/``. Each function repeats by itself what is safe to repeat, and ends within a bounded time.
    What it raises becomes an error with its text: FileExistsError is AlreadyExistsError, FileNotFoundError NotFoundError,
    NotImplementedError UnsupportedError, a sealpoint.Error itself, and any other one IoError.
    """

    #: What its paths begin with, such as ``s3://bucket``.
    uri: str
    #: Size of each part of an upload but the last.
    part_size_bytes: int = 32 << 20

    @abc.abstractmethod
    def put(self, key: str, content: memoryview) -> None:
        """Makes or replaces an object. ``content`` is lent for the call."""

    @abc.abstractmethod
    def put_if_absent(self, key: str, content: memoryview) -> None:
        """Makes an object in one request that the store refuses with FileExistsError if the key is taken."""

    @abc.abstractmethod
    def start_upload(self, key: str) -> ObjectUpload: ...

    def copy(self, stored: StoredObject, key: str) -> str:
        """Makes or replaces ``key`` with the content of another object of the bucket, which the store copies by itself;
        returns the etag of the copy, or "". Without it, what did not change is written again."""
        raise NotImplementedError("this client cannot copy objects")

    @abc.abstractmethod
    def get_first(self, key: str, size_max: int) -> tuple[StoredObject, bytes | memoryview]:
        """The first bytes, and what the object is. Errors: FileNotFoundError."""

    @abc.abstractmethod
    def get_ranges(self, stored: StoredObject, ranges: Sequence[tuple[int, memoryview]]) -> None:
        """Fills each memory, which is lent for the call, from its offset; many requests under way at once. Errors:
        FileNotFoundError, IncompleteError (the object ends before)."""

    @abc.abstractmethod
    def head(self, key: str) -> StoredObject:
        """Errors: FileNotFoundError."""

    @abc.abstractmethod
    def list(self, prefix: str, next: str) -> ObjectPage:
        """What is directly below a prefix, which is empty or ends in ``/``, by the delimiter ``/``; sorted."""

    @abc.abstractmethod
    def delete(self, keys: Sequence[str]) -> None:
        """Removes objects; one that is not there is fine."""

    def list_uploads(self, prefix: str) -> Sequence[UnfinishedUpload]:
        """Unfinished uploads below a prefix."""
        raise NotImplementedError("this client cannot list unfinished uploads; a lifecycle rule of the bucket removes them")

    def abort_upload(self, upload: UnfinishedUpload) -> None:
        raise NotImplementedError("this client cannot abort an upload that another one began")


def register(
    scheme: str, factory: Callable[[str], ObjectStore], *, upload_memory_bytes: int = UPLOAD_MEMORY_BYTES
) -> None:
    """From now on, paths that begin with ``scheme://`` are those of stores that ``factory`` makes.

    Args:
        scheme: such as ``s3``; replaces what was registered for it before.
        factory: called once for each bucket, with ``s3://bucket``, when it is first used; on any thread.
        upload_memory_bytes: for parts that wait or are sent of files that no engine writes (promotions, indexes), over all
            of one store. Parts of blobs are counted in ``memory_budget_bytes`` of the save.

    Errors: InvalidArgumentError.
    """
    if not callable(factory):
        raise InvalidArgumentError(f"factory is {factory!r:.100}, expected a function of a URI")
    _sealpoint.register_storage(scheme, factory, upload_memory_bytes)
    _paths.note(scheme)


_CLASSES: tuple[tuple[type[BaseException], type[Error]], ...] = (
    (FileExistsError, AlreadyExistsError),
    (FileNotFoundError, NotFoundError),
    (NotImplementedError, UnsupportedError),
    (Exception, IoError),
    (BaseException, CancelledError),  # Ctrl-C
)


def one_line(raised: BaseException) -> str:
    """What an exception says, without what obstore adds for its programmers."""
    return " ".join(str(raised).partition("\n\nDebug source:")[0].split())


def error_of(raised: BaseException, path: str) -> Error:
    """The error of the library that an exception of a store stands for."""
    if isinstance(raised, (CommError, TimeoutError)):  # which say that ranks lost each other
        return IoError(f"{type(raised).__name__}: {one_line(raised)}", path=path)
    if isinstance(raised, Error):
        raised.path = raised.path or path
        return raised
    cls = next(ours for theirs, ours in _CLASSES if isinstance(raised, theirs))
    if isinstance(raised, OSError) and raised.errno in (errno.ENOSPC, errno.EDQUOT):
        cls = NoSpaceError
    text = one_line(raised)
    return cls(f"{type(raised).__name__}: {text}" if text else type(raised).__name__, path=path)
