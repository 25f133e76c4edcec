#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What scripts/test_weight.py counts and compares, that this checkout keeps to it, and that each row of tests/nightly.txt
names what there is.

    weight_test.py BUILD_FOLDER
"""

import json
import pathlib
import re
import sys
import tempfile
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(sys.argv.pop()).resolve()
sys.path.insert(0, str(ROOT / "scripts"))
import test_weight  # noqa: E402


class WeightTest(unittest.TestCase):
    def tree(self, files):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        root = pathlib.Path(folder.name).resolve()
        for path, text in files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)
        return root

    def test_lines_are_those_of_a_commit_of_the_night_and_of_the_product(self):
        files = {"lib/a/a.cc": 5, "python/a.py": 2, "tests/a/long_test.cc": 30, "tests/a/short_test.cc": 4,
                 "fuzz/a.cc": 3, "tests/a/table.txt": 100, "examples/a.cc": 100}
        root = self.tree({**{path: "line\n" * lines for path, lines in files.items()},
                          "tests/nightly.txt": "# Rows.\na.long tests/a/long_*.cc\n"})
        self.assertEqual(test_weight.count(root, files), (7, 30, 7))

    def test_too_many_lines_per_commit_fail(self):
        root = self.tree({"lib/a/a.cc": "line\n" * 6, "include/sealpoint/a.h": "line\n" * 4, "tests/a_test.cc": "line\n" * 8,
                          "tests/nightly.txt": "", "cmake/module_edges.txt": "a:\ninclude/sealpoint a.h a\n",
                          "cmake/components.txt": "# Rows.\ncore 10: a\n"})
        files = ["lib/a/a.cc", "include/sealpoint/a.h", "tests/a_test.cc"]
        with mock.patch.object(test_weight, "tracked", lambda _: files):
            self.assertEqual(test_weight.main([root]), 0)
            (root / "tests/a_test.cc").write_text("line\n" * 9)
            self.assertEqual(test_weight.main([root]), 1)
            (root / "tests/a_test.cc").write_text("")
            self.assertEqual(test_weight.main([root]), 0)
            (root / "lib/a/a.cc").write_text("line\n" * 7)  # above the budget
            self.assertEqual(test_weight.main([root]), 1)
            (root / "lib/a/a.cc").write_text("")
            (root / "tools").mkdir()
            (root / "tools/b.cc").write_text("line\n")  # of no part
            files.append("tools/b.cc")
            self.assertEqual(test_weight.main([root]), 1)

    def differences(self, option, nightly, tests):
        """Of a build in two pieces, one of which holds a source that includes a header."""
        root = self.tree({
            "tests/nightly.txt": nightly, "tests/a/a_test.cc": '#include "tests/a/a.h"\n', "tests/a/a.h": "",
            "tests/a/b_test.cc": "", "tests/p/test_p.py": 'import q\nranks.run("r")\n',
            "tests/p/q.py": "", "tests/p/r.py": "",
            "build/CMakeCache.txt": f"SEALPOINT_NIGHTLY_TESTS:BOOL={option}\n",
        })
        (root / "build/piece.cc").write_text(f'#include "{root}/tests/a/a_test.cc"\n')
        commands = [{"directory": str(root / "build"), "file": "piece.cc"}]
        (root / "build/compile_commands.json").write_text(json.dumps(commands))
        declared = {name: [str(root / word) for word in words] for name, words in tests.items()}
        with mock.patch.object(test_weight, "declared_tests", lambda _: declared):
            return test_weight.differences(root, root / "build")

    def test_what_a_commit_compiles_or_runs_is_not_of_the_night(self):
        self.assertEqual(self.differences("OFF", "a.b tests/a/b_test.cc\n", {"a.a": []}), [])
        self.assertEqual(self.differences("OFF", "a.a\n", {"a.a": []}),
                         ["a.a is listed in tests/nightly.txt, and runs per commit"])
        for pattern, path, tests in (
            ("tests/a/a_*.cc", "tests/a/a_test.cc", {}), ("tests/a/a.h", "tests/a/a.h", {}),
            ("tests/p/q.py", "tests/p/q.py", {"p.p": ["tests/p/test_p.py"]}),
            ("tests/p/r.py", "tests/p/r.py", {"p.p": ["tests/p"]}),
        ):  # fmt: skip
            with self.subTest(pattern):
                self.assertEqual(self.differences("OFF", f"a.b {pattern}\n", tests),
                                 [f"{path} is listed in tests/nightly.txt, and what runs per commit needs it"])

    def test_what_is_of_the_night_is_compiled_then(self):
        self.assertEqual(self.differences("ON", "a.a tests/a/a_test.cc tests/a/a.h\n", {"a.a": []}), [])
        self.assertEqual(self.differences("ON", "a.b tests/a/b_test.cc\n", {}),
                         ["tests/a/b_test.cc is listed in tests/nightly.txt, and no test is built from it"])

    def test_this_build_keeps_to_the_list(self):
        self.assertEqual(test_weight.differences(ROOT, BUILD), [])

    @unittest.skipUnless((ROOT / ".git").exists(), "no git here to ask for the sources")
    def test_this_checkout_keeps_to_the_limit(self):
        self.assertEqual(test_weight.main([]), 0)

    def test_each_row_names_a_test_or_a_stage_of_the_night_and_files(self):
        script = (ROOT / "scripts/test.sh").read_text()
        stages = re.search(r"^nightly_stages=\(([^)]*)\)$", script, re.M)[1].split()
        declared = "\n".join(path.read_text() for path in sorted((ROOT / "tests").rglob("CMakeLists.txt")))
        targets = (ROOT / "fuzz/support.cmake").read_text()
        for name, patterns in test_weight.nightly_rows(ROOT):
            with self.subTest(name):
                kind, _, test = name.partition(".")
                added = rf"sealpoint_add_(gtest\(\s*{kind}|{kind}_test\()\s*{test}\b|NAME {kind}\.{test}\b"
                is_declared = re.search(added, declared)
                is_declared = is_declared or re.search(rf"^foreach\([^)]*\b{test}\b", declared, re.M)
                is_replay = re.search(rf"\b{test.removeprefix('replay_')}\b", targets)
                is_over_fake = test.endswith("_over_fake") and test.removesuffix("_over_fake") in ("device", "load", "save")
                is_python = (ROOT / f"tests/python/test_{test}.py").exists()
                self.assertTrue(name in stages or is_declared or is_replay or is_over_fake or is_python,
                                "no such test, and no stage of scripts/test.sh --nightly")
                for pattern in patterns:
                    self.assertTrue(list(ROOT.glob(pattern)), pattern)


if __name__ == "__main__":
    unittest.main()
