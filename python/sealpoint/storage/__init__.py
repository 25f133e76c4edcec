# SPDX-License-Identifier: Apache-2.0
"""Checkpoints in object stores: paths such as ``s3://bucket/run/step-1``, wherever sealpoint takes a path.

``s3://``, ``gs://``, ``az://`` and ``abfs://`` need obstore (``pip install sealpoint[obstore]``), which finds credentials as the
tools of the clouds do. Register other stores, or a store with options:

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
    """Metadata of an object; ``etag`` is empty if the store gives none."""

    key: str
    size_bytes: int
    etag: str = ""


class ObjectPage(NamedTuple):
    """Objects and prefixes (ending in ``/``) directly below a prefix; ``next`` is empty on the last page."""

    objects: Sequence[StoredObject]
    prefixes: Sequence[str]
    next: str = ""


class UnfinishedUpload(NamedTuple):
    """An upload neither completed nor aborted; ``begun_unix_s`` is 0 if the store does not report it."""

    key: str
    upload_id: str
    begun_unix_s: int = 0


class ObjectUpload(Protocol):
    """An object being written, which does not exist until ``complete`` returns. Not thread-safe."""

    def append(self, part: bytes) -> None:
        """Adds the next part, which may be kept. All parts but the last have ``part_size_bytes``. May block on pending parts."""

    def complete(self) -> None:
        """Waits for all parts. The object is durable afterwards."""

    def abort(self) -> None:
        """Aborts the upload and frees its parts."""


class ObjectStore(abc.ABC):
    """Interface of a client for one bucket. The library calls it from any thread, concurrently.

    Keys do not begin with ``/``. Each method retries idempotent requests itself and returns within a bounded time. Exceptions are
    translated: FileExistsError to AlreadyExistsError, FileNotFoundError to NotFoundError, NotImplementedError to UnsupportedError,
    any other one to IoError, with its text. A sealpoint.Error is passed through.
    """

    #: What its paths begin with, such as ``s3://bucket``.
    uri: str
    #: Size of each part of an upload but the last.
    part_size_bytes: int = 32 << 20

    @abc.abstractmethod
    def put(self, key: str, content: memoryview) -> None:
        """Creates or replaces an object. ``content`` is valid only during the call."""

    @abc.abstractmethod
    def put_if_absent(self, key: str, content: memoryview) -> None:
        """Creates an object in one request, which the store refuses with FileExistsError if the key exists."""

    @abc.abstractmethod
    def start_upload(self, key: str) -> ObjectUpload: ...

    def copy(self, stored: StoredObject, key: str) -> str:
        """Creates or replaces ``key`` by a server-side copy of another object of the bucket; returns its etag, or "".

        Without this method, unchanged tensors are written again.
        """
        raise NotImplementedError("this client cannot copy objects")

    @abc.abstractmethod
    def get_first(self, key: str, size_max: int) -> tuple[StoredObject, bytes | memoryview]:
        """Returns the first bytes and the metadata of an object. Raises FileNotFoundError."""

    @abc.abstractmethod
    def get_ranges(self, stored: StoredObject, ranges: Sequence[tuple[int, memoryview]]) -> None:
        """Fills each memory from its offset, with concurrent requests. The memory is valid only during the call.

        Raises FileNotFoundError, and IncompleteError if the object ends early.
        """

    @abc.abstractmethod
    def head(self, key: str) -> StoredObject:
        """Returns the metadata of an object. Raises FileNotFoundError."""

    @abc.abstractmethod
    def list(self, prefix: str, next: str) -> ObjectPage:
        """Lists the entries directly below a prefix (delimiter ``/``), sorted. The prefix is empty or ends in ``/``."""

    @abc.abstractmethod
    def delete(self, keys: Sequence[str]) -> None:
        """Removes objects. Missing objects are ignored."""

    def list_uploads(self, prefix: str) -> Sequence[UnfinishedUpload]:
        """Lists unfinished uploads below a prefix."""
        raise NotImplementedError("this client cannot list unfinished uploads; a lifecycle rule of the bucket removes them")

    def abort_upload(self, upload: UnfinishedUpload) -> None:
        raise NotImplementedError("this client cannot abort an upload that another one began")


def register(
    scheme: str, factory: Callable[[str], ObjectStore], *, upload_memory_bytes: int = UPLOAD_MEMORY_BYTES
) -> None:
    """Registers a factory of stores for paths that begin with ``scheme://``.

    Args:
        scheme: Scheme such as ``s3``. Replaces an earlier registration.
        factory: Called with ``s3://bucket`` on first use of each bucket, on any thread.
        upload_memory_bytes: Maximum memory of pending upload parts per store, for files written without an engine
            (promotions, indexes). Parts of blobs count towards ``memory_budget_bytes`` of the save.

    Raises:
        InvalidArgumentError: an argument is invalid.

    Examples:
        >>> import sealpoint
        >>> from obstore.store import MemoryStore
        >>> from sealpoint.storage.obstore import ObstoreStore
        >>> memory = MemoryStore()
        >>> sealpoint.storage.register("memory", lambda uri: ObstoreStore(memory, uri=uri))
        >>> _ = sealpoint.save({"w": b"12"}, "memory://bucket/checkpoint")
        >>> list(sealpoint.open("memory://bucket/checkpoint"))
        ['w']
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
    """Returns the message of an exception without obstore's debugging details."""
    return " ".join(str(raised).partition("\n\nDebug source:")[0].split())


def error_of(raised: BaseException, path: str) -> Error:
    """Translates an exception of a store into an error of the library.

    Examples:
        >>> from sealpoint import storage
        >>> storage.error_of(FileNotFoundError("no key"), "s3://bucket/key")
        NotFoundError(...)
    """
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
