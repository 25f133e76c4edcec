# SPDX-License-Identifier: Apache-2.0
"""The command ``ckpt`` (alias ``sealpoint``). It combines the native program with the commands written in Python."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable

from sealpoint import _paths, _sealpoint
from sealpoint._command import Parser, complete, run
from sealpoint._errors import Error

# (function that creates the parser of a command, function that runs the command).
Command = tuple[Callable[[], Parser], Callable[[Parser, list[str]], int]]


def _command(name: str) -> Command:
    if name == "bench":
        from sealpoint.bench import _command as bench

        return bench.make_parser, bench.run_bench
    from sealpoint.interop import _command as interop

    return interop.make_parser, interop.run_convert


def _run_natively(words: list[str]) -> int | None:
    """Runs the native program and returns its exit status, or None if the words name a Python command."""
    for word in words:
        with contextlib.suppress(Error):  # the native program itself reports an unknown store
            _paths.resolve(word, "PATH")
    return _sealpoint.run_command([os.fsencode(word) for word in words])


def _run_here(words: list[str]) -> int:
    completes = words[0] == "__complete"
    make_parser, run_command = _command(words[completes])
    parser = make_parser()
    if completes:
        complete(parser, words[2:])
        return 0
    return run_command(parser, words[1:])


def main() -> int:
    """Runs the command line and returns its exit status."""
    words = sys.argv[1:]
    status = _run_natively(words)
    return run(lambda: _run_here(words), words[0]) if status is None else status


if __name__ == "__main__":
    sys.exit(main())
