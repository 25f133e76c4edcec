# SPDX-License-Identifier: Apache-2.0
"""Makes checkpoints straight from the specification, with a hook wherever a test wants to meddle."""

import dataclasses
import math
import struct

from sealpoint_reference.xxh3 import digest
from sealpoint_writer.flatbuffer import List, Table, Text, Vector, bits128, flatbuffer, shard_ref, u8, u16, u32, u64

MAGIC = b"\x89SPT\r\n\x1a\n"
TRAILER_MAGIC = b"\x89SPB\r\n\x1a\n"
ATTEMPT = b"\xa7" * 16
STEP = 7


def header(kind, length, identity, compat=0):
    """The first 128 bytes; the digest is set by seal_header."""
    return MAGIC + struct.pack("<4I2Q16s16s16sQ32s", kind, 1, length, 0, compat, 0, bytes(16), identity, ATTEMPT, STEP,
                               bytes(32))


def seal_header(data):
    length = int.from_bytes(data[16:20], "little")
    data = bytearray(data)
    data[40:56] = bytes(16)
    data[40:56] = digest(data[:length])
    return bytes(data)


def round_up(value, multiple):
    return -(-value // multiple) * multiple


@dataclasses.dataclass
class Shard:
    """Elements [begin, end) of a box, in a blob."""
    blob: int
    offset: tuple
    extent: tuple
    data: bytes
    begin: int = 0
    end: int | None = None
    first: int = 0

    @property
    def run(self):
        return self.begin, math.prod(self.extent) if self.end is None else self.end


@dataclasses.dataclass
class Tensor:
    name: bytes
    shape: tuple
    shards: list
    dtype: int = 6
    element_size: int = 1
    log2: int = 12
    grid: tuple | None = None
    boxes: list | None = None
    runs: list | None = None
    placement: list | None = None

    def table(self, geometry, refs):
        grid, boxes = geometry
        placement = None if self.placement is None else List([Text(text) for text in self.placement])
        return Table([Text(self.name), Vector("Q", list(self.shape)), grid, boxes, Vector("II", refs),
                      u16(self.dtype), u16(self.element_size), u8(self.log2), placement])

    def of_index(self):
        refs = [(shard.blob, shard.first) for shard in self.shards]
        if self.grid:
            cuts, counts, run_counts, run_cuts = self.grid
            fields = [Vector("Q", cuts), Vector("I", counts)]
            if run_counts is not None:
                fields += [Vector("I", run_counts), Vector("Q", run_cuts)]
            return self.table((Table(fields), None), refs)
        return self.table((None, self._box_list(self.shards)), refs)

    def of_manifest(self, blob):
        shards = [shard for shard in self.shards if shard.blob == blob]
        if not shards and self.shards:
            return None
        return self.table((None, self._box_list(shards)), [(0, shard.first) for shard in shards])

    def _box_list(self, shards):
        if not shards:
            return None
        boxes = [number for shard in shards for number in (*shard.offset, *shard.extent)]
        runs = [number for shard in shards for number in shard.run]
        full = all(shard.run == (0, math.prod(shard.extent)) for shard in shards)
        return Table([Vector("Q", boxes)] + ([] if full else [Vector("Q", runs)]))


@dataclasses.dataclass
class Object:
    name: bytes
    data: bytes
    blob: int = 0
    log2: int = 12
    media_type: bytes = b"text/plain"
    first: int = 0

    def table(self, ref):
        return Table([Text(self.name), Text(self.media_type), u64(len(self.data)), shard_ref(*ref), u8(self.log2)])

    def of_index(self):
        return self.table((self.blob, self.first) if self.data else (0, 0))

    def of_manifest(self, blob):
        return self.table((0, self.first)) if blob == self.blob else None


class Blob:
    """The bytes of one blob; the attributes behind `build` are what the index pins."""

    def __init__(self, number, compat=0, extension=bytes(16)):
        self.number, self.compat, self.extension = number, compat, extension
        self.id = bytes([number + 1]) * 16
        self.records = b""
        self.chunks = bytearray(128)
        self.raw_bytes = 0
        self.shard_count = 0

    def add_shard(self, data, chunk_size):
        """Returns the shard's first record."""
        first = len(self.records) // 64
        self.chunks += bytes(-len(self.chunks) % (4096 if len(data) >= 65536 else 64))
        for chunk, at in enumerate(range(0, len(data), chunk_size)):
            raw = data[at:at + chunk_size]
            self.records += struct.pack("<Q4I2HI16s16s", len(self.chunks), len(raw), len(raw), self.shard_count, chunk,
                                        0, 0, 0, digest(raw), bytes(16))
            self.chunks += raw
        self.raw_bytes += len(data)
        self.shard_count += 1
        return first

    def build(self, manifest):
        end = len(self.chunks)
        data = bytes(self.chunks) + bytes(-end % 64)
        self.table_offset = len(data)
        group_list = b"".join(digest(self.records[at:at + 4096]) for at in range(0, len(self.records), 4096))
        self.record_count = len(self.records) // 64
        data += group_list + bytes(-len(group_list) % 64)
        records_at = len(data)
        data += self.records
        manifest_at = len(data)
        data += manifest
        self.file_size = round_up(len(data) + 256, 4096)
        start = seal_header(header(1, 128, self.id, self.compat))
        self.group_list_digest = digest(group_list)
        trailer = TRAILER_MAGIC + struct.pack(
            "<2I16s3Q2I4Q16s16s16sH78s16s", 256, 64, self.id, self.file_size, end, self.table_offset, self.record_count,
            self.shard_count, records_at, manifest_at, len(manifest), self.raw_bytes, self.group_list_digest,
            digest(manifest), start[40:56], 1, bytes(78), self.extension)
        self.trailer_digest = digest(trailer)
        body = start + data[128:] + bytes(self.file_size - 256 - len(data))
        return body + trailer + self.trailer_digest

    def table(self):
        return Table([bits128(self.id), u64(self.file_size), u64(self.table_offset), u32(self.record_count),
                      u32(self.shard_count), bits128(self.group_list_digest), bits128(self.trailer_digest)])


def marker(index, blob_count, total_bytes, compat=0):
    data = header(3, 512, ATTEMPT, compat) + struct.pack("<2I16s2Q16s2Q312s", 1, 0, bytes(16), 1, len(index), digest(index),
                                                 blob_count, total_bytes, bytes(312))
    return seal_header(data)


def _nothing(_value):
    pass


def checkpoint(tensors=(), objects=(), blob_count=1, change_manifest=_nothing, change_index=_nothing,
               change_buffer=bytes, compat=0, blob_compat=None, extension=bytes(16)):
    """Files by name. Hooks get the root tables before they are encoded, and the index's FlatBuffer behind that."""
    blobs = [Blob(number, compat if blob_compat is None else blob_compat, extension) for number in range(blob_count)]
    for tensor in tensors:
        for shard in tensor.shards:
            shard.first = blobs[shard.blob].add_shard(shard.data, 1 << tensor.log2)
    for item in objects:
        item.first = blobs[item.blob].add_shard(item.data, 1 << item.log2) if item.data else 0
    files = {}
    for blob in blobs:
        parts = [[part for part in (item.of_manifest(blob.number) for item in items) if part]
                 for items in (tensors, objects)]
        root = Table([List(part) for part in parts])
        change_manifest(root)
        files[f"{blob.id.hex()}.blob"] = blob.build(flatbuffer(b"SPMF", root))
    raw_bytes = sum(blob.raw_bytes for blob in blobs)
    root = Table([List([item.of_index() for item in tensors]), List([item.of_index() for item in objects]),
                  List([blob.table() for blob in blobs]), u16(1), u64(0), u64(raw_bytes), List([]), List([])])
    change_index(root)
    index = seal_header(header(2, 128, ATTEMPT, compat)) + change_buffer(flatbuffer(b"SPIX", root))
    files[f"{ATTEMPT.hex()}.index"] = index
    files["COMMIT"] = marker(index, blob_count, sum(blob.file_size for blob in blobs), compat)
    return files
