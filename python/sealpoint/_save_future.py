# SPDX-License-Identifier: Apache-2.0
"""A save in the background, as a future."""

from __future__ import annotations

import atexit
import concurrent.futures
import logging
import os
import threading
import weakref
from collections.abc import Callable
from typing import Any

from sealpoint import _sealpoint
from sealpoint._errors import CancelledError, InvalidArgumentError

_log = logging.getLogger("sealpoint")


class SaveFuture(concurrent.futures.Future[_sealpoint.CommitInfo]):
    """A save that goes on in the background, and ends by itself.

    ``result()`` waits for it, ``done()`` looks, ``add_done_callback()`` calls back on a thread of this object. All
    ranks have the same outcome, but not at the same moment. A failed save is not a reason to stop a training.
    A process that ends normally waits for it. A failure that nobody asked about is logged ("sealpoint", as an error) when
    the object goes, or the process ends. Not usable in a forked child (InvalidArgumentError).
    """

    def __init__(
        self,
        pending: _sealpoint.PendingSave,
        saver: _sealpoint.Saver,
        text: str,
        on_end: Callable[[BaseException | None], None],
    ) -> None:
        """``text``: which save it is, in messages. ``on_end``: called with its error, before the future has it."""
        super().__init__()
        self.set_running_or_notify_cancel()
        self._pending: _sealpoint.PendingSave | None = pending
        self._saver: _sealpoint.Saver | None = saver  # which gives up what is pending when it goes
        self._text, self._on_end, self._pid = text, on_end, os.getpid()
        self._is_heard = False
        _unheard.add(self)
        # Not a daemon: the interpreter waits for it at its end, and so for the save.
        threading.Thread(target=self._watch, name="sealpoint-save", daemon=False).start()

    def _watch(self) -> None:
        pending = self._pending
        assert pending is not None
        try:
            while not pending.wait_for(1.0):
                pass
            info = pending.result()
        except BaseException as error:
            self._on_end(error)
            self._pending = self._saver = None
            self.set_exception(error)
        else:
            self._on_end(None)
            self._pending = self._saver = None
            self.set_result(info)

    def _check_process(self) -> None:
        if os.getpid() != self._pid:
            raise InvalidArgumentError(f"the save belongs to process {self._pid}, of which this one is a forked child")

    def result(self, timeout: float | None = None) -> _sealpoint.CommitInfo:
        self._check_process()
        try:
            return super().result(timeout)
        finally:
            self._is_heard = self._is_heard or super().done()

    def exception(self, timeout: float | None = None) -> BaseException | None:
        self._check_process()
        error = super().exception(timeout)
        self._is_heard = True
        return error

    def done(self) -> bool:
        self._check_process()
        return super().done()

    def running(self) -> bool:
        self._check_process()
        return super().running()

    def add_done_callback(self, fn: Callable[[concurrent.futures.Future[_sealpoint.CommitInfo]], Any]) -> None:
        self._check_process()
        super().add_done_callback(fn)

    def cancel(self) -> bool:
        """Asks for the save to be given up by all ranks, if it is not too late; ``result()`` says how it ended."""
        self._check_process()
        pending = self._pending
        if pending is None:
            return False
        pending.cancel()
        return True

    def cancelled(self) -> bool:
        return self.done() and isinstance(super().exception(), CancelledError)

    def _say_unheard(self) -> None:
        if self._is_heard or os.getpid() != self._pid or not super().done():
            return
        self._is_heard = True
        error = super().exception()
        if error is not None and not isinstance(error, CancelledError):
            _log.error("%s failed, and nobody asked: %s", self._text, error)

    def __del__(self) -> None:
        if hasattr(self, "_is_heard"):
            self._say_unheard()


_unheard: weakref.WeakSet[SaveFuture] = weakref.WeakSet()


@atexit.register
def _say_all_unheard() -> None:
    """The interpreter waited for the threads of all of them before."""
    for future in list(_unheard):
        future._say_unheard()
