#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes spec/registries.json of the tables in spec/registries.md.

    scripts/registries.py            writes spec/registries.json
    scripts/registries.py --check    exit status 1 if it is another, or if the headers of the library have other numbers
"""

import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGE, OUTPUT = ROOT / "spec/registries.md", ROOT / "spec/registries.json"
# Title of the section: name of the registry.
SECTIONS = {
    "File kinds": "file_kinds", "Marker kinds": "marker_kinds", "Feature bits": "features",
    "Digest algorithms": "digest_algorithms", "Codecs": "codecs", "dtypes": "dtypes", "Provenance keys": "provenance_keys",
}  # fmt: skip
# Registry: header and enumeration of its values.
ENUMERATIONS = {
    "codecs": ("dtype.h", "Codec"), "dtypes": ("dtype.h", "DType"), "digest_algorithms": ("digest.h", "DigestAlgorithm"),
}  # fmt: skip


def cells(line):
    return [cell.strip().replace("\\|", "|") for cell in line.strip().strip("|").split(" | ")]


def tables(text):
    """Heading and rows, as dicts, of each table whose first column is `value`, `mask`, `id` or `key`."""
    heading, columns = "", None
    for line in text.splitlines():
        if line.startswith("## "):
            heading = line[3:].partition(" (")[0]
        if not line.startswith("|"):
            columns = None
        elif columns is None:
            columns = cells(line)
        elif not line.startswith("|---") and columns[0] in ("value", "mask", "key"):
            yield heading, dict(zip(columns, cells(line)))


def entry_of(row):
    """A row with numbers as numbers, and whether it is in use, reserved or withdrawn."""
    entry = {key: int(value) if value.isdigit() else value for key, value in row.items() if value not in ("", "–")}
    texts = " ".join(str(value) for value in row.values())
    return {**entry, "status": next((status for status in ("reserved", "withdrawn") if status in texts), "in use")}


def registries(text):
    found = {name: [] for name in SECTIONS.values()}
    for heading, row in tables(text):
        if heading in SECTIONS and "none yet" not in row.values() and "private" not in " ".join(row.values()).split():
            found[SECTIONS[heading]].append(entry_of(row))
    return {"format_version": 1, "private_values": [61440, 65535], **found}


def problems(found):
    if not OUTPUT.exists() or json.loads(OUTPUT.read_text()) != found:
        yield f"{OUTPUT.name} is not made of {PAGE.name}: run scripts/registries.py"
    for name, (header, enumeration) in ENUMERATIONS.items():
        text = (ROOT / "include/sealpoint" / header).read_text()
        text = text.partition(f"enum class {enumeration} ")[2].partition("};")[0]
        in_code = {int(value) for value in re.findall(r"^  k\w+ = (\d+),", text, re.M)}
        in_use = {item["value"] for item in found[name] if item["status"] == "in use"}
        if not in_use or in_use - {0} != in_code - {0}:
            yield f"{name}: {PAGE.name} and {header} differ in {sorted(in_use ^ in_code - {0})}"


def main(arguments):
    found = registries(PAGE.read_text())
    if arguments != ["--check"]:
        OUTPUT.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    wrong = list(problems(found))
    print("\n".join([*wrong, f"{sum(map(len, (found[name] for name in SECTIONS.values())))} values, {len(wrong)} problems"]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
