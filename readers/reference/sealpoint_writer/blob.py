# SPDX-License-Identifier: Apache-2.0
"""A blob: shards, their table, the manifest and the trailer (spec/container.md, section 5)."""

import collections
import os
import struct

from sealpoint_reference import fingerprint
from sealpoint_reference.registries import COMPAT_FINGERPRINTS, INCOMPAT_OF_A_DELTA
from sealpoint_reference.xxh3 import digest

from .codec import CODEC_CHANGES, CODEC_NONE, CODED_CHUNK_BYTES_MAX, encode, encode_changes
from .flatbuffer import List, Table, bits128, flatbuffer, u32, u64
from .geometry import box_list_table
from .items import Object, Tensor, in_order, whole
from .layout import (DIGEST_XXH3_128, HEADER_BYTES, KIND_BLOB, NO_ID, NO_STEP, PAGE_BYTES, RECORD_BYTES,
                     RECORDS_PER_GROUP, TRAILER_BYTES, TRAILER_MAGIC, header, padded, record, round_up, sealed)

# A shard of a blob: which region of a tensor or an object, and its first record.
Shard = collections.namedtuple("Shard", "item region first")

# A finished blob: what the index pins of it, and what its manifest says.
Summary = collections.namedtuple(
    "Summary", "id file_size table_offset record_count shard_count group_list_digest trailer_digest compat incompat "
    "shards empty fingerprints")


class Blob:
    """Takes shards in any order, which is the order of their ordinals. The whole blob is in memory. With compat bit 0 its
    tensors have fingerprints. With a base (a sealpoint_reference.load.Base) chunks may be changes to it."""

    def __init__(self, attempt=NO_ID, step=NO_STEP, compat=0, identity=None, base=None):
        self.id = identity or os.urandom(16)
        self._tag, self._step, self._compat, self._incompat = attempt, step, compat, 0
        self._base = base
        self._chunks = bytearray(HEADER_BYTES)  # the header's place
        self._records = bytearray()
        self._shards, self._empty, self._raw_bytes = [], [], 0
        self._fingerprints = {}  # by tensor, of what of it is here

    @property
    def record_count(self):
        return len(self._records) // RECORD_BYTES

    def add(self, item, data, region=None, codec=CODEC_NONE):
        """The bytes of a region of a tensor (all of it, if none is named) or of an object. An empty one is declared."""
        region = region or whole(item.shape)
        if len(data) != (region.end - region.begin) * item.element_size:
            raise ValueError(f"{item.name}: {len(data)} bytes of a region of {region.end - region.begin} elements")
        if isinstance(item, Tensor) and self._compat & COMPAT_FINGERPRINTS:
            part = fingerprint.of_part(item.shape, item.element_size, region, data)
            self._fingerprints[item] = fingerprint.add(part, self._fingerprints.get(item, fingerprint.ZERO))
        if not data:
            self._empty.append(item)
            return
        ordinal = len(self._shards)
        self._shards.append(Shard(item, region, self.record_count))
        self._raw_bytes += len(data)
        self._chunks = padded(self._chunks, PAGE_BYTES if len(data) >= 65536 else 64)
        base = self._base_bytes(item, region) if codec == CODEC_CHANGES else None
        for chunk, at in enumerate(range(0, len(data), item.chunk_size)):
            raw = data[at:at + item.chunk_size]
            if base is not None and len(raw) <= CODED_CHUNK_BYTES_MAX:
                used, stored = encode_changes(raw, base[at:at + item.chunk_size], item.element_size)
            else:
                used, stored = encode(CODEC_NONE if codec == CODEC_CHANGES else codec, raw, item.element_size)
            self._incompat |= INCOMPAT_OF_A_DELTA if used == CODEC_CHANGES else 0
            self._records += record(len(self._chunks), stored, raw, ordinal, chunk, used)
            self._chunks += stored

    def _base_bytes(self, item, region):
        """None of an object, and of a tensor that the base does not have so."""
        if self._base is None or not isinstance(item, Tensor):
            return None
        if not self._base.has(item.name, item.dtype, item.element_size, item.shape):
            return None
        return self._base.region(item.name, region)

    def manifest(self):
        """All geometry is in box lists, and every reference to blob 0, which is this one."""
        tables = {Tensor: [], Object: []}
        for item in in_order({shard.item for shard in self._shards} | set(self._empty)):
            own = sorted((shard.region, shard.first) for shard in self._shards if shard.item == item)
            if isinstance(item, Object):
                table = item.table((0, own[0][1] if own else 0))
            else:
                boxes = box_list_table([region for region, _ in own]) if own else None
                table = item.table(None, boxes, [(0, first) for _, first in own], self._fingerprints.get(item))
            tables[type(item)].append(table)
        return Table([List(tables[Tensor]), List(tables[Object])])

    def finish(self):
        """The bytes of the file, and its summary."""
        manifest = flatbuffer(b"SPMF", self.manifest())
        group_bytes = RECORD_BYTES * RECORDS_PER_GROUP
        groups = b"".join(digest(self._records[at:at + group_bytes]) for at in range(0, len(self._records), group_bytes))
        start = sealed(header(KIND_BLOB, HEADER_BYTES, self.id, self._tag, self._step, self._compat, self._incompat))
        chunks_end = len(self._chunks)
        body = padded(start + self._chunks[HEADER_BYTES:], 64)
        table_offset = len(body)
        body = padded(body + groups, 64)
        records_offset = len(body)
        body = padded(body + self._records, 64)
        manifest_offset = len(body)
        body += manifest
        file_size = round_up(len(body) + TRAILER_BYTES, PAGE_BYTES)
        trailer = TRAILER_MAGIC + struct.pack(
            "<2I16s3Q2I4Q16s16s16sH94s", TRAILER_BYTES, RECORD_BYTES, self.id, file_size, chunks_end, table_offset,
            self.record_count, len(self._shards), records_offset, manifest_offset, len(manifest), self._raw_bytes,
            digest(groups), digest(manifest), start[40:56], DIGEST_XXH3_128, bytes(94))
        body += bytes(file_size - TRAILER_BYTES - len(body)) + trailer + digest(trailer)
        return body, Summary(self.id, file_size, table_offset, self.record_count, len(self._shards), digest(groups),
                             digest(trailer), self._compat, self._incompat, tuple(self._shards),
                             tuple(self._empty), self._fingerprints)


def blob_table(summary):
    """What the index pins."""
    return Table([bits128(summary.id), u64(summary.file_size), u64(summary.table_offset), u32(summary.record_count),
                  u32(summary.shard_count), bits128(summary.group_list_digest), bits128(summary.trailer_digest)])
