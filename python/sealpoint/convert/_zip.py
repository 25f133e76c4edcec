# SPDX-License-Identifier: Apache-2.0
"""Zip archives that are a range of a file, as torch.save writes them: entries are stored, never compressed."""

from __future__ import annotations

import struct
import zlib
from typing import NamedTuple

from sealpoint._errors import CorruptError, IncompleteError, UnsupportedError
from sealpoint.convert._budget import Budget, cost_of_text
from sealpoint.convert._files import File

_END, _END_SIZE = b"PK\x05\x06", 22
_LOCATOR, _LOCATOR_SIZE = b"PK\x06\x07", 20
_END_64 = b"PK\x06\x06"
_CENTRAL, _CENTRAL_SIZE = b"PK\x01\x02", 46
_LOCAL, _LOCAL_SIZE = b"PK\x03\x04", 30
_ENTRY_COST = 384  # of memory
_NONE_16, _NONE_32 = 0xFFFF, 0xFFFFFFFF


class Entry(NamedTuple):
    """``begin``: of its bytes in the file. ``crc``: None if its writer computed none. ``how``: other than as they are."""

    name: str
    begin: int
    size: int
    crc: int | None
    how: str = ""


class Zip:
    """The entries of the archive that is the bytes [begin, begin + size) of a file.

    Errors: CorruptError, IncompleteError (no end of an archive: a file that is cut off).
    """

    def __init__(self, file: File, begin: int, size: int, budget: Budget) -> None:
        self.file, self.begin, self.size = file, begin, size
        self._budget = budget
        self.entries: dict[str, Entry] = {}
        self._used = 0
        if begin + size > file.size:
            raise IncompleteError(f"the file has {file.size} bytes, expected {begin + size} at least", path=file.path)
        count, central, end = self._find_directory()
        directory = self._read(central, end - central)
        at = 0
        for _ in range(count):
            at = self._add(directory, at)
        if at != len(directory):
            raise self._corrupt(
                f"directory of the zip has {len(directory)} bytes, expected {at} of {count} entries", central
            )

    def read(self, entry: Entry) -> bytes:
        """Errors: CorruptError (the CRC-32), UnsupportedError (compressed or encrypted)."""
        self.check_stored(entry)
        data = self.file.read(entry.begin, entry.size)
        if entry.crc is not None and zlib.crc32(data) != entry.crc:
            raise crc_error(self.file.path, entry, zlib.crc32(data))
        return data

    def check_stored(self, entry: Entry) -> None:
        if entry.how:
            message = f"entry {entry.name!a} of the zip is {entry.how}, expected stored as it is"
            raise UnsupportedError(message, path=self.file.path)

    def _read(self, at: int, size: int) -> bytes:
        if at < 0 or size < 0 or at + size > self.size:
            raise self._corrupt(f"zip has {self.size} bytes, and says that {size} are at {at}", 0)
        return self.file.read(self.begin + at, size)

    def _corrupt(self, message: str, at: int) -> CorruptError:
        return CorruptError(message, path=self.file.path, offset=self.begin + at)

    def _find_directory(self) -> tuple[int, int, int]:
        """Count of entries, begin and end of their directory."""
        at = self.size - _END_SIZE
        end = self._read(at, _END_SIZE) if at >= 0 else b""
        if not end.startswith(_END):
            raise IncompleteError(
                "no end of a zip archive; the file is cut off, or has a comment behind it",
                path=self.file.path,
                offset=self.begin + max(at, 0),
            )
        disk, central_disk, on_disk, count, size, central = struct.unpack("<HHHHII", end[4:20])
        needs_64 = _NONE_16 in (on_disk, count) or _NONE_32 in (size, central)
        if needs_64 or (at >= _LOCATOR_SIZE and self._read(at - _LOCATOR_SIZE, 4) == _LOCATOR):
            return self._find_directory_64(at)
        if disk or central_disk or on_disk != count or central + size != at:
            raise self._corrupt("end of the zip contradicts itself", at)
        return count, central, at

    def _find_directory_64(self, end: int) -> tuple[int, int, int]:
        locator = self._read(end - _LOCATOR_SIZE, _LOCATOR_SIZE)
        if not locator.startswith(_LOCATOR):
            raise self._corrupt("zip64 without a locator of its end", end)
        at = struct.unpack("<Q", locator[8:16])[0]
        record = self._read(at, 56)
        if not record.startswith(_END_64):
            raise self._corrupt("zip64 without its end", at)
        on_disk, count, size, central = struct.unpack("<QQQQ", record[24:56])
        if on_disk != count or central + size != at:
            raise self._corrupt("end of the zip64 contradicts itself", at)
        return count, central, at

    def _add(self, directory: bytes, at: int) -> int:
        """The entry at this offset of the directory; returns where the next one begins."""
        fixed = directory[at : at + _CENTRAL_SIZE]
        if len(fixed) < _CENTRAL_SIZE or not fixed.startswith(_CENTRAL):
            raise self._corrupt("directory of the zip has no entry where one is expected", at)
        flags, method = struct.unpack("<HH", fixed[8:12])
        crc, stored, size, name_size, extra_size, comment_size = struct.unpack("<IIIHHH", fixed[16:34])
        header = struct.unpack("<I", fixed[42:46])[0]
        end = int(at + _CENTRAL_SIZE + name_size + extra_size + comment_size)
        if end > len(directory):
            raise self._corrupt("directory of the zip ends within an entry", at)
        name_end = at + _CENTRAL_SIZE + name_size
        name = directory[at + _CENTRAL_SIZE : name_end].decode("utf-8", "replace")
        how = "encrypted" if flags & 1 else f"compressed by method {method}" if method else ""
        size, stored, header = self._wide(directory[name_end : name_end + extra_size], size, stored, header, name)
        if size != stored and not how:
            raise self._corrupt(f"entry {name!a} has {size} bytes, of which {stored} are stored, expected the same", at)
        self._check_name(name)
        self._budget.add(_ENTRY_COST + cost_of_text(name.encode()), self.file.path)
        self.entries[name] = Entry(name, self._begin_of(name, header, stored), size, crc if crc or not size else None, how)
        return end

    def _wide(self, extra: bytes, size: int, stored: int, header: int, name: str) -> tuple[int, int, int]:
        """The three numbers, those that do not fit 32 bits from the extra field."""
        values = [size, stored, header]
        if _NONE_32 not in values:
            return size, stored, header
        at = 0
        while at + 4 <= len(extra):
            kind, length = struct.unpack("<HH", extra[at : at + 4])
            if kind == 1:
                body = extra[at + 4 : at + 4 + length]
                for i in range(3):
                    if values[i] == _NONE_32 and len(body) >= 8:
                        values[i] = struct.unpack("<Q", body[:8])[0]
                        body = body[8:]
                return values[0], values[1], values[2]
            at += 4 + length
        raise self._corrupt(f"entry {name!a} of the zip64 lacks its 64-bit sizes", 0)

    def _check_name(self, name: str) -> None:
        if name in self.entries:
            raise self._corrupt(f"two entries of the zip are named {name!a}", 0)
        if name.startswith("/") or ".." in name.split("/"):
            raise self._corrupt(f"entry of the zip is named {name!a}, expected a path within it", 0)

    def _begin_of(self, name: str, header: int, size: int) -> int:
        local = self._read(header, _LOCAL_SIZE)
        if not local.startswith(_LOCAL):
            raise self._corrupt(f"entry {name!a} of the zip has no header", header)
        name_size, extra_size = struct.unpack("<HH", local[26:30])
        begin = int(header + _LOCAL_SIZE + name_size + extra_size)
        self._used += size + _LOCAL_SIZE
        if begin + size > self.size or self._used > self.size:
            raise self._corrupt(
                f"entry {name!a} has {size} bytes at {begin}, the zip {self.size}, which entries do not share", header
            )
        return self.begin + begin


def crc_error(path: str, entry: Entry, found: int) -> CorruptError:
    return CorruptError(
        f"CRC-32 of {entry.name!a} is {found:08x}, expected {entry.crc or 0:08x}", path=path, offset=entry.begin
    )
