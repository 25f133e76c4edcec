#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Saves and loads of state dicts, beside torch.distributed.checkpoint in the same run.

  PYTHONPATH=build/python/python build/venv/bin/python benchmarks/python/state_dicts.py [--ranks N] [--rounds N] [CASE...]

Cases:
  small    10,000 tensors of 4 KiB and 2,000 numbers, plain, on all ranks
  sharded  2,000 DTensors of 64 KiB, sharded over the ranks
  large    4 tensors of 64 MiB on each rank
  model    the same, sharded, and 100 norms of 16 KiB that all ranks hold
  columns  8 DTensors of 64 MiB, saved by rows and loaded by columns
Prints the median of the rounds, which alternate, and the ratio of the medians. What is loaded is in the page cache.
--folder names where files go (default: a temporary folder).
"""

import argparse
import gc
import os
import pathlib
import shutil
import statistics
import tempfile
import time
import warnings

os.environ.setdefault("OMP_NUM_THREADS", "1")


def state_of(case, rank, size):
    import torch
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import DTensor, Shard

    torch.manual_seed(1)
    if case == "small":
        return {"t": {str(i): torch.rand(1024) for i in range(10_000)}, "n": {str(i): i * 0.5 for i in range(2000)}}
    if case == "sharded":
        mesh = init_device_mesh("cpu", (size,))
        rows = 64 // size
        return {str(i): DTensor.from_local(torch.rand(rows, 256), mesh, [Shard(0)], run_check=False) for i in range(2000)}
    if case in ("model", "columns"):
        mesh = init_device_mesh("cpu", (size,))
        state = {str(i): DTensor.from_local(torch.rand(4096 // size, 4096), mesh, [Shard(0)], run_check=False)
                 for i in range(8)}
        return state if case == "columns" else state | {f"norm{i}": torch.ones(4096) for i in range(100)}
    return {f"{rank}.{i}": torch.rand(16 << 20) for i in range(4)}


def zeroed(state, by_columns=False):
    import torch
    from torch.distributed.tensor import DTensor, Shard

    if isinstance(state, dict):
        return {key: zeroed(value, by_columns) for key, value in state.items()}
    if by_columns:
        local = torch.zeros(state.shape[0], state.shape[1] // state.device_mesh.size())
        return DTensor.from_local(local, state.device_mesh, [Shard(1)], run_check=False)
    return torch.zeros_like(state) if isinstance(state, torch.Tensor) else state


def warm(folder):
    """Into the page cache, so that both loads read from memory."""
    for file in pathlib.Path(folder).iterdir():
        with file.open("rb") as opened:
            while opened.read(1 << 24):
                pass


def timed(call):
    import torch.distributed as dist

    # A full collection takes as long as a save of many small tensors, and may be due at any time.
    gc.collect()
    dist.barrier()
    started = time.perf_counter()
    call()
    dist.barrier()
    return time.perf_counter() - started


def run_rank(rank, options, folder):
    import sealpoint.torch as sp
    import torch
    import torch.distributed as dist
    import torch.distributed.checkpoint as dcp
    from sealpoint.torch.dcp import StorageWriter

    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/rendezvous", rank=rank, world_size=options.ranks)
    for case in options.cases:
        state = state_of(case, rank, options.ranks)
        into = zeroed(state, by_columns=case == "columns")
        names = ("sealpoint save", "dcp save", "sealpoint load", "dcp load", "sealpoint async", "passed on", "by dcp")
        times = {name: [] for name in names}
        for number in range(options.rounds):
            ours, theirs = f"{folder}/{case}{number}s", f"{folder}/{case}{number}d"
            times["sealpoint save"].append(timed(lambda: sp.save(state, ours)))
            times["dcp save"].append(timed(lambda: dcp.save(state, checkpoint_id=theirs)))
            # Sealpoint writes past the page cache, so that a file that was just written is on the disk alone.
            for path in (ours, theirs):
                warm(path)
            times["sealpoint load"].append(timed(lambda: sp.load(into, ours)))
            times["dcp load"].append(timed(lambda: dcp.load(into, checkpoint_id=theirs)))
            times["passed on"].append(timed(lambda: sp.load(into, ours, share_chunks=True)))
            by_dcp = StorageWriter(ours + "w")
            times["by dcp"].append(timed(lambda: dcp.save(state, storage_writer=by_dcp)))
            futures = []
            times["sealpoint async"].append(timed(lambda: futures.append(sp.save_async(state, ours + "a"))))
            futures[0].result()
            dist.barrier()
            if rank == 0:
                for path in (ours, theirs, ours + "a", ours + "w"):
                    shutil.rmtree(path)
            dist.barrier()
        if rank == 0:
            report(case, times)
    dist.destroy_process_group()


def report(case, times):
    # The first round makes groups, threads and staging memory.
    first = {name: values[0] for name, values in times.items()}
    median = {name: statistics.median(values[1:] or values) for name, values in times.items()}
    print(f"{case}: save {median['sealpoint save']:.3f} s, of torch.distributed.checkpoint {median['dcp save']:.3f} s: "
          f"{median['dcp save'] / median['sealpoint save']:.2f} times as fast (first round "
          f"{first['dcp save'] / first['sealpoint save']:.2f})")
    print(f"{case}: load {median['sealpoint load']:.3f} s, of torch.distributed.checkpoint {median['dcp load']:.3f} s: "
          f"{median['dcp load'] / median['sealpoint load']:.2f} times as fast; "
          f"with share_chunks=True {median['passed on']:.3f} s")
    print(f"{case}: save by torch.distributed.checkpoint with the StorageWriter {median['by dcp']:.3f} s: "
          f"{median['dcp save'] / median['by dcp']:.2f} times as fast")
    print(f"{case}: training stands still for {median['sealpoint async']:.3f} s in a save in the background", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--folder")
    parser.add_argument("cases", nargs="*", metavar="CASE")
    options = parser.parse_args()
    options.cases = options.cases or ["small", "sharded", "large", "model", "columns"]
    import torch.multiprocessing as mp

    if options.folder:
        pathlib.Path(options.folder).mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        mp.start_processes(run_rank, args=(options, folder), nprocs=options.ranks, start_method="spawn")


if __name__ == "__main__":
    main()
