#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Microseconds per tensor that saves and loads of many small tensors take, beside a clone of each tensor and DCP.

Usage: PYTHONPATH=build/python/python build/venv/bin/python benchmarks/python/small_tensors.py [--tensors 100000] [--rounds 5]
       [--kind plain|dtensor] [--dcp-tensors 2000] [--folder /dev/shm]

Run it with torchrun for several ranks, each of which has a part of each DTensor, or the same plain tensors. In each round the first
save has other names than the save before it; the second has the same names, shapes, dtypes and memory, and other elements. The time
of the call and the CPU time of all threads of rank 0 are medians over the rounds. DCP has fewer tensors, since it is slow.
"""

import argparse
import gc
import os
import pathlib
import shutil
import statistics
import tempfile
import time

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Shard

import sealpoint.torch as sp

ELEMENTS = 64  # f32: 256 bytes


class Clock:
    def __init__(self):
        self.found = {}

    def time(self, row, call, tensors, is_counted=True):
        gc.collect()
        begin, cpu = time.perf_counter(), time.process_time()
        result = call()
        if is_counted:
            self.found.setdefault(row, []).append(
                ((time.perf_counter() - begin) * 1e6 / tensors, (time.process_time() - cpu) * 1e6 / tensors)
            )
        return result

    def tell(self):
        for row, seconds in self.found.items():
            wall, cpu = map(statistics.median, zip(*seconds, strict=True))
            print(f"{row:28} {wall:8.2f} us, {cpu:8.2f} us of CPU time")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tensors", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--dcp-tensors", type=int, default=2000)
    parser.add_argument("--kind", choices=("plain", "dtensor"), default="plain")
    parser.add_argument("--folder", default="/dev/shm")
    arguments = parser.parse_args()
    ranks = int(os.environ.get("WORLD_SIZE", "1"))
    if ranks > 1 or arguments.kind == "dtensor":
        dist.init_process_group("gloo", **({} if ranks > 1 else {"store": dist.HashStore(), "rank": 0, "world_size": 1}))
    rank = dist.get_rank() if dist.is_initialized() else 0
    torch.set_num_threads(1)
    held = [torch.full((ELEMENTS,), float(i)) for i in range(arguments.tensors)]
    if arguments.kind == "dtensor":
        mesh = init_device_mesh("cpu", (ranks,))
        held = [DTensor.from_local(tensor, mesh, [Shard(0)], run_check=False) for tensor in held]
    name = [tempfile.mkdtemp(dir=arguments.folder)]
    if ranks > 1:
        dist.broadcast_object_list(name)
    folder, clock = pathlib.Path(name[0]), Clock()
    for number in range(arguments.rounds + 1):
        measure(clock, held, folder, number, arguments.dcp_tensors)
    if rank == 0:
        clock.tell()
        shutil.rmtree(folder)
    if dist.is_initialized():
        dist.destroy_process_group()


def measure(clock, held, folder, number, dcp_tensors):
    def timed(row, call, tensors=len(held)):
        return clock.time(row, call, tensors, is_counted=number > 0)

    def wait():
        if dist.is_initialized():
            dist.barrier()

    states = [{f"{kind}{number}.layer{i}": tensor for i, tensor in enumerate(held)} for kind in "sa"]
    timed("clone", lambda: [tensor.clone() for tensor in held])
    for row, state in (("save", states[0]), ("save_async, stall", states[1])):
        for turn in ("first", "second"):
            path = folder / f"{row[:5]}{number}{turn}"
            wait()
            if row == "save":
                timed(f"{row}, {turn}", lambda: sp.save(state, path))
            else:
                timed(f"{row}, {turn}", lambda: sp.save_async(state, path)).result()
    wait()
    timed("load", lambda: sp.load(states[0], folder / f"save{number}second"))
    few = dict(list(states[0].items())[:dcp_tensors])
    if few:
        wait()
        timed("DCP, save", lambda: dcp.save(few, checkpoint_id=folder / f"d{number}"), len(few))
        timed("DCP, load", lambda: dcp.load(few, checkpoint_id=folder / f"d{number}"), len(few))
    wait()


if __name__ == "__main__":
    main()
