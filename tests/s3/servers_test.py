#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs servers_test.cc against SeaweedFS, which is right, and rclone, which ignores the condition of a put; and sees that a server
ends with whoever began it.

Usage: servers_test.py PROGRAM seaweedfs|races|rclone|end    skipped (77) without the servers
"""

import os
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support/object_store"))
import servers  # noqa: E402

TESTS = {"seaweedfs": (servers.seaweedfs, "SeaweedFs.*"), "rclone": (servers.rclone, "Rclone.*"),
         "races": (servers.seaweedfs, "SeaweedFs.OneOfThreeCommittersWins")}  # fmt: skip
HOLDER = f"""
import sys, time
sys.path.insert(0, {str(pathlib.Path(servers.__file__).parent)!r})
import servers
with servers.seaweedfs() as server:
    print(server.address, server.folder, flush=True)
    time.sleep(600)
"""


def sockets():
    return set(pathlib.Path("/tmp").glob("seaweedfs-*.sock"))


def ends_with_its_holder():
    with servers.seaweedfs():  # skips if there is none
        pass
    before = sockets()
    with subprocess.Popen([sys.executable, "-B", "-c", HOLDER], stdout=subprocess.PIPE, text=True) as holder:
        address, folder = holder.stdout.readline().split()
        holder.kill()
    for _ in range(100):
        left = [pathlib.Path(folder)] if pathlib.Path(folder).exists() else sockets() - before
        try:
            servers.ask(address)
        except OSError:
            if not left:
                return 0
        time.sleep(0.1)
    print(f"the server at {address} goes on, or left {left}")
    return 1


def main(program, kind):
    if kind == "end":
        return ends_with_its_holder()
    start, tests = TESTS[kind]
    with start() as server:
        environment = {**os.environ, **server.environment, **({"SEALPOINT_TEST_RACES": "200"} if kind == "races" else {})}
        return subprocess.run([program, f"--gtest_filter={tests}"], check=False, env=environment).returncode


if __name__ == "__main__":
    try:
        sys.exit(main(*sys.argv[1:]))
    except servers.Missing as missing:
        print(f"skipped: {missing}")
        sys.exit(77)
