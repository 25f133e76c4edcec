#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks who includes or imports whom, who calls what, two habits of language, and the size of files and functions.

Usage: check_edges.py [--root DIR]
Prints one line "path:line: message" per violation; exit status 1 if there is any.
"""

import argparse
import ast
import pathlib
import re
import shutil
import subprocess
import sys

from python_edges import check_rooms

LIBRARY = ("include", "lib", "readers")
PROGRAMS = ("tools", "examples", "benchmarks", "python")
# The extension of Python is the program ckpt, too.
PROGRAMS_IN = {"python": ("tools/",)}
# Modules that see the public headers alone, as programs do.
FACES = ("lib/c/",)
OTHERS = ("tests", "fuzz", "cmake", "scripts", "schema", ".ci")
SOURCES = (".h", ".cc", ".cu")
WITH_LICENCE = SOURCES + (".cmake", ".py", ".sh", ".fbs", ".in")

# Namespaces of a module beside its own.
MORE_NAMESPACES = {"device": ("cuda", "cufile", "xxh3"), "interop": ("foreign",)}

FILE_LINES_MAX = 1000
FILE_LINES_WARN = 450
GENERATED_LIST = "tests/conformance/digests.txt"  # a line for each file of the corpus; nobody reads it from top to bottom
FUNCTION_LINES_MAX = 70
# Python has no formatter here; the lines of the other languages are clang-format's affair.
PYTHON_COLUMNS_MAX = 132

# How the headers begin that may name MPI.
MPI_HEADERS = ("include/sealpoint/mpi_communicator", "include/sealpoint/detail/mpi_communicator", "include/sealpoint_mpi")

# (pattern, path prefixes where it is allowed, why not elsewhere)
BANNED = (
    (r"(?<![\w.>])rename(at)?\s*\(", ("lib/storage/posix_",), "rename replaces silently; publish through the storage"),
    (r"\bposix_fallocate\b", (), "it writes zeros where the file system cannot allocate; use fallocate"),
    (r"(?<![\w.>])(fsync|fdatasync|syncfs|sync_file_range)\s*\(",
     ("lib/storage/", "benchmarks/common/raw_file.cc"), "durability is the storage's affair"),
    (r"(?<![\w.>])link(at)?\s*\(", ("lib/storage/",), "publishing is the storage's affair"),
    (r"\brenameat2\b", ("lib/storage/",), "publishing is the storage's affair"),
    # A callback of C cancels by what its wrapper throws.
    (r"\bthrow\b", PROGRAMS + ("lib/interop/foreign/", "lib/c/values.cc"), "our code does not throw; return a Status"),
    (r"\bSEALPOINT_EXPORT\s+friend\b", (), "the attribute of a friend is ignored; declare it before the class"),
    (r"\bgil_scoped_(release|acquire)\b", (), "it aborts at the end of the interpreter; use python/src/gil.h"),
    (r"\bMPI_\w+", MPI_HEADERS + ("examples/", "benchmarks/"), "only the adapter knows MPI"),
)

# Calls of Python's modules, and methods of pathlib.Path, that change names or make them durable; and where they may stand:
# sealpoint bench puts the files of its peers onto the disk, and flips bits of them.
BANNED_IN_PYTHON = {
    "os": {"fsync", "fdatasync", "sync", "link", "rename", "renames", "replace", "unlink", "remove", "rmdir", "removedirs"},
    "shutil": {"move", "rmtree"},
}
BANNED_METHODS = {"unlink", "rename", "rmdir", "hardlink_to", "rmtree"}
MAY_SYNC = {"python/sealpoint/bench/_disk.py": {"fsync"}}

# (header, path prefixes where it may be included)
BANNED_HEADERS = {
    "mpi.h": MPI_HEADERS + ("examples/", "benchmarks/"),
    "cuda_runtime.h": ("lib/device/", "examples/", "benchmarks/"),
    "cuda_runtime_api.h": ("lib/device/", "examples/", "benchmarks/"),
    "cuda.h": ("lib/device/", "examples/"),
    "iostream": PROGRAMS,
    "filesystem": PROGRAMS + ("lib/storage/", "lib/interop/foreign/"),
}


class Edges:
    """The table in cmake/module_edges.txt."""

    def __init__(self, path):
        self.allowed = {}  # module -> the modules that it may include
        self.owners = {}  # public header -> module
        self.errors = []
        for number, line in enumerate(path.read_text().splitlines(), 1):
            self._read_line(f"{path.name}:{number}", line.strip())

    def _read_line(self, place, line):
        if not line or line.startswith("#"):
            return
        if line.startswith("include/sealpoint "):
            _, header, module = line.split()
            if module not in self.allowed:
                self.errors.append(f"{place}: the owner {module} of {header} is no module")
            self.owners[header] = module
            return
        module, _, names = line.partition(":")
        for name in names.split():
            # Lowest first makes the table free of cycles.
            if name not in self.allowed and name != "schema":
                self.errors.append(f"{place}: {module} names {name}, which does not stand above it")
        self.allowed[module] = set(names.split())

    def may_include(self, module, target):
        return module == target or target in self.allowed.get(module, ())


def blank(match):
    """A replacement for a comment or literal that keeps the line numbers."""
    return " " + "\n" * match.group(0).count("\n")


TOKENS = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(?P<delimiter>[^(\s]*)\(.*?\)(?P=delimiter)"'
    r'|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\'',
    re.DOTALL)


def code_only(text):
    return TOKENS.sub(blank, text)


def includes(text):
    for number, line in enumerate(text.splitlines(), 1):
        match = re.match(r'\s*#\s*include\s*[<"]([^>"]+)[>"]', line)
        if match:
            yield number, match.group(1)


def module_of(name):
    """The module of a file or include path below lib/ or readers/, else None."""
    parts = name.split("/")
    return parts[1] if parts[0] in ("lib", "readers") and len(parts) > 2 else None


def files_below(root, folders, suffixes):
    for folder in folders:
        for path in sorted((root / folder).rglob("*")):
            if path.is_file() and path.suffix in suffixes:
                yield path.relative_to(root).as_posix(), path


def check_include(root, edges, name, target):
    """What is wrong with `name` including `target`, or None."""
    allowed = BANNED_HEADERS.get(target)
    if allowed is not None and not name.startswith(allowed):
        return f"<{target}> may not be included here"
    top = name.split("/")[0]
    owner = edges.owners.get(target.removeprefix("sealpoint/"))
    if target.startswith("sealpoint/") and not owner:
        return f"{target} has no owner in cmake/module_edges.txt"
    if top in PROGRAMS:
        own = target.startswith((*PROGRAMS_IN.get(top, ()), top + "/", "sealpoint/")) or ((root / name).parent / target).exists()
        inside = target.split("/")[0] in LIBRARY + PROGRAMS + OTHERS
        return f"a program uses include/sealpoint only, not {target}" if inside and not own else None
    if top == "include":
        module = edges.owners.get(name.removeprefix("include/sealpoint/"))
    else:
        module = module_of(name)
    if target.startswith("schema/"):
        wanted = "schema"
    else:
        wanted = owner if target.startswith("sealpoint/") else module_of(target)
    if top == "include" and wanted and not target.startswith("sealpoint/"):
        return f"a public header includes public headers only, not {target}"
    if name.startswith(FACES) and target.startswith(LIBRARY) and not target.startswith(FACES):
        return f"{module} includes public headers only, not {target}"
    if target.split("/")[0] in PROGRAMS + OTHERS and wanted != "schema":
        return f"the library does not include {target}"
    if wanted and not edges.may_include(module, wanted):
        return f"{module} may not include {wanted} ({target})"
    return None


def check_edges(root, edges):
    for name, path in files_below(root, LIBRARY + PROGRAMS, SOURCES):
        if name.startswith("include/") and name.removeprefix("include/sealpoint/") not in edges.owners:
            yield f"{name}:1: no owner in cmake/module_edges.txt"
            continue
        for number, target in includes(path.read_text()):
            error = check_include(root, edges, name, target)
            if error:
                yield f"{name}:{number}: {error}"


def check_public_types(root):
    """Public headers name nothing that is not public: the library's modules use lib/base/internal_access.h."""
    for name, path in files_below(root, ("include",), SOURCES):
        for number, line in enumerate(code_only(path.read_text()).splitlines(), 1):
            if re.search(r"\binternal\b", line):
                yield f"{name}:{number}: a public header names the namespace internal"


def check_namespaces(root):
    """Each module has a namespace of its own, so that no two modules can define one qualified name."""
    for name, path in files_below(root, ("lib", "readers"), SOURCES):
        module = module_of(name)
        if module is None or module == "base" or name.startswith(FACES):
            continue
        allowed = {module, *MORE_NAMESPACES.get(module, ())}
        for number, line in enumerate(code_only(path.read_text()).splitlines(), 1):
            match = re.match(r"namespace (?:sealpoint::)?internal(?:::(\w+))?[\w:]* \{", line)
            if match and match.group(1) not in allowed:
                yield f"{name}:{number}: the module's namespace is internal::{module}"


def check_banned_calls(root):
    for name, path in files_below(root, LIBRARY + PROGRAMS, SOURCES):
        for number, line in enumerate(code_only(path.read_text()).splitlines(), 1):
            for pattern, allowed, why in BANNED:
                match = re.search(pattern, line)
                if match and not name.startswith(allowed):
                    yield f"{name}:{number}: {match.group(0)!r}: {why}"


def banned_python(tree):
    """(line, what) of each use of BANNED_IN_PYTHON, called or not, and each call of BANNED_METHODS."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in BANNED_IN_PYTHON:
            if node.attr in BANNED_IN_PYTHON[node.value.id]:
                yield node.lineno, node.attr
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in BANNED_METHODS:
            if not (isinstance(node.func.value, ast.Name) and node.func.value.id in BANNED_IN_PYTHON):
                yield node.lineno, node.func.attr
        elif isinstance(node, ast.ImportFrom) and node.module in BANNED_IN_PYTHON:
            yield from ((node.lineno, name.name) for name in node.names if name.name in BANNED_IN_PYTHON[node.module])


def check_banned_python(root):
    for name, path in files_below(root, ("python/sealpoint",), (".py",)):
        for line, what in banned_python(ast.parse(path.read_text())):
            if what not in MAY_SYNC.get(name, ()):
                yield f"{name}:{line}: {what!r}: files are the storage's affair; call sealpoint._sealpoint"


def check_text(root, warnings):
    everything = LIBRARY + PROGRAMS + OTHERS
    # Spelled in two halves, so that this file passes its own check.
    unfinished = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b")
    for name, path in files_below(root, everything, WITH_LICENCE + (".txt",)):
        lines = path.read_text().splitlines()
        needs_licence = path.suffix in WITH_LICENCE or path.name == "CMakeLists.txt"
        if path.suffix == ".in" and ".cmake" not in path.name:
            needs_licence = False
        if needs_licence and not any("SPDX-License-Identifier: Apache-2.0" in x for x in lines[:2]):
            yield f"{name}:1: the first line is not the SPDX line"
        if len(lines) > FILE_LINES_MAX and name != GENERATED_LIST:
            yield f"{name}:1: {len(lines)} lines, at most {FILE_LINES_MAX}"
        elif len(lines) > FILE_LINES_WARN and path.suffix in SOURCES:
            warnings.append(f"{name}: {len(lines)} lines, better under {FILE_LINES_WARN}")
        for number, line in enumerate(lines, 1):
            if unfinished.search(line):
                yield f"{name}:{number}: unfinished work is an issue, not a comment"
            if path.suffix == ".py" and len(line) > PYTHON_COLUMNS_MAX:
                yield f"{name}:{number}: {len(line)} columns, at most {PYTHON_COLUMNS_MAX}"


# "x is no y" says neither what was found nor what was expected; "there is no y" does.
IS_NO = re.compile(r"(?<!there )\b(?:is|are) no (?!longer\b|more\b)\w+", re.I)
# "Of a thing: this" is the answer to a question that the reader has to guess.
BEGINS_WITH_OF = re.compile(r"//\s*Of\b")
# In Python a comment and a docstring.
PYTHON_BEGINS_WITH_OF = re.compile(r'("""|# )Of [a-z]')


def check_language(root):
    """Texts in quotation marks and comments, by what docs/internals/style.md says of them."""
    for name, path in files_below(root, LIBRARY + PROGRAMS + ("tests", "fuzz"), SOURCES):
        text = path.read_text()
        for token in TOKENS.finditer(text):
            number = text.count("\n", 0, token.start()) + 1
            if token.group().startswith("//"):
                if BEGINS_WITH_OF.match(token.group()):
                    yield f"{name}:{number}: a comment begins with \"Of\"; write a sentence"
            elif found := IS_NO.search(token.group()):
                yield f"{name}:{number}: {found.group()!r}: say what was found and what was expected"
    for name, path in files_below(root, ("python/sealpoint",), (".py",)):
        for number, text in texts_of_python(path):
            if found := IS_NO.search(text):
                yield f"{name}:{number}: {found.group()!r}: say what was found and what was expected"
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if PYTHON_BEGINS_WITH_OF.search(line):
                yield f"{name}:{number}: a comment begins with \"Of\"; write a sentence"


def texts_of_python(path):
    """(line, text) of each literal that is not a docstring."""
    tree = ast.parse(path.read_text())
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.lineno, node.value


def check_function_lengths(root, warnings):
    ctags = shutil.which("ctags")
    version = subprocess.run([ctags, "--version"], capture_output=True, text=True) if ctags else None
    if not version or "Universal Ctags" not in version.stdout:
        warnings.append("no universal-ctags: lengths of functions were not checked")
        return
    names = [n for n, _ in files_below(root, LIBRARY + PROGRAMS + ("tests", "fuzz"), SOURCES)]
    command = [ctags, "-f", "-", "--languages=C++", "--langmap=C++:+.h.cu", "--kinds-C++=f",
               "--fields=+ne", "-L", "-"]
    tags = subprocess.run(command, cwd=root, input="\n".join(names), capture_output=True, text=True,
                          check=True)
    for tag in tags.stdout.splitlines():
        found = re.match(r"(\S+)\t(\S+)\t.*\tline:(\d+)\t.*?end:(\d+)", tag)
        if found:
            function, name, first, last = found.group(1), found.group(2), *map(int, found.groups()[2:])
            if last - first + 1 > FUNCTION_LINES_MAX:
                yield (f"{name}:{first}: {function} has {last - first + 1} lines, "
                       f"at most {FUNCTION_LINES_MAX}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=pathlib.Path,
                        default=pathlib.Path(__file__).resolve().parents[2])
    root = parser.parse_args().root
    edges = Edges(root / "cmake" / "module_edges.txt")
    warnings = []
    errors = list(edges.errors)
    errors += check_edges(root, edges)
    errors += check_rooms(root)
    errors += check_public_types(root)
    errors += check_namespaces(root)
    errors += check_banned_calls(root)
    errors += check_banned_python(root)
    errors += check_text(root, warnings)
    errors += check_language(root)
    errors += check_function_lengths(root, warnings)
    for warning in warnings:
        print(f"note: {warning}")
    for error in errors:
        print(error)
    print(f"{len(errors)} violations")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
