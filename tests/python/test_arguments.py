# SPDX-License-Identifier: Apache-2.0
"""Wrong arguments: each is an error that names it, whichever function it is given to. Paths: one function for all."""

import contextlib
import inspect
import itertools
import os
import pathlib
import typing

import numpy
import pytest
import sealpoint
from object_stores import new_place
from sealpoint.interop import Format, convert, open_source

# None of them is right for any argument but those of ANYTHING; what is right for some (None, a name) fails or works.
WRONG = [None, True, 5, -1, 1.5, 2**64, 10**30, "x", "\ud800", b"x", [], [None], {5: 5}, {"x": None}, ("a", 1), object()]
# What these take may be anything; a wrong one is a Python error of its own.
ANYTHING = {"self", "box", "index", "out", "options", "array", "value", "item", "key", "default", "kind", "error", "trace"}
NAMED = (sealpoint.InvalidArgumentError, sealpoint.UnsupportedError)


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    """A wrong value of another argument may be a right path: what is saved there goes with this folder."""
    monkeypatch.chdir(tmp_path)


def makers(saved, folder):
    """Name of each public function to: the function, and arguments that are right."""
    count = itertools.count()

    def new():
        return folder / f"new{next(count)}"

    def new_folder():
        path = new()
        path.mkdir()
        return path

    def writer():
        return sealpoint.BlobWriter(new())

    def spare():  # that may be deleted
        return sealpoint.save({"v": b"x", "w": b"x"}, new()).directory

    opened = sealpoint.open(saved)
    info = sealpoint.save({"w": b"x"}, folder / "run", series=True, step=1)
    sealpoint.save({"w": b"x"}, folder / "run", series=True, step=2)
    series = sealpoint.Series(folder / "run")
    (blob,) = (item.id for item in opened.blobs)
    copy = opened["w"].host_copy()
    KEPT.append(copy)
    tensors, one = {"w": numpy.ones(4)}, numpy.int64(1)
    return {
        "open": (sealpoint.open, {"path": saved}),
        "save": (sealpoint.save, {"tensors": tensors, "path": new, "objects": {"o": b"1"}, "parent": info, "step": one}),
        "verify": (sealpoint.verify, {"path": saved}),
        "commit": (sealpoint.commit, {"directory": new_folder, "summaries": [], "allow_empty": True}),
        "read_summary": (sealpoint.read_summary, {"directory": saved, "blob": blob}),
        "list_blobs": (sealpoint.list_blobs, {"directory": saved}),
        "new_attempt": (sealpoint.new_attempt, {}),
        "BlobWriter": (sealpoint.BlobWriter, {"directory": new}),
        "BlobWriter.add": (lambda **a: writer().add(**a), {"name": "w", "array": tensors["w"], "shape": (8,)}),
        "BlobWriter.add_object": (lambda **a: writer().add_object(**a), {"name": "o", "value": b"1"}),
        "BlobWriter.finish": (writer().finish, {}),
        "BlobWriter.abandon": (writer().abandon, {}),
        "Engine": (sealpoint.Engine, {}),
        "Engine.map_memory": (lambda: sealpoint.Engine(memory_budget_bytes=1 << 24).map_memory(), {}),
        "Engine.map_memory_in_background": (
            lambda size_bytes: sealpoint.Engine().map_memory_in_background(size_bytes), {"size_bytes": 1 << 20}),
        "Series": (sealpoint.Series, {"path": saved}),
        "Series.list": (series.list, {}),
        "Series.newest": (series.newest, {}),
        "Series.open_newest": (series.open_newest, {}),
        "Series.prune": (series.prune, {"dry_run": True}),
        "Series.delete": (series.delete, {"name": "none"}),
        "Series.clean": (series.clean, {"name": "none"}),
        "Series.unfinished": (series.unfinished, {}),
        "Checkpoint.find": (lambda patterns: opened.find(patterns), {"patterns": "w"}),
        "Checkpoint.get": (opened.get, {"key": "w"}),
        "Checkpoint.items": (opened.items, {}),
        "Checkpoint.keys": (opened.keys, {}),
        "Checkpoint.values": (opened.values, {}),
        "Checkpoint.read": (opened.read, {"requests": {"w": numpy.empty((8, 12), "f4")}}),
        "Checkpoint.plan": (opened.plan, {"requests": ["w"]}),
        "Checkpoint.shards": (opened.shards, {"name": "w"}),
        "Checkpoint.chunks": (opened.chunks, {"name": "w"}),
        "Checkpoint.fingerprints": (opened.fingerprints, {"patterns": ["*"]}),
        "Checkpoint.group": (opened.group, {"name": ""}),
        "Group.get": (opened.group().get, {"key": "w"}),
        "Group.items": (opened.group().items, {}),
        "Group.keys": (opened.group().keys, {}),
        "Group.values": (opened.group().values, {}),
        "Group.visititems": (opened.group().visititems, {"function": lambda: lambda path, item: None}),
        "Group[]": (opened.group().__getitem__, {"name": "w"}),
        "Checkpoint.close": (sealpoint.open(saved).close, {}),
        "Checkpoint[]": (opened.__getitem__, {"name": "w"}),
        "Tensor.read": (opened["w"].read, {"out": numpy.empty((8, 12), "f4")}),
        "Tensor.tobytes": (opened["w"].tobytes, {}),
        "Tensor.map": (opened["w"].map, {}),
        "Tensor.map_shards": (opened["w"].map_shards, {}),
        "Tensor.host_copy": (opened["w"].host_copy, {}),
        "Tensor.map_host_copy": (opened["w"].map_host_copy, {"path": copy.path}),
        "Objects.media_type": (opened.objects.media_type, {"name": "rng"}),
        "Objects.size_bytes": (opened.objects.size_bytes, {"name": "rng"}),
        "Objects.get": (opened.objects.get, {"key": "rng"}),
        "Objects.items": (opened.objects.items, {}),
        "Objects.keys": (opened.objects.keys, {}),
        "Objects.values": (opened.objects.values, {}),
        "Objects[]": (opened.objects.__getitem__, {"name": "rng"}),
        "copy": (sealpoint.copy, {"source": saved, "destination": new}),
        "merge": (sealpoint.merge, {"sources": [saved, saved], "destination": new}),
        "thin": (sealpoint.thin, {"path": spare, "drop": ["w"], "destination": new}),
        "repair": (sealpoint.repair, {"path": saved, "replicas": [saved], "destination": new}),
        "convert": (convert, {"source": saved, "destination": new}),
        "open_source": (open_source, {"path": saved}),
    }


KEPT = []  # what a path of it leads to, as long as it lives
ORIGINALS = {"BlobWriter.add": sealpoint.BlobWriter.add, "BlobWriter.add_object": sealpoint.BlobWriter.add_object}
ENGINE = ("memory_budget_bytes", "staging_buffer_size_bytes", "io_thread_count", "direct_io")


def parameters(name, function):
    if name == "Engine":
        return ENGINE
    return [parameter for parameter in inspect.signature(ORIGINALS.get(name, function)).parameters if parameter not in ANYTHING]


def test_every_public_function_is_tried(saved, tmp_path):
    public = set()
    for name in sealpoint.__all__:
        one = getattr(sealpoint, name)
        is_ours = isinstance(one, type) and not issubclass(one, (Exception, tuple))
        members = [m for m in dir(one) if is_ours and not m.startswith("_") and callable(getattr(one, m))]
        public |= {f"{name}.{member}" for member in members}
        if callable(one) and not (isinstance(one, type) and not members):
            public.add(name)
    made_by_others = {"Checkpoint", "Group", "Tensor", "Objects"}
    assert public - set(makers(saved, tmp_path)) == made_by_others


def answer(call, parameter):
    """What is to be said against how a wrong argument was answered; None: nothing. And whether it was refused."""
    try:
        call()
        return None, False
    except NAMED as error:
        says_where = error.tensor is not None or error.object is not None or error.rule is not None
        named = parameter if parameter not in ("tensors", "objects", "requests") else "name is "  # of what is in them
        return None if parameter in str(error) or named in str(error) or says_where else f"does not name it: {error}", True
    except sealpoint.Error:  # the argument is right as such
        return None, False
    except Exception as error:
        return f"{type(error).__name__}: {str(error):.80}", True


def test_wrong_arguments_are_named(saved, tmp_path):
    tried, bad = 0, []
    for name, (function, right) in makers(saved, tmp_path).items():
        def arguments():
            return {key: value() if callable(value) else value for key, value in right.items()}  # noqa: B023

        if name not in ("Series.delete", "Series.clean"):
            function(**arguments())
        for parameter in parameters(name, function):
            refused = 0
            for wrong in WRONG:
                call = lambda: function(**{**arguments(), parameter: wrong})  # noqa: B023, E731
                complaint, is_refused = answer(call, parameter)
                tried, refused = tried + 1, refused + is_refused
                bad += [f"{name}({parameter}={wrong!r:.40}) {complaint}"] if complaint else []
            bad += [] if refused else [f"{name}({parameter}=) took everything"]
    assert bad == [] and tried > 1000, "\n".join(bad)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda p: sealpoint.save({}, p, step="100"), "step is '100', expected an integer of at least 0, or None"),
        (lambda p: sealpoint.save({}, p, step=-1), "step is -1, expected an integer of at least 0, or None"),
        (lambda p: sealpoint.save({}, p, step=2**64), "step is 18446744073709551616, expected"),
        (lambda p: sealpoint.save({}, p, step=1.5), "step is 1.5, expected an integer"),
        (lambda p: sealpoint.save({}, p, step=True), "step is True, expected an integer"),
        (lambda p: sealpoint.save({}, p, provenance={"a": "\ud800"}), "provenance['a'] has '\\ud800', which UTF-8"),
        (lambda p: sealpoint.save({}, p, provenance={"a": [1]}), "provenance['a'] has [1], expected a string or a number"),
        (lambda p: sealpoint.save({}, p, provenance={1: "a"}), "provenance has 1, expected a mapping of strings"),
        (lambda p: sealpoint.save({}, p, codec="lz4"), "codec is 'lz4', expected one of none, zstd, bytesplit+zstd"),
        (lambda p: sealpoint.save({}, p, stored_cuts={"w": (8, -1)}), "stored_cuts is {'w': (8, -1)}, expected a mapping of"),
        (lambda p: sealpoint.save({}, p, stored_cuts={"w": (2**64,)}), "stored_cuts is {'w': (18446744073709551616,)}"),
        (lambda p: sealpoint.save({}, p, stored_cuts={"w": "8"}), "stored_cuts is {'w': '8'}, expected a mapping of"),
        (lambda p: sealpoint.save({"w": numpy.ones(2)}, p, stored_cuts={"v": (1,)}), "the pattern v of stored_cuts matches"),
        (lambda p: sealpoint.save({"w": numpy.ones(2)}, p, stored_cuts={"w": (1, 1)}), "stored_cuts has 2 extents, expected 1"),
        (lambda p: sealpoint.open(None), "path is None, expected a path: str, bytes or os.PathLike"),
        (lambda p: sealpoint.open(3), "path is 3, expected a path"),
        (lambda p: sealpoint.open(""), "path is '', expected a path: it is empty"),
        (lambda p: sealpoint.open("a\0b"), "path is 'a\\x00b', expected a path: it has a NUL"),
        (lambda p: sealpoint.open("\ud800"), "path is '\\ud800', expected a path: "),
        (lambda p: sealpoint.open(p, threads=0), "threads is 0, expected an integer of 1 to 1024"),
        (lambda p: sealpoint.verify(p, threads=10**9), "threads is 1000000000, expected an integer of 1 to 1024"),
        (lambda p: sealpoint.Engine(memory_budget_bytes="1"), "memory_budget_bytes is '1', expected a number of bytes"),
        (lambda p: sealpoint.verify(p, "deep"), "level is 'deep', expected one of files, structure, full"),
    ],
)  # fmt: skip
def test_text(tmp_path, call, said):
    with pytest.raises(sealpoint.InvalidArgumentError) as caught:
        call(tmp_path / "c")
    assert said in str(caught.value) and not (tmp_path / "c").exists()


def test_a_wrong_type_is_also_a_type_error(tmp_path):
    for call in (lambda: sealpoint.open(None), lambda: sealpoint.save({}, tmp_path / "c", step="1")):
        with pytest.raises(TypeError) as caught:
            call()
        assert isinstance(caught.value, sealpoint.Error) and isinstance(caught.value, ValueError)


def test_numbers_of_provenance_are_text(tmp_path):
    given = {"a": "1", "b": 1.25, "c": 3, "d": numpy.float32(0.5), "e": numpy.int8(7), "f": True, "g": float("nan")}
    sealpoint.save({"w": b"x"}, tmp_path / "run", series=True, step=numpy.int64(1), provenance=given)
    with sealpoint.Series(tmp_path / "run").open_newest() as checkpoint:
        found = {name: checkpoint.provenance[name] for name in given}
    assert found == {"a": "1", "b": "1.25", "c": "3", "d": "0.5", "e": "7", "f": "True", "g": "nan"}


# Paths.


URLS = ["hf://org/model", "memory://x", "odd2://b/x", "simplecache::s3://b/x", pathlib.Path("s3://b/x")]


def path_takers():
    """Every function that takes a path."""
    import sealpoint.torch

    yield "open", sealpoint.open
    yield "verify", sealpoint.verify
    yield "save", lambda path: sealpoint.save({"w": b"x"}, path)
    yield "save in a series", lambda path: sealpoint.save({"w": b"x"}, path, series=True, step=1)
    yield "commit", lambda path: sealpoint.commit(path, [], allow_empty=True)
    yield "list_blobs", sealpoint.list_blobs
    yield "read_summary", lambda path: sealpoint.read_summary(path, "1" * 32)
    yield "BlobWriter", sealpoint.BlobWriter
    yield "Series", sealpoint.Series
    yield "open_source", open_source
    yield "convert from", lambda path: convert(path, "converted")
    yield "convert to", lambda path: convert("source", path)
    yield "mapping", lambda path: convert("source", "converted", mapping=path)
    yield "buckets", lambda path: convert("source", "converted", buckets=path)


def torch_path_takers():
    torch = pytest.importorskip("torch")
    import sealpoint.torch
    from sealpoint.torch.dcp import StorageReader, StorageWriter

    state = {"w": torch.ones(2)}
    yield "torch.save", lambda path: sealpoint.torch.save(state, path)
    yield "torch.save_async", lambda path: sealpoint.torch.save_async(state, path).result()
    yield "torch.load", lambda path: sealpoint.torch.load(dict(state), path)
    yield "torch.load_full", sealpoint.torch.load_full
    yield "Checkpointer", lambda path: sealpoint.torch.Checkpointer(path, wait=True).save(1, state)
    yield "StorageWriter", StorageWriter
    yield "StorageReader", StorageReader
    yield "reset", lambda path: StorageReader().reset(path)


@pytest.mark.parametrize("takers", [path_takers, torch_path_takers])
def test_urls_of_unknown_schemes_are_refused_everywhere(tmp_path, monkeypatch, takers):
    monkeypatch.chdir(tmp_path)
    sealpoint.save({"w": b"x"}, "source")
    for (name, take), url in itertools.product(takers(), URLS):
        text = "a URL of (hf|memory|odd2), expected a path|neither a path nor a known URL"
        with pytest.raises(sealpoint.UnsupportedError, match=text):
            take(url)
            pytest.fail(f"{name} took {url}")
    assert os.listdir() == ["source"]


@pytest.mark.parametrize("takers", [path_takers, torch_path_takers])
def test_no_url_meets_the_file_system(tmp_path, monkeypatch, takers):
    """Where a URL is taken nothing of it is looked for, or made, beside the caller; file:///x is /x."""
    monkeypatch.chdir(tmp_path)
    sealpoint.save({"w": b"x"}, "source")
    for _, take in takers():
        with contextlib.suppress(sealpoint.Error):
            take(new_place() / "x")
    assert set(os.listdir()) <= {"source", "converted"}
    for host in ("", "localhost"):
        assert sealpoint.open(f"file://{host}{tmp_path}/source")["w"].tobytes() == b"x"
    for host in ("server", "localhostile"):
        with pytest.raises(sealpoint.UnsupportedError, match="no host"):
            sealpoint.open(f"file://{host}{tmp_path}/source")


@pytest.mark.parametrize("takers", [path_takers, torch_path_takers])
def test_the_home_directory_is_expanded_everywhere(tmp_path, monkeypatch, takers):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    sealpoint.save({"w": b"x"}, "source")
    for i, (name, take) in enumerate(takers()):
        for path in (f"~/a{i}", pathlib.Path(f"~/b{i}"), os.fsencode(f"~/c{i}")):
            try:
                take(path)
            except sealpoint.Error as error:
                assert error.path is None or "~" not in error.path, name
    assert {"source"} <= set(os.listdir()) <= {"source", "converted"}
    assert len(os.listdir(tmp_path / "home")) > 3
    with pytest.raises(sealpoint.InvalidArgumentError, match="for a directory of that name"):
        sealpoint.save({"w": b"x"}, "~nobody-of-this-name/x")


def test_a_folder_may_have_any_name_behind_a_dot(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for path in ("./s3://bucket", "./~x", "run:1/c", "12:30"):
        sealpoint.save({"w": b"x"}, path)
        assert sealpoint.open(path)["w"].tobytes() == b"x"


def test_the_table_of_options_has_the_defaults_of_the_library_and_of_save():
    from sealpoint import _sealpoint
    from sealpoint._option_table import OPTIONS, names_of

    library = _sealpoint.saver_defaults()
    for field in ("writer_ranks", "stored_cuts"):
        library[field] = tuple(library[field])
    rows = {row.saver.field: row.saver.value(row.default) for row in OPTIONS.values() if row.saver}
    assert rows == {**library, "compare_replicas": True}  # a choice of Python
    shown = inspect.signature(sealpoint.save).parameters
    for name in names_of("save"):
        assert (shown[name].default, shown[name].annotation) == (OPTIONS[name].default, OPTIONS[name].type), name


def test_types_of_arguments_are_those_that_are_checked():
    """A rule of _arguments.py with words has those of the annotation."""
    from sealpoint import _arguments, _checkpoint, _save

    rules = (("codec", _save.Codec), ("missing", _checkpoint.OnMismatch), ("convert", _checkpoint.Rounding), ("to", Format))
    for rule, words in rules:
        assert all(_arguments.rule_of(rule).has_value(word) for word in typing.get_args(words))
        assert ", ".join(typing.get_args(words)) in _arguments.rule_of(rule).expected
