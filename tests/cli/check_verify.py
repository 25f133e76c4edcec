#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a job that verifies again and again relies on: --state, --limit-mb-per-s, and files that checkpoints share."""

import argparse
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time


class Checks:
    def __init__(self, program):
        self.program, self.failures = program, 0

    def expect(self, what, holds, details=""):
        if not holds:
            self.failures += 1
            print(f"FAILED: {what}: {details}")

    def verify(self, *words):
        return subprocess.run([self.program, "verify", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              check=False)

    def json(self, *words):
        done = self.verify("--json", *words)
        document = json.loads(done.stdout)
        self.expect(f"{words}: exit status", done.returncode == document["exit_status"], done)
        return document


def flip(path, offset):
    data = bytearray(path.read_bytes())
    data[offset] ^= 1
    path.write_bytes(data)


def blob_of(path):
    return max(pathlib.Path(path).glob("*.blob"), key=lambda blob: blob.stat().st_size)


def interrupt(checks, number, *words):
    """Begins a verification that takes seconds and ends it by a signal when it has noted something."""
    command = [checks.program, "verify", "--limit-mb-per-s", "0.1", "--state", "state", "-j", "1", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        time.sleep(0.9)
        process.send_signal(number)
        _, said = process.communicate(timeout=20)
    checks.expect(f"{number}", process.returncode == -number and "repeat the command" in said, (process.returncode, said))


def check_interruption(checks):
    size = sum(path.stat().st_size for path in pathlib.Path("long").iterdir())
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        interrupt(checks, number, "long")
        state = pathlib.Path("state").read_text()
        # What it has noted is not believed of a copy; of the same one it is, and damage of all else is found.
        copy = checks.json("--state", "state", "copy")
        checks.expect("a copy", copy["reports"][0]["bytes_known"] == 0 and copy["exit_status"] == 0, copy)
        checks.expect("removed", not pathlib.Path("state").exists(), os.listdir())
        pathlib.Path("state").write_text(state)
        document = checks.json("--state", "state", "long")
        report = document["reports"][0]
        checks.expect("goes on", 0 < report["bytes_known"] < size and report["verdict"] == "committed"
                      and report["bytes_known"] + report["bytes_checked"] == size == report["total_bytes"], document)
        checks.expect("says so", "continues the verification started at 20" in document["state"]["note"], document)
    interrupt(checks, signal.SIGTERM, "long")
    flip(blob_of("long"), blob_of("long").stat().st_size * 3 // 4)
    checks.expect("damage of the rest", checks.verify("--state", "state", "long").returncode == 1)
    checks.expect("of all of it", checks.verify("long").returncode == 1)
    checks.expect("nothing is left", not list(pathlib.Path().glob("state*")), os.listdir())


def check_state_files(checks):
    interrupt(checks, signal.SIGTERM, "copy")
    state = pathlib.Path("state").read_bytes()
    for what, content, status, note in (
        ("damaged", state[:-40] + b"0" + state[-39:], 0, "starts over"), ("cut off", state[:50], 0, "starts over"),
        ("of a later version", state.replace(b"state 1", b"state 2"), 64, "has version 2, expected 1"),
        ("foreign", b"my notes\n", 64, "expected a first line"), ("empty", b"", 64, "expected a first line"),
    ):
        pathlib.Path("state").write_bytes(content)
        done = checks.verify("--state", "state", "copy")
        checks.expect(what, done.returncode == status and note in done.stdout + done.stderr, done)
        left = pathlib.Path("state").read_bytes() if pathlib.Path("state").exists() else None
        checks.expect(f"{what}: left", left == (content if status == 64 else None), left)
    for path, note in (("nowhere/state", "No such file"), ("copy", "not a regular file"), ("/dev/full", "not a regular file")):
        done = checks.verify("--state", path, "copy")
        checks.expect(path, done.returncode == 74 and note in done.stderr and done.stdout == "", done)
        document = checks.json("--state", path, "copy")
        checks.expect(f"{path}: --json", note in document["error"]["message"], document)
    checks.expect("the checkpoint is whole", checks.verify("copy").returncode == 0)
    # Two at once: each is right, whatever it reads again.
    pathlib.Path("state").unlink()
    command = [checks.program, "verify", "--limit-mb-per-s", "0.5", "--state", "state", "copy"]
    both = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for _ in range(2)]
    checks.expect("two at once", [item.wait() for item in both] == [0, 0])


def check_quiet(checks):
    """Cron mails what is printed: nothing only if there is something, and it is good."""
    pathlib.Path("mounted").mkdir()
    done = checks.verify("-q", "--series", "mounted")
    checks.expect("nothing there", done.returncode == 4 and "no checkpoint of the series" in done.stdout, done)
    shutil.copytree("copy", "mounted/step-1")
    done = checks.verify("-q", "--series", "mounted")
    checks.expect("good", (done.returncode, done.stdout, done.stderr) == (0, "", ""), done)


def check_rate(checks):
    begin = time.monotonic()
    checks.json("--limit-mb-per-s", "0.4", "copy", "copy")  # twice the same one: read once
    size = sum(path.stat().st_size for path in pathlib.Path("copy").iterdir())
    seconds = time.monotonic() - begin
    checks.expect("the limit", seconds > 0.97 * size / 400_000, seconds)


def check_shared(checks):
    """Two checkpoints of a series that share their files, and one with a file of its own."""
    first, second = pathlib.Path("shared/a"), pathlib.Path("shared/b")
    shutil.copytree("copy", first)
    shutil.copytree(first, second, copy_function=os.link)
    own = checks.json("copy")["reports"][0]["total_bytes"]
    blobs = sum(path.stat().st_size for path in first.glob("*.blob"))
    for level in ("full", "files"):
        series = checks.json("--level", level, "--series", "shared")["series"][0]
        checks.expect(f"bytes, {level}", (series["total_bytes"], series["distinct_bytes"]) == (2 * own, 2 * own - blobs), series)
    document = checks.json("--series", "shared")
    checks.expect("read once", document["reports"][1]["bytes_checked"] < blobs / 2
                  and document["reports"][1]["shared_bytes"] == blobs, document)
    text = checks.verify("--series", "shared").stdout
    checks.expect("text", " read before, " in text and " distinct\n" in text, text)
    blob = blob_of(first)
    with blob.open("r+b") as file:
        file.seek(blob.stat().st_size // 2)
        byte = file.read(1)[0]
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte ^ 1]))
    reports = checks.json("--series", "shared")["reports"]
    checks.expect("damage of a shared file", sorted(report["violations"][0]["path"] for report in reports)
                  == [f"shared/a/{blob.name}", f"shared/b/{blob.name}"], reports)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ckpt", required=True)
    parser.add_argument("--generator", required=True)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([arguments.generator, folder], check=True)
        os.chdir(folder)
        checks = Checks(arguments.ckpt)
        shutil.copytree("coded", "long")
        shutil.copytree("coded", "copy")
        check_interruption(checks)
        check_state_files(checks)
        check_quiet(checks)
        check_rate(checks)
        check_shared(checks)
        os.chdir("/")
    print(f"{checks.failures} failures")
    return 1 if checks.failures else 0


if __name__ == "__main__":
    sys.exit(main())
