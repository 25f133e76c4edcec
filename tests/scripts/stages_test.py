#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The order, the report and the exit status of scripts/test.sh, with programs in place of all that it runs.

    stages_test.py SCRIPT
"""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

SCRIPT = pathlib.Path(sys.argv.pop())
PRODUCT = ["packages", "gcc", "python"]
REST = ["deep", "sanitizers", "threads", "minimal", "frameworks", "builds", "mutants", "lint", "demo"]
NIGHTLY = ["models", "mutants-full", "newest-torch", "frameworks-full", "fuzz-long", "peers", "scale"]
# Writes down how it was called; SLOW and FAILING are expressions for beginnings of calls.
STUB = """#!/bin/bash
call="$(basename "$0") $*"
echo "$call" >>"$CALLS"
if [ -n "${SLOW:-}" ] && [[ $call =~ ^($SLOW) ]]; then sleep "${SECONDS_OF_SLOW:-1}"; fi
if [ -n "${FAILING:-}" ] && [[ $call =~ ^($FAILING) ]]; then echo "what went wrong"; exit 3; fi
"""


class StagesTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / "scripts").mkdir()
        (self.root / "build/plain/tools/ckpt-verify").mkdir(parents=True)
        (self.root / "build/tidy").mkdir(parents=True)
        (self.root / "build/tidy/build.ninja").touch()
        (self.root / "bin").mkdir()
        self.calls = self.root / "calls"
        self.calls.touch()
        shutil.copy(SCRIPT, self.root / "scripts/test.sh")
        stubs = [f"bin/{name}" for name in ("cmake", "ctest", "git", "clang-format-19", "ninja", "ccache")]
        names = ("install_packages.sh", "testing_table.py", "fuzz.sh", "python_env.sh", "mutants.py", "tidy.py", "each_source.py",
                 "demo.sh", "model.sh", "newest_torch.sh", "frameworks.sh", "peers.sh", "scale.sh")
        for name in [*stubs, *(f"scripts/{one}" for one in names), "build/plain/tools/ckpt-verify/ckpt-verify"]:
            (self.root / name).write_text(STUB)
            (self.root / name).chmod(0o755)

    def start(self, *stages, **environment):
        path = f"{self.root / 'bin'}:{os.environ['PATH']}"
        return subprocess.Popen(
            [self.root / "scripts/test.sh", *stages],
            env={**os.environ, "PATH": path, "CALLS": str(self.calls), **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run_stages(self, *stages, **environment):
        job = self.start(*stages, **environment)
        output = job.communicate(timeout=60)[0]
        return job.returncode, output, self.calls.read_text().splitlines()

    def outcomes(self, output):
        summary = output.rpartition("======== summary ========\n")[2].splitlines()
        return [tuple(line.split()[:2]) for line in summary]

    def test_all_passed_is_status_0_whether_or_not_all_was_built_ahead(self):
        for slow in ({}, {"SLOW": "ctest --test-dir build/check"}, {"SLOW": "scripts/tidy.py"}):
            with self.subTest(slow):
                status, output, calls = self.run_stages("--all", **slow)
                self.assertEqual(self.outcomes(output), [(stage, "passed") for stage in PRODUCT + REST], output)
                self.assertEqual(status, 0, output)
                lines = re.findall(r"passed +\d+ s, +\d+ s of the processors\n", output)
                self.assertEqual(len(lines), len(PRODUCT + REST), output)
                for call in ("ctest --test-dir build/check", "mutants.py --quick", "tidy.py build/tidy"):
                    self.assertTrue(any(one.startswith(call) for one in calls), call)

    def test_a_failure_is_named_and_the_others_run(self):
        for failing, stage in (
            ("ctest --test-dir build/check", "gcc"), ("cmake --build build/tsan", "threads"),
            ("testing_table.py", "gcc"), ("tidy.py", "lint"), ("cmake --preset python", "python"), ("each_source.py", "deep"),
        ):  # fmt: skip
            with self.subTest(failing):
                status, output, _ = self.run_stages("--all", FAILING=failing)
                self.assertEqual(status, 1, output)
                self.assertIn((stage, "FAILED"), self.outcomes(output))
                self.assertEqual(len(self.outcomes(output)), len(PRODUCT + REST))
                self.assertIn(f"======== {stage} failed; its last lines ========", output)

    def test_each_group_of_stages_is_what_its_name_says(self):
        for option, stages in ((), PRODUCT), (("--rest",), REST), (("--nightly",), NIGHTLY):
            with self.subTest(option):
                status, output, _ = self.run_stages(*option)
                self.assertEqual((status, self.outcomes(output)), (0, [(stage, "passed") for stage in stages]), output)

    def test_each_test_of_gcc_belongs_to_one_stage(self):
        calls = self.run_stages("gcc", "deep")[2]
        left_out = [one.split(" -LE ")[1] for one in calls if " -LE " in one]
        taken = [one.split(" -L ")[1] for one in calls if " -L " in one]
        self.assertEqual(left_out, taken)
        self.assertEqual(len(taken), 1)

    def test_a_warning_fails_although_it_is_no_error_for_users(self):
        (self.root / "bin/cmake").write_text(STUB + "echo 'lib/a.cc:3:1: warning: unused'\n")
        status, output, _ = self.run_stages("gcc")
        self.assertEqual((status, self.outcomes(output)), (1, [("gcc", "FAILED")]), output)

    def test_stages_are_chosen_by_name(self):
        status, output, calls = self.run_stages("minimal", "lint")
        self.assertEqual((status, self.outcomes(output)), (0, [("minimal", "passed"), ("lint", "passed")]))
        self.assertFalse(any("build/check" in call for call in calls))
        status, output, _ = self.run_stages("minimal", "other")
        self.assertEqual(status, 64)
        self.assertIn("No stage other; there are: packages gcc", output)

    def test_what_is_built_ahead_ends_with_the_script(self):
        slow = {"SLOW": "ctest --test-dir build/check|cmake --build build/tsan", "SECONDS_OF_SLOW": "50"}
        job = self.start("--all", **slow)
        deadline = time.monotonic() + 30
        while "cmake --build build/tsan" not in self.calls.read_text() and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertIn("cmake --build build/tsan", self.calls.read_text())
        os.killpg(job.pid, signal.SIGINT)  # as a terminal does
        self.assertNotEqual(job.wait(timeout=30), 0)
        deadline = time.monotonic() + 30
        while self.running() and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertEqual(self.running(), [])
        job.stdout.close()

    def running(self):
        """Programs that were started here and have not ended."""
        found = []
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                command = (process / "cmdline").read_bytes()
            except OSError:
                continue
            if str(self.root).encode() in command and int(process.name) != os.getpid():
                found.append(command)
        return found


if __name__ == "__main__":
    unittest.main()
