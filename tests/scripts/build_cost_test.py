#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What scripts/build_cost.py measures, compares and foretells, with a compiler in place of the real one that takes as long as
a source says.

    build_cost_test.py
"""

import contextlib
import io
import json
import os
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import build_cost  # noqa: E402


class BuildCostTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.build = pathlib.Path(folder.name)
        commands = [
            {"directory": "/", "file": f"/{name}.cc",
             "command": f"/usr/bin/ccache c++ -I x -o CMakeFiles/{target}.dir/{name}.o -c /{name}.cc"}
            for target, name in (("one", "a"), ("one", "b"), ("two", "c"))
        ]
        (self.build / "compile_commands.json").write_text(json.dumps(commands))
        self.rows = self.build / "rows.txt"
        # Seconds of the processors by the last source that a command names.
        self.takes = {"a.cc": 1.0, "b.cc": 3.0, "c.cc": 2.0, "header.cc": 1.0, build_cost.UNIT.name: 2.0}
        self.calls = []

    def run_compiler(self, command, folder="."):
        self.calls.append(command)
        source = next(word for word in command if word.endswith(".cc"))
        return self.takes[pathlib.Path(source).name]

    def main(self, *options, quick=("one", "two")):
        printed = io.StringIO()
        with (
            mock.patch.object(build_cost, "run", self.run_compiler), contextlib.redirect_stdout(printed),
            mock.patch.object(build_cost, "QUICK", {"target": quick, "header": ()}),
            mock.patch.object(build_cost, "headers", lambda: ["sealpoint/h.h"]),
        ):  # fmt: skip
            status = build_cost.main([str(self.build), "--rows", str(self.rows), *options])
        return status, printed.getvalue()

    def test_what_is_recorded_is_in_units_and_holds(self):
        self.assertEqual(self.main("--record")[0], 0)
        self.assertEqual(build_cost.read_rows(self.rows),
                         {("target", "one"): 2.0, ("target", "two"): 1.0, ("header", "sealpoint/h.h"): 0.5})
        self.assertEqual(self.main()[0], 0)
        self.assertFalse(any("ccache" in word for call in self.calls for word in call))

    def test_a_machine_that_is_slower_changes_nothing(self):
        self.main("--record")
        self.takes = {name: 3 * seconds for name, seconds in self.takes.items()}
        self.assertEqual(self.main()[0], 0)

    def test_a_target_of_1_3_times_its_row_fails(self):
        self.main("--record")
        self.takes["c.cc"] = 2.58
        self.assertEqual(self.main("--quick")[0], 0)
        self.takes["c.cc"] = 2.61
        status, printed = self.main("--quick")
        self.assertEqual(status, 1)
        self.assertRegex(printed, r"target two +2\.6 +1\.30   1\.00: 1\.3 times")
        self.assertIn("1.3 times its row in rows.txt or more, or without a row: target two\n", printed)

    def test_one_slow_measurement_is_repeated(self):
        self.main("--record")
        slow = [9.0]
        with mock.patch.object(build_cost.Costs, "seconds", lambda *_: slow.pop() if slow else 2.0):
            self.assertEqual(self.main("--quick", quick=("two",))[0], 0)

    def test_what_has_no_row_fails(self):
        self.rows.write_text("target one 2.00\n")
        self.assertEqual(self.main("--quick")[0], 1)

    def test_the_time_to_come_is_that_of_what_is_not_compiled_yet(self):
        self.main("--record")
        done = self.build / "CMakeFiles/one.dir/a.o"
        done.parent.mkdir(parents=True)
        done.touch()
        with mock.patch("subprocess.run") as ninja:
            ninja.return_value.stdout = "/a.cc\nCMakeFiles/one.dir/a.o\nCMakeFiles/one.dir/b.o\n"
            status, printed = self.main("--seconds", "program")
        # Half of the target's two units of two seconds.
        self.assertEqual((status, int(printed)), (0, round(2.0 / len(os.sched_getaffinity(0)))))

    def test_the_rows_name_what_is_measured_quickly(self):
        rows = build_cost.read_rows(build_cost.ROWS)
        for kind, names in build_cost.QUICK.items():
            for name in names:
                self.assertIn((kind, name), rows)


if __name__ == "__main__":
    unittest.main()
