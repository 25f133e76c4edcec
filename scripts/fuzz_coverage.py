#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the fuzz targets reach of the code that reads bytes; called by scripts/fuzz.sh --coverage.

  scripts/fuzz_coverage.py FILE.lcov UNCOVERED

Prints the lines of each module and how many of them were run, and writes the others into UNCOVERED. Where
SEALPOINT_RESULTS names a folder, the counts go there as a row of the table in docs/evidence/testing-counts.md.
"""

import json
import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
MODULES = ("lib/format", "lib/metadata", "lib/codec", "lib/container", "readers/load", "readers/verify")


def read_lines(path):
    """File below the root -> line -> number of runs."""
    files, lines = {}, {}
    for entry in path.read_text().splitlines():
        kind, _, value = entry.partition(":")
        if kind == "SF":
            lines = files.setdefault(os.path.relpath(value, ROOT), {})
        elif kind == "DA":
            number, count = value.split(",")[:2]
            lines[int(number)] = lines.get(int(number), 0) + int(count)
    return files


def uncovered_text(name, lines):
    source = (ROOT / name).read_text().splitlines()
    return "".join(f"{name}:{n}: {source[n - 1]}\n" for n in sorted(lines) if lines[n] == 0)


def main(arguments):
    if len(arguments) != 2:
        sys.stderr.write(__doc__)
        return 64
    files = read_lines(pathlib.Path(arguments[0]))
    counts, text = {}, ""
    for module in MODULES:
        of_module = {name: files[name] for name in sorted(files) if name.startswith(module + "/")}
        total = sum(len(lines) for lines in of_module.values())
        covered = sum(count > 0 for lines in of_module.values() for count in lines.values())
        print(f"{module:16} {covered:5} of {total:5} lines, {100 * covered / max(total, 1):5.1f} %")
        counts[f"{module} lines"] = total
        counts[f"{module} lines run"] = covered
        text += "".join(uncovered_text(name, lines) for name, lines in of_module.items())
    pathlib.Path(arguments[1]).write_text(text)
    folder = os.environ.get("SEALPOINT_RESULTS")
    if folder:
        row = {"row": "fuzz-coverage", "title": "Coverage of the fuzz targets", "command": "scripts/fuzz.sh --coverage",
               "exact": False, "counts": counts}
        pathlib.Path(folder, "fuzz-coverage.json").write_text(json.dumps(row))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
