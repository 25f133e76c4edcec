# SPDX-License-Identifier: Apache-2.0
"""Shared parts of the Python commands. Arguments, output and exit status are as in the native program (tools/common)."""

from __future__ import annotations

import argparse
import contextlib
import errno
import io
import json
import os
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from sealpoint._errors import Error
from sealpoint._sealpoint import json_version, printable

# Exit status of a conversion that completed, but skipped items that may contain state.
LEFT_OUT = 6
_UNREADABLE, _USAGE, _INTERNAL, _OUTPUT, _INTERRUPTED = 4, 64, 70, 74, 130
_STATUS_OF_CODE = {
    "Corrupt": 1, "Uncommitted": 2, "Unsupported": 3, "LimitExceeded": 3, "Incomplete": 5, "InvalidArgument": _USAGE,
}  # fmt: skip


def status_of(error: Error) -> int:
    return _STATUS_OF_CODE.get(error.code, _UNREADABLE)


class _SignalledError(BaseException):
    """Raised when the program receives a signal that ends it. The argument of the error is the signal number."""


class _OutputError(Exception):
    """Standard output cannot be written."""


def write(text: str) -> None:
    """Writes to standard output. Write all output with this function, because a failed write has its own exit status."""
    try:
        if sys.stdout is None:  # closed before the process started
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        sys.stdout.write(text)
    except OSError as error:
        raise _OutputError(error) from error


def write_line(text: str) -> None:
    write(text + "\n")


def write_document(members: dict[str, Any], status: int) -> int:
    """Writes the JSON document for ``--json`` and returns the exit status."""
    write_line(json.dumps({"version": json_version, **members, "exit_status": status}, indent=2))
    return status


def _wants_json() -> bool:
    return "--json" in sys.argv[1:]


def _error_document(status: int, **members: Any) -> None:
    if _wants_json():
        write_document({"error": {name: value for name, value in members.items() if value is not None}}, status)


def _report(program: str, error: Error) -> int:
    """Reports an error on standard error, or in the JSON document."""
    status = status_of(error)
    if _wants_json():
        names = ("code", "rule", "path", "offset", "tensor", "object", "message")
        _error_document(status, **{name: getattr(error, name) for name in names})
    else:
        write_error(f"{program}: {error}\n")
    return status


def complete(parser: argparse.ArgumentParser, words: Sequence[str]) -> None:
    """Writes the completions of the last word, one per line, or ``:`` if the word is a file name.

    tools/ckpt/complete.cc does the same for the native commands.
    """
    options = {name: action for action in parser._actions for name in action.option_strings}
    before = options.get(words[-2]) if len(words) > 1 else None
    if before is not None and before.nargs != 0:
        write("".join(f"{choice}\t\n" for choice in before.choices or ()) or ":\n")
    elif words[-1].startswith("-"):
        write("".join(f"{name}\t{(action.help or '').partition('. ')[0]}\n" for name, action in options.items()))
    else:
        write(":\n")


def write_error(text: str) -> None:
    """Writes to standard error. Ignores errors of this write."""
    try:
        if sys.stderr is not None:
            sys.stderr.write(text)
            sys.stderr.flush()
    except OSError:
        _give_up(sys.stderr)


class Parser(argparse.ArgumentParser):
    """Reports usage errors in one line, with exit status 64. argparse would use status 2, which here means "uncommitted"."""

    def error(self, message: str) -> NoReturn:
        write_error(f"{self.prog}: {printable(message)}; see --help\n")
        _error_document(_USAGE, code="InvalidArgument", message=message)
        sys.exit(_USAGE)

    def _print_message(self, message: str, file: Any = None) -> None:
        write(message)


def run(work: Callable[[], int], name: str) -> int:
    """Runs ``work`` and returns the exit status of the process.

    ``work`` returns the command's own status; ``name`` is used in messages.
    """
    _open_standard_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # the terminal may not support every character
    try:
        return _finish(work, f"ckpt {name}")
    except _OutputError as failed:
        error = failed.args[0]
        _give_up(sys.stdout)
        if isinstance(error, BrokenPipeError):  # the reader closed the pipe early, as `head` does
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGPIPE)
        write_error(f"ckpt: standard output: {error.strerror} (errno {error.errno})\n")
        return _OUTPUT


def end_by_signals() -> None:
    """Makes SIGTERM and SIGHUP behave like Ctrl-C: partial output is removed, and the exit status is 128 plus the signal number."""

    def end(number: int, frame: object) -> None:
        for other in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(other, signal.SIG_IGN)  # a second signal must not interrupt the removal
        raise _SignalledError(number)

    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:  # nohup ignores SIGHUP
            signal.signal(number, end)


def _finish(work: Callable[[], int], program: str) -> int:
    try:
        return work()
    except Error as error:
        return _report(program, error)
    except KeyboardInterrupt:
        write_error(f"{program}: interrupted\n")
        return _INTERRUPTED
    except _SignalledError as ended:
        write_error(f"{program}: ended by {signal.Signals(ended.args[0]).name}\n")
        return 128 + int(ended.args[0])
    except _OutputError:
        raise
    except Exception:  # Python would exit with status 1, which means "corrupt" here
        write_error(traceback.format_exc() + f"{program}: this is a bug; the checkpoint was not examined\n")
        return _INTERNAL
    finally:
        flush()


def flush() -> None:
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as error:
        raise _OutputError(error) from error


def _open_standard_streams() -> None:
    """Replaces closed standard streams, so that no checkpoint file gets the descriptor of a standard stream."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def _give_up(stream: Any) -> None:
    """Discards buffered output. Otherwise, the interpreter would try to write this output again at exit, and fail."""
    if stream is None:
        return
    with contextlib.suppress(OSError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
