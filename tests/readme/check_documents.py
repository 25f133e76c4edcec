#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the documents: links and mentions lead to files and headings, docs/README.md lists each page, prose is not too wide, rules
and limits of the specification fit together, the tests that docs/evidence/testing-coverage.md names are there, and README and
examples are short.

Prints one line "path:line: message" per violation; exit status 1 if there is any.
"""

import collections
import fnmatch
import functools
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROSE_WIDTH_MAX = 132  # wrap at 120; tables and code are not counted
README_LINES_MAX = 106  # one screen, with a block of code for each of two languages
EXAMPLE_LINES_MAX = 80  # of those that are one file
CODES = set(re.findall(r"^\s+k(\w+) = \d+,", (ROOT / "include/sealpoint/status.h").read_text(), re.M))
RULE_ID = re.compile(r"\bR-[A-Z]{3}-\d\d\b")
# | rule | code | where it is shown | sentence or section | what a lenient reader does |; the last one is for readers only
ROW = re.compile(r"^\| (R-[A-Z]{3}-\d\d) \| ([^|]+) \| ([^|]+) \| [^|]+ \|(?: [^|]+ \|)?$")
TABLES = {
    "spec/reader-rules.md": "DIR HDR MRK IDX BLB REC CHK COD",
    "spec/commit.md": "CMT",
    "spec/staged.md": "STG",
    "spec/series.md": "SER",
    "spec/fingerprint.md": "FPR",
    "spec/attributes.md": "ATT",
    "spec/delta.md": "DLT",
}


# A page of docs/ or spec/ in a comment, a message or a script; with a heading, perhaps.
MENTION = re.compile(r"(?<![\w./-])((?:docs|spec)/(?!\d)[\w/.-]+?\.(?:md|svg))\b(?:#([\w-]+))?")
# Frozen texts name pages as they were called in their edition: by the name, without the part.
FROZEN = {"spec/commit.md": ["durability.md"]}


def listed_files(*patterns):
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *patterns],
        cwd=ROOT, capture_output=True, text=True, check=True)
    return [ROOT / line for line in listed.stdout.splitlines() if (ROOT / line).is_file()]


def documents():
    return listed_files("*.md")


def prose_lines(path):
    """Line number and line, without code blocks."""
    in_code = False
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line.startswith("```"):
            in_code = not in_code
        elif not in_code:
            yield number, line


@functools.cache
def anchors(path):
    """What links may name in a document: its headings, as GitHub turns them into names, and `<a id="…">`."""
    names, seen = set(), collections.Counter()
    for _, line in prose_lines(path):
        names.update(re.findall(r'<a id="([^"]+)">', line))
        heading = re.match(r"#+ +(.*)", line)
        if heading:
            text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading[1]).strip().lower()
            name = re.sub(r"[^\w -]", "", text).replace(" ", "-")
            names.add(f"{name}-{seen[name]}" if seen[name] else name)
            seen[name] += 1
    return names


def check_links(path):
    for number, line in prose_lines(path):
        for target, anchor in re.findall(r"\]\(([^)#]*)(?:#([^)]*))?\)", line):
            if "://" in target:
                continue
            file = path.parent / target if target else path
            if not file.exists():
                yield number, f"link to {target} leads nowhere"
            elif anchor and (file.suffix != ".md" or anchor not in anchors(file)):
                yield number, f"link to {target}#{anchor}: there is no such heading"
        if len(line) > PROSE_WIDTH_MAX and not line.startswith("|"):
            yield number, f"prose is {len(line)} columns wide, at most {PROSE_WIDTH_MAX}"


def check_mentions_of_pages(path, root=ROOT):
    """A page that any file of the repository mentions is there, and so is its heading."""
    try:
        lines = path.read_text().splitlines()
    except UnicodeDecodeError:
        return
    allowed = FROZEN.get(str(path.relative_to(root)), [])
    for number, line in enumerate(lines, 1):
        for page, anchor in MENTION.findall(line):
            if page.removeprefix("docs/") in allowed:
                continue
            if not (root / page).exists():
                yield number, f"{page} is not there"
            elif anchor and anchor not in anchors(root / page):
                yield number, f"{page}#{anchor}: there is no such heading"


def check_index(root=ROOT):
    """docs/README.md links to each page once, below the heading of its part."""
    part, listed = "", collections.Counter()
    for number, line in prose_lines(root / "docs/README.md"):
        part = line[3:].lower() if line.startswith("## ") else part
        for target in re.findall(r"\]\(([a-z-]+/[^)]*\.md)\)", line):
            listed[target] += 1
            if not target.startswith(f"{part}/"):
                yield root / "docs/README.md", number, f"{target} is not a page of the part {part}"
    pages = {str(path.relative_to(root / "docs")) for path in (root / "docs").rglob("*.md")} - {"README.md"}
    for page in sorted(pages):
        if listed[page] != 1:
            yield root / "docs" / page, 1, f"docs/README.md links to it {listed[page]} times, expected once"


def read_rules():
    """Rules by id: (document, line, code, where); and what is wrong with the tables."""
    rules, wrong = {}, []
    for name, families in TABLES.items():
        path = ROOT / name
        for number, line in enumerate(path.read_text().splitlines(), 1):
            row = ROW.match(line)
            if row is None:
                continue
            rule, code, where = (part.strip() for part in row.groups())
            if rule in rules:
                wrong.append((path, number, f"{rule} has a second row"))
            if rule[2:5] not in families.split():
                wrong.append((path, number, f"{rule} does not belong into this table"))
            if code not in CODES | {"-"}:
                wrong.append((path, number, f"{rule} has the unknown code {code}"))
            rules[rule] = (path, number, code, where)
    return rules, wrong


def check_tests(rules):
    """Rules that name a test: the file is there and has that test."""
    for rule, (path, number, _, where) in rules.items():
        if ".cc: " not in where:
            continue
        file, test = where.split(": ")
        if not (ROOT / file).exists():
            yield path, number, f"{rule} names {file}, which does not exist"
        elif not re.search(rf"\b{test}\b", (ROOT / file).read_text()):
            yield path, number, f"{rule} names the test {test}, which {file} has not"


def check_mentions(rules):
    """Every rule id in documents and sources has a row."""
    for path in listed_files("spec", "docs", "lib", "readers", "include", "tools", "schema", "README.md", "CONTRIBUTING.md",
                             "SECURITY.md"):
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            for rule in RULE_ID.findall(line):
                if rule not in rules:
                    yield path, number, f"{rule} is in no table of rules"


def known_tests():
    """Suite.Test of the C++ sources, Class.test of the Python ones."""
    found = set()
    for path in (ROOT / "tests").rglob("*.cc"):
        found |= {".".join(pair) for pair in re.findall(r"\bTEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\)", path.read_text())}
    for path in (ROOT / "tests").rglob("*.py"):
        for name, body in re.findall(r"^class (\w+)[^\n]*\n(.*?)(?=^\S|\Z)", path.read_text(), re.M | re.S):
            found |= {f"{name}.{test}" for test in re.findall(r"^    def (test_\w+)", body, re.M)}
    return found


def check_coverage():
    """The tests and entries of the corpus that docs/evidence/testing-coverage.md names are there; "*" stands for anything."""
    path = ROOT / "docs/evidence/testing-coverage.md"
    tests = known_tests()
    entries = re.findall(r"^\| ([a-z]+-[^ |]+) \|", (ROOT / "tests/conformance/corpus.md").read_text(), re.M)
    for number, line in prose_lines(path):
        for name in re.findall(r"`([^`]+)`", line) if line.startswith("|") else []:
            is_entry = re.match(r"(good|bad|unsupported|\*)-", name)
            if not is_entry and not re.fullmatch(r"[A-Z]\w+\.[\w*]+", name):
                continue
            if not fnmatch.filter(entries if is_entry else tests, name):
                yield path, number, f"there is no {'entry' if is_entry else 'test'} {name}"


def check_first_sight(root=ROOT):
    """What a newcomer reads first is short: the README one screen, examples of one file 80 lines."""
    for path, most in [(root / "README.md", README_LINES_MAX)] + [
            (path, EXAMPLE_LINES_MAX) for path in sorted((root / "examples").glob("*.cc"))]:
        count = len(path.read_text().splitlines())
        if count > most:
            yield path, most + 1, f"{count} lines, at most {most}"


UNITS = {"kKiB": 2**10, "kMiB": 2**20, "kGiB": 2**30}


def value_of(expression):
    """Of a constant in limits.h: a product or a power of two."""
    shift = re.fullmatch(r"std::uint64_t\{1\} << (\d+)", expression)
    if shift:
        return 2 ** int(shift[1])
    product = 1
    for factor in expression.split(" * "):
        product *= UNITS[factor] if factor in UNITS else int(factor)
    return product


def check_limits():
    """spec/limits.md has the same names and values as limits.h, whose limits of the format are unsigned numbers."""
    header = (ROOT / "include/sealpoint/limits.h").read_text()
    path = ROOT / "spec/limits.md"
    constants = re.findall(r"std::uint\d+_t (\w+(?:_max\w*|M(?:ax|in)\w*)) = ([^;]+);", header)
    in_code = {name: value_of(value) for name, value in constants}
    in_text = {}
    for number, line in enumerate(path.read_text().splitlines(), 1):
        row = re.match(r"^\| (\w+) \| (?:2\^)?(\d+) \|", line)
        if row:
            in_text[row[1]] = 2 ** int(row[2]) if "| 2^" in line else int(row[2])
            if in_text[row[1]] != in_code.get(row[1]):
                yield path, number, f"{row[1]} is {in_text[row[1]]} here and {in_code.get(row[1])} in limits.h"
    for name in sorted(set(in_code) - set(in_text)):
        yield path, 1, f"{name} is missing"


def check_editions(root=ROOT):
    """Each page of the specification names its edition and its licence."""
    for path in sorted((root / "spec").glob("*.md")):
        if not path.read_text().split("\n")[2].startswith("*Edition "):
            yield path, 3, "the page has no line about its edition"


def check_codes(root=ROOT):
    """spec/reader-rules.md has the codes of status.h, with their numbers, in their order."""
    path = root / "spec/reader-rules.md"
    header = (root / "include/sealpoint/status.h").read_text()
    in_code = [(number, name) for name, number in re.findall(r"^\s+k(\w+) = (\d+),", header, re.M)]
    in_text = re.findall(r"^\| (\d+) \| (\w+) \|", path.read_text(), re.M)
    if in_text != in_code:
        found = sorted(set(in_text) ^ set(in_code)) or in_text
        yield path, 1, f"codes are not those of status.h: {found}"


def main():
    rules, wrong = read_rules()
    for path in documents():
        wrong += [(path, number, message) for number, message in check_links(path)]
    for path in listed_files():
        wrong += [(path, number, message) for number, message in check_mentions_of_pages(path)]
    wrong += check_index()
    wrong += check_tests(rules)
    wrong += check_mentions(rules)
    wrong += check_coverage()
    wrong += check_limits()
    wrong += check_codes()
    wrong += check_editions()
    wrong += check_first_sight()
    for path, number, message in wrong:
        print(f"{path.relative_to(ROOT)}:{number}: {message}")
    if len(rules) < 50:
        print(f"only {len(rules)} rules were found")
    return 1 if wrong or len(rules) < 50 else 0


if __name__ == "__main__":
    sys.exit(main())
