# SPDX-License-Identifier: Apache-2.0
"""What an operation takes of a process: time, processor, memory, bytes read; and the page cache before it."""

import os
import pathlib
import time
from typing import NamedTuple


class Cost(NamedTuple):
    """Of one rank. read_calls: bytes that calls of read() returned; read_storage: that came from the device, also for mapped
    files. peak_bytes: the most resident memory, mapped files included, beyond the state and the memory to load into."""

    seconds: float
    cpu_seconds: float
    read_calls: int
    read_storage: int
    peak_bytes: int


def resident_bytes(which="VmRSS"):
    """VmRSS: now; VmHWM: the most since the last reset_peak()."""
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith(which + ":"):
            return int(line.split()[1]) * 1024
    raise OSError(f"/proc/self/status has no {which}")


def reset_peak():
    pathlib.Path("/proc/self/clear_refs").write_text("5")


def bytes_read():
    fields = dict(line.split(": ") for line in pathlib.Path("/proc/self/io").read_text().splitlines())
    return int(fields["rchar"]), int(fields["read_bytes"])


class Meter:
    """Measures from start() to stop(). What is resident when it is made does not count, and `extra` bytes that are filled
    later, such as those of the memory to load into."""

    def __init__(self):
        self._base = resident_bytes()
        self.extra = 0

    def start(self):
        reset_peak()
        self._read = bytes_read()
        self._cpu = time.process_time()
        self._begin = time.perf_counter()

    def stop(self):
        seconds = time.perf_counter() - self._begin
        cpu = time.process_time() - self._cpu
        calls, storage = bytes_read()
        peak = max(0, resident_bytes("VmHWM") - self._base - self.extra)
        return Cost(seconds, cpu, calls - self._read[0], storage - self._read[1], peak)


def files_of(path):
    return [file for file in pathlib.Path(path).rglob("*") if file.is_file()]


def warm(path):
    """All files into the page cache; Sealpoint and raw writes leave them on the disk alone."""
    for file in files_of(path):
        with file.open("rb", buffering=0) as opened:
            while opened.read(1 << 24):
                pass


def cool(path):
    """All files out of the page cache."""
    for file in files_of(path):
        descriptor = os.open(file, os.O_RDONLY)
        try:
            os.fsync(descriptor)  # what is not yet written stays
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)


def sync_files(*paths):
    """For peers that do not: what they wrote is on the disk when this returns."""
    for path in paths:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
