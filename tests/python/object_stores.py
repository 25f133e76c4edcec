# SPDX-License-Identifier: Apache-2.0
"""An object store in memory that counts its calls and fails on request, and places in the bucket of a server."""
import collections
import contextlib
import fnmatch
import itertools
import os
import pathlib
import sys
import threading
import types

import pytest
from sealpoint import storage

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support/object_store"))
import servers  # noqa: E402

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
        return [storage.UnfinishedUpload(upload.key, str(i)) for i, upload in self.uploads.items() if upload.key.startswith(prefix)]

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


@contextlib.contextmanager
def running(begin):
    """A server of servers.py, or the test is skipped."""
    try:
        with begin() as server:
            yield server
    except servers.Missing as missing:
        pytest.skip(str(missing))


class BucketPath(StorePath):
    """In the bucket of a server, by obstore; for tests that look at the files of a checkpoint and change them."""

    def __truediv__(self, name):
        return BucketPath(f"{self.uri}/{name}")

    @property
    def name(self):
        return self.uri.rpartition("/")[2]

    def _call(self, function, *arguments):
        import obstore
        from obstore.store import S3Store

        _, _, bucket, key = self.uri.split("/", 3)
        try:
            return getattr(obstore, function)(S3Store(bucket), key, *arguments)
        except FileNotFoundError:
            raise
        except Exception as error:
            raise OSError(f"{function} of {self.uri}: {error}") from error

    def read_bytes(self):
        return bytes(self._call("get").bytes())

    def write_bytes(self, content):
        self._call("put", bytes(content))

    def write_text(self, text):
        self.write_bytes(text.encode())

    def touch(self):
        self.write_bytes(b"")

    def unlink(self):
        self._call("delete")

    def iterdir(self):
        below = self.uri.split("/", 3)[3] + "/"  # the server lists an empty folder as itself
        paths = [item["path"] for item in self._call("list_with_delimiter")["objects"]]
        return iter([self / path.removeprefix(below) for path in paths if path.startswith(below)])

    def glob(self, pattern):
        return [path for path in self.iterdir() if fnmatch.fnmatch(path.name, pattern)]

    def exists(self):
        """An object, or a folder with any in it."""
        try:
            self._call("head")
        except FileNotFoundError:
            return any(self.iterdir())
        return True

    def stat(self):
        return types.SimpleNamespace(st_size=self._call("head")["size"])
