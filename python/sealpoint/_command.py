# SPDX-License-Identifier: Apache-2.0
"""Shared parts of the ``sealpoint`` sub-commands: arguments, output, exit status."""

from __future__ import annotations

import argparse
import contextlib
import errno
import io
import os
import signal
import sys
import traceback
from collections.abc import Callable
from typing import Any, NoReturn

from sealpoint._arguments import THREADS_MAX
from sealpoint._errors import Error
from sealpoint._sealpoint import printable

# The same statuses as ckpt-verify.
STATUS_OF_VERDICT = {"committed": 0, "corrupt": 1, "uncommitted": 2, "unsupported": 3, "unreadable": 4, "incomplete": 5}
# Exit status of a conversion that completed but skipped possible state.
LEFT_OUT = 6
_UNREADABLE, _USAGE, _INTERNAL, _OUTPUT, _INTERRUPTED = 4, 64, 70, 74, 130
_STATUS_OF_CODE = {"Corrupt": 1, "Uncommitted": 2, "Unsupported": 3, "LimitExceeded": 3, "Incomplete": 5}


def status_of(error: Error) -> int:
    return _STATUS_OF_CODE.get(error.code, _UNREADABLE)


def threads_of(text: str) -> int:
    """Parses a thread count; for ``type=`` of an argument."""
    if not text.isdecimal() or not 1 <= int(text) <= THREADS_MAX:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of threads, expected 1 to {THREADS_MAX}")
    return int(text)


class _SignalledError(BaseException):
    """A signal that ends the program, with its number."""


class _OutputError(Exception):
    """Standard output cannot be written."""


def write(text: str) -> None:
    """Writes to standard output. All output goes through here, so that a failed write has its own exit status."""
    try:
        if sys.stdout is None:  # closed before the process started
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        sys.stdout.write(text)
    except OSError as error:
        raise _OutputError(error) from error


def write_line(text: str) -> None:
    write(text + "\n")


def write_error(text: str) -> None:
    """Writes to standard error; errors of the write itself are ignored."""
    try:
        if sys.stderr is not None:
            sys.stderr.write(text)
            sys.stderr.flush()
    except OSError:
        _give_up(sys.stderr)


class Parser(argparse.ArgumentParser):
    """Reports wrong usage in one line with status 64, because 2 means uncommitted."""

    def error(self, message: str) -> NoReturn:
        write_error(f"{self.prog}: {printable(message)}; see {self.prog} --help\n")
        sys.exit(_USAGE)

    def _print_message(self, message: str, file: Any = None) -> None:
        write(message)


def run(work: Callable[[], int]) -> int:
    """Runs the body of a command and yields the exit status of the process."""
    _open_standard_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # the terminal may not support every character
    try:
        return _finish(work)
    except _OutputError as failed:
        error = failed.args[0]
        _give_up(sys.stdout)
        if isinstance(error, BrokenPipeError):  # the reader closed the pipe early, as `head` does
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGPIPE)
        write_error(f"sealpoint: standard output: {error.strerror} (errno {error.errno})\n")
        return _OUTPUT


def end_by_signals() -> None:
    """Makes SIGTERM and SIGHUP behave as Ctrl-C: partial output is removed, and the status is 128 + signal number."""

    def end(number: int, frame: object) -> None:
        for other in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(other, signal.SIG_IGN)  # no second signal interrupts the removal
        raise _SignalledError(number)

    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:  # nohup ignores SIGHUP
            signal.signal(number, end)


def _finish(work: Callable[[], int]) -> int:
    try:
        return work()
    except Error as error:
        write_error(f"{error}\n")
        return status_of(error)
    except KeyboardInterrupt:
        write_error("interrupted\n")
        return _INTERRUPTED
    except _SignalledError as ended:
        write_error(f"ended by {signal.Signals(ended.args[0]).name}\n")
        return 128 + int(ended.args[0])
    except _OutputError:
        raise
    except Exception:  # Python's status 1 would mean corrupt
        write_error(traceback.format_exc() + "sealpoint: this is a bug; nothing is known of the checkpoint\n")
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
    """Replaces closed standard streams, so that no checkpoint file gets their descriptors."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def _give_up(stream: Any) -> None:
    """Discards buffered output, so that the interpreter does not retry the write, and fail, at exit."""
    if stream is None:
        return
    with contextlib.suppress(OSError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
