# SPDX-License-Identifier: Apache-2.0
"""Paths of file systems and of object stores: which they are, and what is at them.

What is done with files, of any storage, are functions of the compiled module: ``read_file``, ``write_file``,
``remove_path``, ``remove_checkpoint``, ``sync_directory``, ``publish``.
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


def is_local(path: str) -> bool:
    """Whether it is a path of a file system: for what other programs, or calls of the system, do with it."""
    return _URI.match(path) is None


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
    if not is_local(path):
        raise UnsupportedError(f"{name} is a URL, expected a path of a file system that is mounted here: {what}", path=path)
    return path


def list_names(path: str) -> list[str]:
    """Names in a directory; none if there is no such directory. Errors: those of the storage."""
    return list(sizes_of(path))


def sizes_of(path: str) -> dict[str, int]:
    """By name in a directory; 0 for anything but files."""
    return {name: size for name, _, size in _sealpoint.list_directory(path) or ()}


def kind_of(path: str) -> str | None:
    """"file", "directory", "link" (which leads nowhere) or "other"; None: nothing is there."""
    found = _sealpoint.stat_path(path)
    return None if found is None else found[0]


def absolute(path: str) -> str:
    return os.path.abspath(path) if is_local(path) else path.rstrip("/")


def split(path: str) -> tuple[str, str]:
    """The directory that it is in, and its name."""
    return posixpath.split(absolute(path))
