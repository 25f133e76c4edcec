#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long until a tensor is verified and usable: mapped, read, and shared as a host copy; beside safetensors, which verifies
nothing, and torch's mapped load.

Usage: PYTHONPATH=build/python/python build/venv/bin/python benchmarks/python/map_rate.py [--mib 256] [--rounds 11]
       [--folder DIR] [--cold]    --cold drops all files from the page cache before each way, and sees that they are gone
                                  (the folder must be on a disk)

Each round does all, in turns; every way sums all elements once at the end, so that mapped pages are touched. The ratio is the
median of those of the rounds.
"""

import argparse
import ctypes
import mmap
import os
import pathlib
import statistics
import tempfile
import time

import numpy
import safetensors.numpy
import sealpoint
import torch

MIB = 1 << 20
LIBC = ctypes.CDLL(None, use_errno=True)


def ways(folder, threads):
    def mapped():
        return sealpoint.open(folder / "c")["w"].map(threads=threads)

    def read():
        return sealpoint.open(folder / "c", threads=threads)["w"][...]

    def host_copy():
        return sealpoint.open(folder / "c")["w"].host_copy(threads=threads).array

    def of_safetensors():
        return safetensors.numpy.load_file(folder / "w.safetensors")["w"]

    def of_torch():
        return torch.load(folder / "w.pt", mmap=True, weights_only=True)["w"].numpy()

    return {"mapped": mapped, "read": read, "host copy": host_copy, "safetensors": of_safetensors, "torch mapped": of_torch}


def drop_from_cache(folder):
    """Errors: RuntimeError (a page stayed)."""
    for path in folder.rglob("*"):
        if path.is_file():
            with open(path, "rb") as file:
                os.fsync(file.fileno())  # pages that are not written yet would stay
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
                if left := resident_pages(file):
                    raise RuntimeError(f"{path}: {left} pages are still in the page cache")


def resident_pages(file):
    """How many of its pages are in the page cache, as mincore(2) says."""
    size = os.fstat(file.fileno()).st_size
    if size == 0:
        return 0
    with mmap.mmap(file.fileno(), size, prot=mmap.PROT_READ | mmap.PROT_WRITE, flags=mmap.MAP_PRIVATE) as mapped:
        first = ctypes.c_char.from_buffer(mapped)  # which touches no page
        pages = (ctypes.c_ubyte * -(-size // mmap.PAGESIZE))()
        done = LIBC.mincore(ctypes.c_void_p(ctypes.addressof(first)), ctypes.c_size_t(size), pages)
        del first
        if done != 0:
            raise OSError(ctypes.get_errno(), "mincore")
        return sum(page & 1 for page in pages)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mib", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--folder", default="/dev/shm")
    parser.add_argument("--cold", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        folder = pathlib.Path(name)
        data = numpy.random.default_rng(1).standard_normal(arguments.mib * MIB // 4, dtype="f4")
        sealpoint.save({"w": data}, folder / "c")
        safetensors.numpy.save_file({"w": data}, folder / "w.safetensors")
        torch.save({"w": torch.from_numpy(data)}, folder / "w.pt")
        expected = data.sum(dtype="f8")
        usable, summed = ({way: [] for way in ways(folder, 1)} for _ in range(2))
        for number in range(arguments.rounds + 1):
            order = list(ways(folder, arguments.threads).items())
            for way, load in order[number % len(order) :] + order[: number % len(order)]:
                if arguments.cold:
                    drop_from_cache(folder)
                begin = time.perf_counter()
                array = load()
                middle = time.perf_counter()
                assert abs(array.sum(dtype="f8") - expected) < 1
                if number > 0:
                    usable[way].append(middle - begin)
                    summed[way].append(time.perf_counter() - begin)
                del array
    for what, times in (("until usable", usable), ("and summed once", summed)):
        for way, seconds in times.items():
            ratio = statistics.median(base / own for base, own in zip(times["safetensors"], seconds, strict=True))
            print(f"{what}: {way:12} {arguments.mib / 1024 / statistics.median(seconds):6.2f} GiB/s, safetensors x {ratio:.2f}")


if __name__ == "__main__":
    main()
