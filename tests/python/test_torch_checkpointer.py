# SPDX-License-Identifier: Apache-2.0
"""When a Checkpointer saves, whom it tells, and what it leaves."""

import datetime
import logging
import os
import signal
import subprocess
import sys
import time

import numpy
import pytest
import sealpoint
import sealpoint.torch as sp
import torch
from sealpoint._ranks.session import Sessions
from sealpoint.torch import _checkpointer, _session, _staging
from sealpoint.torch._session import session_of


def steps_in(folder):
    return sorted(entry.step for entry in sealpoint.Series(folder).list() if entry.verdict == "committed")


def test_saves_by_the_clock(tmp_path, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    for name, every in (("text", "10min"), ("delta", datetime.timedelta(minutes=10))):
        with sp.Checkpointer(tmp_path / name, every=every, wait=True) as checkpoints:
            for step in range(1, 51):
                now[0] += 60
                checkpoints.step(step, {"n": step})
        assert steps_in(tmp_path / name) == [10, 20, 30, 40, 50]
    for wrong in ("10 parsecs", "", "0min", 0, -1, 1.5, datetime.timedelta(0), True, None):
        with pytest.raises(sealpoint.InvalidArgumentError, match="every is .*10min"):
            sp.Checkpointer(tmp_path / "wrong", every=wrong)
    with sp.Checkpointer(tmp_path / "numpy", every=numpy.int64(2), wait=True) as checkpoints:
        for step in range(1, 6):
            checkpoints.step(numpy.int64(step), {"n": step})
    assert steps_in(tmp_path / "numpy") == [2, 4]


def test_each_so_many_steps_stay(tmp_path):
    with sp.Checkpointer(tmp_path / "run", keep=2, keep_every=4, wait=True) as checkpoints:
        for step in range(1, 12):
            checkpoints.step(step, {"n": step})
    assert steps_in(tmp_path / "run") == [4, 8, 10, 11]


@pytest.mark.parametrize("wait", [True, False])
def test_a_save_that_went_well_is_logged(tmp_path, caplog, wait):
    with caplog.at_level(logging.INFO, "sealpoint"), sp.Checkpointer(tmp_path / "run", wait=wait) as checkpoints:
        checkpoints.save(3, {"w": torch.ones(250_000)})
        checkpoints.wait()
        for _ in range(1000):  # a thread says so
            if any(message.startswith("saved step") for message in caplog.messages):
                break
            time.sleep(0.01)
    (line,) = [message for message in caplog.messages if message.startswith("saved step 3 to ")]
    assert str(tmp_path / "run/step-000000000003-") in line and ": 1.01 MB in 0." in line


def test_two_jobs_in_one_series_are_told(tmp_path):
    run = tmp_path / "run"
    old, new = (sp.Checkpointer(run, keep=2, wait=True) for _ in range(2))
    assert old.resume({"n": 0}) is None
    old.save(1, {"n": 1})
    assert new.resume({"n": 0}) == 1  # as a job that is started again while the first one runs
    old.save(2, {"n": 2})
    for _ in range(2):
        said = rf"another job saved step 2 .*process {os.getpid()}.*Stop one of them"
        with pytest.raises(sealpoint.AlreadyExistsError, match=said):
            new.save(2, {"n": 2})
    old.save(3, {"n": 3})
    assert steps_in(run) == [2, 3]
    follower = sp.Checkpointer(run, wait=True)  # of a job that ended
    assert follower.resume({"n": 0}) == 3
    follower.save(4, {"n": 4})
    unasked = sp.Checkpointer(run)  # without resume()
    with unasked:
        unasked.save(5, {"n": 5})
        unasked.save(6, {"n": 6})
    late, first = (sp.Checkpointer(tmp_path / "empty", wait=True) for _ in range(2))
    assert late.resume({"n": 0}) is None and first.resume({"n": 0}) is None
    first.save(1, {"n": 1})
    with pytest.raises(sealpoint.AlreadyExistsError, match="another job saved step 1"):
        late.save(1, {"n": 1})


def test_a_save_of_unknown_outcome_is_no_other_job(tmp_path, monkeypatch):
    checkpoints = sp.Checkpointer(tmp_path / "run", wait=True)
    assert checkpoints.resume({"n": 0}) is None
    saved, save = [], _checkpointer.save_gathered

    def committed(*arguments):
        saved.append(save(*arguments))
        raise sealpoint.IoError("the answer was lost", unknown_outcome=True)

    monkeypatch.setattr(_checkpointer, "save_gathered", committed)
    with pytest.raises(sealpoint.IoError):
        checkpoints.save(1, {"n": 1})
    monkeypatch.undo()
    checkpoints.save(2, {"n": 2})
    assert saved[0].step == 1 and steps_in(tmp_path / "run") == [1, 2]
    with pytest.raises(sealpoint.UnsupportedError):
        checkpoints.save(3, {"n": object()})
    sp.save({"n": 3}, tmp_path / "run", series=True, step=3)
    with pytest.raises(sealpoint.AlreadyExistsError, match="another job"):
        checkpoints.save(3, {"n": 3})


TRAINING = """
import os, sys, time
import sealpoint.torch as sp
with sp.Checkpointer(sys.argv[1], every=1000, on_sigterm=sys.argv[2] if sys.argv[2] != "None" else None) as checkpoints:
    for step in range(1, 10_000):
        checkpoints.step(step, {"n": step})
        if step == 3:
            if os.fork() == 0:  # a worker, which ends as it would without us
                print("ready", flush=True)
                time.sleep(60)
                os._exit(0)
        if checkpoints.is_ending:
            break
        time.sleep(0.01)
print("ended", flush=True)
"""


@pytest.mark.parametrize(("mode", "status", "said"), [("exit", 143, ""), ("save", 0, "ended\n"), ("None", -signal.SIGTERM, "")])
def test_sigterm_saves_first(tmp_path, mode, status, said):
    command = [sys.executable, "-c", TRAINING, str(tmp_path / "run"), mode]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert process.stdout.readline() == "ready\n"
        os.killpg(process.pid, signal.SIGTERM)  # the worker, too
        rest = process.stdout.read()
        assert process.wait(60) == status and rest == said
    assert len(steps_in(tmp_path / "run") if mode != "None" else [1]) == 1
    if mode != "None":
        state = {"n": 0}
        assert sp.Checkpointer(tmp_path / "run").resume(state) == state["n"] >= 3


def test_a_program_keeps_its_own_handler(tmp_path):
    heard = []
    before = signal.signal(signal.SIGTERM, lambda *_: heard.append(1))
    try:
        with sp.Checkpointer(tmp_path / "run", every=100) as checkpoints:
            checkpoints.step(1, {"n": 1})
            os.kill(os.getpid(), signal.SIGTERM)
            checkpoints.step(2, {"n": 2})
        assert heard == [1] and not checkpoints.is_ending
    finally:
        signal.signal(signal.SIGTERM, before)
    with sp.Checkpointer(tmp_path / "run", every=100) as checkpoints:
        checkpoints.step(1, {"n": 1})
        assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_a_child_that_was_forked_ends_as_it_says(tmp_path):
    with sp.Checkpointer(tmp_path / "run") as checkpoints:
        checkpoints.save(1, {"w": torch.ones(100_000)})
        child = os.fork()
        if child == 0:
            try:
                checkpoints.__exit__(SystemExit, SystemExit(0), None)
            except BaseException:
                os._exit(1)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert steps_in(tmp_path / "run") == [1]


def mapped_within(seconds, size_bytes):
    end = time.monotonic() + seconds
    while (found := session_of(None)._engine.mapped_bytes) < size_bytes and time.monotonic() < end:
        time.sleep(0.01)
    return found


def test_the_memory_of_the_first_save_is_mapped_before_it(tmp_path, monkeypatch):
    monkeypatch.setattr(_session, "_sessions", Sessions(lambda: None))
    model = torch.nn.Linear(2048, 2048, bias=False)
    optimizer = torch.optim.Adam(model.parameters())
    state = {"model": model, "optimizer": optimizer}
    with sp.Checkpointer(tmp_path / "run", every=3) as checkpoints:
        assert checkpoints.resume(state) is None
        assert 16 << 20 <= mapped_within(20, 16 << 20) < 48 << 20
        model(torch.ones(1, 2048)).sum().backward()
        optimizer.step()  # its state is two thirds
        checkpoints.step(1, state)
        assert mapped_within(20, 48 << 20) >= 48 << 20
        monkeypatch.setattr(_checkpointer, "bytes_to_stage", None)  # once
        checkpoints.step(2, state)
        checkpoints.step(3, state)


def test_a_save_that_waits_maps_nothing_before(tmp_path, monkeypatch):
    monkeypatch.setattr(_session, "_sessions", Sessions(lambda: None))
    with sp.Checkpointer(tmp_path / "run", every=3, wait=True) as checkpoints:
        checkpoints.resume({"w": torch.ones(1 << 22)})
        checkpoints.step(1, {"w": torch.ones(1 << 22)})
        assert session_of(None)._engine is None


def test_bytes_to_stage():
    w = torch.ones(12, 4)
    model = torch.nn.Linear(4, 6)  # 30 elements
    assert _staging.bytes_to_stage({"a": w, "b": [w, w]}, 1) == 192
    assert _staging.bytes_to_stage({"a": w, "b": (model, model, 3, "x", None)}, 2) == 96 + 48 + 12
    assert _staging.bytes_to_stage([sp.per_rank({"a": w}), w], 4) == 192 + 48
