# SPDX-License-Identifier: Apache-2.0
"""Where the extension cannot be imported, `import sealpoint` says what runs there, and that does run."""

import os
import pathlib
import subprocess
import sys

import pytest
import sealpoint

ROOT = pathlib.Path(__file__).parents[2]
# An interpreter of another platform: the same sources without the extension, or with one that does not load. What the standard
# library asks the platform for, it has asked before.
ELSEWHERE = """
import ctypes.util, pathlib, subprocess, sys
sys.platform = {system!r}
class Finder:
    def find_spec(name, path, target=None):
        if name == "sealpoint._sealpoint":
            raise {error}
sys.meta_path.insert(0, Finder)
"""
MISSING = "ModuleNotFoundError('No module named ' + repr(name))"
OTHER_LIBC = "ImportError('libc.so.6: version `GLIBC_2.28 not found')"


def run_elsewhere(code, *arguments, system="darwin", error=MISSING, **variables):
    begin = ELSEWHERE.format(system=system, error=error)
    return subprocess.run([sys.executable, "-c", begin + code, *map(str, arguments)], env=os.environ | variables,
                          capture_output=True, text=True, check=False)


@pytest.mark.parametrize("module", ["sealpoint", "sealpoint.interop", "sealpoint.__main__"])
@pytest.mark.parametrize("system, error, says", [
    ("darwin", MISSING, ("on macOS ", "No module named 'sealpoint._sealpoint'", "; use it on Linux;")),
    ("win32", MISSING, ("on Windows ", "; use it on Linux;")),
    ("linux", MISSING, ("on Linux ", "No module named", "`pip install .`")),
    ("linux", OTHER_LIBC, ("on Linux ", "version `GLIBC_2.28 not found", "install a wheel for this interpreter")),
])
def test_an_import_says_what_runs_here(module, system, error, says):
    done = run_elsewhere(f"import {module}", system=system, error=error)
    assert done.returncode == 1 and done.stderr.count("Traceback") == 1, done.stderr
    line = done.stderr.strip().splitlines()[-1]
    version = f"CPython {sys.version_info.major}.{sys.version_info.minor} "
    for words in (*says, "ImportError: sealpoint saves, loads and converts", version, "python3 -m sealpoint_reference --help"):
        assert words in line, (words, line)


def test_the_reader_that_it_names_runs_there(tmp_path):
    assert (ROOT / "readers/reference/sealpoint_reference/__main__.py").exists()
    sealpoint.save({"w": b"abcd"}, tmp_path / "c")
    code = "import runpy\nrunpy.run_module('sealpoint_reference', run_name='__main__', alter_sys=True)"
    reference = {"PYTHONPATH": str(ROOT / "readers/reference")}
    for system in ("darwin", "win32"):
        done = run_elsewhere(code, "verify", tmp_path / "c", system=system, **reference)
        assert done.returncode == 0 and "committed" in done.stdout, done.stderr
        done = run_elsewhere(code, "cat", tmp_path / "c", "w", system=system, **reference)
        assert done.returncode == 0 and done.stdout == "abcd", done.stderr
