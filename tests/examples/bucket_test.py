# SPDX-License-Identifier: Apache-2.0
"""A training whose series lies in a bucket of SeaweedFS: killed in a save, resumed on another mesh, pruned, verified.

Usage: bucket_test.py MPIEXEC TRAIN_CHAR_LM CKPT    skipped (77) without the server
"""
import os
import pathlib
import re
import sys
import tempfile

import crash_test

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support/object_store"))
import servers  # noqa: E402

SERIES = "s3://bucket/runs/7"


def check(training, folder):
    in_folder = training.run(crash_test.RANKS, "--checkpoints", folder / "series", "--save-every", 1)
    expected = crash_test.final_state_in(in_folder.stdout)
    saves = ["--checkpoints", SERIES, "--save-every", 1]
    for phase, rank in (("write blobs", 3), ("publish", 0)):
        died = training.run(crash_test.RANKS, *saves, "--resume", "--die-at", 2, "--die-in", phase, "--die-rank", rank)
        assert f"rank {rank} dies by SIGKILL" in died.stdout and died.returncode == 137, died
        assert crash_test.verdict("--series", SERIES) == crash_test.VALID, "the older one, and an attempt"
    done = training.run(2, *saves, "--resume", "--async")
    assert done.returncode == 0 and not done.stderr, done.stderr
    assert list(crash_test.states_in(done.stdout, "resumed from")) == [1], done.stdout
    assert crash_test.final_state_in(done.stdout) == expected, done.stdout
    crash_test.STEPS += 2
    done = training.run(3, *saves, "--resume", "--keep", 2)
    assert done.returncode == 0 and not done.stderr, done.stderr
    listed = crash_test.run([crash_test.ckpt, "verify", "--series", SERIES])
    assert listed.returncode == crash_test.VALID, listed
    left = re.findall(r"/step-0+(\d+)-\w+: valid", listed.stdout)
    assert left == [str(crash_test.STEPS), str(crash_test.STEPS - 1)], listed.stdout


def main():
    with servers.seaweedfs() as server, tempfile.TemporaryDirectory() as name:
        os.environ.update(server.environment)
        folder = pathlib.Path(name)
        crash_test.write_text(folder / "text")
        check(crash_test.Training(folder / "text"), folder)


if __name__ == "__main__":
    crash_test.mpiexec, crash_test.trainer, crash_test.ckpt = (os.path.abspath(path) for path in sys.argv[1:4])
    try:
        main()
    except servers.Missing as missing:
        print(f"skipped: {missing}")
        sys.exit(77)
