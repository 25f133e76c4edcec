# SPDX-License-Identifier: Apache-2.0
"""The package as users get it: `pip install .` of a clone, and of its source package, in empty environments."""

import importlib.metadata
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import zipfile

import pytest

ROOT = pathlib.Path(__file__).parents[2]
WHEELHOUSE = ROOT / "build/wheelhouse"  # what pip builds with, fetched by scripts/python_env.sh
WHEEL_SIZE_MAX_BYTES = 10_000_000
IMPORT_MAX = 1.5  # times as long as some modules of Python itself; 0.5 to 0.8 measured
# Objects that another build has compiled come from the compiler cache if the folders lie to each other as there, and the
# compiler is called by the same name.
BUILD_FOLDER = "--config-settings=build-dir=build/pip"
COMPILER = {"CXX": "g++"} if shutil.which("g++") else {}


def run(*command, root=ROOT, stderr=subprocess.PIPE, **variables):
    """Runs it as a user of a shell without settings of Python; returns what it printed."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    if WHEELHOUSE.is_dir():  # no network
        environment |= {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(WHEELHOUSE)}
    environment |= {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "CCACHE_BASEDIR": str(root), **COMPILER, **variables}
    words = [str(part) for part in command]
    done = subprocess.run(words, cwd=root, env=environment, stdout=subprocess.PIPE, stderr=stderr, text=True, check=False)
    assert done.returncode == 0, done.stdout + (done.stderr or "")
    return done.stdout


def empty_environment(folder, python=sys.executable):
    # Of the interpreter below this virtual environment, which is otherwise looked through for packages, too.
    run(python, "-m", "venv", folder, root=folder.parent)
    assert run(folder / "bin/python", "-c", "import importlib.util as u; print(u.find_spec('nanobind'))",
               root=folder).strip() == "None"
    # pip installs what it builds with into a temporary folder. Objects come from the compiler cache if that is always called
    # the same, within the clone.
    site = run(folder / "bin/python", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", root=folder).strip()
    pathlib.Path(site, "sitecustomize.py").write_text(
        "import itertools, tempfile\ntempfile._name_sequence = map(str, itertools.count())\n"
    )
    return folder / "bin/python"


def with_pip(python, clone, *command):
    (clone / "build/tmp").mkdir(parents=True, exist_ok=True)
    return run(python, "-m", "pip", *command, root=clone, stderr=subprocess.STDOUT, TMPDIR=clone / "build/tmp")


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """What a clone would hold: the files that git knows, as they are now. A file that was never added is not there."""
    if not (ROOT / ".git").exists():
        pytest.skip("this is no clone: git is asked what belongs to it")
    folder = tmp_path_factory.mktemp("stranger") / "sealpoint"
    for name in run("git", "ls-files", "-z").split("\0"):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    return folder


def check_installed(python, site):
    """Imports it in a new process, without anything else, and uses it."""
    code = ("import sys, time; began = time.process_time(); import sealpoint; passed = time.process_time() - began; "
            "taken = [m for m in ('numpy', 'torch', 'ml_dtypes') if m in sys.modules]; began = time.process_time(); "
            "import asyncio, http.client, multiprocessing.pool, unittest.mock; others = time.process_time() - began; "
            "sealpoint.save({'w': b'abcd'}, sys.argv[1]); "
            "print(passed / others, taken, bytes(sealpoint.open(sys.argv[1])['w'].tobytes()), sealpoint.__file__)")
    outputs = [run(python, "-I", "-c", code, site / f"c{i}") for i in range(3)]
    least = min(float(output.split()[0]) for output in outputs)
    assert " [] b'abcd' " in outputs[0] and str(site) in outputs[0]
    assert least < IMPORT_MAX
    return least


def check_sbom(sbom):
    """What is compiled in, with the versions that this machine has, and a notice of each."""
    found = {part["name"]: part["version"] for part in sbom["components"]}
    assert set(found) == {"CLI11", "FlatBuffers", "JSON", "fmt", "nanobind", "robin-map", "xxHash", "zstd"}
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in found.values()), found
    assert found["nanobind"] == importlib.metadata.version("nanobind")
    for name, module in (("xxHash", "libxxhash"), ("zstd", "libzstd")):
        if shutil.which("pkg-config"):
            assert found[name] == run("pkg-config", "--modversion", module).strip(), name
    parts = [part["bom-ref"] for part in sbom["components"]]
    (ours,) = sbom["dependencies"]
    assert ours == {"ref": sbom["metadata"]["component"]["bom-ref"], "dependsOn": parts}
    assert all(part["purl"].endswith(part["version"]) and part["licenses"][0]["expression"] for part in sbom["components"])
    notices = re.findall("^=+ (.*?) =+$", (ROOT / "python/third_party_notices.txt").read_text(), re.M)
    assert set(notices) == set(found) | {"libc++"}, "libc++ is in wheels of scripts/wheels.sh"


def check_content(wheel):
    assert wheel.stat().st_size < WHEEL_SIZE_MAX_BYTES
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        metadata = archive.read(next(name for name in names if name.endswith("METADATA"))).decode()
        scripts = archive.read(next(name for name in names if name.endswith("entry_points.txt"))).decode()
        module = next(name for name in names if "_sealpoint." in name and name.endswith(".so"))
        check_sbom(json.loads(archive.read(next(name for name in names if name.endswith(".dist-info/sboms/sealpoint.cdx.json")))))
        extracted = pathlib.Path(archive.extract(module, wheel.parent))
    text = (ROOT / "CMakeLists.txt").read_text()
    version = re.search(r"^  VERSION (\S+)$", text, re.M)[1] + re.search(r'^set.SEALPOINT_PRERELEASE "(\w*)"', text, re.M)[1]
    assert f"\nVersion: {version}\n" in metadata and "\nRequires-Dist: numpy>=1.26; extra" in metadata
    assert all(f"{name} = sealpoint.__main__:main" in scripts for name in ("ckpt", "sealpoint")), "the command"
    assert "Apache-2.0" in metadata
    assert {name.split("licenses/")[1] for name in names if "licenses/" in name} == {"LICENSE", "python/third_party_notices.txt"}
    ours = {name for name in names if name.startswith("sealpoint/")}
    sources = {f"sealpoint/{f.relative_to(ROOT / 'python/sealpoint')}" for f in (ROOT / "python/sealpoint").rglob("*.py")}
    assert ours == sources | {"sealpoint/py.typed", "sealpoint/_sealpoint.pyi", module}
    if shutil.which("ldd"):
        needed = set(re.findall(r"^\s*(\S+) =>", run("ldd", extracted), re.M))
        of_the_compiler = {"libstdc++.so.6", "libgcc_s.so.1", "libm.so.6", "libc.so.6", "libpthread.so.0", "libdl.so.2"}
        assert needed <= of_the_compiler, needed
    if shutil.which("nm"):  # other copies of the same libraries live in one process
        exported = {line.split()[-1] for line in run("nm", "--dynamic", "--defined-only", extracted).splitlines()}
        ours = re.compile("sealpoint|ZSTD|XXH|flatbuffers|CLI|fmt|nlohmann")
        assert list(filter(ours.search, exported)) == ["PyInit__sealpoint"]


def test_a_clone_installs_and_the_block_of_the_readme_resumes(clone, tmp_path):
    python = empty_environment(tmp_path / "empty")
    shown = with_pip(python, clone, "install", "-v", ".", BUILD_FOLDER)
    assert re.search(r"^ *\[\d+/\d+\] Building CXX object lib/saver/", shown, re.M), shown
    print(f"import {check_installed(python, tmp_path / 'empty'):.2f} times as long as modules of Python")
    for name in ("ckpt", "sealpoint"):
        assert "  verify " in run(python.parent / name, "--help", root=tmp_path)
        assert run(python.parent / name, "convert", "--help", root=tmp_path).startswith("usage: ckpt convert")
    block = re.search(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(), re.S | re.M)[1]
    (tmp_path / "train.py").write_text(block)
    try:
        import torch
    except ImportError:
        return
    for _ in range(2):  # the second process goes on where the first one ended
        run(python, "train.py", root=tmp_path, PYTHONPATH=str(pathlib.Path(torch.__file__).parents[1]))


def test_the_source_package_has_all_that_a_build_needs(clone, tmp_path):
    made = "import scikit_build_core.build as build, sys; print(build.build_sdist(sys.argv[1]))"
    name = run(sys.executable, "-c", made, tmp_path, root=clone).split()[-1]
    run(sys.executable, "-m", "pip", "wheel", tmp_path / name, "--no-deps", "--no-build-isolation", BUILD_FOLDER,
        "--wheel-dir", tmp_path / "wheels", root=tmp_path, TMPDIR=str(tmp_path))
    (wheel,) = (tmp_path / "wheels").glob("*.whl")
    check_content(wheel)
    tag = f"cp{sys.version_info.major}{sys.version_info.minor}"
    assert ("-cp312-abi3-" if sys.version_info >= (3, 12) else f"-{tag}-{tag}-") in wheel.name
    python = empty_environment(tmp_path / "empty")
    run(python, "-m", "pip", "install", "--no-deps", wheel)
    check_installed(python, tmp_path / "empty")
    print(f"wheel {wheel.stat().st_size} bytes")
