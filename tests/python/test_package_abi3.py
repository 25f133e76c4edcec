# SPDX-License-Identifier: Apache-2.0
"""One wheel for all later versions of Python, built with 3.12 where this machine has it."""

import pathlib
import re
import shutil
import subprocess
import zipfile

import pytest
import test_package as package
from test_package import clone  # noqa: F401


def pythons(version):
    """Interpreters of a version on this machine: by name, or of pyenv."""
    candidates = [shutil.which(f"python{version}"), *pathlib.Path.home().glob(f".pyenv/versions/{version}.*/bin/python")]
    for candidate in filter(None, candidates):
        code = "import sys, sysconfig; print(sys.version_info[:2], sysconfig.get_path('include'))"
        done = subprocess.run([str(candidate), "-c", code], capture_output=True, text=True, check=False)
        found = re.match(r"\((\d+), (\d+)\) (.*)", done.stdout)
        if found and f"{found[1]}.{found[2]}" == version and pathlib.Path(found[3], "Python.h").exists():
            yield candidate


def test_one_wheel_for_later_pythons(clone, tmp_path):
    builder = next(pythons("3.12"), None)
    if builder is None:
        pytest.skip("no Python 3.12 with headers: the abi3 wheel is not built")
    python = package.empty_environment(tmp_path / "builder", builder)
    command = ["wheel", ".", "--no-deps", "--config-settings=build-dir=build/abi3"]
    package.with_pip(python, clone, *command, "--wheel-dir", tmp_path / "wheels")
    (wheel,) = (tmp_path / "wheels").glob("*.whl")
    assert "-cp312-abi3-" in wheel.name
    package.check_content(wheel)
    with zipfile.ZipFile(wheel) as archive:
        assert any(name.endswith("_sealpoint.abi3.so") for name in archive.namelist())
    for version in ("3.12", "3.13", "3.14"):
        for later in list(pythons(version))[:1]:
            installed = package.empty_environment(tmp_path / version, later)
            package.run(installed, "-m", "pip", "install", "--no-deps", wheel)
            package.check_installed(installed, tmp_path / version)
            print(f"{wheel.name} works with Python {version}")
