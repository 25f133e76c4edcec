#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The scripts of the site, without MkDocs: comments of headers, public names, pages, and the check of the links."""

import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/site"))

import check
import comments
import pages


class CheckTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name).resolve()
        (self.root / "other.html").write_text('<h1 id="here">x</h1>')

    def problems(self, text):
        page = self.root / f"page{len(list(self.root.iterdir()))}.html"
        page.write_text(text)
        return list(check.check_page(self.root, page))

    def test_links_that_lead_somewhere(self):
        for text in ('<a href="other.html#here">', '<a href="https://example.org/gone">', '<a id="x" href="#x">',
                     '<script src="other.html">', '<a href="/other.html">', '<img src="data:image/png;base64,AA">'):
            self.assertEqual(self.problems(text), [], text)

    def test_links_that_lead_nowhere_and_what_is_loaded_from_elsewhere(self):
        for text in ('<a href="gone.html">', '<a href="other.html#gone">', '<a href="#gone">', '<img src="gone.svg">',
                     '<a href="../x.html">',
                     '<script src="https://cdn.example/x.js">', '<link rel="stylesheet" href="//fonts.example/x.css">'):
            self.assertEqual(len(self.problems(text)), 1, text)

    def test_a_public_name_without_an_entry(self):
        self.assertIn("sealpoint.torch.save has no entry", list(check.check_names(self.root)))


class CommentsTest(unittest.TestCase):
    def test_comments_become_those_of_doxygen(self):
        header = [
            "// SPDX-License-Identifier: Apache-2.0", "", "// The file.", "", "// Of `a<b>` & <c>.", "int f();  // behind",
            "          // it", "// As in:", "//   f() * 2;", "int g();", "}  // namespace sealpoint", 'auto url = "http://x";',
            "// ---- Values ----"]
        self.assertEqual(comments.convert(header), [
            "", "/// \\file", "/// The file.", "", "/// Of `a<b>` \\& \\<c\\>.", "int f();  ///< behind", "          ///< it",
            "/// As in:", "/// `f() * 2;`", "int g();", "}  ", 'auto url = "http://x";', ""])

    def test_lines_stay_lines(self):
        for path in (ROOT / "include").rglob("*.h"):
            lines = path.read_text().splitlines()
            self.assertEqual(len(comments.convert(lines)), len(lines), path)


class PagesTest(unittest.TestCase):
    def test_addresses(self):
        for path, page in (("spec/container.md", "spec/1/container.md"), ("spec/README.md", "spec/1/index.md"),
                           ("docs/guides/torch.md", "guides/torch.md"), ("include/sealpoint/saver.h", "reference/cpp/saver.md"),
                           ("CHANGELOG.md", "project/changelog.md"), ("examples/README.md", "sources/examples/index.md"),
                           (".github/CODEOWNERS", "sources/github/CODEOWNERS.md")):
            self.assertEqual(pages.place_of(path), page)

    def test_public_modules_and_names(self):
        modules = dict(pages.public_modules(ROOT / "python/sealpoint"))
        self.assertLessEqual({"sealpoint", "sealpoint.torch", "sealpoint.torch.dcp", "sealpoint.storage.obstore"}, set(modules))
        self.assertFalse([name for name in modules if "._" in name])
        self.assertIn("Checkpointer", pages.public_names(modules["sealpoint.torch"]))
        self.assertNotIn("__version__", pages.public_names(modules["sealpoint"]))

    def test_sections_and_rules_of_the_specification_are_links(self):
        chapter = "\n".join(pages.Specification(ROOT / "spec").chapter("series"))
        self.assertIn('<a id="r-ser-03"></a>R-SER-03', chapter)
        self.assertIn("](container.md#container-8)", chapter)
        self.assertIn('<a id="series-2"></a>\n\n## 2. ', chapter)


if __name__ == "__main__":
    unittest.main()
