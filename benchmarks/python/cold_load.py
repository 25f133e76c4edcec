#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A load by default of files that are not in the page cache, beside loads past the page cache and through it, and beside HDF5
(contiguous, without digests) if h5py is installed; with --warm, of files that are in the page cache.

Usage: PYTHONPATH=build/python/python build/venv/bin/python benchmarks/python/cold_load.py [--mib 512] [--rounds 11] [--warm]
       [--folder DIR]    (on a disk)

Each round does all, in turns. Ratios are medians of those of the rounds; above 1 the load by default is faster.
"""

import argparse
import importlib.util
import pathlib
import statistics
import tempfile
import time

import numpy
import sealpoint
from map_rate import MIB, drop_from_cache

COUNT = 8


def ways_of(folder, size):
    """Calls that fill the same memory."""
    random = numpy.random.default_rng(1)
    state = {f"w{i}": random.integers(0, 255, size // COUNT, dtype=numpy.uint8) for i in range(COUNT)}
    sealpoint.save(state, folder / "c")

    def load(direct_io):
        with sealpoint.open(folder / "c", direct_io=direct_io) as checkpoint:
            checkpoint.read(state)

    ways = {"default": lambda: load(None), "direct": lambda: load(True), "cached": lambda: load(False)}
    if importlib.util.find_spec("h5py"):
        import h5py

        with h5py.File(folder / "state.h5", "w", libver="latest") as file:
            for name, array in state.items():
                file.create_dataset(name, data=array)

        def read_hdf5():
            with h5py.File(folder / "state.h5", "r", libver="latest") as file:
                for name, array in state.items():
                    file[name].read_direct(array)

        ways["HDF5"] = read_hdf5
    return ways


def measure(ways, folder, rounds, is_warm):
    seconds = {way: [] for way in ways}
    for number in range(rounds + 1):
        order = list(ways.items())
        for way, call in order[number % len(order) :] + order[: number % len(order)]:
            if is_warm:
                for file in filter(pathlib.Path.is_file, folder.rglob("*")):
                    file.read_bytes()
            else:
                drop_from_cache(folder)
            begin = time.perf_counter()
            call()
            if number > 0:
                seconds[way].append(time.perf_counter() - begin)
    return seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mib", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--warm", action="store_true")
    parser.add_argument("--folder", default=".")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        folder = pathlib.Path(name)
        seconds = measure(ways_of(folder, arguments.mib * MIB), folder, arguments.rounds, arguments.warm)
    for way, found in seconds.items():
        ratios = sorted(other / own for other, own in zip(found, seconds["default"], strict=True))
        print(f"{way:8} {arguments.mib / 1024 / statistics.median(found):6.2f} GiB/s; default / this: "
              f"{statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})")


if __name__ == "__main__":
    main()
