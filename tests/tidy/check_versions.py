#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that every place that says the version of the library says that of project(VERSION) in CMakeLists.txt.

    check_versions.py [--root ROOT]

What CMake makes has it from there: pkg-config, the CMake package, the names of the shared libraries. The others are
written by hand, or read by an expression. Prints one line per difference; exit status 1 if there is any.
"""

import pathlib
import re
import sys
import tomllib

# The expression has a group for each number; two where a package or a request is good for a minor version.
PLACES = (
    ("include/sealpoint/version.h", r"_MAJOR (\d+)\n#define SEALPOINT_VERSION_MINOR (\d+)\n#define SEALPOINT_VERSION_PATCH (\d+)$"),
    ("debian/changelog", r"\Asealpoint \((\d+)\.(\d+)\.(\d+)(?:~rc\d+)?\) "),
    ("debian/control", r"^Package: libsealpoint(\d+)\.(\d+)$"),
    ("debian/control", r"^ +libsealpoint(\d+)\.(\d+) \(= "),
    ("CHANGELOG.md", r"^## (?:Unreleased: )?(\d+)\.(\d+)\.(\d+)"),
    ("docs/install.md", r"find_package\(sealpoint (\d+)\.(\d+) CONFIG"),
    ("README.md", r"^\*\*State: (\d+)\.(\d+)\.(\d+)(?:-rc\d+)?[. ]"),
)
# Places that say of which candidate they are, and how.
CANDIDATES = {"debian/changelog": "~", "CHANGELOG.md": "-", "README.md": "-"}


def differences(root):
    cmake = (root / "CMakeLists.txt").read_text()
    version = re.search(r"^  VERSION (\d+)\.(\d+)\.(\d+)$", cmake, re.M)
    if not version:
        yield "CMakeLists.txt: no line `  VERSION major.minor.patch`"
        return
    for name, expression in PLACES:
        found = re.search(expression, (root / name).read_text(), re.M)
        if not found:
            yield f"{name}: no version where one is expected ({expression})"
        elif found.groups() != version.groups()[:len(found.groups())]:
            yield f"{name}: {'.'.join(found.groups())}, expected {'.'.join(version.groups()[:len(found.groups())])}"
    candidate = re.search(r'^set.SEALPOINT_PRERELEASE "(\w*)"', cmake, re.M)[1]
    for name, separator in CANDIDATES.items():
        said = ".".join(version.groups()) + (separator + candidate if candidate else "")
        if not re.search(re.escape(said) + r"(?![\w~-])", (root / name).read_text()):
            yield f"{name}: expected {said}"
    minor = ".".join(version.groups()[:2])
    if not (root / f"debian/libsealpoint{minor}.install").exists():
        yield f"debian: no libsealpoint{minor}.install, which says what libsealpoint{minor} holds"
    expression = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["scikit-build"]["metadata"]["version"]["regex"]
    found = re.search(expression, cmake)
    if not found or found["value"] != ".".join(version.groups()):
        yield f"pyproject.toml: its expression finds {found and found['value']}, expected {'.'.join(version.groups())}"


def main():
    root = pathlib.Path(sys.argv[2]) if sys.argv[1:2] == ["--root"] else pathlib.Path(__file__).resolve().parents[2]
    found = list(differences(root))
    print("\n".join([*found, f"{len(found)} differences"]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
