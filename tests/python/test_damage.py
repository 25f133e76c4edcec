# SPDX-License-Identifier: Apache-2.0
"""Damaged checkpoints are errors that say where; verification lists them."""

import numpy
import pytest
import sealpoint
from conftest import blob_of, flip_bit_of, raw


def test_a_flipped_bit_is_found_by_a_read(saved, weights):
    offset = flip_bit_of(saved, raw(weights))
    with sealpoint.open(saved) as checkpoint:
        for use in (lambda: checkpoint["w"][...], lambda: checkpoint["w"][7, 11], lambda: checkpoint["w"].tobytes(),
                    lambda: checkpoint.read({"w": numpy.empty_like(weights)}, threads=2)):
            with pytest.raises(sealpoint.CorruptError) as caught:
                use()
            error = caught.value
            assert (error.path, error.offset, error.tensor) == (str(blob_of(saved)), offset, "w")
            assert error.rule == "R-CHK-02"
        assert (checkpoint["layers.0.w"][...] == weights * 2).all(), "damage elsewhere does not matter"


def test_isolated_destinations_stay_as_they_are(saved, weights):
    flip_bit_of(saved, raw(weights))
    out = numpy.full_like(weights, -1)
    with sealpoint.open(saved) as checkpoint, pytest.raises(sealpoint.CorruptError):
        checkpoint.read({"w": out}, isolate=True)
    assert (out == -1).all()


def test_verification_of_a_good_one(saved):
    for level in ("files", "structure", "full"):
        report = sealpoint.verify(saved, level, threads=2)
        assert report.ok and report.verdict == "committed" and report.level == level and report.violations == []
    assert (report.step, report.sequence, report.tensor_count, report.object_count) == (7, 1, 5, 2)
    assert report.bytes_checked == sum(file.stat().st_size for file in saved.iterdir())
    with pytest.raises(sealpoint.InvalidArgumentError, match="level is 'deep'"):
        sealpoint.verify(saved, "deep")


def test_verification_of_bad_ones(saved, weights, tmp_path):
    offset = flip_bit_of(saved, raw(weights))
    assert sealpoint.verify(saved, "structure").ok
    report = sealpoint.verify(saved)
    assert not report.ok and report.verdict == "corrupt" and report.violation_count == 1
    (violation,) = report.violations
    assert isinstance(violation, sealpoint.CorruptError) and violation.offset == offset
    assert violation.path == str(blob_of(saved)) and "corrupt" in repr(report)
    blob_of(saved).unlink()
    assert sealpoint.verify(saved, "files").verdict == "incomplete"
    with pytest.raises(sealpoint.IncompleteError):
        sealpoint.open(saved)
    (saved / "COMMIT").unlink()
    assert sealpoint.verify(saved).verdict == "uncommitted"
    with pytest.raises(sealpoint.UncommittedError):
        sealpoint.open(saved)
    assert sealpoint.verify(tmp_path / "none").verdict == "unreadable"
