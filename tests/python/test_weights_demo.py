# SPDX-License-Identifier: Apache-2.0
"""examples/weights over an object store: a trainer on 4 ranks and an engine on 2, each killed once and started again."""

import contextlib
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading

import pytest
from object_stores import running, servers

pytest.importorskip("torch", reason="torch is not installed: see scripts/python_env.sh")
FOLDER = pathlib.Path(os.environ["SEALPOINT_SOURCE_DIR"], "examples/weights")
URL = "s3://bucket/weights"
VERSIONS = 20


def killed(process):
    """Its children, too, which torchrun puts into sessions of their own."""
    children = pathlib.Path(f"/proc/{process}/task/{process}/children")
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        below = children.read_text().split()
        os.kill(process, signal.SIGKILL)
        for child in below:
            killed(int(child))


class Program:
    """One of the examples under torchrun, and the outputs of each version."""

    def __init__(self, name, ranks):
        torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)]
        command = [*torchrun, FOLDER / name, URL, "--versions", str(VERSIONS)]
        self.outputs, self._changed = {}, threading.Condition()
        self._process = subprocess.Popen(command, env=os.environ | {"OMP_NUM_THREADS": "1"}, stdout=subprocess.PIPE, text=True)
        self._reader = threading.Thread(target=self._read, args=(self._process.stdout,))
        self._reader.start()

    def _read(self, lines):
        for line in lines:
            found = re.match(r"version +(\d+)  output ([0-9a-f]{16})", line)
            if found:
                with self._changed:
                    self.outputs[int(found[1])] = found[2]
                    self._changed.notify_all()

    def wait_for(self, version):
        with self._changed:
            assert self._changed.wait_for(lambda: max(self.outputs, default=0) >= version, 200), self.outputs

    def kill(self):
        killed(self._process.pid)
        self._process.wait()
        self._reader.join()

    def end(self):
        assert self._process.wait(200) == 0
        self._reader.join()


def test_both_sides_are_killed_and_go_on(monkeypatch):
    with running(servers.seaweedfs) as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        programs = trainers, engines = [Program("trainer.py", 4)], [Program("engine.py", 2)]
        try:
            engines[0].wait_for(3)
            trainers[0].kill()
            engines[0].wait_for(max(trainers[0].outputs))
            trainers.append(Program("trainer.py", 4))
            engines[0].wait_for(max(trainers[0].outputs) + 2)
            engines[0].kill()
            engines.append(Program("engine.py", 2))
            trainers[1].end()
            engines[1].end()
        finally:
            for program in trainers + engines:
                program.kill()
        of_trainers, of_engines = ({k: v for program in side for k, v in program.outputs.items()} for side in programs)
        assert [*of_engines] == [*range(1, VERSIONS + 1)] == sorted(engines[1].outputs)
        assert len({*of_engines.values()}) == VERSIONS
        # A trainer that is killed may have published a version that it did not print.
        assert len(of_trainers) >= VERSIONS - 1
        assert all(of_engines[version] == output for version, output in of_trainers.items())
        assert all(engines[1].outputs[version] == output for version, output in engines[0].outputs.items())
