#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes one page of the specification, which reads from top to bottom: spec_page.py [OUTPUT]

OUTPUT is build/sealpoint-1.md by default. The chapters are the files of spec/ in the order of CHAPTERS, and the schema. What
refers to a file, to a section of one, to a rule or to a decision becomes a link within the page. Fails if anything refers to
what is not there, or if a file of spec/ has no place.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
CHAPTERS = [
    "glossary", "container", "algorithms", "registries", "limits", "reader-rules", "commit", "series", "staged", "writers",
    "example", "tree", "tree-additions", "content-digest", "fingerprint", "attributes", "delta", "media-type", "permissive",
    "errata", "history",
]  # fmt: skip
LEFT_OUT = ["README"]  # its table of files is that of the page
SCHEMA = "schema/index.fbs"
RULE = r"R-[A-Z]{3}-\d\d"
# `file.md` §2.1, `file.md`, a decision, other code, [text](file.md), a rule, a section of the same chapter.
REFERENCE = re.compile(
    r"`(?P<file>[a-z-]+)\.md`(?: §(?P<section>\d+(?:\.\d+)?))?|`decisions/(?P<record>\d{4})`|(?P<code>`[^`]*`)"
    r"|\[(?P<text>[^]]*)\]\((?P<target>[^)]*)\)|\bdecision (?P<decision>\d{4})|§(?P<own>\d+(?:\.\d+)?)"
    rf"|(?P<rule>\b{RULE}\b)"
)


class Broken(Exception):
    """Something refers to what is not there."""


class Page:
    def __init__(self, spec):
        self.texts = {name: (spec / f"{name}.md").read_text() for name in CHAPTERS}
        found = {path.stem for path in spec.glob("*.md")}
        if found != {*CHAPTERS, *LEFT_OUT}:
            raise Broken(f"chapters without a file, or files without a chapter: {sorted(found ^ {*CHAPTERS, *LEFT_OUT})}")
        self.decisions = {}
        for path in sorted((spec / "decisions").glob("0*.md")):
            title = path.read_text().splitlines()[0]
            self.decisions[path.name[:4]] = re.sub(r"^# \d+: ", "", title)
        self.sections, self.rules = set(), {}
        for name, text in self.texts.items():
            for line in _prose(text):
                section = re.match(r"#{2,3} (\d+(?:\.\d+)?)\.? ", line)
                if section:
                    self.sections.add((name, section[1]))
                rule = _stated(name, line)
                if rule and self.rules.setdefault(rule, name) != name:
                    raise Broken(f"{rule} is stated in {self.rules[rule]}.md and in {name}.md")

    def _section(self, name, file, number):
        if (file, number) not in self.sections:
            raise Broken(f"{name}.md refers to section {number} of {file}.md, which is not there")
        return self.address(file, f"{file}-{number.replace('.', '-')}")

    def address(self, chapter, anchor=None):
        """Target of a link to a chapter, or to an anchor in it; chapter None: the list of decisions."""
        return f"#{anchor or chapter}"

    def _link(self, name, match):
        """What a reference becomes."""
        file, rule = match["file"], match["rule"]
        if match["code"]:
            return match[0]
        if match["own"]:
            return f"[{match[0]}]({self._section(name, name, match['own'])})"
        if file is not None:
            if file not in self.texts:
                raise Broken(f"{name}.md refers to {file}.md, which is no chapter")
            return f"[{match[0]}]({self._section(name, file, match['section']) if match['section'] else self.address(file)})"
        if rule is not None:
            if rule not in self.rules:
                raise Broken(f"{name}.md refers to {rule}, which no chapter states")
            return f"[{rule}]({self.address(self.rules[rule], rule.lower())})"
        if match["target"] is not None:
            target = match["target"].removesuffix(".md")
            if target not in self.texts:
                raise Broken(f"{name}.md links to {match['target']}, which is no chapter")
            return f"[{match['text']}]({self.address(target)})"
        number = match["decision"] or match["record"]
        if number not in self.decisions:
            raise Broken(f"{name}.md refers to decision {number}, which is not there")
        return f"[{match[0]}]({self.address(None, f'decision-{number}')})"

    def heading(self, name, marks, number, text):
        """A heading, with the anchor of its section. Those of the files are a level lower in the page."""
        if number:
            return f'<a id="{name}-{number.replace(".", "-")}"></a>\n\n{marks}# {number} {text}'
        return f"{marks}# {text}"

    def _line(self, name, line):
        rule = _stated(name, line)
        heading = re.match(r"(#+) (?:(\d+(?:\.\d+)?)\.? )?(.*)", line)
        if heading:
            return self.heading(name, *heading.groups())
        if rule is None:
            return REFERENCE.sub(lambda match: self._link(name, match), line)
        before, after = line.split(rule, 1)
        linked = REFERENCE.sub(lambda match: self._link(name, match), after)
        return f'{before}<a id="{rule.lower()}"></a>{rule}{linked}'

    def chapter(self, name):
        """The lines of a chapter, with links."""
        in_code = False
        for line in self.texts[name].splitlines():
            if line.startswith("```"):
                in_code = not in_code
            yield line if in_code else self._line(name, line)

    def __str__(self):
        titles = {name: text.splitlines()[0].removeprefix("# ") for name, text in self.texts.items()}
        lines = ["# The Sealpoint format", "", "One page, made of the files of `spec/`, which count.", ""]
        lines += [f"- [{title}](#{name})" for name, title in titles.items()]
        lines += ["- [The schema](#schema)", "- [Decisions](#decisions)", ""]
        for name in CHAPTERS:
            lines += [f'<a id="{name}"></a>', "", *self.chapter(name), ""]
        lines += ['<a id="schema"></a>', "", "## The schema", "", "```", (ROOT / SCHEMA).read_text().rstrip(), "```", ""]
        lines += ['<a id="decisions"></a>', "", "## Decisions", "", "Their reasons are in `spec/decisions`.", ""]
        lines += [f'- <a id="decision-{number}"></a>{number}: {title}' for number, title in self.decisions.items()]
        return "\n".join(lines) + "\n"


def _prose(text):
    in_code = False
    for line in text.splitlines():
        in_code ^= line.startswith("```")
        if not in_code:
            yield line


def _stated(name, line):
    """The rule that a line states: in container.md a paragraph of its own, elsewhere a row whose first cell it is."""
    stated = re.match(rf"- \*\*({RULE})\*\* ", line) if name == "container" else None
    has_rows = name in ("commit", "series", "staged", "fingerprint", "attributes", "delta")
    row = re.match(rf"\| ({RULE}) \|", line) if has_rows else None
    return (stated or row or {1: None})[1]


def main(arguments):
    output = pathlib.Path(arguments[0]) if arguments else ROOT / "build/sealpoint-1.md"
    try:
        page = str(Page(ROOT / "spec"))
    except Broken as error:
        print(f"spec_page.py: {error}", file=sys.stderr)
        return 1
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(page)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
