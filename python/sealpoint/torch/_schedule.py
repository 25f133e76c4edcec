# SPDX-License-Identifier: Apache-2.0
"""When a training saves: each so many steps, each so much time, and when its process is told to end."""

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
# Ranks look at the clock, and at signals, at steps that are about so far apart, or a part of the period if that is less.
_LOOK_SECONDS = 1.0
_LOOKS_PER_PERIOD = 10
# The exit status of a process that SIGTERM ended, as a shell has it.
EXIT_STATUS = 128 + int(signal.SIGTERM)


def period_of(every: Any) -> float | None:
    """The seconds of a text such as "10min", or of a timedelta; None: it is neither."""
    if isinstance(every, datetime.timedelta):
        return every.total_seconds() if every.total_seconds() > 0 else None
    match = _PERIOD.fullmatch(every) if isinstance(every, str) else None
    seconds = float(match[1]) * _UNITS[match[2]] if match else 0.0
    return seconds if seconds > 0 else None


class Look(NamedTuple):
    """What a rank tells the others at a step; what rank 0 says of the time counts."""

    is_told: bool  # it had SIGTERM
    is_due: bool
    steps: int  # to the next look


class Clock:
    """The time since the last save, and the pace of the steps. Of one rank."""

    def __init__(self, period: float | None) -> None:
        self._period = period
        self._saved = self._looked = time.monotonic()
        self._step: int | None = None  # of the last look

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
    """Notes SIGTERM instead of ending the process, from ``install`` to ``restore``; a second one ends it.

    A program that has a handler of its own keeps it. Children that were forked end as before.
    """

    def __init__(self) -> None:
        self.is_told = False
        self._pid: int | None = None  # of the process that has the handler

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
