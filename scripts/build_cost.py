#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures what a build folder costs to compile, for scripts/build_cost.sh, and says how long a build will take.

  scripts/build_cost.py BUILD_FOLDER [--quick | --record] [--rows FILE]
  scripts/build_cost.py BUILD_FOLDER --seconds [TARGET...]    how long compiling the rest of them takes here, on all processors
"""

import argparse
import collections
import json
import os
import pathlib
import re
import shlex
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
ROWS = ROOT / "scripts/build_cost.txt"
UNIT = ROOT / "scripts/build_cost_unit.cc"
LIMIT = 1.3
LEAST_UNITS = 0.1  # starting the compiler alone differs by as much as less than this
UNIT_HOLDS_SECONDS = 20
TRIES = 3  # another program on the same processor makes a single measurement up to a half too long
MANY_FILES = 12  # that name a header: it makes a build slow
QUICK = {
    "target": ("sealpoint_base_objects", "sealpoint_collective_objects", "sealpoint_pipeline_objects",
               "sealpoint_storage_objects"),
    "header": ("sealpoint/checkpoint.h", "sealpoint/saver.h", "sealpoint/storage.h"),
}
INCLUDE = re.compile(r'^#include "([^"]+)"', re.M)
HEAD = """\
# What scripts/build_cost.sh measured, in units: a unit is what compiling scripts/build_cost_unit.cc takes on the same machine.
# scripts/build_cost.sh --record writes it anew.
"""


def run(command, folder="."):
    """Seconds of the processors that the command took."""
    process = subprocess.Popen(command, cwd=folder)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"exit status {process.returncode}: {shlex.join(command)}")
    return used.ru_utime + used.ru_stime


def read_rows(path):
    rows = {}
    for line in path.read_text().splitlines() if path.exists() else ():
        if not line.startswith("#"):
            kind, name, units = line.split()
            rows[kind, name] = float(units)
    return rows


def write_rows(path, rows):
    lines = (f"{kind} {name} {units:.2f}\n" for (kind, name), units in sorted(rows.items()))
    path.write_text(HEAD + "".join(lines))


def words_of(entry):
    """A command without the compiler cache and without its output."""
    words = [word for word in shlex.split(entry["command"]) if not word.endswith("ccache")]
    at = words.index("-o")
    return words[:at] + words[at + 2 :]


def target_of(entry):
    return re.search(r"CMakeFiles/([^/\s]+)\.dir/", entry["command"])[1]


class Costs:
    """Seconds of what a build folder compiles, and of the unit, in one run."""

    def __init__(self, build, folder):
        self.out = str(pathlib.Path(folder) / "out.o")
        self.header = pathlib.Path(folder) / "header.cc"
        self.targets = collections.defaultdict(list)
        for entry in json.loads((build / "compile_commands.json").read_text()):
            self.targets[target_of(entry)].append(entry)
        self.of_unit = [self.unit()]
        self.since_unit = 0

    def unit(self):
        compiler = words_of(next(iter(self.targets.values()))[0])[0]
        return run([compiler, "-std=c++20", "-O2", "-c", str(UNIT), "-o", self.out])

    def seconds(self, kind, name):
        if kind == "target":
            return sum(run([*words_of(entry), "-o", self.out], entry["directory"]) for entry in self.targets[name])
        widest = max((entries[0] for entries in self.targets.values()), key=lambda entry: entry["command"].count(" -I"))
        self.header.write_text(f'#include "{name}"\n')
        words = [word for word in words_of(widest) if word not in ("-c", widest["file"])]
        return run([*words, "-fsyntax-only", str(self.header)], widest["directory"])

    def measure(self, kind, name):
        """Seconds and units. Every now and then the unit is measured again: the processors may be busier."""
        seconds = self.seconds(kind, name)
        self.since_unit += seconds
        if self.since_unit >= UNIT_HOLDS_SECONDS:
            self.since_unit = 0
            self.of_unit.append(self.unit())
        return seconds, seconds / statistics.mean(self.of_unit[-2:])


def headers(root=ROOT):
    """Public headers that many files name."""
    counts = collections.Counter()
    for folder in ("include", "lib", "readers", "tools", "python/src"):
        for path in (path for path in (root / folder).rglob("*") if path.suffix in (".cc", ".h")):
            counts.update(name for name in set(INCLUDE.findall(path.read_text())) if (root / "include" / name).exists())
    return sorted(name for name, count in counts.items() if count >= MANY_FILES)


def exceeds(units, row):
    return units >= LIMIT * max(row, LEAST_UNITS)


def judge(units, row):
    """What to say of a row, and whether it fails."""
    if row is None:
        return "none", True
    if exceeds(units, row):
        return f"{row:.2f}: {units / row:.1f} times", True
    return f"{row:.2f}", False


def measure_all(costs, names, recorded):
    """Prints a line for each, and returns the units of all and the names of those that cost too much or have no row."""
    units, dear = {}, []
    print(f"unit {costs.of_unit[0]:.2f} s\n{'':42} seconds    units   row")
    for kind, name in names:
        row = recorded.get((kind, name))
        tries = [costs.measure(kind, name)]
        while row is not None and exceeds(tries[-1][1], row) and len(tries) < TRIES:
            tries.append(costs.measure(kind, name))
        seconds, least = min(tries, key=lambda one: one[1])
        units[kind, name] = least
        said, is_too_much = judge(least, row)
        print(f"{kind} {name:35} {seconds:7.1f} {least:8.2f}   {said}", flush=True)
        if is_too_much:
            dear.append(f"{kind} {name}")
    return units, dear


def remaining(build, targets, names):
    """Which share of each target is yet to be compiled before the named ones can be linked."""
    done = subprocess.run(["ninja", "-C", str(build), "-t", "inputs", *names], capture_output=True, text=True, check=True)
    to_compile = collections.Counter()
    for path in done.stdout.splitlines():
        found = re.search(r"CMakeFiles/([^/]+)\.dir/.*\.o$", path)
        if found and not (build / path).exists():
            to_compile[found[1]] += 1
    return {target: min(1, count / len(targets[target])) for target, count in to_compile.items() if target in targets}


def seconds_here(build, names, rows):
    with tempfile.TemporaryDirectory() as folder:
        costs = Costs(build, folder)
        units = sum(share * rows.get(("target", target), 0) for target, share in remaining(build, costs.targets, names).items())
        return units * costs.of_unit[0] / len(os.sched_getaffinity(0))


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--rows", type=pathlib.Path, default=ROWS)
    parser.add_argument("--seconds", nargs="*", metavar="TARGET")
    options = parser.parse_args(arguments)
    recorded = read_rows(options.rows)
    if options.seconds is not None:
        print(round(seconds_here(options.build, options.seconds, recorded)))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        costs = Costs(options.build, folder)
        if options.quick:
            names = [(kind, name) for kind, listed in QUICK.items() for name in listed]
        else:
            names = [("target", name) for name in costs.targets] + [("header", name) for name in headers()]
        units, dear = measure_all(costs, names, {} if options.record else recorded)
    if options.record:
        write_rows(options.rows, units)
        return 0
    if dear:
        print(f"{LIMIT} times its row in {options.rows.name} or more, or without a row: {', '.join(dear)}")
        print("Make it cheaper, or say in the commit why it costs more, and run scripts/build_cost.sh --record.")
    return 1 if dear else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
