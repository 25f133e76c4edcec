# SPDX-License-Identifier: Apache-2.0
"""Checkpoints in object stores: stores of Python, those of obstore, and a real server."""
import errno
import os
import pickle
import subprocess
import sys
import threading

import numpy
import pytest
import sealpoint
from object_stores import StorePath, new_place, rclone, seaweedfs, store_at
from sealpoint import storage
from sealpoint.interop import convert, open_source

MIB = 1 << 20


@pytest.fixture
def place():
    return new_place()


def names(place):
    prefix = str(place).split("/", 3)[3] + "/"
    return sorted(key.removeprefix(prefix) for key in store_at(place).objects if key.startswith(prefix))


def state(size=7 * MIB // 4):
    return {"w": numpy.arange(size, dtype="f4"), "b": numpy.ones(3, "i8")}


def test_a_checkpoint(place, tmp_path):
    path, value = place / "c", state()
    sealpoint.save(value, path, step=3, objects={"rng": b"123"})
    assert {name.rpartition(".")[2] for name in names(path)} == {"COMMIT", "index", "blob"}
    assert store_at(place).calls["complete"] == store_at(place).calls["start_upload"] > 0 == len(store_at(place).uploads)
    with sealpoint.open(path) as checkpoint:
        numpy.testing.assert_array_equal(checkpoint["w"][...], value["w"])
        assert bytes(checkpoint.objects["rng"]) == b"123"
        with pickle.loads(pickle.dumps(checkpoint)) as again:
            assert again.attempt == checkpoint.attempt
    assert sealpoint.verify(path).ok
    with pytest.raises(sealpoint.AlreadyExistsError):
        sealpoint.save(value, path)
    convert(path, place / "copy", verify=True)
    convert(path, tmp_path / "copy.safetensors", verify=True)
    convert(tmp_path / "copy.safetensors", place / "back")
    with open_source(place / "copy") as copy, open_source(place / "back") as back:
        assert set(copy.tensors) == set(back.tensors) == {"w", "b"}
    for destination in (path, place / "x.safetensors"):
        with pytest.raises((sealpoint.AlreadyExistsError, sealpoint.UnsupportedError)):
            convert(tmp_path / "copy.safetensors", destination)
    assert os.listdir(tmp_path) == ["copy.safetensors"]


def test_a_series(place):
    for step in range(4):
        sealpoint.save(state(8), place, series=True, step=step)
    series = sealpoint.Series(place)
    assert [entry.step for entry in series.list()] == [3, 2, 1, 0]
    (store_at(place)).objects[str(series.list()[2].path).split("/", 3)[3] + "/KEEP"] = b""
    series.prune(keep_last=2)
    assert [entry.step for entry in series.list()] == [3, 2, 1]
    with series.open_newest() as newest:
        assert newest.step == 3


def test_damage_is_found(place):
    sealpoint.save(state(), place / "c")
    objects = store_at(place).objects
    (blob,) = [key for key in objects if key.endswith(".blob")]
    objects[blob] = objects[blob][: 5 * MIB] + b"\1\2\3\4" + objects[blob][5 * MIB + 4 :]
    assert sealpoint.verify(place / "c").verdict == "corrupt"
    objects[blob] = objects[blob][:MIB]
    with pytest.raises(sealpoint.IncompleteError):
        sealpoint.open(place / "c")


def text_of(raised):
    return raised.message if isinstance(raised, sealpoint.Error) else str(raised.args[-1])


@pytest.mark.parametrize(
    "raised, error",
    [
        (PermissionError(errno.EACCES, "no s3:PutObject"), sealpoint.IoError),
        (OSError(errno.ENOSPC, "quota"), sealpoint.NoSpaceError),
        (RuntimeError("503 SlowDown"), sealpoint.IoError),
        (NotImplementedError("no conditions"), sealpoint.UnsupportedError),
        (sealpoint.LimitExceededError("too long a name"), sealpoint.LimitExceededError),
        (KeyboardInterrupt(), sealpoint.CancelledError),
    ],
)
def test_what_a_store_raises_is_the_error_with_its_text(place, raised, error):
    found = storage.error_of(raised, "mem://b/k")
    assert type(found) is error and found.path == "mem://b/k" and (not str(raised) or text_of(raised) in found.message)
    if isinstance(raised, Exception):
        store_at(place).fail["append"] = [raised]
        with pytest.raises(error, match=text_of(raised)):
            sealpoint.save(state(), place / "c")
        assert "COMMIT" not in names(place / "c") and store_at(place).uploads == {}


@pytest.mark.parametrize("function", ["put", "put_if_absent", "start_upload", "append", "complete", "list", "head"])
def test_every_call_that_fails_is_an_error_or_a_commit(place, function):
    for count in range(6):  # the first call, the second, …
        store, path = store_at(place), place / f"{function}-{count}"
        store.skip, store.fail[function] = count, [RuntimeError("injected")]
        try:
            sealpoint.save(state(), path)
            error = None
        except sealpoint.Error as raised:
            error = raised
        store.fail.clear()
        assert sealpoint.verify(path).ok == (error is None) and (error is None or "injected" in str(error))
        assert store.uploads == {}


def test_a_store_that_keeps_memory_that_it_was_lent_is_told(place):
    kept, store = [], store_at(place)
    store.put_if_absent = lambda key, content: kept.append(content[:1])
    with pytest.raises(sealpoint.IoError, match="still holds memory"):
        sealpoint.save(state(8), place / "c")


@pytest.mark.parametrize("attribute, value", [("uri", None), ("part_size_bytes", "big")])
def test_a_store_of_another_type_is_an_error(place, attribute, value):
    def make(uri):
        store = type(store_at(place))(uri)
        setattr(store, attribute, value)
        return store

    storage.register("odd", make)
    with pytest.raises(sealpoint.Error):
        sealpoint.save(state(8), "odd://bucket/c")
    with pytest.raises(sealpoint.InvalidArgumentError):
        storage.register("odd", None)
    for scheme in ("", "file", "no scheme"):
        with pytest.raises(sealpoint.InvalidArgumentError):
            storage.register(scheme, make)


def test_threads_that_hold_the_lock_of_the_interpreter_do_not_wait_for_each_other(place):
    """Savers, readers and listings at once, while one thread computes in Python all the time."""
    ended, failures = threading.Event(), []

    def spin():
        while not ended.is_set():
            sum(range(1000))

    def work(i):
        try:
            for step in range(3):
                sealpoint.save(state(MIB), place / f"run-{i}", series=True, step=step)
                with sealpoint.Series(place / f"run-{i}").open_newest() as newest:
                    newest.read({"w": numpy.empty(MIB, "f4")}, threads=2)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    spinner = threading.Thread(target=spin)
    spinner.start()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(100)
    ended.set()
    spinner.join()
    assert failures == [] and not any(thread.is_alive() for thread in threads)


def test_the_interpreter_ends_cleanly_with_open_things(place):
    program = (
        "import object_stores, sealpoint, os; sealpoint.save({'w': b'123'}, 'mem://b/c'); c = sealpoint.open('mem://b/c')\n"
        "writer = sealpoint.BlobWriter('mem://b/d'); writer.add('w', b'12')\n"
        "child = os.fork()\n"
        "assert c['w'].tobytes() == b'123'\n"
        "if child: assert os.waitpid(child, 0)[1] == 0"
    )
    ended = subprocess.run([sys.executable, "-c", program], cwd=os.path.dirname(__file__), capture_output=True, text=True,
                           timeout=100)  # fmt: skip
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.parametrize("arguments", [["ls"], ["ls", "--json"], ["verify"], [], ["--json"]])
def test_commands(place, capsys, monkeypatch, arguments):
    from sealpoint import __main__

    for step in (1, 2):
        sealpoint.save(state(8), place, series=True, step=step)
    is_ls = arguments[:1] == ["ls"]
    path = str(place) if is_ls else sealpoint.Series(place).newest().entry.path
    monkeypatch.setattr(sys, "argv", ["sealpoint", *arguments, path])
    assert __main__.main() == 0
    printed = capsys.readouterr().out
    assert "committed" in printed if "verify" in arguments or is_ls else '"w"' in printed or " w" in printed


# obstore.


@pytest.fixture(params=["memory", "local", "seaweedfs"])
def obstore_place(request, tmp_path, monkeypatch):
    """A bucket of obstore."""
    stores = pytest.importorskip("obstore.store")
    from sealpoint.storage.obstore import ObstoreStore, register_all

    if request.param == "seaweedfs":
        for name, value in request.getfixturevalue("server").items():
            monkeypatch.setenv(name, value)
        register_all()
        yield StorePath(f"s3://bucket/{tmp_path.name}")
        return
    made = stores.MemoryStore() if request.param == "memory" else stores.LocalStore(tmp_path, automatic_cleanup=True)
    storage.register("ob", lambda uri: ObstoreStore(made, uri=uri, part_size_bytes=5 * MIB, parts_max=2))
    yield StorePath("ob://bucket/tests")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with seaweedfs(tmp_path_factory.mktemp("seaweedfs")) as environment:
        yield environment


def test_obstore(obstore_place):
    value = state(6 * MIB)
    for step in range(3):
        sealpoint.save(value, obstore_place, series=True, step=step)
    series = sealpoint.Series(obstore_place)
    series.prune(keep_last=2)
    assert [entry.step for entry in series.list()] == [2, 1]
    with series.open_newest() as newest:
        read = {"w": numpy.zeros(6 * MIB, "f4")}
        newest.read(read, threads=2)
        numpy.testing.assert_array_equal(read["w"], value["w"])
    assert sealpoint.verify(series.newest().entry.path).ok
    with pytest.raises(sealpoint.AlreadyExistsError):
        sealpoint.save(value, series.newest().entry.path)
    with pytest.raises(sealpoint.NotFoundError):
        sealpoint.open(obstore_place / "nothing")
    assert sealpoint.Series(obstore_place / "a/new/training").newest() is None


def test_a_wrong_bucket_and_wrong_keys_are_told(server, monkeypatch):
    from sealpoint.storage.obstore import register_all

    for name, value in server.items():
        monkeypatch.setenv(name, value)
    register_all()
    with pytest.raises(sealpoint.IoError, match="bucket"):
        sealpoint.Series("s3://another/run").newest()
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    register_all()
    for call in (sealpoint.Series("s3://bucket/run").newest, lambda: sealpoint.save(state(8), "s3://bucket/run/c")):
        with pytest.raises(sealpoint.IoError, match="the credentials need s3:"):
            call()


def test_an_upload_that_is_given_up_or_fails_leaves_nothing(obstore_place):
    from sealpoint.storage.obstore import _Upload

    class Failing:
        pass

    stores = pytest.importorskip("obstore.store")
    store = stores.MemoryStore()
    upload = _Upload(store, "k", 5 * MIB, 2)
    for _ in range(3):
        upload.append(bytes(5 * MIB))
    upload.abort()
    upload.abort()
    failing = _Upload(Failing(), "k", 5 * MIB, 2)
    with pytest.raises(Exception, match="store|Failing|convert|Expected"):
        for _ in range(5):
            failing.append(bytes(5 * MIB))
        failing.complete()
    failing.abort()
    import obstore

    assert obstore.list(store).collect() == []


def test_a_server_that_ignores_conditions_is_refused(tmp_path, monkeypatch):
    pytest.importorskip("obstore")
    from sealpoint.storage.obstore import register_all

    with rclone(tmp_path) as environment:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        register_all()
        with pytest.raises(sealpoint.UnsupportedError):
            sealpoint.save(state(8), "s3://bucket/run")
    assert list((tmp_path / "bucket").rglob("*.blob")) == []


def test_without_obstore_the_error_names_the_package(monkeypatch):
    from sealpoint import _uri

    monkeypatch.setattr(_uri, "_registered", set())
    monkeypatch.setattr(_uri.importlib.util, "find_spec", lambda name: None)
    for scheme in ("s3", "gs", "az", "abfs", "abfss"):
        with pytest.raises(sealpoint.UnsupportedError, match="pip install obstore"):
            sealpoint.open(f"{scheme}://bucket/x")
