#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What scripts/progress.sh shows of a step, on a terminal and elsewhere.

    progress_test.py
"""

import os
import pathlib
import pty
import subprocess
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts/progress.sh"


def shown(step, terminal=False):
    """Exit status, and the lines on the standard error."""
    command = ["bash", "-c", f'set -euo pipefail; . "{SCRIPT}"; ({step}) | progress Compiling']
    if not terminal:
        done = subprocess.run(command, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
        return done.returncode, done.stderr.splitlines()
    ours, theirs = pty.openpty()
    status = subprocess.run(command, stderr=theirs, timeout=60, check=False).returncode
    os.close(theirs)
    return status, os.read(ours, 100_000).decode().split("\r\033[K")


class ProgressTest(unittest.TestCase):
    def test_a_file_gets_a_line_for_each_tenth(self):
        status, lines = shown('echo "[0/2] Re-checking globbed directories..."; for i in {1..40}; do '
                              'echo "[$i/40] Building CXX object lib/a/CMakeFiles/a.dir/$i.cc.o"; done')
        self.assertEqual((status, len(lines)), (0, 11), lines)
        self.assertRegex(lines[-1], r"^   Compiling: 40 of 40, \d s  lib/a/40\.cc\.o$")

    def test_a_terminal_gets_one_line_that_moves_while_nothing_ends(self):
        status, lines = shown('echo "[1/2] Building CXX object x.o"; sleep 2.5', terminal=True)
        self.assertEqual(status, 0)
        self.assertEqual(lines[0], "")
        self.assertEqual(lines[-1], "")
        self.assertRegex(lines[1], r"^   Compiling: 1 of 2, 0 s  x\.o$")
        self.assertRegex(lines[-2], r"^   Compiling: 1 of 2, [23] s  x\.o$")

    def test_packages_are_named_and_a_failure_is_one(self):
        status, lines = shown('echo "Compiling: these: a b"; echo "Unpacking a"; exit 3')
        self.assertEqual((status, lines), (3, ["   Compiling: these: a b"]))


if __name__ == "__main__":
    unittest.main()
