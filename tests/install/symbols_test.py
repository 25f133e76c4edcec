#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A library defines no symbol of its dependencies that the linker could merge with those of a program.

    symbols_test.py NM LIBRARY...
"""

import re
import subprocess
import sys

# Global and weak definitions, as nm names them, and names of namespaces and functions of FlatBuffers, zstd and xxHash.
DEFINED = re.compile(r"^(?:[0-9a-f]+)? +[A-TV-Zuvw] (.*)$", re.M)
FOREIGN = re.compile(r"\bflatbuffers::|^(?:ZSTD|ZDICT|HUF|FSE|XXH)\w*")

problems = []
for library in sys.argv[2:]:
    listed = subprocess.run([sys.argv[1], "-C", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    symbols = DEFINED.findall(listed)
    if not any("sealpoint" in symbol for symbol in symbols):
        problems.append(f"{library}: no symbol of its own was found")
    problems += [f"{library}: {symbol}" for symbol in symbols if FOREIGN.search(symbol)]
print("\n".join([*problems[:20], f"{len(problems)} problems"]))
sys.exit(bool(problems))
