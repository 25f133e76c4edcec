# SPDX-License-Identifier: Apache-2.0
"""``ckpt bench``: what it measures and says, who is left out and why; it removes what it wrote, and nothing else."""

import contextlib
import html.parser
import importlib.util
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import numpy
import pytest
import sealpoint
from sealpoint.__main__ import main
from sealpoint import _sealpoint
from sealpoint.bench import _command, _disk, _measure, _mishaps, _page, _peers, _place, _ranks, _results, _worker
from sealpoint.bench._numpy_side import NumpySide, Safetensors

TINY = ("--size", "1MB", "--minutes", "0.1", "--rounds", "1", "--small", "6", "--flips", "2", "--kills", "1")
HAS_TORCH = importlib.util.find_spec("torch") is not None
HAS_SAFETENSORS = importlib.util.find_spec("safetensors") is not None
needs_safetensors = pytest.mark.skipif(not HAS_SAFETENSORS, reason="safetensors is not installed")
# The same command without torch, whose import takes seconds.
WITHOUT_TORCH = ("import sys; from sealpoint.bench import _command; from sealpoint.__main__ import main; "
                 "_command.side_here = lambda: 'numpy'; sys.exit(main())")


@pytest.fixture
def bench(monkeypatch, capsys):
    """Runs it in this process, of numpy; yields its status, and what it wrote to standard output and to standard error."""

    def call(*words):
        monkeypatch.setattr(_command, "side_here", lambda: "numpy")
        monkeypatch.setattr(sys, "argv", ["sealpoint", "bench", *map(str, words)])
        with contextlib.suppress(SystemExit):
            status = main()
            return status, *capsys.readouterr()
        return 64, *capsys.readouterr()

    return call


def started(path, *words, code=WITHOUT_TORCH, **options):
    command = [sys.executable, "-c", code, "bench", str(path), *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


class Page(html.parser.HTMLParser):
    """Whether each element is closed, and what a browser would fetch."""

    VOID = {"meta", "wbr"}

    def __init__(self, text):
        super().__init__()
        self.open, self.fetched, self.words, self.tags = [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.fetched += [value for name, value in attributes if name in ("src", "href", "srcset", "data", "action", "style")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


def page_of(path):
    text = path.read_text()
    page = Page(text)
    assert page.open == [] and page.fetched == [] and "script" not in page.tags
    assert "url(" not in text and "@import" not in text and "default-src 'none'" in text
    return page


def cold(report):
    """What there is of it: a file system in memory has none."""
    return [] if report["left_out"].get("load_cold", "").endswith(" keeps files in memory") else ["load_cold"]


@pytest.mark.skipif(not HAS_TORCH, reason="torch is not installed: see scripts/python_env.sh")
def test_on_ranks(tmp_path):
    (tmp_path / "place").mkdir()
    done = started(tmp_path / "place", *TINY, "--load-ranks", "1", "--json", "--html", str(tmp_path / "page.html"),
                   code="import sys; from sealpoint.__main__ import main; sys.exit(main())")
    output, errors = done.communicate(timeout=240)
    assert (done.returncode, errors) == (0, "") and list((tmp_path / "place").iterdir()) == []
    report = json.loads(output)
    assert (report["failed"], report["wrong"], report["faults"]) == ({}, [], [])
    rows = {row["operation"]: row for row in report["rows"] if row["device"] == "cpu"}
    assert list(rows) == ["save", "stall", "background", "load_warm", *cold(report), "load_others", "save_small", "load_small"]
    everyone = {name for name in _peers.INFOS if name not in report["left_out"]}
    assert everyone >= {"sealpoint", "dcp", "torch"} and ("safetensors" in everyone) == HAS_SAFETENSORS
    for name, row in rows.items():
        assert set(row["figures"]) == ({"sealpoint", "dcp"} if name in ("stall", "background") else everyone), name
        assert set(row["sealpoint_is_times_as_fast"]) == set(row["figures"]) - {"sealpoint"}
        assert all(0 < value["least"] <= value["median"] <= value["greatest"] for value in row["figures"].values())
    assert report["bits"]["sealpoint"] and all(text.startswith("CorruptError: ") for text in report["bits"]["sealpoint"])
    assert set(report["bits"]["dcp"]) == {"wrong"} and set(report["kills"]["sealpoint"]) <= {"old", "new"}
    slower = {(row["operation"], row["device"], peer) for row in report["rows"]
              for peer, ratio in row["sealpoint_is_times_as_fast"].items() if ratio["median"] < 1}
    assert {(item["operation"], item["device"], item["peer"]) for item in report["slower"]} == slower
    page = page_of(tmp_path / "page.html")
    assert page.tags.count("svg") == sum(len(row["figures"]) for row in report["rows"])
    said = "".join(page.words)
    for fact in (report["command"], report["file_system"], report["page_cache"], report["machine"]["kernel"]):
        assert fact in said
    assert "Load on one process" in said
    assert said.index("Where Sealpoint is slower") < said.index("Times")


@needs_safetensors
def test_without_torch(bench, tmp_path, monkeypatch):
    """And a peer that is not installed."""
    (tmp_path / "kept").write_text("of somebody else")
    status, output, errors = bench(tmp_path, *TINY, "--json")
    assert errors == ""
    report = json.loads(output)
    assert (status, [path.name for path in tmp_path.iterdir()]) == (0, ["kept"])
    assert set(report["left_out"]) - {"dcp", "torch", "load_cold"} == {"load_others"}
    assert report["options"]["states"] == "numpy"
    why = "the package torch is installed, but torch is not" if HAS_TORCH else "the package torch is not installed"
    assert report["left_out"]["dcp"] == why
    assert {name: set(row["figures"]) for row in report["rows"] if (name := row["operation"])} == dict.fromkeys(
        ("save", "load_warm", *cold(report), "save_small", "load_small"), {"sealpoint", "safetensors"})
    assert set(report["bits"]["safetensors"]) == {"wrong"} and sum(report["kills"]["safetensors"].values()) == 1
    there = _peers.find_spec
    monkeypatch.setattr(_peers, "find_spec", lambda name: None if name == "safetensors" else there(name))
    strange = tmp_path / "<script src='x'>&"
    strange.mkdir()
    status, output, errors = bench(strange, *TINY, "--html", tmp_path / "page.html")
    assert f"{strange}, " in "".join(page_of(tmp_path / "page.html").words)
    assert (status, errors) == (0, "") and "safetensors is left out: the package safetensors is not installed\n" in output
    assert "There was no peer to compare with." in output and "found (CorruptError)" in output


@pytest.mark.skipif(not os.path.ismount("/dev/shm"), reason="/dev/shm is not there")
def test_no_load_is_cold_in_memory(bench, monkeypatch):
    monkeypatch.setattr(_measure, "Ranks", Here)
    _, output, _ = bench("/dev/shm", *TINY, "--flips", "0", "--kills", "0")
    assert "Load, cold is left out: tmpfs on tmpfs keeps files in memory\n" in output and "\nLoad, warm, " in output


def files_below(url):
    """Some stores list folders that are empty."""
    found = []
    for name, kind, _ in sealpoint._sealpoint.list_directory(url) or ():
        found += files_below(f"{url}/{name}") if kind == "directory" else [f"{url}/{name}"]
    return found


def test_an_object_store(bench, bucket):
    status, output, errors = bench(f"{bucket}/bench", *TINY, "--json")
    report = json.loads(output)
    assert (status, errors, files_below(f"{bucket}/bench")) == (0, "", [])
    assert [row["operation"] for row in report["rows"]] == ["save", "load", "save_small", "load_small"]
    assert report["file_system"] == "object store" and report["bits"]["sealpoint"]
    assert report["left_out"]["kills"].startswith("a killed save may leave an unfinished upload")
    if HAS_SAFETENSORS:
        assert report["left_out"]["safetensors"] == "it supports only file systems here, and PATH is a URL"


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_run_that_is_ended_leaves_nothing(tmp_path, number, status):
    (tmp_path / "kept").write_text("of somebody else")
    with started(tmp_path, "--size", "32MB", "--minutes", "5") as process:
        end = time.monotonic() + 60
        while not any(tmp_path.glob("sealpoint-bench-*/big-sealpoint-1-cpu")) and time.monotonic() < end:
            time.sleep(0.01)
        ranks = [int(pid) for pid in pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]
        process.send_signal(number)
        _, errors = process.communicate(timeout=60)
    assert (process.returncode, [path.name for path in tmp_path.iterdir()]) == (status, ["kept"]), errors
    assert ranks and not any(os.path.exists(f"/proc/{pid}") for pid in ranks)


def test_output_that_cannot_be_written(tmp_path):
    """It is known before anything is measured."""
    began = time.monotonic()
    command = ["sh", "-c", 'exec "$@" >/dev/full', "sh", sys.executable, "-m", "sealpoint", "bench", str(tmp_path)]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (74, "ckpt: standard output: No space left on device (errno 28)\n")
    assert list(tmp_path.iterdir()) == [] and time.monotonic() - began < 60


def test_a_place_that_is_of_no_use(bench, tmp_path, monkeypatch):
    """The error comes before anything is measured."""
    monkeypatch.setattr(_ranks.Ranks, "start", lambda *_: pytest.fail("it measures"))
    (tmp_path / "file").write_text("")
    for path, said in ((tmp_path / "none", "NotFound: the directory does not exist: create it, or pass another PATH"),
                       (tmp_path / "file", "InvalidArgument: it is a file, expected a directory or a URL"),
                       ("/proc", "Io: no folder can be made in it: No such file or directory (errno 2)"),
                       ("ftp://host/path", "Unsupported: path is a URL of ftp, expected a path")):
        status, _, errors = bench(path, "--size", "1MB")
        assert status in (3, 4, 64) and errors.startswith(f"ckpt bench: {said}"), errors
    there = os.listdir(tmp_path)
    monkeypatch.setattr("shutil.disk_usage", lambda path: type("Usage", (), {"free": 1000})())
    status, output, errors = bench(tmp_path, "--size", "1MB")
    assert (status, output) == (4, "") and errors.startswith("ckpt bench: NoSpace: 1,000 bytes are free, and --size 1 MB needs ")
    assert "give a smaller --size" in errors
    monkeypatch.setattr(_command, "memory_bytes", lambda which: 1000)
    status, output, errors = bench(tmp_path, "--size", "1MB")
    assert (status, output) == (64, "") and "--size 1,000,000 needs 4,000,000 bytes of memory, and 1,000 are free" in errors
    assert os.listdir(tmp_path) == there == ["file"]


def test_wrong_usage(bench, tmp_path, monkeypatch):
    for words, said in ((["--size", "lots"], "found 'lots', expected a size such as 5GB or 256MiB"),
                        (["--minutes", "0"], "'0' is not a number of minutes, expected more than 0"),
                        (["--ranks", "0"], "'0' is not a number of 1 to 1,000,000"),
                        (["--peers", "tar"], "'tar' is not known, expected some of sealpoint,dcp,torch,safetensors")):
        status, output, errors = bench(tmp_path, *words)
        assert (status, output, errors.count("\n")) == (64, "", 1) and said in errors, errors
    status, _, errors = bench(tmp_path, "--size", "1KB")
    assert status == 64 and "--size is 1,000 bytes, expected at least 32,768 for this number of ranks" in errors
    parser = _command.make_parser()
    monkeypatch.setattr(_command, "side_here", lambda: "torch")
    with pytest.raises(SystemExit) as ended:
        _command._options(parser.parse_args([str(tmp_path), "--load-ranks", "2"]), parser)
    assert ended.value.code == 64
    monkeypatch.setattr(_peers, "find_spec", lambda name: None)
    assert _peers.side_here() is None


def test_files_of_others_are_no_page(bench, tmp_path, monkeypatch):
    monkeypatch.setattr(_ranks.Ranks, "start", lambda *_: pytest.fail("it measures"))
    (tmp_path / "mine.html").write_text("<p>mine")
    for name, said in (("mine.html", "AlreadyExists: the file was not written by ckpt bench"),
                       ("none/page.html", "NotFound: the directory of the page does not exist"),
                       ("", "InvalidArgument: --html is a directory, expected the name of a file")):
        status, output, errors = bench(tmp_path, "--html", tmp_path / name)
        assert (status, output) == (64 if "Invalid" in said else 4, "") and errors.startswith(f"ckpt bench: {said}"), errors
    status, _, errors = bench(tmp_path, "--html", "/proc/page.html")
    assert status == 4 and errors.startswith("ckpt bench: Io: the page cannot be written: ")
    assert (tmp_path / "mine.html").read_text() == "<p>mine" and len(list(tmp_path.iterdir())) == 1
    for text in ("one", "two"):  # its own is replaced
        _page.PageFile(str(tmp_path / "page.html")).write(_page._BEGIN + text)
        assert (tmp_path / "page.html").read_text().endswith(text)
    assert len(list(tmp_path.iterdir())) == 2


def test_only_its_own_folder_is_removed(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(_place, "_WAIT_SECONDS", 0)
    with _place.Place(str(tmp_path), 0, "") as place:
        place.make()
        os.rename(place.folder, tmp_path / "moved")
        os.mkdir(place.folder)
        pathlib.Path(place.folder, "file").write_text("of somebody else")
    assert pathlib.Path(place.folder, "file").exists()
    assert "was not removed: Io: another directory has its name now" in capsys.readouterr().err
    with _place.Place(str(tmp_path), 0, "") as place:
        os.mkdir(place.folder)  # not by make()
    assert os.path.isdir(place.folder)


def test_an_interrupt_waits_for_the_folder(tmp_path, monkeypatch):
    """While it is made, and while it is removed."""
    for module, name in ((os, "mkdir"), (_sealpoint, "remove_path")):
        own = getattr(module, name)

        def interrupted(*arguments, own=own, **options):
            if module is os:
                own(*arguments, **options)
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0)
            if module is _sealpoint:
                own(*arguments, **options)

        monkeypatch.setattr(module, name, interrupted)
        with pytest.raises(KeyboardInterrupt), _place.Place(str(tmp_path), 0, "") as place:
            place.make()
        monkeypatch.undo()
        assert list(tmp_path.iterdir()) == [], name


class Here:
    """In the place of Ranks: one rank in this process, whose peers a test can change."""

    def __init__(self, count, side):
        self._rank = _worker.Rank("numpy")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def start(self, limit):
        pass

    def call(self, name, limit, **arguments):
        try:
            return [getattr(self._rank, name)(**arguments)]
        except Exception as error:
            raise _ranks.RankError(_mishaps.one_line(error)) from None


@needs_safetensors
def test_who_fails_is_named_and_the_others_go_on(bench, tmp_path, monkeypatch):
    class Failing(Safetensors):
        def load(self, state, path, saved_ranks):
            raise OSError(28, "No space left on device")

    class Wrong(NumpySide.peers["sealpoint"]):
        def load(self, state, path, saved_ranks):
            super().load(state, path, saved_ranks)
            state.tensors[next(iter(state.tensors))][0, 0] = 1

    monkeypatch.setattr(_measure, "Ranks", Here)
    few = (*TINY, "--flips", "0", "--kills", "0", "--json")
    monkeypatch.setitem(NumpySide.peers, "safetensors", Failing)
    status, output, _ = bench(tmp_path, *few)
    report = json.loads(output)
    assert status == 0 and report["failed"] == {"state on cpu: safetensors": "OSError: [Errno 28] No space left on device"}
    assert {row["operation"] for row in report["rows"] if "sealpoint" in row["figures"]} > {"load_cold", "load_small"}
    monkeypatch.setitem(NumpySide.peers, "sealpoint", Wrong)
    status, output, errors = bench(tmp_path, *few)
    assert status == 1 and "load_warm: sealpoint" in json.loads(output)["wrong"]
    assert "ckpt bench: loaded wrong: load_warm: sealpoint\n" in errors and list(tmp_path.iterdir()) == []


@needs_safetensors
def test_rounds_alternate_and_the_first_warms_up(bench, tmp_path, monkeypatch):
    said = []

    class Progress:
        def __call__(self, text):
            said.append(text)

        def end(self):
            pass

    monkeypatch.setattr(_measure, "Ranks", Here)
    monkeypatch.setattr(_command, "_Progress", Progress)
    few = (*TINY, "--flips", "0", "--kills", "0", "--json")
    report = json.loads(bench(tmp_path, *few, "--minutes", "5", "--rounds", "2")[1])
    assert report["notes"] == [] and {len(value["seconds"]) for row in report["rows"] for value in row["figures"].values()} == {2}
    rounds = [text.split(": ")[2] for text in said if text.startswith("state on cpu: ")]
    assert rounds == ["sealpoint", "safetensors", "safetensors", "sealpoint", "sealpoint", "safetensors"]
    report = json.loads(bench(tmp_path, *few, "--minutes", "1e-9")[1])
    assert {len(value["seconds"]) for row in report["rows"] for value in row["figures"].values()} == {1}
    assert [note.partition(":")[0] for note in report["notes"]] == ["state on cpu", "small tensors"]
    assert "there was time for one round only of Sealpoint, safetensors, which is also the warm-up" in report["notes"][0]


def test_the_slowest_go_first_if_time_is_short():
    took = {"dcp": 17.0, "sealpoint": 2.0, "torch": 3.0, "safetensors": 1.0}
    fit = {seconds: set(_measure.those_that_fit(took, lambda needed, seconds=seconds: needed <= seconds))
           for seconds in (69, 68, 18, 17, 4, 2)}
    three, two = {"sealpoint", "torch", "safetensors"}, {"sealpoint", "safetensors"}
    assert fit == {69: set(took), 68: three, 18: three, 17: three, 4: two, 2: set()}
    even = {"dcp": 4.0, "sealpoint": 2.0, "torch": 3.0, "safetensors": 1.0}
    assert set(_measure.those_that_fit(even, lambda needed: needed <= 10)) == set(even), "one round of all, rather than three"
    assert _measure.those_that_fit({}, lambda needed: True) == []
    assert _measure.those_that_fit({"sealpoint": 2.0}, lambda needed: needed <= 2) == ["sealpoint"]


def test_who_has_one_round_is_compared_in_that():
    row = _results.Row("save", "cpu", 1, {"sealpoint": _results.Figures({0: 4.0, 1: 1.0}), "dcp": _results.Figures({0: 8.0}),
                                          "torch": _results.Figures({0: 9.0, 1: 3.0})})
    assert row.times_as_fast("dcp") == (2.0, 2.0, 2.0, 1) and row.times_as_fast("torch") == (3.0, 3.0, 3.0, 1)
    assert row.figures["sealpoint"].spread() == (1.0, 1.0, 1.0, 1) and row.times_as_fast("sealpoint") is None


def test_a_load_that_dies_or_hangs_is_named(monkeypatch):
    assert _mishaps._Child.start(lambda begin: os.kill(os.getpid(), signal.SIGKILL)).answer() == {"error": "it died with -9"}
    assert _mishaps._Child.start(lambda begin: {"of": 1}).answer() == {"done": {"of": 1}}
    monkeypatch.setattr(_mishaps, "_LIMIT_SECONDS", 0.2)
    assert _mishaps._Child.start(lambda begin: time.sleep(100)).answer() == {"error": "it did not finish within 0 s"}
    with pytest.raises(RuntimeError, match="the save to be killed did not start"):
        _mishaps._Child.start(lambda begin: time.sleep(100)).wait_for_begin()


def test_a_rank_that_dies_or_hangs_is_named():
    with _ranks.Ranks(1, "numpy") as ranks:
        ranks.start(60)
        ((process, _),) = ranks._processes
        assert os.getsid(process.pid) == process.pid, "Ctrl-C in a terminal is for the command alone"
        process.kill()
        with pytest.raises(_ranks.RankError, match="the process ended with -9"):
            ranks.call("begin", 60)
        ranks.call("begin", 60)  # a new one
        ((process, _),) = ranks._processes
        process.send_signal(signal.SIGSTOP)
        with pytest.raises(_ranks.RankError, match="it did not finish within 0 s"):
            ranks.call("begin", 0.2)
        assert process.returncode == -signal.SIGKILL
        with pytest.raises(_ranks.RankError, match="KeyError: 'nobody'"):
            ranks.call("save", 60, peer="nobody", path="/nowhere")


def test_what_is_wrong_with_sealpoint_is_a_fault():
    for wrong in ({"bits": {"sealpoint": {"wrong": 1}}}, {"kills": {"sealpoint": {"mixed": 1}}},
                  {"kills": {"sealpoint": {"NotFoundError: …": 1}}}, {"failed": {"bits: sealpoint": "…"}},
                  {"wrong": {"load_warm: sealpoint": 1}}):
        assert len(_results.Results(**wrong).faults()) == 1, wrong
    fine = _results.Results(bits={"sealpoint": {"CorruptError: …": 3, "old": 1}, "dcp": {"wrong": 4}},
                            kills={"sealpoint": {"old": 1, "new": 1}, "dcp": {"mixed": 1}}, failed={"bits: dcp": "…"})
    assert fine.faults() == []


def test_the_worst_comes_first():
    results = _results.Results()
    for operation, theirs in (("save", [1, 2, 9]), ("load_warm", [0.5, 0.25, 2]), ("load_cold", [0.9, 0.8, 0.7])):
        row = results.row(operation, "cpu", 1)
        row.figures["sealpoint"] = _results.Figures({1: 1.0, 2: 1.0, 3: 1.0})
        row.figures["dcp"] = _results.Figures(dict(enumerate(map(float, theirs), 1)))
    assert [(result.row.operation, result.ratios) for result in results.slower()] == [
        ("load_warm", [("dcp", (0.5, 0.25, 2.0, 3))]), ("load_cold", [("dcp", (0.8, 0.7, 0.9, 3))])]


@pytest.mark.parametrize("count", [1, 8, 16])
def test_places_and_moments_are_spread(tmp_path, count):
    (tmp_path / "a").write_bytes(bytes(100))
    (tmp_path / "b").write_bytes(bytes(60))
    order = _mishaps._spread(count)
    assert sorted(order) == list(range(count))
    assert max(order[:4]) - min(order[:4]) >= count // 2, "the first few are spread, too"
    places = _disk.places(str(tmp_path), count)
    assert len(set(places)) == count and sum(name == "a" for name, _, _ in places) == round(count * 100 / 160)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    _disk.flip(str(tmp_path), *places[0])
    assert sum((tmp_path / places[0][0]).read_bytes()) == 1 << places[0][2]
    _disk.flip(str(tmp_path), *places[0])
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_states_are_told_apart():
    side = NumpySide()
    spec = _measure._state.big(100_000, 1)
    one, two = (side.make(spec, 0, 1, "cpu", generation) for generation in (1, 2))
    assert side.generations(one) == {1} and side.generations(two) == {2} and not side.equal(one, two)
    name = next(iter(one.tensors))
    one.tensors[name][0] = two.tensors[name][0]
    assert side.generations(one) == {1, 2}
    one.tensors[name].view("u4")[0, 0] ^= numpy.uint32(1)
    assert side.generations(one) == {1, 2, "neither"}
