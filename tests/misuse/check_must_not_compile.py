#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles each case of a source file: case 0 must compile, all others must not.

A case begins with "#if MISUSE == N  // title: pattern" (or #elif); one of the compiler's errors must match the pattern.
What the source includes is compiled once, before the cases.
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile

CASE = re.compile(r"^#(?:el)?if MISUSE == (\d+) +// ([^:\n]+)(?:: (.+))?$", re.MULTILINE)
INCLUDE = re.compile(r"^#include .*\n", re.MULTILINE)


def run_compiler(args, *words):
    command = [args.compiler, "-std=c++20", "-Werror=unused-result", f"-I{args.include}", *words]
    return subprocess.run(command, capture_output=True, text=True, env=os.environ | {"LC_ALL": "C"})


def precompile(args, header):
    """What g++ and clang take in place of the header, if both are named in the same way."""
    header.write_text("".join(INCLUDE.findall(pathlib.Path(args.source).read_text())))
    done = run_compiler(args, "-x", "c++-header", str(header), "-o", f"{header}.gch")
    if done.returncode != 0:
        raise SystemExit(f"what the cases include does not compile:\n{done.stderr}")


def compile_case(args, header, number):
    return run_compiler(args, "-fsyntax-only", "-Winvalid-pch", "-include", str(header), f"-DMISUSE={number}", args.source)


def fault_of(result, title, pattern):
    """What is wrong with the outcome of a case, or None."""
    if pattern is None:
        return None if result.returncode == 0 else f"does not compile ({title}):\n{result.stderr}"
    if result.returncode == 0:
        return f"compiles, which it must not ({title})"
    errors = [line for line in result.stderr.splitlines() if "error" in line]
    if any(re.search(pattern, line) for line in errors):
        return None
    return f"no error matches {pattern!r} ({title}):\n{result.stderr}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--include", required=True)
    parser.add_argument("--source", required=True)
    args = parser.parse_args()
    cases = CASE.findall(pathlib.Path(args.source).read_text())
    if [int(number) for number, _, _ in cases] != list(range(len(cases))) or len(cases) < 2:
        print("the cases are not numbered from 0 on")
        return 1
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(2) as pool:
        header = pathlib.Path(folder, "included.h")
        precompile(args, header)
        results = list(pool.map(lambda case: compile_case(args, header, case[0]), cases))
    faults = 0
    for (number, title, pattern), result in zip(cases, results):
        if fault := fault_of(result, title, pattern or None):
            faults += 1
            print(f"case {number} {fault}")
    print(f"{len(cases)} cases, {faults} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
