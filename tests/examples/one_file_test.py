#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the examples of one file as their first lines say.

Usage: one_file_test.py MPIEXEC FOLDER_OF_EXAMPLES CKPT [unittest arguments]
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

MPIEXEC, EXAMPLES, CKPT = None, None, None


class OneFileTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="one-file-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def run_example(self, ranks, name, *arguments, status=0):
        """Ranks 0: without mpirun. Returns the lines of standard output, or of both streams if it is to fail."""
        launcher = [MPIEXEC, "-n", str(ranks)] if ranks else []
        done = subprocess.run([*launcher, str(EXAMPLES / name), *arguments], cwd=self.folder, text=True,
                              capture_output=True, timeout=100, check=False)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return (done.stdout + (done.stderr if status else "")).splitlines()

    def committed(self, series):
        return sorted(path.parent.name[:17] for path in (self.folder / series).glob("*/COMMIT"))

    def verify(self, *arguments):
        done = subprocess.run([CKPT, "verify", *arguments], cwd=self.folder, text=True, capture_output=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def errors_of(self, lines, ranks, begin):
        """The errors that all ranks printed, each with its number before it."""
        found = [line.partition(": ")[2] for line in lines if line.startswith("rank ")]
        self.assertEqual(len(found), ranks, lines)
        return {error for error in found if error.startswith(begin)}


class SaveLoadTest(OneFileTest):
    def test_resumes_on_any_number_of_ranks_with_mpirun_and_without(self):
        step = 0
        for ranks in (4, 3, 0):
            lines = self.run_example(ranks, "save_load", "run")
            self.assertEqual(lines[0], f"{ranks or 1} ranks start at step {step}")
            step += 100
            self.assertRegex(lines[1], f"^step {step} is in run/step-{step:012}-")
        self.assertEqual(self.committed("run"), ["step-000000000100", "step-000000000200", "step-000000000300"])
        self.verify("--series", "run")

    def test_a_damaged_checkpoint_is_an_error_and_no_new_beginning(self):
        self.run_example(2, "save_load", "run")
        for blob in (self.folder / "run").glob("*/*.blob"):
            content = bytearray(blob.read_bytes())
            content[8192] ^= 1
            blob.write_bytes(content)
        lines = self.run_example(2, "save_load", "run", status=1)
        self.assertEqual(len(self.errors_of(lines, 2, "Corrupt: ")), 1, lines)
        self.assertIn("R-CHK-02", self.errors_of(lines, 2, "Corrupt: ").pop())
        self.assertEqual(self.committed("run"), ["step-000000000100"])


class SaveAsyncTest(OneFileTest):
    def test_each_save_holds_the_state_of_its_step_and_the_newest_two_stay(self):
        lines = self.run_example(3, "save_async", "run")
        self.assertEqual([line.split()[1] for line in lines], ["100", "200", "300", "400", "500"])
        self.assertEqual(self.committed("run"), ["step-000000000400", "step-000000000500"])
        self.verify("--series", "run")
        # It has the same state, and looks whether each weight is the number of the step.
        self.assertEqual(self.run_example(2, "save_load", "run")[0], "2 ranks start at step 500")


class ReshardTest(OneFileTest):
    def test_columns_are_loaded_as_rows_on_other_numbers_of_ranks(self):
        self.run_example(4, "reshard", "save", "saved")
        self.verify("saved")
        for ranks in (3, 4, 1):
            lines = self.run_example(ranks, "reshard", "load", "saved")
            self.assertRegex(lines[0], rf"^{ranks} ranks?: 6.7 MB requested; .* together 6.7 MB \(x 1\.000\)")

    def test_nothing_to_load_is_one_error(self):
        lines = self.run_example(2, "reshard", "load", "nowhere", status=1)
        self.assertEqual(len(self.errors_of(lines, 2, "NotFound: ")), 1, lines)


class ResumeTest(OneFileTest):
    def test_resumes_on_any_number_of_ranks_and_keeps_two(self):
        for step, ranks in ((0, 4), (100, 3), (200, 0)):
            self.assertEqual(self.run_example(ranks, "resume", "run"), [f"{ranks or 1} ranks start at step {step}"])
        self.assertEqual(self.committed("run"), ["step-000000000200", "step-000000000300"])
        self.verify("--series", "run")

    def test_ranks_that_cannot_save_end_together(self):
        (self.folder / "run").write_text("no directory")
        lines = self.run_example(3, "resume", "run", status=1)
        self.assertEqual(len([line for line in lines if "run" in line and "rank 0" in line]), 3, lines)


class OwnCollectivesTest(OneFileTest):
    def test_commits_what_all_ranks_wrote(self):
        self.assertEqual(self.run_example(4, "own_collectives", "saved"), ["committed"])
        self.assertEqual(len(list((self.folder / "saved").glob("*.blob"))), 4)
        self.verify("saved")

    def test_a_second_checkpoint_in_one_place_is_refused_and_leaves_nothing(self):
        self.run_example(2, "own_collectives", "saved")
        before = sorted(os.listdir(self.folder / "saved"))
        lines = self.run_example(3, "own_collectives", "saved", status=1)
        self.assertEqual(len([line for line in lines if line.startswith("AlreadyExists")]), 1, lines)
        self.assertEqual(sorted(os.listdir(self.folder / "saved")), before)
        self.verify("saved")

    def test_ranks_that_cannot_write_end_together(self):
        (self.folder / "file").write_text("no directory")
        lines = self.run_example(3, "own_collectives", "file", status=1)
        self.assertEqual(len([line for line in lines if line.startswith("rank ")]), 3, lines)


if __name__ == "__main__":
    MPIEXEC, EXAMPLES, CKPT = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
