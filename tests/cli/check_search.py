#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ckpt bisect and ckpt blame search series that the writer in Python makes, without syncs, since no power cut is meant."""

import argparse
import json
import math
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "readers/reference"))

from checks import Checks  # noqa: E402
from sealpoint_writer.checkpoint import Attempt  # noqa: E402
from sealpoint_writer.items import Object, Tensor  # noqa: E402

COUNT = 40
NAN_AT, THAW_AT, GONE, BACK_AT, RESHAPED_AT, RETYPED_AT, LATE, RECUT_AT = 26, 15, 10, 20, 12, 14, 30, 20
F32, I32 = 12, 4
SCRIPT = """#!/bin/sh
echo "standard output is not ours"
case $1 in *-{skipped}) exit 125;; esac
{action}
[ "${{1##*-}}" -lt {bad} ]
"""


def floats(*values):
    return struct.pack(f"<{len(values)}f", *values)


def state(i):
    """Tensors of the checkpoint i: shape, dtype, bytes and chunk size by name."""
    all_ = {
        "layer.norm": ((2,), F32, floats(0, i + 1), 4096),
        "layer.w": ((4,), F32, floats(i, math.nan if i >= NAN_AT else 1, -1, 2), 4096),
        "frozen": ((2,), F32, floats(max(i, THAW_AT - 1), 1), 4096),
        "still": ((2,), F32, floats(1, 2), 4096),
        "shaped": ((4,) if i < RESHAPED_AT else (2, 2), F32 if i < RETYPED_AT else I32, floats(1, 2, 3, 4), 4096),
        "cut": ((2048,), F32, bytes(8192), 4096 if i < RECUT_AT else 8192),
    }
    if not GONE <= i < BACK_AT:
        all_["vanishing"] = ((1,), F32, floats(5), 4096)
    if i >= LATE:
        all_["late"] = ((1,), F32, floats(7), 4096)
    return all_


def save(path, i, parent, tensors):
    attempt = Attempt(str(path), 10 * (i + 1), parent, i + 1)
    blob = attempt.blob()
    for name, (shape, dtype, data, chunk) in tensors.items():
        blob.add(Tensor(name, shape, dtype, 4, chunk), data)
    blob.add(Object("rng", "text/plain", 4), struct.pack("<I", i))  # no two are equal
    attempt.commit([attempt.write(blob)])
    return attempt.id


def make_series(path, count, make):
    """Returns the directories, oldest first. Neither names nor file times are in this order."""
    paths, parent = [], bytes(16)
    for i in range(count):
        paths.append(path / f"{(i * 7919) % count:04}-{i}")
        parent = save(paths[-1], i, parent, make(i))
    for i, directory in enumerate(paths):
        os.utime(directory / "COMMIT", (10**9 - i, 10**9 - i))
    return paths


class SearchChecks(Checks):
    def document(self, status, *words):
        done = self.run(*words, "--json")
        document = json.loads(done.stdout)
        self.expect(f"{words}: status", done.returncode == document["exit_status"] == status, done)
        return document, done.stderr

    def bisect(self, first_bad, *words, opens=math.ceil(math.log2(COUNT)) + 2, last_good=None):
        """The first bad one is found. Checkpoints are numbers, as in their names."""
        document, said = self.document(0, "bisect", *words)
        number = {key: int(document[key]["path"].split("-")[-1]) for key in ("last_good", "first_bad")}
        last_good = first_bad - 1 if last_good is None else last_good
        self.expect(f"{words}: found", number == {"last_good": last_good, "first_bad": first_bad}, document)
        self.expect(f"{words}: facts", document["first_bad"]["step"] == 10 * (first_bad + 1)
                    and document["first_bad"]["sequence"] == first_bad + 1, document)
        tested = said.count(": good\n") + said.count(": bad\n")
        self.expect(f"{words}: opens", tested <= document["open_count"] <= opens, (document, said))
        return document, said

    def copy(self, name, source="run"):
        shutil.copytree(self.folder / source, self.folder / name)
        return sorted((self.folder / name).glob("*-*"), key=lambda path: int(path.name.split("-")[-1]))

    def script(self, bad, skipped="none", action=""):
        path = self.folder / "script.sh"
        path.write_text(SCRIPT.format(bad=bad, skipped=skipped, action=action))
        path.chmod(0o755)
        return "./script.sh"


def damage(path, at):
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def check_predicates(checks, paths):
    document, said = checks.bisect(NAN_AT, "run", "--finite")
    checks.expect("the lineage", document["checkpoint_count"] == COUNT and "left out: 1 checkpoint on" in said, said)
    checks.bisect(20, "run", "--norm-below", "20.5", "--match", "layer.norm")
    checks.bisect(RETYPED_AT, "run", "--norm-below", "1e9")  # integers count
    checks.bisect(NAN_AT, "run", "--norm-below", "1e12")
    checks.bisect(THAW_AT, "run", "--equal-to", str(paths[0]), "--match", "frozen")
    checks.bisect(RESHAPED_AT, "run", "--equal-to", str(paths[0]), "--match", "shaped", "--match", "still")
    cut, _ = checks.document(1, "bisect", "run", "--equal-to", str(paths[0]), "--match", "cut")
    checks.expect("other chunks, same content", cut["last_good"]["step"] == 10 * COUNT, cut)
    for bad in range(1, COUNT):
        checks.bisect(bad, "run", "--script", checks.script(bad))
    text = checks.run("bisect", "run", "--finite").stdout.splitlines()
    checks.expect("text", text[0].startswith("last good   step 260, attempt ") and text[1].startswith("first bad   step 270,")
                  and text[2].startswith(f"{COUNT} checkpoints, "), text)


def check_ends(checks, paths):
    for words, status, opens, key in ((("--norm-below", "1e9"), 1, 1, "last_good"), (("--norm-below", "0.5"), 1, 2, "first_bad")):
        for series, count in (("run", opens), ("single", 1)):
            document, _ = checks.document(status, "bisect", series, "--match", "layer.norm", *words)
            others = {"last_good", "first_bad"} - {key}
            checks.expect(f"{series} {words}", document[key] and document["open_count"] == count
                          and not any(document[other] for other in others), document)
    for words, text in ((("--norm-below", "1e9"), "newest tested checkpoint is good"), (("--norm-below", "0.5"), "oldest tested")):
        said = checks.run("bisect", "run", "--match", "layer.norm", *words).stdout
        checks.expect(text, f"not found: the {text}" in said, said)
    for series, status in (("empty", 4), ("missing", 4), ("uncommitted", 2), (str(paths[3]), 4)):
        for words in (("bisect", series, "--finite"), ("blame", "*", series)):
            document, _ = checks.document(status, *words)
            checks.expect(f"{words}: error", document["error"]["message"], document)
    for words in ((), ("--finite", "--norm-below", "1"), ("--norm-below", "nan"), ("--norm-below", "-1"),
                  ("--match", "w", "--script", "true"), ("--finite", "--match", "nothing")):
        done = checks.run("bisect", "run", *words)
        checks.expect(f"usage: {words}", done.returncode == 64 and done.stdout == "", done)
    for words in (("missing",), (str(paths[0]), "--match", "nothing")):
        checks.expect(f"equal to {words}", checks.run("bisect", "run", "--equal-to", *words).returncode == 4)


def check_script(checks):
    for action, said in (("exit 127", "exited with status 127, expected 0"), ("exit 2", "status 2")):
        done = checks.run("bisect", "run", "--script", checks.script(5, action=action))
        checks.expect(action, done.returncode == 64 and said in done.stderr and done.stdout == "", done)
        checks.expect(f"{action}: one run", done.stderr.count("standard output is not ours") == 1, done)
    killed = checks.run("bisect", "run", "--script", "kill -9 $$;")
    checks.expect("a signal", killed.returncode == 64 and "was ended by signal 9" in killed.stderr, killed)
    missing = checks.run("bisect", "run", "--script", "./missing.sh")
    checks.expect("no script", missing.returncode == 64 and "status 127" in missing.stderr, missing)
    document, said = checks.bisect(9, "run", "--script", checks.script(8, "8"), last_good=7)
    checks.expect("untested", [entry["step"] for entry in document["untested"]] == [90], document)
    checks.expect("skipped", document["skipped"][0]["error"]["code"] == "Cancelled" and "the script skips it" in said, said)
    checks.bisect(39, "run", "--script", checks.script(39, "38"), last_good=37)
    checks.bisect(1, "run", "--script", checks.script(1, "39"), opens=9)
    document, _ = checks.document(4, "bisect", "run", "--script", "exit 125;")
    checks.expect("all are skipped", document["error"]["code"] == "Cancelled", document)


def check_what_is_skipped(checks):
    paths = checks.copy("damaged")
    damage(next(paths[NAN_AT].glob("*.index")), 200)
    for blob in paths[NAN_AT + 1].glob("*.blob"):
        damage(blob, 4096)
    os.unlink(paths[COUNT - 1] / "COMMIT")
    document, said = checks.bisect(NAN_AT + 2, "damaged", "--finite", opens=10, last_good=NAN_AT - 1)
    checks.expect("untested", {entry["step"] for entry in document["untested"]} == {270, 280}, document)
    for i in (NAN_AT, NAN_AT + 1, COUNT - 1):
        checks.expect(f"{i} is named", f"skipped {paths[i].name}: " in said, said)
    checks.expect("text", "untested    step 270, " in checks.run("bisect", "damaged", "--finite").stdout)
    # The first that is tested is the newest; the removed one is in the middle then.
    gone = checks.copy("removed")[(COUNT - 1) // 2]
    script = checks.script(25, action=f"rm -rf removed/{gone.name}")
    document, said = checks.bisect(25, "removed", "--script", script, opens=9)
    checks.expect("removed meanwhile", f"skipped {gone.name}: NotFound" in said, said)


def check_blame(checks):
    def ranges_of(status, *words):
        document, _ = checks.document(status, "blame", *words)
        checks.expect(f"{words}: payload", (document["payload_bytes_read"] > 0) == ("--read" in words), document)
        return document, {tensor["name"]: [(one["change"], one["first"]["sequence"] - 1, one["last"]["sequence"] - 1,
                                            one["checkpoint_count"]) for one in tensor["ranges"]] for tensor in document["tensors"]}

    last = COUNT - 1
    right = {
        "cut": [("present", 0, 0, 1), ("unchanged", 1, 19, 19), ("not comparable", 20, 20, 1), ("unchanged", 21, last, 19)],
        "frozen": [("present", 0, 0, 1), ("unchanged", 1, 14, 14), ("changed", 15, last, 25)],
        "late": [("absent", 0, 29, 30), ("present", 30, 30, 1), ("unchanged", 31, last, 9)],
        "shaped": [("present", 0, 0, 1), ("unchanged", 1, 11, 11), ("shape changed", 12, 12, 1), ("unchanged", 13, 13, 1),
                   ("dtype changed", 14, 14, 1), ("unchanged", 15, last, 25)],
        "still": [("present", 0, 0, 1), ("unchanged", 1, last, 39)],
        "vanishing": [("present", 0, 0, 1), ("unchanged", 1, 9, 9), ("absent", 10, 19, 10), ("present", 20, 20, 1),
                      ("unchanged", 21, last, 19)],
    }
    for name, ranges in right.items():
        document, said = ranges_of(1 if name == "cut" else 0, name, "run")
        checks.expect(f"blame {name}", said == {name: ranges}, said)
    document, said = ranges_of(1, "*", "run")
    checks.expect("blame *", right.items() <= said.items() and len(said) == 8, said)
    checks.expect("counts", (document["checkpoint_count"], document["changed_count"], document["unknown_count"]) == (
        COUNT, 4, 1), document)
    shaped = next(tensor for tensor in document["tensors"] if tensor["name"] == "shaped")["ranges"]
    checks.expect("shapes", [(one.get("shape"), one.get("dtype")) for one in shaped if one["change"] != "unchanged"] == [
        ([4], "f32"), ([2, 2], "f32"), ([2, 2], "i32")], shaped)
    _, said = ranges_of(0, "cut", "run", "--read")
    checks.expect("--read", said == {"cut": [("present", 0, 0, 1), ("unchanged", 1, last, 39)]}, said)
    text = checks.run("blame", "frozen", "run").stdout
    checks.expect("text", text.startswith(
        "frozen\n  present         step 10, f32 [2]\n  unchanged       steps 20 to 150, 14 checkpoints\n"
        "  changed         steps 160 to 400, 25 checkpoints\n1 tensor in 40 checkpoints: 1 changed; read "), text)
    checks.expect("no such tensor", checks.run("blame", "nothing", "run").returncode == 4)
    # Of the checkpoints that bisect skipped, the payload of one is damaged, which no digest shows.
    document, said = ranges_of(0, "frozen", "damaged")
    checks.expect("skipped", len(document["skipped"]) == 2 and said == {"frozen": [
        ("present", 0, 0, 1), ("unchanged", 1, 14, 14), ("changed", 15, 38, 23)]}, document)


def check_tables(checks):
    """A table that cannot be read: the two pairs around it are not comparable."""
    paths = checks.copy("tables", "single")
    parent = bytes.fromhex(next(paths[0].glob("*.index")).stem)
    for i in range(1, 4):
        parent = save(checks.folder / f"tables/x-{i}", i, parent, state(0))
    blob = next((checks.folder / "tables/x-1").glob("*.blob"))
    for at in range(512, blob.stat().st_size - 512, 16):
        damage(blob, at)
    done = checks.run("blame", "still", "tables")
    checks.expect("tables", done.returncode == 1 and "  not comparable  steps 20 to 30, 2 checkpoints\n" in done.stdout
                  and done.stderr.count(" are not comparable: ") == 2, done)


def check_scale(checks):
    """Of 1,000 checkpoints at most 12 are opened."""
    make_series(checks.folder / "long", 1000, lambda i: {"w": ((1,), F32, floats(math.inf if i >= 617 else i), 4096)})
    checks.bisect(617, "long", "--finite", opens=12)
    done, _ = checks.document(0, "blame", "w", "long")
    checks.expect("blame", [one["checkpoint_count"] for one in done["tensors"][0]["ranges"]] == [1, 617, 382], done)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ckpt", required=True)
    arguments = parser.parse_args()
    os.fsync = lambda descriptor: None
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        paths = make_series(folder / "run", COUNT, state)
        shutil.copytree(paths[5], folder / "run/copy")
        # Another branch, on which all is well.
        before = bytes.fromhex(next(paths[29].glob("*.index")).stem)
        save(folder / "run/fork", 30, before, state(0))
        make_series(folder / "single", 1, state)
        (folder / "empty").mkdir()
        shutil.copytree(paths[0], folder / "uncommitted/step-000000000010-01234567",
                        ignore=shutil.ignore_patterns("COMMIT"))
        checks = SearchChecks(arguments.ckpt, folder)
        check_predicates(checks, paths)
        check_ends(checks, paths)
        check_script(checks)
        check_what_is_skipped(checks)
        check_blame(checks)
        check_tables(checks)
        check_scale(checks)
    print(f"{checks.failures} failures")
    return 1 if checks.failures else 0


if __name__ == "__main__":
    sys.exit(main())
