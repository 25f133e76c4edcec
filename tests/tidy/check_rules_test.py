#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Damages a copy of what check_rules.py compares, one way at a time, and expects it to say so."""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
READER_RULES = "spec/reader-rules.md"
CORPUS = "tests/conformance/corpus.md"
CONTAINER = "spec/container.md"
CONTENTS = "lib/metadata/verify_metadata.cc"

# File, pattern, replacement, and a word of the complaint.
DAMAGES = (
    (READER_RULES, r"\| R-IDX-23 .*\n", "", "R-IDX-23: in lib/metadata/verify_metadata.cc, and in no table"),
    (READER_RULES, r"\| R-HDR-02 \| NotACheckpoint", "| R-HDR-02 | Corrupt", "bad-R-HDR-02-marker_magic: NotACheckpoint"),
    (READER_RULES, r"(\| R-HDR-02 .*\n)", r"\1\1", "R-HDR-02: has two rows"),
    (CORPUS, r"\| bad-R-IDX-23.*\n", "", "bad-R-IDX-23-raw_bytes is not in corpus.md"),
    (CORPUS, r"\| bad-R-IDX-23-raw_bytes \| open \| Corrupt \| R-IDX-23", "| bad-R-IDX-23-raw_bytes | open | Corrupt | R-IDX-22",
     "its name does not hold its rule"),
    (CONTENTS, r'"R-IDX-23"', '"R-IDX-99"', "R-IDX-23: no code"),
    (CORPUS, r"(\| several-index_and_chunk .*)R-MRK-06", r"\1R-MRK-99", "several-index_and_chunk: R-MRK-99 is in no table"),
    (CONTAINER, r"(- \*\*R-IDX-23\*\* .*\n)", r"\1\1", "R-IDX-23: stated 2 times"),
    (CONTAINER, r"- \*\*R-IDX-23\*\* .*\n", "", "R-IDX-23: stated 0 times"),
    (CONTAINER, r"(- \*\*R-IDX-23\*\* .*\n)", r"\1- **R-IDX-25** New.\n", "R-IDX-25: stated in container.md, and in no row"),
    (READER_RULES, r"(\| R-IDX-23 .*)§4", r"\1§5", "R-IDX-23: its row says container.md §5, it is stated in section 4"),
    (READER_RULES, r"(\| R-IDX-23 .*)may", r"\1perhaps", "R-IDX-23: a lenient reader perhaps"),
    ("spec/commit.md", r"(\| library \| )R-CMT-08, ", r"\1", "R-CMT-08: 0 times"),
    ("spec/commit.md", r"CreationNeverTouchesAnExistingFile", "NoSuchTest", "has no test NoSuchTest"),
)


def complaints(root):
    run = subprocess.run([sys.executable, root / "tests/tidy/check_rules.py"], capture_output=True, text=True)
    return run.returncode, run.stdout


def main():
    missed = 0
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder)
        for top in ("spec", "lib", "readers", "tests"):
            shutil.copytree(ROOT / top, copy / top)
        for path, pattern, replacement, expected in DAMAGES:
            good = (copy / path).read_text()
            bad, count = re.subn(pattern, replacement, good, count=1)
            (copy / path).write_text(bad)
            status, said = complaints(copy)
            (copy / path).write_text(good)
            if count == 0 or status == 0 or expected not in said:
                print(f"{path}, {pattern!r}: expected {expected!r}, got status {status}\n{said}")
                missed += 1
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
