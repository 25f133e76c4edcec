# SPDX-License-Identifier: Apache-2.0
"""Arrays over the stored bytes, verified and without a copy."""

import multiprocessing
import os

import numpy
import pytest
import sealpoint

from conftest import noise

W = noise((512, 64), "f4")


@pytest.fixture
def path(tmp_path):
    with sealpoint.BlobWriter(tmp_path / "c") as writer:
        writer.add("w", W, chunk_size_bytes=1 << 14)
        for begin in (0, 300):
            writer.add("halves", W[begin : begin + 300], shape=W.shape, offset=(begin, 0))
        writer.add("coded", numpy.zeros((512, 64), "f4"), codec="zstd")
        writer.add("scalar", numpy.float64(2.5))
        writer.add("none", numpy.zeros((0, 3), "f4"))
        sealpoint.commit(tmp_path / "c", writer.finish())
    return tmp_path / "c"


def flip(path, what):
    for blob in path.glob("*.blob"):
        data = bytearray(blob.read_bytes())
        at = data.find(what.tobytes()[:64])
        if at >= 0:
            data[at] ^= 1
            blob.write_bytes(data)


def test_a_view_of_the_stored_bytes(path):
    with sealpoint.open(path) as checkpoint:
        found = checkpoint["w"].map(threads=2)
        scalar = checkpoint["scalar"].map()
        empty = checkpoint["none"].map()
    assert found.dtype == W.dtype and found.tobytes() == W.tobytes()
    assert not found.flags.writeable and not found.flags.owndata
    assert scalar.shape == () and scalar[()] == 2.5 and empty.shape == (0, 3)
    with pytest.raises(ValueError):
        found[0, 0] = 1
    for file in path.iterdir():
        file.unlink()
    assert found.tobytes() == W.tobytes()


def test_one_of_several_shards(path):
    with sealpoint.open(path) as checkpoint:
        with pytest.raises(sealpoint.UnsupportedError, match="stored in 2 shards, expected one; see map_shards"):
            checkpoint["halves"].map()
        for shard, array in checkpoint["halves"].map_shards():
            begin = shard.offset[0]
            assert array.tobytes() == W[begin : begin + shard.extent[0]].tobytes()


def test_what_cannot_be_mapped(path):
    with sealpoint.open(path) as checkpoint:
        with pytest.raises(sealpoint.UnsupportedError, match="stored with a codec, expected none") as caught:
            checkpoint["coded"].map()
        assert caught.value.tensor == "coded"
        assert not checkpoint["coded"].host_copy().array.any()
        with pytest.raises(sealpoint.InvalidArgumentError, match="threads"):
            checkpoint["w"].map(threads=0)
    with pytest.raises(sealpoint.InvalidArgumentError, match="closed"):
        checkpoint["w"].map()


def test_damage_is_found_once_it_is_mapped(path):
    flip(path, W)
    with sealpoint.open(path) as checkpoint:
        for call in (checkpoint["w"].map, checkpoint["w"].host_copy):
            with pytest.raises(sealpoint.CorruptError) as caught:
                call()
            assert caught.value.rule == "R-CHK-02" and caught.value.tensor == "w" and caught.value.offset is not None


def _map_in_child(path, copy_path, queue):
    with sealpoint.open(path) as checkpoint:
        array = checkpoint["w"].map_host_copy(copy_path)
        queue.put((array.tobytes(), array.flags.writeable))


def test_processes_share_a_host_copy(path):
    with sealpoint.open(path) as checkpoint:
        copy = checkpoint["w"].host_copy(threads=2)
        assert copy.array.tobytes() == W.tobytes() and not copy.array.flags.writeable
        spawn = multiprocessing.get_context("spawn")
        queue = spawn.Queue()
        child = spawn.Process(target=_map_in_child, args=(path, copy.path, queue))
        child.start()
        content, is_writable = queue.get(timeout=60)
        child.join()
        assert content == W.tobytes() and not is_writable
        with pytest.raises(PermissionError):
            os.truncate(copy.path, 0)
        with pytest.raises(sealpoint.InvalidArgumentError, match="bytes, expected"):
            checkpoint["scalar"].map_host_copy(copy.path)
        plain = path / "plain"
        plain.write_bytes(bytes(W.nbytes))
        with pytest.raises(sealpoint.InvalidArgumentError, match="not sealed"):
            checkpoint["w"].map_host_copy(str(plain))
        array = copy.array
        del copy
        assert array.tobytes() == W.tobytes()

