#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that no two files define a type of one qualified name: in one library that is undefined behaviour.

    check_types.py [ROOT]     of include/, lib/ and readers/; exit status 77 without ctags
"""

import collections
import json
import pathlib
import shutil
import subprocess
import sys

TOPS = ("include", "lib", "readers")


def places_of_types(root):
    """Qualified name -> files that define it. Types of anonymous namespaces are not seen by other files."""
    sources = [str(path) for top in TOPS for path in sorted((root / top).rglob("*")) if path.suffix in (".h", ".cc")]
    done = subprocess.run(
        ["ctags", "--languages=C++", "--langmap=C++:+.h", "--kinds-C++=csu", "--extras=+q", "--output-format=json", "-L", "-"],
        input="\n".join(sources), capture_output=True, text=True, check=True)
    places = collections.defaultdict(set)
    for tag in map(json.loads, done.stdout.splitlines()):
        if "::" in tag["name"] and "__anon" not in tag["name"]:
            places[tag["name"]].add(str(pathlib.Path(tag["path"]).relative_to(root)))
    return places


def main(arguments):
    root = pathlib.Path(arguments[0] if arguments else pathlib.Path(__file__).resolve().parents[2])
    if shutil.which("ctags") is None:
        print("there is no ctags")
        return 77
    places = places_of_types(root)
    doubled = {name: sorted(files) for name, files in places.items() if len(files) > 1}
    for name, files in sorted(doubled.items()):
        print(f"{name} is defined in {', '.join(files)}")
    print(f"{len(places)} types, {len(doubled)} defined twice")
    return 1 if doubled or not places else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
