# SPDX-License-Identifier: Apache-2.0
"""Checkpoints as a read-only file system of fsspec, in which each tensor is a file ``<name>.npy``.

    fsspec.filesystem("sealpoint").find("/runs/7/step-1")
    with fsspec.open("sealpoint:///runs/7/step-1/model/w.npy") as file:
        array = numpy.load(file)

``sealpoint://model/w.npy::s3://bucket/step-1`` and ``sealpoint::s3://bucket/step-1`` read a checkpoint in another file system of
fsspec. Installing the package registers the protocol ``sealpoint``.
"""

from __future__ import annotations

import errno
import importlib
import io
import os
import posixpath
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NoReturn

from sealpoint import _sealpoint, storage
from sealpoint._checkpoint import Tensor, open, read_run
from sealpoint._dtypes import TO_NUMPY_CODE, numpy
from sealpoint._errors import UnsupportedError
from sealpoint._native import MARKER
from sealpoint._paths import FSSPEC_PREFIX, resolve
from sealpoint.storage.fsspec import FsspecStore

__all__ = ["SealpointFileSystem"]

_fsspec: Any = importlib.import_module("fsspec")
_spec: Any = importlib.import_module("fsspec.spec")
_BLOCK_BYTES = 16 << 20
_MARKER_BYTES_MAX = 4096
_SUFFIX = ".npy"


class SealpointFileSystem(_spec.AbstractFileSystem):  # type: ignore[misc]
    """The tensors of committed checkpoints as files in the npy format. Every read verifies the chunks that it reads.

    A path is the path of a checkpoint, then the name of a tensor and ``.npy``. Each ``/`` in a name begins a directory. The content
    is what ``numpy.save`` writes: elements in row-major order. Dtypes that numpy lacks (bf16, fp8) are void dtypes such as ``<V2``;
    convert these with ``array.view(ml_dtypes.bfloat16)``. ``info`` tells the dtype and the shape. Objects are not shown. A range
    reads only the chunks that it overlaps; an open file keeps up to 32 MiB in memory. All functions that write raise an OSError.
    Thread-safe; not collective.

    Args:
        fo: In a chained URL, the path of the checkpoint in the target file system; paths then begin inside the checkpoint.
        target_protocol, target_options: The target file system.

    Raises:
        FileNotFoundError: the path leads to no checkpoint, tensor or directory (functions only).
        UnsupportedError: tensors have names that are not paths of files, such as "a//b" or "../a" (functions only).
        Error: as for ``sealpoint.open`` and ``Tensor.read`` (functions only).

    Examples:
        >>> import numpy, sealpoint
        >>> from sealpoint.fsspec import SealpointFileSystem
        >>> _ = sealpoint.save({"layers/0/w": numpy.ones(3, "f4")}, "checkpoint")
        >>> fs = SealpointFileSystem(fo="checkpoint")
        >>> fs.find("")
        ['layers/0/w.npy']
        >>> with fs.open("layers/0/w.npy") as file:
        ...     numpy.load(file).sum()
        np.float32(3.0)
    """

    protocol = "sealpoint"
    root_marker = ""

    def __init__(
        self, fo: str = "", target_protocol: str | None = None, target_options: dict[str, Any] | None = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self._place = _place_of(fo, target_protocol, target_options or {})

    def ls(self, path: str, detail: bool = True, **kwargs: Any) -> list[Any]:
        inner, tree = self._find(path)
        path = self._strip_protocol(path)
        if inner in tree.tensors:
            entries = [self._entry(path, inner, tree)]
        else:
            base = inner + "/" if inner else ""
            entries = [self._entry(posixpath.join(path, name), base + name, tree) for name in tree.folders[inner]]
        return entries if detail else [entry["name"] for entry in entries]

    def info(self, path: str, **kwargs: Any) -> dict[str, Any]:
        inner, tree = self._find(path)
        return self._entry(self._strip_protocol(path), inner, tree)

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **kwargs: Any) -> bytes:
        file = self._file(path)
        begin, stop, _ = slice(start, end).indices(file.size)
        return bytes(file.read(begin, stop))

    def _open(self, path: str, mode: str = "rb", block_size: int | None = None, **kwargs: Any) -> Any:
        if mode != "rb":
            self._refuse(path)
        file = self._file(path)
        return _OpenFile(self, path, file.read, block_size=block_size or _BLOCK_BYTES, size=file.size)

    def _refuse(self, path: object = None, *_: Any, **__: Any) -> NoReturn:
        raise OSError(errno.EROFS, "sealpoint:// is read-only, save checkpoints with sealpoint.save", path)

    cp_file = makedirs = mkdir = mv = pipe_file = put_file = rm = rm_file = rmdir = touch = _refuse

    def _find(self, path: str) -> tuple[str, _Tree]:
        """Returns the path inside the checkpoint, which exists there, and the content of the checkpoint."""
        path = self._strip_protocol(path)
        place = self._place or os.path.abspath(path)
        inner = path.strip("/") if self._place else ""
        while (marker := _sealpoint.read_file(f"{place}/{MARKER}", _MARKER_BYTES_MAX)) is None:
            place, slash, name = place.rpartition("/")
            if self._place or not slash:
                raise FileNotFoundError(errno.ENOENT, "no committed checkpoint at this path or above it", self._place or path)
            inner = posixpath.join(name, inner).rstrip("/")
        tree = _tree_of(place, marker)
        if inner not in tree.tensors and inner not in tree.folders:
            raise FileNotFoundError(errno.ENOENT, "the checkpoint has no such tensor or directory", path)
        return inner, tree

    def _file(self, path: str) -> _File:
        inner, tree = self._find(path)
        if inner not in tree.tensors:
            raise IsADirectoryError(errno.EISDIR, "this is a directory of tensors", path)
        return _File(tree.tensors[inner])

    def _entry(self, path: str, inner: str, tree: _Tree) -> dict[str, Any]:
        if inner not in tree.tensors:
            return {"name": path, "size": 0, "type": "directory"}
        tensor = tree.tensors[inner]
        return {"name": path, "size": _File(tensor).size, "type": "file", "dtype": tensor.dtype_name, "shape": tensor.shape}


class _Tree:
    """Content of a checkpoint: tensors by path, and the names in each directory."""

    def __init__(self, place: str) -> None:
        checkpoint = open(place)
        self.tensors = {name + _SUFFIX: checkpoint[name] for name in checkpoint}
        folders: dict[str, dict[str, None]] = {"": {}}
        for path in self.tensors:
            parts = path.split("/")
            if any(part in ("", ".", "..") for part in parts):
                raise UnsupportedError("the name is not a path of a file; use sealpoint.open",
                                       path=place, tensor=self.tensors[path].name)  # fmt: skip
            for depth, part in enumerate(parts):
                folders.setdefault("/".join(parts[:depth]), {})[part] = None
        for path in folders.keys() & self.tensors.keys():
            raise UnsupportedError("other tensors have names that begin with that of its file; use sealpoint.open",
                                   path=place, tensor=self.tensors[path].name)  # fmt: skip
        self.folders = {folder: list(names) for folder, names in folders.items()}


@lru_cache(8)
def _tree_of(place: str, marker: bytes) -> _Tree:
    """Returns the content of the checkpoint with this marker: a different checkpoint at the same path is another key."""
    return _Tree(place)


class _File:
    """A tensor as a file: header and elements."""

    def __init__(self, tensor: Tensor) -> None:
        self._tensor = tensor
        self._header = _header_of(tensor)
        self.size = len(self._header) + tensor.nbytes

    def read(self, begin: int, end: int) -> bytearray:
        """Returns the bytes of a range. Raises the errors of ``Tensor.read``."""
        out = bytearray(max(end - begin, 0))
        head = self._header[begin:end]
        out[: len(head)] = head
        if len(out) > len(head):
            self._fill(max(begin - len(self._header), 0), memoryview(out)[len(head) :])
        return out

    def _fill(self, begin: int, out: memoryview) -> None:
        """Reads bytes of the elements, from the byte ``begin`` on."""
        size = self._tensor.itemsize
        first, end = begin // size, -(-(begin + len(out)) // size)
        whole = (end - first) * size
        memory = out if whole == len(out) else memoryview(bytearray(whole))
        read_run(self._tensor, first, end, memory)
        if memory is not out:  # elements at the ends are read whole
            out[:] = memory[begin - first * size :][: len(out)]


class _OpenFile(_spec.AbstractBufferedFile):  # type: ignore[misc]
    """An open file, buffered by fsspec."""

    def __init__(self, fs: Any, path: str, read: Callable[[int, int], bytearray], **kwargs: Any) -> None:
        super().__init__(fs, path, "rb", **kwargs)
        self._read_range = read

    def _fetch_range(self, start: int, end: int) -> bytes:
        return bytes(self._read_range(start, end))


def _header_of(tensor: Tensor) -> bytes:
    code = TO_NUMPY_CODE.get(tensor.dtype_name)
    # numpy writes some dtypes of ml_dtypes in a form that it cannot read: <f1 for float8_e5m2.
    descr = numpy().dtype(code).str if code is not None else f"<V{tensor.itemsize}"
    header = io.BytesIO()
    numpy().lib.format.write_array_header_1_0(header, {"descr": descr, "fortran_order": False, "shape": tensor.shape})
    return header.getvalue()


def _place_of(fo: str, protocol: str | None, options: dict[str, Any]) -> str:
    """Returns the path by which sealpoint opens the target of a chained URL, or "" if there is none."""
    if not fo or protocol in (None, "file", "local"):
        return fo
    scheme = FSSPEC_PREFIX + protocol + ("." + _spec.tokenize(options) if options else "")

    def make(uri: str) -> FsspecStore:
        return FsspecStore(_fsspec.filesystem(protocol, **options, skip_instance_cache=True), uri=uri)

    if options:
        storage.register(scheme, make)
    place = f"{scheme}://{fo.lstrip('/')}"
    return resolve(place, "fo") or place
