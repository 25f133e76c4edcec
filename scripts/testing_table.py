#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Generates the table of docs/evidence/testing-counts.md from the results of test runs (tests/support/process/results.h).

  scripts/testing_table.py FOLDER            replaces the rows of the runs in FOLDER; other rows stay as they are
  scripts/testing_table.py --check FOLDER    compares the table with the exact counts of the runs in FOLDER

Runs write into the folder in SEALPOINT_RESULTS; scripts/test.sh uses build/results.
"""

import json
import pathlib
import re
import sys

PAGE = pathlib.Path(__file__).resolve().parents[1] / "docs/evidence/testing-counts.md"
BEGIN, END = "<!-- counted runs: begin -->\n", "<!-- counted runs: end -->\n"
HEAD = "| run | counted | repeat it with |\n|---|---|---|\n"
ROW = re.compile(r"^\| <a id=\"([a-z0-9-]+)\"></a>")


def cells(run):
    counted = "; ".join(f"{what}: {count:,}" for what, count in run["counts"].items())
    about = "" if run["exact"] else " (varies)"
    return f"| <a id=\"{run['row']}\"></a>{run['title']} | {counted}{about} | `{run['command']}` |\n"


def split_page():
    page = PAGE.read_text()
    before, rest = page.split(BEGIN)
    table, after = rest.split(END)
    rows = {ROW.match(line)[1]: line for line in table.splitlines(keepends=True) if ROW.match(line)}
    return before, rows, after


def main(arguments):
    check = arguments[:1] == ["--check"]
    folders = arguments[1:] if check else arguments
    if len(folders) != 1:
        sys.stderr.write(__doc__)
        return 64
    runs = [json.loads(path.read_text()) for path in sorted(pathlib.Path(folders[0]).glob("*.json"))]
    before, rows, after = split_page()
    if not check:
        rows.update({run["row"]: cells(run) for run in runs})
        PAGE.write_text(before + BEGIN + HEAD + "".join(rows[name] for name in sorted(rows)) + END + after)
        return 0
    stale = [run["row"] for run in runs if run["exact"] and rows.get(run["row"]) != cells(run)]
    for name in stale:
        print(f"docs/evidence/testing-counts.md: row {name} differs from this run; update it with scripts/testing_table.py")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
