# SPDX-License-Identifier: Apache-2.0
"""Calls on dedicated threads."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from sealpoint._errors import CommError, Error, TimeoutError

T = TypeVar("T")


class BackgroundCall(Generic[T]):
    """A call on a dedicated thread. Without this thread, a wait in C++ would ignore Ctrl-C and deadlines.

    If the caller stops waiting, the thread does not keep the process alive.
    """

    def __init__(self, call: Callable[[], T]) -> None:
        self._call = call
        self._ended = threading.Event()
        self._result: list[T] = []
        self._error: BaseException | None = None
        threading.Thread(target=self._run, name="sealpoint-background", daemon=True).start()

    def _run(self) -> None:
        try:
            self._result.append(self._call())
        except BaseException as error:
            self._error = error
        self._ended.set()

    def wait(self, seconds: float) -> bool:
        """Waits up to the given time. Returns whether the call has ended."""
        return self._ended.wait(max(0.0, seconds))

    def result(self) -> T:
        """Returns the result. Valid once the call has ended."""
        if self._error is not None:
            raise self._error
        return self._result[0]


def run_with_deadline(call: Callable[[], T], seconds: float, what: str) -> T:
    """Returns the result of call().

    After ``seconds``, raises TimeoutError, which names ``what``. A RuntimeError of the framework becomes a CommError.
    """
    background = BackgroundCall(call)
    if not background.wait(seconds):
        raise TimeoutError(f"{what} did not end within {seconds:.4g} s")
    try:
        return background.result()
    except Error:
        raise
    except RuntimeError as error:  # the host of a store has died
        raise CommError(f"{what}: {' '.join(str(error).split())}") from error
