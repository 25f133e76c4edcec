# SPDX-License-Identifier: Apache-2.0
"""Processes of an engine that follow the versions of weights. No torch here: test_weights_torch.py has the trainer."""

import contextlib
import gc
import mmap
import os
import re
import signal
import subprocess
import sys
import time

import numpy
import pytest
import sealpoint
from conftest import flip_bit_of
from object_stores import store_at
from sealpoint.weights import Follower, _chain, _host

SIZE = 1 << 16
# The steps of an update: before and behind each of these, a leader is killed.
STEPS = [(_chain, "newest"), (_host.Host, "begin"), (_host.Segment, "copy_from"), (sealpoint.Checkpoint, "read"),
         (_host.Segment, "end"), (_host.Host, "announce"), (Follower, "_switch")]  # fmt: skip


def publish(place, version, **more):
    """A version all of whose elements say which one it is."""
    tensors = {"w": numpy.full(SIZE, version, "f4"), "b": numpy.full((2, 3), version, "f2"), "same": numpy.ones(5, "i8"),
               "empty": numpy.zeros((0, 3), "f4"), **more}  # fmt: skip
    return sealpoint.save(tensors, place, series=True, step=version, fingerprints=True).directory


def version_in(tensors):
    """The one that all elements say."""
    values = {*numpy.unique(tensors["w"]), *numpy.unique(tensors["b"])}
    assert len(values) == 1, values
    return values.pop()


@pytest.fixture
def follow(place, tmp_path):
    """Makes followers on hosts of this name, closed at the end."""
    with contextlib.ExitStack() as stack:
        yield lambda host="host", **options: stack.enter_context(Follower(place, host_folder=tmp_path / host, **options))


def test_versions_arrive_in_shared_memory(place, follow):
    leader, other = follow(), follow()
    assert (leader.poll(), leader.update(), leader.version) == (None, None, None)
    publish(place, 1)
    assert leader.poll() == 1 and leader.version is None
    update = leader.update()
    assert (update.version, update.previous, update.chain, update.skipped) == (1, None, [1], [])
    assert update.is_leader and leader.is_leader and not other.is_leader
    assert update.bytes_fetched >= update.bytes_total == SIZE * 4 + 12 + 40 and update.seconds > 0
    assert leader.poll() is None and leader.update() is None
    second = other.update()
    assert (second.version, second.attempt, second.is_leader) == (1, update.attempt, False)
    held = other.tensors()
    assert version_in(held) == 1 and held["empty"].shape == (0, 3) and not held["w"].flags.writeable
    publish(place, 2)
    publish(place, 3)
    assert other.update() is None, "one process fetches"
    assert other.poll() == 3
    assert leader.update().changed == ["b", "w"]
    assert other.update().previous == 1 and version_in(other.tensors()) == 3 and version_in(held) == 1
    assert leader.verify() == other.verify() == 4
    publish(place, 4)
    assert leader.wait().version == 4


def test_all_ranks_take_the_version_that_one_found(place, follow):
    leader, other = follow(), follow()
    for version in (1, 2, 3):
        publish(place, version)
    assert leader.update(2).version == 2 and other.update(2).version == 2 and other.update(2) is None
    with pytest.raises(sealpoint.TimeoutError, match="did not fetch version 3"):
        other.update(3, timeout=0.05)
    with pytest.raises(sealpoint.NotFoundError, match="version 9 is not there"):
        leader.update(9)
    leader.update()
    assert other.update(2) is None and other.update(3).version == 3
    assert leader.update(1).version == 1 and leader.update(2).version == 2
    assert other.update() is None, "an older one is taken only by its number"
    with pytest.raises(sealpoint.InvalidArgumentError, match="version is"):
        leader.update("3")
    with pytest.raises(sealpoint.TimeoutError, match="no newer version within"):
        other.wait(0.02)


def test_some_tensors(place, follow):
    publish(place, 1, **{"layers.1.w": numpy.zeros(2, "f4"), "layers.2.w": numpy.zeros(2, "f4")})
    some = follow(select=["layers.*", "b"])
    assert some.update().bytes_total == 28 and set(some.tensors()) == {"layers.1.w", "layers.2.w", "b"}
    assert follow().update().is_leader, "other tensors are other memory"
    with pytest.raises(sealpoint.NotFoundError, match=r"'head\.\*' matches no name"):
        follow(select=["head.*"]).update()


def test_what_a_look_and_an_update_cost(follow, place):
    if not str(place).startswith("mem:"):
        pytest.skip("a file system counts no requests")
    for version in range(1, 5):
        publish(place, version)
    follower, calls = follow(), store_at(place).calls
    counts = []
    for call in (follower.poll, follower.update, follower.update):
        calls.clear()
        call()
        counts.append(sum(calls.values()) - calls["get_ranges"])
    assert counts == [7 + 4, 7 + 4 + 4, 7 + 4], "docs/guides/weights.md has these numbers"


def test_a_version_that_is_half_there_is_not_seen(place, follow, tmp_path):
    if str(place).startswith("mem:"):
        pytest.skip("files are taken away below")
    follower = follow()
    publish(place, 1)
    follower.update()
    before = follower.tensors()
    directory = publish(place, 2)
    marker = os.path.join(directory, "COMMIT")
    os.rename(marker, tmp_path / "marker")
    assert follower.poll() is None and follower.update() is None
    os.rename(tmp_path / "marker", marker)
    (blob,) = (os.path.join(directory, name) for name in os.listdir(directory) if name.endswith(".blob"))
    os.rename(blob, tmp_path / "blob")
    assert follower.poll() is None and follower.update() is None and version_in(follower.tensors()) == 1
    late = follow("another host")
    assert late.update().version == 1
    os.rename(tmp_path / "blob", blob)
    assert late.update().version == 2
    flip_bit_of(directory, numpy.full(SIZE, 2, "f4").tobytes())
    with pytest.raises(sealpoint.CorruptError) as caught:
        follower.update()
    assert caught.value.rule == "R-CHK-02" and caught.value.tensor == "w"
    assert follower.version == 1 and version_in(follower.tensors()) == version_in(before) == 1 and follower.verify() == 4
    publish(place, 3)
    assert follower.update().version == 3 and follow().update().version == 3


def test_a_series_that_goes_back_is_not_followed_back(place, follow):
    publish(place, 1)
    series = sealpoint.Series(place)
    follower = follow()
    publish(place, 2)
    follower.update()
    sealpoint._sealpoint.remove_path(series.newest().entry.path)
    assert follower.poll() is None and follower.update() is None and follower.version == 2
    assert [generation.version for generation in follower._host.generations()] == [2], "nor fetched"
    assert follow("another host").update().version == 1


def test_old_views_keep_their_memory(place, follow):
    """And without views, two memories serve all versions."""
    leader, reader = follow(), follow()
    kept = {}
    for version in range(1, 6):
        publish(place, version)
        leader.update()
        reader.update()
        if version < 3:
            kept[version] = reader.tensors()
    assert all(version_in(tensors) == version for version, tensors in kept.items())
    assert len(leader._host._segments) == 4
    kept.clear()
    gc.collect()
    publish(place, 6, more=numpy.zeros(3))
    leader.update()
    for version in (7, 8, 9):
        publish(place, version, more=numpy.zeros(3))
        leader.update()
        reader.update()
    assert len(leader._host._segments) == 2 and version_in(reader.tensors()) == 9


def test_memory_that_is_written_is_not_taken(place, follow):
    leader, reader = follow(), follow()
    for version in (1, 2):
        publish(place, version)
        leader.update()
    assert [generation.version for generation in leader._host.generations()] == [2, 1]
    (first,) = (s for s in leader._host._segments if s.descriptor == leader._host.generations()[1].descriptor)
    assert first.begin()
    assert reader._switch(1, 0.0) is None, "it is being written"
    first.end()
    assert reader._switch(1, 0.0) is None, "it has no version"
    leader.update(1)
    second = next(s for s in leader._host._segments if s is not first)
    second.memory[:16] = bytes(16)
    assert reader.update().version == 1, "the newest is gone"


def test_memory_of_another_program_is_not_taken(place, follow, tmp_path):
    """A number of a process or of a file that is used again, even with the same token."""
    publish(place, 1)
    follower = follow()
    follower.update()
    (found,) = follower._host.generations()
    os.makedirs(tmp_path, exist_ok=True)
    with open("/proc/self/fd/{}".format(found.descriptor), "rb") as memory:
        (tmp_path / "copy").write_bytes(memory.read())
    with open(tmp_path / "copy", "rb") as copy:
        for other in ({"descriptor": copy.fileno()}, {"pid": 1 << 22}, {"size_bytes": 1 << 30}):
            with pytest.raises(_host.StaleError):
                _host.Mapping(found._replace(**other))
    assert _host.Mapping(found).generation == found


def test_no_other_process_writes_the_memory(place, follow):
    publish(place, 1)
    follower = follow()
    follower.update()
    path = "/proc/{}/fd/{}".format(os.getpid(), follower._host.generations()[0].descriptor)
    with open(path, "r+b", buffering=0) as file:
        with pytest.raises(PermissionError):
            file.write(b"1")
        with pytest.raises(PermissionError):
            mmap.mmap(file.fileno(), 0)
        with pytest.raises(PermissionError):
            file.truncate(0)
    follower._host._segments[0].memory[_host.HEADER_BYTES + 4096] ^= 1
    with pytest.raises(sealpoint.CorruptError, match="fingerprint in memory is") as caught:
        follower.verify()
    assert caught.value.tensor == "w"


def test_the_folder_of_the_host(place, tmp_path):
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o777)
    with pytest.raises(sealpoint.InvalidArgumentError, match="other users can write"):
        Follower(place, host_folder=tmp_path / "shared")
    with pytest.raises(sealpoint.InvalidArgumentError, match="every is"):
        Follower(place, every=0)
    with Follower(place, host_folder=tmp_path / "own") as follower:
        with pytest.raises(sealpoint.InvalidArgumentError, match="no version yet"):
            follower.tensors()


def test_versions_without_fingerprints(place, follow):
    follower = follow()
    for version in (1, 2):
        sealpoint.save({"w": numpy.ones(2)}, place, series=True, step=version)
        assert follower.update().changed == ["w"]
    with pytest.raises(sealpoint.InvalidArgumentError, match="stored no fingerprint"):
        follower.verify()


def test_torch_is_not_imported():
    code = "import sys, sealpoint.weights; print('torch' in sys.modules, 'numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False False\n"


def in_child(call):
    """Runs call() in a forked process, and returns its exit status."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            call()
            status = 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.fixture
def local(tmp_path, request):
    if "objects" in request.node.name or not isinstance(tmp_path, os.PathLike):
        pytest.skip("processes share a directory")
    return tmp_path / "place", tmp_path / "host"


def killed_at(owner, name, is_before):
    """The function of this name kills its process."""
    function = getattr(owner, name)

    def call(*arguments, **keywords):
        result = None if is_before else function(*arguments, **keywords)
        os.kill(os.getpid(), signal.SIGKILL)
        return result

    setattr(owner, name, call)


@pytest.mark.parametrize("is_before", [True, False])
@pytest.mark.parametrize("owner, name", STEPS, ids=[name for _, name in STEPS])
def test_a_leader_is_killed(local, owner, name, is_before):
    """It has one version, and is killed on its way to the next."""
    place, host = local
    publish(place, 1)
    ready, go = os.pipe(), os.pipe()

    def lead():
        with Follower(place, host_folder=host) as leader:
            assert leader.update().is_leader
            os.write(ready[1], b"1")
            os.read(go[0], 1)
            if name == "copy_from":  # as a delta begins
                _chain.opened_chain = chain_on_held(_chain.opened_chain)
                _chain.read_changes = lambda checkpoint, parts, threads: checkpoint.read(parts, threads=threads)
            killed_at(owner, name, is_before)
            leader.update()

    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            lead()
        os._exit(1)
    os.read(ready[0], 1)
    with Follower(place, host_folder=host) as survivor:
        assert survivor.update().version == 1
        before = survivor.tensors()
        publish(place, 2)
        os.write(go[1], b"1")
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
        assert version_in(before) == 1 and survivor.verify() == 4
        with Follower(place, host_folder=host) as late:
            found = late.update()
            assert found.version == 2 == version_in(late.tensors()) and late.verify() == 4 and late.is_leader
        assert survivor.update(2).version == 2 and version_in(survivor.tensors()) == 2
    for end in (*ready, *go):
        os.close(end)


def chain_on_held(opened):
    @contextlib.contextmanager
    def chain(place, target, held):
        with opened(place, target, held) as (found, _):
            yield found, held is not None

    return chain


def test_followers_are_killed(local):
    """In an update, and with views: the leader gets their memory back."""
    place, host = local
    publish(place, 1)
    with Follower(place, host_folder=host) as leader:
        leader.update()

        def take():
            with Follower(place, host_folder=host) as follower:
                follower.update()
                kept = follower.tensors()
                os.kill(os.getpid(), signal.SIGKILL)
                del kept

        for version in range(2, 6):
            assert in_child(take) == -signal.SIGKILL
            publish(place, version)
            assert leader.update().version == version
        assert len(leader._host._segments) == 2


def test_a_forked_child_is_not_the_leader(local):
    place, host = local
    publish(place, 1)
    leader = Follower(place, host_folder=host)
    leader.update()
    ready, wait = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        os.write(ready[1], b"1")
        os.read(wait[0], 1)
        os._exit(0)
    os.read(ready[0], 1)
    leader.close()
    with Follower(place, host_folder=host) as other:
        update = other.update()
    os.write(wait[1], b"1")
    os.waitpid(child, 0)
    assert update is not None and update.is_leader
    for end in (*ready, *wait):
        os.close(end)


def test_a_new_leader_shows_what_it_has(local):
    """Also if it is not the newest: who comes late takes it from the memory of the host."""
    place, host = local
    publish(place, 1)
    with Follower(place, host_folder=host) as first, Follower(place, host_folder=host) as second:
        first.update()
        assert second.update().version == 1
        first.close()
        gc.collect()
        with Follower(place, host_folder=host) as late:
            assert second.update() is None and second.is_leader
            assert late.update().version == 1 and not late.is_leader and late.verify() == 4


def test_versions_are_whole_while_old_ones_are_pruned(local):
    """A publisher in a process of its own publishes and prunes as fast as it can; the follower never sees a mixture."""
    place, host = local
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            for version in range(1, 31):
                publish(place, version)
                sealpoint.Series(place).prune(keep_last=2)
            os._exit(0)
        os._exit(1)
    seen, deadline = [], time.monotonic() + 60
    with Follower(place, host_folder=host) as follower:
        while (not seen or seen[-1] < 30) and time.monotonic() < deadline:
            try:
                update = follower.update() if place.exists() else None
            except sealpoint.Error as error:
                assert re.search("NotFound|Incomplete|Io|Uncommitted|NotACheckpoint", str(error)), error
                continue
            if update is not None:
                assert version_in(follower.tensors()) == update.version == follower.version
                seen.append(update.version)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert seen == sorted(set(seen)) and seen[-1] == 30
