#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the answers of a reader with the table of the conformance corpus.

    check_reader.py [--level open|read|verify] [--corpus FOLDER] [--table corpus.md] [--every N] COMMAND...

COMMAND, with a folder appended, prints JSON: {"verdict": ..., "violations": [{"code": ..., "rule": ..., "file": ...}, ...]}, where
file is the name of a file in the folder, or ""; of a base, which lies beside the folder, `../<base>` or `../<base>/<file>`.
`{here}` in COMMAND is the folder of this program. --every: only each N-th entry.
Exit status 0: no difference; 1: those that are printed.

--level verify (default): COMMAND verifies the folder at the level full and lists each violation.
--level open: COMMAND opens the checkpoint. Verdict "committed" if it opens, else that of the one violation.
--level read: COMMAND also loads every tensor and object. Its JSON has a member "content", the content digest of all that it
loaded (spec/content-digest.md), which contents.txt has. Entries with several damages count at the level verify only.
"""

import argparse
import collections
import json
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ATTEMPT = "a7" * 16
Row = collections.namedtuple("Row", "entry seen_by code rule file sentence")
ListRow = collections.namedtuple("ListRow", "entry verdict violations sentence")
# The verdict of a single violation (spec/reader-rules.md, 5).
VERDICTS = {"Ok": "committed", "Unsupported": "unsupported", "LimitExceeded": "unsupported", "Uncommitted": "uncommitted",
            "Incomplete": "incomplete", "Corrupt": "corrupt", "NotACheckpoint": "unreadable"}


def cells(line):
    return (cell.strip() for cell in line.strip("| ").split(" | "))


def read_table(path):
    for line in path.read_text().splitlines():
        if line.startswith(("| good-", "| bad-")):
            yield Row(*cells(line))
        elif line.startswith("| several-"):
            yield ListRow(*cells(line))


def file_name(short):
    if short.startswith("step-"):  # a base, or a file of it; its ids are 16 times the same byte, too
        folder, _, short = short.partition("/")
        return f"../{folder}" + (f"/{file_name(short).replace(ATTEMPT, folder[-2:] * 16)}" if short else "")
    names = {"-": "", "index": f"{ATTEMPT}.index", "COMMIT": "COMMIT"}
    return names.get(short, f"{short[:2] * 16}.blob")


def expected(row):
    """The verdict, and rule and file of each violation."""
    if isinstance(row, ListRow):
        pairs = (pair.split() for pair in row.violations.split(", "))
        return row.verdict, sorted((rule, file_name(file)) for rule, file in pairs)
    return VERDICTS[row.code], [] if row.code == "Ok" else [(row.rule, file_name(row.file))]


def read_contents(path):
    return dict(line.split() for line in path.read_text().splitlines())


def is_met(row, level):
    """Whether a reader of that level meets the damage of the entry."""
    return level == "verify" or row.seen_by == "open" or (level == "read" and row.seen_by == "read")


def fault_of(row, folder, command, level="verify", contents=None):
    """The difference; None if there is none."""
    done = subprocess.run([*command, str(folder)], capture_output=True, text=True, check=False)
    try:
        report = json.loads(done.stdout)
        found = report["verdict"], sorted({(item["rule"], item["file"]) for item in report["violations"]})
        codes = {item["code"] for item in report["violations"]}
    except (ValueError, KeyError, TypeError) as error:
        return f"not the JSON that was expected ({error!r}): {done.stdout[:200]}{done.stderr[-200:]}"
    wanted = expected(row) if is_met(row, level) else ("committed", [])
    if found != wanted:
        return f"found {found}, expected {wanted}"
    if level == "read" and wanted[0] == "committed" and report.get("content") != contents[row.entry]:
        return f"loaded {report.get('content')}, expected {contents[row.entry]}"
    if isinstance(row, Row) and codes not in (set(), {row.code}):
        return f"found {codes}, expected {row.code}"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=pathlib.Path, default=HERE / "corpus")
    parser.add_argument("--table", type=pathlib.Path, default=HERE / "corpus.md")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--level", choices=("open", "read", "verify"), default="verify")
    parser.add_argument("--contents", type=pathlib.Path, default=HERE / "contents.txt")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    if not options.command:
        parser.error("no COMMAND, expected that of a reader")
    command = [part.replace("{here}", str(HERE)) for part in options.command]
    contents = read_contents(options.contents) if options.level == "read" else None
    rows = [row for row in read_table(options.table) if options.level == "verify" or isinstance(row, Row)][:: options.every]
    faults = 0
    for row in rows:
        if fault := fault_of(row, options.corpus / row.entry, command, options.level, contents):
            faults += 1
            print(f"{row.entry}: {fault}")
    print(f"{len(rows)} entries, {faults} differences")
    return 1 if faults or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
