#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each checkpoint of spec/fixtures is whole and holds what was written, for the library and for the reader in Python; those of
the draft once they are copied.

    fixtures_test.py FIXTURES CKPT
"""

import hashlib
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import fixtures
from sealpoint_reference.content import checkpoint_digest
from sealpoint_reference.directory import PathDirectory
from sealpoint_reference.load import Checkpoint
from sealpoint_reference.verify import verify_path

CKPT, FIXTURES = sys.argv.pop(), pathlib.Path(sys.argv.pop())


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, check=False)


class FixturesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        listed = fixtures.unpack(FIXTURES, folder.name)
        cls.listed = {path: facts for path, facts in listed.items() if not fixtures.is_draft(path)}
        cls.drafts = {path: facts for path, facts in listed.items() if fixtures.is_draft(path)}

    def check(self, listed):
        """Each is whole and holds what was written, for the library and for the second reader."""
        verified = run(CKPT, "verify", "--json", *map(str, listed))
        self.assertEqual(verified.returncode, 0, verified.stdout + verified.stderr)
        digested = run(CKPT, "digest", "--json", *map(str, listed))
        found = {pathlib.Path(load["path"]): load for load in json.loads(digested.stdout)["digests"]}
        for path, facts in listed.items():
            one = found[path]
            self.assertEqual((one["content"], one["tensor_count"], one["object_count"]),
                             (facts["content"], facts["tensors"], facts["objects"]), path.name)
            self.assertEqual(verify_path(path).verdict, "committed", path.name)
            self.assertEqual(checkpoint_digest(Checkpoint(PathDirectory(path))), facts["content"], path.name)

    def test_no_archive_is_another_one(self):
        listed = [line.split() for line in (FIXTURES / "digests.txt").read_text().splitlines()]
        found = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in FIXTURES.glob("*.tar.xz")}
        self.assertEqual({name: digest for digest, name in listed}, found)

    def test_they_are_read(self):
        self.assertGreater(len(self.listed), 20)
        self.check(self.listed)

    def test_drafts_are_copied(self):
        self.assertGreater(len(self.drafts), 20)
        copies = {}
        for path, facts in self.drafts.items():
            to = self.folder / "copies" / path.name
            copied = run(CKPT, "copy", str(path), str(to))
            self.assertEqual(copied.returncode, 0, copied.stderr)
            copies[to] = facts
        self.check(copies)

    def test_drafts_are_refused_by_all_others(self):
        verified = run(CKPT, "verify", *map(str, self.drafts))
        self.assertEqual(verified.returncode, 3)
        self.assertEqual(verified.stdout.count("x converts it to version 1"), len(self.drafts), verified.stdout)
        for path in self.drafts:
            self.assertEqual(verify_path(path).verdict, "unsupported", path.name)


if __name__ == "__main__":
    unittest.main()
