# SPDX-License-Identifier: Apache-2.0
"""The command ``sealpoint promote``: what an ended training left on local disks goes to its final place."""

from __future__ import annotations

import argparse
import json
import os
from typing import Any

from sealpoint import _sealpoint
from sealpoint._command import (
    STATUS_OF_VERDICT,
    Parser,
    end_by_signals,
    status_of,
    threads_of,
    write_error,
    write_line,
)
from sealpoint._errors import Error, InvalidArgumentError, NotFoundError
from sealpoint._sealpoint import printable
from sealpoint._series import Series
from sealpoint._verify import verify

# The exit status of several checkpoints is the first of these that one of them has.
_STATUSES = (1, 5, 4, 3, 2)
_WAIT_DEFAULT_SECONDS = 600.0
_MEMORY_PER_THREAD_BYTES = 8 << 20


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < 1e9:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds, expected more than 0 and less than 1e9")
    return seconds


def _place_of(local: str, final: str, is_adopted: bool) -> str:
    """Where the copies of this series are. Errors: InvalidArgumentError (the two places overlap; there are copies, and they are
    not known to be of this series)."""
    folder, series, record = _sealpoint.find_staged_copies(local, final)
    if is_adopted:
        return local
    if record == series:
        return folder
    if Series(local).list():
        raise InvalidArgumentError(
            f"the checkpoints here are not known to be copies of {series}: they have no record of it; if they are, give --adopt",
            path=local,
        )
    raise NotFoundError(
        f"there are no copies of {series}; of a series that was moved, give the folder of its copies and --adopt", path=local
    )


def _candidates(local: Series, final: Series) -> list[tuple[_sealpoint.SeriesEntry, str]]:
    """What is on the local disk, newest first, and what is to become of it. An older one than the newest in the final place
    may have been pruned there."""
    there = final.list()
    unread = next((entry.problem for entry in there if entry.verdict == "unreadable"), None)
    if unread is not None:
        raise unread
    committed = {entry.attempt for entry in there if entry.verdict == "committed"}
    newest = max((entry.sequence for entry in there if entry.verdict == "committed"), default=0)

    def outcome(entry: _sealpoint.SeriesEntry) -> str:
        if entry.verdict != "committed":
            return entry.verdict
        if entry.attempt in committed:
            return "there"
        return "promote" if entry.sequence > newest else "older"

    return [(entry, outcome(entry)) for entry in local.list()]


def _promote(entry: _sealpoint.SeriesEntry, final: str, arguments: argparse.Namespace) -> dict[str, Any]:
    if arguments.dry_run:
        return {"outcome": "whole" if verify(entry.path, "files").verdict == "committed" else "part"}
    target = os.path.join(final, entry.name)
    try:
        blobs, size, found, was_committed = _sealpoint.promote(
            entry.path,
            target,
            bytes_here=entry.size_bytes,
            threads=arguments.threads,
            memory_budget_bytes=arguments.memory or arguments.threads * _MEMORY_PER_THREAD_BYTES,
            deadline=arguments.wait,
            progress=not arguments.json,
        )
    except Error as error:
        status = STATUS_OF_VERDICT["incomplete"] if error.code == "Timeout" else status_of(error)
        return {"outcome": "failed", "exit_status": status, "error": str(error)}
    copied = {"blobs_copied": blobs, "bytes_copied": size, "blobs_found": found}
    return {"outcome": "there" if was_committed else "promoted", **copied}


def _line(one: dict[str, Any]) -> str:
    said = {
        "promoted": f"promoted, {one.get('bytes_copied', 0):,} bytes copied",
        "whole": "is whole here, would be promoted",
        "part": "a part is here, would be promoted together with those of other nodes",
        "there": "is in the final place",
        "older": "older than the newest in the final place, not promoted",
    }
    return f"{printable(one['name'])}: {said.get(one['outcome'], one['outcome'])}"


def run_promote(words: list[str]) -> int:
    parser = Parser(
        prog="sealpoint promote",
        description="Copies the checkpoints that an ended training left on a local disk to the series they were to go to: "
        "those that are newer than all there. Each byte is verified on the way, and what is there already is not copied "
        "again. With several nodes run it on all of them at once: whoever sees the blobs of all nodes in the final place "
        "commits. The local copies stay; the next training that resumes removes them.",
        epilog="Exit status: 0 done, or nothing to do; 1 corrupt; 2 uncommitted; 3 unsupported; 4 any other error; 5 blobs "
        "of another node did not come: what was copied stays, and the next call goes on.",
    )
    parser.add_argument("local", metavar="LOCAL", help="the local directory, as `staged` of the training")
    parser.add_argument(
        "--adopt", action="store_true",
        help="LOCAL itself holds the checkpoints: they have no record of their series, or it was moved since",
    )
    parser.add_argument("final", metavar="FINAL", help="the series: a directory or a URL")
    parser.add_argument("--dry-run", action="store_true", help="say what would be done")
    parser.add_argument(
        "--wait", type=_seconds, default=_WAIT_DEFAULT_SECONDS, metavar="S", help="for other nodes, each (default: 600)"
    )
    parser.add_argument("-j", "--threads", type=threads_of, default=2, metavar="N", help="that copy (default: 2)")
    parser.add_argument(
        "--memory", type=int, default=0, metavar="BYTES", help="for payload, of all threads (default: 8 MiB for each)"
    )
    parser.add_argument("--json", action="store_true", help="the report as JSON")
    arguments = parser.parse_args(words)
    end_by_signals()
    final = Series(arguments.final)
    local = Series(_place_of(arguments.local, final.path, arguments.adopt))
    if not local.list():
        raise NotFoundError("there is no checkpoint, expected the local directory of a training", path=local.path)
    done: list[dict[str, Any]] = []
    for entry, outcome in _candidates(local, final):
        one = {"name": entry.name, "step": entry.step, "sequence": entry.sequence, "outcome": outcome}
        if outcome == "promote":
            one |= _promote(entry, final.path, arguments)
        elif outcome in STATUS_OF_VERDICT and outcome != "uncommitted":
            one |= {"exit_status": STATUS_OF_VERDICT[outcome], "error": str(entry.problem)}
        done.append(one)
        if not arguments.json:
            write_line(_line(one))
            if "error" in one:
                write_error(f"{one['error']}\n")
    statuses = {one.get("exit_status", 0) for one in done}
    status = next((one for one in _STATUSES if one in statuses), 0)
    if arguments.json:
        write_line(json.dumps({"local": local.path, "final": final.path, "checkpoints": done, "exit_status": status}))
    return status
