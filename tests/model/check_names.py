#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that the models of spec/model speak of the steps that the specification has, and that every mutant is used.

The step of a SAY in a model is a step of spec/commit.md section 1, which is also a phase of phases.h; "delete n" is row
n of the table of spec/series.md section 4; "list n", "resume n" and "clean up n" are number n of its sections 2.1, 3
and 5; "-" is fate.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def section(path, number):
    text = (ROOT / path).read_text()
    return re.search(rf"^##+ {number}\.? .*?(?=^##+ |\Z)", text, re.M | re.S)[0]


def numbers(word, number):
    """The numbered points of a section of spec/series.md, as steps of this word."""
    return {f"{word} {point}" for point in re.findall(r"^(\d+)\. ", section("spec/series.md", number), re.M)}


def steps_of_commit():
    """The steps of the specification that are phases too."""
    named = set(re.findall(r"^\| \d+ \| ([a-z ]+) \|", section("spec/commit.md", 1), re.M))
    header = (ROOT / "include/sealpoint/phases.h").read_text()
    phases = {re.sub(r"(?<!^)([A-Z])", r" \1", name).lower() for name in re.findall(r"^  k(\w+),", header, re.M)}
    return named & phases


def main():
    rows = len(re.findall(r"^\| ", section("spec/series.md", 4), re.M)) - 1
    known = steps_of_commit() | {"-"}
    known |= {f"delete {row}" for row in range(1, rows + 1)}
    known |= numbers("list", "2.1") | numbers("resume", 3) | numbers("clean up", 5)
    wrong, used = [], set()
    for path in sorted((ROOT / "spec/model").glob("*.pml")):
        text = path.read_text()
        for number, line in enumerate(text.splitlines(), 1):
            told = re.findall(r"\bSAY(?:_AS)?(?:_OF)?\((?!who|actor)[^,]+, ((?!step,)[^,]+),", line)
            for step in told + re.findall(r"\bWRITE\(\w+, [^,]+, ((?!step,)[^,]+),", line):
                used.add(step)
                if step not in known:
                    wrong.append(f"{path.relative_to(ROOT)}:{number}: \"{step}\" is no step of the specification")
        defined = set(re.findall(r"^#define [ME]_(\w+) \d", text, re.M))
        asked = set(re.findall(r"\b(?:MUTANT|BUT|EXCLUDED)\((\w+)\)", text)) - {"name"}
        wrong += [f"{path.relative_to(ROOT)}: mutant {name} is not both listed and used" for name in defined ^ asked]
    if len(known) < 15 or len(used) < 12:
        wrong.append(f"only {len(known)} steps are known and {len(used)} used")
    for line in wrong:
        print(line)
    print(f"{len(used)} steps used, {len(known)} known, {len(wrong)} errors")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
