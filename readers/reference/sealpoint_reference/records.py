# SPDX-License-Identifier: Apache-2.0
"""The table of a blob and its chunks (spec/container.md, section 5; reader-rules.md, section 3, steps 6 and 8)."""

import collections
import struct

from . import codec, limits
from .changes import ChangeList
from .directory import read_exactly
from .header import HEADER_BYTES, NO_ID
from .index import DIGEST_BYTES, PAGE_BYTES, RECORD_BYTES, RECORDS_PER_GROUP, round_up
from .metadata import Tensor
from .registries import CODEC_CHANGES, CODEC_NONE, CODECS
from .rules import Violation
from .xxh3 import digest

_LAYOUT = struct.Struct("<Q4I2HI16s16s")
_LARGE_SHARD_BYTES = 65536

Record = collections.namedtuple("Record", "offset stored raw ordinal chunk codec reserved source raw_digest stored_digest")


def alignment(shard):
    return PAGE_BYTES if shard.raw_bytes >= _LARGE_SHARD_BYTES else 64


class Table:
    """Group list and records of one blob, each group checked when it is first asked for (R-BLB-05)."""

    def __init__(self, directory, blob):
        self._directory, self.blob = directory, blob
        self._groups = {}
        self._list = read_exactly(directory, blob.name, blob.table_offset, DIGEST_BYTES * blob.group_count)
        if digest(self._list) != blob.group_list_digest:
            raise Violation("R-BLB-05", "digest of the group list differs", blob.name, blob.table_offset)

    def record_offset(self, number):
        return self.blob.records_offset + RECORD_BYTES * number

    def _group(self, group):
        first = group * RECORDS_PER_GROUP
        count = min(RECORDS_PER_GROUP, self.blob.record_count - first)
        data = read_exactly(self._directory, self.blob.name, self.record_offset(first), count * RECORD_BYTES)
        if digest(data) != self._list[group * DIGEST_BYTES:(group + 1) * DIGEST_BYTES]:
            raise Violation("R-BLB-05", f"digest of record group {group} differs", self.blob.name,
                            self.record_offset(first))
        return [Record(*fields) for fields in _LAYOUT.iter_unpack(data)]

    def record(self, number):
        group = number // RECORDS_PER_GROUP
        if group not in self._groups:
            self._groups[group] = self._group(group)
        return self._groups[group][number % RECORDS_PER_GROUP]

    def violation(self, rule, message, number, shard):
        return Violation(rule, message, self.blob.name, self.record_offset(number), shard.owner.text)


def check_record(table, number, shard):
    """R-COD-01 or R-DLT-08, R-REC-05 and R-REC-03 or R-DLT-06: what a record says alone."""
    record = table.record(number)
    if record.codec == CODEC_CHANGES and not table.blob.is_of_a_delta:
        raise table.violation("R-DLT-08", "changes, and no base", number, shard)
    if record.codec not in CODECS:
        raise table.violation("R-COD-01", f"codec {record.codec}", number, shard)
    if record.reserved or record.source:
        raise table.violation("R-REC-05", "reserved field or source blob is not zero", number, shard)
    text = f"stored length {record.stored} of {record.raw}"
    is_shorter = record.stored < record.raw <= limits.CODED_CHUNK_SIZE_MAX_BYTES
    if record.codec == CODEC_CHANGES:
        if not is_shorter or not isinstance(shard.owner, Tensor):
            raise table.violation("R-DLT-06", text, number, shard)
        return record
    if record.codec == CODEC_NONE:
        possible = record.stored == record.raw and record.stored_digest == NO_ID
    else:
        possible = is_shorter and record.stored
    if not possible:
        raise table.violation("R-REC-03", text, number, shard)
    return record


def check_place(table, shard, chunk, ordinal, previous_end):
    """R-REC-01, R-REC-02 and R-REC-04 of one chunk. An ordinal or an end that is not known is None."""
    number = shard.first + chunk
    record = table.record(number)
    if record.chunk != chunk or ordinal not in (None, record.ordinal):
        raise table.violation("R-REC-01", f"chunk {record.chunk} of shard {record.ordinal}", number, shard)
    chunk_size = shard.owner.chunk_size
    if record.raw != min(chunk_size, shard.raw_bytes - chunk * chunk_size):
        raise table.violation("R-REC-02", f"raw length {record.raw}", number, shard)
    multiple = alignment(shard) if chunk == 0 else 1
    in_area = HEADER_BYTES <= record.offset and record.offset + record.stored <= table.blob.table_offset
    expected = record.offset if previous_end is None else round_up(previous_end, multiple)
    if not in_area or record.offset % multiple or record.offset != expected:
        raise table.violation("R-REC-04", f"a chunk at {record.offset}", number, shard)


def read_chunk(directory, table, shard, chunk, base):
    """R-CHK-01, R-COD-02 to 08 or R-DLT-07 and R-DLT-05, R-CHK-02: the raw bytes of a chunk whose record is good.

    `base` is the load.Checkpoint of the base; None without one, or if it is bad: then changes are checked alone, and there
    are no raw bytes of them.
    """
    record = table.record(shard.first + chunk)
    name, owner = table.blob.name, shard.owner
    stored = read_exactly(directory, name, record.offset, record.stored)
    if record.codec != CODEC_NONE and digest(stored) != record.stored_digest:
        raise Violation("R-CHK-01", f"stored digest of chunk {chunk} differs", name, record.offset, owner.text)
    try:
        raw = _decode(table, shard, chunk, stored, base)
    except codec.NotDecodable as error:
        raise Violation(error.rule, str(error), name, record.offset, owner.text) from error
    except codec.NoLibrary:
        raise Violation(None, "cannot check: no zstd module", name, record.offset, owner.text, code="Unsupported") from None
    if raw is not None and digest(raw) != record.raw_digest:
        raise Violation("R-CHK-02", f"raw digest of chunk {chunk} differs", name, record.offset, owner.text)
    return raw


def _decode(table, shard, chunk, stored, base):
    record, owner = table.record(shard.first + chunk), shard.owner
    if record.codec != CODEC_CHANGES:
        return codec.decode(record.codec, stored, record.raw, owner.element_size)
    changes = ChangeList(stored, record.raw // owner.element_size, owner.element_size)
    if base is None:
        return None
    if not base.has(owner.text, owner.dtype, owner.element_size, owner.shape):
        raise table.violation("R-DLT-05", "not in the base with this dtype and shape", shard.first + chunk, shard)
    return changes.apply(base.region(owner.text, shard.chunk_region(chunk)))
