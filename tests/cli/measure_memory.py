#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the tools on checkpoints that ask for much memory, and compares their peaks with the bound.

The bound is that of spec/limits.md: the bytes of the files and 64 MiB. What the same tool takes for
an empty directory (its code, its threads) comes on top.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

MIB = 2**20
ALLOWED = 64 * MIB


def peak(command):
    """Of resident memory, in bytes; not less than that of this process, which it begins as."""
    with open(os.devnull, "wb") as sink:
        process = subprocess.Popen(command, stdout=sink, stderr=sink)
        _, _, usage = os.wait4(process.pid, 0)
        process.returncode = 0
    return usage.ru_maxrss * 1024


def size_of(directory):
    with os.scandir(directory) as entries:
        return sum(entry.stat().st_size for entry in entries)


def make_foreign(directory):
    """Names cost no bytes of files, so no tool may keep all of them."""
    pathlib.Path(directory).mkdir()
    # So many that all of them would pass the bound. Links take less time to make than files; one
    # file has some 65,000 of them at most.
    for number in range(250_000):
        name = f"{directory}/foreign-{number:0200}"
        if number % 50_000 == 0:
            file = name
            pathlib.Path(file).touch()
        else:
            os.link(file, name)


def main():
    parser = argparse.ArgumentParser()
    for name in ("ckpt", "generator"):
        parser.add_argument(f"--{name}", required=True)
    arguments = parser.parse_args()
    verify, ls = ((arguments.ckpt, command) for command in ("verify", "ls"))
    failures = 0
    with tempfile.TemporaryDirectory() as directory:
        # A long path is part of every violation.
        root = pathlib.Path(directory, *(["d" * 200] * 8))
        root.mkdir(parents=True)
        subprocess.run([arguments.generator, str(root)], check=True)
        make_foreign(root / "foreign")
        (root / "empty").mkdir()
        base = {tool: peak([*tool, str(root / "empty")]) for tool in (verify, ls)}
        for command in (
            [*verify, "-j1", "chunks"],
            [*verify, "-j1", "--all", "chunks"],
            [*verify, "-j1", "--json", "chunks"],
            [*verify, "-j1", "--json", "--all", "chunks"],
            [*verify, "-j1", "placement"],
            [*verify, "-j1", "shards"],
            [*verify, "-j1", "foreign"],
            [*ls, "placement"],
            [*ls, "--json", "placement"],
            [*ls, "--tensor", "*", "placement"],
            [*ls, "--plan", "data=1", "placement"],
            [*ls, "--tensor", "w", "shards"],
            [*ls, "--json", "--tensor", "w", "shards"],
            [*ls, "chunks"],
            [*ls, "--long", "chunks"],
            [*verify, "-j1", "--series", "foreign"],
        ):
            path = root / command[-1]
            used = peak([*command[:-1], str(path)]) - base[command[0]]
            bound = size_of(path) + ALLOWED
            name = " ".join([pathlib.Path(command[0]).name, *command[1:]])
            verdict = "ok" if used <= bound else "FAILED"
            failures += verdict != "ok"
            print(f"{verdict}: {name}: {used / MIB:.1f} MiB, the bound is {bound / MIB:.1f} MiB")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
