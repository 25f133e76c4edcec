#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the tools on good and damaged checkpoints; compares stdout and exit status with golden/*.txt.

What differs from run to run is replaced first: ids of blobs, times, seconds. With --update the
golden files are written instead.
"""

import argparse
import itertools
import json
import os
import pathlib
import pty
import re
import shutil
import subprocess
import sys
import tempfile

GOLDEN = pathlib.Path(__file__).resolve().parent / "golden"
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
    for offset in (100, 130, both.stat().st_size - 10):
        flip(both, offset)
    blobs_of(copy("no-blob"))[0].unlink()
    (copy("no-marker") / "COMMIT").unlink()
    flip(copy("bad-marker") / "COMMIT", 200)
    (copy("foreign") / "README\x1b[31m").write_text("not ours")
    pathlib.Path("empty").mkdir()
    shutil.copytree("series", "bad-series")
    newest = sorted(pathlib.Path("bad-series").iterdir())[2]
    flip(blobs_of(newest)[0], 130)
    shutil.copytree("series", "missing-blob-series")
    middle = sorted(pathlib.Path("missing-blob-series").iterdir())[1]
    blobs_of(middle)[0].unlink()
    (middle / "KEEP").touch()
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
        for directory in [pathlib.Path("good"), *pathlib.Path("series").iterdir()]:
            for number, path in enumerate(blobs_of(directory)):
                self.blob_numbers[path.stem] = number
        self.failures = 0

    def normalised(self, text):
        for stem, number in self.blob_numbers.items():
            text = text.replace(stem, f"<blob {number}>")
        text = sort_notes(text)
        text = re.sub(r"sealpoint \d+\.\d+\.\d+", "sealpoint <version>", text)
        text = re.sub(r"\d+\.\d\d s\b", "<seconds>", text)
        text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", "<time>", text)
        text = re.sub(r'"(seconds|created_unix_ns)": [^,\n]+', r'"\1": "<time>"', text)
        return re.sub(r"(ckpt-\w+) \d+\.\d+\.\d+ ", r"\1 <version> ", text)

    def run(self, tool, *arguments, **options):
        program = {"verify": self.arguments.verify, "inspect": self.arguments.inspect}[tool]
        return subprocess.run(
            [program, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options
        )

    def case(self, name, tool, *arguments):
        result = self.run(tool, *arguments)
        command = " ".join([f"ckpt-{tool}", *arguments])
        stdout = result.stdout.decode()
        if "--json" in arguments:
            document = json.loads(stdout)
            if "blobs" in document:
                document["blobs"].sort(key=lambda blob: blob["bytes"])
            stdout = json.dumps(document, indent=2) + "\n"
        stdout = self.normalised(stdout)
        actual = f"$ {command}\n{stdout}exit status {result.returncode}\n"
        path = GOLDEN / f"{name}.txt"
        if self.arguments.update:
            path.write_text(actual)
            return
        expected = path.read_text() if path.exists() else "(no golden file)\n"
        self.expect(name, actual == expected, f"--- expected\n{expected}--- got\n{actual}")

    def expect(self, name, holds, message=""):
        if not holds:
            self.failures += 1
            print(f"FAILED: {name}\n{message}")

    def on_terminal(self, environment):
        """What ckpt-verify writes to a terminal."""
        controller, terminal = pty.openpty()
        environment = {**os.environ, **environment}
        if "NO_COLOR" not in environment or not environment["NO_COLOR"]:
            environment.pop("NO_COLOR", None)
        subprocess.run(
            [self.arguments.verify, "good"], stdout=terminal, stderr=terminal, env=environment
        )
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
    run.case("verify-empty", "verify", "empty")
    run.case("verify-missing", "verify", "missing")
    # 1 before 5 before 4 before 3 before 2.
    run.case("verify-several", "verify", "no-marker", "missing", "no-blob", "bad-chunk", "good")
    run.case("verify-incomplete-first", "verify", "no-marker", "missing", "no-blob", "good")
    run.case("verify-unreadable-first", "verify", "no-marker", "missing", "good")
    run.case("verify-uncommitted-first", "verify", "no-marker", "good")
    run.case("verify-series", "verify", "--series", "series")
    run.case("verify-series-bad", "verify", "--series", "bad-series")
    run.case("verify-series-uncommitted", "verify", "--series", "uncommitted-series")
    run.case("verify-series-empty", "verify", "--series", "empty")
    run.case("verify-version", "verify", "--version")
    run.case("verify-help", "verify", "--help")
    run.case("inspect-good", "inspect", "good")
    run.case("inspect-good-depth", "inspect", "--depth", "1", "good")
    run.case("inspect-good-json", "inspect", "--json", "good")
    run.case("inspect-tensor", "inspect", "--tensor", "embedding.weight", "good")
    run.case("inspect-tensor-json", "inspect", "--tensor", "embedding.weight", "--json", "good")
    run.case("inspect-tensor-missing", "inspect", "--tensor", "nothing", "good")
    run.case("inspect-no-blob", "inspect", "no-blob")
    run.case("inspect-no-marker", "inspect", "no-marker")
    run.case("inspect-bad-marker", "inspect", "bad-marker")
    run.case("inspect-foreign", "inspect", "--depth", "1", "foreign")
    run.case("inspect-series", "inspect", "series")
    run.case("inspect-series-bad", "inspect", "missing-blob-series")
    run.case("inspect-series-json", "inspect", "--json", "series")
    run.case("inspect-empty", "inspect", "empty")
    run.case("inspect-missing", "inspect", "missing")
    run.case("inspect-plan", "inspect", "--plan", "data=2,tensor=2", "meshed")
    run.case("inspect-plan-other", "inspect", "--plan", "data=3", "meshed")
    run.case("inspect-plan-json", "inspect", "--plan", "tensor=2", "--json", "meshed")
    run.case("inspect-plan-place", "inspect", "--plan", "tensor=4,pod=2",
             "--place", "*=shard(dim 0, tensor)", "--place", "moment.*=shard_flat(tensor x pod)",
             "--place", "*.bias=hold_here(tensor)", "meshed")
    run.case("inspect-plan-whole", "inspect", "--plan", "data=2", "good")
    run.case("inspect-plan-no-blob", "inspect", "--plan", "data=2", "no-blob")
    run.case("inspect-plan-no-marker", "inspect", "--plan", "data=2", "no-marker")
    run.case("inspect-plan-series", "inspect", "--plan", "data=2", "series")
    run.case("inspect-version", "inspect", "--version")
    run.case("inspect-help", "inspect", "--help")


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
    (["data=2", "--place", "*=cut(dim 0, data)"], "the rules are replicate"),
    (["data=2", "--place", "*=shard(dim 0, model)"], "no axis model"),
    (["data=2", "--place", "layers.*=replicate(data)"], "no tensor matches the pattern"),
    (["data=2", "--place", "*=shard(dim 2, data)"], "tensor layer.0.weight"),
    (["data=2", "--place", "*=shard(dim 0, data), replicate(data)"], "is named twice"),
)


def check_bad_plans(run):
    for arguments, message in BAD_PLANS:
        result = run.run("inspect", "meshed", "--plan", *arguments)
        said = result.stderr.decode()
        run.expect(f"plan {arguments}", result.returncode == 64 and message in said, str(result))
    run.expect("--place alone", run.run("inspect", "good", "--place", "a=pad(b)").returncode == 64)


def check_plan_reads_no_payload(run):
    plans = [
        run.run("inspect", "--plan", "data=2", name).stdout.decode().replace(name, "")
        for name in ("good", "bad-chunk")
    ]
    run.expect("plan of damaged payload", "together" in plans[0] and plans[0] == plans[1], plans[1])


def check_plan_is_that_of_a_load(run):
    for mesh in ("data=2,tensor=2", "data=3,tensor=1", "tensor=4,data=1", "tensor=3,data=5"):
        plan = json.loads(run.run("inspect", "--json", "--plan", mesh, "meshed").stdout)
        load = subprocess.run([run.arguments.plan_load, "meshed", mesh], stdout=subprocess.PIPE, check=True)
        keys = ("bytes_wanted", "bytes_read", "files", "requests")
        said = [[rank[key] for key in keys] for rank in plan["ranks"]]
        *ranks, together = ([int(word) for word in line.split()] for line in load.stdout.splitlines())
        run.expect(f"plan {mesh}", said == ranks, f"{said} but {ranks}")
        run.expect(f"plan {mesh} together", [plan["together"]["bytes_read"]] == together, str(plan))


def run_checks(run):
    check_plan_is_that_of_a_load(run)
    check_bad_plans(run)
    check_plan_reads_no_payload(run)
    for tool, arguments in (
        ("verify", []),
        ("verify", ["--level", "deep", "good"]),
        ("verify", ["-j", "0", "good"]),
        ("verify", ["--nonsense"]),
        ("inspect", []),
        ("inspect", ["good", "good"]),
    ):
        result = run.run(tool, *arguments)
        run.expect(f"usage {arguments}", result.returncode == 64 and result.stderr, str(result))
    for line in run.run("inspect", "good").stdout.decode().splitlines():
        run.expect("80 columns", len(line) <= 80, line)
    run.expect("colour", "\x1b[32mvalid\x1b[0m" in run.on_terminal({"NO_COLOR": ""}))
    run.expect("no colour", "\x1b[3" not in run.on_terminal({"NO_COLOR": "1"}))


def main():
    parser = argparse.ArgumentParser()
    for name in ("verify", "inspect", "generator", "plan-load"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--update", action="store_true", help="write the golden files")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        subprocess.run([arguments.generator, directory], check=True)
        os.chdir(directory)
        make_damaged()
        run = Runner(arguments)
        run_cases(run)
        run_checks(run)
        os.chdir("/")
    print(f"{run.failures} failures")
    return 1 if run.failures else 0


if __name__ == "__main__":
    sys.exit(main())
