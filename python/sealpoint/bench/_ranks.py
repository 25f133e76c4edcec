# SPDX-License-Identifier: Apache-2.0
"""Starts the rank processes, and calls all of them simultaneously."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from multiprocessing.connection import Connection, Pipe, wait
from types import TracebackType
from typing import Any

# Time to wait for the other ranks after one rank has failed. They may wait for the failed rank forever.
_GRACE_SECONDS = 5.0
_CODE = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); " \
        "from sealpoint.bench._worker import serve; serve(int(sys.argv[2]), sys.argv[3])"  # fmt: skip


class RankError(Exception):
    """A rank failed, died or hung. The error names the rank and the reason. All ranks have been ended."""


class Ranks:
    """The rank processes.

    The first call starts them. ``close`` or an error ends them; after an error, the next call starts them again.
    """

    def __init__(self, count: int, side: str) -> None:
        self.count, self._side = count, side
        self._processes: list[tuple[subprocess.Popen[bytes], Connection]] = []

    def __enter__(self) -> Ranks:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def start(self, limit: float) -> None:
        """Starts the ranks if needed. Raises RankError."""
        if self._processes:
            return
        for _ in range(self.count):
            self._start_one()
        if self._side == "torch" and self.count > 1:
            port = self._ask("listen", [{}], limit)[0]
            self._ask("join", [{"rank": rank, "ranks": self.count, "port": port} for rank in range(self.count)], limit)
        else:
            self._ask("begin", [{}] * self.count, limit)

    def call(self, name: str, limit: float, **arguments: Any) -> list[Any]:
        """Returns the answers of all ranks, by rank. Raises RankError."""
        self.start(limit)
        return self._ask(name, [arguments] * self.count, limit)

    def close(self) -> None:
        processes, self._processes = self._processes, []
        for process, connection in processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # kills its forked processes, too
            connection.close()
        for process, _ in processes:
            process.wait()

    def _start_one(self) -> None:
        ours, theirs = Pipe()
        environment = {"GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", **os.environ}
        command = [sys.executable, "-c", _CODE, json.dumps(sys.path), str(theirs.fileno()), self._side]
        # The rank has its own session, so Ctrl-C does not reach it; this process ends the rank.
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   pass_fds=[theirs.fileno()], start_new_session=True, env=environment)  # fmt: skip
        self._processes.append((process, ours))
        theirs.close()

    def _ask(self, name: str, arguments: list[dict[str, Any]], limit: float) -> list[Any]:
        """Calls the first n ranks, where n is the length of ``arguments``."""
        connections = [connection for _, connection in self._processes[: len(arguments)]]
        answers: dict[int, Any] = {}
        why: list[str] = []
        end = time.monotonic() + limit
        for connection, given in zip(connections, arguments, strict=True):
            with contextlib.suppress(OSError):  # the rank died, which is detected below
                connection.send_bytes(json.dumps({"call": name, **given}).encode())
        while len(answers) < len(connections) and (left := end - time.monotonic()) > 0:
            waiting = [item for number, item in enumerate(connections) if number not in answers]
            for ready in wait(waiting, left):
                rank = next(number for number, item in enumerate(connections) if item is ready)
                answers[rank] = answer = self._answer_of(rank)
                if "error" in answer:
                    why.append(answer["error"] if self.count == 1 else f"rank {rank}: {answer['error']}")
                    end = min(end, time.monotonic() + _GRACE_SECONDS)
        if why or len(answers) < len(connections):
            self.close()
            raise RankError(why[0] if why else f"it did not finish within {limit:.0f} s")
        return [answers[rank]["done"] for rank in range(len(connections))]

    def _answer_of(self, rank: int) -> dict[str, Any]:
        process, connection = self._processes[rank]
        try:
            answer: dict[str, Any] = json.loads(connection.recv_bytes())
            return answer
        except (EOFError, OSError):
            return {"error": f"the process ended with {process.wait()}"}
