# SPDX-License-Identifier: Apache-2.0
"""How ranks are connected: in a mesh or a grid, within which limits, and what is said if they cannot be."""

import concurrent.futures
import re
import resource
import time

import pytest

pytest.importorskip("torch", reason="torch is not installed: see scripts/python_env.sh")

import sealpoint  # noqa: E402
import sealpoint.torch as sp  # noqa: E402
import torch.distributed as dist  # noqa: E402
from sealpoint.torch import _links, _rendezvous, _store  # noqa: E402

RANKS = 6  # two rows of three


@pytest.fixture
def together(monkeypatch):
    """Calls a function of rank and communicator on as many threads as there are ranks."""
    store = dist.HashStore()
    for module in (_links, _rendezvous):
        monkeypatch.setattr(module, "own_store", lambda: store)
    monkeypatch.setattr(_links, "MESH_RANKS_MAX", 4)
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")

    def run(function, size=RANKS, deadline=30.0):
        def one(rank):
            links = _links.make_links("g/", rank, size, time.monotonic() + deadline, lambda: None)
            return function(sp.TorchCommunicator.of_links(links, "g/", rank, size, deadline))

        with concurrent.futures.ThreadPoolExecutor(size) as pool:
            return [item.result() for item in [pool.submit(one, rank) for rank in range(size)]]

    return run


@pytest.mark.parametrize("size, columns", [
    (1, 1), (256, 256), (257, 257), (264, 22), (1024, 32), (2816, 64), (4096, 64), (8 * 509, 509), (16384, 128),
])  # fmt: skip
def test_the_shape_of_a_grid(size, columns):
    assert _links._columns_of(size) == columns


@pytest.mark.parametrize("sizes", [lambda a, b: 0, lambda a, b: a + 7 * b, lambda a, b: 50_000 * (a == 4)])
def test_messages_of_a_grid_that_is_no_square(together, sizes):
    def exchange(comm):
        assert type(comm._links) is _links.Grid
        mine = [bytes([comm.rank, to]) * sizes(comm.rank, to) for to in range(RANKS)]
        got = [bytes(item) for item in comm.all_to_all(mine)]
        assert got == [bytes([rank, comm.rank]) * sizes(rank, comm.rank) for rank in range(RANKS)]
        everyone = [bytes([rank]) * sizes(rank, rank) for rank in range(RANKS)]
        assert [bytes(answer) for answer in comm.all_gather(everyone[comm.rank])] == everyone
        for root in range(RANKS):
            found = comm.gather(everyone[comm.rank], root)
            assert (found is None) == (comm.rank != root)
            assert found is None or [bytes(item) for item in found] == everyone
            assert bytes(comm.broadcast(everyone[root] if comm.rank == root else None, root)) == everyone[root]
        assert comm.all_reduce_max([comm.rank, RANKS - comm.rank]) == [RANKS - 1, RANKS]
        comm.barrier()
        return True

    assert all(together(exchange))


def test_a_barrier_of_a_grid_waits_for_all(together):
    def wait(comm):
        if comm.rank == 4:
            time.sleep(0.5)
        before = time.monotonic()
        comm.barrier()
        return before, time.monotonic()

    times = together(wait)
    assert min(after for _, after in times) >= max(before for before, _ in times)


def test_a_time_out_in_a_grid_names_the_rank_that_did_not_come(together):
    """Not those that wait for it in their own row."""
    def wait(comm):
        if comm.rank == 4:
            time.sleep(2)
            return ""
        comm.set_deadline(0.8)
        with pytest.raises((sealpoint.TimeoutError, sealpoint.CommError)) as caught:
            comm.all_gather(b"x")
        return caught.value.message

    texts = together(wait)
    assert any("rank 4 of 6 did not arrive within 0.8 s" in text for text in texts), texts
    assert not any(re.search("rank [01235] of 6 did not", text) for text in texts), texts


def test_ranks_that_cannot_be_connected_are_told_in_time(together, monkeypatch):
    """Not at the end of the call's deadline."""
    monkeypatch.setattr(_links, "CONNECT_SECONDS", 1.0)
    group = _links._group
    monkeypatch.setattr(_links, "_group", lambda name, rank, size, end: group(name, rank, size + 1, end))  # one is not there
    began = time.monotonic()
    with pytest.raises(sealpoint.TimeoutError) as caught:
        together(lambda comm: None, size=2)
    assert time.monotonic() - began < 5
    text = caught.value.message
    assert "2 ranks arrived, but could not connect within 1 s" in text
    assert re.search(r"rank 0 at lo of \S+, rank 1 at lo of \S+; set GLOO_SOCKET_IFNAME to the interface", text), text


def test_a_rank_that_does_not_come_has_the_deadline_of_the_call(together, monkeypatch):
    monkeypatch.setattr(_links, "CONNECT_SECONDS", 0.2)
    with pytest.raises(sealpoint.TimeoutError, match="rank 1 of 2 did not arrive to connect"):
        _links.make_links("g/", 0, 2, time.monotonic() + 1.0, lambda: None)
    began = time.monotonic()
    with pytest.raises(sealpoint.CommError, match="rank 0 stopped connecting"):
        _links.make_links("g/", 1, 2, time.monotonic() + 30.0, lambda: None)
    assert time.monotonic() - began < 5


def test_too_few_descriptors_are_told_before(monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda which: (1024, 4096))
    with pytest.raises(sealpoint.CommError, match="needs 4092 connections on each, but .* may open 1024 files.* ulimit -n 16384"):
        _links.make_links("g/", 0, 4093, time.monotonic() + 60, lambda: None)  # a prime
    _links._check_descriptors(4096, 126)
    monkeypatch.setattr(resource, "getrlimit", lambda which: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    _links._check_descriptors(4093, 4092)


def test_a_job_without_a_store_is_told_what_to_do(monkeypatch, tmp_path):
    """As with the backend mpi."""
    import torch.testing._internal.distributed.fake_pg  # noqa: F401  registers it

    dist.init_process_group("fake", store=dist.HashStore(), rank=0, world_size=2)
    try:
        monkeypatch.setattr(_store, "_get_default_store", lambda: None)
        with pytest.raises(sealpoint.UnsupportedError, match=r'init_process_group\("gloo"\)'):
            sp.save({"a": 1}, tmp_path / "c", deadline=5)
    finally:
        dist.destroy_process_group()
