#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Changes the version in one place after the other and expects check_versions.py to name it."""

import pathlib
import re
import shutil
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import check_versions  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]


class CheckVersionsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / "debian").mkdir()
        names = {name for name, _ in check_versions.PLACES} | {"CMakeLists.txt", "pyproject.toml"}
        for owner, _, places in check_versions.COPIES:
            names |= {owner, *(name for name, _ in places)}
        for name in [*names, *(f"debian/{path.name}" for path in (ROOT / "debian").glob("*.install"))]:
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, self.root / name)

    def test_each_place_is_compared(self):
        self.assertEqual(list(check_versions.differences(self.root)), [])
        for name, expression in check_versions.PLACES:
            path = self.root / name
            text = path.read_text()
            last = re.search(expression, text, re.M).end(re.compile(expression).groups)
            for changed in (text[:last] + "7" + text[last:], ""):
                with self.subTest(name=name, expression=expression, empty=not changed):
                    path.write_text(changed)
                    self.assertEqual({line.split(":")[0] for line in check_versions.differences(self.root)}, {name})
            path.write_text(text)

    def test_each_copy_is_compared(self):
        self.assertEqual(list(check_versions.differing_copies(self.root)), [])
        for owner, decided, places in check_versions.COPIES:
            for name, expression in ((owner, decided), *places):
                path = self.root / name
                text = path.read_text()
                last = re.search(expression, text, re.M).end(1)
                for changed in (text[:last] + "7" + text[last:], re.sub(expression, "", text, flags=re.M)):
                    with self.subTest(name=name, expression=expression, length=len(changed)):
                        path.write_text(changed)
                        found = list(check_versions.differing_copies(self.root))
                        self.assertTrue(found and all(name in line for line in found), found)
                path.write_text(text)

    def test_each_place_says_which_candidate_it_is(self):
        path = self.root / "CMakeLists.txt"
        path.write_text(re.sub(r'(SEALPOINT_PRERELEASE) "\w*"', r'\1 "rc77"', path.read_text()))
        self.assertEqual({line.split(":")[0] for line in check_versions.differences(self.root)}, {*check_versions.CANDIDATES})

    def test_what_follows_from_the_version(self):
        version = re.search(r"^  VERSION (\d+)\.(\d+)", (ROOT / "CMakeLists.txt").read_text(), re.M)
        (self.root / f"debian/libsealpoint{version[1]}.{version[2]}.install").unlink()
        self.assertEqual(len(list(check_versions.differences(self.root))), 1)
        path = self.root / "pyproject.toml"
        path.write_text(path.read_text().replace("^  VERSION (?P", "^ VERSION (?P"))
        self.assertEqual([line.split(":")[0] for line in check_versions.differences(self.root)], ["debian", "pyproject.toml"])


if __name__ == "__main__":
    unittest.main()
