# SPDX-License-Identifier: Apache-2.0
"""Jobs of several ranks over gloo: starting processes costs seconds, so one job runs many cases, one after the other.

As a program it is one rank:  ranks.py MODULE RANK SIZE FOLDER
"""

import faulthandler
import importlib
import json
import os
import pathlib
import subprocess
import sys
import traceback

LIMIT_SECONDS = 240
CASE_LIMIT_SECONDS = 60  # a rank that hangs for longer prints where, and ends


class Job:
    """One rank of a job, as cases see it. ``folder`` is the same on all ranks."""

    def __init__(self, rank, size, folder):
        self.rank, self.size, self.folder = rank, size, pathlib.Path(folder)

    def path(self, name):
        return self.folder / name

    def raises(self, kind, call):
        """The error of call(), which must have one; the same text on all ranks."""
        import torch.distributed as dist

        try:
            call()
        except kind as error:
            texts = [None] * self.size
            dist.all_gather_object(texts, str(error))
            assert len(set(texts)) == 1, texts
            return error
        raise AssertionError(f"no {kind.__name__} on rank {self.rank}")

    def all_agree(self, value):
        """Of a value that is to be the same on all ranks."""
        import torch.distributed as dist

        values = [None] * self.size
        dist.all_gather_object(values, value)
        assert all(one == values[0] for one in values), values
        return value


def cases_of(module):
    return {name: function for name, function in vars(importlib.import_module(module)).items()
            if name.startswith("case_")}


def run_rank(module, rank, size, folder):
    import datetime

    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/rendezvous", rank=rank, world_size=size,
                            timeout=datetime.timedelta(seconds=60))
    with open(f"{folder}/rank{rank}.jsonl", "w", buffering=1) as log:
        for name, case in cases_of(module).items():
            place = pathlib.Path(folder, name)
            place.mkdir(exist_ok=True)
            faulthandler.dump_traceback_later(CASE_LIMIT_SECONDS, exit=True)
            try:
                case(Job(rank, size, place))
                dist.barrier()
            except BaseException:
                log.write(json.dumps([name, traceback.format_exc()]) + "\n")
                os._exit(1)  # others wait for this rank until their deadline
            log.write(json.dumps([name, ""]) + "\n")
    faulthandler.cancel_dump_traceback_later()
    dist.destroy_process_group()


def run(module, size, folder):
    """Runs all cases of a module; returns {case: what went wrong, or ""}."""
    environment = dict(os.environ, OMP_NUM_THREADS="1", LOCAL_WORLD_SIZE=str(size))
    ranks = [subprocess.Popen([sys.executable, __file__, module, str(rank), str(size), str(folder)], env=environment)
             for rank in range(size)]
    failed = []
    for rank, process in enumerate(ranks):
        try:
            process.wait(LIMIT_SECONDS)
        except subprocess.TimeoutExpired:
            failed.append(f"rank {rank} did not end")
            process.kill()
            process.wait()
        if process.returncode != 0:
            failed.append(f"rank {rank} ended with {process.returncode}")
    results = {}
    for rank in range(size):
        log = pathlib.Path(folder, f"rank{rank}.jsonl")
        seen = dict(json.loads(line) for line in log.read_text().splitlines()) if log.exists() else {}
        for name in cases_of(module):
            text = seen.get(name, f"not run; {failed}")
            if text:
                results[name] = results.get(name, "") + f"\nrank {rank}: {text}"
            else:
                results.setdefault(name, "")
    results["end"] = "" if not failed else str(failed)
    return results


if __name__ == "__main__":
    run_rank(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
