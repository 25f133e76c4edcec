# SPDX-License-Identifier: Apache-2.0
"""Checkpoints in object stores. Their paths, such as ``s3://bucket/run/step-1``, work wherever sealpoint accepts a path.

``s3://``, ``gs://``, ``az://`` and ``abfs://`` need obstore (``pip install sealpoint[obstore]``). obstore looks for credentials in
the same places as the cloud providers' own tools. Register other stores, or a store with options:

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
    """Metadata of an object; ``etag`` is empty if the store does not report one."""

    key: str
    size_bytes: int
    etag: str = ""


class ObjectPage(NamedTuple):
    """A page of a listing: objects and prefixes (ending in ``/``) directly below a prefix. ``next`` is empty on the last page."""

    objects: Sequence[StoredObject]
    prefixes: Sequence[str]
    next: str = ""


class UnfinishedUpload(NamedTuple):
    """An upload that was neither completed nor aborted; ``begun_unix_s`` is 0 if the store does not report the time."""

    key: str
    upload_id: str
    begun_unix_s: int = 0


class ObjectUpload(Protocol):
    """An object that is being written. The object exists once ``complete`` has returned. Not thread-safe."""

    def append(self, part: bytes) -> None:
        """Adds the next part. All parts except the last have the size ``part_size_bytes``.

        The upload may keep a reference to the part. May block until pending parts were sent.
        """

    def complete(self) -> None:
        """Waits until all parts were sent. The object is durable when this method returns."""

    def abort(self) -> None:
        """Aborts the upload and frees its stored parts."""


class ObjectStore(abc.ABC):
    """Interface of a client for one bucket. The library calls it from any thread, concurrently.

    Keys do not begin with ``/``. Each method retries idempotent requests itself and returns within a bounded time. The library
    translates exceptions: FileExistsError to AlreadyExistsError, FileNotFoundError to NotFoundError, NotImplementedError to
    UnsupportedError, and any other exception to an IoError with the same text. A sealpoint.Error is passed through. No method is
    collective.
    """

    #: URL prefix of all paths in the store, such as ``s3://bucket``.
    uri: str
    #: Size of each part of an upload, except the last part.
    part_size_bytes: int = 32 << 20

    @abc.abstractmethod
    def put(self, key: str, content: memoryview) -> None:
        """Creates or replaces an object. ``content`` is valid only during the call."""

    @abc.abstractmethod
    def put_if_absent(self, key: str, content: memoryview) -> None:
        """Creates an object in one request. Raises FileExistsError if the key exists.

        The store must make this check, not the client.
        """

    @abc.abstractmethod
    def start_upload(self, key: str) -> ObjectUpload:
        """Starts an upload of an object of any size.

        When the upload is complete, the new object replaces an existing object ``key``.
        """

    def copy(self, stored: StoredObject, key: str) -> str:
        """Creates or replaces ``key`` by a server-side copy of a different object in the bucket.

        Returns the new etag, or "" if the store does not report one. If a client does not implement this method, saves write
        unchanged tensors again.
        """
        raise NotImplementedError("this client cannot copy objects")

    @abc.abstractmethod
    def get_first(self, key: str, size_max: int) -> tuple[StoredObject, bytes | memoryview]:
        """Returns the metadata of an object and its first bytes, at most ``size_max``. Raises FileNotFoundError."""

    @abc.abstractmethod
    def get_ranges(self, stored: StoredObject, ranges: Sequence[tuple[int, memoryview]]) -> None:
        """Fills each buffer in ``ranges`` with the bytes of the object from the buffer's offset on. Sends concurrent requests.

        The buffers are valid only during the call.

        Raises FileNotFoundError, and IncompleteError if the object ends early.
        """

    @abc.abstractmethod
    def head(self, key: str) -> StoredObject:
        """Returns the metadata of an object. Raises FileNotFoundError."""

    @abc.abstractmethod
    def list(self, prefix: str, next: str) -> ObjectPage:
        """Returns a page of the objects and prefixes directly below a prefix (delimiter ``/``), sorted.

        The prefix is empty or ends in ``/``. ``next`` is empty for the first page; for every other page, it is the
        ``next`` of the preceding page.
        """

    @abc.abstractmethod
    def delete(self, keys: Sequence[str]) -> None:
        """Removes objects. Missing objects are ignored."""

    def list_uploads(self, prefix: str) -> Sequence[UnfinishedUpload]:
        """Returns unfinished uploads below a prefix."""
        raise NotImplementedError("this client cannot list unfinished uploads; a lifecycle rule of the bucket removes them")

    def abort_upload(self, upload: UnfinishedUpload) -> None:
        """Aborts an upload that ``list_uploads`` returned, and frees its stored parts."""
        raise NotImplementedError("this client cannot abort the upload of a different client")


def register(
    scheme: str, factory: Callable[[str], ObjectStore], *, upload_memory_bytes: int = UPLOAD_MEMORY_BYTES
) -> None:
    """Registers a factory of stores for paths that begin with ``scheme://``, in this process. Call it on all ranks.

    Args:
        scheme: Scheme, such as ``s3``. The new factory replaces an earlier registration.
        factory: Called on the first use of each bucket, on any thread, with a URL such as ``s3://bucket``. Returns the
            store.
        upload_memory_bytes: Maximum memory per store for pending upload parts of promotions and indexes, which are
            written without an engine. The upload parts of blobs count towards ``memory_budget_bytes`` of the save.

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
        raise InvalidArgumentError(f"factory is {factory!r:.100}, expected a function that takes a URI")
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
    """Returns the message of an exception, without the debugging details that obstore adds."""
    return " ".join(str(raised).partition("\n\nDebug source:")[0].split())


def error_of(raised: BaseException, path: str) -> Error:
    """Translates an exception from a store into an error of the library. Not collective. Raises nothing.

    Args:
        raised: The exception. The rules of the translation are described at ``ObjectStore``.
        path: Path or URL to name in the error.

    Examples:
        >>> from sealpoint import storage
        >>> storage.error_of(FileNotFoundError("no key"), "s3://bucket/key")
        NotFoundError(...)
    """
    if isinstance(raised, (CommError, TimeoutError)):  # these classes would mean that ranks lost contact
        return IoError(f"{type(raised).__name__}: {one_line(raised)}", path=path)
    if isinstance(raised, Error):
        raised.path = raised.path or path
        return raised
    cls = next(ours for theirs, ours in _CLASSES if isinstance(raised, theirs))
    if isinstance(raised, OSError) and raised.errno in (errno.ENOSPC, errno.EDQUOT):
        cls = NoSpaceError
    text = one_line(raised)
    return cls(f"{type(raised).__name__}: {text}" if text else type(raised).__name__, path=path)
