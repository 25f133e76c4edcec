#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that rules, code, corpus and tests name each other.

The tables of spec/*.md say which rules there are. Each is a string in lib/ or readers/, unless its row says
that there is nothing to report; each id in the code has a row. A rule of reader-rules.md is stated once, in the
section of container.md that its row names, and has its entry in tests/conformance/corpus.md, which has no entry
without a rule; a rule of commit.md, series.md, staged.md or a page of FEATURES has the test that it names; one of the
first three binds one of three (commit.md 2.8).
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Pages of feature bits, with rules of their own.
FEATURES = ("spec/fingerprint.md", "spec/attributes.md", "spec/delta.md")
RULE = re.compile(r"R-[A-Z]{3}-\d{2}")

# Rules that no code reports, and why.
WITHOUT_CODE = {
    "R-DIR-02": "reported as R-BLB-01",
    "R-DIR-03": "a note, no error",
    "R-DIR-04": "a note, no error",
    "R-CMT-14": "an error of the storage, which knows no rules",
    "R-CMT-26": "an error of the engine, which knows no rules",
}


def rows(path, first_cell):
    """The cells of each table row of a file whose first cell matches."""
    for line in (ROOT / path).read_text().splitlines():
        if line.startswith("| "):
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            if re.fullmatch(first_cell, cells[0]):
                yield cells


def ids_in_code():
    """Rule id -> files that have it in a string."""
    found = {}
    for top in ("lib", "readers"):
        for path in sorted((ROOT / top).rglob("*")):
            if path.suffix in (".h", ".cc", ".cu"):
                for text in re.findall(r'"(R-[A-Z]{3}-\d{2})"', path.read_text()):
                    found.setdefault(text, set()).add(path.relative_to(ROOT).as_posix())
    return found


def check_code(rules, in_code):
    for rule, code in rules.items():
        if code not in ("-", "Ok") and rule not in in_code and rule not in WITHOUT_CODE:
            yield f"{rule}: no code of lib/ or readers/ reports it"
    for rule, paths in in_code.items():
        if rule not in rules:
            yield f"{rule}: in {', '.join(sorted(paths))}, and in no table of spec/"
    for rule in WITHOUT_CODE:
        if rule not in rules or rule in in_code:
            yield f"{rule}: listed in check_rules.py as without code; this is not so any more"


def check_corpus(reader_rules):
    """Rows of reader-rules.md against corpus.md, which may also have entries of the rules of FEATURES."""
    of_features = (row for path in FEATURES for row in rows(path, RULE.pattern))
    codes = {rule: code for rule, code, *_ in (*reader_rules, *of_features)}
    entries = {cells[0]: cells for cells in rows("tests/conformance/corpus.md", r"(good|bad)-.*")}
    for rule, code, entry, *_ in reader_rules:
        if entry != "-" and entry not in entries:
            yield f"{rule}: {entry} is not in corpus.md"
    for name, (_, _, code, rule, _, _) in entries.items():
        in_name = RULE.search(name)
        if (in_name.group() if in_name else "-") != rule:
            yield f"{name}: its name does not hold its rule {rule}"
        if rule != "-" and rule not in codes:
            yield f"{name}: {rule} is in neither reader-rules.md nor a page of a feature"
        elif rule != "-" and codes[rule] != code:
            yield f"{name}: {code}, but {rule} is {codes[rule]}"
        elif rule == "-" and code != "Ok":
            yield f"{name}: {code} without a rule"


def check_lists(rules):
    """Rows of corpus.md about several damages: rules that there are."""
    for name, _, violations, _ in rows("tests/conformance/corpus.md", r"several-.*"):
        for rule in RULE.findall(violations):
            if rule not in rules:
                yield f"{name}: {rule} is in no table of spec/"


def statements():
    """Rule id -> sections of container.md in which a paragraph of its own states it."""
    found = {}
    section = ""
    for line in (ROOT / "spec/container.md").read_text().splitlines():
        heading = re.match(r"## (\d+)\.", line)
        section = heading[1] if heading else section
        stated = re.match(rf"- \*\*({RULE.pattern})\*\* ", line)
        if stated:
            found.setdefault(stated[1], []).append(section)
    return found


def check_statements(reader_rules):
    """One text per rule: the table points to it and says nothing itself."""
    stated = statements()
    for rule, _, _, text, lenient in reader_rules:
        sections = stated.pop(rule, [])
        if len(sections) != 1:
            yield f"{rule}: stated {len(sections)} times in container.md, not once"
        elif text != f"container.md §{sections[0]}":
            yield f"{rule}: its row says {text}, it is stated in section {sections[0]}"
        if lenient not in ("must", "may"):
            yield f"{rule}: a lenient reader {lenient} check it"
    for rule in stated:
        yield f"{rule}: stated in container.md, and in no row of reader-rules.md"


def check_bound(rules):
    """The table of commit.md that says whom a rule binds has each rule of a protocol once."""
    bound = [rule for cells in rows("spec/commit.md", "format|series|library") for rule in RULE.findall(cells[1])]
    protocols = {rule for rule in rules if rule.startswith(("R-CMT", "R-SER", "R-STG"))}
    for rule in sorted(protocols | set(bound)):
        if bound.count(rule) != 1 or rule not in protocols:
            yield f"{rule}: {bound.count(rule)} times in the table of commit.md 2.8, expected once"


def check_tests(path):
    """Rows of a table whose third column is `file: TestName`."""
    for rule, _, test, _ in rows(path, RULE.pattern):
        file, _, name = test.partition(": ")
        if not (ROOT / file).is_file():
            yield f"{rule}: {file} does not exist"
        elif not re.search(rf"\b\w*TEST\w*\(\s*\w+,\s*{re.escape(name)}\s*\)", (ROOT / file).read_text()):
            yield f"{rule}: {file} has no test {name}"


def main():
    reader_rules = list(rows("spec/reader-rules.md", RULE.pattern))
    rules = {}
    problems = []
    for path in sorted((ROOT / "spec").glob("*.md")):
        for cells in rows(path.relative_to(ROOT), RULE.pattern):
            if cells[0] in rules:
                problems.append(f"{cells[0]}: has two rows")
            rules[cells[0]] = cells[1]
    problems += check_code(rules, ids_in_code())
    problems += check_corpus(reader_rules)
    problems += check_lists(rules)
    problems += check_statements(reader_rules)
    problems += check_bound(rules)
    for path in ("spec/commit.md", "spec/series.md", "spec/staged.md", *FEATURES):
        problems += check_tests(path)
    for problem in problems:
        print(problem)
    if len(rules) < 100 or len(reader_rules) < 70:
        problems.append("")
        print("The tables of spec/ are not where this script looks for them")
    print(f"{len(rules)} rules, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
