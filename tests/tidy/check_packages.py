#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that scripts/packages.txt names every package that the build, the tests and the scripts need.

A need is a find_package, find_program or pkg_check_modules of a CMake file, a tool named in a script, or
a header of another project. Each is looked up in the tables below; one that they do not know is an error,
so that a new need cannot be forgotten. Finally apt, told that nothing at all is installed, must be able
to install the list.
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]

# What find_package looks for -> packages; () for what comes with CMake or is not from Debian.
CMAKE_PACKAGES = {
    # nanobind is pinned in python/requirements.txt, for which scripts/python_env.sh needs venv.
    "Threads": (), "CUDAToolkit": (), "sealpoint": (), "nanobind": ("python3-venv",), "Python": ("python3-dev",),
    "xxHash": ("libxxhash-dev",), "zstd": ("libzstd-dev",), "PkgConfig": ("pkg-config",),
    "FlatBuffers": ("libflatbuffers-dev", "flatbuffers-compiler"),
    "MPI": ("libopenmpi-dev", "openmpi-bin"), "Python3": ("python3",),
    # The configuration of GTest names both libraries.
    "GTest": ("libgtest-dev", "libgmock-dev"), "rapidcheck": ("librapidcheck-dev",),
    "benchmark": ("libbenchmark-dev",), "CLI11": ("libcli11-dev",), "fmt": ("libfmt-dev",),
    "nlohmann_json": ("nlohmann-json3-dev",), "CURL": ("libcurl4-openssl-dev",), "OpenSSL": ("libssl-dev",),
    "EXPAT": ("libexpat1-dev",), "ZLIB": ("zlib1g-dev",),
}
PKG_CONFIG_MODULES = {"libxxhash": "libxxhash-dev", "libzstd": "libzstd-dev", "liburing": "liburing-dev"}

# Programs that scripts and CMake files call by name. What the minimal system has is not listed.
TOOLS = {
    "cmake": "cmake", "ctest": "cmake", "ninja": "ninja-build", "g++": "g++", "git": "git",
    "ccache": "ccache", "pkg-config": "pkg-config", "flatc": "flatbuffers-compiler",
    "mpirun": "openmpi-bin", "mpiexec": "openmpi-bin", "mpicxx": "libopenmpi-dev",
    "python3": "python3", "ctags": "universal-ctags", "clang++-19": "clang-19", "clang-19": "clang-19",
    "clang-format-19": "clang-format-19", "clang-tidy-19": "clang-tidy-19",
    "run-clang-tidy-19": "clang-tidy-19", "llvm-symbolizer-19": "llvm-19", "spin": "spin",
    "strace": "strace", "gcovr": "gcovr", "jq": "jq", "curl": "curl", "xxd": "xxd", "make": "make",
    "unshare": "util-linux", "abidw": "abigail-tools", "abidiff": "abigail-tools", "shellcheck": "shellcheck",
    "dpkg-buildpackage": "dpkg-dev", "lintian": "lintian", "mmdebstrap": "mmdebstrap",
    "qemu-aarch64-static": "qemu-user-static", "aarch64-linux-gnu-g++": "g++-aarch64-linux-gnu",
    "doxygen": "doxygen"
}
# First component of an include -> package.
HEADERS = {
    "zstd.h": "libzstd-dev", "xxhash.h": "libxxhash-dev",
    "flatbuffers": "libflatbuffers-dev", "mpi.h": "libopenmpi-dev", "gtest": "libgtest-dev",
    "gmock": "libgmock-dev", "rapidcheck": "librapidcheck-dev", "rapidcheck.h": "librapidcheck-dev",
    "benchmark": "libbenchmark-dev", "CLI": "libcli11-dev", "fmt": "libfmt-dev",
    "nlohmann": "nlohmann-json3-dev", "liburing.h": "liburing-dev", "curl": "libcurl4-openssl-dev",
    "openssl": "libssl-dev", "expat.h": "libexpat1-dev",
}
# Wanted by a sanitizer or a preset rather than by name.
IMPLIED = {"clang-19": ("libclang-rt-19-dev", "llvm-19"), "dpkg-dev": ("debhelper", "dh-python")}


def sources(*suffixes):
    for top in sorted(ROOT.iterdir()):
        if top.name in ("build", ".git"):
            continue
        for path in sorted(top.rglob("*")) if top.is_dir() else [top]:
            if path.is_file() and path.name.endswith(suffixes):
                yield path.relative_to(ROOT).as_posix(), path.read_text(errors="replace")


def without_comments(text):
    return re.sub(r"(^|\s)#.*", "", text)


def needs_of_cmake():
    for name, text in sources("CMakeLists.txt", ".cmake", ".cmake.in"):
        text = without_comments(text)
        for package in re.findall(r"\b(?:find_package|find_dependency)\(\s*(\w+)", text):
            if package not in CMAKE_PACKAGES:
                yield name, package, None
            for debian in CMAKE_PACKAGES.get(package, ()):
                yield name, package, debian
        for program in re.findall(r"\bfind_program\(\s*\w+\s+([\w+.-]+)", text):
            yield name, program, TOOLS.get(program)
        for arguments in re.findall(r"\bpkg_check_modules\(([^)]*)\)", text):
            for module in re.findall(r"\blib\w+", arguments):
                yield name, module, PKG_CONFIG_MODULES.get(module)


def needs_of_scripts():
    scripts = list(sources(".sh")) + [(".ci/run", (ROOT / ".ci/run").read_text())]
    for name in ("CMakePresets.json", "cmake/aarch64.cmake"):
        scripts.append((name, (ROOT / name).read_text()))
    for name, text in scripts:
        words = set(re.findall(r"(?<![\w./$-])[\w+-]+(?![\w/-])", without_comments(text)))
        for word in sorted(words & TOOLS.keys()):
            yield name, word, TOOLS[word]
            for implied in IMPLIED.get(TOOLS[word], ()):
                yield name, word, implied


def needs_of_sources():
    for name, text in sources(".h", ".cc"):
        for header in re.findall(r"^\s*#\s*include\s*<([\w.+-]+)", text, re.MULTILINE):
            if header in HEADERS:
                yield name, header, HEADERS[header]


def check_installable(packages):
    """Asks apt to plan the installation on a machine where nothing is installed."""
    lists = pathlib.Path("/var/lib/apt/lists")
    if not shutil.which("apt-get") or not any(lists.glob("*_Packages*")):
        print("note: no lists of packages here (apt-get update): not tried whether apt finds them all")
        return []
    with tempfile.NamedTemporaryFile() as status:
        plan = subprocess.run(["apt-get", "-s", "-o", f"Dir::State::status={status.name}", "install",
                               "--no-install-recommends", *packages],
                              capture_output=True, text=True, check=False)
    return [] if plan.returncode == 0 else [f"scripts/packages.txt: {plan.stderr.strip()}"]


def main():
    lines = (ROOT / "scripts" / "packages.txt").read_text().splitlines()
    packages = [line for line in lines if line and not line.startswith("#")]
    errors = [f"scripts/packages.txt: {p} twice" for p in set(packages) if packages.count(p) > 1]
    for needs in (needs_of_cmake(), needs_of_scripts(), needs_of_sources()):
        for name, need, package in needs:
            if package is None:
                errors.append(f"{name}: which package has {need}? Add it to {pathlib.Path(__file__).name}")
            elif package not in packages:
                errors.append(f"{name}: {need} needs {package}, which scripts/packages.txt lacks")
    errors += check_installable(packages)
    for error in sorted(set(errors)):
        print(error)
    print(f"{len(packages)} packages, {len(set(errors))} errors")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
