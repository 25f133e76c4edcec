# SPDX-License-Identifier: Apache-2.0
"""Checkpoints in object stores: stores of Python, those of obstore, and a real server."""
import errno
import http.server
import itertools
import json
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import threading
import time

import numpy
import pytest
import sealpoint
from conftest import command
from object_stores import StorePath, new_place, running, servers, store_at
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
    with pytest.raises(sealpoint.AlreadyExistsError):
        convert(tmp_path / "copy.safetensors", path)
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


def test_a_folder_that_a_store_keeps_is_no_checkpoint(place):
    """As SeaweedFS lists it after a checkpoint was removed: as an object of its own name."""
    sealpoint.save(state(8), place, series=True, step=1)
    prefix = str(place).split("/", 3)[3]
    store_at(place).objects[f"{prefix}/step-000000000000-0123abcd/"] = b""
    assert [entry.step for entry in sealpoint.Series(place).list()] == [1]


def test_a_clean_up_gives_uploads_up(place, monkeypatch):
    sealpoint.save(state(8), place, series=True, step=1)
    prefix = str(place).split("/", 3)[3]
    uploads = [store_at(place).start_upload(f"{prefix}/dead/{'1' * 32}.{suffix}") for suffix in ("blob", "index")]
    series = sealpoint.Series(place)
    assert [item.name for item in series.unfinished()] == [f"dead/{'1' * 32}.{suffix}" for suffix in ("blob", "index")]
    assert series.clean("dead") == sealpoint.CleanUp(0, [
        sealpoint.Unfinished(f"dead/{'1' * 32}.{suffix}", str(upload.number), 0)
        for upload, suffix in zip(uploads, ("blob", "index"), strict=True)], None)  # fmt: skip
    assert series.unfinished() == [] and [entry.is_void for entry in series.list()] == [False, True]
    monkeypatch.delattr(type(store_at(place)), "list_uploads")
    report = series.clean("dead")
    assert isinstance(report.problem, sealpoint.UnsupportedError) and "lifecycle rule" in str(report.problem)
    assert [entry.step for entry in series.list()] == [1]


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


def test_a_small_file_is_replaced_in_one_request(place):
    from sealpoint import _sealpoint

    store = store_at(place)
    _sealpoint.write_file(str(place / "tracker"), b"1")
    store.calls.clear()
    _sealpoint.write_file(str(place / "tracker"), b"2")
    assert store.calls == {"put": 1}
    store.fail["put"] = [RuntimeError("injected")]
    with pytest.raises(sealpoint.IoError, match="injected"):
        _sealpoint.write_file(str(place / "tracker"), b"3")
    assert _sealpoint.read_file(str(place / "tracker"), 9) == b"2"


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


def test_commands(place):
    for step in (1, 2):
        sealpoint.save(state(8), place, series=True, step=step)
    newest = sealpoint.Series(place).newest().entry.path
    for words, said in ((["ls", place], "2 committed"), (["ls", "--json", place], '"committed"'), (["ls", newest], "\nw "),
                        (["verify", newest], ": valid (full)"), (["digest", newest], "spc1:")):
        status, printed, errors = command(*words)
        assert (status, errors) == (0, "") and said in printed


def test_a_series_is_listed_with_its_unfinished_uploads(place, monkeypatch):
    sealpoint.save(state(8), place, series=True, step=1)
    store_at(place).start_upload(str(place).split("/", 3)[3] + "/dead/x.blob")
    assert " of dead/x.blob" in command("ls", place)[1]
    (upload,) = json.loads(command("ls", "--json", place)[1])["unfinished"]
    assert upload["name"] == "dead/x.blob"
    monkeypatch.delattr(type(store_at(place)), "list_uploads")
    status, said, _ = command("ls", place)
    assert status == 0 and "a lifecycle rule of the bucket removes them" in said


# obstore.


@pytest.fixture(params=["memory", "local", "seaweedfs"])
def obstore_place(request, tmp_path, monkeypatch):
    """A bucket of obstore."""
    stores = pytest.importorskip("obstore.store")
    from sealpoint.storage.obstore import ObstoreStore, register_all

    if request.param == "seaweedfs":
        for name, value in request.getfixturevalue("server").environment.items():
            monkeypatch.setenv(name, value)
        register_all()
        yield StorePath(f"s3://bucket/{tmp_path.name}")
        return
    made = stores.MemoryStore() if request.param == "memory" else stores.LocalStore(tmp_path, automatic_cleanup=True)
    storage.register("ob", lambda uri: ObstoreStore(made, uri=uri, part_size_bytes=5 * MIB, parts_max=2))
    yield StorePath("ob://bucket/tests")


@pytest.fixture(scope="module")
def server():
    with running(servers.seaweedfs) as begun:
        yield begun


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


# Of the build of the tests in C++, which comes first.
CORPUS = pathlib.Path(os.environ.get("SEALPOINT_SOURCE_DIR", "")) / "build/check/tests/conformance/corpus"


def seen(corpus, name):
    report = sealpoint.verify(f"{corpus}/{name}")
    found = [(type(violation), violation.rule, violation.path.removeprefix(corpus)) for violation in report.violations]
    return report.verdict, sorted(found, key=str)


@pytest.mark.skipif(not CORPUS.is_dir(), reason="there is no corpus: cmake --build build/check --target conformance_corpus")
def test_the_corpus_reads_as_from_disk():
    stores = pytest.importorskip("obstore.store")
    from sealpoint.storage.obstore import ObstoreStore

    store = ObstoreStore(stores.MemoryStore(), uri="corpus://bucket")
    storage.register("corpus", lambda uri: store)
    entries = {path for path in CORPUS.iterdir() if path.is_dir()} - {CORPUS / "bad-R-MRK-01-link_named_as_a_blob"}
    assert len(entries) > 200
    for entry in sorted(entries):
        for path in entry.rglob("*"):
            is_file = path.is_file()  # a directory is one while it has an object, and a link to nothing is nothing
            if is_file or path.is_dir():
                key = path.relative_to(CORPUS).as_posix()
                store.put(key if is_file else f"{key}/inside", memoryview(path.read_bytes() if is_file else b""))
    for entry in sorted(entries):  # behind all, since some are read with another one beside them
        assert seen("corpus://bucket", entry.name) == seen(str(CORPUS), entry.name), entry.name


def test_a_forked_process_is_told(obstore_place):
    sealpoint.save(state(8), obstore_place / "c")
    child = os.fork()
    if child == 0:
        signal.alarm(60)  # a request would never end
        try:
            sealpoint.open(obstore_place / "c")
        except sealpoint.IoError as error:
            os._exit(0 if "spawn" in str(error) else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_save_goes_on_while_the_interpreter_waits_for_its_thread(server):
    path = "s3://bucket/at-exit/c"
    program = (
        "import sealpoint, threading\n"
        "def save():\n"
        "    threading.main_thread().join()\n"  # from now on the interpreter ends
        f"    sealpoint.save({{'w': bytes(10 << 20)}}, {path!r})\n"
        f"    assert sealpoint.open({path!r})['w'].nbytes == 10 << 20\n"  # two reads at once
        "threading.Thread(target=save).start()"
    )
    environment = os.environ | server.environment
    ended = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=100)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_a_wrong_bucket_and_wrong_keys_are_told(server, monkeypatch):
    from sealpoint.storage.obstore import register_all

    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    register_all()
    with pytest.raises(sealpoint.IoError, match="bucket"):
        sealpoint.Series("s3://another/run").newest()
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    register_all()
    for call in (sealpoint.Series("s3://bucket/run").newest, lambda: sealpoint.save(state(8), "s3://bucket/run/c")):
        with pytest.raises(sealpoint.IoError, match="the credentials need s3:"):
            call()


@pytest.mark.parametrize(
    "scheme, more, expected",
    [
        ("s3", {}, "AWS_ACCESS_KEY_ID with AWS_SECRET_ACCESS_KEY (not set), AWS_WEB_IDENTITY_TOKEN_FILE with"),
        ("az", {}, "AZURE_STORAGE_ACCOUNT_NAME with AZURE_STORAGE_ACCOUNT_KEY (not set)"),
    ],
)
def test_without_credentials_the_error_says_what_was_looked_for(tmp_path, monkeypatch, scheme, more, expected):
    pytest.importorskip("obstore")
    from sealpoint.storage.obstore import register_all

    class Machine(http.server.BaseHTTPRequestHandler):  # one without a role
        def do_PUT(self):
            self.send_error(403)

        def log_message(self, *_):
            pass

    for name in [item for item in os.environ if item.startswith(("AWS_", "AZURE_"))]:
        monkeypatch.delenv(name)
    with http.server.HTTPServer(("127.0.0.1", 0), Machine) as machine:
        threading.Thread(target=machine.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{machine.server_port}"
        common = {"AWS_METADATA_ENDPOINT": url, "AWS_ALLOW_HTTP": "true", "HOME": str(tmp_path)}
        for name, value in {**common, **more}.items():
            monkeypatch.setenv(name, value)
        register_all()
        run = f"{scheme}://bucket/run"
        for call in (sealpoint.Series(run).newest, lambda: sealpoint.save(state(8), run + "/c")):
            with pytest.raises(sealpoint.IoError) as raised:
                call()
            assert expected in str(raised.value) and "the credentials need" not in str(raised.value)


def test_an_object_that_is_another_one_by_now_is_not_read(obstore_place):
    from sealpoint import _paths, _sealpoint

    path = str(obstore_place / "c")
    sealpoint.save(state(), path)
    with sealpoint.open(path) as checkpoint:
        (blob,) = [name for name in _paths.list_names(path) if name.endswith(".blob")]
        content = _sealpoint.read_file(f"{path}/{blob}", 1 << 30)
        _sealpoint.write_file(f"{path}/{blob}", bytes(len(content)))
        with pytest.raises(sealpoint.IoError, match="the object was replaced"):
            checkpoint["w"].tobytes()


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


def test_a_server_that_ignores_conditions_is_refused(monkeypatch):
    pytest.importorskip("obstore")
    from sealpoint.storage.obstore import register_all

    with running(servers.rclone) as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        register_all()
        with pytest.raises(sealpoint.UnsupportedError):
            sealpoint.save(state(8), "s3://bucket/run")
        assert list((server.folder / "data/bucket").rglob("*.blob")) == []


class Answers(http.server.BaseHTTPRequestHandler):
    """Of a store that was taken over: ``answer`` of the server says what is sent."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.server.heard.append(self.headers.get("x-amz-security-token"))
        status, headers, body = self.server.answer(self)
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    do_HEAD = do_PUT = do_POST = do_GET


@pytest.fixture
def serve():
    begun = []

    def begin(answer, host="127.0.0.1"):
        server = http.server.ThreadingHTTPServer((host, 0), Answers)
        server.answer, server.heard = answer, []
        threading.Thread(target=server.serve_forever, daemon=True).start()
        begun.append(server)
        return server

    yield begin
    for server in begun:
        server.shutdown()
        server.server_close()


@pytest.fixture
def as_s3(monkeypatch):
    """Makes s3:// a server, with credentials that have a token."""
    pytest.importorskip("obstore")
    from sealpoint.storage.obstore import register_all

    def register(server):
        environment = {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.server_port}", "AWS_ACCESS_KEY_ID": "key",
                       "AWS_SECRET_ACCESS_KEY": "secret", "AWS_SESSION_TOKEN": "token", "AWS_REGION": "us-east-1"}  # fmt: skip
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        register_all()

    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    return register


@pytest.fixture
def profile(serve, as_s3, monkeypatch, tmp_path):
    """A server that only a profile names, and credentials that only it has."""
    server = serve(lambda request: (404, {}, b""))
    as_s3(server)
    for name in [item for item in os.environ if item.startswith("AWS_")]:
        monkeypatch.delenv(name)
    (tmp_path / "keys").write_text("[mine]\naws_access_key_id = a\naws_secret_access_key = b\naws_session_token = of-mine\n")
    (tmp_path / "config").write_text(
        f"[profile mine]\nendpoint_url = http://127.0.0.1:{server.server_port}\nregion = eu-central-1\n"
    )
    for name, value in (("CONFIG_FILE", "config"), ("SHARED_CREDENTIALS_FILE", "keys")):
        monkeypatch.setenv(f"AWS_{name}", str(tmp_path / value))
    monkeypatch.setenv("AWS_PROFILE", "mine")
    return server


def test_a_profile_means_the_same_in_python_and_in_ckpt(profile):
    """The client of C++ reads profiles by itself, boto3 for Python."""
    pytest.importorskip("boto3")
    with pytest.raises(sealpoint.Error):
        sealpoint.Series("s3://bucket/run").newest()
    assert set(profile.heard) == {"of-mine"}
    ckpt = pathlib.Path(os.environ["SEALPOINT_BINARY_DIR"]) / "tools/ckpt/ckpt"
    if ckpt.exists():
        profile.heard.clear()
        done = subprocess.run([ckpt, "verify", "--series", "s3://bucket/run"], capture_output=True, text=True, check=False)
        assert set(profile.heard) == {"of-mine"}, done.stderr


def test_no_other_identity_takes_the_place_of_a_profile(profile, monkeypatch):
    monkeypatch.setitem(sys.modules, "boto3", None)
    monkeypatch.delitem(sys.modules, "obstore.auth.boto3", raising=False)
    with pytest.raises(sealpoint.UnsupportedError, match="the credentials are in an AWS profile"):
        sealpoint.Series("s3://bucket/run").newest()
    monkeypatch.setenv("AWS_PROFILE", "none")
    with pytest.raises(sealpoint.InvalidArgumentError, match="profile 'none' of AWS is in neither"):
        sealpoint.Series("s3://bucket/run").newest()
    assert profile.heard == []
    monkeypatch.setenv("AWS_PROFILE", "mine")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "c")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "d")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "of-the-environment")
    with pytest.raises(sealpoint.Error):
        sealpoint.Series("s3://bucket/run").newest()
    assert set(profile.heard) == {"of-the-environment"}


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_credentials_go_to_no_other_host(serve, as_s3, status, monkeypatch):
    from sealpoint.storage.obstore import ObstoreStore, _from_url, for_hosts

    stores = pytest.importorskip("obstore.store")
    other = serve(lambda request: (404, {}, b""), host="127.0.0.2")
    first = serve(lambda request: (status, {"Location": f"http://127.0.0.2:{other.server_port}{request.path}"}, b""))
    as_s3(first)
    options = {"allow_http": True, **for_hosts("127.0.0.1")}
    own = stores.S3Store("bucket", client_options=options, retry_config={"max_retries": 0})
    with pytest.raises(sealpoint.IoError, match="the response redirects to another host") as caught:
        ObstoreStore(own, uri="s3://bucket").head("x")
    assert "set the endpoint of the host that has" in caught.value.message
    made = _from_url("s3://bucket")
    assert made._store.client_options["proxy_excludes"].startswith("127.0.0.1,")
    monkeypatch.setenv("NO_PROXY", "a")
    assert "proxy_url" in _from_url("s3://bucket")._store.client_options
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
    assert "proxy_url" not in _from_url("s3://bucket")._store.client_options
    assert first.heard == ["token"]
    assert other.heard == []


def test_a_listing_without_end_is_an_error(place, serve, as_s3, monkeypatch):
    """In pages that come again, whoever the client is; or by obstore, which goes through them itself."""
    numbers = itertools.count()

    def page(self, prefix, next):
        return storage.ObjectPage([storage.StoredObject(f"{prefix}x", 1)], [], f"page {numbers.__next__() % 3}")

    monkeypatch.setattr(type(store_at(place)), "list", page)
    with pytest.raises(sealpoint.IoError, match="the listing returned the same page twice"):
        sealpoint.Series(place).list()
    monkeypatch.setattr("sealpoint.storage.obstore.LISTING_SECONDS", 1.0)
    more = (b"<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>again</NextContinuationToken>"
            b"</ListBucketResult>")  # fmt: skip
    server = serve(lambda request: (200, {}, more))
    as_s3(server)
    began = time.monotonic()
    with pytest.raises(sealpoint.IoError, match="the listing did not end within 1 s"):
        sealpoint.Series("s3://bucket/run").list()
    assert time.monotonic() - began < 10
    time.sleep(0.2)
    asked = len(server.heard)
    time.sleep(0.5)
    assert len(server.heard) == asked, "it still goes on"


def test_a_short_program_waits_until_obstore_has_returned():
    """One in 150 commands over S3 aborted: a thread of obstore took the interpreter when it had ended."""
    pytest.importorskip("obstore")
    program = """
import atexit, time
atexit.register(lambda: print(time.monotonic() - listed))  # runs last
from obstore.store import MemoryStore
from sealpoint.storage.obstore import ObstoreStore
ObstoreStore(MemoryStore(), uri="memory://bucket").list("", "")
listed = time.monotonic()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert float(done.stdout) > 0.09


def test_without_obstore_the_error_names_the_package(monkeypatch):
    from sealpoint import _paths

    monkeypatch.setattr(_paths, "_registered", set())
    monkeypatch.setattr(_paths.importlib.util, "find_spec", lambda name: None)
    for scheme in ("s3", "gs", "az", "abfs", "abfss"):
        with pytest.raises(sealpoint.UnsupportedError, match="pip install obstore"):
            sealpoint.open(f"{scheme}://bucket/x")
