#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A load into another layout from the disk: matrices saved by rows are loaded by columns, so that all ranks read all files; beside
plain reads of as many bytes, each rank from the file that it wrote, past the page cache and through it.

Usage: PYTHONPATH=build/python/python build/venv/bin/python benchmarks/python/reshard_cold.py [--ranks 2] [--mib 1024]
       [--rounds 7] [--folder DIR]    (on a disk)

Each round does all, in turns, each with files that were dropped from the page cache. Ratios are medians of those of the rounds.
"""

import argparse
import mmap
import os
import pathlib
import statistics
import tempfile
import time

import sealpoint.torch as sp
import torch
import torch.distributed as dist
import torch.multiprocessing as processes
from map_rate import MIB, drop_from_cache
from torch.distributed.tensor import DTensor, Shard, init_device_mesh

BLOCK, MATRICES = 4 * MIB, 8


def read_plainly(path, size, block, flag):
    descriptor = os.open(path, os.O_RDONLY | flag)
    for at in range(0, size, BLOCK):
        os.preadv(descriptor, [memoryview(block)[: min(BLOCK, size - at)]], at)
    os.close(descriptor)


def part_of(whole, mesh, axis):
    """The rank's part of a cut along an axis, without a message."""
    local = whole.chunk(mesh.size(), axis)[mesh.get_rank()].clone()  # a tensor that is there twice is stored once
    return DTensor.from_local(local, mesh, [Shard(axis)], run_check=False)


def run_rank(rank, arguments, folder):
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29713"}
    dist.init_process_group("gloo", rank=rank, world_size=arguments.ranks)
    torch.set_num_threads(1)
    mesh = init_device_mesh("cpu", (arguments.ranks,))
    extent = int((arguments.mib * MIB / MATRICES / 2) ** 0.5) // 64 * 64
    made = torch.Generator().manual_seed(1)
    whole = torch.randint(0, 1 << 15, (extent, extent), generator=made, dtype=torch.int16)
    sp.save({str(i): part_of(whole, mesh, 0) for i in range(MATRICES)}, folder)
    columns = {str(i): part_of(torch.zeros_like(whole), mesh, 1) for i in range(MATRICES)}
    own = sorted(pathlib.Path(folder).glob("*.blob"))[rank]
    size = MATRICES * whole.nbytes // arguments.ranks // 4096 * 4096
    block = mmap.mmap(-1, BLOCK)
    block.write(b"x" * BLOCK)
    ways = {
        "direct reads": lambda: read_plainly(own, size, block, os.O_DIRECT),
        "cached reads": lambda: read_plainly(own, size, block, 0),
        "each for itself": lambda: sp.load(columns, folder, share_chunks=False),
        "shared": lambda: sp.load(columns, folder, share_chunks=True),
    }
    seconds = {way: [] for way in ways}
    for number in range(arguments.rounds + 1):
        order = list(ways.items())
        for way, call in order[number % len(order) :] + order[: number % len(order)]:
            dist.barrier()
            if rank == 0:
                drop_from_cache(pathlib.Path(folder))
            dist.barrier()
            begin = time.perf_counter()
            call()
            dist.barrier()
            if number > 0:
                seconds[way].append(time.perf_counter() - begin)
    expected = part_of(whole, mesh, 1)
    assert all(torch.equal(column.to_local(), expected.to_local()) for column in columns.values())
    if rank == 0:
        print(f"{len(os.sched_getaffinity(0))} processors, {arguments.ranks} ranks, {arguments.mib} MiB")
        for way, found in seconds.items():
            ratios = [statistics.median(base / second for base, second in zip(seconds[other], found, strict=True))
                      for other in ("direct reads", "cached reads")]
            rate = arguments.mib / 1024 / statistics.median(found)
            print(f"{way:16} {rate:6.2f} GiB/s, {ratios[0]:.2f} of direct reads, {ratios[1]:.2f} of cached reads")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--mib", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--folder", default=".")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        processes.spawn(run_rank, (arguments, f"{folder}/c"), nprocs=arguments.ranks)


if __name__ == "__main__":
    main()
