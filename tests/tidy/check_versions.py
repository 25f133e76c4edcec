#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that every place that says the version of the library says that of project(VERSION) in CMakeLists.txt, and that
recipes ask for the versions of other software that the build asks for.

    check_versions.py [--root ROOT]

What CMake makes has it from there: pkg-config, the CMake package, the names of the shared libraries. The others are
written by hand, or read by an expression. Prints one line per difference; exit status 1 if there is any.
"""

import pathlib
import re
import sys
import tomllib

CONDA = "packaging/conda/recipe.yaml"
SPACK = "packaging/spack/spack_repo/sealpoint/packages/sealpoint/package.py"
# The expression has a group for each number; two where a package or a request is good for a minor version.
PLACES = (
    ("include/sealpoint/version.h", r"_MAJOR (\d+)\n#define SEALPOINT_VERSION_MINOR (\d+)\n#define SEALPOINT_VERSION_PATCH (\d+)$"),
    ("debian/changelog", r"\Asealpoint \((\d+)\.(\d+)\.(\d+)(?:~rc\d+)?\) "),
    ("debian/control", r"^Package: libsealpoint(\d+)\.(\d+)$"),
    ("debian/control", r"^ +libsealpoint(\d+)\.(\d+) \(= "),
    ("CHANGELOG.md", r"^## (?:Unreleased: )?(\d+)\.(\d+)\.(\d+)"),
    ("docs/start/install.md", r"find_package\(sealpoint (\d+)\.(\d+) CONFIG"),
    ("README.md", r"^\*\*State: (\d+)\.(\d+)\.(\d+)(?:-rc\d+)?[. ]"),
    ("CITATION.cff", r"^version: (\d+)\.(\d+)\.(\d+)(?:-rc\d+)?$"),
    (CONDA, r'^  version: "(\d+)\.(\d+)\.(\d+)(?:rc\d+)?"$'),
    (SPACK, r'^    version\("(\d+)\.(\d+)\.(\d+)(?:-rc\d+)?"\)$'),
    (SPACK, r"spack dev-build sealpoint@(\d+)\.(\d+)\.(\d+)(?:-rc\d+)?$"),
)
# Places that say of which candidate they are, and how.
CANDIDATES = {"debian/changelog": "~", "CHANGELOG.md": "-", "README.md": "-", "CITATION.cff": "-", CONDA: "", SPACK: "-"}

# A fact, where it is decided, and where else it is said.
COPIES = (
    ("CMakeLists.txt", r"^cmake_minimum_required\(VERSION ([\d.]+)\)$", (
        ("pyproject.toml", r'^cmake.version = ">=([\d.]+)"$'),
        ("debian/control", r"cmake \(>= ([\d.]+)\)"),
        ("docs/start/install.md", r"CMake ([\d.]+) or later"),
        (CONDA, r"^ +- cmake >=([\d.]+)$"),
        (SPACK, r'"cmake@([\d.]+):"'),
    )),
    ("cmake/SealpointDependencies.cmake", r"find_package\(CURL ([\d.]+)", (
        ("debian/control", r"libcurl4-openssl-dev \(>= ([\d.]+)\)"),
        ("docs/start/install.md", r"libcurl ([\d.]+)"),
        (SPACK, r'"curl@([\d.]+):"'),
    )),
    ("docs/start/install.md", r"xxHash ([\d.]+)", (
        ("debian/control", r"libxxhash-dev \(>= ([\d.]+)\)"),
        (CONDA, r"^ +- xxhash >=([\d.]+)$"),
        (SPACK, r'"xxhash@([\d.]+):"'),
    )),
    ("pyproject.toml", r'"scikit-build-core>=([\d.]+)"', (
        ("scripts/wheels.sh", r"'scikit-build-core>=([\d.]+)'"),
        (CONDA, r"^ +- scikit-build-core >=([\d.]+)$"),
    )),
    ("pyproject.toml", r'"nanobind>=([\d.]+)"', (
        ("scripts/wheels.sh", r"'nanobind>=([\d.]+)'"),
        (CONDA, r"^ +- nanobind >=([\d.]+)$"),
    )),
    ("pyproject.toml", r'^requires-python = ">=([\d.]+)"$', (
        ("pyproject.toml", r'^python_version = "([\d.]+)"$'),
        ("python/CMakeLists.txt", r"find_package\(Python ([\d.]+) "),
        ("docs/start/install.md", r"headers of Python ([\d.]+) or later"),
        (CONDA, r'match\(python, "<([\d.]+)"\)'),
    )),
    ("pyproject.toml", r'"numpy>=([\d.]+)"', ((CONDA, r"^ +- numpy >=([\d.]+)$"),)),
    ("pyproject.toml", r'"ml_dtypes>=([\d.]+)"', ((CONDA, r"^ +- ml_dtypes >=([\d.]+)$"),)),
    ("debian/control", r"^Maintainer: .* <(.*)>$", ((".github/CODEOWNERS", r"^\* +(\S+)$"),)),
)


def differing_copies(root):
    for owner, expression, places in COPIES:
        decided = re.search(expression, (root / owner).read_text(), re.M)
        if not decided:
            yield f"{owner}: nothing where a version is expected ({expression})"
            continue
        for name, where in places:
            found = re.search(where, (root / name).read_text(), re.M)
            if not found or found[1] != decided[1]:
                yield f"{name}: {found[1] if found else 'nothing'} where {owner} has {decided[1]} ({where})"


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
    found = [*differences(root), *differing_copies(root)]
    print("\n".join([*found, f"{len(found)} differences"]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
