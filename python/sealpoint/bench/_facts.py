# SPDX-License-Identifier: Apache-2.0
"""Conditions of the measurements: machine, file system, versions and page cache."""

from __future__ import annotations

import datetime
import os
import platform
import shlex
from typing import Any

import sealpoint
from sealpoint.bench._measure import Options
from sealpoint.bench._peers import INFOS, version_of
from sealpoint.bench._place import Place, lines_of


def memory_bytes(which: str) -> int | None:
    """Returns a value of /proc/meminfo in bytes."""
    return next((1024 * int(line.split()[1]) for line in lines_of("/proc/meminfo") if line.startswith(f"{which}:")), None)


def cache_words(place: Place) -> str:
    if place.is_url:
        return "an object store: no page cache of this machine"
    if place.is_memory:
        return f"{place.file_system} keeps files in memory, so that no load is cold"
    return ("warm: all files are read once before a load; cold: all are synced, and posix_fadvise(POSIX_FADV_DONTNEED) drops "
            "them. Caches of a server or of the device itself stay as they are")  # fmt: skip


def facts_of(words: list[str], options: Options, place: Place, gpus: list[str], seconds: float) -> dict[str, Any]:
    """Returns the conditions shown in the report."""
    packages = ("sealpoint", "torch", "safetensors", "numpy")
    versions = {name: version for name in packages if (version := version_of(name)) is not None}
    return {
        "sealpoint": sealpoint.__version__,
        "command": shlex.join(["sealpoint", "bench", *words]),
        "created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "seconds": round(seconds, 1),
        "path": place.path,
        "folder": place.folder,
        "file_system": place.file_system,
        "page_cache": cache_words(place),
        "versions": {"python": platform.python_version(), **versions, "sealpoint": sealpoint.__version__},
        "machine": {
            "processor": _processor(),
            "processors": len(os.sched_getaffinity(0)),
            "memory_bytes": memory_bytes("MemTotal"),
            "kernel": f"{platform.system()} {platform.release()}",
            "gpus": gpus,
            "load_average": round(os.getloadavg()[0], 1),
        },
        "options": {
            "size_bytes": options.size_bytes, "minutes": options.minutes, "ranks": options.ranks,
            "other_ranks": options.other_ranks if options.side == "torch" else None, "rounds": options.rounds,
            "small": options.small, "flips": options.flips, "kills": options.kills, "states": options.side,
        },
        "peers": {name: {"title": INFOS[name].title, "options": INFOS[name].options[options.side]} for name in options.peers},
    }  # fmt: skip


def _processor() -> str:
    found = next((line.partition(":")[2].strip() for line in lines_of("/proc/cpuinfo") if line.startswith("model name")), "")
    return found or platform.machine()
