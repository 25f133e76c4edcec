#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs clang-tidy over the sources of lib/ and readers/ in a build folder, two or more at a time.

What was clean before is not looked at again: a source is known by a digest of its preprocessed text (with its comments,
which may hold NOLINT), its options, .clang-tidy and the version of clang-tidy. The digests are kept beside the objects of
ccache, so that one folder is all that a machine for CI keeps.

  scripts/tidy.py BUILD_FOLDER
"""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
TIDY = "clang-tidy-19"
KEPT_DAYS = 30


def output_of(command, **options):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, **options).stdout


def cache_folder():
    try:
        base = output_of(["ccache", "--get-config", "cache_dir"]).decode().strip()
    except (OSError, subprocess.CalledProcessError):
        base = pathlib.Path.home() / ".cache"
    folder = pathlib.Path(base) / "sealpoint-tidy"
    folder.mkdir(parents=True, exist_ok=True)
    for stamp in folder.iterdir():
        if time.time() - stamp.stat().st_mtime > KEPT_DAYS * 86400:
            stamp.unlink(missing_ok=True)
    return folder


def preprocessed(entry):
    """The text that clang-tidy sees, without the name of this clone."""
    command = [word for word in shlex.split(entry["command"]) if not word.endswith("ccache")]
    command = re.sub(r" -o \S+", "", shlex.join(command)).replace(" -c ", " ") + " -E -C -dD"
    text = output_of(shlex.split(command), cwd=entry["directory"])
    return (command.encode() + b"\n" + text).replace(str(ROOT).encode(), b"")


def check(entry, build, rules, cache):
    stamp = cache / hashlib.sha256(rules + preprocessed(entry)).hexdigest()
    if stamp.exists():
        stamp.touch()
        return True
    done = subprocess.run([TIDY, "--quiet", "-p", build, entry["file"]], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    lines = [line for line in done.stdout.splitlines() if "warnings generated" not in line]
    if lines:
        print("\n".join(lines), flush=True)
    if done.returncode == 0 and not lines:
        stamp.touch()
    return done.returncode == 0


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    build = pathlib.Path(sys.argv[1]).resolve()
    entries = json.loads((build / "compile_commands.json").read_text())
    entries = [entry for entry in entries if re.search(r"/(lib|readers)/", entry["file"].removeprefix(str(ROOT)))]
    if not entries:
        sys.exit(f"{build} compiles nothing of lib/ and readers/")
    rules = output_of([TIDY, "--version"]) + (ROOT / ".clang-tidy").read_bytes()
    cache = cache_folder()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        clean = list(pool.map(lambda entry: check(entry, build, rules, cache), entries))
    print(f"clang-tidy: {len(entries)} sources, {len(entries) - sum(clean)} with findings")
    return 0 if all(clean) else 1


if __name__ == "__main__":
    sys.exit(main())
