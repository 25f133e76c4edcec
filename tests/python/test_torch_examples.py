# SPDX-License-Identifier: Apache-2.0
"""examples/python, run as their first lines say."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

pytest.importorskip("torch", reason="torch is not installed: see scripts/python_env.sh")


def run(ranks, *arguments):
    program = pathlib.Path(os.environ["SEALPOINT_SOURCE_DIR"], "examples/python/resume.py")
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command = [*torchrun, "--nproc-per-node", str(ranks), program, *arguments]
    done = subprocess.run(command, env=dict(os.environ, OMP_NUM_THREADS="1"), capture_output=True, text=True, timeout=100)
    return done, dict(re.findall(r"^step +(\d+)  state ([0-9a-f]{16})", done.stdout, re.M))


def test_a_training_goes_on_in_another_layout(tmp_path):
    killed, before = run(2, tmp_path / "run", "--layout", "fsdp", "--steps", "40", "--die-at", "30")
    assert killed.returncode == 1 and list(before) == ["0", "10", "20"], killed.stderr
    resumed, after = run(1, tmp_path / "run", "--layout", "tp", "--steps", "30")
    assert resumed.returncode == 0, resumed.stderr
    # The save of step 20 began after that of step 10 had ended; the kill may have interrupted it.
    first = re.search(r"tp on 1 ranks, from step (\d+)", resumed.stdout)
    newest = int(first[1]) - 1 if first else None
    assert newest in (10, 20), resumed.stdout
    assert list(after) == [str(step) for step in range(newest, 31, 10)]
    assert after[str(newest)] == before[str(newest)]


def test_an_engine_follows_a_trainer(tmp_path):
    """With the same output at each version."""
    folder = pathlib.Path(os.environ["SEALPOINT_SOURCE_DIR"], "examples/weights")
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node"]
    arguments = [tmp_path / "weights", "--versions", "20"]
    programs = [
        subprocess.Popen([*torchrun, str(count), folder / name, *arguments], env=dict(os.environ, OMP_NUM_THREADS="1"),
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for count, name in ((4, "trainer.py"), (2, "engine.py"))
    ]  # fmt: skip
    try:
        said = [program.communicate(timeout=200) for program in programs]
    finally:
        for program in programs:
            program.kill()
    assert [program.returncode for program in programs] == [0, 0], said
    outputs = [re.findall(r"^version +(\d+)  output ([0-9a-f]{16})", output, re.M) for output, _ in said]
    assert outputs[0] == outputs[1] and len(dict(outputs[0])) == 20 == len({output for _, output in outputs[0]})
