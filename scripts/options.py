#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes each option wherever it is shown, from the table python/sealpoint/_option_table.py.

    scripts/options.py            writes the keywords and dataclasses of Python, docstrings, docs/reference/options.md, the
                                  binding of a saver's options, and comments of the headers of the C API
    scripts/options.py --check    exit status 1 if one of them is another
"""

import ast
import importlib
import pathlib
import re
import sys
import textwrap
import types

ROOT = pathlib.Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "python/sealpoint"
MADE = "Made by scripts/options.py from python/sealpoint/_option_table.py."
HEADERS = (ROOT / "include/sealpoint.h", ROOT / "include/sealpoint_ranks.h")
PYTHON_COLUMNS, CPP_COLUMNS, NAMES_COLUMNS = 120, 100, 90
# A name in annotations: the import that it needs.
IMPORTS = {
    "Path": "from sealpoint._arguments import Path", "Provenance": "from sealpoint._arguments import Provenance",
    "Attributes": "from sealpoint._arguments import Attributes",
    "Codec": "from sealpoint._save import Codec", "Parent": "from sealpoint._save import Parent",
    "Frozen": "from sealpoint._save import Frozen", "Conversion": "from sealpoint._checkpoint import Conversion",
    "Rounding": "from sealpoint._checkpoint import Rounding", "Progress": "from sealpoint._checkpoint import Progress",
    "Contract": "from sealpoint.torch._contract import Contract", "dist": "import torch.distributed as dist",
    "Mapping": "from collections.abc import Mapping", "Sequence": "from collections.abc import Sequence",
    "TypedDict": "from typing import TypedDict", "dataclasses": "import dataclasses",
}  # fmt: skip
# Module: its dataclasses as (name, base, call). The base is of the module, or of sealpoint._options.
CLASSES = {
    "_options.py": [("StoreOptions", "", "store"), ("SaveOptions", "StoreOptions", "jax.save_async")],
    "torch/_options.py": [("SaveOptions", "_options.SaveOptions", "torch.save_async"), ("LoadOptions", "", "torch.load")],
    "jax/_options.py": [("LoadOptions", "", "jax.load")],
    "megatron/_options.py": [("Options", "_options.StoreOptions", "megatron.enable")],
    "torchtitan/_options.py": [("Settings", "", "torchtitan")],
}
COMMON = [class_[:2] for class_ in CLASSES["_options.py"]]
# The options that a base of a dataclass has.
BASE_CALLS = {"": None, "StoreOptions": "store", "_options.StoreOptions": "store", "_options.SaveOptions": "jax.save_async"}


def load_table():
    """The table, without the rest of the package, which needs a build."""
    package = types.ModuleType("sealpoint")
    package.__path__ = [str(PACKAGE)]
    sys.modules.setdefault("sealpoint", package)
    return importlib.import_module("sealpoint._option_table")


TABLE = load_table()
OPTIONS, CALLS = TABLE.OPTIONS, TABLE.CALLS


def type_of(name, call):
    own = OPTIONS[name].own.get(call)
    return own.type if own and own.type else OPTIONS[name].type


def default_of(name, call):
    own = OPTIONS[name].own.get(call)
    return OPTIONS[name].default if own is None or own.default is ... else own.default


def literal(value):
    """A value as a person writes it."""
    for shift in (30, 20):
        if type(value) is int and value >= 1 << shift and value % (1 << shift) == 0:
            return f"{value >> shift} << {shift}"
    return f'"{value}"' if isinstance(value, str) else repr(value)


def in_words(value, unit):
    """A default for people."""
    if unit == "bytes" and value:
        return next(f"{value >> shift} {name}" for shift, name in ((30, "GiB"), (20, "MiB"), (0, "B")) if value >> shift)
    if unit == "seconds" and value:
        count, name = (value / 3600, "hour") if value >= 3600 else (value / 60, "minute")
        return f"{count:g} {name}{'' if count == 1 else 's'}"
    return literal(value)


def owner_of(name):
    """The call with the option's text."""
    return next(call for call in OPTIONS[name].calls.split() if CALLS[call].place)


def wrapped(text, columns, indent, further):
    return textwrap.fill(text, columns, initial_indent=indent, subsequent_indent=further, break_long_words=False,
                         break_on_hyphens=False).splitlines()


# Keywords and dataclasses.


def added_names(call, base):
    known = TABLE.names_of(base) if base else []
    return [name for name in TABLE.names_of(call) if name not in known]


def keywords_class(call):
    made, base = CALLS[call], CALLS[call].base
    name, where = made.keywords.split(":")[1], CALLS[base].keywords if base else ""
    parent = "TypedDict" if not base else where.split(":")[1]
    if base and where.split(":")[0] != made.keywords.split(":")[0]:
        parent = f"_options.{parent}"
    yield f"class {name}({parent}, total=False):"
    yield f'    """{"Keywords of all saves" if not made.place and not base else f"Keywords of ``sealpoint.{call}``"}."""'
    yield ""
    yield from (f"    {item}: {type_of(item, call)}" for item in added_names(call, base))


def options_class(name, base, call):
    is_titan = call == "torchtitan"  # its configuration may be changed, and shows the texts
    yield f"@dataclasses.dataclass({'' if is_titan else 'frozen=True, '}kw_only=True)"
    yield f"class {name}{f'({base})' if base else ''}:"
    yield f'    """Options of {"all frameworks" if (name, base) in COMMON else f"``sealpoint.{call}``"}."""'
    yield ""
    if is_titan:
        yield from ("    __slots__ = ()  # its configuration has them", "")
    for item in added_names(call, BASE_CALLS[base]):
        kind, default = type_of(item, call), literal(default_of(item, call))
        if kind.startswith("list["):
            default = "dataclasses.field(default_factory=list)"
        yield f"    {item}: {kind} = {default}"
        if is_titan:
            own = OPTIONS[item].own.get(call)
            yield from docstring_lines(own.text if own and own.text else OPTIONS[item].text)


def docstring_lines(text):
    lines = wrapped(f'"""{text}"""', PYTHON_COLUMNS, "    ", "    ")
    yield from [*lines, ""]


def module_text(module):
    classes = [list(keywords_class(call)) for call, value in CALLS.items() if value.keywords.startswith(f"{module}:")]
    classes += [list(options_class(*class_)) for class_ in CLASSES[module]]
    body = "\n\n\n".join("\n".join(lines).rstrip() for lines in classes)
    needed = {text for name, text in IMPORTS.items() if re.search(rf"(?<![\w.\"]){name}\b", body)}
    if "_options." in body:
        needed.add("from sealpoint import _options")
    groups = [[item for item in sorted(needed, key=import_order) if kind_of_import(item) == kind] for kind in range(3)]
    imports = "\n\n".join("\n".join(merged(group)) for group in groups if group)
    return (f'# SPDX-License-Identifier: Apache-2.0\n"""Options. {MADE}"""\n\nfrom __future__ import annotations\n\n'
            f"{imports}\n\n\n{body}\n")


def kind_of_import(text):
    module = text.split()[1]
    return 2 if module.startswith("sealpoint") else 1 if module.startswith("torch") else 0


def import_order(text):
    return (text.startswith("from"), text.split()[1], text)


def merged(lines):
    """Imports of names from one module on one line."""
    found = {}
    for line in lines:
        head, _, name = line.rpartition(" import ")
        found.setdefault(head or line, []).append(name)
    return [line if not line.startswith("from") else f"{line} import {', '.join(sorted(found[line]))}" for line in found]


# Docstrings.


def text_of(name, call):
    """The option's text at this call, or a reference to that of another."""
    own = OPTIONS[name].own.get(call)
    if own and own.text:
        return own.text
    owner, text = owner_of(name), OPTIONS[name].text
    return text if call == owner or text.startswith("As for") else f"As for ``sealpoint.{owner}``."


def entries(call):
    """The entries of a docstring: those with a text, then those that refer to another call."""
    shared = {}
    for name in added_names(call, CALLS[call].base) if call.endswith("_async") else TABLE.names_of(call):
        text = text_of(name, call)
        if re.fullmatch(r"As for ``sealpoint\.[\w.]+``\.", text):
            shared.setdefault(text, []).append(name)
        else:
            yield name, text
    for text, names in shared.items():
        for line in textwrap.wrap(", ".join(names), NAMES_COLUMNS):  # the names of an entry stand on one line
            yield line.rstrip(","), text


def with_entries(docstring, call):
    """The docstring with the options at the end of its arguments."""
    names = set(TABLE.names_of(call))
    lines, kept, is_inside, is_dropped = docstring.split("\n"), [], False, False
    for line in lines:
        if re.fullmatch(r"    (    )?(Args|Additional settings):", line):
            is_inside, indent = True, " " * (len(line) - len(line.lstrip()) + 4)
        elif is_inside and line.strip() == "":
            for entry, text in entries(call):
                kept += wrapped(f"{entry}: {text}", PYTHON_COLUMNS, indent, indent + "    ")
            is_inside = is_dropped = False
        elif is_inside and (match := re.match(rf"{indent}(\w[\w, ]*): ", line)):
            is_dropped = set(match[1].split(", ")) <= names
        if not is_dropped:
            kept.append(line)
    return "\n".join(kept)


def documented(path, calls):
    """The text of a module with the options in the docstrings of these calls."""
    text = path.read_text()
    for call in calls:
        name = CALLS[call].place.split(":")[1]
        node = next(item for item in ast.walk(ast.parse(text)) if getattr(item, "name", "") == name)
        docstring = ast.get_docstring(node, clean=False)
        text = text.replace(docstring, with_entries(docstring, call), 1)
    return text


# Documents, the binding, and the header of C.


def page():
    yield from (
        "# Options", "",
        f"<!-- {MADE} -->",
        "This page lists the options of saves and loads in Python. *All ranks*: if ranks pass different values, all ranks",
        "get an error. In C++ these options are fields of `SaverOptions`, `SaveOptions` and `CollectiveReadOptions`; in C,",
        "they are fields of `sealpoint_saver_options`, `sealpoint_save_options` and `sealpoint_read_options`.", "",
        "| not set | C++ | C | Python |", "|---|---|---|---|",
        "| a number of threads that the library chooses | `kThreadsAuto` | 0 | None |",
        "| a deadline without a limit | `kForever` | `SEALPOINT_FOREVER` | None |", "",
        "| option | type | default | all ranks | calls | |", "|---|---|---|---|---|---|",
    )  # fmt: skip
    for name, option in OPTIONS.items():
        calls = [call for call in CALLS if name in TABLE.names_of(call) and call != "store"]
        default = f"`{in_words(option.default, option.unit)}`" if option.unit else f"`{literal(option.default)}`"
        yield (f"| `{name}` | {option.unit or f'`{option.type}`'.replace('|', chr(92) + '|')} | {default} | "
               f"{'yes' if option.is_same else ''} | {', '.join(f'`{call}`' for call in calls)} | "
               f"{re.sub('``', '`', option.text)} |")


def binding():
    fields = [(option.saver.field) for option in OPTIONS.values() if option.saver]
    yield from (
        "// SPDX-License-Identifier: Apache-2.0", "//", f"// {MADE}",
        "#ifndef SEALPOINT_PYTHON_SRC_SAVER_OPTIONS_H_", "#define SEALPOINT_PYTHON_SRC_SAVER_OPTIONS_H_", "",
        '#include "sealpoint/saver.h"', "", "namespace sealpoint::python {", "",
        "// Calls `visit(name, field)` for each option that Python sets.",
        "template <typename Options, typename Visit>",
        "void ForEachSaverOption(Options& options, const Visit& visit) {",
        *(f'  visit("{field}", options.{field});' for field in fields),
        "}", "", "}  // namespace sealpoint::python", "", "#endif  // SEALPOINT_PYTHON_SRC_SAVER_OPTIONS_H_",
    )  # fmt: skip


def c_comment(option, c):
    if option.type == "bool":
        return f"1: {c.meaning}"
    default = in_words(option.default, option.unit) if option.default else ""
    parts = [f"0: {c.meaning}" if option.default is None else c.meaning, f"0: {default}" if default else ""]
    if option.type == "float | None":
        parts[1] += ", SEALPOINT_FOREVER: no limit"
    return "; ".join(part for part in parts if part)


def header(text):
    """A header of C with the defaults of the table in the comments of its fields."""
    for option in OPTIONS.values():
        for c in option.c:
            struct = re.search(rf"typedef struct {c.struct} {{.*?^}}", text, re.S | re.M)
            if struct is None:
                continue  # of the other header
            field = re.search(rf"(?m)^.*\b{c.field};(.*)$", struct[0])
            comment = f"// {c_comment(option, c)}"
            if field[1].strip() != comment:
                line = field[0][: len(field[0]) - len(field[1])] + "  " + comment
                text = text.replace(struct[0], struct[0].replace(field[0], line), 1)
    return text


def outputs():
    """Path and text of each file."""
    for module in CLASSES:
        yield PACKAGE / module, module_text(module)
    places = {}
    for call, value in CALLS.items():
        if value.place:
            places.setdefault(value.place.split(":")[0], []).append(call)
    for module, calls in places.items():
        yield PACKAGE / module, documented(PACKAGE / module, calls)
    yield ROOT / "docs/reference/options.md", "\n".join(page()) + "\n"
    yield ROOT / "python/src/saver_options.h", "\n".join(binding()) + "\n"
    structs = {c.struct for option in OPTIONS.values() for c in option.c}
    for path in HEADERS:
        text = path.read_text()
        structs -= set(re.findall(r"(?m)^typedef struct (\w+) {", text))
        yield path, header(text)
    if structs:
        raise ValueError(f"no header of the C API has {', '.join(sorted(structs))}")


def main(arguments):
    made = dict(outputs())
    wrong = [path for path, text in made.items() if not path.exists() or path.read_text() != text]
    if arguments == ["--check"]:
        for path in wrong:
            print(f"{path.relative_to(ROOT)}: is not made of the table: run scripts/options.py")
    else:
        for path in wrong:
            path.write_text(made[path])
    print(f"{len(OPTIONS)} options in {len(made)} files, {len(wrong)} {'other' if arguments else 'written'}")
    return 1 if wrong and arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
