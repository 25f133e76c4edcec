#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Stall of the first background save of a process, relative to a clone of the same tensors in another new process.

Usage: PYTHONPATH=build/python/python build/venv/bin/python benchmarks/python/first_stall.py [--mib 768] [--rounds 5]
       [--folder DIR]

The state is a linear layer and its AdamW. The training resumes (there is no checkpoint yet), takes three steps of 0.3 s that do not
save, and saves in the fourth one. "unannounced" is ``save_async`` without a Checkpointer, so that no memory is mapped before it.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import time

import sealpoint.torch as sp
import torch

MIB = 1 << 20
WAYS = ("clone", "Checkpointer", "unannounced")


def train(model, optimizer):
    model.weight.grad = torch.ones_like(model.weight)
    optimizer.step()


def measure(way, mib, folder):
    torch.set_num_threads(1)
    model = torch.nn.Linear(1024, mib * MIB // 3 // 4096, bias=False)
    optimizer = torch.optim.AdamW(model.parameters())
    state = {"model": model, "optimizer": optimizer}
    checkpoints = sp.Checkpointer(f"{folder}/run", every=4)
    if way == "Checkpointer":
        checkpoints.resume(state)
    for step in range(1, 4):
        train(model, optimizer)
        time.sleep(0.3)
        if way == "Checkpointer":
            checkpoints.step(step, state)
    begin = time.perf_counter()
    if way == "Checkpointer":
        kept = checkpoints.step(4, state)
    elif way == "clone":
        kept = [value.clone() for value in (model.weight, *optimizer.state[model.weight].values())]
    else:
        kept = sp.save_async(state, f"{folder}/alone")
    print(time.perf_counter() - begin)
    return kept if way == "clone" else kept.result()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mib", type=int, default=768)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", default=".")
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)  # in a process of its own
    arguments = parser.parse_args()
    if arguments.way:
        measure(arguments.way, arguments.mib, arguments.folder)
        return
    seconds = {way: [] for way in WAYS}
    for _ in range(arguments.rounds):
        for way, own in seconds.items():
            with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
                command = [sys.executable, __file__, "--way", way, "--mib", str(arguments.mib), "--folder", folder]
                own.append(float(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
    for way, own in seconds.items():
        ratio = statistics.median(second / base for base, second in zip(seconds["clone"], own, strict=True))
        print(f"{way:12} {statistics.median(own):5.2f} s ({min(own):.2f} to {max(own):.2f}), {ratio:4.2f} x clone")


if __name__ == "__main__":
    main()
