# SPDX-License-Identifier: Apache-2.0
"""What torch.save writes: a zip with a pickle and the bytes of its storages. A file, or an item within one of DCP."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from sealpoint import _tree
from sealpoint._errors import CorruptError, Error, LimitExceededError, NotACheckpointError, UnsupportedError
from sealpoint._tree import Node
from sealpoint.convert._boxes import Extents, whole
from sealpoint.convert._budget import Budget
from sealpoint.convert._dtypes import ITEM_SIZE
from sealpoint.convert._files import File
from sealpoint.convert._pickle import Decoder
from sealpoint.convert._source import FileInfo, FileTensor, Opener, Portion, State, Unread
from sealpoint.convert._values import LEFT_OUT, Known, StoredTensor, Values
from sealpoint.convert._zip import Zip

PICKLE_BYTES_MAX = 1 << 30
MAGIC = b"PK\x03\x04"
# How files begin that torch wrote before 1.6, by the pickle of a number of 10 bytes.
LEGACY = b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."


class Archive:
    """What torch.save writes, of any version. ``root`` describes its value; ``cost``: of that, until nobody needs it."""

    file: File
    budget: Budget
    root: Any
    cost: int
    pickle_begin: int
    pickle_size: int

    def portion(self, tensor: StoredTensor) -> Portion:
        """Where its bytes are. Errors: CorruptError (they are not there)."""
        raise NotImplementedError

    def release(self) -> None:
        """What it describes is not needed any more."""
        self.budget.used -= self.cost

    def values(
        self, add_tensor: Callable[[str, StoredTensor], str], on_unknown: Callable[[_tree.Path, str], Any] | None
    ) -> Values:
        return Values(add_tensor, self.budget, self.file.path, self.pickle_begin, self.pickle_size, on_unknown)


class TorchZip(Archive):
    """One zip of torch.save. ``root`` describes its value.

    Errors: those of Zip and of the pickle; NotACheckpointError (another zip), UnsupportedError (big-endian, TorchScript).
    """

    def __init__(
        self, file: File, begin: int, size: int, keep_unknown: bool = False, budget: Budget | None = None
    ) -> None:
        self.file = file
        self.budget = file.budget if budget is None else budget
        before = self.budget.used
        self._zip = Zip(file, begin, size, self.budget)
        names = [name for name in self._zip.entries if name.endswith("/data.pkl")]
        if len(names) != 1 or names[0].count("/") != 1:
            raise NotACheckpointError("a zip without data.pkl, so not one of torch.save", path=file.path, offset=begin)
        self._prefix = names[0].removesuffix("data.pkl")
        if any(name.startswith((self._prefix + "code/", self._prefix + "constants.pkl")) for name in self._zip.entries):
            raise UnsupportedError("a TorchScript archive, which is a program; expected a state", path=file.path)
        order = self._zip.entries.get(self._prefix + "byteorder")
        if order is not None and self._small(order.name) != b"little":
            raise UnsupportedError("the bytes of its tensors are big-endian, expected little-endian", path=file.path)
        entry = self._zip.entries[names[0]]
        self.pickle_begin, self.pickle_size = entry.begin, entry.size
        self.root = Decoder(self._small(entry.name), Known(), self.budget, file.path, entry.begin, keep_unknown).decode()
        self.cost = self.budget.used - before

    def _small(self, name: str) -> bytes:
        entry = self._zip.entries[name]
        if entry.size > PICKLE_BYTES_MAX:
            raise LimitExceededError(
                f"entry {name!a} has {entry.size} bytes, expected {PICKLE_BYTES_MAX} at most", path=self.file.path
            )
        self.budget.add(entry.size, self.file.path)
        return self._zip.read(entry)

    def portion(self, tensor: StoredTensor) -> Portion:
        entry = self._zip.entries.get(f"{self._prefix}data/{tensor.key}")
        found = "none" if entry is None else f"{entry.size} bytes"
        if entry is None or entry.size != tensor.storage_size:
            raise CorruptError(f"storage {tensor.key!a} has {found}, expected {tensor.storage_size}", path=self.file.path)
        self._zip.check_stored(entry)
        strides = None if is_dense(tensor.shape, tensor.strides) else tensor.strides
        begin = tensor.begin * ITEM_SIZE[tensor.dtype]
        return Portion(whole(tensor.shape), self.file, entry, begin, strides, sign_mask=tensor.sign_mask)

    def digests(self) -> list[tuple[str, int, int | None]]:
        """Name, size and CRC-32 of the pickle and of the storages: those of equal values are equal."""
        return sorted(
            (name.removeprefix(self._prefix), entry.size, entry.crc)
            for name, entry in self._zip.entries.items()
            if name.startswith((self._prefix + "data/", self._prefix + "data.pkl"))
        )


def is_dense(shape: Extents, strides: Extents) -> bool:
    """Whether the elements lie in row-major order without gaps."""
    step = 1
    for extent, stride in zip(reversed(shape), reversed(strides), strict=True):
        if extent > 1 and stride != step:
            return False
        step *= extent
    return True


class TensorNames:
    """Gives tensors that share memory, element by element, one name."""

    def __init__(self, archive: Archive, tensors: dict[str, Any]) -> None:
        self._archive, self._tensors = archive, tensors
        self._known: dict[StoredTensor, str] = {}
        self._storages: dict[str, str] = {}
        self.shared: list[tuple[str, str]] = []  # different views of one storage

    def add(self, name: str, tensor: StoredTensor) -> str:
        if tensor in self._known and 0 not in tensor.shape:
            return self._known[tensor]
        if name in self._tensors:
            raise UnsupportedError("two tensors of the state have this path", path=self._archive.file.path, tensor=name)
        if 0 in tensor.shape:
            self._tensors[name] = FileTensor(name, tensor.dtype, tensor.shape, [])
            return name
        self._known[tensor] = name
        first = self._storages.setdefault(tensor.key, name)
        if first != name:
            self.shared.append((first, name))
        self._tensors[name] = FileTensor(name, tensor.dtype, tensor.shape, [self._archive.portion(tensor)])
        return name


def value_of(
    archive: Archive,
    tensors: dict[str, Any],
    path: _tree.Path,
    opener: Opener,
    notes: list[str],
    is_list_of_one: bool = False,
) -> Any:
    """The node of the archive's value at a path of the state; its tensors are added. Or LEFT_OUT.

    With ``is_list_of_one`` it is the node of the element of a list. Values of unknown classes are nodes ``Unread``, if they
    are not to be left out. Errors: CorruptError (there is no such list; the values), UnsupportedError.
    """
    root = archive.root
    if is_list_of_one:
        if type(root) is not list or len(root) != 1:
            message = "the item is no list of one object, as which Megatron stores it"
            raise CorruptError(message, path=archive.file.path, offset=archive.pickle_begin)
        root = root[0]
    names = TensorNames(archive, tensors)

    def on_unknown(where: _tree.Path, cls: str) -> Any:
        if opener.drop_unknown and where:
            notes.append(f"{_tree.text_of(where)} is left out: its class is {cls}")
            return LEFT_OUT
        message = (
            f"values of {cls!a:.200} have no form in the format; leave it out by its name, or all such values by "
            "drop_unknown"
        )
        name = _tree.text_of(where) or None
        return Unread(UnsupportedError(message, path=archive.file.path, offset=archive.pickle_begin, object=name))

    node = archive.values(names.add, on_unknown).node(root, path)
    notes.extend(f"{second} shares memory with {first}; each is kept by itself" for first, second in names.shared)
    archive.release()
    return node


def value_or_error(
    open_archive: Callable[[], Archive],
    tensors: dict[str, Any],
    path: _tree.Path,
    opener: Opener,
    notes: list[str],
    is_list_of_one: bool = False,
) -> Any:
    """As ``value_of``, but if the opener goes on, what cannot be read is a node ``Unread``."""
    count, used, noted = len(tensors), opener.files.budget.used, len(notes)
    try:
        return value_of(open_archive(), tensors, path, opener, notes, is_list_of_one)
    except Error as error:
        error.object = error.object or (None if error.tensor else _tree.text_of(path))
        if not opener.goes_on:
            raise
        while len(tensors) > count:
            tensors.popitem()
        del notes[noted:]
        opener.files.budget.used = used
        return Unread(error)


def open_torch_file(path: str, opener: Opener) -> State:
    """A file of torch.save that holds a mapping."""
    file = opener.files.open(path)
    archive = TorchZip(file, 0, file.size, keep_unknown=True)
    return state_of(archive, opener, "zip of torch.save: a pickle of the state, and its tensors", "CRC-32 of the zip")


def state_of(archive: Archive, opener: Opener, meaning: str, digest: str) -> State:
    """Of a file with one value. Errors: UnsupportedError (it is no mapping), those of values."""
    path = archive.file.path
    tensors: dict[str, Any] = {}
    notes: list[str] = []
    tree = value_of(archive, tensors, (), opener, notes)
    if isinstance(tree, Unread):
        raise tree.error
    if not isinstance(tree, dict) or tree.get(_tree.KIND, "dict") != "dict":
        kind = "list" if isinstance(tree, list) else tree.get(_tree.KIND) if isinstance(tree, dict) else type(tree).__name__
        raise UnsupportedError(f"the file holds a {kind}, expected a mapping", path=path)
    info = FileInfo(os.path.basename(path), archive.file.size, meaning)
    return State("torch", path, tree, tensors, [info], notes=notes, digest=digest)
