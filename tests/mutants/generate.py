#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a copy of lib/ and readers/ in which each protective step can be taken out (tests/mutants/README.md).

  tests/mutants/generate.py FOLDER     the copy, and FOLDER/mutants.json: what there is
"""

import json
import pathlib
import re
import sys

import find_steps
from source_text import Source

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = pathlib.Path(__file__).resolve().parent
INCLUDE = '#include "tests/mutants/mutant_switch.h"\n'
ENTRY = re.compile(r"^== (\S+) +(\S+)(?: +#.*)?\n(.*?)\n--\n(.*?)\n(?===|\Z)", re.S | re.M)


class Mutant:
    def __init__(self, name, kind, path, line, text):
        self.name, self.kind, self.path, self.line, self.text = name, kind, path, line, text


def sources():
    found = [path for folder in ("lib", "readers") for suffix in ("cc", "h")
             for path in (ROOT / folder).glob(f"*/**/*.{suffix}")]
    return sorted(path.relative_to(ROOT) for path in found)


def short_name(path):
    return str(pathlib.PurePath(*path.parts[1:])).removesuffix(".cc")


def read_catalogue():
    """(id, path, text, replacement) of each entry; `$OUT` in the replacement is the switch."""
    return [match.groups() for match in ENTRY.finditer((HERE / "catalogue.txt").read_text())]


def apply_catalogue(path, text, entries):
    mutants, changed, replaced = [], text, []
    for name, where, wanted, replacement in entries:
        if where != str(path):
            continue
        if text.count(wanted) != 1 or changed.count(wanted) != 1:
            raise SystemExit(f"catalogue.txt: the text of {name} is not found exactly once in {path}")
        line = text.count("\n", 0, text.index(wanted)) + 1
        mutants.append(Mutant(name, "catalogue", str(path), line, " ".join(wanted.split())))
        put = replacement.rstrip().replace("$OUT", find_steps.out(name))
        changed = changed.replace(wanted, put)
        replaced = [(before, text_put.replace(wanted, put)) for before, text_put in replaced] + [(wanted, put)]
    return mutants, changed, replaced


def without_added(text, sites, replaced):
    """The sites less those that only the catalogue has put there."""
    added = set()
    for wanted, put in replaced:
        begin = text.index(put)
        seen = {}
        for site in reversed(sites):  # what was there before is put last
            if begin <= site.begin and site.end <= begin + len(put):
                step = text[site.begin:site.end], site.kind
                seen[step] = seen.get(step, 0) + 1
                if seen[step] > wanted.count(step[0]):
                    added.add(site)
    return [site for site in sites if site not in added and site.base not in added]


def name_sites(path, source, sites):
    """Names that hold no line number: function, rule or callee, and the ordinal among its like."""
    counts, variants, names = {}, {}, {}
    for site in sites:
        if site.base is site:
            function = source.function_at(site.begin).name
            key = f"{short_name(path)}:{function}:{site.label}"
            counts[key] = counts.get(key, 0) + 1
            names[site] = f"{key}:{counts[key]}"
    for site in sites:
        if site.kind == "note":
            names[site] = names[site.base]
        elif site.base is not site:
            name = f"{names[site.base]}:{site.kind}"
            variants[name] = variants.get(name, 0) + 1
            names[site] = name if variants[name] == 1 else f"{name}{variants[name]}"
    return names


def insert(source, sites, names):
    """The text with what belongs around each site; outer sites open first and close last."""
    opened = sorted(sites, key=lambda site: (site.begin, -site.end, site.base is not site))
    order = {site: number for number, site in enumerate(opened)}
    parts = [(site.begin, 1, order[site], site.make(names[site])[0]) for site in sites]
    parts += [(site.end, 0, -order[site], site.make(names[site])[1]) for site in sites]
    text, done = "", 0
    for at, _, _, part in sorted(parts):
        text += source.text[done:at] + part
        done = at
    return text + source.text[done:]


def mutate(path, entries):
    original = (ROOT / path).read_text()
    mutants, text, replaced = apply_catalogue(path, original, entries)
    source = Source(text)
    sites = without_added(text, find_steps.Finder(source).find(), replaced)
    names = name_sites(path, source, sites)
    for site in sites:
        if site.kind == "note":
            continue
        shown = re.sub(r'SEALPOINT_MUTANT_IS_OUT\("[^"]*"\)', "...", source.text[site.begin:site.end])
        mutants.append(Mutant(names[site], site.kind, str(path), source.line_of(site.begin), " ".join(shown.split())))
    if not mutants:
        return mutants, original
    first = source.masked.index("namespace")  # behind the includes
    body = insert(source, sites, names)
    return mutants, body[:first] + INCLUDE + f'#line {source.line_of(first)} "{path}"\n' + body[first:]


def write_if_changed(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def generate(folder=None):
    entries, mutants = read_catalogue(), []
    for path in sources():
        found, text = mutate(path, entries)
        mutants += found
        if folder is not None:  # also without a mutant: which sources are compiled is settled when CMake configures
            write_if_changed(folder / path, text)
    names = [mutant.name for mutant in mutants]
    for name in names:
        if names.count(name) > 1:
            raise SystemExit(f"two mutants are named {name}")
    if missing := {entry[0] for entry in entries} - set(names):
        raise SystemExit(f"catalogue.txt: no such source for {sorted(missing)}")
    if folder is not None:
        rows = [vars(mutant) for mutant in mutants]
        write_if_changed(folder / "mutants.json", json.dumps(rows, indent=0))
    return mutants


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.stderr.write(__doc__)
        sys.exit(64)
    generate(pathlib.Path(sys.argv[1]))
