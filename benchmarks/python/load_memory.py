#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rate of loads from the page cache into memory at several addresses, relative to memory that begins at a page.

Usage: PYTHONPATH=build/python/python build/venv/bin/python benchmarks/python/load_memory.py [--mib 512] [--rounds 11]
       [--threads 1] [--folder DIR]

malloc gives large memory at 16 bytes after the begin of a page. Each round loads and reads plainly at each address, in turns.
"""

import argparse
import pathlib
import statistics
import tempfile
import time

import numpy
import sealpoint
from load_threads import read_plainly
from map_rate import MIB

PAGE, SKEWS = 4096, (0, 8, 16, 32, 64)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mib", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--folder", default=".")
    arguments = parser.parse_args()
    size = arguments.mib * MIB
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        folder = pathlib.Path(name) / "c"
        sealpoint.save({"w": numpy.random.default_rng(1).integers(0, 256, size, dtype="u1")}, folder)
        files = sorted(folder.glob("*.blob"))
        memory = numpy.zeros(size + 2 * PAGE, dtype="u1")
        begin = -memory.ctypes.data % PAGE

        def load(part):
            with sealpoint.open(folder) as checkpoint:
                checkpoint.read({"w": part}, threads=arguments.threads)

        ways = {"load": load, "plain reads": lambda part: read_plainly(files, part)}
        seconds = {(way, skew): [] for way in ways for skew in SKEWS}
        for number in range(arguments.rounds + 1):
            for way, skew in seconds:
                part = memory[begin + skew : begin + skew + size]
                started = time.perf_counter()
                ways[way](part)
                if number > 0:
                    seconds[way, skew].append(time.perf_counter() - started)
        for (way, skew), own in seconds.items():
            ratio = statistics.median(base / second for base, second in zip(seconds[way, 0], own, strict=True))
            print(f"{way:12} page + {skew:2}: {size / 1e9 / statistics.median(own):5.2f} GB/s, {ratio:4.2f} x page + 0")


if __name__ == "__main__":
    main()
