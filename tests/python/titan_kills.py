# SPDX-License-Identifier: Apache-2.0
"""Trainings under torchtitan's manager that are killed while they save and delete; run by titan_cases.py."""

import json
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


def train(folder, place, number):
    dist.init_process_group("gloo", init_method=f"file://{folder}/rendezvous{number}", rank=0, world_size=1)
    run = Run(place, interval=1, keep_latest_k=2, async_mode="async")
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


def one_kill(folder, place, number, last, half):
    """In a process of its own: what was forked after a use of an object store cannot use it."""
    child = os.fork()
    if child == 0:
        train(folder, place, number)
        os._exit(0)
    checkpoints = place / "checkpoint"
    series = sealpoint.Series(checkpoints)
    # In an object store a step is half deleted for too short a time to be seen.
    try:
        watch(child, series, checkpoints, last, is_for_purge=number % 2 == 1 and isinstance(place, pathlib.Path))
    finally:
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
    pathlib.Path(folder, f"after{number}").write_text(json.dumps([found[0].step, sorted(half)]))


def run(folder, place):
    last, number, half = -1, 0, set()
    half_min = HALF_DELETED_MIN if isinstance(place, pathlib.Path) else 0
    while number < KILLS or (len(half) < half_min and number < KILLS_MAX):
        child = os.fork()
        if child == 0:
            one_kill(folder, place, number, last, half)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0, f"kill {number}"
        last, found = json.loads(pathlib.Path(folder, f"after{number}").read_text())
        half, number = set(found), number + 1
    assert len(half) >= half_min
