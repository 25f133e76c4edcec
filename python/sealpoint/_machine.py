# SPDX-License-Identifier: Apache-2.0
"""The memory that is available to this process on this machine, and the number of ranks that share it."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Iterator

# Environment variables with the number of ranks on this host. They are set by torchrun, Open MPI, MPICH and its
# derivatives, and Slurm. Slurm's value may be "8(x2)", which means 8 ranks on each of 2 hosts.
# lib/pipeline/load_threads.cc has the equivalents for processors.
_LOCAL_SIZES = ("LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "SLURM_STEP_TASKS_PER_NODE",
                "SLURM_NTASKS_PER_NODE")  # fmt: skip


def ranks_here(hosts: list[bytes], host: bytes, world_size: int) -> int:
    """Estimates how many of the ``world_size`` ranks of the job run on this machine.

    ``hosts`` lists the hosts of some ranks. If these ranks are distributed over the hosts as all ranks are, the result is not too
    small. ``host`` is the host of this rank.
    """
    counted = -(-hosts.count(host) * world_size // len(hosts))
    told = next((count for name in _LOCAL_SIZES if (count := _count_of(os.environ.get(name, ""))) > 0), None)
    # A nested launcher may have started more ranks than the outer launcher reports.
    return counted if told is None else max(told, hosts.count(host))


def _count_of(text: str) -> int:
    digits = text.split("(", 1)[0].split(",", 1)[0]
    return int(digits) if digits.isascii() and digits.isdigit() else 0


def memory_bytes(proc: str = "/proc/self") -> int:
    """Returns the memory in bytes that is available to this process.

    This is the memory of the machine, or the limit of a control group if that limit is lower.
    """
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([physical, *_limits(pathlib.Path(proc))])


def _limits(proc: pathlib.Path) -> Iterator[int]:
    try:
        groups = dict(_groups(proc))
        mounts = (proc / "mountinfo").read_text(errors="surrogateescape").splitlines()
    except OSError:
        return
    for mount in mounts:
        before, _, after = mount.partition(" - ")
        root, at = (_unescaped(item) for item in before.split()[3:5])
        kind, _, options = after.split()[:3]
        if kind == "cgroup2" and "" in groups:
            yield from _limits_of(pathlib.Path(at), root, groups[""], "memory.max")
        elif kind == "cgroup" and "memory" in options.split(",") and "memory" in groups:
            yield from _limits_of(pathlib.Path(at), root, groups["memory"], "memory.limit_in_bytes")


def _groups(proc: pathlib.Path) -> Iterator[tuple[str, str]]:
    """Returns this process's control group for each controller. The key "" stands for all controllers of cgroup version 2."""
    for line in (proc / "cgroup").read_text(errors="surrogateescape").splitlines():
        _, controllers, path = line.split(":", 2)
        yield from ((controller, path) for controller in controllers.split(","))


def _limits_of(mount: pathlib.Path, root: str, group: str, name: str) -> Iterator[int]:
    """Returns the limits of a control group and of its mounted ancestors."""
    below = os.path.relpath(group, root)
    here = mount if below.startswith("..") else mount / below  # a group outside the mount is not visible
    for directory in (here, *here.parents):
        try:
            yield int((directory / name).read_text())
        except (OSError, ValueError):  # the root has no limit; a limit may be "max"
            pass
        if directory == mount:
            return


def _unescaped(path: str) -> str:
    """Decodes a path from the file mountinfo, which writes a space as \\040."""
    for code, char in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        path = path.replace(code, char)
    return path
