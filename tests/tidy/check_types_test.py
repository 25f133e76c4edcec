#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_types.py finds a type that two files define, and takes no others for one."""

import pathlib
import subprocess
import sys
import tempfile

CHECK = pathlib.Path(__file__).with_name("check_types.py")
GOOD = {"lib/a.h": "namespace s { struct A { int x; }; }", "lib/b.cc": "namespace s { namespace { struct A {}; } struct B; }"}


def status(files):
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            path = pathlib.Path(folder, name)
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        return subprocess.run([sys.executable, CHECK, folder], capture_output=True, check=False).returncode


found = [status(GOOD), status(GOOD | {"lib/c.h": "namespace s { class A { long y; }; }"})]
sys.exit(found[0] if found[0] == 77 else found != [0, 1])
