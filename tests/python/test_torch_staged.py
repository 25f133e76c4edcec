# SPDX-License-Identifier: Apache-2.0
"""Saves by way of local disks: each case of staged_cases.py, and processes that are killed while they promote."""

import os
import pathlib
import shutil
import signal
import subprocess
import sys

import pytest
import ranks

ranks.need_torch()

import sealpoint  # noqa: E402
import sealpoint.torch as sp  # noqa: E402
import torch  # noqa: E402
from sealpoint import _sealpoint  # noqa: E402
from sealpoint._ranks import promotions  # noqa: E402
from staged_cases import copies_of  # noqa: E402

KILLED = """
import os, signal, sys, time
import sealpoint.torch as sp, torch
info = sp.save({"w": torch.arange(4 << 20)}, sys.argv[1], series=True, step=1, staged=sys.argv[2])
print(info.directory, flush=True)
time.sleep(float(sys.argv[3]))
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    return ranks.run("staged_cases", 2, tmp_path_factory.mktemp("job"), fork=True)


@pytest.mark.parametrize("case", [*ranks.names_of("staged_cases"), "end"])
def test(case, outcomes):
    assert not outcomes[case], f"\n{outcomes[case]}"


@pytest.mark.parametrize("delay", ["0", "0.02"])
def test_what_a_killed_job_committed_locally_is_never_lost(tmp_path, delay):
    series, local = tmp_path / "series", tmp_path / "local"
    killed = subprocess.run([sys.executable, "-c", KILLED, series, local, delay], stdout=subprocess.PIPE, text=True)
    assert killed.returncode == -signal.SIGKILL
    directory = killed.stdout.strip()
    was_committed = os.path.exists(os.path.join(directory, "COMMIT"))
    if delay == "0":  # else by the Checkpointer below, whose clean() must not take what is on its way
        assert sp.resume_promotions(local, series) == ([] if was_committed else [os.path.basename(directory)])
        assert sealpoint.verify(directory).ok
    state = {"w": torch.zeros(4 << 20, dtype=torch.int64)}
    with sp.Checkpointer(series, staged=local) as checkpoints:
        checkpoints.clean()
        assert checkpoints.resume(state) == 1
    assert sealpoint.verify(directory).ok
    assert torch.equal(state["w"], torch.arange(4 << 20))
    assert copies_of(series, local) == []


def test_a_promotion_that_failed_is_heard(tmp_path, caplog):
    promotions._over += [("a", sealpoint.IoError("first")), ("b", sealpoint.IoError("second"))]
    with pytest.raises(sealpoint.IoError, match="first") as raised:
        sp.wait_for_promotions(5)
    assert raised.value.__notes__ == ["in the promotion to a"]
    assert "the promotion to b failed: Io: second" in caplog.text
    assert sp.wait_for_promotions(0.1)
    promotions._over.append(("c", sealpoint.IoError("third")))
    promotions._end()
    assert "the promotion to c failed, and its result was not requested: Io: third" in caplog.text


def test_what_is_not_whole_is_passed_over(tmp_path, caplog):
    series, local = tmp_path / "series", tmp_path / "local"
    info = sp.save({"w": torch.arange(10)}, local, series=True, step=1)
    assert sp.resume_promotions(local, series) == []
    assert "have no record of their series" in caplog.text, "nobody knows whether it is of this one"
    assert len(os.listdir(local)) == 1
    folder, place, _ = _sealpoint.find_staged_copies(local, series)
    os.makedirs(folder)
    pathlib.Path(folder, "sealpoint.staged").write_text(f"sealpoint staged copies of {place}\n")
    copy = shutil.move(info.directory, folder)
    for name in os.listdir(copy):
        if name.endswith(".blob"):
            os.remove(os.path.join(copy, name))
    assert sp.resume_promotions(local, series) == []
    assert "a newer checkpoint on local disks was skipped" in caplog.text and "R-STG-07" in caplog.text
