# SPDX-License-Identifier: Apache-2.0
"""The package is typed: mypy --strict accepts it and what uses it, and notices what is wrong."""

import ast
import importlib.util
import os
import pathlib
import re
import subprocess
import sys

import pytest

pytest.importorskip("mypy", reason="mypy is not installed")
GOOD = """
import sealpoint

def first_row(path: str) -> bytes:
    with sealpoint.open(path, threads=2) as checkpoint:
        report: sealpoint.LoadReport = checkpoint.read({"w": bytearray(4)}, missing="report")
        names: list[str] = list(checkpoint)
        step: int | None = checkpoint.step
        print(report.plan.bytes_read + 1, names, step, [shard.offset[0] + 1 for shard in checkpoint.shards("w")])
        rows: int = checkpoint["w"][0:2, ...].reshape(8).size
        mine: bytearray = checkpoint["w"].read(bytearray(4))
        print(rows, len(mine), checkpoint["w"].read().dtype)
        return checkpoint.objects["rng"]

def save(path: str) -> str:
    info = sealpoint.save({"w": bytearray(4)}, path, codec="zstd", progress=lambda what, done, total: None)
    found = sealpoint.Series(path).newest()
    if found is not None:
        print(found.entry.name.upper(), [entry.step for entry in found.skipped])
    return info.attempt
"""
BAD = """
import sealpoint

checkpoint = sealpoint.open("c", thread=2)
sealpoint.save({}, "c", codec="lz4")
step: int = checkpoint.step
checkpoint["w"].shape.extend
sealpoint.verify("c", "deep")
row: bytes = checkpoint["w"][0:2]
checkpoint["w"]["x"]
everything: bytes = checkpoint["w"].read()
checkpoint.read({}, missing="alow")
sealpoint.save({}, "c", provenance={"a": [1]})
"""
BAD_TORCH = """
from sealpoint.torch import Checkpointer, Contract, load, save, save_async
from sealpoint.torch.dcp import StorageReader, StorageWriter

Contract(missing="alow")
newest: int = Checkpointer("run").newest()
save({}, "c", stepp=1)
save({}, "c", background_deadline=1.0)
save_async({}, "c", codec="lz4")
load({}, "c", threads="2")
load({}, "c", pass_on=True)
StorageWriter("c", series=True)
StorageReader("c", convert="round")
Checkpointer("run", keep_last=3)
Checkpointer("run").resume({}, thread=2)
save({}, "c", step=1, codec="zstd", deadline=None, writer_ranks=[0])
load({}, "c", share_chunks=True, contract=Contract.partial())
"""


def mypy(*arguments):
    path = [entry for entry in os.environ["PYTHONPATH"].split(os.pathsep) if entry]
    command = [sys.executable, "-m", "mypy", "--strict", "--no-incremental", "--cache-dir=/dev/null", *arguments]
    environment = {**os.environ, "MYPYPATH": os.pathsep.join(path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_the_package():
    has_torch = importlib.util.find_spec("torch") is not None
    status, output = mypy("-p", "sealpoint", *([] if has_torch else ["--ignore-missing-imports"]))
    assert status == 0, output


def test_programs(tmp_path):
    (tmp_path / "good.py").write_text(GOOD)
    status, output = mypy(str(tmp_path / "good.py"))
    assert status == 0, output
    (tmp_path / "bad.py").write_text(BAD)
    output = mypy(str(tmp_path / "bad.py"))[1]
    wrong = re.findall(r"bad\.py:(\d+): error", output)
    assert wrong == [str(line) for line in range(4, 14)], output


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
def test_programs_with_torch(tmp_path):
    (tmp_path / "bad.py").write_text(BAD_TORCH)
    output = mypy(str(tmp_path / "bad.py"))[1]
    assert re.findall(r"bad\.py:(\d+): error", output) == [str(line) for line in range(5, 16)], output


def test_everything_public_is_documented():
    import sealpoint

    lacking = []
    for name in sealpoint.__all__:
        value = getattr(sealpoint, name)
        if name == "__version__":
            continue
        if not value.__doc__:
            lacking.append(name)
        if isinstance(value, type) and value.__module__ in ("sealpoint._checkpoint", "sealpoint._save", "sealpoint._series"):
            own = [m for m in vars(value) if not m.startswith("_") and callable(getattr(value, m))]
            lacking += [f"{name}.{m}" for m in own if not getattr(value, m).__doc__]
    assert lacking == []


def sources():
    """The package's modules, by their paths."""
    root = pathlib.Path(__file__).parents[2] / "python"
    return {path.relative_to(root): ast.parse(path.read_text()) for path in sorted(root.glob("sealpoint/**/*.py"))}


def bound_names(tree):
    """What a module gives a name: functions, classes, variables, arguments, and members of its classes."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr
        elif isinstance(node, ast.arg):
            yield node.arg


def private_uses(tree, modules):
    """(line, name) of private names that are imported from the package, or are members of something."""
    def is_private(name):
        return name.startswith("_") and not name.startswith("__") and name not in modules

    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sealpoint"):
            yield from ((node.lineno, child.name) for child in node.names if is_private(child.name))
        elif isinstance(node, ast.Attribute) and is_private(node.attr):
            yield node.lineno, node.attr


def test_no_module_uses_a_private_name_of_another():
    """A name with an underscore is used only where it is made. Modules, and members of named tuples, do not count."""
    found = sources()
    own = {path: set(bound_names(tree)) for path, tree in found.items()}
    of_all, modules = set().union(*own.values()), {path.stem for path in found} | {"_sealpoint"}
    named_tuple = {"_replace", "_asdict", "_fields"}
    imported = {path: {name.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for name in node.names}
                for path, tree in found.items()}
    foreign = [f"{path}:{line}: {name}" for path, tree in found.items() for line, name in private_uses(tree, modules)
               if name not in own[path] and name not in named_tuple and (name in of_all or name in imported[path])]
    assert len(found) > 80 and foreign == []
