#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Cost of a step that a Sentinel checks, beside the same step without it.

  PYTHONPATH=build/python/python build/venv/bin/python benchmarks/python/sentinel_cost.py [--ranks N] [--rounds N] [--width N]

Data-parallel replicas of a transformer on the CPU, one thread per rank, under AdamW; batches of 8 sequences of 128 tokens. Steps
with and without a check alternate. Prints medians over the rounds: of both kinds of steps, of the time in the two calls of the
sentinel, and of a step that is not due.
"""

import argparse
import os
import statistics
import tempfile
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")


def timed(call, number):
    began = time.perf_counter()
    call(number)
    return time.perf_counter() - began


def measure(rank, size, folder, rounds, width):
    import sealpoint.torch as sp
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/rendezvous", rank=rank, world_size=size)
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(width, 8, 4 * width, dropout=0.0, batch_first=True)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.TransformerEncoder(layer, 4))
    optimizer = torch.optim.AdamW(model.parameters())
    state = {"model": model, "optimizer": optimizer}
    sentinel, rare = sp.Sentinel(state), sp.Sentinel(state, every=1 << 30)
    batch = torch.randn(8, 128, width)

    def step(number, is_checked):
        dist.barrier()
        began = time.perf_counter()
        model(batch).square().mean().backward()
        in_calls = timed(sentinel.before_optimizer, number) if is_checked else 0.0
        optimizer.step()
        optimizer.zero_grad()
        in_calls += timed(sentinel.end_of_step, number) if is_checked else 0.0
        return time.perf_counter() - began, in_calls

    times, calls = {False: [], True: []}, []
    for number in range(-2, rounds):
        for is_checked in (False, True):
            if is_checked:
                sentinel.end_of_step(number)  # what before_optimizer compares with
            taken, in_calls = step(number, is_checked)
            if number >= 0:
                times[is_checked].append(taken)
                calls += [in_calls] if is_checked else []
    began = time.perf_counter()
    for number in range(1, 10_001):
        rare.before_optimizer(number)
        rare.end_of_step(number)
    idle = (time.perf_counter() - began) / 10_000
    assert not sentinel.findings
    if rank == 0:
        plain, checked = (statistics.median(times[key]) for key in (False, True))
        mib = sum(3 * p.numel() * 4 for p in model.parameters()) / (1 << 20)
        print(f"{size} ranks, state of {mib:.0f} MiB on each: step {plain * 1e3:.0f} ms, checked {checked * 1e3:.0f} ms, "
              f"in the calls {statistics.median(calls) * 1e3:.0f} ms ({statistics.median(calls) / plain:.3f} of a step); "
              f"a step that is not due {idle * 1e6:.1f} µs")
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--width", type=int, default=256)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        children = []
        for rank in range(arguments.ranks):
            child = os.fork()
            if child == 0:
                measure(rank, arguments.ranks, folder, arguments.rounds, arguments.width)
                os._exit(0)
            children.append(child)
        assert all(os.waitpid(child, 0)[1] == 0 for child in children)


if __name__ == "__main__":
    main()
