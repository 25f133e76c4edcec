#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of check_documents.py: broken links are found, and right ones are not."""

import pathlib
import tempfile
import unittest

import check_documents


class LinksTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "other.md").write_text(
            "# The `code` of [a link](x.md), and more\n## Twice\n## Twice\n```\n# no heading\n```\n<a id=\"row-1\"></a>\n")

    def problems(self, text):
        page = self.folder / f"page{len(list(self.folder.iterdir()))}.md"
        page.write_text(text)
        return [message for _, message in check_documents.check_links(page)]

    def test_links_that_lead_somewhere(self):
        for target in ("other.md", "other.md#the-code-of-a-link-and-more", "other.md#twice", "other.md#twice-1",
                       "other.md#row-1", ".", "https://example.org/x#y"):
            self.assertEqual(self.problems(f"See [it]({target})."), [], target)
        self.assertEqual(self.problems("# Here\nSee [above](#here)."), [])
        self.assertEqual(self.problems("```\n[it](gone.md)\n```\n"), [])

    def test_links_that_lead_nowhere(self):
        for target in ("gone.md", "gone.md#twice", "other.md#no-heading", "other.md#twice-2", "other.md#row-2", "#here"):
            self.assertEqual(len(self.problems(f"See [it]({target}).")), 1, target)

    def test_mentions_of_pages(self):
        (self.folder / "docs/guides").mkdir(parents=True)
        (self.folder / "docs/guides/torch.md").write_text("# PyTorch\n## Options\n")
        for name in ("docs/guides/torch.md", "docs/guides/torch.md#options", "https://example.org/docs/gone.md", "../docs/gone.md"):
            self.assertEqual(self.mentions(f"// See {name}."), [], name)
        for folder, name in (("docs", "torch.md"), ("docs", "guides/torch.md#gone"), ("spec", "gone.md"),
                             ("docs", "guides/gone.svg")):
            self.assertEqual(len(self.mentions(f"// See ({folder}/{name}).")), 1, name)

    def mentions(self, text):
        source = self.folder / "source.cc"
        source.write_text(text)
        return list(check_documents.check_mentions_of_pages(source, self.folder))

    def test_a_page_that_the_index_lacks_or_puts_elsewhere(self):
        (self.folder / "docs/guides").mkdir(parents=True)
        (self.folder / "docs/guides/torch.md").write_text("# PyTorch\n")
        for index, problems in (("## Guides\n[a](guides/torch.md)\n", 0), ("## Guides\n", 1),
                                ("## Start\n[a](guides/torch.md)\n", 1),
                                ("## Guides\n[a](guides/torch.md), [b](guides/torch.md)\n", 1)):
            (self.folder / "docs/README.md").write_text(index)
            self.assertEqual(len(list(check_documents.check_index(self.folder))), problems, index)

    def test_prose_that_is_too_wide(self):
        wide = "x" * (check_documents.PROSE_WIDTH_MAX + 1)
        self.assertEqual(len(self.problems(wide)), 1)
        self.assertEqual(self.problems("| " + wide), [])

    def test_a_readme_or_an_example_that_is_too_long(self):
        (self.folder / "examples").mkdir()
        for lines, problems in ((80, 0), (81, 1), (check_documents.README_LINES_MAX + 1, 2)):
            for name in ("README.md", "examples/one.cc"):
                (self.folder / name).write_text("x\n" * lines)
            self.assertEqual(len(list(check_documents.check_first_sight(self.folder))), problems)

    def test_a_table_of_codes_that_is_not_that_of_the_library(self):
        for name in ("spec", "include/sealpoint"):
            (self.folder / name).mkdir(parents=True)
        (self.folder / "include/sealpoint/status.h").write_text("enum {\n  kOk = 0,\n  kIo = 1,\n};\n")
        for rows, problems in (("| 0 | Ok | x |\n| 1 | Io | x |\n", 0), ("| 0 | Ok | x |\n", 1),
                               ("| 0 | Ok | x |\n| 2 | Io | x |\n", 1), ("| 1 | Io | x |\n| 0 | Ok | x |\n", 1)):
            (self.folder / "spec/reader-rules.md").write_text(rows)
            self.assertEqual(len(list(check_documents.check_codes(self.folder))), problems, rows)


if __name__ == "__main__":
    unittest.main()
