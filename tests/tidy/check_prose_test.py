#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
import pathlib
import subprocess
import sys
import tempfile
import unittest

CHECK = pathlib.Path(__file__).with_name("check_prose.py")
GOOD = "The saver removes its files after a failure. "


class CheckProse(unittest.TestCase):
    def check(self, files):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, text in files.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            done = subprocess.run([sys.executable, str(CHECK), "--root", folder], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout

    def test_plain_sentences_pass(self):
        self.assertEqual(self.check({"CONTRIBUTING.md": GOOD * 50})[0], 0)

    def test_pronouns_for_nouns_fail(self):
        status, output = self.check({"include/a.h": "// Removes what those left whose ranks failed.\n" * 9})
        self.assertEqual(status, 1)
        self.assertIn("error: public headers", output)

    def test_long_sentences_fail(self):
        self.assertEqual(self.check({"python/sealpoint/a.py": '"""' + "It is one that is long and " * 9 + '."""'})[0], 1)

    def test_code_and_tables_are_no_prose(self):
        self.assertEqual(self.check({"README.md": GOOD * 9 + "\n```\nwhat\n```\n| whose |\n"})[0], 0)


if __name__ == "__main__":
    unittest.main()
