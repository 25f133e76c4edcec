#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the first block of docs/start/install.md as it is written, in a copy of what git knows, and uses what it installed.

    recipe_test.py WORK_FOLDER
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def main():
    work = pathlib.Path(sys.argv[1])
    shutil.rmtree(work, ignore_errors=True)
    clone, home = work / "clone", work / "home"
    home.mkdir(parents=True)
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        sys.exit(f"git does not say what belongs to a clone: {listed.stderr}")
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (clone / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, clone / name)
    recipe = re.search(r"^## Install\n+```sh\n(.*?)^```", (ROOT / "docs/start/install.md").read_text(), re.S | re.M)[1]
    folder = os.environ.get("CCACHE_DIR", str(pathlib.Path.home() / ".cache/ccache"))
    # As the stage gcc calls the compiler, so that objects come from its cache; the stage builds calls make.
    cache = {"CCACHE_DIR": folder, "CCACHE_BASEDIR": str(clone), "CMAKE_GENERATOR": "Ninja", "CXX": "g++"}
    subprocess.run(["sh", "-euxc", recipe], cwd=clone, env={**os.environ, **cache, "HOME": str(home)}, check=True)
    done = subprocess.run([home / "sealpoint/bin/ckpt", "--version"], capture_output=True, text=True, check=True)
    version = re.search(r"^  VERSION (\S+)$", (ROOT / "CMakeLists.txt").read_text(), re.M)[1]
    assert version in done.stdout, done.stdout
    shutil.rmtree(work)


if __name__ == "__main__":
    main()
