#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The order, the report and the exit status of scripts/test.sh and .ci/run, with programs in place of all that it runs.

    stages_test.py SCRIPT
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(sys.argv.pop())
PRODUCT = ["packages", "gcc", "python"]
REST = ["deep", "sanitizers", "lint", "frameworks", "minimal", "site", "demo", "threads", "aarch64"]
NIGHTLY = ["enumerations", "models", "mutants", "mutants-full", "newest-torch", "newest-frameworks", "frameworks-full",
           "free-threaded", "fuzz-long", "presets", "aarch64-full", "builds", "peers", "release", "scale"]
# Writes down how it was called; FAILING is an expression for beginnings of calls.
STUB = """#!/bin/bash
call="$(basename "$0") $*"
echo "$call" >>"$CALLS"
if [ -n "${FAILING:-}" ] && [[ $call =~ ^($FAILING) ]]; then echo "what went wrong"; exit 3; fi
"""


class StagesTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / "scripts").mkdir()
        (self.root / "build/plain/tools/ckpt").mkdir(parents=True)
        (self.root / "bin").mkdir()
        self.calls = self.root / "calls"
        self.calls.touch()
        shutil.copy(SCRIPT, self.root / "scripts/test.sh")
        stubs = [f"bin/{name}" for name in ("cmake", "ctest", "git", "clang-format-19")]
        names = ("install_packages.sh", "testing_table.py", "fuzz.sh", "python_env.sh", "mutants.py", "tidy.py", "each_source.py",
                 "build_cost.sh", "demo.sh", "model.sh", "newest_torch.sh", "newest_frameworks.sh", "frameworks.sh", "peers.sh",
                 "scale.sh", "wheels.sh", "debian.sh", "site.sh", "aarch64_sysroot.sh", "free_threaded.sh")
        for name in [*stubs, *(f"scripts/{item}" for item in names), "build/plain/tools/ckpt/ckpt"]:
            (self.root / name).write_text(STUB)
            (self.root / name).chmod(0o755)

    def run_stages(self, *stages, script="scripts/test.sh", **environment):
        path = f"{self.root / 'bin'}:{os.environ['PATH']}"
        done = subprocess.run(
            [self.root / script, *stages],
            env={**os.environ, "PATH": path, "CALLS": str(self.calls), **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
            check=False,
        )
        return done.returncode, done.stdout, self.calls.read_text().splitlines()

    def outcomes(self, output):
        summary = output.rpartition("======== summary ========\n")[2].splitlines()
        return [tuple(line.split()[:2]) for line in summary]

    def test_all_passed_is_status_0(self):
        status, output, calls = self.run_stages("--all")
        self.assertEqual(self.outcomes(output), [(stage, "passed") for stage in PRODUCT + REST], output)
        self.assertEqual(status, 0, output)
        lines = re.findall(r"passed +\d+ s, +\d+ s of the processors\n", output)
        self.assertEqual(len(lines), len(PRODUCT + REST), output)
        for call in ("cmake --workflow --preset gcc", "site.sh", "tidy.py build/tidy"):
            self.assertTrue(any(item.startswith(call) for item in calls), call)

    def test_a_failure_is_named_and_the_others_run(self):
        for failing, stage in (
            ("cmake --workflow --preset gcc", "gcc"), ("cmake --workflow --preset threads", "threads"),
            ("testing_table.py", "gcc"), ("tidy.py", "lint"), ("python_env.sh", "python"),
            ("site.sh", "site"), ("aarch64_sysroot.sh", "aarch64"),
        ):  # fmt: skip
            with self.subTest(failing):
                status, output, _ = self.run_stages("--all", FAILING=failing)
                self.assertEqual(status, 1, output)
                self.assertIn((stage, "FAILED"), self.outcomes(output))
                self.assertEqual(len(self.outcomes(output)), len(PRODUCT + REST))
                self.assertIn(f"======== {stage} failed; its last lines ========", output)

    def test_a_source_that_does_not_compile_alone_is_a_failure_of_the_night(self):
        status, output, _ = self.run_stages("enumerations", FAILING="each_source.py")
        self.assertEqual((status, self.outcomes(output)), (1, [("enumerations", "FAILED")]), output)

    def test_stages_for_which_no_time_is_left_are_named(self):
        status, output, calls = self.run_stages("lint", "site", SEALPOINT_STAGES_UNTIL="1")
        self.assertEqual((status, self.outcomes(output)), (0, [("lint", "not"), ("site", "not")]), output)
        self.assertFalse([call for call in calls if not call.startswith("git")])
        self.assertIn("no time was left", output)
        _, output, _ = self.run_stages("site", SEALPOINT_STAGES_UNTIL="99999999999")
        self.assertEqual(self.outcomes(output), [("site", "passed")], output)

    def test_a_stage_without_the_archive_of_debian_passes(self):
        for script, stage in ("aarch64_sysroot.sh", "aarch64"), ("free_threaded.sh", "free-threaded"):
            (self.root / "scripts" / script).write_text(STUB + "exit 77\n")
            status, output, calls = self.run_stages(stage)
            self.assertEqual((status, self.outcomes(output)), (0, [(stage, "passed")]), output)
            self.assertFalse(any(call.startswith("cmake") for call in calls), calls)

    def test_each_group_of_stages_is_what_its_name_says(self):
        for option, stages in ((), PRODUCT), (("--rest",), REST), (("--nightly",), NIGHTLY):
            with self.subTest(option):
                status, output, _ = self.run_stages(*option)
                self.assertEqual((status, self.outcomes(output)), (0, [(stage, "passed") for stage in stages]), output)

    def test_each_test_of_gcc_belongs_to_one_stage(self):
        presets = json.loads((SCRIPT.parents[1] / "CMakePresets.json").read_text())
        filters = {preset["name"]: preset.get("filter") for preset in presets["testPresets"]}
        deep = filters["deep"]["include"]["label"]
        self.assertEqual(filters["gcc"], {"exclude": {"label": deep}})
        self.assertEqual(filters["deep"], {"include": {"label": deep}})
        self.assertEqual(filters["enumerations"], {"include": {"label": "^nightly$"}})
        self.assertEqual(filters["python-nightly"], {"include": {"name": "^python\\.", "label": "^nightly$"}})

    def test_only_the_night_declares_the_tests_of_the_night(self):
        presets = json.loads((SCRIPT.parents[1] / "CMakePresets.json").read_text())
        configured = {preset["name"]: preset for preset in presets["configurePresets"]}

        def has_nightly(name):
            preset = configured[name]
            own = preset.get("cacheVariables", {}).get("SEALPOINT_NIGHTLY_TESTS")
            return own or (has_nightly(preset["inherits"]) if "inherits" in preset else None)

        for workflow in presets["workflowPresets"]:
            name = workflow["name"]
            expected = "ON" if name in ("aarch64-full", "enumerations", "python-nightly") else "OFF"
            self.assertEqual(has_nightly(workflow["steps"][0]["name"]), expected, name)

    def test_go_has_a_cache_where_nobody_has_a_home(self):
        (self.root / "bin/cmake").write_text(STUB + 'echo "Go: $GOCACHE" >>"$CALLS"\n')
        for given, expected in ("", self.root / "build/go-cache"), ("/given", "/given"):
            _, _, calls = self.run_stages("minimal", GOCACHE=given)
            self.assertIn(f"Go: {expected}", calls)

    def test_tests_that_write_among_the_sources_fail(self):
        (self.root / "bin/git").write_text(STUB + "ls x 2>/dev/null || true\n")
        (self.root / "bin/cmake").write_text(STUB + "touch x\n")
        status, output, _ = self.run_stages("minimal")
        self.assertEqual((status, self.outcomes(output)), (1, [("minimal", "passed")]), output)
        self.assertIn("Files among the sources are new or changed:\nx\n", output)

    def test_what_a_failed_test_printed_is_said_at_the_end(self):
        result = " 1/3 Test #1: good ....   Passed    0.1 sec\nfine\n 2/3 Test #2: bad ....***Failed    0.1 sec\nwhy\n" \
            " 3/3 Test #3: idle ....***Skipped   0.1 sec\nno device\n"
        (self.root / "bin/cmake").write_text(STUB + f"cat <<END\n{result}END\nexit 8\n")
        _, output, _ = self.run_stages("minimal")
        end = output.partition("======== minimal failed; its tests ========\n")[2].partition("\n\n")[0]
        self.assertEqual(end, " 2/3 Test #2: bad ....***Failed    0.1 sec\nwhy")

    def test_ci_says_last_what_failed_first(self):
        (self.root / ".ci").mkdir()
        shutil.copy(SCRIPT.parents[1] / ".ci/run", self.root / ".ci/run")
        heading = "======== python failed; its last lines ========\nwhat went wrong"
        for failing, status, heard in ("none", 0, 0), ("cmake --workflow --preset python", 1, 2), ("tidy.py", 1, 0):
            with self.subTest(failing):
                found, output, calls = self.run_stages(FAILING=failing, script=".ci/run")
                self.assertEqual((found, output.count(heading)), (status, heard), output)
                self.assertTrue(any(call.startswith("demo.sh") for call in calls))
                if heard:
                    self.assertIn(heading, output.rpartition("demo         passed")[2])

    def test_stages_are_chosen_by_name(self):
        status, output, calls = self.run_stages("minimal", "lint")
        self.assertEqual((status, self.outcomes(output)), (0, [("minimal", "passed"), ("lint", "passed")]))
        self.assertFalse(any("--preset gcc" in call for call in calls))
        status, output, _ = self.run_stages("minimal", "other")
        self.assertEqual(status, 64)
        self.assertIn("No stage other; there are: packages gcc", output)


if __name__ == "__main__":
    unittest.main()
