#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A grid that is stored in boxes: what reading a plane across its last dimension costs, and what saving it costs.

Usage: stored_cuts.py [--directory DIR] [--shape 256 256 512] [--box 64] [--planes 8] [--rounds 11]

Each round saves and reads the same f64 grid in these forms: without cuts, with cuts, and, if h5py is there, as HDF5 datasets with
chunks of the same boxes, without a checksum and with fletcher32. The planes are read from the page cache into new arrays, and
compared with the grid. Bytes of Sealpoint are those of its plan; bytes of HDF5 are those of the chunks that the plane touches. A
save of HDF5 is followed by fsync.
"""

import argparse
import math
import os
import shutil
import statistics
import tempfile
import time

import numpy
import sealpoint

try:
    import h5py
except ImportError:
    h5py = None


def timed(work):
    started = time.perf_counter()
    result = work()
    return result, time.perf_counter() - started


def save_hdf5(grid, path, box, fletcher32):
    with h5py.File(path, "w") as file:
        file.create_dataset("grid", data=grid, chunks=(box,) * 3, fletcher32=fletcher32)
        file.flush()
        os.fsync(file.id.get_vfd_handle())


def read_planes(tensor, planes):
    return [tensor[:, :, k] for k in planes]


def read_sealpoint(path, planes):
    with sealpoint.open(path) as checkpoint:
        return read_planes(checkpoint["grid"], planes)


def read_hdf5(path, planes):
    with h5py.File(path, "r") as file:
        return read_planes(file["grid"], planes)


def bytes_read(path, k):
    with sealpoint.open(path) as checkpoint:
        return checkpoint.plan({"grid": numpy.s_[:, :, k]}).summary


def one_round(arguments, grid, folder, times):
    box, step = arguments.box, grid.shape[2] // arguments.planes
    planes = range(step // 2, grid.shape[2], step)
    forms = {
        "without cuts": (lambda path: sealpoint.save({"grid": grid}, path), read_sealpoint),
        "with cuts": (lambda path: sealpoint.save({"grid": grid}, path, stored_cuts={"grid": (box,) * 3}), read_sealpoint),
    }
    if h5py is not None:
        forms["HDF5"] = (lambda path: save_hdf5(grid, path, box, False), read_hdf5)
        forms["fletcher32"] = (lambda path: save_hdf5(grid, path, box, True), read_hdf5)
    for name, (save, read) in forms.items():
        path = os.path.join(folder, name)
        _, saved = timed(lambda save=save, path=path: save(path))
        read(path, planes)  # the page cache is warm
        found, seconds = timed(lambda read=read, path=path: read(path, planes))
        for k, plane in zip(planes, found, strict=True):
            assert numpy.array_equal(plane, grid[:, :, k]), f"{name}: plane {k} differs"
        times.setdefault(name, []).append((saved, seconds / len(planes)))
    plans = {name: bytes_read(os.path.join(folder, name), planes[0]) for name in ("without cuts", "with cuts")}
    for name in forms:
        path = os.path.join(folder, name)
        shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)
    return plans


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--directory", default=tempfile.gettempdir())
    parser.add_argument("--shape", type=int, nargs=3, default=[256, 256, 512])
    parser.add_argument("--box", type=int, default=64)
    parser.add_argument("--planes", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=11)
    arguments = parser.parse_args()
    grid = numpy.random.default_rng(1).random(arguments.shape)
    times = {}
    with tempfile.TemporaryDirectory(prefix="cuts-", dir=arguments.directory) as folder:
        plans = [one_round(arguments, grid, folder, times) for _ in range(arguments.rounds)][-1]
    plane = grid[:, :, 0].nbytes
    touched = math.ceil(grid.shape[0] / arguments.box) * math.ceil(grid.shape[1] / arguments.box) * 8 * arguments.box**3
    read = {name: plan.bytes_read for name, plan in plans.items()} | {"HDF5": touched, "fletcher32": touched}
    if h5py is None:
        print("h5py is not there: HDF5 is left out")
    for name, rounds in times.items():
        saves, reads = zip(*rounds, strict=True)
        save_ratio = statistics.median(a / b[0] for a, b in zip(saves, times["without cuts"], strict=True))
        print(f"{name:12}  read / requested {read[name] / plane:6.1f}  plane {1e3 * statistics.median(reads):8.2f} ms"
              f"  save {statistics.median(saves):6.3f} s  save / without cuts {save_ratio:5.2f}")
    for peer in ("HDF5", "fletcher32") if h5py is not None else ():
        ratios = [ours[1] / theirs[1] for ours, theirs in zip(times["with cuts"], times[peer], strict=True)]
        print(f"time of a plane with cuts / {peer}: {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})")


if __name__ == "__main__":
    main()
