# SPDX-License-Identifier: Apache-2.0
"""Who imports whom in python/sealpoint, against the table python/module_edges.txt."""

import ast
import graphlib
import re

PACKAGE = "sealpoint"


class Rooms:
    """The table."""

    def __init__(self, path):
        self.allowed = {}  # room -> the rooms that it may import
        self.rooms = {}  # module of the top level -> room
        self.errors = []
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if line and not line.startswith("#"):
                self._read_line(f"python/{path.name}:{number}", line)

    def _read_line(self, place, line):
        match = re.fullmatch(r"(\w+) \(([^)]+)\):(.*)", line)
        if match is None:
            self.errors.append(f"{place}: expected 'room (modules): rooms'")
            return
        room, modules, names = match.group(1), match.group(2).split(), match.group(3).split()
        for name in names:
            if name not in self.allowed:  # lowest first makes the table free of cycles
                self.errors.append(f"{place}: {room} names {name}, which does not stand above it")
        self.allowed[room] = set(names)
        self.rooms.update((module.removesuffix("/"), room) for module in modules)

    def room_of(self, module):
        return self.rooms.get((module.split(".") + ["."])[1])


def modules_of(root):
    """By name, the files of the package."""
    found = {}
    for path in sorted((root / "python" / PACKAGE).rglob("*.py")):
        parts = path.relative_to(root / "python").with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports_of(path, modules):
    """(line, module) of each import of the package, also within functions."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [child.name for child in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names = [f"{node.module}.{child.name}" for child in node.names]
        else:
            continue
        for name in names:
            if name.split(".")[0] != PACKAGE or f"{PACKAGE}._sealpoint" in (name, name.rpartition(".")[0]):
                continue
            yield node.lineno, name if name in modules else name.rpartition(".")[0]


def check_rooms(root):
    """What is wrong, one line each."""
    modules = modules_of(root)
    if not modules:
        return
    rooms = Rooms(root / "python" / "module_edges.txt")
    yield from rooms.errors
    for absent in sorted(rooms.rooms.keys() - {(name.split(".") + ["."])[1] for name in modules}):
        yield f"python/module_edges.txt:1: no module is named {absent}"
    graph = {}
    for name, path in modules.items():
        place, room = path.relative_to(root).as_posix(), rooms.room_of(name)
        if room is None:
            yield f"{place}:1: no room in python/module_edges.txt"
        for line, target in imports_of(path, modules):
            graph.setdefault(name, set()).add(target)
            wanted = rooms.room_of(target)
            if room is not None and wanted not in rooms.allowed[room] | {room}:
                yield f"{place}:{line}: {room} may not import {wanted} ({target})"
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        yield f"python/{PACKAGE}:1: modules import each other in a circle: {' -> '.join(reversed(error.args[1]))}"
