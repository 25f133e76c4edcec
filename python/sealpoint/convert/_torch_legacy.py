# SPDX-License-Identifier: Apache-2.0
"""What torch.save wrote before version 1.6: five pickles, one behind the other, and then the storages.

The pickles are a number that marks the format, its version, what machine it was, the value, and the keys of the storages
in the order in which they follow: each a count of elements in 8 bytes, and its bytes. No length says where a pickle ends.
"""

from __future__ import annotations

import os
from collections.abc import Container
from typing import Any, NamedTuple

from sealpoint._errors import CorruptError, IncompleteError, LimitExceededError, UnsupportedError
from sealpoint.convert._boxes import whole
from sealpoint.convert._dtypes import ITEM_SIZE, OF_STORAGE
from sealpoint.convert._files import File
from sealpoint.convert._pickle import Decoder, Dict, Global, Persistent
from sealpoint.convert._source import Opener, Portion, State
from sealpoint.convert._torch_zip import LEGACY, MAGIC, PICKLE_BYTES_MAX, Archive, TorchZip, is_dense, state_of
from sealpoint.convert._values import UNTYPED, Known, StoredTensor
from sealpoint.convert._zip import Entry

_VERSION = 1001
_FIRST_BYTES = 64 << 10  # that are read of a pickle whose end is not known
_STORAGE_COST = 384  # of memory, in bytes
_COUNT_BYTES = 8


class _Storage(NamedTuple):
    cls: str
    numel: int


def _element_size(cls: str) -> int | None:
    dtype = OF_STORAGE.get(cls.removeprefix("torch."))
    return 1 if cls in UNTYPED else None if dtype is None else ITEM_SIZE[dtype]


class _Decoder(Decoder):
    """Of protocol 2 as Python 2 wrote it, too: its strings. Keeps what storages the value names."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.storages: dict[str, _Storage] = {}

    def persistent(self, id: Any) -> Any:
        if type(id) is tuple and len(id) == 4 and type(id[0]) is str and id[0] == "module" and type(id[1]) is Global:
            return id[1]  # a class of modules, with its source
        if type(id) is not tuple or len(id) != 6 or type(id[0]) is not str or id[0] != "storage":
            raise self.corrupt("pickle names something that is no storage")
        cls, key, count, view = id[1], id[2], id[4], id[5]
        if type(cls) is not Global or type(key) is not str or type(count) is not int or not 0 <= count < 1 << 62:
            raise self.corrupt("pickle names a storage without a class, a key or a size")
        self.budget.add(_STORAGE_COST, self.path)
        storage = _Storage(cls.name, count)
        if self.storages.setdefault(key, storage) != storage and count > 0:
            raise self.corrupt(f"storage {key!a:.80} has two classes or sizes")
        return self.container(Persistent(id[:5], None if view is None else self._view(view, count)))

    def _view(self, view: Any, count: int) -> tuple[int, int]:
        """Offset and size, in elements."""
        if type(view) is not tuple or len(view) != 3 or any(type(n) is not int or n < 0 for n in view[1:]):
            raise self.corrupt("a view of a storage is no offset and size")
        if view[1] + view[2] > count:
            raise self.corrupt(f"a view ends beyond its storage of {count} elements")
        return view[1], view[2]


def _binary_string(size_bytes: int) -> Any:
    return lambda d: d.stack.append(d.text(d.number(size_bytes)))


_Decoder.handlers = {**Decoder.handlers, ord("U"): _binary_string(1), ord("T"): _binary_string(4)}


class _Decoded(NamedTuple):
    root: Any
    storages: dict[str, _Storage]


class TorchLegacy(Archive):
    """One such file, which begins with ``LEGACY``. ``root`` describes its value.

    Errors: those of the pickles; CorruptError (what they say contradicts itself or the file), IncompleteError (cut off),
    UnsupportedError (another version; big-endian).
    """

    def __init__(self, file: File, keep_unknown: bool) -> None:
        self.file, self.budget = file, file.budget
        before = self.budget.used
        self._keep_unknown = keep_unknown
        self._at = len(LEGACY)
        version = self._next(()).root
        if type(version) is not int or version != _VERSION:
            shown = version if type(version) is int and version.bit_length() < 64 else type(version).__name__
            raise UnsupportedError(f"version of the format is {shown}, expected {_VERSION}", path=file.path)
        self._check_machine(self._next(()).root)
        self.pickle_begin = self._at
        value = self._next(Known())
        self.root, self.pickle_size = value.root, self._at - self.pickle_begin
        self._place(self._next(()).root, value.storages)
        self.cost = self.budget.used - before

    def _corrupt(self, message: str) -> CorruptError:
        return CorruptError(message, path=self.file.path, offset=self._at)

    def _next(self, known: Container[str]) -> _Decoded:
        """The pickle that begins here. What it takes more than was read, is read with it once more."""
        left = self.file.size - self._at
        size, used = min(left, _FIRST_BYTES), self.budget.used
        while True:
            self.budget.used = used
            self.budget.add(size, self.file.path)
            data = self.file.read(self._at, size)
            decoder = _Decoder(data, known, self.budget, self.file.path, self._at, self._keep_unknown and known != ())
            try:
                root = decoder.decode()
            except CorruptError:
                if decoder.needed <= size:
                    raise
                if decoder.needed > left:
                    raise IncompleteError(
                        f"the file has {self.file.size} bytes, expected {self._at + decoder.needed} at least",
                        path=self.file.path,
                        offset=self._at,
                    ) from None
                size = min(left, max(4 * size, decoder.needed))
                if size > PICKLE_BYTES_MAX:
                    raise LimitExceededError(
                        f"the pickle has more than {PICKLE_BYTES_MAX} bytes", path=self.file.path, offset=self._at
                    ) from None
                continue
            self._at += decoder.at
            return _Decoded(root, decoder.storages)

    def _check_machine(self, machine: Any) -> None:
        if type(machine) is not Dict:
            raise self._corrupt("the third pickle is no mapping of what machine it was")
        order = [value for key, value in machine.pairs if type(key) is str and key == "little_endian"]
        if len(order) > 1 or any(value is not True for value in order):
            raise UnsupportedError("the bytes of its tensors are big-endian, expected little-endian", path=self.file.path)

    def _place(self, keys: Any, storages: dict[str, _Storage]) -> None:
        if type(keys) is not list or any(type(key) is not str for key in keys):
            raise self._corrupt("the keys of the storages are no list of strings")
        self._entries: dict[str, Entry] = {}
        for key in keys:
            if key in self._entries or key not in storages:
                raise self._corrupt(f"storage {key!a:.80} is there {'twice' if key in self._entries else 'for no tensor'}")
            cls, count = storages[key]
            size = _element_size(cls)
            if size is None:
                raise UnsupportedError(f"a storage is a {cls!a:.80}, which the format lacks", path=self.file.path)
            found = int.from_bytes(self.file.read(self._at, _COUNT_BYTES), "little")
            if found != count:
                raise self._corrupt(f"storage {key!a:.80} has {found} elements, expected {count}")
            begin = self._at + _COUNT_BYTES
            self._at = begin + count * size
            if self._at > self.file.size:
                raise IncompleteError(
                    f"the file has {self.file.size} bytes, expected {self._at} at least", path=self.file.path, offset=begin
                )
            self.budget.add(_STORAGE_COST, self.file.path)
            self._entries[key] = Entry(key, begin, self._at - begin, None)
        if self._at != self.file.size:
            beyond = self.file.size - self._at
            raise self._corrupt(f"the file has {self.file.size} bytes, of which {beyond} belong to nothing")

    def portion(self, tensor: StoredTensor) -> Portion:
        entry = self._entries.get(tensor.key)
        if entry is None or entry.size != tensor.storage_size:
            found = "none" if entry is None else f"{entry.size} bytes"
            raise CorruptError(f"storage {tensor.key!a} has {found}, expected {tensor.storage_size}", path=self.file.path)
        strides = None if is_dense(tensor.shape, tensor.strides) else tensor.strides
        begin = tensor.begin * ITEM_SIZE[tensor.dtype]
        return Portion(whole(tensor.shape), self.file, entry, begin, strides, sign_mask=tensor.sign_mask)


def is_archive(file: File) -> bool:
    """Whether it begins as what torch.save writes, of any version."""
    return file.read(0, min(file.size, len(LEGACY))).startswith((MAGIC, LEGACY))


def open_archive(file: File) -> Archive:
    """Of a file of which ``is_archive`` holds. Values of unknown classes are kept as such."""
    is_zip = file.read(0, len(MAGIC)) == MAGIC
    return TorchZip(file, 0, file.size, keep_unknown=True) if is_zip else TorchLegacy(file, keep_unknown=True)


def open_legacy_file(path: str, opener: Opener) -> State:
    """A file that holds a mapping."""
    archive = TorchLegacy(opener.files.open(path), keep_unknown=True)
    meaning, digest = "file of torch.save before 1.6: pickles, then its tensors", "none: files before 1.6 have none"
    return state_of(archive, opener, meaning, digest)
