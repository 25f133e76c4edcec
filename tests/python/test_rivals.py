# SPDX-License-Identifier: Apache-2.0
"""scripts/rivals.py: what it says of Sealpoint is as docs/evidence/comparison.md has it, and it would say so if it were not."""

import importlib.util
import json
import pathlib
import subprocess
import sys

import pytest

pytest.importorskip("torch", reason="torch is not installed: see scripts/python_env.sh")

SCRIPT = pathlib.Path(__file__).parents[2] / "scripts/rivals.py"
_spec = importlib.util.spec_from_file_location("rivals", SCRIPT)
rivals = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(rivals)


def run(*arguments):
    return subprocess.run([sys.executable, str(SCRIPT), *arguments], capture_output=True, text=True, timeout=240,
                          check=False)


def test_nothing_is_loaded_wrong(tmp_path):
    done = run("--only", "sealpoint", "--flips", "8", "--kills", "6", "--mib", "16", "--folder", str(tmp_path), "--json")
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    (row,) = json.loads(done.stdout)
    assert sum(row["bits"]["tensors"].values()) == sum(row["bits"]["metadata"].values()) == 8
    assert sum(row["kills"].values()) == 6 and row["mesh"] == "old" and list(tmp_path.iterdir()) == []


def test_what_is_loaded_wrong_is_seen(tmp_path):
    """In a library that compares no checksums."""
    done = run("--only", "safetensors", "--flips", "3", "--kills", "0", "--mib", "1", "--folder", str(tmp_path), "--json")
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)
    assert row["bits"]["tensors"] == {"wrong": 3}


GOOD = {"name": "sealpoint", "title": "Sealpoint", "version": "Sealpoint 1", "mesh": "old",
        "refusal": "AlreadyExistsError: …", "kills": {"old": 1, "new": 1},
        "bits": {"tensors": {"CorruptError: …": 2}, "metadata": {"old": 1, "CorruptError: …": 1}}}


@pytest.mark.parametrize("wrong", [
    {"mesh": "wrong"}, {"refusal": "it was not refused"}, {"kills": {"mixed": 1}}, {"kills": {"NotFoundError: …": 1}},
    {"bits": {**GOOD["bits"], "tensors": {"old": 1}}}, {"bits": {**GOOD["bits"], "metadata": {"wrong": 1}}},
])
def test_any_fault_of_ours_is_the_exit_status(wrong, monkeypatch, capsys):
    assert rivals.faults_of(GOOD) == []
    monkeypatch.setattr(sys, "argv", ["rivals.py", "--only", "sealpoint"])
    monkeypatch.setattr(rivals, "row_of", lambda name, options: {**GOOD, **wrong})
    assert rivals.main() == 1
    assert capsys.readouterr().err.startswith("sealpoint: ")


def test_what_is_absent_is_named(monkeypatch, capsys):
    monkeypatch.setattr(rivals.subprocess, "run",
                        lambda *_, **__: subprocess.CompletedProcess([], 1, "", "…\nno such package\n"))
    monkeypatch.setattr(sys, "argv", ["rivals.py", "--only", "dcp"])
    assert rivals.main() == 0
    assert "dcp is absent: no such package" in capsys.readouterr().err


def test_names_that_are_not_there_are_refused():
    done = run("--only", "tar")
    assert done.returncode == 64 and "expected some of sealpoint, dcp" in done.stderr


def test_places_are_spread_over_all_bytes():
    ranges = rivals.others_of({"a": bytes(10), "b": bytes(4)}, [("a", 2, 8)])
    assert ranges == [("a", 0, 2), ("a", 8, 10), ("b", 0, 4)]
    assert [place[:2] for place in rivals.evenly(ranges, 8)] == [
        ("a", 0), ("a", 1), ("a", 8), ("a", 9), ("b", 0), ("b", 1), ("b", 2), ("b", 3)]
