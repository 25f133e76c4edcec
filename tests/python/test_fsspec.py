# SPDX-License-Identifier: Apache-2.0
"""File systems of fsspec as storage."""
import collections
import itertools
import threading
import time

import numpy
import pytest
import sealpoint
from object_stores import StorePath
from sealpoint import storage

fsspec = pytest.importorskip("fsspec")
from fsspec.asyn import AsyncFileSystem  # noqa: E402
from fsspec.implementations.dirfs import DirFileSystem  # noqa: E402
from fsspec.implementations.local import LocalFileSystem  # noqa: E402
from fsspec.implementations.memory import MemoryFileSystem  # noqa: E402
from fsspec.spec import AbstractBufferedFile, AbstractFileSystem  # noqa: E402
from sealpoint.storage.fsspec import FsspecStore  # noqa: E402

import fsspec_cases  # noqa: E402
from fsspec_cases import MIB, state  # noqa: E402

_numbers = itertools.count()


class Objects(AbstractFileSystem):
    """An object store with conditional puts and a cache of listings. ``fail``: what the next calls of a function raise."""

    cachable = False

    def __init__(self, objects=None, **options):
        super().__init__(**options)
        self.objects = {"bucket/": b""} if objects is None else objects
        self.lock, self.calls, self.fail, self.blocks = threading.Lock(), collections.Counter(), {}, []

    def called(self, name):
        self.calls[name] += 1
        if self.fail.get(name):
            raise self.fail[name].pop(0)

    def pipe_file(self, path, value, mode="overwrite", **kwargs):
        self.called("pipe_file")
        with self.lock:
            if mode == "create" and path in self.objects:
                raise FileExistsError(path)
            self.objects[path] = bytes(value)

    def cat_file(self, path, start=None, end=None, **kwargs):
        self.called("cat_file")
        if not self.objects.get(path, b"some"):
            raise ValueError("416: an empty object has no range")
        try:
            return self.objects[path][start:end]
        except KeyError:
            raise FileNotFoundError(path) from None

    def info(self, path, **kwargs):
        self.called("info")
        if path in self.objects:
            return {"name": path, "size": len(self.objects[path]), "type": "file"}
        if not any(key.startswith(path + "/") for key in list(self.objects)):
            raise FileNotFoundError(path)
        return {"name": path, "size": 0, "type": "directory"}

    def ls(self, path, detail=True, **kwargs):
        self.called("ls")
        if path not in self.dircache:
            below = [key for key in list(self.objects) if key.startswith(path + "/")]
            if not below:
                raise FileNotFoundError(path)
            names = dict.fromkeys(path + "/" + key[len(path) + 1 :].split("/")[0] for key in below)
            self.dircache[path] = [self.info(name) for name in names]
        return self.dircache[path] if detail else [entry["name"] for entry in self.dircache[path]]

    def invalidate_cache(self, path=None):
        self.dircache.clear()

    def rm_file(self, path):
        self.called("rm_file")
        try:
            del self.objects[path]
        except KeyError:
            raise FileNotFoundError(path) from None

    def _open(self, path, mode="rb", block_size=None, autocommit=True, cache_options=None, **kwargs):
        return Upload(self, path, mode, block_size=block_size)


class Upload(AbstractBufferedFile):
    def _initiate_upload(self):
        self.parts = []

    def _upload_chunk(self, final=False):
        self.fs.called("upload")
        self.parts.append(self.buffer.getvalue())
        self.fs.blocks.append(len(self.parts[-1]))
        if final:
            self.fs.objects[self.path] = b"".join(self.parts)

    def discard(self):
        self.fs.calls["discard"] += 1


class Overwriting(Objects):
    """Takes the condition and ignores it."""

    def pipe_file(self, path, value, mode="overwrite", **kwargs):
        super().pipe_file(path, value)


class Asking(Objects):
    """As most file systems of fsspec: asks, then writes."""

    pipe_file = AbstractFileSystem.pipe_file


class AskingAsync(AsyncFileSystem):
    """The same, asynchronously. Its listings have no cache."""

    cachable = False

    def __init__(self, **options):
        super().__init__(**options)
        self.store = Objects()

    async def _pipe_file(self, path, value, mode="overwrite", **kwargs):
        if mode == "create" and await self._exists(path):
            raise FileExistsError(path)
        self.store.pipe_file(path, value)

    async def _cat_file(self, path, start=None, end=None, **kwargs):
        return self.store.cat_file(path, start, end)

    async def _info(self, path, **kwargs):
        return self.store.info(path)

    async def _ls(self, path, detail=True, **kwargs):
        self.store.invalidate_cache()
        return self.store.ls(path, detail)

    async def _rm_file(self, path, **kwargs):
        self.store.rm_file(path)

    def _open(self, path, mode="rb", **kwargs):
        return self.store._open(path, mode, **kwargs)


class OrderlyAsync(AskingAsync):
    async def _pipe_file(self, path, value, mode="overwrite", **kwargs):
        self.store.pipe_file(path, value, mode)


class Racing(Objects):
    """Looks by itself, and writes later."""

    def pipe_file(self, path, value, mode="overwrite", **kwargs):
        if mode == "create" and path in self.objects:
            raise FileExistsError(path)
        time.sleep(0.05)
        super().pipe_file(path, value)


class Replacing(Objects):
    """Refuses after it has written."""

    def pipe_file(self, path, value, mode="overwrite", **kwargs):
        is_there = mode == "create" and path in self.objects
        super().pipe_file(path, value)
        if is_there:
            raise FileExistsError(path)


class RacingAndReplacing(Replacing):
    def pipe_file(self, path, value, mode="overwrite", **kwargs):
        if mode == "create" and path in self.objects:
            raise FileExistsError(path)
        time.sleep(0.05)
        with self.turns:
            super().pipe_file(path, value, mode)

    turns = threading.Lock()


class Modeless(Objects):
    def pipe_file(self, path, value):
        super().pipe_file(path, value)


class Stale(Objects):
    """Its cache cannot be cleared."""

    def invalidate_cache(self, path=None):
        pass


class Undying(Stale):
    """It notices what is new, and not what is gone."""

    def ls(self, path, detail=True, **kwargs):
        known = self.dircache.pop(path, [])
        try:
            found = super().ls(path)
        except FileNotFoundError:
            found = []
        self.dircache[path] = found + [entry for entry in known if entry not in found]
        return self.dircache[path]


class Wrapped(DirFileSystem):
    """A file system in a folder of another one."""

    cachable = False

    def __init__(self, fs=None, **options):
        super().__init__(path="folder", fs=fs or Asking({"folder/bucket/": b""}), **options)

    @property
    def objects(self):
        return {key.removeprefix("folder/"): value for key, value in self.fs.objects.items()}


def registered(fs, **options):
    """A path in the file system, in which nobody wrote before."""
    scheme = f"test{next(_numbers)}"
    storage.register(scheme, lambda uri: FsspecStore(fs, uri=uri, **options))
    return StorePath(f"{scheme}://bucket/tests")


@pytest.fixture(params=["memory", "objects", "async"])
def place(request):
    if request.param == "memory":
        return StorePath(f"fsspec+memory://bucket{next(_numbers)}/tests")
    if request.param == "objects":
        return registered(Objects(), part_size_bytes=5 * MIB)
    return registered(OrderlyAsync(), part_size_bytes=5 * MIB)


# A checkpoint, from its save to its removal.


def test_a_series(place):
    fsspec_cases.check_series(place)


def test_commands_and_copies(place, tmp_path):
    fsspec_cases.check_commands(place, tmp_path)


def test_a_training():
    place = registered(Objects())
    torch = pytest.importorskip("torch")
    import sealpoint.torch as sp

    model = torch.nn.Linear(4, 4)
    with sp.Checkpointer(str(place), every=1, keep=2) as checkpoints:
        for step in range(4):
            torch.nn.init.constant_(model.weight, step)
            checkpoints.step(step, {"model": model.state_dict()})
    other = torch.nn.Linear(4, 4)
    sp.load({"model": other.state_dict()}, sealpoint.Series(place).newest().entry.path)
    assert torch.equal(model.weight, other.weight) and [entry.step for entry in sealpoint.Series(place).list()] == [3, 2]


def test_paths_of_files_are_those_of_the_system(tmp_path):
    for scheme in ("fsspec+file", "fsspec+local"):
        sealpoint.save(state(8), f"{scheme}://{tmp_path}/{scheme}")
        assert sealpoint.verify(tmp_path / scheme).ok
    with pytest.raises(sealpoint.UnsupportedError, match="expected the path itself"):
        FsspecStore(LocalFileSystem(), uri="x://y")


def test_arguments():
    for options in ({"fs": "memory"}, {"part_size_bytes": 1}):
        with pytest.raises(sealpoint.InvalidArgumentError):
            FsspecStore(**{"fs": MemoryFileSystem(), "uri": "x://y", **options})
    for path, said in (("fsspec+nope://b/c", "Protocol not known"), ("fsspec+memory:/b/c", "nor a known URL")):
        with pytest.raises(sealpoint.UnsupportedError, match=said):
            sealpoint.save(state(8), path)


def test_a_name_is_not_a_pattern():
    place = registered(Objects())
    names = ("run-1", "run-*", "run-[1]", "run-?")
    for name, step in itertools.product(names, range(2)):
        sealpoint.save(state(8), place / name, series=True, step=step)
    for name in names[1:]:
        series = sealpoint.Series(place / name)
        series.delete(series.list()[1].name)
        assert [entry.step for entry in series.list()] == [1]
    assert [entry.step for entry in sealpoint.Series(place / "run-1").list()] == [1, 0]


# What is refused.


@pytest.mark.parametrize(
    "fs, said",
    [
        (Overwriting, "replaces an object by pipe_file"),
        (Asking, ".* if a different client has written it meanwhile"),
        (AskingAsync, ".* if a different client has written it meanwhile"),
        (Wrapped, ".* if a different client has written it meanwhile"),
        (Racing, "reports success for . of 8 simultaneous calls"),
        (Replacing, "replaces an object by pipe_file"),
        (RacingAndReplacing, "reports success for 1 of 8 simultaneous calls"),
        (Modeless, "has no pipe_file"),
        (Stale, "lists a folder without objects that were written"),
        (Undying, "lists objects that were deleted"),
    ],
)
def test_a_file_system_that_cannot_publish_exclusively_is_refused_by_name(fs, said):
    fs = fs()
    place = registered(fs)
    with pytest.raises(sealpoint.UnsupportedError, match=f"{type(fs).__name__} of fsspec {said}") as raised:
        sealpoint.save(state(8), place / "c")
    assert raised.value.rule == "R-CMT-04"
    assert [key for key in (fs.store if hasattr(fs, "store") else fs).objects if "tests" in key] == []


def test_the_probe_runs_once_and_leaves_nothing():
    fs = Objects()
    place = registered(fs)
    sealpoint.save(state(8), place / "c")
    assert {key.rpartition(".")[2] for key in fs.objects} == {"bucket/", "bucket/tests/c/COMMIT", "index", "blob"}
    fs.calls.clear()
    sealpoint.save(state(8), place / "d")
    assert fs.calls["pipe_file"] <= 6
    fs.calls.clear()
    FsspecStore(fs, uri="x://bucket").put_if_absent("k.blob", memoryview(b"1"))  # as ranks do that do not publish
    assert fs.calls == {"pipe_file": 1}


def test_a_probe_that_fails_is_an_error_and_is_repeated():
    fs = Objects()
    fs.fail["pipe_file"] = [PermissionError("denied")]
    place = registered(fs)
    with pytest.raises(sealpoint.IoError, match="denied"):
        sealpoint.save(state(8), place / "c")
    sealpoint.save(state(8), place / "c")


class Slow(MemoryFileSystem):
    """Others could write between its question and its write."""

    def exists(self, path, **kwargs):
        found = super().exists(path, **kwargs)
        time.sleep(0.01)
        return found


def test_a_lock_decides_in_memory():
    sealpoint.save(state(8), registered(Slow(global_store=False)) / "c")


def test_listings_of_a_cache_are_never_used():
    objects = {"bucket/": b""}
    mine, other = Objects(objects), Objects(objects)
    here, there = registered(mine), registered(other)
    for step in range(3):
        assert [entry.step for entry in sealpoint.Series(here).list()] == list(reversed(range(step)))
        sealpoint.save(state(8), there, series=True, step=step)
    assert mine.dircache


def test_two_that_publish_at_once():
    """Each with a client of its own: one wins, and the checkpoint is the winner's."""
    for _ in range(8):
        objects, barrier, won = {"bucket/": b""}, threading.Barrier(2), []

        def save(number):
            fs = Objects(objects)
            fs.lock = lock
            path = registered(fs) / "c"
            FsspecStore(fs, uri="x://bucket")
            barrier.wait()
            try:
                sealpoint.save({"w": numpy.full(8, number)}, path)
                won.append(number)
            except sealpoint.AlreadyExistsError:
                pass

        lock = threading.Lock()
        threads = [threading.Thread(target=save, args=(number,)) for number in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        (winner,) = won
        with sealpoint.open(registered(Objects(objects)) / "c") as checkpoint:
            assert checkpoint["w"][0] == winner


# What fails.


@pytest.mark.parametrize("function", ["pipe_file", "upload", "ls", "info", "cat_file", "rm_file"])
def test_every_call_that_fails_is_an_error_or_a_commit(function):
    committed = set()
    for count in range(0, 24, 2):
        fs = Objects()
        path, fail = registered(fs, part_size_bytes=5 * MIB) / "c", fs.called

        def called(name, fs=fs, fail=fail, count=count):
            fail(name)
            if name == function and fs.calls[name] == count + 1:
                raise OSError("injected")

        fs.called = called
        try:
            sealpoint.save(state(), path)
            error = None
        except sealpoint.Error as raised:
            error = raised
        fs.called = fail
        assert sealpoint.verify(path).ok == (error is None) and (error is None or "injected" in str(error))
        committed.add(error is None)
    assert committed == {True, False} or function in ("info", "cat_file", "rm_file")


def test_an_upload_keeps_few_blocks_and_is_given_up_whole():
    fs = Objects()
    store = FsspecStore(fs, uri="x://bucket", part_size_bytes=5 * MIB)
    upload = store.start_upload("big")
    for number in range(4):
        upload.append(bytes([number]) * (5 * MIB))
        assert len(upload._file.buffer.getbuffer()) <= 5 * MIB and "bucket/big" not in fs.objects
    upload.complete()
    assert fs.objects["bucket/big"] == b"".join(bytes([number]) * (5 * MIB) for number in range(4)) and max(fs.blocks) == 5 * MIB
    for fs, path in ((Objects(), "bucket/k"), (MemoryFileSystem(), "/bucket/k")):
        upload = FsspecStore(fs, uri="x://bucket").start_upload("k")
        upload.append(b"123")
        upload.abort()
        del upload
        assert not fs.exists(path)
        assert isinstance(fs, MemoryFileSystem) or fs.calls["discard"] == 1


def test_what_is_short_or_missing_is_told():
    fs = Objects()
    store = FsspecStore(fs, uri="x://bucket")
    store.put("k", memoryview(b"0123456789"))
    stored, memory = store.head("k"), bytearray(4)
    store.get_ranges(stored, [(3, memoryview(memory))])
    assert memory == b"3456" and store.get_first("k", 4) == (stored, b"0123") and store.get_first("k", 99)[0] == stored
    with pytest.raises(sealpoint.IncompleteError, match="2 bytes were received, expected 4"):
        store.get_ranges(stored, [(8, memoryview(bytearray(4)))])
    store.put("empty", memoryview(b""))
    assert store.get_first("empty", 9) == (storage.StoredObject("empty", 0), b"")
    store.put("folder/k", memoryview(b"1"))
    assert store.list("", "") == storage.ObjectPage([storage.StoredObject("empty", 0), stored], ["folder/"])
    for call in (lambda: store.head("none"), lambda: store.head("folder"), lambda: store.get_first("none", 9)):
        with pytest.raises(FileNotFoundError):
            call()
    store.delete(["none", "k"])
    assert "bucket/k" not in fs.objects
    fs.info = lambda path: {"name": path, "size": None, "type": "file"}
    with pytest.raises(sealpoint.IoError, match="reports no size"):
        store.head("empty")


def test_a_bucket_that_does_not_exist_is_no_empty_one():
    with pytest.raises(sealpoint.IoError, match="the bucket cannot be listed"):
        sealpoint.Series(registered(Objects({}))).newest()
