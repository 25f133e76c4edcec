#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that each source includes what it uses: clang reads it alone and makes no code.

What users build, and stages that run tests, is compiled in pieces of several sources, where one source can bring along what
another uses. The headers of GoogleTest, where a source names them, are read once. What was in order before is not looked at
again: a source is known by a digest of itself, of all headers of this project that it reaches, and of its options (see
tidy.py).

  scripts/each_source.py BUILD_FOLDER [REVISION]

The folder is configured by the preset clang, with its generated headers built. With a revision only those sources are looked at
that changed since then, or that include a header of this project that did.
"""

import concurrent.futures
import functools
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

import tidy

ROOT = tidy.ROOT
FOLDERS = ("lib", "readers", "tools", "python", "tests", "fuzz", "examples", "benchmarks")
SCHEMA = ROOT / "schema/index.fbs"  # of which a header is generated
INCLUDE = re.compile(rb'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)


@functools.cache
def includes_of(path):
    """What a file names: headers of this project as paths, others as they are written."""
    ours, others = set(), set()
    for quote, name in INCLUDE.findall(path.read_bytes()):
        name = name.decode()
        folders = (path.parent, ROOT, ROOT / "include", ROOT / "tests/support/googletest")
        found = next((folder / name for folder in folders if (folder / name).is_file()), None) if quote == b'"' else None
        (others if found is None else ours).add(name if found is None else found.resolve())
    return ours, others


def reached(path):
    seen, pending = set(), [path]
    while pending:
        one = pending.pop()
        if one not in seen:
            seen.add(one)
            pending.extend(includes_of(one)[0])
    return sorted(seen)


@functools.cache
def content_digest(path):
    return hashlib.sha256(path.read_bytes()).digest()


def options_of(entry):
    words = shlex.split(re.sub(r" -o \S+ -c \S+$", "", entry["command"]))
    return [word for word in words if not word.endswith("ccache")]


class Headers:
    """GoogleTest's header, read once for each set of options."""

    def __init__(self, folder):
        self.folder, self.made = pathlib.Path(folder), {}

    def prepare(self, entries):
        for entry in entries:
            key = self.key(entry)
            if key and key not in self.made:
                out = self.folder / f"{len(self.made)}.pch"
                header = self.folder / f"{len(self.made)}.h"
                header.write_text(f"#include <{key[0]}>\n")
                subprocess.run([*key[1:], "-x", "c++-header", str(header), "-o", str(out)], cwd=entry["directory"], check=True)
                self.made[key] = out

    def key(self, entry):
        named = includes_of(pathlib.Path(entry["file"]))[1]
        header = next((item for item in ("gmock/gmock.h", "gtest/gtest.h") if item in named), None)
        return header and (header, *options_of(entry))

    def of(self, entry):
        key = self.key(entry)
        return ["-include-pch", str(self.made[key])] if key else []


def stamp_of(entry, cache, compiler):
    digest = hashlib.sha256(compiler + "\0".join(options_of(entry)).replace(str(ROOT), "").encode() + content_digest(SCHEMA))
    for path in reached(pathlib.Path(entry["file"])):
        digest.update(str(path.relative_to(ROOT)).encode() + content_digest(path))
    return cache / f"source-{digest.hexdigest()}"


def check(entry, headers, stamp):
    # What libstdc++ 12 has for stable sorts calls what it deprecates.
    command = [*options_of(entry), *headers.of(entry), "-fsyntax-only", "-Wno-deprecated-declarations", entry["file"]]
    done = subprocess.run(command, cwd=entry["directory"], capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"{pathlib.Path(entry['file']).relative_to(ROOT)} does not compile alone:\n{done.stderr}", flush=True)
    else:
        stamp.touch()
    return done.returncode == 0


def changed_since(revision):
    listed = subprocess.run(["git", "diff", "--name-only", revision], cwd=ROOT, capture_output=True, text=True, check=True)
    return {(ROOT / line).resolve() for line in listed.stdout.splitlines()}


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    build = pathlib.Path(sys.argv[1]).resolve()
    entries = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        path = pathlib.Path(entry["file"])
        if any(path.is_relative_to(ROOT / folder) for folder in FOLDERS):
            entries.setdefault(path, entry)
    if not entries:
        sys.exit(f"{build} compiles nothing of {', '.join(FOLDERS)}")
    total = len(entries)
    if len(sys.argv) == 3:
        changed = changed_since(sys.argv[2])
        entries = {path: entry for path, entry in entries.items() if changed & {path.resolve(), *includes_of(path)[0]}}
    cache = tidy.cache_folder()
    compiler = tidy.output_of([options_of(next(iter(entries.values())))[0], "--version"]) if entries else b""
    stamps = {path: stamp_of(entry, cache, compiler) for path, entry in entries.items()}
    new = [path for path in entries if not stamps[path].exists()]
    for path in entries.keys() - set(new):
        stamps[path].touch()
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        headers = Headers(folder)
        headers.prepare(entries[path] for path in new)
        good = list(pool.map(lambda path: check(entries[path], headers, stamps[path]), new))
    print(f"each source alone: {total} sources, {len(new)} looked at, {len(new) - sum(good)} with errors")
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
