#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lines of test that run per commit for each line of product (.h .cc .cu .py, of what git tracks).

  scripts/test_weight.py [CHECKOUT]    of this one, if none is given

Product: include lib readers tools python. Tests: tests fuzz, less what tests/nightly.txt says runs by night only.
"""

import pathlib
import subprocess
import sys

PRODUCT = ("include", "lib", "readers", "tools", "python")
TESTS = ("tests", "fuzz")
SUFFIXES = (".h", ".cc", ".cu", ".py")


def nightly_rows(root):
    """(test or stage, [pattern of a path]) of each row of tests/nightly.txt."""
    lines = (root / "tests/nightly.txt").read_text().splitlines()
    return [(name, patterns) for name, *patterns in (line.split() for line in lines if line and not line.startswith("#"))]


def count(root, paths):
    """Lines of test per commit, lines of test by night, lines of product."""
    patterns = [pattern for _, some in nightly_rows(root) for pattern in some]
    lines = {"commit": 0, "night": 0, "product": 0}
    for path in map(pathlib.PurePath, paths):
        if path.suffix not in SUFFIXES or path.parts[0] not in PRODUCT + TESTS:
            continue
        is_nightly = any(path.match(pattern) for pattern in patterns)
        part = "product" if path.parts[0] in PRODUCT else "night" if is_nightly else "commit"
        lines[part] += (root / path).read_bytes().count(b"\n")
    return lines["commit"], lines["night"], lines["product"]


def main(arguments):
    root = pathlib.Path(arguments[0]) if arguments else pathlib.Path(__file__).resolve().parents[1]
    tracked = subprocess.run(["git", "-C", root, "ls-files"], capture_output=True, text=True, check=True).stdout
    commit, night, product = count(root, tracked.splitlines())
    print(f"{commit:,} lines of test per commit, {night:,} by night only, {product:,} lines of product: "
          f"{commit / product:.2f} per commit, {(commit + night) / product:.2f} in all")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
