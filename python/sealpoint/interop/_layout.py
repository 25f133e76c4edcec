# SPDX-License-Identifier: Apache-2.0
"""File layouts: tensors at offsets, and small byte strings between the tensors. A layout is complete before the first write."""

from __future__ import annotations

import struct
import zlib
from typing import NamedTuple

from sealpoint.interop._boxes import Box
from sealpoint.interop._dtypes import ITEM_SIZE
from sealpoint.interop._source import Tensor

_ALIGNMENT = 64
_MAX_16, _MAX_32 = 0xFFFF, 0xFFFFFFFF
_LOCAL, _CENTRAL = "<4sHHHHHIIIHH", "<4sHHHHHHIIIHHHHHII"
_CRC_IN_CENTRAL, _CRC_BEHIND = 16, 4  # offsets of the CRC-32
_FLAGS, _FLAGS_BEHIND = 0x0800, 0x0808  # names are UTF-8; CRC-32 and sizes follow the bytes, as in torch


class Part:
    """A box of a tensor, stored in row-major order at a file offset. ``crc``: CRC-32, known after the write."""

    __slots__ = ("box", "crc", "file", "offset", "tensor")

    def __init__(self, tensor: Tensor, box: Box, file: int, offset: int) -> None:
        self.tensor, self.box, self.file, self.offset = tensor, box, file, offset
        self.crc = 0

    @property
    def size(self) -> int:
        """Size in bytes."""
        return self.box.size * ITEM_SIZE[self.tensor.dtype]


class Small:
    """A byte string in a file. ``digests``: positions at which the CRC-32s of parts are inserted. ``after``: the preceding part."""

    __slots__ = ("_data", "after", "digests", "file", "offset")

    def __init__(self, file: int, offset: int, after: Part | None) -> None:
        self.file, self.offset, self.after = file, offset, after
        self._data = bytearray()
        self.digests: list[tuple[int, Part]] = []

    def add(self, data: bytes, digests: list[tuple[int, Part]]) -> None:
        self.digests.extend((len(self._data) + at, part) for at, part in digests)
        self._data += data

    @property
    def needs(self) -> dict[int, Part]:
        """The parts, by their ``id()``, that must be written before this byte string."""
        parts = [part for _, part in self.digests] + ([] if self.after is None else [self.after])
        return {id(part): part for part in parts if part.size > 0}

    def data(self) -> bytearray:
        """Returns the bytes. Call this method after all parts in ``needs`` are written."""
        for at, part in self.digests:
            struct.pack_into("<I", self._data, at, part.crc)
        return self._data

    @property
    def end(self) -> int:
        return self.offset + len(self._data)


class Layout:
    """The files of an output by name, in the order in which they become durable."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.sizes: list[int] = []
        self.parts: list[Part] = []
        self.smalls: list[Small] = []
        self._last: list[Small | None] = []  # last item of each file
        self._last_part: list[Part | None] = []

    def add_file(self, name: str) -> int:
        self.names.append(name)
        self.sizes.append(0)
        self._last.append(None)
        self._last_part.append(None)
        return len(self.names) - 1

    def add_bytes(self, file: int, data: bytes, digests: list[tuple[int, Part]] | None = None) -> None:
        """Appends bytes to the file."""
        last = self._last[file]
        if last is None or last.end != self.sizes[file]:
            last = self._last[file] = Small(file, self.sizes[file], self._last_part[file])
            self.smalls.append(last)
        last.add(data, digests or [])
        self.sizes[file] += len(data)

    def add_part(self, file: int, part: Part) -> None:
        part.file, part.offset = file, self.sizes[file]
        self.parts.append(part)
        self._last_part[file] = part
        self.sizes[file] += part.size

    @property
    def has_digests(self) -> bool:
        """Tells whether any byte string needs the CRC-32 of a part."""
        return any(small.digests for small in self.smalls)

    @property
    def total_bytes(self) -> int:
        return sum(self.sizes)


class _Entry(NamedTuple):
    name: bytes
    header: int
    size: int
    crc: int | Part


class ZipLayout:
    """A zip archive as torch.save writes it, at the end of a layout's file.

    The entries are not compressed, and tensors are aligned to 64 bytes.
    """

    def __init__(self, layout: Layout, file: int, prefix: str) -> None:
        self._layout, self._file, self._prefix = layout, file, prefix
        self._begin = layout.sizes[file]
        self._entries: list[_Entry] = []

    def add_bytes(self, name: str, data: bytes) -> None:
        self._header(name, len(data), zlib.crc32(data))
        self._layout.add_bytes(self._file, data)

    def add_tensor(self, name: str, tensor: Tensor, box: Box) -> None:
        part = Part(tensor, box, self._file, 0)
        self._header(name, part.size, part)
        self._layout.add_part(self._file, part)
        sizes = struct.pack("<QQ" if part.size >= _MAX_32 else "<II", part.size, part.size)
        self._layout.add_bytes(self._file, b"PK\x07\x08" + bytes(4) + sizes, [(_CRC_BEHIND, part)])

    def finish(self) -> int:
        """Adds the central directory. Returns the size of the zip in bytes."""
        begin = self._layout.sizes[self._file] - self._begin
        data, digests = _directory(self._entries, begin)
        self._layout.add_bytes(self._file, data, digests)
        return self._layout.sizes[self._file] - self._begin

    def _header(self, name: str, size: int, crc: int | Part) -> None:
        at = self._layout.sizes[self._file] - self._begin
        text = (self._prefix + name).encode("utf-8")
        is_known = isinstance(crc, int)
        sizes = (size, size) if is_known else (0, 0)
        wide = struct.pack("<HHQQ", 1, 16, *sizes) if size >= _MAX_32 else b""
        gap = -(at + 30 + len(text) + len(wide) + 4) % _ALIGNMENT
        extra = wide + struct.pack("<2sH", b"FB", gap) + b"Z" * gap
        short, version, flags = _MAX_32 if wide else sizes[0], 45 if wide else 20, _FLAGS if is_known else _FLAGS_BEHIND
        known = crc if isinstance(crc, int) else 0
        fixed = struct.pack(_LOCAL, b"PK\x03\x04", version, flags, 0, 0, 33, known, short, short, len(text), len(extra))
        self._layout.add_bytes(self._file, fixed + text + extra)
        self._entries.append(_Entry(text, at, size, crc))


def _directory(entries: list[_Entry], begin: int) -> tuple[bytes, list[tuple[int, Part]]]:
    data = bytearray()
    digests = []
    for entry in entries:
        large = ([entry.size] * 2 if entry.size >= _MAX_32 else []) + ([entry.header] if entry.header >= _MAX_32 else [])
        wide = b"".join(struct.pack("<Q", value) for value in large)
        extra = struct.pack("<HH", 1, len(wide)) + wide if wide else b""
        short, header, version = min(entry.size, _MAX_32), min(entry.header, _MAX_32), 45 if wide else 20
        known = entry.crc if isinstance(entry.crc, int) else 0
        flags = _FLAGS
        if isinstance(entry.crc, Part):
            digests.append((len(data) + _CRC_IN_CENTRAL, entry.crc))
            flags = _FLAGS_BEHIND
        fixed = (b"PK\x01\x02", 45, version, flags, 0, 0, 33, known, short, short)
        data += struct.pack(_CENTRAL, *fixed, len(entry.name), len(extra), 0, 0, 0, 0, header) + entry.name + extra
    size, count, at = len(data), len(entries), begin + len(data)
    if begin >= _MAX_32 or size >= _MAX_32 or count >= _MAX_16:
        data += struct.pack("<4sQHHIIQQQQ", b"PK\x06\x06", 44, 45, 45, 0, 0, count, count, size, begin)
        data += struct.pack("<4sIQI", b"PK\x06\x07", 0, at, 1)
    short_count = min(count, _MAX_16)
    ends = (min(size, _MAX_32), min(begin, _MAX_32), 0)
    data += struct.pack("<4sHHHHIIH", b"PK\x05\x06", 0, 0, short_count, short_count, *ends)
    return bytes(data), digests
