# SPDX-License-Identifier: Apache-2.0
"""Replacements for ``os``, ``open`` and ``pathlib`` in frameworks, so that directories may be object store URLs.

Each replacement takes the place of a module, function or class that a framework uses. The replacement passes paths that are not
URLs to the original.
"""

from __future__ import annotations

import errno
import io
import os
import pathlib
from collections.abc import Callable, Iterator
from typing import Any

from sealpoint import _paths, _sealpoint
from sealpoint._arguments import path_of
from sealpoint._errors import UnsupportedError

# Maximum size of small files that frameworks store next to checkpoints, such as an iteration number or a configuration.
_SIZE_MAX_BYTES = 1 << 20


def is_url(path: Any) -> bool:
    """Tells whether a path is a URL that this library handles. Megatron's own client handles some other URLs."""
    if not isinstance(path, (str, os.PathLike)):
        return False
    text = os.fspath(path)
    return isinstance(text, str) and not _paths.is_local(text) and not text.startswith("msc://")


def is_file(path: Any) -> bool:
    return _paths.kind_of(path_of(path)) == "file"


def is_folder(path: Any) -> bool:
    return bool(_sealpoint.list_directory(path_of(path)))  # some stores return an empty listing


class Os:
    """Replaces the module ``os``. A directory in an object store exists if it is not empty."""

    def __init__(self, native: Any = os) -> None:
        self._native = native
        self.path = OsPath(native.path)

    def makedirs(self, name: Any, *arguments: Any, **options: Any) -> None:
        if not is_url(name):
            self._native.makedirs(name, *arguments, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._native, name)


class OsPath:
    """Replaces ``os.path``, or any other module with the functions ``exists``, ``isfile`` and ``isdir``."""

    def __init__(self, native: Any) -> None:
        self._native = native

    def exists(self, path: Any) -> bool:
        return (is_file(path) or is_folder(path)) if is_url(path) else bool(self._native.exists(path))

    def isfile(self, path: Any) -> bool:
        return is_file(path) if is_url(path) else bool(self._native.isfile(path))

    def isdir(self, path: Any, *arguments: Any, **options: Any) -> bool:
        return is_folder(path) if is_url(path) else bool(self._native.isdir(path, *arguments, **options))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._native, name)


class _Written(io.StringIO):
    """A file that is written as a whole when it is closed. If the ``with`` block raises an exception, nothing is written."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self._path: str | None = path

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if kind is not None:
            self._path = None
        self.close()

    def close(self) -> None:
        path, self._path = self._path, None
        if path is not None:
            _sealpoint.write_file(path, self.getvalue().encode())
        super().close()


def opener(native: Callable[..., Any] = open) -> Callable[..., Any]:
    """Replaces ``open``. Small files in an object store are read and written as a whole."""

    def open_any(file: Any, mode: str = "r", *arguments: Any, **options: Any) -> Any:
        if not is_url(file):
            return native(file, mode, *arguments, **options)
        path = path_of(file)
        if mode == "w":
            return _Written(path)
        content = _sealpoint.read_file(path, _SIZE_MAX_BYTES + 1) if mode in ("r", "rb") else b""
        if content is None:
            raise FileNotFoundError(errno.ENOENT, "no such object", path)
        if mode not in ("r", "rb") or len(content) > _SIZE_MAX_BYTES:
            raise UnsupportedError(
                f"open(…, {mode!r}) of a file in an object store, expected to read or write a whole file of at most 1 MiB; "
                "verify_integrity is not needed, because checkpoints of this library have digests",
                path=path,
            )
        return io.BytesIO(content) if mode == "rb" else io.StringIO(content.decode())

    return open_any


class UrlPath(os.PathLike[str]):
    """A URL with the methods of pathlib.Path that frameworks use. A real pathlib.Path would remove one slash after the scheme."""

    def __init__(self, url: str) -> None:
        self._url = url.rstrip("/")

    def __fspath__(self) -> str:
        return self._url

    __str__ = __fspath__

    def __truediv__(self, name: str) -> UrlPath:
        return type(self)(f"{self._url}/{name}")

    joinpath = __truediv__

    @property
    def name(self) -> str:
        return _paths.split(self._url)[1]

    def iterdir(self) -> Iterator[UrlPath]:
        return (self / name for name in _paths.list_names(path_of(self._url)))

    def exists(self) -> bool:
        return is_file(self._url) or is_folder(self._url)

    def is_file(self) -> bool:
        return is_file(self._url)

    def is_dir(self) -> bool:
        return is_folder(self._url)


def path_class(native: Any = pathlib.Path) -> Any:
    """Replaces ``pathlib.Path``."""

    class Kind(type):
        def __call__(cls, *parts: Any) -> Any:
            return UrlPath(os.fspath(parts[0])) if len(parts) == 1 and is_url(parts[0]) else native(*parts)

        def __instancecheck__(cls, one: Any) -> bool:
            return isinstance(one, native)

    return Kind("Path", (), {})
