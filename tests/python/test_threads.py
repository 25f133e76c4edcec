# SPDX-License-Identifier: Apache-2.0
"""Calls from several threads of Python, with a GIL and on interpreters without one."""

import sys
import sysconfig
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy
import pytest
import sealpoint
from sealpoint import _sealpoint
from sealpoint._ranks.communicator import SelfCommunicator

SIDE = 512


def on_threads(count, work):
    """The results of work(number) on threads that begin together; the first exception comes out."""
    together = threading.Barrier(count)

    def run(number):
        together.wait()
        return work(number)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, range(count)))


@pytest.fixture
def state():
    return {f"w{i}": numpy.arange(SIDE * SIDE, dtype="f4").reshape(SIDE, SIDE) + i for i in range(4)}


@pytest.fixture
def checkpoint(state, tmp_path):
    sealpoint.save(state, tmp_path / "c", objects={"o": b"object"}, chunk_size_bytes=4096)
    with sealpoint.open(tmp_path / "c") as opened:
        yield opened


def test_the_module_leaves_the_gil_off():
    if not sysconfig.get_config_var("Py_GIL_DISABLED"):
        pytest.skip("this interpreter has a GIL")
    assert not sys._is_gil_enabled()


def test_saves_into_different_series(state, tmp_path):
    def work(number):
        for step in range(4):
            sealpoint.save({name: array + step for name, array in state.items()}, tmp_path / str(number), step=step, series=True)

    on_threads(4, work)
    for number in range(4):
        with sealpoint.Series(tmp_path / str(number)).open_newest() as newest:
            assert newest.step == 3 and sealpoint.verify(newest.path).ok
            numpy.testing.assert_array_equal(newest["w1"].read(), state["w1"] + 3)


def test_one_checkpoint_serves_many_threads(checkpoint, state):
    def work(number):
        for row in range(number, SIDE, 8):
            name = f"w{row % 4}"
            assert name in checkpoint and len(checkpoint) == 4 and checkpoint[name].shape == (SIDE, SIDE)
            numpy.testing.assert_array_equal(checkpoint[name].read(box=numpy.s_[row]), state[name][row])
            assert checkpoint.objects["o"] == b"object"

    on_threads(8, work)


def test_a_checkpoint_is_closed_while_threads_read(checkpoint, state):
    read_once = threading.Barrier(9)

    def work(number):
        if number == 8:
            read_once.wait()
            return checkpoint.close()
        numpy.testing.assert_array_equal(checkpoint["w0"].read(), state["w0"])
        read_once.wait()
        with pytest.raises(sealpoint.InvalidArgumentError, match="the checkpoint is closed"):
            while True:
                numpy.testing.assert_array_equal(checkpoint["w1"].read(), state["w1"])

    on_threads(9, work)


def refused(call, *arguments):
    """Whether another thread that calls it meanwhile is refused."""
    with ThreadPoolExecutor(1) as other:
        error = other.submit(call, *arguments).exception()
    assert isinstance(error, sealpoint.InvalidArgumentError)
    return "is in another call, expected one call at a time" in str(error)


def test_a_second_call_of_a_blob_writer_is_refused(tmp_path):
    answers = []

    class Meddling:
        def __dlpack_device__(self):
            return (1, 0)

        def __dlpack__(self, **keywords):
            answers.append(refused(writer.add_object, "o", b""))
            return numpy.ones(4).__dlpack__(**keywords)

    with sealpoint.BlobWriter(tmp_path) as writer:
        writer.add("w", Meddling())
        assert answers == [True]
        writer.add_object("o", b"")
        sealpoint.commit(tmp_path, writer.finish())


def test_a_second_save_of_a_saver_is_refused(state, tmp_path):
    answers = []

    class Meddling(SelfCommunicator):
        def all_gather(self, message):
            answers.append(refused(saver.save, *arguments))
            return super().all_gather(message)

    saver = _sealpoint.Saver(sealpoint.Engine(), Meddling(), _sealpoint.saver_defaults())
    arguments = (
        _sealpoint.SaveTarget(str(tmp_path / "c"), False, None),
        _sealpoint.RankState([], _sealpoint.Encoding("none", 1, 4096), set()),
        _sealpoint.SaveOptions(step=None, provenance=[], allow_empty=True, allow_fallback=False),
    )
    saver.save(*arguments)
    assert answers and all(answers) and sealpoint.verify(tmp_path / "c").ok
