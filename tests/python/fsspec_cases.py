# SPDX-License-Identifier: Apache-2.0
"""What every file system of fsspec has to pass that can publish exclusively."""
import numpy
import pytest
import sealpoint
from conftest import command

MIB = 1 << 20


def state(size=7 * MIB // 4):
    return {"w": numpy.arange(size, dtype="f4"), "b": numpy.ones(3, "i8")}


def check_series(place):
    value = state(3 * MIB)
    for step in range(3):
        sealpoint.save(value, place, series=True, step=step, objects={"rng": b"123"})
    series = sealpoint.Series(place)
    assert series.prune(keep_last=2) and [entry.step for entry in series.list()] == [2, 1]
    with series.open_newest() as newest:
        numpy.testing.assert_array_equal(newest["w"].read(threads=2), value["w"])
        assert bytes(newest.objects["rng"]) == b"123"
        path = newest.path
    assert sealpoint.verify(path).ok
    with pytest.raises(sealpoint.AlreadyExistsError):
        sealpoint.save(value, path)
    assert sealpoint.Series(place / "a/new/training").newest() is None
    with pytest.raises(sealpoint.NotFoundError):
        sealpoint.open(place / "nothing")
    series.delete(series.list()[1].name)
    assert [entry.step for entry in series.list()] == [2]


def check_commands(place, tmp_path):
    sealpoint.save(state(8), place, series=True, step=1)
    newest = sealpoint.Series(place).newest().entry.path
    for words, said in ((["ls", place], "1 committed"), (["ls", newest], "\nw "), (["verify", newest], ": valid (full)")):
        status, printed, errors = command(*words)
        assert (status, errors) == (0, "") and said in printed
    assert command("convert", newest, tmp_path / "copy.safetensors")[0] == 0
    assert command("convert", tmp_path / "copy.safetensors", place / "back")[0] == 0
    with sealpoint.open(place / "back") as back:
        assert back["w"].tobytes() == state(8)["w"].tobytes()
