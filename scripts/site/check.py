#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks a site that was built: check.py HTML. Each link leads to a file and an anchor in it, each public name of Python has an
entry, and no page loads anything from elsewhere. Prints one line per violation; exit status 1 if there is any.
"""

import functools
import html.parser
import pathlib
import sys
import urllib.parse

import pages

# Tags that make a browser load what they name, and links, which load nothing before a click.
LOADS = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src"}


class _Parser(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.links, self.loads, self.anchors = [], [], set()

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.anchors |= {values[name] for name in ("id", "name") if values.get(name)}
        if tag == "a" and values.get("href"):
            self.links.append(values["href"])
        elif LOADS.get(tag) in values and values.get("rel") != "canonical":
            self.loads.append(values[LOADS[tag]])


@functools.cache
def read(path):
    parser = _Parser()
    parser.feed(path.read_text())
    return parser


def check_page(root, path):
    page = read(path)
    for address in page.links + page.loads:
        parts = urllib.parse.urlsplit(address)
        if parts.scheme or parts.netloc:
            if address in page.loads and parts.scheme != "data":
                yield f"loads {address} from elsewhere"
            continue
        # Only the page for what is not found has paths that begin with a slash.
        folder = root if parts.path.startswith("/") else path.parent
        target = (folder / urllib.parse.unquote(parts.path).lstrip("/")).resolve() if parts.path else path
        target = target / "index.html" if target.is_dir() else target
        anchor = urllib.parse.unquote(parts.fragment)
        if not target.is_file() or not target.is_relative_to(root):
            yield f"links to {address}, which is not there"
        elif anchor and target.suffix == ".html" and anchor not in read(target).anchors | {"__skip"}:
            yield f"links to {address}: there is no such anchor"


def check_names(root):
    """Each public name of Python is on the page of its module."""
    for module, source in pages.public_modules(pages.ROOT / "python/sealpoint"):
        names = pages.public_names(source)
        path = root / f"reference/python/{module}.html"
        for name in names:
            if not path.exists() or f"{module}.{name}" not in read(path).anchors:
                yield f"{module}.{name} has no entry"


def main(arguments):
    root = pathlib.Path(arguments[0]).resolve()
    paths = sorted(root.rglob("*.html"))
    wrong = [f"{path.relative_to(root)}: {message}" for path in paths for message in check_page(root, path)]
    wrong += check_names(root)
    for message in wrong:
        print(message)
    print(f"{len(paths)} pages, {sum(len(read(path).links) for path in paths)} links, {len(wrong)} violations")
    return 1 if wrong or len(paths) < 100 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
