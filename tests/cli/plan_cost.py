#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `ckpt ls --plan` costs in time with more tensors, and with more ranks that request the same.

Compared is the time of the processor, of the best of three runs, which depends little on what else runs.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile


def seconds(command):
    times = []
    for _ in range(3):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = status
        if status:
            sys.exit(f"FAILED: {command}: status {status}")
        times.append(usage.ru_utime + usage.ru_stime)
    return min(times)


def main():
    parser = argparse.ArgumentParser()
    for name in ("ckpt", "generator"):
        parser.add_argument(f"--{name}", required=True)
    arguments = parser.parse_args()
    failures = 0
    with tempfile.TemporaryDirectory() as directory:
        subprocess.run([arguments.generator, directory], check=True)

        def plan(which, mesh, *options):
            return seconds([arguments.ckpt, "ls", "--plan", mesh, *options, str(pathlib.Path(directory, which))])

        for what, less, more, allowed in (
            ("8 times the tensors", plan("few", "data=4"), plan("many", "data=4"), 16),
            ("64 times the ranks, all tensors whole", plan("many", "data=1"), plan("many", "data=64"), 3),
            ("4 times the ranks, all tensors cut", plan("many", "data=2", "--place", "*=shard(dim 0, data)"),
             plan("many", "data=8", "--place", "*=shard(dim 0, data)"), 8),
        ):
            ratio = more / less
            verdict = "ok" if ratio <= allowed else "FAILED"
            failures += verdict != "ok"
            print(f"{verdict}: {what}: {ratio:.1f} times the time ({less:.3f} s, {more:.3f} s), at most {allowed}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
