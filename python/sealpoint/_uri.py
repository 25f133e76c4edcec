# SPDX-License-Identifier: Apache-2.0
"""Paths of object stores, and files of directories that may be of one. No path with a scheme meets ``os``."""

from __future__ import annotations

import importlib.util
import os
import posixpath
import re
from collections.abc import Callable

from sealpoint import _sealpoint
from sealpoint._errors import NotFoundError, UnsupportedError

_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
# Also "simplecache::s3://…" of fsspec, and "s3:/…", which pathlib makes of "s3://…".
_URL = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]+::)*([A-Za-z][A-Za-z0-9+.-]+):/")
# What sealpoint/storage/obstore.py is registered for.
OBSTORE_SCHEMES = ("s3", "gs", "az", "abfs", "abfss")
_registered: set[str] = set()
# Register the stores of those, once obstore is there.
default_stores: list[Callable[[], None]] = []


def note(scheme: str) -> None:
    """A storage is registered for it."""
    _registered.add(scheme.lower())


def is_uri(path: str) -> bool:
    return _URI.match(path) is not None


def resolve(text: str, name: str) -> str | None:
    """A path with a scheme, as the library takes it; None if it has none. Errors: UnsupportedError."""
    found = _URL.match(text)
    if found is None:
        return None
    exact = _URI.match(text)
    scheme = found[1].lower()
    if exact is None:
        raise UnsupportedError(
            f"{name} is {text}, which is neither a path nor a URL that is known: is it from pathlib, which has no URLs? "
            f"expected {found[1]}://…, as a str; a folder of that name is ./{text}",
            path=text,
        )
    if scheme == "file":
        host, slash, rest = text[exact.end() :].partition("/")
        if host not in ("", "localhost") or not slash:
            raise UnsupportedError(f"{name} is {text}, expected file:///…, with no host but localhost", path=text)
        return "/" + rest
    if scheme in _registered:
        return scheme + text[len(scheme) :].rstrip("/")
    if scheme in OBSTORE_SCHEMES:
        if importlib.util.find_spec("obstore") is None:
            raise UnsupportedError(
                f"{name} is a URL of {scheme}, which needs the package obstore: pip install obstore", path=text
            )
        for register in default_stores:
            register()
        return scheme + text[len(scheme) :].rstrip("/")
    known = ", ".join(sorted({*OBSTORE_SCHEMES, *_registered}))
    raise UnsupportedError(
        f"{name} is a URL of {scheme}, expected a path, or a URL of {known}; sealpoint.storage.register adds a store; a "
        f"folder of that name is ./{text}",
        path=text,
    )


def local(path: str, name: str, what: str) -> str:
    """The path of a file system. Errors: UnsupportedError (a URL), for ``what``."""
    if is_uri(path):
        raise UnsupportedError(f"{name} is a URL, expected a path of a file system that is mounted here: {what}", path=path)
    return path


def list_names(path: str) -> list[str]:
    """Names in a directory; none if there is no such directory. Errors: OSError, those of the storage."""
    if is_uri(path):
        return [entry[0] for entry in _sealpoint.list_directory(path) or ()]
    try:
        return os.listdir(path)
    except (FileNotFoundError, NotADirectoryError):
        return []


def sizes_of(path: str) -> dict[str, int]:
    """By name in a directory; 0 of what is not a file."""
    if is_uri(path):
        return {name: size for name, _, size in _sealpoint.list_directory(path) or ()}
    full = {name: os.path.join(path, name) for name in os.listdir(path)}
    return {name: os.path.getsize(one) if os.path.isfile(one) else 0 for name, one in full.items()}


def is_directory(path: str) -> bool:
    return _sealpoint.list_directory(path) is not None if is_uri(path) else os.path.isdir(path)


def exists(directory: str, name: str) -> bool:
    """Whether a directory has such a file, or a link of that name."""
    return name in list_names(directory) if is_uri(directory) else os.path.lexists(os.path.join(directory, name))


def absolute(path: str) -> str:
    return path.rstrip("/") if is_uri(path) else os.path.abspath(path)


def split(path: str) -> tuple[str, str]:
    """The directory that it is in, and its name."""
    return posixpath.split(absolute(path))


def read(directory: str, name: str, size_max: int) -> bytes:
    """The beginning of a file. Errors: FileNotFoundError, OSError, those of the storage."""
    if not is_uri(directory):
        with open(os.path.join(directory, name), "rb") as file:
            return file.read(size_max)
    try:
        return _sealpoint.read_file(directory, name, size_max)
    except NotFoundError as error:
        raise FileNotFoundError(str(error)) from None
