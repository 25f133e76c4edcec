# SPDX-License-Identifier: Apache-2.0
"""Save schedule of a training loop: by steps, by time, and on termination."""

from __future__ import annotations

import datetime
import os
import re
import signal
import threading
import time
from types import FrameType
from typing import Any, NamedTuple

_UNITS = {"s": 1, "sec": 1, "min": 60, "m": 60, "h": 3600, "d": 86400}
_PERIOD = re.compile(rf"(\d+(?:\.\d+)?)\s*({'|'.join(_UNITS)})")
# Approximate interval in seconds between checks of the clock and of signals. If the save period is short, the interval is a
# fraction of the period.
_LOOK_SECONDS = 1.0
_LOOKS_PER_PERIOD = 10
# Exit status of a process ended by SIGTERM, as in a shell.
EXIT_STATUS = 128 + int(signal.SIGTERM)


def period_of(every: Any) -> float | None:
    """Parses text such as "10min", or a timedelta, into seconds; None for any other value."""
    if isinstance(every, datetime.timedelta):
        return every.total_seconds() if every.total_seconds() > 0 else None
    match = _PERIOD.fullmatch(every) if isinstance(every, str) else None
    seconds = float(match[1]) * _UNITS[match[2]] if match else 0.0
    return seconds if seconds > 0 else None


class Look(NamedTuple):
    """The data that each rank sends when the ranks check whether to save. Only the time that rank 0 sends is used."""

    is_told: bool  # received SIGTERM
    is_due: bool
    steps: int  # until the next check


class Clock:
    """Measures, on one rank, the time since the last save and the duration of the steps."""

    def __init__(self, period: float | None) -> None:
        self._period = period
        self._saved = self._looked = time.monotonic()
        self._step: int | None = None  # of the last check

    def note_save(self) -> None:
        self._saved = time.monotonic()

    def look(self, step: int, is_told: bool) -> Look:
        now = time.monotonic()
        count = step - self._step if self._step is not None and step > self._step else 0
        pace = (now - self._looked) / count if count > 0 else 0.0
        self._looked, self._step = now, step
        is_due = self._period is not None and now - self._saved >= self._period
        wait = _LOOK_SECONDS if self._period is None else min(_LOOK_SECONDS, self._period / _LOOKS_PER_PERIOD)
        return Look(is_told, is_due, max(1, int(wait / pace)) if pace > 0 else 1)


class Sigterm:
    """Between ``install`` and ``restore``, records SIGTERM instead of ending the process.

    A second SIGTERM ends the process.

    If the program has its own handler, that handler is kept. In forked children SIGTERM ends the process.
    """

    def __init__(self) -> None:
        self.is_told = False
        self._pid: int | None = None  # the process that installed the handler

    def install(self) -> None:
        is_main = threading.current_thread() is threading.main_thread()
        if self._pid is None and is_main and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            self._pid = os.getpid()
            signal.signal(signal.SIGTERM, self._note)

    def restore(self) -> None:
        if self._pid == os.getpid() and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
        self._pid = None

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.is_told or os.getpid() != self._pid:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGTERM)
        self.is_told = True
