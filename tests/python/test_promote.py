# SPDX-License-Identifier: Apache-2.0
"""``sealpoint promote``: checkpoints of local disks go to a series in a directory and in an object store."""

import json
import os
import shutil
import sys

import numpy
import pytest
import sealpoint
from sealpoint import _sealpoint
from sealpoint.__main__ import main

SIZE = 1 << 20


@pytest.fixture
def promote(monkeypatch, capsys, place, tmp_path):
    """Runs it from a local directory of this name to the series; yields its status, and what it says as JSON."""

    def call(name, *options):
        words = ["sealpoint", "promote", str(tmp_path / name), str(place / "series"), "--adopt", "--json", *options]
        monkeypatch.setattr(sys, "argv", words)
        status = main()
        said = capsys.readouterr().out
        return status, json.loads(said) if said else None

    return call


def save(path, step):
    """Of two blobs."""
    tensors = {name: numpy.full(SIZE * 3 // 4, step, "u1") for name in ("a", "b")}
    return sealpoint.save(tensors, path, series=True, step=step, blob_size_max_bytes=SIZE)


def outcomes(document):
    return {one["step"]: one["outcome"] for one in document["checkpoints"]}


def test_what_is_newer_is_promoted(promote, place, tmp_path):
    infos = [save(tmp_path / "local", step) for step in (1, 2, 3)]
    assert infos[0].blob_count == 2
    (tmp_path / "local" / "step-000000000004-00000000").mkdir()
    shutil.copytree(infos[0].directory, tmp_path / "other" / os.path.basename(infos[0].directory))
    assert promote("other")[0] == 0
    status, document = promote("local", "--dry-run")
    assert (status, outcomes(document)) == (0, {1: "there", 2: "whole", 3: "whole", None: "uncommitted"})
    assert len(sealpoint.Series(place / "series").list()) == 1
    status, document = promote("local")
    assert (status, outcomes(document)) == (0, {1: "there", 2: "promoted", 3: "promoted", None: "uncommitted"})
    assert document["checkpoints"][0]["bytes_copied"] == infos[2].total_bytes
    for entry in sealpoint.Series(place / "series").list():
        assert sealpoint.verify(entry.path).ok
    sealpoint.Series(place / "series").delete(os.path.basename(infos[1].directory))
    assert outcomes(promote("local")[1])[2] == "older"
    assert promote("none") == (4, None)


def test_each_node_brings_its_part(promote, place, tmp_path):
    info = save(tmp_path / "node0", 1)
    shutil.copytree(tmp_path / "node0", tmp_path / "node1")
    for number in (0, 1):
        folder = tmp_path / f"node{number}" / os.path.basename(info.directory)
        sorted(folder.glob("*.blob"))[number].unlink()
    assert outcomes(promote("node0", "--dry-run")[1]) == {1: "part"}
    status, document = promote("node0", "--wait", "0.2")
    assert status == document["exit_status"] == 5 and "R-STG-06" in document["checkpoints"][0]["error"]
    status, document = promote("node1")
    assert (status, outcomes(document), document["checkpoints"][0]["blobs_copied"]) == (0, {1: "promoted"}, 1)
    assert sealpoint.verify(place / "series" / os.path.basename(info.directory)).ok
    assert outcomes(promote("node0")[1]) == {1: "there"}


def test_damage_is_not_promoted(promote, place, tmp_path):
    good, bad = save(tmp_path / "local", 1), save(tmp_path / "local", 2)
    blob = next((tmp_path / "local" / os.path.basename(bad.directory)).glob("*.blob"))
    data = bytearray(blob.read_bytes())
    data[SIZE // 2] ^= 1
    blob.write_bytes(data)
    status, document = promote("local")
    assert (status, outcomes(document)) == (1, {1: "promoted", 2: "failed"})
    assert "R-CHK-02" in document["checkpoints"][0]["error"]
    assert [entry.attempt for entry in sealpoint.Series(place / "series").list()[:1]] == [good.attempt]


def test_it_says_how_far_it_is_and_can_be_ended(place, tmp_path):
    info = save(tmp_path / "local", 1)
    seen = []

    def run(progress):
        _sealpoint.promote(info.directory, str(place / "c"), bytes_here=info.total_bytes, threads=1,
                           memory_budget_bytes=8 << 20, deadline=9.0, progress=progress)  # fmt: skip

    with pytest.raises(ZeroDivisionError):
        run(lambda *progress: 1 // 0)
    assert not sealpoint.verify(place / "c").ok
    run(lambda *progress: seen.append(progress))
    assert seen[-1] == ("promote", info.total_bytes, info.total_bytes)
    assert sealpoint.verify(place / "c").ok


def test_what_is_not_known_to_be_of_the_series_is_refused(promote, place, tmp_path, monkeypatch, capsys):
    info = save(tmp_path / "theirs", 1)
    for local, said in (("theirs", "give --adopt"), ("none", "there are no copies")):
        words = ["sealpoint", "promote", str(tmp_path / local), str(place / "series")]
        monkeypatch.setattr(sys, "argv", words)
        assert main() == 4 and said in capsys.readouterr().err
    assert not sealpoint.Series(place / "series").list()
    monkeypatch.setattr(sys, "argv", ["sealpoint", "promote", "--adopt", str(tmp_path / "theirs"), str(tmp_path / "theirs")])
    assert main() == 4 and "R-STG-12" in capsys.readouterr().err
    assert sealpoint.verify(info.directory).ok
