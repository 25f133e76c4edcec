# SPDX-License-Identifier: Apache-2.0
"""What staging memory is sized by: the limits of control groups, and the ranks of a machine."""

import os

import pytest
from sealpoint import _machine
from sealpoint._ranks import session

PHYSICAL = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
V1_NO_LIMIT = 9223372036854771712


@pytest.fixture
def proc(tmp_path):
    """Makes a folder as /proc/self: the file cgroup, and mounts, each (kind, root, folder, options)."""

    def make(groups, *mounts):
        lines = [f"31 23 0:28 {root} {tmp_path / at} rw - {kind} {kind} {options}" for kind, root, at, options in mounts]
        (tmp_path / "cgroup").write_text(groups)
        (tmp_path / "mountinfo").write_text("23 1 8:1 / / rw,relatime shared:1 - ext4 /dev/root rw\n" + "\n".join(lines))
        return str(tmp_path)

    return make


def limit(folder, name, value):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(f"{value}\n")


@pytest.mark.parametrize("own, above", [("1000", "max"), ("max", "1000"), ("1000", "5000"), ("5000", "1000")])
def test_the_least_limit_of_version_2(proc, tmp_path, own, above):
    limit(tmp_path / "v2/pod/job", "memory.max", own)
    limit(tmp_path / "v2/pod", "memory.max", above)
    limit(tmp_path / "v2/other", "memory.max", 1)
    assert _machine.memory_bytes(proc("0::/pod/job\n", ("cgroup2", "/", "v2", "rw"))) == 1000


@pytest.mark.parametrize("group", ["/docker/x", "/", "/../../elsewhere"])
def test_a_container_sees_its_own_group_at_the_mount(proc, tmp_path, group):
    """With a namespace of its own, or without; what is outside of it has no path."""
    limit(tmp_path / "v2", "memory.max", 1000)
    limit(tmp_path, "memory.max", 1)  # not below the mount
    root = "/docker/x" if group == "/docker/x" else "/"
    assert _machine.memory_bytes(proc(f"0::{group}\n", ("cgroup2", root, "v2", "rw"))) == 1000


def test_version_1(proc, tmp_path):
    limit(tmp_path / "memory/slurm/job", "memory.limit_in_bytes", V1_NO_LIMIT)
    limit(tmp_path / "memory/slurm", "memory.limit_in_bytes", 2000)
    limit(tmp_path / "cpu/slurm/job", "memory.limit_in_bytes", 1)
    groups = "5:cpu,cpuacct:/slurm/job\n4:memory:/slurm/job\n0::/\n"
    mounts = ("cgroup", "/", "cpu", "rw,cpu,cpuacct"), ("cgroup", "/", "memory", "rw,memory"), ("cgroup2", "/", "v2", "rw")
    assert _machine.memory_bytes(proc(groups, *mounts)) == 2000


def test_without_limits_it_is_the_machine(proc, tmp_path):
    assert _machine.memory_bytes(str(tmp_path / "absent")) == PHYSICAL
    assert _machine.memory_bytes(proc("0::/a\n", ("cgroup2", "/", "v2", "rw"))) == PHYSICAL
    limit(tmp_path / "v2/a", "memory.max", PHYSICAL * 2)
    assert _machine.memory_bytes(proc("0::/a\n", ("cgroup2", "/", "v2", "rw"))) == PHYSICAL


def test_the_budget_is_a_quarter_of_it(monkeypatch):
    monkeypatch.setattr(session, "memory_bytes", lambda: 8 << 30)
    assert session.default_budget(8) == (8 << 30) // 4 // 8
    assert session.default_budget(1000) == 64 << 20


@pytest.mark.parametrize("name, text, count", [
    ("LOCAL_WORLD_SIZE", "8", 8), ("OMPI_COMM_WORLD_LOCAL_SIZE", "8", 8), ("MPI_LOCALNRANKS", "8", 8),
    ("SLURM_STEP_TASKS_PER_NODE", "8(x2),4", 8), ("SLURM_NTASKS_PER_NODE", "8(x2)", 8), ("SLURM_NTASKS_PER_NODE", "8,4", 8),
    ("LOCAL_WORLD_SIZE", "x", 3), ("LOCAL_WORLD_SIZE", "", 3), ("LOCAL_WORLD_SIZE", "0", 3),
    ("SLURM_NTASKS_PER_NODE", "1", 2),  # one task, which started the ranks
])  # fmt: skip
def test_ranks_of_the_machine(monkeypatch, name, text, count):
    """Of four ranks, which are on two hosts; else those of a job of six."""
    for size in _machine._LOCAL_SIZES:
        monkeypatch.delenv(size, raising=False)
    hosts = [b"a", b"b", b"b", b"a"]
    assert _machine.ranks_here(hosts, b"a", 6) == 3
    assert _machine.ranks_here(hosts, b"a", 4) == 2
    assert _machine.ranks_here([b"a"], b"a", 512) == 512
    monkeypatch.setenv(name, text)
    assert _machine.ranks_here(hosts, b"a", 6) == count
