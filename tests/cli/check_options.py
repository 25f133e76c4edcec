#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The options of each tool are the same in --help, its manual page and its completion files.

Also lets bash complete, and man's formatter read the pages if it is there.
"""

import argparse
import pathlib
import re
import shutil
import subprocess
import sys

TOOLS = pathlib.Path(__file__).resolve().parents[2] / "tools"
EXIT_STATUSES = {"0", "1", "2", "3", "4", "5", "64", "74"}


def of_help(text):
    """Options stand at the beginning of a line: "  -j,--threads N"."""
    names = set()
    for line in re.findall(r"^  (-[^\s]+)", text, re.M):
        names.update(line.split(","))
    return names


def of_man_page(text):
    section = text.split(".SH OPTIONS")[1].split(".SH")[0]
    return {
        name.replace("\\-", "-")
        for line in re.findall(r"^\.TP\n(.*)$", section, re.M)
        for name in re.findall(r"(?<![\w-])(?:\\-){1,2}[a-z]+", line)
    }


def of_bash(text):
    words = re.search(r'compgen -W "(-[^"]*)"', text, re.S).group(1)
    return set(words.split())


def of_zsh(text):
    return set(re.findall(r"(?<=['*){,])--?[a-z]+(?=[\[},'])", text))


def of_fish(text):
    return {"--" + name for name in re.findall(r" -l (\w+)", text)} | {
        "-" + name for name in re.findall(r" -s (\w)", text)
    }


def bash_completes(tool, words):
    """What bash offers for the last word."""
    script = f"""
        source {TOOLS}/completion/{tool}.bash
        COMP_WORDS=({' '.join(f"'{word}'" for word in words)}); COMP_CWORD={len(words) - 1}
        {'_' + tool.replace('-', '_')}; printf '%s\\n' "${{COMPREPLY[@]}}" """
    return set(subprocess.run(["bash", "-c", script], stdout=subprocess.PIPE, check=True)
               .stdout.decode().split())


def check_tool(tool, program, expect):
    text = subprocess.run([program, "--help"], stdout=subprocess.PIPE, check=True).stdout.decode()
    options = of_help(text)
    expect(f"{tool} --help", len(options) >= 8, options)
    page = (TOOLS / f"man/{tool}.1").read_text()
    completion = TOOLS / "completion"
    for where, found in (
        ("manual page", of_man_page(page)),
        ("bash completion", of_bash((completion / f"{tool}.bash").read_text())),
        ("zsh completion", of_zsh((completion / f"_{tool}").read_text())),
        ("fish completion", of_fish((completion / f"{tool}.fish").read_text())),
    ):
        expect(f"{tool}: {where}", found == options, sorted(found ^ options))
    statuses = page.split(".SH EXIT STATUS")[1].split(".SH")[0]
    expect(f"{tool}: statuses", set(re.findall(r"^\.B (\d+)$", statuses, re.M)) == EXIT_STATUSES)
    for status in EXIT_STATUSES:
        expect(f"{tool}: {status} in --help", re.search(rf"\b{status} [a-z]", text), text)
    longs = {name for name in options if name.startswith("--")}
    expect(f"{tool}: bash", bash_completes(tool, [tool, "--"]) == longs)
    for formatter in filter(shutil.which, ["groff"]):
        result = subprocess.run(
            [formatter, "-man", "-ww", "-z", str(TOOLS / f"man/{tool}.1")],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )
        expect(f"{tool}: {formatter}", not result.stdout, result.stdout.decode())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--verify", required=True)
    parser.add_argument("--inspect", required=True)
    arguments = parser.parse_args()
    failures = []

    def expect(what, holds, details=""):
        if not holds:
            failures.append(what)
            print(f"FAILED: {what}: {details}")

    check_tool("ckpt-verify", arguments.verify, expect)
    check_tool("ckpt-inspect", arguments.inspect, expect)
    expect("levels", bash_completes("ckpt-verify", ["ckpt-verify", "--level", ""])
           == {"files", "structure", "full"})
    print(f"{len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
