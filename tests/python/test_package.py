# SPDX-License-Identifier: Apache-2.0
"""The wheel: built as pip builds it, installed into an empty environment, small, quick to import."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import venv
import zipfile

import pytest

ROOT = pathlib.Path(__file__).parents[2]
WHEEL_SIZE_MAX_BYTES = 10_000_000
IMPORT_MAX_SECONDS = 0.15


def run(*command, **options):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def build(python, folder, out, *, isolated_path=None):
    """As `pip wheel .`, with the same flags as the build folder of this test, so that a compiler cache is used."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    if isolated_path:
        environment["PYTHONPATH"] = str(isolated_path)
    run(python, "-m", "pip", "wheel", ROOT, "--no-deps", "--no-build-isolation", "--wheel-dir", out,
        f"-Cbuild-dir={folder}", "-Ccmake.define.SEALPOINT_WERROR=ON", "-Ccmake.define.CMAKE_UNITY_BUILD=ON",
        cwd=ROOT, env=environment)
    (wheel,) = out.glob("*.whl")
    return wheel


def check_installed(python, site):
    """Imports it in a new process, without anything else, and uses it."""
    code = ("import sys, time; began = time.perf_counter(); import sealpoint; passed = time.perf_counter() - began; "
            "taken = [m for m in ('numpy', 'torch', 'ml_dtypes') if m in sys.modules]; "
            "sealpoint.save({'w': b'abcd'}, sys.argv[1]); "
            "print(passed, taken, bytes(sealpoint.open(sys.argv[1])['w'].tobytes()), sealpoint.__file__)")
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    outputs = [run(python, "-I", "-c", code, site / f"c{i}", env=environment) for i in range(3)]
    fastest = min(float(output.split()[0]) for output in outputs)
    assert " [] b'abcd' " in outputs[0] and str(site) in outputs[0]
    assert fastest < IMPORT_MAX_SECONDS
    return fastest


def check_content(wheel):
    assert wheel.stat().st_size < WHEEL_SIZE_MAX_BYTES
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        metadata = archive.read(next(name for name in names if name.endswith("METADATA"))).decode()
        scripts = archive.read(next(name for name in names if name.endswith("entry_points.txt"))).decode()
        module = next(name for name in names if "_sealpoint." in name and name.endswith(".so"))
        extracted = pathlib.Path(archive.extract(module, wheel.parent))
    version = re.search(r"^  VERSION (\S+)$", (ROOT / "CMakeLists.txt").read_text(), re.M)[1]
    assert f"\nVersion: {version}\n" in metadata and "\nRequires-Dist: numpy>=1.26; extra" in metadata
    assert "sealpoint = sealpoint.__main__:main" in scripts, "the command"
    assert "Apache-2.0" in metadata and any(name.endswith("licenses/LICENSE") for name in names)
    ours = {name for name in names if name.startswith("sealpoint/")}
    sources = {f"sealpoint/{f.relative_to(ROOT / 'python/sealpoint')}" for f in (ROOT / "python/sealpoint").rglob("*.py")}
    assert ours == sources | {"sealpoint/py.typed", "sealpoint/_sealpoint.pyi", module}
    if shutil.which("ldd"):
        needed = set(re.findall(r"^\s*(\S+) =>", run("ldd", extracted), re.M))
        of_the_compiler = {"libstdc++.so.6", "libgcc_s.so.1", "libm.so.6", "libc.so.6", "libpthread.so.0", "libdl.so.2"}
        assert needed <= of_the_compiler, needed
    if shutil.which("nm"):  # other copies of the same libraries live in one process
        exported = {line.split()[-1] for line in run("nm", "--dynamic", "--defined-only", extracted).splitlines()}
        assert [name for name in exported if re.search("sealpoint|ZSTD|XXH|flatbuffers", name)] == ["PyInit__sealpoint"]


def test_wheel_for_this_python(tmp_path):
    wheel = build(sys.executable, "build/wheel", tmp_path / "wheels")
    check_content(wheel)
    tag = f"cp{sys.version_info.major}{sys.version_info.minor}"
    assert ("-cp312-abi3-" if sys.version_info >= (3, 12) else f"-{tag}-{tag}-") in wheel.name
    venv.create(tmp_path / "empty", with_pip=False)
    python = tmp_path / "empty/bin/python"
    run(sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", "--no-index", wheel)
    passed = check_installed(python, tmp_path / "empty")
    print(f"wheel {wheel.stat().st_size} bytes, import {passed * 1e3:.1f} ms")


def pythons(version):
    """Interpreters of a version on this machine: by name, or of pyenv."""
    candidates = [shutil.which(f"python{version}"), *pathlib.Path.home().glob(f".pyenv/versions/{version}.*/bin/python")]
    for candidate in filter(None, candidates):
        code = "import sys, sysconfig; print(sys.version_info[:2], sysconfig.get_path('include'))"
        done = subprocess.run([str(candidate), "-c", code], capture_output=True, text=True, check=False)
        found = re.match(r"\((\d+), (\d+)\) (.*)", done.stdout)
        if found and f"{found[1]}.{found[2]}" == version and pathlib.Path(found[3], "Python.h").exists():
            yield candidate


def test_one_wheel_for_later_pythons(tmp_path):
    builder = next(pythons("3.12"), None)
    if builder is None:
        pytest.skip("no Python 3.12 with headers: the abi3 wheel is not built")
    run(builder, "-m", "venv", tmp_path / "builder")
    # What it is built with is pure Python, that of this environment.
    import nanobind
    import scikit_build_core

    path = {str(pathlib.Path(module.__file__).parents[1]) for module in (nanobind, scikit_build_core)}
    wheel = build(tmp_path / "builder/bin/python", "build/wheel-abi3", tmp_path / "wheels", isolated_path=":".join(path))
    assert "-cp312-abi3-" in wheel.name
    check_content(wheel)
    with zipfile.ZipFile(wheel) as archive:
        assert any(name.endswith("_sealpoint.abi3.so") for name in archive.namelist())
    for version in ("3.12", "3.13"):
        for python in list(pythons(version))[:1]:
            run(python, "-m", "venv", "--without-pip", tmp_path / version)
            installed = tmp_path / version / "bin/python"
            run(sys.executable, "-m", "pip", "--python", installed, "install", "--no-deps", "--no-index", wheel)
            check_installed(installed, tmp_path / version)
            print(f"{wheel.name} works with Python {version}")
