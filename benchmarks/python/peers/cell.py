# SPDX-License-Identifier: Apache-2.0
"""One peer on one workload, on ranks that are processes of their own, forked from one that has imported what they need.

Operations, in bytes of the state unless something else is said:
  save        until all ranks have it on the disk
  stall       how long a save in the background keeps the caller
  background  the same save until it is durable
  load        on the mesh that saved; bytes of all ranks' states
  reshard     on another mesh: what was cut by rows is cut by columns, what all held by rows
  one         one tensor, by one process
  slice       an eighth of the columns of one tensor, by one process
  verify      all stored bytes are read, and compared with the checksums that there are
"""

import dataclasses
import json
import multiprocessing
import multiprocessing.connection
import os
import pathlib
import shutil
import signal
import sys
import time
import traceback
from datetime import timedelta

import torch
import torch.distributed as dist

from peers import measure
from peers.states import State
from peers.workloads import Box, Held, Workload, equal, other_layout

GRACE_SECONDS = 5
LOOK_SECONDS = 0.5
# Filled when this process is to end. A handler that raises could do so where exceptions are ignored, such as in a fork.
ended = []


def end_soon(*signal_and_frame):
    ended.append(signal_and_frame[0])


@dataclasses.dataclass
class Cell:
    """is_check: each operation once, not to be counted, and what is loaded is compared. Else each once before it is
    measured, but for those in `slow`."""

    workload: Workload
    peer: type
    ranks: int
    folder: pathlib.Path
    is_check: bool = False
    with_cold: bool = False
    slow: frozenset = frozenset()
    limit_seconds: float = 300


class WrongBytesError(Exception):
    """A peer loaded other data than was saved."""


def slice_box(tensor):
    columns = tensor.shape[1]
    return Box((0, columns * 3 // 8), (tensor.shape[0], columns // 8))


def bytes_of(workload, operation, ranks):
    """What an operation is to move."""
    if operation in ("load", "reshard"):
        tensors = [t._replace(layout=other_layout(t)) if operation == "reshard" else t for t in workload.tensors]
        return sum(t.nbytes * (ranks if t.layout == "whole" else 1) for t in tensors)
    if operation in ("one", "slice"):
        return workload.chosen().nbytes // (8 if operation == "slice" else 1)
    return workload.nbytes


class Run:
    """What one rank does."""

    def __init__(self, cell, rank, log):
        self.cell, self.rank, self._log = cell, rank, log
        self.path = cell.folder / "saved"
        self.state = State(cell.workload.held(rank, cell.ranks))
        self.peer = cell.peer(cell.workload, rank, cell.ranks)
        self.peer.begin(self.state)
        self.peer.prepare(self.state)
        self.meter = measure.Meter()
        self.operation = "save"

    def all(self):
        steps = {"save": self.save, "stall": self.save_async, "load": self.load, "reshard": self.load, "one": self.read,
                 "slice": self.read, "verify": self.verify}
        for name in self.cell.workload.operations:
            if name in steps and name in self.peer.operations:
                self.operation = name
                self._log.write(json.dumps({"begun": name}) + "\n")
                steps[name]()

    def twice(self):
        return not self.cell.is_check and self.operation not in self.cell.slow

    def report(self, operation, cost):
        self._log.write(json.dumps({"operation": operation, **cost._asdict()}) + "\n")

    def measured(self, call):
        """From a moment when all ranks are here until this one is done."""
        dist.barrier()
        self.meter.start()
        result = call()
        return result, self.meter.stop()

    def remove(self, path):
        dist.barrier()
        if self.rank == 0 and path.exists():
            shutil.rmtree(path)
        dist.barrier()

    def save(self):
        self.meter.extra = 0
        if self.twice():
            self.peer.save(self.state, self.cell.folder / "before")
            self.remove(self.cell.folder / "before")
        self.report("save", self.measured(lambda: self.peer.save(self.state, self.path))[1])
        dist.barrier()

    def save_async(self):
        path = self.cell.folder / "background"
        self.meter.extra = 0
        if self.twice():
            self.peer.save_async(self.state, path)()
            self.remove(path)
        wait, stall = self.measured(lambda: self.peer.save_async(self.state, path))
        if self.cell.is_check:
            self.invert()
        wait()
        costs = {"stall": stall, "background": self.meter.stop()}
        for operation in self.peer.operations & costs.keys():
            self.report(operation, costs[operation])
        if self.cell.is_check:
            self.invert()
            dist.barrier()
            if "background" in self.peer.operations:
                self.load_and_compare(path, by_columns=False)
        self.remove(path)

    def invert(self):
        """Changes the state; the second time, back."""
        for held in self.state:
            held.local.view(torch.uint8).bitwise_not_()

    def target(self, by_columns):
        state = State(self.cell.workload.held(self.rank, self.cell.ranks, by_columns, filled=False))
        self.peer.prepare(state)
        self.meter.extra = sum(held.local.nbytes for held in state)
        return state

    def load_and_compare(self, path, by_columns):
        state = self.target(by_columns)
        self.report(self.operation, self.measured(lambda: self.peer.load(state, path))[1])
        self.compare(state)

    def compare(self, state):
        if self.peer.is_limit:
            if self.operation == "load" and not self.peer.loaded_right():
                raise WrongBytesError("not what was written")
            return
        for held in state:
            if not equal(held):
                box = f"{list(held.box.offset)} + {list(held.box.shape)}"
                raise WrongBytesError(f"tensor {held.tensor.name}, box {box}: loaded other data than was saved")

    def load(self):
        by_columns = self.operation == "reshard"
        self.cache("warm")
        if self.cell.is_check:
            self.load_and_compare(self.path, by_columns)
            return
        state = self.target(by_columns)
        if self.twice():
            self.peer.load(state, self.path)
        self.warm_and_cold(lambda: self.peer.load(state, self.path))

    def read(self):
        """By rank 0; the others wait."""
        tensor = self.cell.workload.chosen()
        box = slice_box(tensor) if self.operation == "slice" else tensor.whole()
        held = Held(tensor, box, torch.empty(box.shape, dtype=tensor.dtype))
        held.local.view(torch.uint8).fill_(0x55)
        self.meter.extra = held.local.nbytes
        self.cache("warm")
        if self.twice():
            self.alone(lambda: self.peer.read(held, self.path))
        self.warm_and_cold(lambda: self.alone(lambda: self.peer.read(held, self.path)))
        if self.cell.is_check and self.rank == 0:
            self.compare([held])

    def verify(self):
        self.meter.extra = 0
        self.cache("warm")
        self.warm_and_cold(lambda: self.peer.verify(self.path))

    def alone(self, call):
        if self.rank == 0:
            call()

    def warm_and_cold(self, call):
        self.report(self.operation, self.measured(call)[1])
        dist.barrier()
        if self.cell.with_cold and not self.cell.is_check:
            self.cache("cool")
            self.peer.is_cold = True
            self.report(f"{self.operation}, cold", self.measured(call)[1])
            self.peer.is_cold = False
            dist.barrier()

    def cache(self, what):
        dist.barrier()
        if self.rank == 0:
            (measure.warm if what == "warm" else measure.cool)(self.path)
        dist.barrier()


def run_rank(cell, rank):
    """A process's whole life. What it measured is in rank<N>.jsonl, and last why it failed, if it did."""
    descriptor = os.open(cell.folder / f"rank{rank}.output", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)  # warnings of peers
    torch.set_num_threads(1)
    run = None
    with open(cell.folder / f"rank{rank}.jsonl", "w", buffering=1) as log:
        try:
            dist.init_process_group("gloo", init_method=f"file://{cell.folder}/rendezvous", rank=rank,
                                    world_size=cell.ranks, timeout=timedelta(seconds=cell.limit_seconds))
            run = Run(cell, rank, log)
            run.all()
            dist.barrier()
        except BaseException as error:
            traceback.print_exc()
            log.write(json.dumps({"operation": run.operation if run else "begin", "error": one_line(error)}) + "\n")
            log.flush()
            sys.stderr.flush()
            os._exit(1)  # others wait for this rank, and peers' threads for others
    dist.destroy_process_group()


def one_line(error):
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = f"{type(error).__name__}: {lines[0] if lines else ''}"
    return (text if len(lines) < 2 else f"{text} … {lines[-1]}")[:400]


def run_cell(cell):
    """Runs the ranks; returns (costs of each operation by rank, why it failed or None). The folder is made, and removed."""
    cell.folder.mkdir(parents=True)
    try:
        context = multiprocessing.get_context("fork")
        processes = [context.Process(target=run_rank, args=(cell, rank), daemon=True) for rank in range(cell.ranks)]
        for process in processes:
            process.start()
        why = wait_for(processes, cell.limit_seconds)
        return gather(cell, why)
    finally:
        shutil.rmtree(cell.folder, ignore_errors=True)


def wait_for(processes, limit_seconds):
    """Returns why it was no success. Kills what is left at the limit, some seconds after the first failure, or if this
    process is to end."""
    end = time.monotonic() + limit_seconds
    why = None
    try:
        while (alive := [process for process in processes if process.is_alive()]) and time.monotonic() < end:
            sentinels = [process.sentinel for process in alive]
            multiprocessing.connection.wait(sentinels, min(LOOK_SECONDS, max(0.0, end - time.monotonic())))
            if ended:
                sys.exit(128 + signal.SIGTERM)
            failed = [rank for rank, process in enumerate(processes) if process.exitcode]
            if failed and why is None:
                why = f"rank {failed[0]} ended with {processes[failed[0]].exitcode}"
                end = min(end, time.monotonic() + GRACE_SECONDS)
    finally:
        for process in processes:
            process.kill()
            process.join()
    return why or (f"not done after {limit_seconds:.0f} s" if alive else None)


def gather(cell, why):
    costs, errors, begun = {}, [], "begin"
    for rank in range(cell.ranks):
        log = cell.folder / f"rank{rank}.jsonl"
        for line in log.read_text().splitlines() if log.exists() else []:
            fields = json.loads(line)
            begun = fields.get("begun", begun)
            operation = fields.pop("operation", None)
            if operation is None:
                continue
            if "error" in fields:
                errors.append(f"{operation}: rank {rank}: {fields['error']}")
            else:
                costs.setdefault(operation, {})[rank] = measure.Cost(**fields)
    complete = {operation: [by_rank[rank] for rank in sorted(by_rank)] for operation, by_rank in costs.items()
                if len(by_rank) == cell.ranks}
    # The first cause, rather than what others say of the rank that is gone.
    causes = [error for error in errors if "Connection" not in error and "timed out" not in error.lower()] or errors
    return complete, (causes[0] if causes else why and f"{begun}: {why}")
