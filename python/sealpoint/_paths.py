# SPDX-License-Identifier: Apache-2.0
"""Paths in file systems and in object stores: determines the kind of a path, and looks up files.

File operations on any storage are functions of the compiled module: ``read_file``, ``write_file``, ``remove_path``,
``remove_checkpoint``, ``sync_directory``, ``publish``.
"""

from __future__ import annotations

import importlib.util
import os
import posixpath
import re
from collections.abc import Callable

from sealpoint import _sealpoint
from sealpoint._errors import UnsupportedError

_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
# Also matches "simplecache::s3://…" of fsspec, and "s3:/…", the form to which pathlib changes "s3://…".
_URL = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]+::)*([A-Za-z][A-Za-z0-9+.-]+):/")
# URL schemes for which sealpoint/storage/obstore.py is registered.
OBSTORE_SCHEMES = ("s3", "gs", "az", "abfs", "abfss")
# Beginning of the URL schemes for which sealpoint/storage/fsspec.py is registered.
FSSPEC_PREFIX = "fsspec+"
_registered: set[str] = set()
# By package: function that registers the stores of the package for a scheme, if the package can be imported.
default_stores: dict[str, Callable[[str], None]] = {}


def note(scheme: str) -> None:
    """Records that an object store is registered for this URL scheme."""
    _registered.add(scheme.lower())


def is_local(path: str) -> bool:
    """Tells whether a path is in a file system, where other programs and system calls can use it."""
    return _URI.match(path) is None


def resolve(text: str, name: str) -> str | None:
    """Returns a URL in the form that the library accepts, or None if the text has no scheme. Raises UnsupportedError."""
    found = _URL.match(text)
    if found is None:
        return None
    exact = _URI.match(text)
    scheme = found[1].lower()
    if exact is None:
        raise UnsupportedError(
            f"{name} is {text}, which is neither a path nor a known URL; pathlib does not support URLs, expected {found[1]}://…, "
            f"as a str; for a directory of that name, pass ./{text}",
            path=text,
        )
    if scheme in ("file", FSSPEC_PREFIX + "file", FSSPEC_PREFIX + "local"):
        host, slash, rest = text[exact.end() :].partition("/")
        if host not in ("", "localhost") or not slash:
            raise UnsupportedError(f"{name} is {text}, expected {scheme}:///…, with no host but localhost", path=text)
        return "/" + rest
    if scheme in _registered:
        return scheme + text[len(scheme) :].rstrip("/")
    package = "obstore" if scheme in OBSTORE_SCHEMES else "fsspec" if scheme.startswith(FSSPEC_PREFIX) else None
    if package is not None:
        if importlib.util.find_spec(package) is None:
            raise UnsupportedError(
                f"{name} is a URL of {scheme}, which needs the package {package}: pip install {package}", path=text
            )
        default_stores[package](scheme)
        return scheme + text[len(scheme) :].rstrip("/")
    known = ", ".join(sorted({*OBSTORE_SCHEMES, FSSPEC_PREFIX + "<protocol>", *_registered}))
    raise UnsupportedError(
        f"{name} is a URL of {scheme}, expected a path, or a URL of {known}; sealpoint.storage.register adds a store; for a "
        f"directory of that name, pass ./{text}",
        path=text,
    )


def local(path: str, name: str, what: str) -> str:
    """Returns the path. If the path is a URL, raises an UnsupportedError, whose message contains ``what``."""
    if not is_local(path):
        raise UnsupportedError(f"{name} is a URL, expected a path of a file system that is mounted here: {what}", path=path)
    return path


def list_names(path: str) -> list[str]:
    """Returns the names in a directory, or no names if the directory does not exist. Raises the errors of the storage."""
    return list(sizes_of(path))


def sizes_of(path: str) -> dict[str, int]:
    """Returns the size of each file in a directory, by name. The size is 0 for entries that are not files."""
    return {name: size for name, _, size in _sealpoint.list_directory(path) or ()}


def kind_of(path: str) -> str | None:
    """Returns "file", "directory", "link" (a link without a target) or "other", or None if the path does not exist."""
    found = _sealpoint.stat_path(path)
    return None if found is None else found[0]


def absolute(path: str) -> str:
    return os.path.abspath(path) if is_local(path) else path.rstrip("/")


def split(path: str) -> tuple[str, str]:
    """Returns the parent directory and the name of a path."""
    return posixpath.split(absolute(path))
