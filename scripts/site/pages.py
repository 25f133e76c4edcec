#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Puts the pages of the site together for MkDocs: pages.py FOLDER (scripts/site.sh calls it)

The pages are those of docs/ and spec/, the documents of the root, and every file that one of them links to; then the reference: a
page for each public module of Python and each public header. The parts and their order are those of docs/README.md. FOLDER has
doxygen/xml, and gets pages/, python/ (the sources that mkdocstrings reads), and mkdocs.yml.
"""

import ast
import os
import pathlib
import re
import shutil
import sys
import textwrap

import headers

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import spec_page

HERE = pathlib.Path(__file__).parent
LINK = re.compile(r"\]\(([^)#\s]*)(#[^)\s]*)?\)")
ITEM = re.compile(r" *([-*]|\d+\.) ")
EXAMPLE = re.compile(r"(?m)^( {4}.*\n(?:(?: {4}.*)?\n)*)")
MENTION = re.compile(r"(?<![`\w/])((?:docs|spec)/[a-z/-]+\.md)\b")
LANGUAGES = {".cc": "cpp", ".h": "cpp", ".c": "c", ".py": "python", ".rs": "rust", ".go": "go", ".sh": "bash", ".yaml": "yaml"}
PROJECT = {"CONTRIBUTING.md": "Contributing", "GOVERNANCE.md": "Governance", "CODE_OF_CONDUCT.md": "Code of conduct"}
VERSION = re.search(r"of format version (\d+)", (ROOT / "spec/README.md").read_text())[1]
STUB = ROOT / "build/python/python/sealpoint/_sealpoint.pyi"


def place_of(path):
    """The page of a file of the repository, both relative to their roots."""
    path = pathlib.PurePosixPath(path)
    if path.parts[0] == "docs":
        return "contents.md" if path.name == "README.md" else str(path.relative_to("docs"))
    if str(path) in ("README.md", "CHANGELOG.md", "SECURITY.md", *PROJECT):
        return "index.md" if path.name == "README.md" else f"project/{path.stem.lower().replace('_', '-')}.md"
    if str(path.parent) == "include":
        return f"reference/{path.stem.replace('sealpoint', 'c')}.md"
    if path.parts[0] == "include":
        return f"reference/cpp/{path.stem}.md"
    name = "index.md" if path.name == "README.md" else path.name
    if path.parts[0] == "spec":
        return f"spec/{'/'.join(path.parts[1:-1]) or VERSION}/{name}"
    # MkDocs leaves out names that begin with a dot.
    folder = "/".join(part.lstrip(".") for part in path.parts[:-1])
    return f"sources/{folder}/{name if path.suffix == '.md' else f'{name}.md'}".replace("//", "/")


def relative(page, other):
    return os.path.relpath(other, os.path.dirname(page))


class Specification(spec_page.Page):
    """The specification as pages of their own, in one folder."""

    def address(self, chapter, anchor=None):
        if chapter is None:
            path = next((ROOT / "spec/decisions").glob(f"{anchor.removeprefix('decision-')}-*.md"))
            return f"../decisions/{path.name}"
        return f"{chapter}.md{f'#{anchor}' if anchor else ''}"

    def heading(self, name, marks, number, text):
        if number:
            return f'<a id="{name}-{number.replace(".", "-")}"></a>\n\n{marks} {number}. {text}'
        return f"{marks} {text}"


class Pages:
    def __init__(self, folder):
        self.folder, self.output = folder, folder / "pages"
        self.specification = Specification(ROOT / "spec")
        self.specification.texts["README"] = (ROOT / "spec/README.md").read_text()
        self.made, self.waiting = set(), []

    def write(self, page, text):
        path = self.output / page
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        self.made.add(page)

    def add(self, path, by="the navigation"):
        """Makes sure that a file, to which `by` refers, has a page, and returns it."""
        if (ROOT / path).is_dir():
            path = os.path.join(path, "README.md")
        if not (ROOT / path).exists():
            raise spec_page.Broken(f"{by} refers to {path}, which is not there")
        page = place_of(path)
        if page not in self.made and not path.startswith("include/"):
            self.made.add(page)
            self.waiting.append(path)
        return page

    def make(self):
        """Makes the pages that were added, and those that they link to."""
        while self.waiting:
            path = self.waiting.pop()
            source, page = ROOT / path, place_of(path)
            if source.suffix in (".svg", ".png"):
                (self.output / page).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(source, self.output / page)
            elif source.suffix != ".md":
                self.write(page, _listing(path, source.read_text()))
            elif re.fullmatch(r"spec/[\w-]+\.md", path):
                self.write(page, _for_markdown("\n".join(self.specification.chapter(source.stem))))
            else:
                self.write(page, _for_markdown(self._linked(path, page, source.read_text())))

    def _linked(self, path, page, text):
        """The text of a document whose links lead from its page to pages."""
        def target(match):
            to, anchor = match[1], match[2] or ""
            if not to or "://" in to:
                return match[0]
            other = os.path.normpath(os.path.join(os.path.dirname(path), to))
            return f"]({relative(page, self.add(other, path))}{anchor})"

        in_code, lines = False, []
        for line in text.splitlines():
            in_code ^= line.startswith("```")
            lines.append(line if in_code or line.startswith("```") else LINK.sub(target, line))
        return "\n".join(lines)


def _for_markdown(text):
    """Lists in the form of Python-Markdown: an empty line above them, and four columns before the further lines of an item."""
    lines, fence, in_list = [], None, False
    for line in text.splitlines():
        indent = len(line) - len(line.lstrip())
        begins = fence is None and ITEM.match(line)
        if line.lstrip().startswith("```"):
            fence = indent if fence is None else None
        if begins and not in_list and lines and lines[-1].strip():
            lines.append("")
        # A list ends at a line without an indent behind an empty one.
        in_list = bool(begins) or in_list and (bool(indent) or not line or fence is not None or bool(lines[-1].strip()))
        belongs = in_list and (fence or indent) and 0 < (fence or indent) < 4
        lines.append(" " * 2 + line if belongs and line else line)
    return "\n".join(lines) + "\n"


def _listing(path, text):
    language = LANGUAGES.get(pathlib.PurePath(path).suffix, "text")
    return f"---\nsearch:\n  exclude: true\n---\n# {path}\n\n````{language}\n{text.rstrip()}\n````\n"


def public_modules(package):
    """Name and file of each module whose name has no underscore in front, and which is no program."""
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package.parent).with_suffix("").parts
        if not any(part.startswith("_") and part != "__init__" for part in parts):
            yield ".".join(part for part in parts if part != "__init__"), path


def public_names(path):
    """`__all__`, or else the functions and classes of a module without an underscore."""
    tree = ast.parse(path.read_text())
    for node in tree.body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            return [name for name in ast.literal_eval(node.value) if not name.startswith("__")]
    return [node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith("_")]


def _rank(name):
    """Functions before classes, errors last."""
    return 2 if name.endswith("Error") else int(name[0].isupper())


def _native_stub():
    """The types of the native module: the stub that a build has made, or their names alone."""
    if STUB.exists():
        return STUB.read_text()
    print(f"site: no {STUB.relative_to(ROOT)}: types of the native module are named and not described", file=sys.stderr)
    text = (ROOT / "python/sealpoint/__init__.py").read_text()
    names = re.search(r"from sealpoint\._sealpoint import \(\n(.*?)\)", text, re.DOTALL)[1].replace(",", " ").split()
    return "".join(f'class {name}:\n    """A type of the native module: see `help(sealpoint.{name})`."""\n' for name in names)


def _fence_examples(text):
    """Examples of a module's docstring: indented as all lines below the first one are, they would be taken for text."""
    docstring = ast.get_docstring(ast.parse(text), clean=False) or ""
    fenced = EXAMPLE.sub(lambda match: f"```python\n{textwrap.dedent(match[1]).rstrip()}\n```\n", docstring)
    return text.replace(docstring, fenced, 1)


def make_python(pages):
    """A page for each public module; returns their navigation."""
    package = ROOT / "python/sealpoint"
    staged = pages.folder / "python/sealpoint"
    for path in package.rglob("*.py"):
        text = MENTION.sub(lambda match: f"[{match[1]}](../../{place_of(match[1])})", _fence_examples(path.read_text()))
        target = staged / path.relative_to(package)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    (staged / "_sealpoint.pyi").write_text(_native_stub())
    nav, rows = ["reference/python/index.md"], []
    for module, path in public_modules(package):
        names = sorted(public_names(path), key=_rank)
        if not names:
            continue
        page = f"reference/python/{module}.md"
        options = "".join(f"        - {name}\n" for name in names)
        pages.write(page, f"# {module}\n\n::: {module}\n    options:\n      members:\n{options}")
        nav.append({module: page})
        summary = (ast.get_docstring(ast.parse(path.read_text())) or "").split("\n\n")[0].replace("\n", " ")
        rows.append(f"| [`{module}`]({module}.md) | {summary} |")
    pages.write("reference/python/index.md", "# Python\n\n| module | |\n|---|---|\n" + "\n".join(rows) + "\n")
    return nav


def make_headers(pages):
    """A page for each public header; returns the navigation of C++."""
    include = ROOT / "include"
    page_of = {str(path.relative_to(include)): place_of(path.relative_to(ROOT)) for path in sorted(include.rglob("*.h"))
               if "detail" not in path.parts and path.name != "sealpoint_mpi_impl.h"}

    def link(header, target):
        page = target if target in page_of.values() else pages.add(target, f"include/{header}")
        return relative(page_of[header], page).removesuffix(".md") + ".html"

    made = headers.Headers(pages.folder / "doxygen/xml", include, page_of, link)
    rows, nav = [], ["reference/cpp/index.md"]
    for header, page in page_of.items():
        text, names = made.page(header)
        if not names:
            continue
        pages.write(page, text)
        if "/" in header:
            name = header.removeprefix("sealpoint/")
            nav.append({name: page})
            declared = ", ".join(f"`{each}`" for each in names if "operator" not in each)
            rows.append(f"| [{name}]({name.removesuffix('.h')}.md) | {declared} |")
    about = "[The public headers](../../internals/architecture.md#the-public-headers) says where to begin."
    pages.write("reference/cpp/index.md", f"# C++\n\n{about}\n\n| header | declares |\n|---|---|\n" + "\n".join(rows) + "\n")
    return nav


def parts(pages):
    """The parts of docs/README.md: title, and the pages with their titles there."""
    found = {}
    for line in (ROOT / "docs/README.md").read_text().splitlines():
        if line.startswith("## "):
            found[line[3:]] = []
        elif found:
            found[list(found)[-1]] += [{title[0].upper() + title[1:]: pages.add(f"docs/{to}", "docs/README.md")}
                                       for title, to in re.findall(r"\[([^]]*)\]\(([^)]*)\)", line)]
    return found


def navigation(pages):
    nav = parts(pages)
    chapters = [pages.add("spec/README.md"), *(_chapter(pages, f"spec/{name}.md") for name in spec_page.CHAPTERS),
                {"The schema": pages.add("schema/index.fbs")}]
    decisions = [pages.add(f"spec/decisions/{path.name}") for path in sorted((ROOT / "spec/decisions").glob("0*.md"))]
    models = [pages.add("spec/model/README.md"), pages.add("spec/model/counterexamples.md")]
    nav["Start"] = ["index.md", *nav["Start"], {"All pages": pages.add("docs/README.md")}, {"Changes": pages.add("CHANGELOG.md")},
                    {"Security": pages.add("SECURITY.md")}]
    nav["Reference"] += [{"Python": make_python(pages)}, {"C++": make_headers(pages)},
                         {"C": [f"reference/{name}.md" for name in ("c", "c_attributes", "c_ranks", "c_mpi")]},
                         {f"Specification, version {VERSION}": chapters}]
    nav["Internals"] += [{"Decisions": [pages.add("spec/decisions/README.md"), *decisions]}, {"Models": models},
                         *({title: pages.add(path)} for path, title in PROJECT.items())]
    pages.add("README.md")
    return [{title: entries} for title, entries in nav.items()]


def _chapter(pages, path):
    title = (ROOT / path).read_text().splitlines()[0]
    return {re.sub("^# (Sealpoint )?|, format version .*", "", title).capitalize(): pages.add(path)}


def _yaml(value, indent=0):
    """Lists, mappings of one entry and texts."""
    if isinstance(value, str):
        return f" {ast.literal_eval(repr(value))!r}\n".replace('"', "'")
    text = "\n"
    for entry in value:
        key, inner = next(iter(entry.items())) if isinstance(entry, dict) else (None, entry)
        text += " " * indent + "-" + (f" '{key}':" if key else "") + _yaml(inner, indent + 4)
    return text


def main(arguments):
    folder = pathlib.Path(arguments[0]).resolve()
    for name in ("pages", "python"):
        shutil.rmtree(folder / name, ignore_errors=True)
    pages = Pages(folder)
    shutil.copytree(HERE / "assets", pages.output / "assets")
    nav = navigation(pages)
    pages.make()
    (folder / "mkdocs.yml").write_text(
        f"INHERIT: {HERE}/mkdocs.yml\ndocs_dir: pages\nsite_dir: html\nnot_in_nav: |\n  /sources/\n  /spec/fixtures/\nnav:"
        f"{_yaml(nav)}plugins:\n  mkdocstrings:\n    handlers:\n      python:\n        paths: [{folder}/python]\n")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except spec_page.Broken as error:
        sys.exit(f"site: {error}")
