# SPDX-License-Identifier: Apache-2.0
"""Reading tensors, parts of them and objects (spec/reader-rules.md, section 4, "A read")."""

import math

from . import blob as rules_of_blob
from . import records
from .verify import open_checkpoint


class Checkpoint:
    """An opened checkpoint: steps 1 to 5 hold."""

    def __init__(self, directory):
        self._directory = directory
        self.index = open_checkpoint(directory)
        for blob in self.index.blobs:
            rules_of_blob.check_length(blob, rules_of_blob.check_presence(directory, blob))
        self.tensors = {tensor.text: tensor for tensor in self.index.tensors}
        self.objects = {item.text: item for item in self.index.objects}
        self._tables = {}
        self._shards = {(blob.number, shard.first): shard for blob in self.index.blobs for shard in blob.shards}

    def _table(self, number):
        if number not in self._tables:
            self._tables[number] = records.Table(self._directory, self.index.blobs[number])
        return self._tables[number]

    def _reader(self, ref):
        return _ShardReader(self._directory, self._table(ref[0]), self._shards[ref])

    def object(self, name):
        item = self.objects[name]
        return self._reader(item.ref).read(0, item.raw_bytes) if item.raw_bytes else b""

    def tensor(self, name):
        tensor = self.tensors[name]
        return self.box(name, (0,) * len(tensor.shape), tensor.shape)

    def box(self, name, offset, extent):
        """The bytes of a box of a tensor, row-major; only chunks that hold some of them are read."""
        tensor = self.tensors[name]
        if len(offset) != len(tensor.shape) or len(extent) != len(tensor.shape) or any(
                o < 0 or e < 0 or o + e > whole for o, e, whole in zip(offset, extent, tensor.shape)):
            raise ValueError(f"no box of a tensor of shape {tensor.shape}")
        size = tensor.element_size
        result = bytearray(math.prod(extent) * size)
        for ref, region in zip(tensor.refs, tensor.regions):
            reader = None
            for source, target, count in _pieces(region, offset, extent):
                reader = reader or self._reader(ref)
                result[target * size:(target + count) * size] = reader.read(source * size, count * size)
        return bytes(result)


def _pieces(region, offset, extent):
    """Where elements of a region are in its run, where in the requested box, and how many follow each other in both."""
    ndim = len(extent)
    low = [max(a, b) for a, b in zip(region.offset, offset)]
    high = [min(a + c, b + d) for a, b, c, d in zip(region.offset, offset, region.extent, extent)]
    if any(a >= b for a, b in zip(low, high)):
        return
    inner = ndim
    while inner and low[inner - 1] == region.offset[inner - 1] == offset[inner - 1] and (
            high[inner - 1] - low[inner - 1] == region.extent[inner - 1] == extent[inner - 1]):
        inner -= 1
    # The dimension before the ones that are whole in both goes along.
    inner = max(inner - 1, 0)
    row = math.prod(high[d] - low[d] for d in range(inner, ndim))
    for outer in _positions(low[:inner], high[:inner]):
        at = [*outer, *low[inner:]]
        source = _row_major(at, region.offset, region.extent)
        begin, end = max(source, region.begin), min(source + row, region.end)
        if begin < end:
            yield begin - region.begin, _row_major(at, offset, extent) + begin - source, end - begin


def _positions(low, high):
    if not low:
        yield ()
        return
    for at in range(low[0], high[0]):
        for rest in _positions(low[1:], high[1:]):
            yield (at, *rest)


def _row_major(at, offset, extent):
    position = 0
    for a, o, e in zip(at, offset, extent):
        position = position * e + a - o
    return position


class _ShardReader:
    """Bytes of one shard, chunk by chunk; each chunk and its record are checked before a byte is handed out."""

    def __init__(self, directory, table, shard):
        self._directory, self._table, self._shard = directory, table, shard
        self._last = (None, b"")
        self._seen = {}

    def _chunk(self, chunk):
        if self._last[0] != chunk:
            record = records.check_record(self._table, self._shard.first + chunk, self._shard)
            before, after = self._seen.get(chunk - 1), self._seen.get(chunk + 1)
            end = before.offset + before.stored if before else None
            records.check_place(self._table, self._shard, chunk, before and before.ordinal, end)
            if after and (after.ordinal, after.offset) != (record.ordinal, record.offset + record.stored):
                raise self._table.violation("R-REC-04", "not after its predecessor", self._shard.first + chunk + 1,
                                            self._shard)
            self._seen[chunk] = record
            self._last = (chunk, records.read_chunk(self._directory, self._table, self._shard, chunk))
        return self._last[1]

    def read(self, begin, length):
        size = self._shard.owner.chunk_size
        end = begin + length
        return b"".join(self._chunk(chunk)[max(begin - chunk * size, 0):end - chunk * size]
                        for chunk in range(begin // size, -(-end // size)))
