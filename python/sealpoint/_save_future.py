# SPDX-License-Identifier: Apache-2.0
"""The future of a background save."""

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
    """A save that runs in the background, and completes without further calls.

    ``result()`` waits, ``done()`` polls, and ``add_done_callback()`` runs a callback on a thread of this object. The outcome is the
    same on all ranks, but may become known at a different time on each rank. Training can continue after a failed save. At normal
    exit the process waits for the save. If no call has reported the error of a failed save, the error is logged (logger
    "sealpoint", level ERROR). This happens when the object is garbage-collected or the process exits. No method is collective. In a
    forked child all methods raise InvalidArgumentError.
    """

    def __init__(
        self,
        pending: _sealpoint.PendingSave,
        saver: _sealpoint.Saver,
        text: str,
        on_end: Callable[[BaseException | None], None],
    ) -> None:
        """Starts a thread that watches the save.

        Args:
            text: Description of the save for messages.
            on_end: Called with the error, or None, before the future is resolved.
        """
        super().__init__()
        self.set_running_or_notify_cancel()
        self._pending: _sealpoint.PendingSave | None = pending
        self._saver: _sealpoint.Saver | None = saver  # deleting this object cancels pending saves
        self._text, self._on_end, self._pid = text, on_end, os.getpid()
        self._is_observed = False
        _unobserved.add(self)
        # The thread is not a daemon. At exit, the interpreter therefore waits for this thread, and thereby for the save.
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
        """Returns the CommitInfo of the save, or raises the error of the save.

        Waits at most ``timeout`` seconds. None: no timeout.
        """
        self._check_process()
        try:
            return super().result(timeout)
        finally:
            self._is_observed = self._is_observed or super().done()

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Returns the error of the save, or None if it succeeded. Waits at most ``timeout`` seconds. None: no timeout."""
        self._check_process()
        error = super().exception(timeout)
        self._is_observed = True
        return error

    def done(self) -> bool:
        """Returns whether the save has ended."""
        self._check_process()
        return super().done()

    def running(self) -> bool:
        """Returns whether the save has not ended yet."""
        self._check_process()
        return super().running()

    def add_done_callback(self, fn: Callable[[concurrent.futures.Future[_sealpoint.CommitInfo]], Any]) -> None:
        """Calls ``fn`` with this future when the save ends. The call runs on a thread of this object.

        If the save has already ended, ``fn`` is called immediately.
        """
        self._check_process()
        super().add_done_callback(fn)

    def cancel(self) -> bool:
        """Asks all ranks to cancel the save. Returns False if the save has already ended.

        ``result()`` tells whether the save was cancelled.
        """
        self._check_process()
        pending = self._pending
        if pending is None:
            return False
        pending.cancel()
        return True

    def cancelled(self) -> bool:
        """Returns whether the save has ended because it was cancelled."""
        return self.done() and isinstance(super().exception(), CancelledError)

    def _log_unobserved(self) -> None:
        if self._is_observed or os.getpid() != self._pid or not super().done():
            return
        self._is_observed = True
        error = super().exception()
        if error is not None and not isinstance(error, CancelledError):
            _log.error("%s failed, and its result was not requested: %s", self._text, error)

    def __del__(self) -> None:
        if hasattr(self, "_is_observed"):
            self._log_unobserved()


_unobserved: weakref.WeakSet[SaveFuture] = weakref.WeakSet()


@atexit.register
def _say_all_unobserved() -> None:
    """Logs the failures that no call has reported. Runs at exit, after the interpreter has waited for all threads."""
    for future in list(_unobserved):
        future._log_unobserved()
