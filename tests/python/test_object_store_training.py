# SPDX-License-Identifier: Apache-2.0
"""A training on a real server: killed in a save, resumed on more ranks, pruned, verified."""
import os
import pathlib
import subprocess
import sys

import pytest
import sealpoint
from object_stores import running, servers

pytest.importorskip("torch", reason="torch is not installed: see scripts/python_env.sh")
pytest.importorskip("obstore", reason="obstore is not installed: see scripts/python_env.sh")
PROGRAM = pathlib.Path(__file__).with_name("object_store_training.py")
URL = "s3://bucket/runs/7"


def train(size, last, killed_at=0):
    """Statuses of the ranks, and what rank 0 printed. After the first that is killed all others are."""
    port = str(servers.free_ports(1)[0])
    common = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": str(size),
              "OMP_NUM_THREADS": "1"}  # fmt: skip
    command = [sys.executable, PROGRAM, URL, str(last), str(killed_at)]
    ranks = [
        subprocess.Popen(command, env={**common, "RANK": str(rank)}, stdout=subprocess.PIPE, text=True)
        for rank in range(size)
    ]
    try:
        if killed_at:
            ranks[-1].wait(200)
            for rank in ranks:
                rank.kill()
        printed = [rank.communicate(timeout=200)[0] for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
            rank.wait()
    return [rank.returncode for rank in ranks], printed[0].split()


def test_a_training_that_is_killed_goes_on(monkeypatch):
    with running(servers.seaweedfs) as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        statuses, _ = train(2, last=12, killed_at=7)
        assert statuses[-1] == -9
        series = sealpoint.Series(URL)
        assert series.newest().entry.step in (6, 7)
        statuses, (began, value) = train(3, last=12)
        assert statuses == [0, 0, 0] and int(began) in (6, 7)
        expected = 0.0
        for step in range(1, 13):
            expected = expected * 0.5 + step
        assert float(value) == expected
        for entry in series.list():
            if entry.verdict == "uncommitted":
                series.clean(entry.name)
        series.prune(keep_last=2)
        left = [entry for entry in series.list() if entry.verdict == "committed"]
        assert [entry.step for entry in left] == [12, 10]
        assert all(sealpoint.verify(entry.path).ok for entry in left)
