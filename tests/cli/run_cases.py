#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the tools on good and damaged checkpoints; compares stdout and exit status with golden/*.txt.

What differs from run to run is replaced first: ids of blobs, times, seconds. With --update the
golden files are written instead.
"""

import argparse
import contextlib
import itertools
import json
import os
import pathlib
import pty
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unicodedata

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support/object_store"))
import servers  # noqa: E402

GOLDEN = pathlib.Path(__file__).resolve().parent / "golden"
# With --bucket all cases run once more on what lies in a bucket of SeaweedFS, but these, which make no sense there.
BUCKET = "s3://bucket/cli/"
NOT_IN_A_BUCKET = {
    r"(verify|ls)-foreign(-json)?": "a key is UTF-8",
    r"verify-empty|verify-series-empty|ls-empty|ckpt-keep-(empty|usage)": "a bucket has no empty directory",
    r"ls-other-.*|inspect-safetensors.*": "other formats are read in file systems",
}
OLDEST = "pruned/step-000000000100-21212121"
GOOD_NEWEST, BAD_NEWEST = (f"{series}/step-000000000300-23232323" for series in ("series", "bad-series"))
NEVER_COMMITTED = "series/step-000000000400-24242424"


def blobs_of(directory):
    """Blob files by size, which tells the blobs of one checkpoint apart."""
    return sorted(pathlib.Path(directory).glob("*.blob"), key=lambda p: p.stat().st_size)


def flip(path, offset):
    data = bytearray(path.read_bytes())
    data[offset] ^= 1
    path.write_bytes(data)


def make_damaged():
    """Copies of good/, each with one damage; returns nothing, fills the current directory."""

    def copy(name):
        shutil.copytree("good", name)
        return pathlib.Path(name)

    flip(blobs_of(copy("bad-chunk"))[0], 130)
    both = blobs_of(copy("bad-many"))[0]
    for offset in (100, 130, 130 + 16384, both.stat().st_size - 10):
        flip(both, offset)
    blobs_of(copy("no-blob"))[0].unlink()
    (copy("no-marker") / "COMMIT").unlink()
    flip(copy("bad-marker") / "COMMIT", 200)
    foreign = copy("foreign")
    # C0, C1 as one byte and as UTF-8, a bidirectional control.
    for name in (b"README\x1b[31m", b"c1-\x9b2J", b"c1-\xc2\x9b2J", b"rtl-\xe2\x80\xaetxt"):
        pathlib.Path(os.fsdecode(os.fsencode(foreign) + b"/" + name)).write_text("not ours")
    two = copy("two")
    for name in (".metadata", "__0_0.distcp", "metadata.json", "model.sig"):
        (two / name).touch()
    pathlib.Path("empty").mkdir()
    for name in (
        "dcp/.metadata", "megatron/.metadata", "megatron/metadata.json", "run/latest_checkpointed_iteration.txt",
        "hf/model.safetensors", "items/__0_0.distcp", "files/a.pt", "files/a.pth", "files/a.ckpt", "files/a.txt",
    ):
        path = pathlib.Path("others") / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("none" if path.parent.name == "files" else "")
    header = json.dumps({
        "__metadata__": {"format": "pt", "sealpoint.object.rng": '["text/plain", "Zm9v"]'},
        "w": {"dtype": "BF16", "shape": [2000, 3], "data_offsets": [0, 12000]},
        "b\x1b": {"dtype": "F32", "shape": [], "data_offsets": [12000, 12004]}}).encode()
    path = pathlib.Path("others/model/model.safetensors")
    path.parent.mkdir()
    path.write_bytes(len(header).to_bytes(8, "little") + header + bytes(12004))
    (path.parent / "config.json").write_text("{}")
    shutil.copytree("series", "bad-series")
    newest = sorted(pathlib.Path("bad-series").iterdir())[2]
    flip(blobs_of(newest)[0], 130)
    for name in ("a", "b"):
        path = pathlib.Path("unreadable-series") / name / "COMMIT"
        path.parent.mkdir(parents=True)
        path.write_bytes(b"x")
    shutil.copytree("series", "magic-series")
    flip(sorted(pathlib.Path("magic-series").iterdir())[2] / "COMMIT", 0)
    shutil.copytree("series", "missing-blob-series")
    middle = sorted(pathlib.Path("missing-blob-series").iterdir())[1]
    blobs_of(middle)[0].unlink()
    (middle / "KEEP").touch()
    shutil.copytree("coded", "bad-chunks")
    blob = blobs_of("bad-chunks")[0]
    for chunk in range(48):
        flip(blob, 4096 * (chunk + 1) + 5)
    shutil.copytree("coded", "bad-chunks-few")
    blob = blobs_of("bad-chunks-few")[0]
    for chunk in range(20):
        flip(blob, 4096 * (chunk + 1) + 5)
    mixed = shutil.copytree("series", "mixed-series")
    flip(blobs_of(pathlib.Path(mixed) / "step-000000000100-21212121")[0], 0)
    shutil.copytree(pathlib.Path(mixed) / "step-000000000300-23232323", f"{mixed}/again")
    (pathlib.Path(mixed) / "notes\x1b.txt").write_text("not ours")
    shutil.copytree("series", "pruned")
    only = pathlib.Path("uncommitted-series")
    only.mkdir()
    shutil.copytree(NEVER_COMMITTED, only / "one")


def sort_notes(text):
    """Neighbouring notes are in the order of random ids; sorts them after those were replaced."""
    out = []
    for is_note, lines in itertools.groupby(
        text.splitlines(keepends=True), lambda line: line.startswith("note")
    ):
        out.extend(sorted(lines) if is_note else lines)
    return "".join(out)


class Runner:
    def __init__(self, arguments):
        self.arguments = arguments
        # Copies of a checkpoint have blobs of the same ids.
        self.blob_numbers = {}
        singles = [pathlib.Path(name) for name in ("good", "coded", "values", "names")]
        for directory in [*singles, *pathlib.Path("series").iterdir()]:
            for number, path in enumerate(blobs_of(directory)):
                self.blob_numbers[path.stem] = number
        self.failures = 0
        self.place = BUCKET if arguments.bucket else ""
        self.names = {*os.listdir(), "missing", "godo", "searies", "serise", "valeus", "made"}

    def placed(self, arguments):
        """Paths as they are in the bucket."""
        return [self.place + argument if argument.split("/")[0] in self.names else argument for argument in arguments]

    def normalised(self, text):
        if self.place:
            text = text.replace(f"{self.place.rstrip('/')} exists, but has no entry", "the working directory has no entry")
        text = text.replace(self.place or os.getcwd() + "/", "")
        for stem, number in self.blob_numbers.items():
            text = text.replace(stem, f"<blob {number}>")
        text = sort_notes(text)
        text = re.sub(r"sealpoint \d+\.\d+\.\d+(-rc\d+)?", "sealpoint <version>", text)
        text = re.sub(r"\b(computed|found|recorded) [0-9a-f]{32}\b", r"\1 <digest>", text)
        text = re.sub(r"\d+\.\d\d s\b", "<seconds>", text)
        text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", "<time>", text)
        text = re.sub(r'"(\w*seconds|created_unix_ns)": [^,\n]+', r'"\1": "<time>"', text)
        text = re.sub(r"XXH3 by [^,]+, byte split by [^)]+", "<instructions>", text)
        return re.sub(r"(ckpt[- ]?\w*) \d+\.\d+\.\d+(?:-rc\d+)? ", r"\1 <version> ", text)

    def run(self, tool, *arguments, **options):
        return subprocess.run(
            [*self.program(tool), *self.placed(arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options
        )

    def case(self, name, tool, *arguments):
        for names, why in NOT_IN_A_BUCKET.items() if self.place else ():
            if re.fullmatch(names, name):
                print(f"skipped in a bucket: {name}: {why}")
                return
        result = self.run(tool, *arguments)
        command = " ".join(["ckpt", *([] if tool == "ckpt" else [tool]), *arguments])
        stdout = result.stdout.decode()
        if "--json" in arguments:
            document = json.loads(stdout)
            if "blobs" in document:
                document["blobs"].sort(key=lambda blob: blob.get("size_bytes", 0))
            stdout = json.dumps(document, indent=2) + "\n"
        stdout = self.normalised(stdout)
        stderr = "".join(f"stderr: {line}\n" for line in self.normalised(result.stderr.decode()).splitlines())
        actual = f"$ {command}\n{stdout}{stderr}exit status {result.returncode}\n"
        path = GOLDEN / f"{name}.txt"
        if self.arguments.update:
            path.write_text(actual)
            return
        expected = path.read_text() if path.exists() else "(no golden file)\n"
        if self.place:
            expected = expected.replace("openat: No such file or directory (errno 2)", "no object exists below this path")
        self.expect(name, actual == expected, f"--- expected\n{expected}--- got\n{actual}")

    def expect(self, name, holds, message=""):
        if not holds:
            self.failures += 1
            print(f"FAILED: {name}\n{message}")

    def program(self, tool):
        return [self.arguments.ckpt, *([] if tool == "ckpt" else [tool])]

    def on_terminal(self, command, environment={}):
        """What the command writes to a terminal."""
        controller, terminal = pty.openpty()
        environment = {**os.environ, **environment}
        if "NO_COLOR" not in environment or not environment["NO_COLOR"]:
            environment.pop("NO_COLOR", None)
        subprocess.run(command, stdout=terminal, stderr=terminal, env=environment)
        os.close(terminal)
        text = b""
        while True:
            try:
                part = os.read(controller, 4096)
            except OSError:  # EIO: the other side is closed
                break
            if not part:
                break
            text += part
        os.close(controller)
        return text.decode()


def run_cases(run):
    run.case("verify-good", "verify", "good")
    run.case("verify-good-files", "verify", "--level", "files", "good")
    run.case("verify-good-structure", "verify", "--level", "structure", "-j", "3", "good")
    run.case("verify-good-json", "verify", "--json", "good")
    run.case("verify-good-quiet", "verify", "--quiet", "good")
    run.case("verify-bad-chunk", "verify", "bad-chunk")
    run.case("verify-bad-chunk-structure", "verify", "--level", "structure", "bad-chunk")
    run.case("verify-bad-chunk-json", "verify", "--json", "bad-chunk")
    run.case("verify-bad-chunk-quiet", "verify", "-q", "bad-chunk")
    run.case("verify-bad-many", "verify", "bad-many")
    run.case("verify-bad-marker", "verify", "bad-marker")
    run.case("verify-no-blob", "verify", "no-blob")
    run.case("verify-no-marker", "verify", "no-marker")
    run.case("verify-unsupported", "verify", "unsupported")
    run.case("verify-unsupported-last", "verify", "unsupported", "no-marker")
    run.case("verify-foreign", "verify", "foreign")
    run.case("verify-two-checkpoints", "verify", "two")
    run.case("verify-empty", "verify", "empty")
    run.case("verify-missing", "verify", "missing")
    run.case("verify-missing-json", "verify", "--json", "missing")
    run.case("verify-typo", "verify", "godo")
    run.case("verify-typo-inside", "verify", "searies/step")
    run.case("verify-file", "verify", "good/COMMIT")
    run.case("verify-series-as-checkpoint", "verify", "series")
    run.case("verify-checkpoint-as-series", "verify", "--series", "good")
    run.case("verify-series-typo", "verify", "--series", "serise")
    run.case("verify-usage-json", "verify", "--json")
    run.case("verify-bad-chunks", "verify", "bad-chunks")
    run.case("verify-bad-chunks-few", "verify", "-j", "1", "bad-chunks-few")
    run.case("verify-bad-chunks-all", "verify", "--all", "-j", "1", "bad-chunks")
    run.case("verify-bad-chunks-json", "verify", "--json", "bad-chunks")
    run.case("verify-foreign-json", "verify", "--json", "foreign")
    run.case("verify-names", "verify", "names")
    run.case("verify-limit", "verify", "boxes")
    run.case("verify-limit-raised", "verify", "--level", "structure", "--raise-limits", "2", "boxes")
    # 1 before 5 before 4 before 3 before 2.
    run.case("verify-several", "verify", "no-marker", "missing", "no-blob", "bad-chunk", "good")
    run.case("verify-incomplete-first", "verify", "no-marker", "missing", "no-blob", "good")
    run.case("verify-unreadable-first", "verify", "no-marker", "missing", "good")
    run.case("verify-uncommitted-first", "verify", "no-marker", "good")
    run.case("verify-series", "verify", "--series", "series")
    run.case("verify-series-bad", "verify", "--series", "bad-series")
    run.case("verify-series-uncommitted", "verify", "--series", "uncommitted-series")
    run.case("verify-series-empty", "verify", "--series", "empty")
    run.case("verify-series-mixed", "verify", "--level", "files", "--series", "mixed-series")
    run.case("verify-series-forked", "verify", "--level", "files", "--series", "forked")
    run.case("verify-series-forked-json", "verify", "--json", "--level", "files", "--series", "forked")
    run.case("verify-series-since", "verify", "--since", "101", "--series", "series")
    run.case("verify-series-since-none", "verify", "--since", "301", "--series", "series")
    run.case("verify-series-json", "verify", "--json", "--series", "mixed-series",
             "--series", "missing")
    run.case("verify-version", "verify", "--version")
    run.case("verify-help", "verify", "--help")
    run.case("ls-good", "ls", "good")
    run.case("ls-good-depth", "ls", "--depth", "1", "good")
    run.case("ls-good-json", "ls", "--json", "good")
    run.case("ls-tensor", "ls", "--tensor", "embedding.weight", "good")
    run.case("ls-tensor-json", "ls", "--tensor", "embedding.weight", "--json", "good")
    run.case("ls-tensor-missing", "ls", "--tensor", "nothing", "good")
    run.case("ls-tensor-missing-json", "ls", "--json", "--tensor", "nothing", "good")
    run.case("ls-tensor-pattern", "ls", "--tensor", "layers.?.*s", "good")
    run.case("ls-tensor-object", "ls", "--tensor", "rng", "good")
    run.case("ls-tensor-coded", "ls", "--tensor", "*", "coded")
    run.case("ls-long", "ls", "--long", "coded")
    run.case("ls-long-json", "ls", "-l", "--json", "coded")
    run.case("ls-names", "ls", "names")
    run.case("ls-names-json", "ls", "--json", "names")
    run.case("ls-values", "ls", "--values", "*", "values")
    run.case("ls-values-json", "ls", "--json", "--values", "*", "values")
    run.case("ls-values-box", "ls", "--values", "ramp", "--box", "1,2:4,10:13", "values")
    run.case("ls-values-damaged", "ls", "--values", "plain", "bad-chunks")
    run.case("ls-object", "ls", "--object", "arg*", "values")
    run.case("ls-object-json", "ls", "--json", "--object", "rng*", "values")
    run.case("ls-object-several", "ls", "--object", "rng*", "values")
    run.case("ls-object-tensor", "ls", "--object", "ramp", "values")
    run.case("ls-typo", "ls", "valeus")
    for name in (
        "dcp", "megatron", "run", "hf", "hf/model.safetensors", "items", "items/__0_0.distcp", "files", "files/a.pt",
        "files/a.pth", "files/a.ckpt", "files/a.txt",
    ):
        run.case(f"ls-other-{name.replace('/', '-')}", "ls", f"others/{name}")
    run.case("ls-safetensors", "ls", "others/model")
    run.case("ls-safetensors-json", "ls", "--json", "others/model/model.safetensors")
    run.case("ls-safetensors-tensor", "ls", "--tensor", "w", "others/model")
    run.case("verify-other", "verify", "others/dcp")
    run.case("ls-missing-json", "ls", "--json", "missing")
    run.case("ls-usage-json", "ls", "--json")
    run.case("ls-series-tensor", "ls", "--tensor", "w", "series")
    run.case("ls-no-blob", "ls", "no-blob")
    run.case("ls-no-marker", "ls", "no-marker")
    run.case("ls-bad-marker", "ls", "bad-marker")
    run.case("ls-two-checkpoints", "ls", "--depth", "1", "two")
    run.case("ls-foreign", "ls", "--depth", "1", "foreign")
    run.case("ls-series", "ls", "series")
    run.case("ls-series-bad", "ls", "missing-blob-series")
    run.case("verify-series-damaged-marker", "verify", "--series", "magic-series")
    run.case("ls-series-unreadable", "ls", "unreadable-series")
    run.case("ls-series-unreadable-json", "ls", "--json", "unreadable-series")
    run.case("ls-series-forked", "ls", "forked")
    run.case("ls-series-forked-json", "ls", "--json", "forked")
    run.case("ls-series-json", "ls", "--json", "series")
    run.case("ls-empty", "ls", "empty")
    run.case("ls-missing", "ls", "missing")
    run.case("ls-plan", "ls", "--plan", "data=2,tensor=2", "meshed")
    run.case("ls-plan-other", "ls", "--plan", "data=3", "meshed")
    run.case("ls-plan-json", "ls", "--plan", "tensor=2", "--json", "meshed")
    run.case("ls-plan-place", "ls", "--plan", "tensor=4,pod=2",
             "--place", "*=shard(dim 0, tensor)", "--place", "moment.*=shard_flat(tensor x pod)",
             "--place", "*.bias=hold_here(tensor)", "meshed")
    run.case("ls-plan-whole", "ls", "--plan", "data=2", "good")
    run.case("ls-plan-no-blob", "ls", "--plan", "data=2", "no-blob")
    run.case("ls-plan-no-marker", "ls", "--plan", "data=2", "no-marker")
    run.case("ls-plan-series", "ls", "--plan", "data=2", "series")
    for name, arguments in {
        "help": ["--help"], "none": [], "version": ["--version"], "typo": ["verfy", "good"],
        "verify-usage": ["verify"], "ls-missing": ["ls", "missing"], "stats": ["stats", "values"],
        "stats-depth": ["stats", "--depth", "1", "meshed"], "diff": ["diff", "good", "meshed"],
        "diff-map": ["diff", "--numeric", "--map", "layer[.]1=layer.0", "--map", "moment.*=x", "meshed", "meshed"],
        "diff-map-endless": ["diff", "--map", "(a+)+$=x", "odd", "odd"], "stats-huge": ["stats", "--json", "odd"],
        "ls-limit": ["ls", "boxes"],
        "digest": ["digest", "--long", "values", "no-blob"], "digest-usage": ["digest", "--match", "w\\", "values"],
        "bisect": ["bisect", "--finite", "series"], "bisect-usage": ["bisect", "--finite", "--script", "true", "series"],
        "blame": ["blame", "--json", "*", "series"],
        "keep-usage": ["keep", "--json", ""], "merge-usage": ["merge", "--union", "--accumulate", "f64", "--out", "x", "good"],
        "report-forked": ["report", "--json", "--keep-last", "2", "forked"], "report-missing": ["report", "--json", "serise"],
    }.items():
        run.case(f"ckpt-{name}", "ckpt", *arguments)
    # What one changes, the next one sees.
    for name, arguments in {
        "prune-nothing": ["prune", "pruned"], "prune-usage": ["prune", "--keep-every", "-1", "pruned"],
        "prune-refused": ["prune", "--keep-last", "1", "--yes", "pruned"],
        "prune-checked": ["prune", "--keep-checked", "1", "pruned"],
        "prune-best": ["prune", "--keep-best", "metric.loss:least", "pruned"],
        "prune-fork": ["prune", "--keep-last", "2", "forked"], "prune-checkpoint": ["prune", "--keep-last", "2", "good"],
        "prune-dry": ["prune", "--keep-last", "2", "pruned"], "keep": ["keep", OLDEST, "missing"],
        "keep-empty": ["keep", "empty"],
        "keep-again": ["keep", "--json", OLDEST], "prune-kept": ["prune", "--keep-last", "2", "--yes", "pruned"],
        "unkeep": ["unkeep", OLDEST],
        "prune-rules": ["prune", "--keep-within", "1h", "--keep-every", "100", "--keep-daily", "1", "--keep-best",
                        "metric.loss:max:2", "pruned"],
        "prune": ["prune", "--keep-last", "2", "--yes", "--json", "pruned"], "clean-dry": ["clean", "pruned"],
        "clean": ["clean", "--yes", "pruned"], "clean-void": ["clean", "pruned"],
        "clean-again": ["clean", "--yes", "--json", "pruned"], "clean-nothing": ["clean", "--yes", "pruned"],
        "clean-missing": ["clean", "missing"],
        "copy": ["copy", "good", "made/copy"], "copy-again": ["copy", "good", "made/copy"],
        "copy-some": ["copy", "--drop", "layers.*", "--compress", "zstd", "--json", "--dry-run", "good", "made/some"],
        "copy-missing": ["copy", "godo", "made/some"], "copy-taken": ["copy", "coded", "made/copy"],
        "copy-nothing": ["copy", "--drop", "*", "good", "made/some"],
        "thin": ["thin", "--blobs", "1", "--drop", "moment*", "--to", "made/thin", "meshed"],
        "thin-newest": ["thin", "--drop", "w", "--remove", GOOD_NEWEST],
        "merge": ["merge", "--blobs", "1", "--out", "made/merge", "good", "good"],
        "merge-weights": ["merge", "--weights", "1", "--out", "made/some", "good", "good"],
        "merge-unlike": ["merge", "--out", "made/some", "good", "coded"],
        "repair-lost": ["repair", BAD_NEWEST, "--from", BAD_NEWEST, "--out", "made/repair"],
        "repair-lost-json": ["repair", BAD_NEWEST, "--json", "--from", BAD_NEWEST, "--out", "made/repair"],
        "repair": ["repair", BAD_NEWEST, "--from", "missing", GOOD_NEWEST, "--out", "made/repair"],
        "promote-unknown": ["promote", "series", "made/series"], "promote-none": ["promote", "serise", "made/series"],
        "promote-dry": ["promote", "--adopt", "--dry-run", "missing-blob-series", "made/series"],
        "promote": ["promote", "--adopt", "--json", "series", "made/series"],
        "promote-again": ["promote", "--adopt", "series", "made/series"],
        "promote-usage": ["promote", "--json", "--wait", "0", "series", "made/series"],
        "repair-none": ["repair", "serise", "--from", "missing", "--out", "made/some"],
    }.items():
        run.case(f"ckpt-{name}", "ckpt", *arguments)
    run.case("ls-version", "ls", "--version")
    run.case("ls-help", "ls", "--help")


# Arguments behind --plan that are wrong, and a part of what is said then.
BAD_PLANS = (
    ([""], "such as data=2"),
    (["data"], "such as data=2"),
    (["data=0"], "size 0"),
    (["data=2,data=2"], "two axes"),
    (["data=16385"], "more than 16384 ranks"),
    (["data=2", "--tensor", "layer.0.weight"], "excludes"),
    (["data=2", "--place", "*"], "PATTERN=RULE"),
    (["data=2", "--place", "=replicate(data)"], "PATTERN=RULE"),
    (["data=2", "--place", "*="], "parentheses"),
    (["data=2", "--place", "*=cut(dim 0, data)"], "expected one of replicate"),
    (["data=2", "--place", "*=shard(dim 0, model)"], "no axis model"),
    (["data=2", "--place", "layers.*=replicate(data)"], "no tensor matches the pattern"),
    (["data=2", "--place", "*=shard(dim 2, data)"], "tensor layer.0.weight"),
    (["data=2", "--place", "*=shard(dim 0, data), replicate(data)"], "is named twice"),
)


def check_bad_plans(run):
    for arguments, message in BAD_PLANS:
        result = run.run("ls", "meshed", "--plan", *arguments)
        said = result.stderr.decode()
        run.expect(f"plan {arguments}", result.returncode == 64 and message in said, str(result))
    run.expect("--place alone", run.run("ls", "good", "--place", "a=pad(b)").returncode == 64)


def check_plan_reads_no_payload(run):
    plans = [
        run.run("ls", "--plan", "data=2", name).stdout.decode().replace(name, "")
        for name in ("good", "bad-chunk")
    ]
    run.expect("plan of damaged payload", "together" in plans[0] and plans[0] == plans[1], plans[1])


def check_plan_is_that_of_a_load(run):
    for mesh in ("data=2,tensor=2", "data=3,tensor=1", "tensor=4,data=1", "tensor=3,data=5"):
        plan = json.loads(run.run("ls", "--json", "--plan", mesh, "meshed").stdout)
        load = subprocess.run([run.arguments.plan_load, "meshed", mesh], stdout=subprocess.PIPE, check=True)
        keys = ("bytes_requested", "bytes_read", "file_count", "request_count")
        said = [[rank[key] for key in keys] for rank in plan["ranks"]]
        *ranks, together = ([int(word) for word in line.split()] for line in load.stdout.splitlines())
        run.expect(f"plan {mesh}", said == ranks, f"{said} but {ranks}")
        run.expect(f"plan {mesh} together", [plan["together"]["bytes_read"]] == together, str(plan))


BAD_BOXES = (
    ("1,2,3,4", "has 4 dimensions"),
    ("x", "is not a range"),
    ("1:2:3", "is not a range"),
    ("-1", "is not a range"),
    ("3", "outside of the shape"),
    ("2:1", "is empty"),
    (":4", "outside of the shape"),
    ("99999999999999999999", "is not a range"),
)


# An option that may be repeated takes one value: behind it stands the path, at the end or not.
REPEATABLE = (
    ("verify", "--series", "series", ["good"]),
    ("verify", "--base", "good", ["good", "--json"]),
    ("ls", "--tensor", "embedding.weight", ["good", "--json"]),
    ("ls", "--values", "ramp", ["values", "--json"]),
    ("ls", "--object", "arg*", ["values", "--json"]),
    ("ls", "--per-rank", "a", ["others/dcp", "--json"]),
    ("diff", "--map", "a=b", ["good", "good", "--json"]),
    ("copy", "--match", "layers.*", ["good", "repeatable", "--dry-run"]),
    ("copy", "--drop", "layers.*", ["good", "repeatable", "--dry-run"]),
)


def check_repeatable(run):
    seconds = re.compile(rb"\d+\.\d+ s|\"seconds\": [\d.e-]+")
    for tool, option, value, words in REPEATABLE:
        said = [run.run(tool, *arguments) for arguments in ([option, value, *words], [*words, option, value])]
        outputs = [(one.returncode, seconds.sub(b"", one.stdout), one.stderr) for one in said]
        run.expect(f"{tool} {option}", outputs[0] == outputs[1] and outputs[0][0] != 64, outputs)


def check_values(run):
    for box, message in BAD_BOXES:
        result = run.run("ls", "values", "--values", "ramp", f"--box={box}")
        said = result.stderr.decode()
        run.expect(f"box {box}", result.returncode == 64 and message in said, str(result))
    run.expect("--box alone", run.run("ls", "values", "--box", "1").returncode == 64)
    document = json.loads(
        run.run("ls", "--json", "--all", "--values", "ramp", "--box", ":,1:3,:", "values").stdout
    )
    values = [50 * (4 * i + j) + k for i in range(3) for j in (1, 2) for k in range(50)]
    run.expect("all values", document["tensors"][0]["values"] == values, str(document))
    text = run.run("ls", "--all", "--values", "ramp", "values").stdout.decode()
    numbers = [int(number) for line in text.splitlines() if line.startswith("[")
               for number in line.split("]")[1].split()]
    run.expect("all values printed", numbers == list(range(600)), text)


def check_objects(run):
    ramp = bytes((i * 7 + 1) % 256 for i in range(300))
    run.expect("object", run.run("ls", "--object", "rng", "values").stdout == ramp)
    raw = run.on_terminal([*run.program("ls"), "--object", "rng", "values"])
    run.expect("object on a terminal", "redirect it" in raw, raw)
    text = run.on_terminal([*run.program("ls"), "--object", "arguments", "values"])
    run.expect("text on a terminal", '{"lr": 0.1}' in text, text)


OUTPUTS = (
    ("verify", ["good"]),
    ("verify", ["--json", "good"]),
    ("verify", ["--json", "--all", "bad-chunks"]),
    ("verify", ["-q", "bad-chunk"]),
    ("verify", ["--help"]),
    ("verify", ["--version"]),
    ("ls", ["good"]),
    ("ls", ["--json", "good"]),
    ("ls", ["--json", "missing"]),
    ("ls", ["--all", "--values", "*", "coded"]),  # more than any buffer
    ("ls", ["--object", "rng", "values"]),
    ("ls", ["series"]),
    ("ls", ["--plan", "data=2", "meshed"]),
    ("ls", ["--help"]),
)


def check_output_errors(run):
    for tool, arguments in OUTPUTS:
        program = run.program(tool)
        for redirection, message in (
            (">/dev/full", "standard output: No space left on device"),
            (">&-", "standard output: Bad file descriptor"),
        ):
            result = subprocess.run(
                ["sh", "-c", f'exec "$@" {redirection}', "sh", *program, *arguments],
                stderr=subprocess.PIPE,
            )
            said = result.stderr.decode()
            run.expect(f"{tool} {arguments} {redirection}",
                       result.returncode == 74 and message in said, str(result))
        # Nothing is in the way of the answer if standard error is full.
        usual = run.run(tool, *arguments).returncode
        result = subprocess.run(["sh", "-c", 'exec "$@" 2>/dev/full', "sh", *program, *arguments],
                                stdout=subprocess.DEVNULL)
        run.expect(f"{tool} {arguments} 2>/dev/full", result.returncode == usual, str(result))
    # Nothing to write: nothing is lost.
    result = subprocess.run(["sh", "-c", 'exec "$@" >&- 2>&- <&-', "sh", *run.program("verify"), "-q", "good"])
    run.expect("quiet and closed", result.returncode == 0, str(result))


def check_broken_pipe(run):
    """A reader that goes away ends the tool by SIGPIPE; if that is ignored, it is an error."""
    for ignored, status in ((False, -signal.SIGPIPE), (True, 74)):
        reading, writing = os.pipe()
        os.close(reading)
        result = subprocess.run(
            [*run.program("ls"), "good"], stdout=writing, stderr=subprocess.PIPE,
            restore_signals=not ignored,
        )
        os.close(writing)
        run.expect(f"broken pipe, ignored: {ignored}", result.returncode == status, str(result))


def check_escapes(run):
    """No byte that a terminal obeys leaves the tools, whatever names hold."""
    for tool, arguments in (
        ("verify", ["foreign"]), ("verify", ["--json", "foreign"]), ("verify", ["--series", "mixed-series"]),
        ("ls", ["foreign"]), ("ls", ["--json", "foreign"]), ("ls", ["names"]),
        ("ls", ["--json", "names"]), ("ls", ["mixed-series"]), ("verify", ["a\u202eb\x9b"]),
    ):
        result = run.run(tool, *arguments)
        text = (result.stdout + result.stderr).decode()  # fails for bytes that are not UTF-8
        bad = [c for c in text if c != "\n" and unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp")]
        run.expect(f"escapes {tool} {arguments}", not bad, f"{bad} in {text}")


def check_columns(run):
    """Columns stand below one another, also behind wide and combining characters."""
    def width(text):
        return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
                   for c in text)

    lines = run.run("ls", "names").stdout.decode().splitlines()
    columns = {width(line[: line.index(" f32 ")]) for line in lines if " f32 " in line}
    run.expect("columns", len(columns) == 1, str(columns))


def check_report(run):
    """A page and statistics, where the series is; the next page takes the place of the first."""
    for _ in range(2):
        result = run.run("ckpt", "report", "--norms", "--no-store", "series", "--out", "made/report.html")
        run.expect("report", result.returncode == 0 and b"report.html: 4 checkpoints" in result.stdout, str(result))
    stored = json.loads(run.run("ckpt", "report", "--norms", "--json", "series").stdout)["checkpoints"]
    known = json.loads(run.run("ckpt", "report", "--json", "series").stdout)["checkpoints"]
    run.expect("statistics are stored", "layers" in known[0] and known == stored, str(known))


def check_old_names(run):
    """A command does the same under its older name."""
    for old, new, arguments in (("verify", "verify", ["bad-chunk"]), ("ls", "ls", ["--json", "names"])):
        results = [run.run(old, *arguments), run.run("ckpt", new, *arguments)]
        run.expect(f"ckpt {new}", len({(result.stdout, result.returncode) for result in results}) == 1, str(results))


def check_file(run):
    """What file(1) says by the magic entry that is installed."""
    if not shutil.which("file"):
        print("skipped: file(1) is not there")
        return
    magic = pathlib.Path(__file__).resolve().parents[2] / "tools/ckpt/sealpoint.magic"
    said = subprocess.run(["file", "--brief", "--magic-file", magic, "good/COMMIT", *pathlib.Path("good").glob("*.index"),
                           blobs_of("good")[0]], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    size = sum(blob.stat().st_size for blob in blobs_of("good"))
    kind = subprocess.run(["file", "--brief", "--mime-type", "--magic-file", magic, "good/COMMIT"], capture_output=True, text=True,
                          check=False)
    run.expect("file(1), media type", kind.stdout == "application/vnd.sealpoint\n", kind.stdout)
    run.expect("file(1)", said.stdout.splitlines() == [
        f"Sealpoint commit marker, format version 1, step 42, sequence 1, 2 blobs, {size} bytes",
        "Sealpoint index, format version 1, step 42", "Sealpoint blob, format version 1, step 42"], said)


def check_parts(run):
    """Damage of a chunk is in one part and damage of all else in each; what is clean is not said to be valid."""
    for count in (2, 7):
        said = [run.run("verify", "--subset", f"{n}/{count}", "bad-chunk") for n in range(1, count + 1)]
        statuses = sorted(item.returncode for item in said)
        run.expect(f"parts of {count}", statuses == [0] * (count - 1) + [1], str(said))
        clean = [n for n, item in enumerate(said, 1) if re.fullmatch(
            rf"bad-chunk: no damage found in part {n}/{count} \(full, part {n}/{count}\): 11 tensors, 2 blobs, "
            r"[\d.]+ kB of 92.4 kB, [\d.]+ s\n", run.normalised(item.stdout.decode()).replace("<seconds>", "0.01 s"))]
        run.expect(f"text of {count}", len(clean) == count - 1, str(said))
        run.expect(f"bad marker, {count}", run.run("verify", "--subset", f"1/{count}", "bad-marker").returncode == 1)
    document = json.loads(run.run("verify", "--json", "--subset", "50%", "good").stdout)
    report = document["reports"][0]
    run.expect("a drawn part", report["part"]["count"] == 2 and report["verdict"] == "committed"
               and report["bytes_checked"] < report["total_bytes"], str(document))
    run.expect("100%", b"good: valid (full)" in run.run("verify", "--subset", "100%", "good").stdout)
    series = run.run("verify", "--subset", "1/7", "--series", "series").stdout.decode()
    run.expect("a part of a series", "(full, part 1/7): 3 without damage found, 1 uncommitted; 27." in series, series)


def run_checks(run):
    check_file(run)
    check_parts(run)
    check_report(run)
    check_old_names(run)
    check_repeatable(run)
    check_values(run)
    check_objects(run)
    check_output_errors(run)
    check_broken_pipe(run)
    check_escapes(run)
    check_columns(run)
    check_plan_is_that_of_a_load(run)
    check_bad_plans(run)
    check_plan_reads_no_payload(run)
    for tool, arguments in (
        ("verify", []),
        ("verify", ["--level", "deep", "good"]),
        ("verify", ["-j", "0", "good"]),
        *(("verify", [f"--subset={part}", "good"]) for part in ("", "1", "0/2", "3/2", "1/2/3", "-1/2", "x/2", "0%", "101%", "%",
                                                                "1/1048577", "1e-9%")),
        ("verify", ["--subset", "1/2", "--level", "structure", "good"]),
        ("verify", ["--state", "state", "--level", "files", "good"]),
        ("verify", ["--state", "state", "--subset", "5%", "good"]),
        ("verify", ["--since", "1", "good"]),
        ("verify", ["--since=-1", "--series", "series"]),
        ("verify", ["--limit-mb-per-s", "0", "good"]),
        ("verify", ["--nonsense"]),
        ("ls", []),
        ("ls", ["good", "good"]),
    ):
        result = run.run(tool, *arguments)
        run.expect(f"usage {arguments}", result.returncode == 64 and result.stderr, str(result))
    for line in run.run("ls", "good").stdout.decode().splitlines():
        run.expect("80 columns", len(line) <= 80, line)
    verify = [*run.program("verify"), "good"]
    run.expect("colour", "\x1b[32mvalid\x1b[0m" in run.on_terminal(verify, {"NO_COLOR": ""}))
    run.expect("no colour", "\x1b[3" not in run.on_terminal(verify, {"NO_COLOR": "1"}))


def main():
    parser = argparse.ArgumentParser()
    for name in ("ckpt", "generator", "plan-load"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--update", action="store_true", help="write the golden files")
    parser.add_argument("--bucket", action="store_true", help="in a bucket; skipped (77) without a server")
    arguments = parser.parse_args()
    begun = servers.seaweedfs() if arguments.bucket else contextlib.nullcontext()
    with begun as server, tempfile.TemporaryDirectory() as directory:
        subprocess.run([arguments.generator, directory], check=True)
        os.chdir(directory)
        make_damaged()
        if server:
            server.put_tree(directory, "cli")
            os.environ.update(server.environment)
        run = Runner(arguments)
        run_cases(run)
        run_checks(run)
        os.chdir("/")
    print(f"{run.failures} failures")
    return 1 if run.failures else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except servers.Missing as missing:
        print(f"skipped: {missing}")
        sys.exit(77)
