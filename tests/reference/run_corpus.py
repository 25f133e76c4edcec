#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two readers of one specification: they must say the same of every entry of the conformance corpus.

The reader in Python is compared with the table of the corpus (code, rule and file), with ckpt verify (verdict, and
codes, rules and files of all violations), and, where the content loads, with the bytes that the library loads: whole
tensors, boxes of them, and objects.
"""

import argparse
import json
import os
import pathlib
import random
import subprocess
import sys

from check_reader import ListRow, Row, file_name, read_table
from sealpoint_reference import zstd_library
from sealpoint_reference.directory import PathDirectory
from sealpoint_reference.load import Checkpoint
from sealpoint_reference.rules import CODES, Violation, verdict
from sealpoint_reference.verify import verify_path

BOXES_PER_TENSOR = 6


def expected_violations(row):
    if isinstance(row, ListRow):
        pairs = (pair.split() for pair in row.violations.split(", "))
        return {(CODES[rule], rule, file_name(file)) for rule, file in pairs}
    return {(row.code, row.rule, file_name(row.file))} if row.code != "Ok" else set()


def expected_verdict(row):
    if isinstance(row, ListRow):
        return row.verdict
    return verdict([Violation(row.rule, "", code=row.code)] if row.code != "Ok" else [])


def tool_reports(program, folders, *options):
    """What ckpt verify says of each folder: verdict, notes, and code, rule and file of each violation."""
    done = subprocess.run([program, "verify", "--json", *options, *folders], capture_output=True, text=True, check=False)
    for folder, report in zip(folders, json.loads(done.stdout)["reports"], strict=True):
        found = {(v["code"], v["rule"], os.path.relpath(v["path"], folder)) for v in report["violations"]}
        violations = {(code, rule, "" if file == "." else file) for code, rule, file in found}
        yield report["verdict"], violations, sorted(report["notes"])


def requests(checkpoint, seed):
    """Lines for load_content, and what this reader loads for each."""
    generator = random.Random(seed)
    for name, tensor in checkpoint.tensors.items():
        whole = checkpoint.tensor(name)
        yield f"tensor {len(whole)} {name}", whole
        for _ in range(BOXES_PER_TENSOR if whole else 0):
            offset = [generator.randrange(extent) for extent in tensor.shape]
            extent = [generator.randint(1, e - o) for o, e in zip(offset, tensor.shape)]
            data = checkpoint.box(name, offset, extent)
            yield " ".join(map(str, ("box", len(data), len(offset), *offset, *extent, name))), data
    for name in checkpoint.objects:
        yield f"object {name}", checkpoint.object(name)


def load_all(folder):
    checkpoint = Checkpoint(PathDirectory(folder))
    return list(requests(checkpoint, folder.name))


def content_faults(program, row, folder):
    """Differences between what the two readers load, or the violation that loading must meet."""
    if row.seen_by in ("open", "read"):
        try:
            load_all(folder)
        except Violation as violation:
            if violation.rule != row.rule:
                yield f"loading meets {violation.rule}"
        else:
            yield "its content loads"
        return
    lines, bytes_here = zip(*load_all(folder)) if row.entry != "good-nothing" else ((), ())
    there = subprocess.run([program, folder], input="\n".join(lines).encode(), capture_output=True, check=False)
    if there.returncode:
        yield f"the library does not load it: {there.stdout.decode()}"
    elif there.stdout != b"".join(bytes_here):
        yield "the readers load different bytes"


def record_run(counts):
    """Writes the row of this run for the table in docs/evidence/testing-counts.md (tests/support/process/results.h)."""
    run = {"row": "reference-corpus", "title": "The corpus, verified and loaded by the second reader",
           "command": "ctest --test-dir build/dev -R reference.corpus", "exact": True, "counts": counts}
    if os.environ.get("SEALPOINT_RESULTS"):
        pathlib.Path(os.environ["SEALPOINT_RESULTS"], f"{run['row']}.json").write_text(json.dumps(run) + "\n")


def entry_faults(row, folder, tool_report, load_program):
    report = verify_path(folder)
    found = {(v.code, v.rule, v.file) for v in report.violations}
    if (report.verdict, found) != (expected_verdict(row), expected_violations(row)):
        yield f"the table says {row}; the reader: {report.verdict} {found}"
    tool_verdict, tool_found, tool_notes = tool_report
    if (report.verdict, found) != (tool_verdict, tool_found):
        yield f"ckpt verify says {tool_verdict} {tool_found}; the reader: {report.verdict} {found}"
    if report.verdict == "committed" and sorted(names_in(report.notes)) != sorted(names_in(tool_notes)):
        yield f"ckpt verify notes {tool_notes}; the reader: {report.notes}"
    if isinstance(row, Row):
        yield from content_faults(load_program, row, folder)


def names_in(notes):
    """Leftovers and foreign names, which both readers note in the same words."""
    return (note for note in notes if note.startswith(("leftover", "foreign")))


def main():
    parser = argparse.ArgumentParser()
    for option in ("--corpus", "--table", "--ckpt", "--load"):
        parser.add_argument(option, type=pathlib.Path, required=True)
    options = parser.parse_args()
    rows = list(read_table(options.table))
    folders = [options.corpus / row.entry for row in rows]
    there = {path.name for path in options.corpus.iterdir() if path.is_dir() and not path.name.startswith("step-")}
    missing = there ^ {row.entry for row in rows}
    failed = [f"{name}: in the table or in the corpus, not in both" for name in missing]
    skipped = 0
    for row, folder, tool_report in zip(rows, folders, tool_reports(options.ckpt, folders)):
        faults = [f"{row.entry}: {fault}" for fault in entry_faults(row, folder, tool_report, options.load)]
        if faults and zstd_library.decoder() is None and any("Unsupported', None" in fault for fault in faults):
            skipped += 1
        else:
            failed += faults
    print("\n".join(failed))
    print(f"{len(rows)} entries, {len(failed)} differences, {skipped} not checked for want of a zstd library")
    if failed or skipped:
        return 1 if failed else 0
    record_run({"entries": len(rows), "differences": len(failed)})
    return 0


if __name__ == "__main__":
    sys.exit(main())
