#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ckpt convert of a checkpoint of torch.distributed.checkpoint into safetensors, beside cp and fsync of the same files.

  PYTHONPATH=build/python/python build/venv/bin/python benchmarks/python/convert_rate.py [--folder DIR] [--rounds N]

In each round both read from the disk: the source is dropped from the page cache before. Prints each round's times and
the ratio of the rates, and the median of the ratios.
"""

import argparse
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import warnings

TENSOR_MIB = 64


def drop(folder):
    """From the page cache."""
    for file in folder.rglob("*"):
        if file.is_file():
            with file.open("rb") as opened:
                os.fsync(opened.fileno())
                os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def copy_seconds(source, target):
    started = time.perf_counter()
    subprocess.run(["cp", "-r", "--reflink=never", source, target], check=True)
    for file in target.rglob("*"):
        if file.is_file():
            with file.open("rb") as opened:
                os.fsync(opened.fileno())
    seconds = time.perf_counter() - started
    shutil.rmtree(target)
    return seconds


def convert_seconds(source, target):
    started = time.perf_counter()
    subprocess.run([sys.executable, "-m", "sealpoint", "convert", source, target, "--to", "safetensors"], check=True,
                   stdout=subprocess.DEVNULL)
    seconds = time.perf_counter() - started
    target.unlink()
    return seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--mib", type=int, default=2048)
    options = parser.parse_args()
    import torch
    import torch.distributed.checkpoint as dcp

    warnings.filterwarnings("ignore")
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = pathlib.Path(name)
        source = folder / "source"
        count = max(1, options.mib // TENSOR_MIB)
        dcp.save({f"t{i}": torch.rand(TENSOR_MIB << 18) for i in range(count)}, checkpoint_id=source, no_dist=True)
        ratios = []
        for _ in range(options.rounds):
            drop(source)
            copied = copy_seconds(source, folder / "copy")
            drop(source)
            converted = convert_seconds(source, folder / "model.safetensors")
            ratios.append(copied / converted)
            print(f"copied in {copied:.2f} s, converted in {converted:.2f} s: ratio {ratios[-1]:.2f}", flush=True)
    print(f"median ratio of the rates {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})")


if __name__ == "__main__":
    main()
