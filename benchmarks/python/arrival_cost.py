#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares loads with and without verify_arrival, and measures fingerprints of memory outside of the cache.

    benchmarks/python/arrival_cost.py [DIRECTORY]      default: /dev/shm
"""

import statistics
import sys
import tempfile
import time

import sealpoint.torch as sp
import torch
from sealpoint import fingerprint

COUNT, EXTENT, ROUNDS = 16, 4096, 9
BYTES = COUNT * EXTENT * EXTENT * 2


def seconds_of(call):
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def main(parent):
    state = {f"w{i}": torch.randn(EXTENT, EXTENT).to(torch.bfloat16) for i in range(COUNT)}
    with tempfile.TemporaryDirectory(dir=parent) as folder:
        sp.save(state, f"{folder}/c", fingerprints=True)
        into = {name: torch.zeros_like(value) for name, value in state.items()}
        plain, verified = [], []
        for _ in range(ROUNDS + 1):
            plain.append(seconds_of(lambda: sp.load(into, f"{folder}/c")))
            verified.append(seconds_of(lambda: sp.load(into, f"{folder}/c", verify_arrival=True)))
    ratio = statistics.median(b / a for a, b in zip(plain[1:], verified[1:], strict=True))
    print(f"load of {BYTES >> 20} MiB: {statistics.median(plain[1:]):.3f} s, with verify_arrival {ratio:.2f} x")
    whole = torch.cat(list(state.values())).view(torch.int16)
    best = min(seconds_of(lambda: fingerprint.of_array(whole)) for _ in range(3))
    print(f"fingerprint of {BYTES >> 20} MiB in memory: {BYTES / best / 1e9:.1f} GB/s")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "/dev/shm")
