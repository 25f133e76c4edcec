#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lines of test that run per commit for each line of product (.h .c .cc .cu .py, of what git tracks). Fails above 0.80, or if
a part of the product has more lines than its budget in cmake/components.txt.

  scripts/test_weight.py [CHECKOUT]              of this one, if none is given
  scripts/test_weight.py --build FOLDER...       compares tests/nightly.txt with what these build folders compile and run

Product: include lib readers tools python. Tests: tests fuzz, less what tests/nightly.txt says runs by night only. That is
checked by --build: without SEALPOINT_NIGHTLY_TESTS a folder may declare no test and reach no source that the list names;
with it, each source of the list below tests in C++ must be reached by something, else it would run nowhere.
"""

import functools
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
PRODUCT = ("include", "lib", "readers", "tools", "python")
TESTS = ("tests", "fuzz")
SUFFIXES = (".h", ".c", ".cc", ".cu", ".py")
LIMIT = 0.80
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.M)


def nightly_rows(root):
    """(test or stage, [pattern of a path]) of each row of tests/nightly.txt."""
    lines = (root / "tests/nightly.txt").read_text().splitlines()
    return [(name, patterns) for name, *patterns in (line.split() for line in lines if line and not line.startswith("#"))]


def nightly_sources(root):
    return {path for _, patterns in nightly_rows(root) for pattern in patterns for path in root.glob(pattern)
            if path.suffix in SUFFIXES}


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


def components(root, paths):
    """(part, lines, budget) of each row of cmake/components.txt, then ("other", lines, 0) of the rest of the product."""
    edges = (root / "cmake/module_edges.txt").read_text()
    headers = re.findall(r"^(include/sealpoint) (\S+) (\w+)$", edges, re.M)
    lines = {path: (root / path).read_bytes().count(b"\n") for path in map(str, paths)
             if pathlib.PurePath(path).suffix in SUFFIXES and path.startswith(tuple(f"{top}/" for top in PRODUCT))}
    rows = re.findall(r"^(\w+) (\d+): (.*)$", (root / "cmake/components.txt").read_text(), re.M)
    for part, budget, words in rows:
        places = {place for word in words.split() for place in (word, f"lib/{word}", f"readers/{word}")}
        places |= {f"{folder}/{header}" for folder, header, module in headers if module in words.split()}
        own = [path for path in lines if path in places or any(path.startswith(f"{place}/") for place in places)]
        yield part, sum(lines.pop(path) for path in own), int(budget)
    yield "other", sum(lines.values()), 0


def tracked(root):
    found = subprocess.run(["git", "-C", root, "ls-files"], capture_output=True, text=True, check=True).stdout
    return [path for path in found.splitlines() if (root / path).is_file()]


@functools.cache
def named_by(path, root):
    """The sources that one includes, imports or starts by its name."""
    text = path.read_text(errors="replace")
    if path.suffix == ".py":
        beside = {item.stem: item for item in path.parent.rglob("*.py") if item != path}
        names = re.findall(r"^\s*(?:import|from) (\w+)|\w\([\"'](\w+)[\"']|(\w+)\.py[\"']", text, re.M)
        return {beside[name] for found in names for name in found if name in beside}
    places = (path.parent, root, root / "include", root / "tests/support/googletest")
    return {place / name for name in INCLUDE.findall(text) for place in places if (place / name).is_file()}


def reached(root, starts):
    """All files of the project that these files need; those in a build folder are pieces of several sources."""
    seen, pending = set(), {path.resolve() for path in starts}
    while pending:
        path = pending.pop()
        if path not in seen:
            seen.add(path)
            pending |= {item.resolve() for item in named_by(path, root)}
    return seen


def declared_tests(build):
    """{name: its command} of what ctest runs in a build folder."""
    command = ["ctest", "--test-dir", build, "--show-only=json-v1"]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return {test["name"]: test.get("command", []) for test in json.loads(found)["tests"]}


def used_by(root, build, tests):
    """The sources that a build folder compiles, and the programs and folders of tests that its ctest names."""
    starts = {pathlib.Path(entry["directory"], entry["file"]) for entry in
              json.loads((build / "compile_commands.json").read_text())}
    for argument in (pathlib.Path(word) for command in tests.values() for word in command if word.startswith(f"{root}/")):
        if argument.is_file() and argument.suffix in SUFFIXES:
            starts.add(argument)
        elif argument.is_dir() and argument.relative_to(root).parts[:1] == ("tests",):
            starts.update(argument.rglob("*.py"))
    return reached(root, {path for path in starts if path.is_file()})


def differences(root, build):
    """What tests/nightly.txt says and a build folder does otherwise, as sentences."""
    tests, sources = declared_tests(build), nightly_sources(root)
    used = used_by(root, build, tests)
    name_of = {path: path.relative_to(root) for path in sources}
    cache = (build / "CMakeCache.txt").read_text()
    if re.search(r"^SEALPOINT_NIGHTLY_TESTS:BOOL=(ON|1|TRUE)$", cache, re.M):
        # Some tests cannot be built with sanitizers, or without the CUDA Toolkit.
        has_all = re.search(r"^SEALPOINT_SANITIZE:STRING=.", cache, re.M) is None
        compiled = {path for path in sources if has_all and path.suffix in (".c", ".cc", ".h")
                    and name_of[path].parts[0] == "tests" and name_of[path].parts[1] != "cuda"}
        wrong = {name_of[path]: "and no test is built from it" for path in sorted(compiled - used)}
    else:
        listed = {name for name, _ in nightly_rows(root)}
        wrong = {name: "and runs per commit" for name in sorted(listed & tests.keys())}
        wrong |= {name_of[path]: "and what runs per commit needs it" for path in sorted(sources & used)}
    return [f"{name} is listed in tests/nightly.txt, {what}" for name, what in wrong.items()]


def main(arguments):
    if arguments[:1] == ["--build"]:
        found = [text for build in arguments[1:] for text in differences(ROOT, pathlib.Path(build).resolve())]
        print("\n".join(found) if found else "tests/nightly.txt lists what no commit compiles or runs")
        return 1 if found else 0
    root = pathlib.Path(arguments[0]) if arguments else ROOT
    commit, night, product = count(root, tracked(root))
    print(f"{commit:,} lines of test per commit, {night:,} by night only, {product:,} lines of product: "
          f"{commit / product:.3f} per commit, {(commit + night) / product:.2f} in all")
    is_heavy = commit > LIMIT * product
    if is_heavy:
        print(f"{commit:,} lines of test per commit, expected at most {int(LIMIT * product):,}: {LIMIT} for each of product")
    for part, lines, budget in components(root, tracked(root)):
        print(f"{part:8} {lines:7,} lines, at most {budget:,}" + (": too many" if lines > budget else ""))
        is_heavy = is_heavy or lines > budget
    return 1 if is_heavy else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
