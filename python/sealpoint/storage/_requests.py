# SPDX-License-Identifier: Apache-2.0
"""Concurrent requests of the stores in Python."""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

# Maximum size of one read request, and maximum number of concurrent requests of one call, or of all reads of a store.
READ_BYTES = 8 << 20
REQUESTS_MAX = 32


def call_each(calls: Sequence[Callable[[], Any]]) -> list[Any]:
    """Makes the calls on new threads and waits for all calls. If calls failed, raises the error of the first failed call.

    Does not use a ThreadPoolExecutor, because executors refuse new work at interpreter exit, when background saves may still be
    running.
    """
    rest = deque(enumerate(calls))
    results: dict[int, Any] = {}
    errors: dict[int, BaseException] = {}

    def work() -> None:
        with contextlib.suppress(IndexError):
            while True:
                number, call = rest.popleft()
                try:
                    results[number] = call()
                except BaseException as error:
                    errors[number] = error

    threads = [threading.Thread(target=work, name="sealpoint-requests", daemon=True) for _ in calls[:REQUESTS_MAX]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[min(errors)]
    return [results[number] for number in range(len(calls))]


def fill(read: Callable[[int, memoryview], None], ranges: Sequence[tuple[int, memoryview]]) -> None:
    """Fills the buffers of ``ObjectStore.get_ranges`` by concurrent calls ``read(offset, memory)`` of at most READ_BYTES."""
    pieces = [
        (offset + at, memory[at : at + READ_BYTES]) for offset, memory in ranges for at in range(0, len(memory), READ_BYTES)
    ]
    try:
        if len(pieces) == 1:
            read(*pieces[0])
        else:
            call_each([partial(read, *piece) for piece in pieces])
    finally:
        for _, memory in pieces:
            memory.release()
