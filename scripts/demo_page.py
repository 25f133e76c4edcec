#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Puts what scripts/demo.sh printed into docs/start/demo.md:  scripts/demo.sh | scripts/demo_page.py

Passes its input on. The page is changed only if the demo came to its end.
"""

import pathlib
import re
import sys

PAGE = pathlib.Path(__file__).resolve().parents[1] / "docs/start/demo.md"
BEGIN, END = "<!-- demo:begin -->\n", "<!-- demo:end -->\n"


def main():
    printed = ""
    for line in sys.stdin:
        sys.stdout.write(line)
        sys.stdout.flush()
        printed += line
    if not re.search(r"^All results are as expected ", printed, re.M):
        sys.stderr.write("the demo failed; docs/start/demo.md stays as it is\n")
        return 1
    printed = re.sub(r" are in .*/build/demo$", " are in build/demo", printed, flags=re.M)
    before, rest = PAGE.read_text().split(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}```text\n{printed.strip()}\n```\n{END}{rest.split(END)[1]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
