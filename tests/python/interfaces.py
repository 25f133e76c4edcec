# SPDX-License-Identifier: Apache-2.0
"""Interfaces of frameworks that the adapters use, compared with a framework's sources: which of them are gone or changed.

Reads the sources and imports nothing, so that a framework needs neither what it requires nor a GPU. As a program it judges all
packages in some folders:  interfaces.py FOLDER...
"""

import ast
import functools
import pathlib
import re
import sys
from typing import NamedTuple

from packaging.specifiers import SpecifierSet

LIST = pathlib.Path(__file__).with_name("interfaces.txt")
_LINE = re.compile(r"(\S+)(?: ([<>=!][\S]+))? ([\w.]+) ([\w.]+)(?:\((.*)\))?")


class Interface(NamedTuple):
    """A line of the list. ``parameters``: names, or None if they do not matter."""

    package: str
    versions: SpecifierSet
    module: str
    name: str
    parameters: tuple[str, ...] | None

    def __str__(self):
        return f"{self.module}.{self.name}"


def listed(text):
    found = []
    for line in text.splitlines():
        if line and not line.startswith("#"):
            package, versions, module, name, parameters = _LINE.fullmatch(line).groups()
            names = None if parameters is None else tuple(part.strip() for part in parameters.split(",") if part.strip())
            found.append(Interface(package, SpecifierSet(versions or ""), module, name, names))
    return found


def packages_in(folder):
    """(name, version) of each package that pip unpacked into a folder."""
    names = [path.name.removesuffix(".dist-info").rsplit("-", 1) for path in pathlib.Path(folder).glob("*.dist-info")]
    return [(name.replace("_", "-").lower(), version) for name, version in names]


@functools.cache
def _source(folder, module):
    path = pathlib.Path(folder, *module.split("."))
    for file in (path.with_suffix(".py"), path / "__init__.py"):
        if file.is_file():
            return ast.parse(file.read_text())
    return None


def _statements(body):
    """Of a module or a class, with those behind conditions."""
    for one in body:
        yield one
        for part in ("body", "orelse", "handlers", "finalbody"):
            if isinstance(one, ast.If | ast.Try | ast.With | ast.ExceptHandler):
                yield from _statements(getattr(one, part, ()))


def _names(one):
    if isinstance(one, ast.Import | ast.ImportFrom):
        return [alias.asname or alias.name.split(".")[0] for alias in one.names]
    if isinstance(one, ast.Assign | ast.AnnAssign):
        targets = one.targets if isinstance(one, ast.Assign) else [one.target]
        return [target.id for target in targets if isinstance(target, ast.Name)]
    return [one.name] if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) else []


def _is_set(tree, name):
    """Of an attribute that methods of a class set."""
    return any(isinstance(one, ast.Attribute) and one.attr == name and isinstance(one.ctx, ast.Store) for one in ast.walk(tree))


def _found(tree, name):
    for part in name.split("."):
        inner = next((one for one in _statements(getattr(tree, "body", ())) if part in _names(one)), None)
        if inner is None:
            return tree if isinstance(tree, ast.ClassDef) and _is_set(tree, part) else None
        tree = inner
    return tree


def _parameters(function):
    """([(name, whether it has a default)])."""
    given = function.args
    plain = [*given.posonlyargs, *given.args]
    found = [(one.arg, i >= len(plain) - len(given.defaults)) for i, one in enumerate(plain)]
    found += [(f"*{given.vararg.arg}", True)] if given.vararg else []
    found += [(one.arg, default is not None) for one, default in zip(given.kwonlyargs, given.kw_defaults, strict=True)]
    return found + ([(f"**{given.kwarg.arg}", True)] if given.kwarg else [])


def problem(interface, folder):
    """What moved, or None."""
    tree = _source(folder, interface.module)
    if tree is None:
        return f"{interface.module}: no such module"
    found = _found(tree, interface.name)
    if found is None:
        return f"{interface}: missing"
    if interface.parameters is None:
        return None
    if not isinstance(found, ast.FunctionDef | ast.AsyncFunctionDef):
        return f"{interface}: is no function any more"
    now, expected = _parameters(found), [name.lstrip("*") for name in interface.parameters if name != "..."]
    fixed = now[: len(expected)] if "..." in interface.parameters else now
    if [name.lstrip("*") for name, _ in fixed] == expected and all(default for _, default in now[len(fixed) :]):
        return None
    return f"{interface}: signature changed from ({', '.join(interface.parameters)}) to ({', '.join(name for name, _ in now)})"


def problems(folder, interfaces=None):
    """(interfaces compared, what moved) of all listed packages in a folder."""
    versions = dict(packages_in(folder))
    wanted = [one for one in interfaces or listed(LIST.read_text())
              if one.package in versions and one.versions.contains(versions[one.package], prereleases=True)]
    return len(wanted), [f"{one.package} {versions[one.package]}: {moved}" for one in wanted if (moved := problem(one, folder))]


def main():
    found = []
    for folder in sys.argv[1:]:
        count, moved = problems(folder)
        print(f"{folder}: {count} interfaces, {len(moved)} moved")
        found += moved
    for line in found:
        print(f"MOVED {line}")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
