# SPDX-License-Identifier: Apache-2.0
"""File systems of fsspec as object stores: s3fs, gcsfs, adlfs, and every other one that can publish exclusively.

``fsspec+s3://bucket/run`` uses the file system that fsspec has for ``s3``. Before the first object is published, a probe shows
whether the file system can publish exclusively. If it cannot, saves are refused; loads work.
"""

from __future__ import annotations

import contextlib
import importlib
import threading
import uuid
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from sealpoint import storage
from sealpoint._errors import IncompleteError, InvalidArgumentError, IoError, UnsupportedError
from sealpoint._paths import FSSPEC_PREFIX
from sealpoint._sealpoint import copy_into
from sealpoint.storage import ObjectPage, ObjectStore, ObjectUpload, StoredObject, one_line
from sealpoint.storage._requests import REQUESTS_MAX, call_each, fill

__all__ = ["FsspecStore", "register_scheme"]

_fsspec, _asyn, _spec = map(importlib.import_module, ("fsspec", "fsspec.asyn", "fsspec.spec"))
_LocalFileSystem = importlib.import_module("fsspec.implementations.local").LocalFileSystem
_MemoryFileSystem = importlib.import_module("fsspec.implementations.memory").MemoryFileSystem
_RIVALS = 8  # simultaneous puts of the probe
_CREATE = "pipe_file(mode='create')"
# MemoryFileSystem looks whether a name is taken before it writes; its files exist in this process only, so this lock decides.
_memory = threading.Lock()


class FsspecStore(ObjectStore):
    """A file system of fsspec for use by sealpoint.

    Objects are published by ``pipe_file(mode="create")``, and a probe precedes the first publication (``put_if_absent``). Listings
    and metadata are never taken from the caches of the file system. A file system without async implementation must be
    thread-safe.

    Args:
        fs: A file system such as ``s3fs.S3FileSystem(skip_instance_cache=True)``. No other code may list with this instance,
            because it would share its caches.
        uri: URL prefix of all paths in the store, such as ``fsspec+s3://bucket``.
        root: Path of ``uri`` in the file system. Default: the authority of ``uri``.
        part_size_bytes: Block size of uploads. An upload keeps up to three blocks in memory.

    Raises:
        UnsupportedError: the file system is local; use its paths without a URL.
        InvalidArgumentError: an argument is invalid.

    Examples:
        >>> from fsspec.implementations.memory import MemoryFileSystem
        >>> from sealpoint.storage.fsspec import FsspecStore
        >>> store = FsspecStore(MemoryFileSystem(), uri="fsspec+memory://bucket")
        >>> store.put_if_absent("a/key", memoryview(b"content"))
        >>> store.head("a/key").size_bytes
        7
    """

    def __init__(self, fs: Any, *, uri: str, root: str | None = None, part_size_bytes: int = 32 << 20) -> None:
        if not isinstance(fs, _fsspec.AbstractFileSystem):
            raise InvalidArgumentError(f"fs is {fs!r:.100}, expected a file system of fsspec")
        if isinstance(fs, _LocalFileSystem):
            raise UnsupportedError(
                "LocalFileSystem of fsspec does not make files durable, expected the path itself, without a URL", path=uri
            )
        if not 5 << 20 <= part_size_bytes <= 5 << 30:
            raise InvalidArgumentError(f"part_size_bytes is {part_size_bytes}, expected 5 MiB to 5 GiB")
        self.uri = uri
        self.part_size_bytes = part_size_bytes
        self._fs = fs
        self._root = (fs.root_marker + uri.partition("://")[2] if root is None else root).rstrip("/")
        self._reads = threading.BoundedSemaphore(REQUESTS_MAX)
        self._asking, self._probing, self._is_exclusive = threading.Lock(), threading.Lock(), False
        if isinstance(fs, _MemoryFileSystem):
            fs.makedirs(self._root, exist_ok=True)

    def _path(self, key: str) -> str:
        return (f"{self._root}/{key}" if self._root else key).rstrip("/")

    def _ask(self, function: str, path: str, **options: Any) -> Any:
        """Calls a function that may look into the cache, after the cache was cleared."""
        with self._asking:  # no other thread fills the cache between the two calls
            self._fs.invalidate_cache()
            return getattr(self._fs, function)(path, **options)

    def put(self, key: str, content: memoryview) -> None:
        self._fs.pipe_file(self._path(key), bytes(content))

    def put_if_absent(self, key: str, content: memoryview) -> None:
        with self._probing:
            # Names of blobs are random (spec/commit.md, 3.1): ranks that only write blobs need no probe.
            if not self._is_exclusive and not key.endswith(".blob"):
                self._probe(key.rpartition("/")[0])
                self._is_exclusive = True
        _create(self._fs, self._path(key), bytes(content))

    def _probe(self, folder: str) -> None:
        """Publishes objects in a folder and removes them. Raises UnsupportedError if another client could replace them."""
        keys: list[str] = []
        try:
            fault = self._fault_of(folder, keys)
        finally:
            self.delete(keys)
        if fault is None and self._listed(folder).intersection(keys):
            fault = "lists objects that were deleted, expected current listings"
        if fault is not None:
            raise UnsupportedError(f"{type(self._fs).__name__} of fsspec {fault}", rule="R-CMT-04", path=self.uri)

    def _fault_of(self, folder: str, keys: list[str]) -> str | None:
        """Returns the reason why the file system cannot publish exclusively or shows stale listings, or None.

        Adds the keys of the objects that it publishes to ``keys``.
        """
        path = self._probe_path(folder, keys)
        try:
            with contextlib.suppress(FileExistsError):  # a lost answer was sent again: the name is random
                _create(self._fs, path, b"1")
        except (TypeError, NotImplementedError) as error:
            return f"has no {_CREATE}: {one_line(error)}"
        self._listed(folder)  # fills caches
        for client in (self._fs, _blind(self._fs)):
            if _error_of(partial(_create, client, path, b"2")) is None or self._fs.cat_file(path) != b"1":
                who = "" if client is self._fs else " if a different client has written it meanwhile"
                return f"replaces an object by {_CREATE}{who}, expected a condition that is sent with the object"
        rival = self._probe_path(folder, keys)
        errors = call_each([partial(_error_of, partial(_create, self._fs, rival, bytes([n]))) for n in range(_RIVALS)])
        count = errors.count(None)
        if count == 0:
            raise next((error for error in errors if not isinstance(error, FileExistsError)), errors[0])
        if count > 1 or self._fs.cat_file(rival) != bytes([errors.index(None)]):
            return f"reports success for {count} of {_RIVALS} simultaneous calls of {_CREATE}, expected one, which keeps the object"
        if not self._listed(folder).issuperset(keys):
            return "lists a folder without objects that were written, expected current listings"
        return None

    def _probe_path(self, folder: str, keys: list[str]) -> str:
        keys.append(f"{folder}/{uuid.uuid4().hex}.probe".lstrip("/"))
        return self._path(keys[-1])

    def start_upload(self, key: str) -> ObjectUpload:
        return _Upload(self._fs, self._path(key), self.part_size_bytes)

    def copy(self, stored: StoredObject, key: str) -> str:
        self._fs.cp_file(self._path(stored.key), self._path(key))
        return ""

    def get_first(self, key: str, size_max: int) -> tuple[StoredObject, bytes | memoryview]:
        try:
            with self._reads:
                first = self._fs.cat_file(self._path(key), start=0, end=size_max)
        except FileNotFoundError:
            raise
        except Exception:
            stored = self.head(key)
            if stored.size_bytes > 0:  # many stores refuse a range of an empty object
                raise
            return stored, b""
        return StoredObject(key, len(first)) if len(first) < size_max else self.head(key), first

    def get_ranges(self, stored: StoredObject, ranges: Sequence[tuple[int, memoryview]]) -> None:
        fill(partial(self._get, stored.key), ranges)

    def _get(self, key: str, offset: int, memory: memoryview) -> None:
        with self._reads:
            got = memoryview(self._fs.cat_file(self._path(key), start=offset, end=offset + len(memory)))
        if len(got) != len(memory):
            raise IncompleteError(f"{len(got)} bytes were received, expected {len(memory)}", offset=offset)
        copy_into(got, memory)

    def head(self, key: str) -> StoredObject:
        info = self._ask("info", self._path(key))
        if info["type"] == "directory":
            raise FileNotFoundError(f"{self._path(key)} is a directory")
        return _stored(key, info)

    def list(self, prefix: str, next: str) -> ObjectPage:
        try:
            found = self._ask("ls", self._path(prefix), detail=True)
        except FileNotFoundError:
            self._check_root()
            found = []
        named = [(info["name"].strip("/").removeprefix(self._root.strip("/")).lstrip("/"), info) for info in found]
        below = [(key, info) for key, info in named if key.startswith(prefix) and key]  # a file lists itself
        objects = [_stored(key, info) for key, info in below if info["type"] != "directory"]
        return ObjectPage(sorted(objects), sorted({key + "/" for key, info in below if info["type"] == "directory"}))

    def _listed(self, folder: str) -> set[str]:
        return {item.key for item in self.list(folder + "/" if folder else "", "").objects}

    def _check_root(self) -> None:
        """Raises IoError if the bucket does not exist: it must not look like an empty one, or training would start over."""
        try:
            self._ask("info", self._root)
        except FileNotFoundError as error:
            raise IoError(f"the bucket cannot be listed, expected one that exists: {one_line(error)}") from error
        except Exception:  # the credentials may not suffice for metadata of the bucket; the listing itself was answered
            return

    def delete(self, keys: Sequence[str]) -> None:
        call_each([partial(self._delete, self._path(key)) for key in keys])

    def _delete(self, path: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            self._fs.rm_file(path)  # rm() would expand the characters * ? [ of a path


class _Upload:
    """A file of the file system that is open for writing."""

    def __init__(self, fs: Any, path: str, part_size_bytes: int) -> None:
        self._fs, self._path = fs, path
        self._file = fs.open(path, "wb", block_size=part_size_bytes)

    def append(self, part: bytes) -> None:
        self._file.write(part)

    def complete(self) -> None:
        self._file.close()

    def abort(self) -> None:
        if isinstance(self._file, _spec.AbstractBufferedFile):
            self._file.closed = True  # or the garbage collector would complete the upload
            self._file.discard()
        else:  # visible from its first byte
            self._file.close()
            self._fs.rm_file(self._path)


def _create(fs: Any, path: str, content: bytes) -> None:
    """Creates an object in one request. Raises FileExistsError if the object exists."""
    with _memory if isinstance(fs, _MemoryFileSystem) else contextlib.nullcontext():
        try:
            fs.pipe_file(path, content, mode="create")
        except FileExistsError:
            raise
        except Exception as error:
            # s3fs recognizes the answer of AWS only; the cause is an error of botocore.
            response = getattr(error.__cause__, "response", None) or {}
            if response.get("ResponseMetadata", {}).get("HTTPStatusCode") != 412:
                raise
            raise FileExistsError(one_line(error)) from error


def _error_of(call: Callable[[], None]) -> Exception | None:
    try:
        call()
    except Exception as error:
        return error
    return None


def _blind(fs: Any) -> Any:
    """Returns a second client of the same store that finds nothing there, as if it had looked before another client wrote."""
    if isinstance(fs, _MemoryFileSystem):  # its clients share one memory and one lock
        return fs
    blind = object.__new__(type(fs))
    for name, value in vars(fs).items():
        if not (callable(value) and hasattr(type(fs), name)):  # a method that is bound to fs
            vars(blind)[name] = _blind(value) if isinstance(value, _fsspec.AbstractFileSystem) else value
    blind.dircache = importlib.import_module("fsspec.dircache").DirCache(use_listings_cache=False)
    if fs.async_impl and fs.mirror_sync_methods:
        _asyn.mirror_sync_methods(blind)

    def deny(*_: Any, **__: Any) -> bool:
        return False

    def miss(path: str, *_: Any, **__: Any) -> Any:
        raise FileNotFoundError(path)

    async def deny_async(*_: Any, **__: Any) -> bool:
        return False

    async def miss_async(path: str, *_: Any, **__: Any) -> Any:
        raise FileNotFoundError(path)

    for name in ("exists", "lexists", "isfile", "isdir"):
        vars(blind).update({name: deny, f"_{name}": deny_async})
    for name in ("info", "ls"):
        vars(blind).update({name: miss, f"_{name}": miss_async})
    return blind


def _stored(key: str, info: Any) -> StoredObject:
    size = info.get("size")
    if size is None:
        raise IoError(f"the file system reports no size of {info['name']}, expected one")
    return StoredObject(key, size)


def _from_url(uri: str) -> ObjectStore:
    """Creates a store that the configuration of fsspec (``fsspec.config``) and the environment describe."""
    try:
        fs, root = _fsspec.url_to_fs(uri.removeprefix(FSSPEC_PREFIX), skip_instance_cache=True)
    except (ImportError, ValueError) as error:
        raise UnsupportedError(f"fsspec has no file system for this URL: {one_line(error)}", path=uri) from error
    return FsspecStore(fs, uri=uri, root=root)


def register_scheme(scheme: str) -> None:
    """Registers the file system of fsspec for paths that begin with ``fsspec+<protocol>://``, in this process.

    sealpoint does this itself for each such path. Register a file system with options by ``sealpoint.storage.register``.

    Args:
        scheme: Scheme, such as ``fsspec+s3``.

    Raises:
        InvalidArgumentError: an argument is invalid.

    Examples:
        >>> from sealpoint.storage.fsspec import register_scheme
        >>> register_scheme("fsspec+memory")  # paths such as "fsspec+memory://bucket/run" now use MemoryFileSystem
    """
    storage.register(scheme, _from_url)
