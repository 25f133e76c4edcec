# SPDX-License-Identifier: Apache-2.0
"""Trainings under torchtitan's manager that are killed while they save and delete; run by titan_cases.py."""

import os
import pathlib
import random
import re
import signal
import time

import sealpoint
import torch.distributed as dist
from titan_states import Run

KILLS, KILLS_MAX = 4, 30
HALF_DELETED_MIN = 2
LIMIT_SECONDS = 60


def train(folder, number):
    dist.init_process_group("gloo", init_method=f"file://{folder}/rendezvous{number}", rank=0, world_size=1)
    run = Run(folder, interval=1, keep_latest_k=2, async_mode="async")
    run.manager.load()
    first = run.progress.values["step"]
    with open(f"{folder}/first{number}", "w") as file:
        file.write(str(first))
    run.train(first + 10_000)


def half_deleted(checkpoints):
    """Steps whose marker is gone, and that are older than one that has its own."""
    steps = {int(found[1]): path for path in checkpoints.iterdir() if (found := re.fullmatch(r"step-(\d+)", path.name))}
    newest = max((step for step, path in steps.items() if (path / "COMMIT").exists()), default=-1)
    return {step for step, path in steps.items() if step < newest and path.exists() and not (path / "COMMIT").exists()}


def committed(series):
    return [entry for entry in series.list() if entry.verdict == "committed"]


def watch(child, series, checkpoints, last, is_for_purge):
    """Until the training has saved some steps and is to be killed; from the first one on there is always one."""
    begin, left = time.monotonic(), half_deleted(checkpoints) if checkpoints.exists() else set()
    newest = last
    while newest <= last + 4:
        found = committed(series)
        assert found or newest < 0, f"none is committed, behind step {newest}"
        newest = max([newest, *(entry.step for entry in found)])
        assert time.monotonic() - begin < LIMIT_SECONDS and os.waitpid(child, os.WNOHANG) == (0, 0), "it does not save"
        time.sleep(0.002)
    if not is_for_purge:
        time.sleep(random.uniform(0, 0.05))
        return
    while not half_deleted(checkpoints) - left:
        assert time.monotonic() - begin < LIMIT_SECONDS, "it does not delete"


def run(folder):
    checkpoints = pathlib.Path(folder, "checkpoint")
    series, last, number, half = sealpoint.Series(checkpoints), -1, 0, set()
    while number < KILLS or (len(half) < HALF_DELETED_MIN and number < KILLS_MAX):
        child = os.fork()
        if child == 0:
            train(folder, number)
            os._exit(0)
        watch(child, series, checkpoints, last, is_for_purge=number % 2 == 1)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        found = committed(series)
        assert len(found) >= 2, found
        assert all(sealpoint.verify(entry.path).ok for entry in found), found
        half |= half_deleted(checkpoints)
        assert not half & {entry.step for entry in found}
        if number:
            with open(f"{folder}/first{number}") as file:
                assert int(file.read()) == last, "the newest committed one is where it resumed"
        last, number = found[0].step, number + 1
    assert len(half) >= HALF_DELETED_MIN, "no kill came while a step was deleted"
