# SPDX-License-Identifier: Apache-2.0
"""The interpreter beside long calls: the GIL, Ctrl-C, callbacks that raise, memory, speed."""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time
import tracemalloc

import numpy
import pytest
import sealpoint

SIZE_BYTES = 64 << 20


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    path = tmp_path_factory.mktemp("large") / "c"
    state = {"w": numpy.ones(SIZE_BYTES, "u1")}
    sealpoint.save(state, path)
    return path


def calls(large, directory, progress):
    """Every long call, by name."""
    out = numpy.empty(SIZE_BYTES, "u1")
    checkpoint = sealpoint.open(large)
    yield "read", lambda: checkpoint.read({"w": out}, threads=2, progress=progress)
    yield "verify", lambda: sealpoint.verify(large, threads=2, progress=progress)
    yield "save", lambda: sealpoint.save({"w": out}, directory, progress=progress)


def test_progress_is_told(large, tmp_path):
    for name, call in calls(large, tmp_path / "new", lambda *event: events.append(event)):
        events = []
        call()
        assert events, name
        phase, done, total = max(events, key=lambda event: event[1])
        assert isinstance(phase, str) and SIZE_BYTES <= done <= total, name
    with pytest.raises(TypeError, match="progress is 3, expected True, False, None or a function"):
        sealpoint.verify(large, progress=3)


def test_an_exception_of_a_callback_comes_out(large, tmp_path):
    def progress(what, done, total):
        raise RuntimeError("of the test")

    for name, call in calls(large, tmp_path / "new", progress):
        with pytest.raises(RuntimeError, match="of the test"):
            call()
    assert list(tmp_path.iterdir()) == [], "the save left nothing"


def test_interrupts(large, tmp_path):
    """SIGINT while the library is in the middle of a call."""
    def progress(what, done, total):
        if done > 0 and not sent.is_set():
            sent.set()
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.3)  # the library's thread is held up; the main thread sees the signal meanwhile

    for name, call in calls(large, tmp_path / "new", progress):
        sent = threading.Event()
        with pytest.raises(KeyboardInterrupt):
            call()
        assert sent.is_set(), name
    assert list(tmp_path.iterdir()) == [], "the save left nothing"
    for name, call in calls(large, tmp_path / "new", None):
        call()
    assert sealpoint.verify(tmp_path / "new").ok


def test_handlers_of_signals_run_meanwhile(large):
    """One that raises nothing ends nothing."""
    seen = []
    before = signal.signal(signal.SIGUSR1, lambda *_: seen.append(1))
    try:
        report = sealpoint.verify(large, progress=lambda *_: os.kill(os.getpid(), signal.SIGUSR1))
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert report.ok and seen


def test_other_threads_run_meanwhile(large, tmp_path):
    """While the library works, a thread of Python counts; without the GIL being released it would stand still."""
    counted = 0
    stop = threading.Event()

    def count():
        nonlocal counted
        while not stop.is_set():
            counted += 1
            time.sleep(0.0005)

    thread = threading.Thread(target=count)
    thread.start()
    try:
        for name, call in calls(large, tmp_path / "new", None):
            at, began = counted, time.monotonic()
            call()
            passed = time.monotonic() - began
            assert counted - at >= passed / 0.01, f"{name}: {counted - at} counts in {passed:.3f} s"
    finally:
        stop.set()
        thread.join()


DAEMONS = """
import itertools, os, sys, threading, time
import numpy, sealpoint

def work(progress):
    out = numpy.empty(1 << 22, "u1")
    for i in itertools.count():
        path = f"{sys.argv[1]}/{threading.get_ident()}-{i}"
        sealpoint.save({"w": out}, path, progress=progress)
        sealpoint.open(path).read({"w": out}, threads=2, progress=progress)
        sealpoint.verify(path, threads=2, progress=progress)

for progress in (None, lambda *_: None, lambda *_: None):
    threading.Thread(target=work, args=(progress,), daemon=True).start()
time.sleep(float(sys.argv[2]))
"""


@pytest.mark.parametrize("seconds", [0.2, 0.3, 0.4, 0.5])
def test_the_interpreter_ends_while_daemons_work(tmp_path, seconds):
    """Threads of the program that are in the middle of calls do not make its end a crash."""
    command = [sys.executable, "-c", DAEMONS, tmp_path, str(seconds)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert list(tmp_path.iterdir())


def resident_bytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_cycles_leak_nothing(tmp_path_factory):
    in_memory = pathlib.Path("/dev/shm")
    base = in_memory if os.access(in_memory, os.W_OK) else tmp_path_factory.mktemp("cycles")
    with tempfile.TemporaryDirectory(dir=base, prefix="sealpoint-cycles-") as directory:
        run_cycles(pathlib.Path(directory))


def run_cycles(tmp_path):
    state, out = {"w": numpy.ones(1 << 20, "u1")}, numpy.empty(1 << 20, "u1")
    engine = sealpoint.Engine(memory_budget_bytes=8 << 20, staging_buffer_size_bytes=1 << 20)

    def cycle(number):
        path = tmp_path / str(number)
        sealpoint.save(state, path, objects={"o": b"x"}, engine=engine)
        with sealpoint.open(path) as checkpoint:
            checkpoint.read({"w": out})
            checkpoint.objects["o"]
            with pytest.raises(sealpoint.MismatchError):
                checkpoint.read({"missing": out})
        for file in path.iterdir():
            file.unlink()
        path.rmdir()

    for number in range(50):
        cycle(number)
    before = resident_bytes()
    for number in range(1000):
        cycle(number)
    grown = resident_bytes() - before
    print(f"1000 cycles: {grown / 1e6:.1f} MB more")
    assert grown < 20e6


def test_many_tensors_cross_once(tmp_path):
    count = 100_000
    values = numpy.zeros((count, 64), "f4")
    values[:] = numpy.arange(count)[:, None]
    began = time.monotonic()
    sealpoint.save({f"layer.{i}": row for i, row in enumerate(values)}, tmp_path / "c")
    save_us = (time.monotonic() - began) / count * 1e6
    with sealpoint.open(tmp_path / "c") as checkpoint:
        out = numpy.empty_like(values)
        wanted = {f"layer.{i}": row for i, row in enumerate(out)}
        tracemalloc.start()
        began = time.monotonic()
        report = checkpoint.read(wanted)
        load_us = (time.monotonic() - began) / count * 1e6
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    print(f"{count} tensors: save {save_us:.1f} us, load {load_us:.1f} us each; Python allocates {peak} bytes in the load")
    assert (out == values).all() and report.plan.items == count
    assert peak < 2 << 20
