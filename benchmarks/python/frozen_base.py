#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A run in which a base is not trained and adapters are: what the second save writes, and how long it takes.

Usage: frozen_base.py [--directory DIR] [--base-mib 256] [--adapters-mib 4] [--rounds 11] [--learned]

Each round is a series of its own, in which a save of everything comes first. With --learned the saver finds the base itself:
there is one round, and the third save is compared, not the second. At the end the first checkpoint of the last round is
deleted, and the one that shared its file is verified.
"""

import argparse
import os
import shutil
import statistics
import tempfile
import time

import sealpoint
import sealpoint.torch as sp
import torch

MIB = 1 << 20


def state_of(arguments):
    base = torch.rand(arguments.base_mib * MIB // 4).chunk(8)
    adapters = torch.rand(arguments.adapters_mib * MIB // 4).chunk(8)
    return {"base": {str(i): item.clone() for i, item in enumerate(base)},
            "adapters": {str(i): adapter.clone() for i, adapter in enumerate(adapters)}}


def save(state, path, step, frozen):
    for adapter in state["adapters"].values():
        adapter += 1
    started = time.perf_counter()
    info = sp.save(state, path, series=True, step=step, frozen=frozen)
    return info, time.perf_counter() - started


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--directory", default=tempfile.gettempdir())
    parser.add_argument("--base-mib", type=int, default=256)
    parser.add_argument("--adapters-mib", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--learned", action="store_true")
    arguments = parser.parse_args()
    state, frozen, compared = state_of(arguments), "learned" if arguments.learned else ["base.*"], 2 + arguments.learned
    arguments.rounds = 1 if arguments.learned else arguments.rounds  # what was learned holds for the next series, too
    folder = tempfile.mkdtemp(prefix="frozen-", dir=arguments.directory)
    sp.save(state, os.path.join(folder, "warm"))
    ratios, bytes_written, infos = [], [], []
    for number in range(arguments.rounds):
        path = os.path.join(folder, str(number))
        saves = [save(state, path, step, frozen) for step in range(1, compared + 1)]
        infos = [info for info, _ in saves]
        ratios.append(saves[-1][1] / saves[0][1])
        bytes_written.append(infos[-1].total_bytes - infos[-1].reused_bytes + infos[-1].index_bytes)
        if number + 1 < arguments.rounds:
            shutil.rmtree(path)
    adapters = arguments.adapters_mib * MIB
    print(f"bytes of save {compared} ÷ those of the adapters: {max(bytes_written) / adapters:.4f} (at most, of {arguments.rounds})")
    print(f"time of save {compared} ÷ of save 1: {statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})")
    series = sealpoint.Series(os.path.dirname(infos[0].directory))
    for info in infos[:-1]:
        series.delete(os.path.basename(info.directory))
    report = sealpoint.verify(infos[-1].directory)
    print(f"the others deleted, it is {report.verdict}: {infos[-1].directory}")


if __name__ == "__main__":
    main()
