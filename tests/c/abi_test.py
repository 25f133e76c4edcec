#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The ABI of the C API: what the library exports, and what its headers say of functions, structs and constants, against what
was recorded in tests/c/abi/sealpoint_c_1.xml. Recorded things may never change; new ones are recorded with --record.

  abi_test.py LIBRARY [TEST...]    LIBRARY is libsealpoint_c.so
  abi_test.py --record             writes the file anew, after a deliberate addition

The types are those of a library of empty functions that is made of the headers alone, so that the one that users get needs no
debugging symbols. Without abigail-tools (abidw, abidiff) what needs them is skipped.
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEADER = ROOT / "include/sealpoint.h"
MORE = [ROOT / "include/sealpoint_ranks.h", ROOT / "include/sealpoint_attributes.h"]
INCLUDES = "\n".join(f'#include "{header.name}"' for header in MORE)
EXPORTS = ROOT / "lib/c/exports.map"
RECORDED = ROOT / "tests/c/abi/sealpoint_c_1.xml"
LIBRARY = None
# abidiff's answers; 4 alone: something was added.
CHANGED, INCOMPATIBLE = 4, 8


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, check=False)


def declarations(text):
    """Name -> declaration of each function of the header."""
    text = re.sub(r"//[^\n]*", "", text)
    found = {}
    for declaration in re.findall(r"^SEALPOINT_C_API\s+([^;]+);", text, re.M):
        found[re.search(r"\b(sealpoint_\w+)\(", declaration)[1]] = declaration
    return found


def all_declarations():
    return declarations("".join(header.read_text() for header in (HEADER, *MORE)))


def stub(folder, text):
    """A library of empty functions made of the header `text` and the others."""
    (folder / HEADER.name).write_text(text)
    for header in MORE:
        shutil.copy(header, folder)
    found = declarations(text + "".join(header.read_text() for header in MORE))
    bodies = "\n".join(f"{declaration} {{ __builtin_trap(); }}" for declaration in found.values())
    # Constants and structs that no function names are to be seen, too.
    (folder / "stub.c").write_text(f"{INCLUDES}\n{bodies}\n")
    made = run("gcc", "-std=c99", "-g", "-O0", "-fno-eliminate-unused-debug-types", "-fPIC", "-shared", "-w",
               f"-Wl,--version-script={EXPORTS}", "-Wl,-soname,libsealpoint_c.so.1", "-o", folder / "libsealpoint_c.so",
               folder / "stub.c")
    if made.returncode != 0:
        raise RuntimeError(made.stderr)
    return folder / "libsealpoint_c.so"


def record(library, path):
    made = run("abidw", "--no-corpus-path", "--no-comp-dir-path", "--no-show-locs", "--load-all-types", "--out-file", path,
               library)
    if made.returncode != 0:
        raise RuntimeError(made.stderr)


class ExportsTest(unittest.TestCase):
    def setUp(self):
        lines = run("nm", "-D", "--defined-only", LIBRARY).stdout.splitlines()
        self.exported = {line.split()[-1] for line in lines if " A " not in line}

    def test_all_have_the_version(self):
        self.assertEqual([], [item for item in self.exported if not re.fullmatch(r"sealpoint_\w+@@SEALPOINT_C_1", item)])

    def test_they_are_those_of_the_headers(self):
        names = {item.split("@")[0] for item in self.exported}
        self.assertEqual(set(all_declarations()), names)

    def test_soname(self):
        self.assertIn("[libsealpoint_c.so.1]", run("readelf", "-d", LIBRARY).stdout)


class CoverageTest(unittest.TestCase):
    def test_every_function_is_called_by_a_test(self):
        tests = "".join(path.read_text() for path in (ROOT / "tests/c").glob("*.c"))
        uncalled = [name for name in all_declarations() if f"{name}(" not in tests]
        self.assertEqual([], uncalled)


class HeaderTest(unittest.TestCase):
    def compile(self, *command, before=""):
        with tempfile.TemporaryDirectory() as folder:
            source = pathlib.Path(folder) / "header.c"
            source.write_text(f'{before}{INCLUDES}\nint main(void) {{ return 0; }}\n')
            return run(*command, "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Wconversion", f"-I{ROOT}/include",
                       "-fsyntax-only", source)

    def test_in_c_and_c_plus_plus(self):
        for command in (["gcc", "-std=c99"], ["gcc", "-std=c17"], ["g++", "-xc++", "-std=c++11"],
                        ["g++", "-xc++", "-std=c++20"], ["clang-19", "-std=c99"], ["clang++-19", "-xc++", "-std=c++17"]):
            if shutil.which(command[0]):
                result = self.compile(*command)
                self.assertEqual((0, ""), (result.returncode, result.stderr), command)

    def test_with_dlpack_of_torch_the_layouts_agree(self):
        found = sorted(ROOT.glob("build/venv/lib/python*/site-packages/torch/include/ATen/dlpack.h"))
        if not found:
            self.skipTest("no torch in build/venv, whose dlpack.h would be looked at")
        with tempfile.TemporaryDirectory() as folder:
            checks = pathlib.Path(folder) / "layout.c"
            fields = ["data", "device", "ndim", "dtype", "shape", "strides", "byte_offset"]
            managed = ["version", "manager_ctx", "deleter", "flags", "dl_tensor"]
            pairs = [("DLTensor", "sealpoint_dl_tensor", fields),
                     ("DLManagedTensorVersioned", "sealpoint_dl_managed_tensor", managed)]
            lines = ["#include <stddef.h>", "#include <sealpoint.h>", f'#include "{found[0]}"']
            for theirs, ours, names in pairs:
                lines.append(f'_Static_assert(sizeof({theirs}) == sizeof({ours}), "size");')
                lines += [f'_Static_assert(offsetof({theirs}, {name}) == offsetof({ours}, {name}), "{name}");'
                          for name in names]
            checks.write_text("\n".join(lines) + "\n")
            result = run("gcc", "-std=c11", f"-I{ROOT}/include", "-fsyntax-only", checks)
            self.assertEqual((0, ""), (result.returncode, result.stderr))
        result = self.compile("gcc", "-std=c99", before=f'#include "{found[0]}"\n')
        self.assertEqual((0, ""), (result.returncode, result.stderr))
        result = self.compile("gcc", "-std=c99", before="#define DLPACK_DLPACK_H_\n")  # as of a version before 1
        self.assertIn("needs dlpack.h of version 1", result.stderr)


@unittest.skipUnless(shutil.which("abidw") and shutil.which("abidiff"), "abigail-tools are not installed")
class AbiTest(unittest.TestCase):
    def compare(self, edit=lambda text: text):
        """abidiff's status and report for the header as `edit` makes it."""
        with tempfile.TemporaryDirectory() as name:
            # Both as XML: it doesn't hold all that is in a library.
            now = pathlib.Path(name) / "now.xml"
            record(stub(pathlib.Path(name), edit(HEADER.read_text())), now)
            result = run("abidiff", "--no-show-locs", "--non-reachable-types", RECORDED, now)
        return result.returncode, result.stdout + result.stderr

    def replace(self, old, new):
        def edit(text):
            self.assertIn(old, text)
            return text.replace(old, new, 1)
        return edit

    def test_nothing_changed(self):
        self.assertEqual((0, ""), self.compare())

    def test_a_function_that_is_gone_is_seen(self):
        name = "sealpoint_series_count"
        status, report = self.compare(lambda text: re.sub(rf"SEALPOINT_C_API uint64_t {name}\([^;]*;", "", text))
        self.assertTrue(status & INCOMPATIBLE, report)
        self.assertIn(name, report)

    def test_a_struct_that_changed_is_seen(self):
        status, report = self.compare(self.replace("  uint32_t skip_file_check;", "  uint64_t skip_file_check;"))
        self.assertTrue(status & CHANGED, report)
        self.assertIn("struct sealpoint_open_options", report)

    def test_a_parameter_that_changed_is_seen(self):
        status, report = self.compare(self.replace("int32_t allow_fallback,", "uint64_t allow_fallback,"))
        self.assertTrue(status & CHANGED, report)
        self.assertIn("sealpoint_series_newest", report)

    def test_a_constant_that_changed_is_seen(self):
        status, report = self.compare(self.replace("SEALPOINT_CORRUPT = 7", "SEALPOINT_CORRUPT = 70"))
        self.assertTrue(status & CHANGED, report)

    def test_a_function_that_was_added_is_to_be_recorded(self):
        status, report = self.compare(self.replace(
            "SEALPOINT_C_API uint32_t sealpoint_abi_version(void);",
            "SEALPOINT_C_API uint32_t sealpoint_abi_version(void);\nSEALPOINT_C_API int32_t sealpoint_later(void);"))
        self.assertEqual(CHANGED, status, report)
        self.assertIn("sealpoint_later", report)


if __name__ == "__main__":
    if sys.argv[1:] == ["--record"]:
        with tempfile.TemporaryDirectory() as work:
            record(stub(pathlib.Path(work), HEADER.read_text()), RECORDED)
        sys.exit(0)
    LIBRARY = sys.argv.pop(1)
    unittest.main()
