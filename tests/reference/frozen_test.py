#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What was frozen with a format version is as it was then: its texts, its schema and its corpus. They are in
spec/fixtures/corpus-VERSION.tar.xz (scripts/corpus_archive.py), with the reader that shows what they mean; spec/history.md says
how a frozen text changes.

    frozen_test.py FIXTURES CORPUS
"""

import difflib
import hashlib
import pathlib
import re
import sys
import tarfile
import tempfile
import unittest

import fixtures

ROOT = pathlib.Path(__file__).resolve().parents[2]
CORPUS, FIXTURES = pathlib.Path(sys.argv.pop()), pathlib.Path(sys.argv.pop())
VERSION = 1
# What a reader goes by is not changed any more, but where an erratum corrects it, with its number.
FIXED = ("container.md", "algorithms.md", "reader-rules.md", "limits.md", "tree.md", "content-digest.md", "commit.md", "series.md",
         "staged.md")
# These grow: the rows of their tables stay.
GROWING = ("registries.md", "permissive.md")
# Of the archive, which is never packed again.
ARCHIVE_SHA256 = "471f6666ae4d36d69d92e89430163c7d7a21e58da7e25918ed6ab8db4f365c45"
# The entries of the corpus that the archive's own reader is asked about: each interpreter takes a tenth of a second.
EVERY = "7"


def rows(path):
    """Of what is reserved, all but the last cell, which says so: it may become something. What is free is left out."""
    lines = [line for line in path.read_text().splitlines() if line.startswith("| ") and "none yet" not in line]
    return {re.sub(r"\| reserved[^|]*\|$", "", line) if "| reserved" in line else line for line in lines}


def units(text):
    """Paragraphs, and the rows of tables; of a rule that has a test, all but the name of the test."""
    for block in text.split("\n\n"):
        lines = block.splitlines() if block.startswith("|") else [block]
        yield from (re.sub(r"^(\| R-\w{3}-\d\d \| [\w-]+ \|) tests/[^|]*\|", r"\1", line) for line in lines)


def unexplained(frozen, now, errata):
    """What was changed, or added, without the number of one of these errata in it; what was taken away always is."""
    had, has = list(units(frozen)), list(units(now))
    for kind, begin, end, low, high in difflib.SequenceMatcher(None, had, has, autojunk=False).get_opcodes():
        if kind == "delete" or (kind == "replace" and high - low < end - begin):
            yield from had[begin:end]
        elif kind != "equal":
            yield from (unit for unit in has[low:high] if not set(re.findall(r"E-\d+", unit)) & errata)


def errata_of(name, errata):
    """The numbers of the rows that say that they correct this file."""
    found = (re.match(r"\| (E-\d+) \|([^|]*)\|", row) for row in errata.splitlines())
    return {row[1] for row in found if row and f"`{name}`" in row[2]}


class UnexplainedTest(unittest.TestCase):
    FROZEN = "One.\n\n| a | 1 |\n| b | 2 |\n\nTwo."

    def test_a_change_needs_its_erratum_where_it_stands(self):
        errata = errata_of("limits.md", "| E-1 | `limits.md` | x |\n| E-2 | `tree.md` | `limits.md` |\n")
        self.assertEqual(errata, {"E-1"})
        for now, found in (
            (self.FROZEN, []),
            (self.FROZEN.replace("| b | 2 |", "| b | 3 (E-1) |"), []),
            (self.FROZEN.replace("Two.", "Two. *Corrected by E-1.*"), []),
            (self.FROZEN.replace("| b | 2 |", "| b | 3 |"), ["| b | 3 |"]),
            (self.FROZEN.replace("| b | 2 |", "| b | 3 (E-2) |"), ["| b | 3 (E-2) |"]),
            (self.FROZEN.replace("One.", "One. (E-1)").replace("Two.", "Three."), ["Three."]),
            (self.FROZEN.replace("\n\nTwo.", ""), ["Two."]),
            (self.FROZEN + "\n\nThree.", ["Three."]),
            (self.FROZEN.replace("| a | 1 |\n| b | 2 |", "| b | 3 (E-1) |"), ["| a | 1 |", "| b | 2 |"]),
        ):  # fmt: skip
            self.assertEqual(list(unexplained(self.FROZEN, now, errata)), found, now)


class FrozenTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        with tarfile.open(FIXTURES / f"corpus-{VERSION}.tar.xz") as archive:
            archive.extraction_filter = getattr(tarfile, "tar_filter", None)  # not before Python 3.11.4
            archive.extractall(folder.name)
        cls.frozen = pathlib.Path(folder.name) / f"corpus-{VERSION}"

    def check_same(self, name, now):
        is_same = (self.frozen / name).read_bytes() == now.read_bytes()
        self.assertTrue(is_same, f"{name} changed after it was frozen, see spec/history.md")

    def check_kept(self, had, now, name):
        self.assertGreater(len(had), 3)
        self.assertEqual(sorted(had - now), [], f"{name} lacks what it had when it was frozen, see spec/history.md")

    def test_texts(self):
        errata = (ROOT / "spec/errata.md").read_text()
        for name in FIXED:
            frozen, now = ((root / "spec" / name).read_text() for root in (self.frozen, ROOT))
            changed = list(unexplained(frozen, now, errata_of(name, errata)))
            self.assertEqual(changed, [], f"{name} changed after it was frozen, see spec/history.md")
        for name in GROWING:
            now = rows(ROOT / "spec" / name)
            in_any_state = {re.sub(r"\|[^|]*\|$", "", row) for row in now}  # what was reserved may be in use
            self.check_kept(rows(self.frozen / "spec" / name), now | in_any_state, name)
        self.check_kept(rows(self.frozen / "corpus.md"), rows(ROOT / "tests/conformance/corpus.md"), "corpus.md")
        heading = f"\n## Version {VERSION}\n"
        told = [(root / "spec/history.md").read_text().partition(heading)[2].partition("\n## ")[0] for root in (self.frozen, ROOT)]
        self.assertGreater(len(told[0]), 100)
        self.assertEqual(*told, f"history.md tells version {VERSION} otherwise than when it was frozen")

    def test_archive(self):
        found = hashlib.sha256((FIXTURES / f"corpus-{VERSION}.tar.xz").read_bytes()).hexdigest()
        self.assertEqual(found, ARCHIVE_SHA256, "a frozen archive is never packed again")

    def test_contents(self):
        """What the entries of the corpus hold does not change either."""
        self.check_kept(set((self.frozen / "contents.txt").read_text().splitlines()),
                        set((ROOT / "tests/conformance/contents.txt").read_text().splitlines()), "contents.txt")

    def test_schema(self):
        self.check_same("schema/index.fbs", ROOT / f"schema/v{VERSION}/index.fbs")

    def test_corpus(self):
        """Today's writer makes the same bytes, of which today's readers say the same, as they are asked about today's corpus."""
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
