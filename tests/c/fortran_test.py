#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the programs in Fortran over MPI; the second reader reads what they wrote.

Usage: fortran_test.py MPIEXEC [PROGRAM_OF_THE_TEST PROGRAM_OF_THE_EXAMPLE] [unittest arguments]
Without the programs the test is skipped.
"""

import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
MPIEXEC, TEST, HEAT = None, None, None


class FortranTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="fortran-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def run_ranks(self, ranks, *command):
        done = subprocess.run([MPIEXEC, "-n", str(ranks), *map(str, command)], cwd=self.folder, text=True, capture_output=True,
                              timeout=200, check=False)
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        return done.stdout.splitlines()

    def read(self, checkpoint, tensor):
        reader = [sys.executable, "-B", "-m", "sealpoint_reference", "cat", checkpoint, tensor]
        return subprocess.run(reader, cwd=ROOT / "readers/reference", capture_output=True, check=True).stdout

    def newest(self, series):
        return max((self.folder / series).glob("step-*"))

    def test_every_case(self):
        self.assertEqual(["0 failures"], self.run_ranks(3, TEST, self.folder))
        # The first dimension of Fortran is the last one here: a(6, 2 * ranks, 2) is stored as [2, 6, 6].
        stored = struct.unpack("<72i", self.read(self.newest("sections"), "a"))
        self.assertEqual(tuple(i + 10 * j + 1000 * k for k in range(2) for j in range(1, 7) for i in range(1, 7)), stored)

    def test_the_example_resumes_on_other_ranks_with_the_same_result(self):
        self.assertEqual("4 ranks start at step 0", self.run_ranks(4, HEAT, "plate", 100)[0])
        self.assertEqual(["3 ranks start at step 100", "step 200 is at time 25.000"], self.run_ranks(3, HEAT, "plate", 200))
        self.run_ranks(1, HEAT, "whole", 200)
        steps = sorted(path.name[:17] for path in (self.folder / "plate").iterdir())
        self.assertEqual(["step-000000000150", "step-000000000200"], steps)
        for tensor in ("u", "time"):
            self.assertEqual(self.read(self.newest("whole"), tensor), self.read(self.newest("plate"), tensor))
        self.assertNotEqual(self.read(self.newest("plate"), "u"), self.read(min((self.folder / "plate").iterdir()), "u"))
        self.assertEqual(struct.pack("<d", 25), self.read(self.newest("plate"), "time"))


if __name__ == "__main__":
    if len(sys.argv) < 4:
        print("skipped: there is no Fortran compiler with the module mpi_f08 of this MPI, or the examples are not built")
        sys.exit(77)
    MPIEXEC, TEST, HEAT = sys.argv[1:4]
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
