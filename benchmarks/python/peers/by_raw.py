# SPDX-License-Identifier: Apache-2.0
"""What the machine allows: direct writes and reads of as many bytes, and copies in memory."""

import ctypes
import functools
import mmap
import os
import pathlib

from peers.peer import Peer

BLOCK = 4 << 20
PAGE = 4096


def padded(size):
    return -(-size // PAGE) * PAGE


class Memory:
    """Aligned, touched memory, on huge pages if the system has them."""

    def __init__(self, size):
        self._map = mmap.mmap(-1, max(PAGE, padded(size)))
        if hasattr(mmap, "MADV_HUGEPAGE"):
            self._map.madvise(mmap.MADV_HUGEPAGE)
        self.view = memoryview(self._map)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self._map))
        ctypes.memset(self.address, 0x55, len(self.view))


class Raw(Peer):
    is_limit = True
    options = ("a file per rank, written with O_DIRECT from aligned memory, 4 MiB at a time, then fsync; read in the "
               "same way if it is not in the page cache, else by read(). The stall is one memcpy into touched "
               "memory. A load in another layout reads as many bytes in one run: no one can be faster")
    operations = frozenset({"save", "stall", "load", "reshard", "one", "slice", "verify"})

    def begin(self, state):
        """The state's bytes, one after another, in memory from which direct writes are possible."""
        own = [held for held in state if held.tensor.layout != "whole" or self.rank == 0]
        self._size = sum(held.local.nbytes for held in own)
        self._memory, self._copy = Memory(self._size), Memory(sum(held.local.nbytes for held in state))
        at = 0
        for held in own:
            ctypes.memmove(self._memory.address + at, held.local.data_ptr(), held.local.nbytes)
            at += held.local.nbytes

    @functools.cached_property
    def direct(self):
        return direct_flag(pathlib.Path.cwd())

    def file(self, path, rank=None):
        return pathlib.Path(path) / f"rank{self.rank if rank is None else rank}"

    def save(self, state, path):
        pathlib.Path(path).mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self.file(path), os.O_WRONLY | os.O_CREAT | os.O_EXCL | self.direct, 0o666)
        try:
            for at in range(0, padded(self._size), BLOCK):
                block = self._memory.view[at:min(at + BLOCK, padded(self._size))]
                if os.pwrite(descriptor, block, at) != len(block):
                    raise OSError(f"{self.file(path)}: a write was short")
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def save_async(self, state, path):
        ctypes.memmove(self._copy.address, self._memory.address, self._size)
        return lambda: None

    def load(self, state, path):
        """Its part of what all wrote, from the file of this rank as long as that lasts, then from the others'."""
        self._read(sum(held.local.nbytes for held in state), path)

    def read(self, held, path):
        self._read(held.local.nbytes, path)

    def verify(self, path):
        self._read_file(self.file(path), self._size, 0, self.direct if self.is_cold else 0)

    def _read(self, size, path):
        at = 0
        for offset in range(self.ranks):
            file = self.file(path, (self.rank + offset) % self.ranks)
            here = min(size - at, os.stat(file).st_size)
            self._read_file(file, here, at, self.direct if self.is_cold else 0)
            at += padded(here)
            if at >= size:
                return

    def _read_file(self, file, size, into, flag):
        descriptor = os.open(file, os.O_RDONLY | flag)
        try:
            for at in range(0, padded(size), BLOCK):
                count = min(BLOCK, padded(size) - at, len(self._copy.view) - into - at)
                os.preadv(descriptor, [self._copy.view[into + at:into + at + count]], at)
        finally:
            os.close(descriptor)

    def loaded_right(self):
        """After a load on the same mesh."""
        return self._copy.view[:self._size] == self._memory.view[:self._size]


def direct_flag(folder):
    """O_DIRECT, or 0 if the file system of a folder refuses it."""
    probe = folder / f"direct-{os.getpid()}"
    try:
        os.close(os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_DIRECT))
        return os.O_DIRECT
    except OSError:
        return 0
    finally:
        probe.unlink(missing_ok=True)


THE_PEER = Raw
