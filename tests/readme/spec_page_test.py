#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The single page of the specification: its links lead somewhere, and it is not made of a text that leads nowhere."""

import collections
import pathlib
import re
import shutil
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import spec_page  # noqa: E402


class SpecPageTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.spec = pathlib.Path(folder.name) / "spec"
        shutil.copytree(ROOT / "spec", self.spec)

    def edit(self, name, old, new):
        text = (self.spec / name).read_text()
        self.assertIn(old, text)
        (self.spec / name).write_text(text.replace(old, new))

    def assert_broken(self, words):
        with self.assertRaisesRegex(spec_page.Broken, words):
            str(spec_page.Page(self.spec))

    def test_every_link_leads_to_one_place(self):
        page = str(spec_page.Page(self.spec))
        places = collections.Counter(re.findall(r'<a id="([^"]+)">', page))
        self.assertEqual([], [place for place, count in places.items() if count != 1])
        links = set(re.findall(r"\]\(#([^)]+)\)", page))
        self.assertGreater(len(links), 150)
        self.assertEqual(set(), links - set(places))
        rules = set(re.findall(rf"^\| ({spec_page.RULE}) \|", "\n".join(
            path.read_text() for path in self.spec.glob("*.md")), re.M))
        self.assertGreater(len(rules), 100)
        self.assertEqual(set(), {rule.lower() for rule in rules} - set(places))

    def test_all_of_the_text_is_there(self):
        words = set(re.findall(r"\w+", str(spec_page.Page(self.spec))))
        for path in [*self.spec.glob("*.md"), ROOT / spec_page.SCHEMA]:
            if path.stem not in spec_page.LEFT_OUT:
                self.assertEqual(set(), set(re.findall(r"\w+", path.read_text())) - words, path.name)

    def test_what_leads_nowhere_is_an_error(self):
        self.edit("container.md", "- **R-HDR-10** ", "- **R-HDR-99** ")
        self.assert_broken("refers to R-HDR-10, which no chapter states")
        self.edit("container.md", "- **R-HDR-99** ", "- **R-HDR-10** ")
        self.edit("series.md", "`container.md` §8", "`container.md` §80")
        self.assert_broken("section 80 of container.md")
        self.edit("series.md", "`container.md` §80", "`contain.md` §8")
        self.assert_broken("contain.md, which is no chapter")
        self.edit("series.md", "`contain.md` §8", "[it](contain.md)")
        self.assert_broken("links to contain.md")
        self.edit("series.md", "[it](contain.md)", "decision 9999")
        self.assert_broken("decision 9999")

    def test_a_rule_is_stated_in_one_chapter(self):
        self.edit("series.md", "| R-SER-26 |", "| R-CMT-01 |")
        self.assert_broken("R-CMT-01 is stated in commit.md and in series.md")

    def test_a_file_without_a_chapter_is_an_error(self):
        (self.spec / "new.md").write_text("# New\n")
        self.assert_broken("new")


if __name__ == "__main__":
    unittest.main()
