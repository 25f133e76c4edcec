# SPDX-License-Identifier: Apache-2.0
"""scripts/benchmarks.sh peers: a small run, with its gates; and what it does if a peer is wrong, fails or hangs."""

import json
import os
import pathlib
import subprocess
import sys
import time

import pytest

pytest.importorskip("torch", reason="torch is not installed: see scripts/python_env.sh")

COMMAND = [sys.executable, "-m", "peers"]
PROGRAMS = pathlib.Path(__file__).parents[2] / "benchmarks" / "python"
sys.path.insert(0, str(PROGRAMS))

from peers import __main__ as program  # noqa: E402
from peers import by_sealpoint, by_torch, cell, rounds, workloads  # noqa: E402


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """Of the whole program: how it ended, and the report."""
    folder = tmp_path_factory.mktemp("peers")
    path = os.pathsep.join([os.environ.get("PYTHONPATH", ""), str(PROGRAMS)])
    done = subprocess.run([*COMMAND, "--quick", "--output", str(folder)], text=True, timeout=240, capture_output=True,
                          env={**os.environ, "PYTHONPATH": path}, check=False)
    assert (folder / "report.json").exists(), done.stdout + done.stderr
    return done, folder, json.loads((folder / "report.json").read_text())


def test_every_peer_has_its_rows_and_no_gate_fails(quick):
    done, folder, report = quick
    assert report["errors"] == [], done.stdout
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert set(report["peers"]) | set(report["absent"]) == set(program.QUICK)
    have = {(row["workload"], row["operation"]) for row in report["rows"] if row["peer"] == "sealpoint"}
    made = workloads.workloads(32, 300, 2).values()
    assert have == {(workload.name, operation) for workload in made for operation in workload.operations}
    assert {path.name for path in folder.iterdir()} - {"tiny.png", "huge.png", "replicated.png", "transformer.png"} == {
        "report.json", "report.md"}


def test_what_is_read_is_what_was_asked_for(quick):
    _, _, report = quick
    for row in report["rows"]:
        if row["peer"] == "sealpoint" and row["operation"] == "load" and row["workload"] != "tiny":
            assert min(row["read_calls"]) >= row["nbytes"], row
            assert max(row["read_calls"]) <= 1.1 * row["nbytes"], row


def test_the_report_names_options_and_what_is_absent(quick):
    _, folder, report = quick
    text = (folder / "report.md").read_text()
    assert "sync_files=True" in text
    for name, why in report["absent"].items():
        assert f"**{name}** is absent: {why}" in text


def test_peers_that_are_not_there_are_named(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("peers.by_torch.THE_PEER.needs", ("no_such_package",))
    status = program.main(["--output", str(tmp_path), "--peers", "torch,sealpoint", "--workloads", "tiny", "--tensors", "4",
                           "--rounds", "1"])
    assert status == 0
    assert "torch is absent: the package no_such_package is not installed" in capsys.readouterr().out
    assert json.loads((tmp_path / "report.json").read_text())["absent"] == {
        "torch": "the package no_such_package is not installed"}


class Wrong(by_torch.TorchSave):
    def read_file(self, file, wanted):
        super().read_file(file, wanted)
        wanted[-1][0].local.view(-1)[-1] += 1


class Failing(by_torch.TorchSave):
    def load(self, state, path):
        if self.rank == 1:
            raise OSError(28, "No space left on device", str(path))
        super().load(state, path)


class Hanging(by_torch.TorchSave):
    def load(self, state, path):
        time.sleep(1000)


class Dying(by_torch.TorchSave):
    def save(self, state, path):
        os._exit(3)


class Lazy(by_torch.TorchSave):
    def verify(self, path):
        pass


TINY = workloads.Workload("huge", "", [workloads.Tensor("w", (64, 64), workloads.torch.float32, "rows")],
                          ("save", "load", "verify"), "w")


@pytest.mark.parametrize(("peer", "why"), [
    (Wrong, "load: rank 0: WrongBytesError: tensor w, box [0, 0] + [32, 64]: loaded other data than was saved"),
    (Failing, "load: rank 1: OSError: [Errno 28] No space left on device"),
    (Hanging, "load: not done after 12 s"),
    (Dying, "save: rank "),
    (Lazy, "verify: read "),
])
def test_a_peer_that_fails_is_named_and_the_others_go_on(tmp_path, peer, why):
    said = []
    # Those that work need some seconds on a busy machine.
    options = rounds.Options(tmp_path, rounds=1, limit_seconds=12 if peer is Hanging else 60)
    results = rounds.measure([TINY], {"bad": peer, "torch": by_torch.TorchSave}, options, said.append)
    assert list(results.errors) == [("huge", "bad")]
    assert why in results.errors["huge", "bad"]
    assert any(why in line for line in said)
    assert results.of(TINY, "load", "bad") is None
    assert len(results.of(TINY, "load", "torch").seconds) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_failure_of_ours_is_the_exit_status(tmp_path, capsys, monkeypatch):
    class Broken(by_sealpoint.Sealpoint):
        def load(self, state, path):
            pass

    monkeypatch.setattr(by_sealpoint, "THE_PEER", Broken)
    status = program.main(["--output", str(tmp_path), "--peers", "sealpoint", "--workloads", "tiny", "--tensors", "4",
                           "--rounds", "1"])
    assert status == 1
    assert "tiny: sealpoint failed: load: rank 0: WrongBytesError: tensor t000000" in capsys.readouterr().err
    assert "sealpoint failed" in (tmp_path / "report.md").read_text()


def test_a_run_that_is_ended_leaves_nothing(tmp_path):
    path = os.pathsep.join([os.environ.get("PYTHONPATH", ""), str(PROGRAMS)])
    command = [*COMMAND, "--output", str(tmp_path), "--peers", "torch", "--workloads", "tiny", "--tensors", "4",
               "--rounds", "999"]
    with subprocess.Popen(command, env={**os.environ, "PYTHONPATH": path}, stdout=subprocess.PIPE, text=True) as process:
        process.stdout.readline()  # a round is done
        process.terminate()
        process.communicate(timeout=60)
    assert process.returncode == 128 + 15
    assert list(tmp_path.iterdir()) == []


def test_a_slow_row_fails_the_gate():
    results = rounds.Results()
    for name, seconds in (("sealpoint", [3.0, 2.5]), ("dcp", [1.0, 1.0])):
        results.figures["huge", "load", name] = rounds.Figures(1, seconds=seconds, rounds=[1, 2])
    assert program.failed_gates(results, [TINY]) == ["huge: load: 0.40 times as fast as dcp, expected at least 0.5"]
    results.figures["huge", "load", "sealpoint"].seconds[1] = 1.9
    assert program.failed_gates(results, [TINY]) == []


def test_a_gate_that_fails_is_measured_once_more(monkeypatch, capsys):
    results = {}
    for best in (0.4, 0.6):
        results[best] = rounds.Results()
        for name, seconds in (("sealpoint", 1 / best), ("dcp", 1.0)):
            results[best].figures["huge", "load", name] = rounds.Figures(1, seconds=[seconds], rounds=[1])
    for again, expected in ((0.6, []), (0.4, ["huge: load: 0.40 times as fast as dcp, expected at least 0.5"])):
        monkeypatch.setattr(program, "measure", lambda *given, again=again: results[again])
        assert program.gate(results[0.4], [TINY], {}, None) == expected
        assert "too slow, measured once more: huge" in capsys.readouterr().out


def test_want_of_space_is_named_before_anything_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda path: type("Usage", (), {"free": 1000})())
    results = rounds.measure([TINY], {"torch": by_torch.TorchSave}, rounds.Options(tmp_path), lambda text: None)
    assert results.errors == {("huge", "torch"): f"{tmp_path} has 1,000 bytes free, expected at least 67,145,728"}


def test_a_folder_that_cannot_be_written_is_named(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    for arguments in (["--output", str(tmp_path / "file")], ["--output", str(tmp_path), "--folder", str(tmp_path / "none")]):
        assert program.main(arguments) == 1
        assert str(tmp_path) in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["--peers", "tar"], ["--workloads", "all"]])
def test_names_that_are_not_there_are_refused(arguments, tmp_path, capsys):
    with pytest.raises(SystemExit) as ended:
        program.main([*arguments, "--output", str(tmp_path)])
    assert ended.value.code == 64
    assert "there are: " in capsys.readouterr().err


def test_boxes_have_the_bytes_of_the_whole():
    tensor = workloads.Tensor("w", (8, 64), workloads.torch.bfloat16, "rows")
    whole = workloads.content(tensor, tensor.whole())
    for box in (tensor.box(1, 2), tensor._replace(layout="columns").box(1, 2), cell.slice_box(tensor)):
        part = workloads.content(tensor, box)
        assert workloads.torch.equal(part.view(workloads.torch.int16), whole[box.slices()].view(workloads.torch.int16))
        assert not workloads.torch.equal(part.view(workloads.torch.int16),
                                         workloads.content(tensor._replace(name="v"), box).view(workloads.torch.int16))
