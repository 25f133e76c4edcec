#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What scripts/test_weight.py counts, and that each row of tests/nightly.txt names what there is."""

import pathlib
import re
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import test_weight  # noqa: E402


class WeightTest(unittest.TestCase):
    def test_lines_are_those_of_a_commit_of_the_night_and_of_the_product(self):
        with tempfile.TemporaryDirectory() as folder:
            files = {"lib/a/a.cc": 5, "python/a.py": 2, "tests/a/long_test.cc": 30, "tests/a/short_test.cc": 4,
                     "fuzz/a.cc": 3, "tests/a/table.txt": 100, "examples/a.cc": 100}
            for path, lines in files.items():
                (pathlib.Path(folder) / path).parent.mkdir(parents=True, exist_ok=True)
                (pathlib.Path(folder) / path).write_text("line\n" * lines)
            (pathlib.Path(folder) / "tests/nightly.txt").write_text("# Rows.\na.long tests/a/long_*.cc\n")
            self.assertEqual(test_weight.count(pathlib.Path(folder), files), (7, 30, 7))

    def test_each_row_names_a_test_or_a_stage_of_the_night_and_files(self):
        script = (ROOT / "scripts/test.sh").read_text()
        stages = re.search(r"^nightly_stages=\((.*)\)$", script, re.M)[1].split()
        declared = "\n".join(path.read_text() for path in sorted((ROOT / "tests").rglob("CMakeLists.txt")))
        for name, patterns in test_weight.nightly_rows(ROOT):
            with self.subTest(name):
                kind, _, test = name.partition(".")
                is_declared = re.search(rf"sealpoint_add_(gtest\(\s*{kind}|{kind}_test\()\s*{test}\b", declared)
                self.assertTrue(name in stages or is_declared, "no such test, and no stage of scripts/test.sh --nightly")
                for pattern in patterns:
                    self.assertTrue(list(ROOT.glob(pattern)), pattern)


if __name__ == "__main__":
    unittest.main()
