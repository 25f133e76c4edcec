# SPDX-License-Identifier: Apache-2.0
"""``ckpt promote``: checkpoints of local disks go to a series in a directory and in an object store."""

import json
import os
import shutil

import numpy
import pytest
import sealpoint
from conftest import command

SIZE = 1 << 20


@pytest.fixture
def promote(place, tmp_path):
    """Runs it from a local directory of this name to the series; yields its status, and what it says as JSON."""

    def call(name, *options):
        status, said, _ = command("promote", tmp_path / name, place / "series", "--adopt", "--json", *options)
        return status, json.loads(said)

    return call


def save(path, step):
    """Of two blobs."""
    tensors = {name: numpy.full(SIZE * 3 // 4, step, "u1") for name in ("a", "b")}
    return sealpoint.save(tensors, path, series=True, step=step, blob_size_max_bytes=SIZE)


def outcomes(document):
    return {item["step"]: item["outcome"] for item in document["checkpoints"]}


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
    status, document = promote("none")
    assert (status, document["error"]["code"]) == (4, "NotFound")


def test_each_node_brings_its_part(promote, place, tmp_path):
    info = save(tmp_path / "node0", 1)
    shutil.copytree(tmp_path / "node0", tmp_path / "node1")
    for number in (0, 1):
        folder = tmp_path / f"node{number}" / os.path.basename(info.directory)
        sorted(folder.glob("*.blob"))[number].unlink()
    assert outcomes(promote("node0", "--dry-run")[1]) == {1: "part"}
    status, document = promote("node0", "--wait", "0.2")
    assert status == document["exit_status"] == 5 and document["checkpoints"][0]["error"]["rule"] == "R-STG-06"
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
    assert document["checkpoints"][0]["error"]["rule"] == "R-CHK-02"
    assert [entry.attempt for entry in sealpoint.Series(place / "series").list()[:1]] == [good.attempt]


def test_what_is_not_known_to_be_of_the_series_is_refused(place, tmp_path):
    info = save(tmp_path / "theirs", 1)
    for local, status, said in (("theirs", 64, "pass --adopt"), ("none", 4, "there are no copies")):
        found, _, errors = command("promote", tmp_path / local, place / "series")
        assert found == status and said in errors
    assert not sealpoint.Series(place / "series").list()
    status, _, errors = command("promote", "--adopt", tmp_path / "theirs", tmp_path / "theirs")
    assert status == 64 and "R-STG-12" in errors
    assert sealpoint.verify(info.directory).ok
