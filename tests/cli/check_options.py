#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The options of each command are the same in --help and its manual page, and complete in bash.

man's formatter reads the pages, and zsh and fish the files of theirs, if they are there.
"""

import argparse
import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

TOOLS = pathlib.Path(__file__).resolve().parents[2] / "tools/ckpt"
PYTHON = {"bench", "convert"}
EXIT_STATUSES = {"0", "1", "2", "3", "4", "5", "64", "74"}


def of_help(text):
    """Options stand at the beginning of a line: "  -j,--threads N", and of Python "  -j N, --threads N"."""
    lines = re.findall(r"^  (-\S+(?: \S+)*)", text, re.M)
    return {name for line in lines for name in re.findall(r"(?<![\w-])--?[a-z][a-z-]*", line)}


def statuses_of_help(text):
    return set(re.findall(r"\b(\d+)[ ,][A-Za-z]", " ".join(text.split("Exit status:")[1].split())))


def of_man_page(text):
    section = text.split(".SH OPTIONS")[1].split(".SH")[0]
    return {
        name.replace("\\-", "-")
        for line in re.findall(r"^\.TP\n(.*)$", section, re.M)
        for name in re.findall(r"(?<![\w-])(?:\\-){1,2}[a-z]+(?:\\-[a-z]+)*", line)
    }


def bash_completes(folder, words):
    """What bash offers for the last word. The program is found in `folder`."""
    script = f"""
        source {TOOLS}/completion/ckpt.bash
        COMP_WORDS=({' '.join(f"'{word}'" for word in words)}); COMP_CWORD={len(words) - 1}
        _ckpt; printf '%s\\n' "${{COMPREPLY[@]}}" """
    environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
    return set(subprocess.run(["bash", "-c", script], stdout=subprocess.PIPE, env=environment, cwd=TOOLS, check=True)
               .stdout.decode().split())


def check_command(folder, words, expect):
    """`words`: "ckpt ls". `folder` has the program and, as man1, the pages."""
    name = "-".join(words)
    said = subprocess.run([folder / words[0], *words[1:], "--help"], stdout=subprocess.PIPE, check=True).stdout.decode()
    options = of_help(said)
    expect(f"{name} --help", options, said)
    path = TOOLS / f"man/{name}.1"
    page = path.read_text()
    if page.startswith(".so man1/"):
        page = (TOOLS / "man" / page.split("/")[1].strip()).read_text()
    expect(f"{name}: manual page", of_man_page(page) == options, sorted(of_man_page(page) ^ options))
    statuses = page.split(".SH EXIT STATUS")[1].split(".SH")[0]
    expected = statuses_of_help(said) if PYTHON & set(words) else EXIT_STATUSES
    expect(f"{name}: statuses", set(re.findall(r"^\.B (\d+)$", statuses, re.M)) == expected, (statuses, expected))
    for status in EXIT_STATUSES if words != ["ckpt"] and not PYTHON & set(words) else ():
        expect(f"{name}: {status} in --help", re.search(rf"\b{status} [a-z]", said), said)
    found = bash_completes(folder, [*words, "-"])
    expect(f"{name}: bash", found == options, sorted(found ^ options))
    for formatter in filter(shutil.which, ["groff"]):
        result = subprocess.run(
            [formatter, "-man", "-ww", "-z", f"man1/{path.name}"], cwd=folder, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        expect(f"{name}: {formatter}", not result.stdout, result.stdout.decode())


def main():
    with contextlib.ExitStack() as stack:
        return check(stack)


def check(stack):
    parser = argparse.ArgumentParser()
    parser.add_argument("--ckpt", required=True, type=pathlib.Path)
    parser.add_argument("--with-package", action="store_true", help="python3 has the Python package: also its commands")
    arguments = parser.parse_args()
    program = arguments.ckpt
    failures = []

    def expect(what, holds, details=""):
        if not holds:
            failures.append(what)
            print(f"FAILED: {what}: {details}")

    folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
    (folder / "man1").symlink_to(TOOLS / "man")
    (folder / "ckpt").symlink_to(program)
    commands = bash_completes(folder, ["ckpt", ""])
    expect("commands", commands >= {"ls", "verify", *PYTHON}, commands)
    check_command(folder, ["ckpt"], expect)
    for command in sorted(commands - (set() if arguments.with_package else PYTHON)):
        check_command(folder, ["ckpt", command], expect)
    expect("the page ckpt.1", set(re.findall(r"^\.BR ckpt-(\w+) \(1\)$", (TOOLS / "man/ckpt.1").read_text(), re.M))
           == commands)
    expect("levels", bash_completes(folder, ["ckpt", "verify", "--level", ""]) == {"files", "structure", "full"})
    expect("beginning", bash_completes(folder, ["ckpt", "verify", "--le"]) == {"--level"})
    expect("files", bash_completes(folder, ["ckpt", "ls", "completi"]) == {"completion"})
    for shell, name in (("zsh", "_ckpt"), ("fish", "ckpt.fish")):
        if shutil.which(shell):
            expect(shell, subprocess.run([shell, "-n", TOOLS / "completion" / name], check=False).returncode == 0)
    print(f"{len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
