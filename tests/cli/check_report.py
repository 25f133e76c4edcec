#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The page that ckpt report makes, and its document, of a series as a training leaves it."""

import argparse
import contextlib
import html.parser
import math
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

from checks import Checks

# Elements without an end, and those that a browser closes by itself.
VOID = {"meta", "br"}
OPEN = {"html"}
HOSTILE = "</td><script>alert(1)</script>\"'&\\x1b[31m"


class Page(html.parser.HTMLParser):
    """Checks that elements nest, and keeps the text."""

    def __init__(self, text):
        super().__init__()
        self.stack, self.problems, self.elements, self.words, self.attributes = [], [], [], [], []
        self.feed(text)
        self.close()
        if set(self.stack) - OPEN:
            self.problems.append(f"not closed: {self.stack}")

    def handle_starttag(self, tag, attrs):
        self.elements.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.stack.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        if not self.stack or self.stack.pop() != tag:
            self.problems.append(f"{tag} at {self.getpos()}")

    def handle_data(self, data):
        self.words.append(data)

    @property
    def text(self):
        return " ".join(self.words)


class ReportChecks(Checks):
    def page(self, *words, status=0):
        """The page of a call, which is as it should be."""
        done = self.run("report", *words, "--out", "page.html", "--force")
        self.expect(f"{words}: status", done.returncode == status, done)
        text = (self.folder / "page.html").read_text()
        page = Page(text)
        self.expect(f"{words}: elements nest", not page.problems, page.problems)
        foreign = [element for element in page.elements if element in ("script", "img", "link", "iframe", "b>")]
        foreign += [name for name, _ in page.attributes if name in ("src", "href") or name.startswith("on")]
        self.expect(f"{words}: nothing is fetched or run", not foreign, foreign)
        policy = ("content", "default-src 'none'; style-src 'unsafe-inline'")
        self.expect(f"{words}: policy", policy in page.attributes)
        numbers = [value for name, value in page.attributes if name in ("d", "x", "y", "width", "height", "viewbox")]
        self.expect(f"{words}: numbers of charts", not re.search("nan|inf", " ".join(numbers)), numbers)
        return page

    def steps(self, series="run"):
        return sorted((self.folder / series).glob("step-*"))


def check_plain(checks):
    page = checks.page("run")
    checks.expect("summary", "All 8 checkpoints are valid" in page.text, page.text)
    checks.expect("norms are not asked for", "Norms and non-finite values are unknown" in page.text and not (
        checks.folder / "run.stats").exists())
    checks.expect("provenance as it is", HOSTILE in page.text, page.text)
    document = checks.json("report", "run")
    sizes = [item["size_bytes"] for item in document["checkpoints"]]
    added = [item["added_bytes"] for item in document["checkpoints"]]
    on_disk = {path.stat().st_ino: path.stat().st_size for step in checks.steps() for path in step.iterdir()}
    checks.expect("sizes", document["size_bytes"] == sum(sizes)
                  and document["distinct_bytes"] == sum(added) == sum(on_disk.values()), document)
    checks.expect("the table is linked", added[-1] == sizes[-1] and all(item < sizes[-1] for item in added[:-1]), added)
    intervals = [item["interval_seconds"] for item in document["checkpoints"]]
    checks.expect("intervals", intervals[-1] is None and all(interval > 0 for interval in intervals[:-1]), intervals)
    saves = [item["save_seconds"] for item in document["checkpoints"]]
    checks.expect("times of saves", all(save is None or 0 <= save < 60 for save in saves), saves)
    # A copy's files were born later than what they hold: their times say nothing of the save.
    time.sleep(0.1)
    shutil.copytree(checks.folder / "run", checks.folder / "copied")
    saves = {check["save_seconds"] for check in checks.json("report", "copied")["checkpoints"]}
    checks.expect("times of a copy", saves == {None}, saves)
    checks.expect("said so", "The duration of saves is unknown" in checks.page("copied").text)
    shutil.rmtree(checks.folder / "copied")


def check_norms(checks):
    before = set(os.listdir(checks.folder / "run"))
    stored = checks.run("stats", "--store", f"run/{checks.steps()[2].name}")
    checks.expect("stats --store", stored.returncode == 0 and len(os.listdir(checks.folder / "run.stats")) == 1, stored)
    document = checks.json("report", "--norms", "--depth", "2", "run")
    checks.expect("nothing in the series", before == set(os.listdir(checks.folder / "run")))
    checks.expect("stored", len(os.listdir(checks.folder / "run.stats")) == 8 + 7, os.listdir(checks.folder / "run.stats"))
    for item in document["checkpoints"]:
        stats = checks.json("stats", "--depth", "2", f"run/{item['name']}")["prefixes"]
        right = [(row["name"], row["value_count"], row["nan_count"], row["l2"]) for row in stats]
        said = [(row["name"], row["value_count"], row["nan_count"], row["l2"]) for row in item["layers"]]
        checks.expect(f"as ckpt stats: {item['name']}", sorted(said) == sorted(right), (said, right))
    newest, older = document["checkpoints"][:2]
    checks.expect("compared with the parent", newest["update_since"] == older["name"], newest)
    diff = checks.json("diff", "--numeric", f"run/{older['name']}", f"run/{newest['name']}")["tensors"]
    squares = sum(item["numeric"]["l2"] ** 2 for item in diff if item["first"]["name"].startswith("model.layer."))
    said = {row["name"]: row["update_l2"] for row in newest["layers"]}
    checks.expect("as ckpt diff", math.isclose(said["model.layer"], math.sqrt(squares), rel_tol=1e-12)
                  and said["base.table"] == 0, (said, squares))
    nan = [item for item in document["checkpoints"] if sum(row["nan_count"] + row["infinity_count"] for row in item["layers"])]
    checks.expect("NaN", [item["step"] for item in nan] == [50], nan)
    page = checks.page("run", "--depth", "2")
    checks.expect("from the store", "1 NaN and 1 infinite values in model.layer" in page.text
                  and "in 1 checkpoint, first at step 50" in page.text and "unchanged" in page.text, page.text)
    checks.expect("hostile layer", "<img src=x>." in page.text)
    # What is damaged or of another checkpoint is not believed, and made anew.
    files = sorted((checks.folder / "run.stats").glob("*.values.json"))
    kept = files[0].read_text()
    files[0].write_text(files[1].read_text())
    unknown = checks.json("report", "run")["checkpoints"]
    checks.expect("that of another", [item["name"][-8:] for item in unknown if "layers" not in item] == [files[0].name[:8]])
    files[0].write_text(kept)
    for path in sorted((checks.folder / "run.stats").iterdir()):
        path.write_text(path.read_text().replace('"value_count":256', '"value_count":257').replace('"l2":', '"l3":'))
    unknown = checks.json("report", "run")["checkpoints"]
    checks.expect("a broken seal", not [item for item in unknown if "layers" in item], unknown)
    again = checks.json("report", "--norms", "--depth", "2", "run")
    checks.expect("again", again["checkpoints"] == document["checkpoints"])
    checks.expect("sealed again", "layers" in checks.json("report", "run")["checkpoints"][0])
    shutil.rmtree(checks.folder / "run.stats")
    checks.json("report", "--norms", "--no-store", "run")
    checks.expect("--no-store", not (checks.folder / "run.stats").exists())


def flip(path, offset):
    data = bytearray(path.read_bytes())
    data[offset] ^= 1
    path.write_bytes(data)


def check_damage(checks):
    """Each is shown as what it is, and the rest of the page is made."""
    shutil.copytree(checks.folder / "run", checks.folder / "bad")
    steps = checks.steps("bad")
    flip(max(steps[1].glob("*.blob"), key=lambda path: path.stat().st_size), 5000)
    min(steps[2].glob("*.blob"), key=lambda path: path.stat().st_size).unlink()
    flip(steps[3] / "COMMIT", 200)
    (steps[6] / "COMMIT").unlink()
    (steps[4] / "KEEP").touch()
    (checks.folder / "bad/<i>notes").touch()
    page = checks.page("bad", status=1)
    for words in ("2 of 7 checkpoints are not valid", "step 30: incomplete", "never committed", "<i>notes", "KEEP"):
        checks.expect(f"damage: {words}", words in page.text, page.text)
    page = checks.page("bad", "--norms", "--no-store", status=1)
    checks.expect("found while norms are read", "step 20: corrupt" in page.text and "R-CHK-02" in page.text, page.text)
    norms = {check["step"]: check for check in checks.json("report", "--norms", "--no-store", "bad")["checkpoints"]}
    checks.expect("compared with the last good one", norms[50]["update_since"] == norms[10]["name"]
                  and "norms_error" not in norms[50], norms[50])
    full = checks.json("report", "--level", "full", "bad")
    verdicts = {item["step"]: item["verdict"] for item in full["checkpoints"] if item["step"]}
    checks.expect("level full", verdicts[20] == "corrupt" and verdicts[30] == "incomplete", verdicts)
    plain = checks.run("verify", "--level", "files", "--series", "bad")
    checks.expect("as ckpt verify", plain.returncode == 1, plain)
    rules = ["--keep-last", "2", "--keep-every", "50"]
    pruned = {check["name"]: (check["keep"], check["reasons"]) for check in checks.json("prune", *rules, "bad")["decisions"]}
    document = checks.json("report", *rules, "bad")
    checks.expect("as ckpt prune", pruned == {item["name"]: (item["keep"], item["reasons"])
                                              for item in document["checkpoints"]}, document)
    document = checks.json("report", *rules, "run")
    gone = {item["name"] for item in document["checkpoints"] if not item["keep"]}
    files = [(path.stat().st_ino, path.stat().st_size, path.parent.name in gone)
             for step in checks.steps() for path in step.iterdir()]
    left = {inode for inode, _, goes in files if not goes}
    freed = sum({inode: size for inode, size, _ in files if inode not in left}.values())
    checks.expect("what it would free", gone and document["bytes_to_free"] == freed, (document["bytes_to_free"], freed))
    checks.expect("in words", "a KEEP file pins it" in checks.page("bad", *rules, status=1).text)
    checks.expect("nothing is deleted", len(checks.steps("bad")) == 8)


def check_none(checks):
    (checks.folder / "empty").mkdir()
    page = checks.page("empty", status=4)
    checks.expect("empty", "There is no checkpoint here yet" in page.text, page.text)
    for words, status, message in (
        (["missing"], 4, "No such file"), ([f"run/{checks.steps()[0].name}"], 4, "the directory above"),
        (["run", "--keep-last", "1"], 64, "R-SER-14"), (["run", "--keep-best", "loss"], 64, "--keep-best"),
    ):
        done = checks.run("report", *words, "--out", "none.html", "--force")
        checks.expect(f"{words}", done.returncode == status and message in done.stderr, done)
        checks.expect(f"{words}: page", not (checks.folder / "none.html").exists())


def check_output(checks):
    """The page is whole or not there, and nothing is left beside it."""
    out = checks.folder / "out"
    out.mkdir()
    (out / "notes.html").write_text("<p>mine")
    (out / "link.html").symlink_to("notes.html")
    for words, status, message in (
        (["--out", "out/page.html"], 0, ""), (["--out", "out/page.html"], 0, ""),
        (["--out", "out/notes.html"], 4, "--force"), (["--out", "out/link.html", "--force"], 64, "not a regular file"),
        (["--out", "out/notes.html", "--force"], 0, ""), (["--out", "out/"], 64, "directory"),
        (["--out", "out"], 64, "not a regular file"), (["--out", "none/page.html"], 4, "No such file"),
        (["--out", "/proc/page.html"], 4, "/proc"),
        ([], 64, "--out"), (["--out", "-", "--json"], 64, "--json"),
    ):
        done = checks.run("report", "run", *words)
        checks.expect(f"{words}", done.returncode == status and message in done.stderr, done)
    checks.expect("what is left", sorted(os.listdir(out)) == ["link.html", "notes.html", "page.html"], os.listdir(out))
    # Several at once: one of them stays, whole.
    together = [subprocess.Popen([checks.program, "report", "run", "--out", "out/page.html"], cwd=checks.folder,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) for _ in range(6)]
    said = [(item.communicate()[1], item.returncode) for item in together]
    checks.expect("several at once", set(said) == {(b"", 0)} and not Page((out / "page.html").read_text()).problems, said)
    done = checks.run("report", "run", "--out", "-")
    checks.expect("standard output", done.returncode == 0 and not Page(done.stdout).problems, done)
    with open("/dev/full", "w", encoding="ascii") as full:
        done = subprocess.run([checks.program, "report", "run", "--out", "-"], cwd=checks.folder, stdout=full,
                              stderr=subprocess.PIPE, check=False)
    checks.expect("full standard output", done.returncode == 74, done)
    # A file of so many bytes is all that may be written: as on a full disk.
    limited = checks.run("report", "run", "--out", "out/page.html", preexec_fn=limit_files)
    checks.expect("too large", limited.returncode == 4 and not Page((out / "page.html").read_text()).problems, limited)
    checks.expect("after errors", sorted(os.listdir(out)) == ["link.html", "notes.html", "page.html"], os.listdir(out))


def limit_files():
    import resource
    import signal

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))


def check_many(checks, generator):
    """A page of 1,000 checkpoints stays small, and is made soon."""
    subprocess.run([generator, checks.folder / "many", "1000"], check=True)
    began = time.monotonic()
    page = checks.page("many")
    seconds, size = time.monotonic() - began, (checks.folder / "page.html").stat().st_size
    checks.expect("1,000: cost", seconds < 30 and size < 300_000, (seconds, size))
    checks.expect("1,000: rows", 100 < page.elements.count("tr") < 250 and "are omitted" in page.text)
    every = checks.page("many", "--all")
    checks.expect("--all", every.elements.count("tr") > 1000)
    print(f"1,000 checkpoints: {seconds:.2f} s, {size} bytes")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ckpt", required=True, type=pathlib.Path)
    parser.add_argument("--generator", required=True)
    arguments = parser.parse_args()
    # In memory, if there is room for files: 1,000 saves sync many.
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with contextlib.ExitStack() as stack:
        checks = ReportChecks(arguments.ckpt, pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory())))
        subprocess.run([arguments.generator, checks.folder / "run", "8"], check=True)
        check_plain(checks)
        check_norms(checks)
        check_damage(checks)
        check_none(checks)
        check_output(checks)
        checks.folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(dir=memory)))
        check_many(checks, arguments.generator)
    print(f"{checks.failures} failures")
    return 1 if checks.failures else 0


if __name__ == "__main__":
    sys.exit(main())
