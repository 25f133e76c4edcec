# SPDX-License-Identifier: Apache-2.0
"""Functions that read files into the page cache, drop files from the page cache, sync files to the disk, and flip bits in files."""

from __future__ import annotations

import os

from sealpoint import _paths, _sealpoint

_BLOCK_BYTES = 16 << 20


def files_of(path: str) -> list[str]:
    return sorted(entry.path for entry in os.scandir(path) if entry.is_file(follow_symlinks=False))


def sync(*paths: str) -> None:
    """Syncs files. Used for peers that do not sync their own output."""
    for path in paths:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def warm(path: str) -> None:
    for file in files_of(path):
        with open(file, "rb", buffering=0) as opened:
            while opened.read(_BLOCK_BYTES):
                pass


def cool(path: str) -> None:
    for file in files_of(path):
        descriptor = os.open(file, os.O_RDONLY)
        try:
            os.fsync(descriptor)  # unwritten pages would stay in the page cache
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)


def bytes_from_storage() -> int | None:
    """Returns the number of bytes that this process has read from devices, or None if the system does not report this number."""
    try:
        with open("/proc/self/io", encoding="ascii") as opened:
            return next((int(line.split()[1]) for line in opened if line.startswith("read_bytes:")), None)
    except OSError:
        return None


def places(path: str, count: int) -> list[tuple[str, int, int]]:
    """Returns (file, offset, bit) positions spread evenly over all bytes of a checkpoint."""
    sizes = sorted(_paths.sizes_of(path).items())
    total, found = sum(size for _, size in sizes), []
    for number in range(count):
        at = int(total * (number + 0.5) / count)
        for name, size in sizes:
            if at < size:
                found.append((name, at, number % 8))
                break
            at -= size
    return found


def flip(path: str, name: str, offset: int, bit: int) -> None:
    """Flips a bit. A second call restores the bit."""
    if not _paths.is_local(path):
        content = bytearray(_sealpoint.read_file(f"{path}/{name}", 1 << 40) or b"")
        content[offset] ^= 1 << bit
        _sealpoint.write_file(f"{path}/{name}", bytes(content))
        return
    with open(os.path.join(path, name), "r+b", buffering=0) as opened:
        byte = os.pread(opened.fileno(), 1, offset)[0]
        os.pwrite(opened.fileno(), bytes([byte ^ 1 << bit]), offset)
        os.fsync(opened.fileno())
