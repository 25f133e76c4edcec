#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The archive of the corpus is the same each time, and a reader is tested with nothing but what is in it."""

import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest

import fixtures

CORPUS = pathlib.Path(sys.argv.pop())
SCRIPT = pathlib.Path(sys.argv.pop())
# The entries that are checked: each interpreter takes a tenth of a second.
EVERY = "9"
# A reader that finds nothing wrong anywhere.
BLIND = "print('{\"verdict\": \"committed\", \"violations\": []}')\n"


# One that puts each tensor an element too far to the left.
MISPLACED = """import sys
sys.path.insert(0, ".")
from sealpoint_reference import __main__, load
right = load.Checkpoint.tensor
def tensor(self, name):
    size, data = self.tensors[name].element_size, right(self, name)
    return data[size:] + data[:size]
load.Checkpoint.tensor = tensor
sys.exit(__main__.main([sys.argv[1], sys.argv[2]]))
"""


def make(corpus, archive):
    return subprocess.run([sys.executable, SCRIPT, corpus, archive], capture_output=True, text=True, check=False)


class ArchiveTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.archive = self.folder / "corpus-1.tar.xz"
        done = make(CORPUS, self.archive)
        self.assertEqual(done.returncode, 0, done.stderr)

    def check(self, *command, level="verify"):
        with tarfile.open(self.archive) as archive:
            archive.extraction_filter = getattr(tarfile, "tar_filter", None)  # not before Python 3.11.4
            archive.extractall(self.folder)
        done = fixtures.check_reader(self.folder / "corpus-1", EVERY, *command, level=level)
        self.assertEqual(done.stderr, "")
        return done.returncode, done.stdout.splitlines()

    def test_it_is_the_same_each_time(self):
        copy = self.folder / "fixtures/copy"  # folders above do not matter
        shutil.copytree(CORPUS, copy, symlinks=True)
        again = self.folder / "again/corpus-1.tar.xz"
        again.parent.mkdir()
        self.assertEqual(make(copy, again).returncode, 0)
        self.assertEqual(self.archive.read_bytes(), again.read_bytes())

    def test_it_has_all_of_the_corpus_and_nobody(self):
        with tarfile.open(self.archive) as archive:
            members = archive.getmembers()
        self.assertEqual({(member.uid, member.gid, member.uname, member.mtime) for member in members}, {(0, 0, "", 0)})
        names = {member.name.removeprefix("corpus-1/corpus/") for member in members if "/corpus/" in member.name}
        found = {str(path.relative_to(CORPUS)) for path in CORPUS.rglob("*") if path.name != "stamp"}
        self.assertEqual(names, found)

    def test_its_own_reader_passes_at_each_level(self):
        for level in ("verify", "open", "read"):
            status, lines = self.check(f"{{here}}/{level}.py", level=level)
            self.assertEqual(status, 0, lines)
            self.assertRegex(lines[-1], r"^[2-9]\d entries, 0 differences$")

    def test_a_reader_that_misplaces_elements_does_not_load_the_contents(self):
        (self.folder / "wrong.py").write_text(MISPLACED)
        status, lines = self.check(str(self.folder / "wrong.py"), "read", level="read")
        self.assertEqual(status, 1)
        self.assertTrue(all("loaded spc1:" in line for line in lines[:-1]), lines)
        self.assertEqual(self.check(str(self.folder / "wrong.py"), "open", level="open")[0], 0)

    def test_a_reader_that_sees_nothing_does_not(self):
        (self.folder / "blind.py").write_text(BLIND)
        status, lines = self.check(str(self.folder / "blind.py"))
        self.assertEqual(status, 1)
        self.assertGreater(len(lines), 10)
        (self.folder / "blind.py").write_text("")
        self.assertEqual(self.check(str(self.folder / "blind.py"))[0], 1)

    def test_another_folder_is_refused(self):
        done = make(self.folder, self.folder / "x.tar.xz")
        self.assertEqual(done.returncode, 2)
        self.assertIn("good-everything", done.stderr)

    def test_an_archive_is_not_made_anew(self):
        before = self.archive.read_bytes()
        done = make(CORPUS, self.archive)
        self.assertEqual((done.returncode, self.archive.read_bytes()), (2, before))
        self.assertIn("is there", done.stderr)


if __name__ == "__main__":
    unittest.main()
