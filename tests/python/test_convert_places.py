# SPDX-License-Identifier: Apache-2.0
"""Conversions from and to object stores: every format, what a request that fails or a kill leaves, counts of requests."""
import contextlib
import os
import pathlib
import subprocess
import sys

import numpy
import pytest
import sealpoint
from conftest import noise
from convert_states import contents
from object_stores import MemoryStore, StorePath, new_place, running, servers, store_at
from sealpoint.interop import convert, open_source

FORMATS = {"safetensors": "x", "hf": "model.safetensors.index.json", "torch": "x", "dcp": ".metadata"}
SHARD = 3 << 20


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Of several parts of uploads, with a tree, with small and empty tensors."""
    folder = tmp_path_factory.mktemp("model")
    tensors = {f"w{i}": noise((1 << 20,), "u2", seed=i) for i in range(4)}
    sealpoint.save({**tensors, "s": numpy.float32(1), "e": numpy.zeros((0, 2), "i8")}, folder / "model", step=3)
    return folder / "model"


def keys_below(place):
    prefix = str(place).split("/", 3)[3]
    return [key.removeprefix(prefix + "/") for key in store_at(place).objects if key.startswith(prefix)]


def make(model, place, to, **options):
    return convert(model, place / "x", to=to, max_shard_bytes=SHARD, **options)


@pytest.mark.parametrize("to", FORMATS)
def test_out_and_in_again(to, model, place):
    assert make(model, place, to, verify=True).format == to
    assert contents(place / "x")[1] == contents(model)[1]
    convert(place / "x", place / "again", verify=True)
    assert contents(place / "again")[1] == contents(model)[1]
    for dry_run in (True, False):
        with pytest.raises(sealpoint.AlreadyExistsError):
            make(model, place, to, dry_run=dry_run)
    with pytest.raises(sealpoint.Error) as caught:
        sealpoint.open(place / "x")
    assert f"`ckpt convert {place / 'x'} DST` converts it" in str(caught.value)
    with pytest.raises(sealpoint.NotFoundError):
        open_source(place / "nothing")
    if isinstance(place, StorePath):
        assert [key for key in keys_below(place) if "partial" in key] == []
        assert store_at(place).uploads == {}


def leaves_nothing_that_passes_for_whole(place, expected):
    with contextlib.suppress(sealpoint.Error):
        assert contents(place / "x")[1] == expected


@pytest.mark.parametrize("is_killed", [False, True])
@pytest.mark.parametrize("function", ["put_if_absent", "start_upload", "append", "complete", "list", "head"])
@pytest.mark.parametrize("to", FORMATS)
def test_every_request_may_fail_or_be_the_last(to, function, is_killed, model):
    """One that is killed removes nothing, and comes again to the same place."""
    expected = contents(model)[1]
    for count in range(20):
        place = new_place()
        store = store_at(place)
        failures = store.fail[function] = [OSError("injected")] * (1000 if is_killed else 1)
        store.skip = count
        if is_killed:
            store.delete = lambda keys, store=store, failures=failures: type(store).delete(
                store, keys[len(failures) % 1000 :]
            )
        try:
            make(model, place, to, threads=1)
        except sealpoint.Error:
            store.fail.clear()
            vars(store).pop("delete", None)
            if not is_killed:
                assert [key for key in keys_below(place) if ".partial-" not in key] == []
            leaves_nothing_that_passes_for_whole(place, expected)
            with contextlib.suppress(sealpoint.AlreadyExistsError):  # it was whole
                make(model, place, to, verify=True)
            assert contents(place / "x")[1] == expected
        else:
            return
    pytest.fail("it never succeeds")


@pytest.mark.parametrize(("to", "last"), [("hf", FORMATS["hf"]), ("dcp", FORMATS["dcp"]), ("megatron", "metadata.json")])
def test_what_readers_begin_with_comes_last(to, last, model):
    place, order = new_place(), []
    store = store_at(place)
    for name in ("put_if_absent", "start_upload"):
        real = getattr(store, name)
        setattr(store, name, lambda key, *rest, real=real: (order.append(key.rpartition("/")[2]), real(key, *rest))[1])
    make(model, place, to)
    assert order[-1] == last and order.count(last) == 1


def test_small_tensors_come_together(tmp_path):
    """Requests are few: of many tensors in a file, of the headers of an archive, and of what a folder has."""
    count, place = 500, new_place()
    sealpoint.save({f"w{i:04}": noise((64,), "u1", seed=i) for i in range(count)}, tmp_path / "c")
    calls = store_at(place).calls
    for to, reads in {"safetensors": 6, "torch": 30, "hf": 6, "dcp": count + 30}.items():
        convert(tmp_path / "c", place / to, to=to)
        calls.clear()
        assert contents(place / to)[1] == contents(tmp_path / "c")[1]
        # A directory that this process made is not listed when it is opened: each of its files says its own size.
        firsts = count + 12 if to == "dcp" else 12
        assert calls["get_ranges"] <= reads and calls["list"] <= 24 and calls["get_first"] <= firsts, (to, calls)


def test_upload_memory_suffices_whatever_comes_first(tmp_path, monkeypatch):
    """A large tensor in several items, on many threads, through two parts of memory."""
    from sealpoint import storage
    from sealpoint.interop import _torch_write

    monkeypatch.setattr(_torch_write, "ITEM_BYTES_MAX", 1 << 20)
    monkeypatch.setattr(_torch_write, "FILE_BYTES_MAX", 12 << 20)
    large = noise((6 << 20,), "u2")
    sealpoint.save({"a": large, **{f"s{i}": noise((50,), "f4", seed=i) for i in range(50)}}, tmp_path / "c")
    storage.register("tight", MemoryStore, upload_memory_bytes=1)
    place = StorePath("tight://bucket/x")
    for to in ("dcp", "torch"):
        convert(tmp_path / "c", place / to, to=to, threads=8, memory_bytes=4 << 20, verify=True)


@pytest.mark.parametrize("to", FORMATS)
def test_a_real_server(to, model, server):
    path = f"s3://bucket/{to}/x"
    convert(model, path, to=to, max_shard_bytes=SHARD, verify=True)
    convert(path, path + "-again", to=to, max_shard_bytes=SHARD, verify=True)
    assert contents(path + "-again")[1] == contents(model)[1]
    done = subprocess.run([sys.executable, "-m", "sealpoint", "ls", path], capture_output=True, text=True, check=True)
    assert "w3" in done.stdout
    program = pathlib.Path(os.environ["SEALPOINT_BINARY_DIR"]) / "tools/ckpt/ckpt"
    done = subprocess.run([program, "ls", path], capture_output=True, text=True, check=False)
    assert "w3" in done.stdout or "no storage is registered for s3://" in done.stderr  # a build without S3
    for wrong, error in (("s3://bucket/none", sealpoint.NotFoundError), ("s3://another/x", sealpoint.IoError)):
        with pytest.raises(error):
            open_source(wrong)
    with pytest.raises(sealpoint.AlreadyExistsError):
        convert(model, path, to=to)


@pytest.fixture
def server(real_server, monkeypatch):
    from sealpoint.storage.obstore import ObstoreStore, register_all
    from obstore.store import S3Store

    for name, value in real_server.items():
        monkeypatch.setenv(name, value)
    options = {"allow_http": True}
    register_all(
        lambda uri: ObstoreStore(
            S3Store(uri.removeprefix("s3://"), client_options=options), uri=uri, part_size_bytes=5 << 20
        )
    )
    yield
    register_all()


@pytest.fixture(scope="module")
def real_server():
    pytest.importorskip("obstore")
    with running(servers.seaweedfs) as begun:
        yield begun.environment
