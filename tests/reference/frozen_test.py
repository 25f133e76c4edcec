#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What was frozen with a format version is as it was then: its texts, its schema, its corpus, and the reader that shows what they
mean. All are in spec/fixtures/corpus-VERSION.tar.xz (scripts/corpus_archive.py); spec/history.md says how a frozen text changes.

    frozen_test.py FIXTURES CORPUS
"""

import pathlib
import sys
import tarfile
import tempfile
import unittest

import fixtures

ROOT = pathlib.Path(__file__).resolve().parents[2]
CORPUS, FIXTURES = pathlib.Path(sys.argv.pop()), pathlib.Path(sys.argv.pop())
VERSION = 1
# What a reader goes by is not changed any more, but where an erratum, a row that begins with E- and names the file, corrects it.
FIXED = ("container.md", "algorithms.md", "reader-rules.md", "limits.md", "tree.md", "content-digest.md")
# These grow: the rows of their tables stay.
GROWING = ("registries.md", "permissive.md")
# What savers do may be said better, and tested elsewhere: the rules stay.
PROTOCOLS = ("commit.md", "series.md", "staged.md")
# The entries of the corpus that the archive's own reader is asked about: each interpreter takes a tenth of a second.
EVERY = "7"


def rows(path):
    """What is reserved, or free, may become something."""
    return {line for line in path.read_text().splitlines() if line.startswith("| ") and "none yet" not in line
            and "| reserved" not in line}


def rules(path):
    return {row.split("|")[1].strip() for row in rows(path) if row.startswith("| R-")}


class FrozenTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        with tarfile.open(FIXTURES / f"corpus-{VERSION}.tar.xz") as archive:
            archive.extractall(folder.name, filter="tar")
        cls.frozen = pathlib.Path(folder.name) / f"corpus-{VERSION}"

    def check_same(self, name, now):
        is_same = (self.frozen / name).read_bytes() == now.read_bytes()
        self.assertTrue(is_same, f"{name} changed after it was frozen, see spec/history.md")

    def check_kept(self, had, now, name):
        self.assertGreater(len(had), 3)
        self.assertEqual(sorted(had - now), [], f"{name} lacks what it had when it was frozen, see spec/history.md")

    def test_texts(self):
        errata = [row for row in rows(ROOT / "spec/errata.md") if row.startswith("| E-")]
        for name in FIXED:
            if not any(f"`{name}`" in row for row in errata):
                self.check_same(f"spec/{name}", ROOT / "spec" / name)
        for name in GROWING:
            self.check_kept(rows(self.frozen / "spec" / name), rows(ROOT / "spec" / name), name)
        for name in PROTOCOLS:
            self.check_kept(rules(self.frozen / "spec" / name), rules(ROOT / "spec" / name), name)
        self.check_kept(rows(self.frozen / "corpus.md"), rows(ROOT / "tests/conformance/corpus.md"), "corpus.md")

    def test_schema(self):
        self.check_same("schema/index.fbs", ROOT / f"schema/v{VERSION}/index.fbs")

    def test_reader(self):
        files = sorted(path.name for path in (self.frozen / "sealpoint_reference").glob("*.py"))
        self.assertGreater(len(files), 15)
        for name in files:
            self.check_same(f"sealpoint_reference/{name}", ROOT / "readers/reference/sealpoint_reference" / name)

    def test_corpus(self):
        """Today's writer makes the same bytes; what today's readers say of them is tested with today's corpus."""
        files = [path for path in (self.frozen / "corpus").rglob("*") if path.is_file() and not path.is_symlink()]
        self.assertGreater(len(files), 800)
        for path in files:
            name = path.relative_to(self.frozen / "corpus")
            self.check_same(f"corpus/{name}", CORPUS / name)

    def test_the_frozen_reader_passes_the_frozen_corpus(self):
        done = fixtures.check_reader(self.frozen, EVERY, "{here}/verify.py")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"[3-9]\d entries, 0 differences\n$")


if __name__ == "__main__":
    unittest.main()
