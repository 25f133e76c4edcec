#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What more threads give a load of one process into memory that is there, from the page cache and from the disk.

Usage: PYTHONPATH=build/python/python build/venv/bin/python benchmarks/python/load_threads.py [--mib 1024] [--rounds 7]
       [--folder DIR]

Each round loads with each number of threads, in turns, and reads the files plainly, with one thread. Cold: the files are
dropped from the page cache before each (the folder must be on a disk). The ratio is the median of those of the rounds.
"""

import argparse
import os
import pathlib
import statistics
import tempfile
import time

import numpy
import sealpoint
from map_rate import MIB, drop_from_cache

CHUNK = 8 * MIB


def read_plainly(files, into):
    done = 0
    for path in files:
        with open(path, "rb", buffering=0) as file:
            while done < into.nbytes and (count := file.readinto(memoryview(into)[done : done + CHUNK])):
                done += count


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mib", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--folder", default=".")
    arguments = parser.parse_args()
    processors = len(os.sched_getaffinity(0))
    numbers = [count for count in (1, 2, 4, 8, 16) if count <= max(2, processors)]
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        folder = pathlib.Path(name) / "c"
        tensors, size = 8, arguments.mib * MIB // 8
        random = numpy.random.default_rng(1)
        sealpoint.save({str(i): random.integers(0, 256, size, dtype="u1") for i in range(tensors)}, folder)
        files = sorted(folder.glob("*.blob"))
        memory = numpy.zeros(tensors * size, dtype="u1")
        parts = {str(i): memory[i * size : (i + 1) * size] for i in range(tensors)}

        def load(threads):
            with sealpoint.open(folder) as checkpoint:
                checkpoint.read(parts, threads=threads)

        ways = {"plain reads": lambda: read_plainly(files, memory)}
        ways |= {f"{count} threads": lambda count=count: load(count) for count in numbers}
        ways["by default"] = lambda: load(None)
        print(f"{processors} processors, {arguments.mib} MiB")
        for kind in ("warm", "cold"):
            seconds = {way: [] for way in ways}
            for number in range(arguments.rounds + 1):
                order = list(ways.items())
                for way, run in order[number % len(order) :] + order[: number % len(order)]:
                    if kind == "cold":
                        drop_from_cache(folder)
                    begin = time.perf_counter()
                    run()
                    if number > 0:
                        seconds[way].append(time.perf_counter() - begin)
            for way, own in seconds.items():
                ratio = statistics.median(base / second for base, second in zip(seconds["1 threads"], own, strict=True))
                rate = arguments.mib / 1024 / statistics.median(own)
                print(f"{kind}: {way:12} {rate:6.2f} GiB/s, {ratio:5.2f} x 1 thread")


if __name__ == "__main__":
    main()
