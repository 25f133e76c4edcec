# SPDX-License-Identifier: Apache-2.0
"""Ranks that die, files that cannot be written, full disks: what the other ranks see, and what is left."""

import signal
import subprocess
import sys

import pytest

pytest.importorskip("torch", reason="torch is not installed: see scripts/python_env.sh")

import fault_ranks  # noqa: E402

LIMIT_SECONDS = 120


def test_ranks_die_one_after_the_other(tmp_path):
    command = [sys.executable, fault_ranks.__file__, str(tmp_path)]
    processes = [subprocess.Popen([*command, str(rank)], stderr=subprocess.PIPE, text=True)
                 for rank in range(fault_ranks.RANKS)]
    outputs = []
    for process in processes:
        try:
            outputs.append(process.communicate(timeout=LIMIT_SECONDS)[1])
        except subprocess.TimeoutExpired:
            process.kill()
            outputs.append("did not end: " + process.communicate()[1])
    for rank, output in enumerate(outputs):
        assert "Traceback" not in output, f"rank {rank}: {output}"
    killed = -signal.SIGKILL
    assert [process.returncode for process in processes] == [killed, 0, killed, killed], outputs
