# SPDX-License-Identifier: Apache-2.0
"""Reading tensors, parts of them and objects (spec/reader-rules.md, section 4, "A read"), of deltas too (delta.md)."""

import contextlib
import math
import posixpath

from . import blob as rules_of_blob
from . import geometry, records
from .header import NO_STEP
from .index import open_checkpoint, read_index
from .marker import read_marker
from .rules import Violation

_NO_CHECKPOINT = ("R-DIR-01", "R-DIR-05", "R-MRK-01", "R-MRK-09")


class Checkpoint:
    """An opened checkpoint: steps 1 to 5 hold, and what delta.md says of its base. `bases` as of open_base."""

    def __init__(self, directory, bases=None, index=None):
        self._directory = directory
        self.index = index or open_checkpoint(directory)
        for blob in self.index.blobs:
            rules_of_blob.check_length(blob, rules_of_blob.check_presence(directory, blob))
        self.base = open_base(directory, self.index, bases)
        self.tensors = {tensor.text: tensor for tensor in self.index.tensors}
        self.objects = {item.text: item for item in self.index.objects}
        self._tables = {}
        self._shards = {(blob.number, shard.first): shard for blob in self.index.blobs for shard in blob.shards}

    def _table(self, number):
        if number not in self._tables:
            self._tables[number] = records.Table(self._directory, self.index.blobs[number])
        return self._tables[number]

    def _reader(self, ref):
        return _ShardReader(self._directory, self._table(ref[0]), self._shards[ref], self.base, self._kept(ref))

    def _kept(self, _ref):
        """Where the shard's chunks are kept once they were read; None to keep the last one alone."""
        return None

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


class Base(Checkpoint):
    """A checkpoint that a delta is read with. It keeps the chunks of one tensor, so that none is decoded twice, however chunks of
    the delta lie in those of its base."""

    def __init__(self, directory, bases, index, place):
        super().__init__(directory, bases, index)
        self._place = place
        self._tensor, self._chunks = None, {}

    def _kept(self, ref):
        return self._chunks.setdefault(ref, {})

    def has(self, name, dtype, element_size, shape):
        """R-DLT-05."""
        own = self.tensors.get(name)
        return own is not None and (own.dtype, own.element_size, own.shape) == (dtype, element_size, shape)

    def region(self, name, region):
        """The base bytes of a region of a tensor of the delta."""
        if self._tensor != name:
            self._tensor, self._chunks = name, {}
        with _in_base(self._place):
            return b"".join(self.box(name, *box) for box in geometry.run_boxes(*region))


@contextlib.contextmanager
def _in_base(place):
    """Files of violations are named from the directory of the delta."""
    try:
        yield
    except Violation as violation:
        violation.file = posixpath.normpath(posixpath.join(place, violation.file))
        raise


def open_base(directory, index, bases=None):
    """R-DLT-03 and R-DLT-04: the Base of a delta, or None. `bases` are the directories that the caller names, by attempt; any
    other base is looked for beside the delta."""
    pin = index.base
    if pin is None:
        return None
    name = f"step-{pin.step:012}-{pin.attempt.hex()[:8]}"
    named = (bases or {}).get(pin.attempt)
    place = f"../{name}" if named is None else str(named)

    try:
        with _in_base(place):
            if named is None and pin.step == NO_STEP:
                raise Violation("R-DIR-01", "a base without a step has to be named")
            found = named or directory.beside(name)
            marker = read_marker(found)
    except Violation as violation:
        if violation.rule not in _NO_CHECKPOINT:
            raise
        raise Violation("R-DLT-03", f"the base: {violation.message}", violation.file) from violation
    if (marker.attempt, marker.index_digest) != (pin.attempt, pin.index_digest):
        raise Violation("R-DLT-04", "the marker is not that of the base", place)
    with _in_base(place):
        own = read_index(found, marker)
    if own.depth != pin.depth - 1:
        raise Violation("R-DLT-04", f"a depth of {own.depth}, where the delta has {pin.depth}", place)
    with _in_base(place):
        return Base(found, bases, own, place)


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

    def __init__(self, directory, table, shard, base, kept):
        self._directory, self._table, self._shard, self._base = directory, table, shard, base
        self._keeps_all = kept is not None
        self._chunks = kept if self._keeps_all else {}
        self._seen = {}

    def _chunk(self, chunk):
        if chunk not in self._chunks:
            record = records.check_record(self._table, self._shard.first + chunk, self._shard)
            before, after = self._seen.get(chunk - 1), self._seen.get(chunk + 1)
            end = before.offset + before.stored if before else None
            records.check_place(self._table, self._shard, chunk, before and before.ordinal, end)
            if after and (after.ordinal, after.offset) != (record.ordinal, record.offset + record.stored):
                raise self._table.violation("R-REC-04", "not after its predecessor", self._shard.first + chunk + 1,
                                            self._shard)
            self._seen[chunk] = record
            if not self._keeps_all:
                self._chunks.clear()
            self._chunks[chunk] = records.read_chunk(self._directory, self._table, self._shard, chunk, self._base)
        return self._chunks[chunk]

    def read(self, begin, length):
        size = self._shard.owner.chunk_size
        end = begin + length
        return b"".join(self._chunk(chunk)[max(begin - chunk * size, 0):end - chunk * size]
                        for chunk in range(begin // size, -(-end // size)))
