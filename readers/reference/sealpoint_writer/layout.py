# SPDX-License-Identifier: Apache-2.0
"""The bytes of header, marker, record and trailer (spec/container.md, sections 2, 3 and 5)."""

import struct

from sealpoint_reference.xxh3 import digest

MAGIC = b"\x89SPT\r\n\x1a\n"
TRAILER_MAGIC = b"\x89SPB\r\n\x1a\n"
FORMAT_VERSION = 1
KIND_BLOB, KIND_INDEX, KIND_MARKER = 1, 2, 3
MARKER_COMMIT, MARKER_VOID = 1, 2
DIGEST_XXH3_128 = 1
HEADER_BYTES, MARKER_BYTES, TRAILER_BYTES, RECORD_BYTES, PAGE_BYTES = 128, 512, 256, 64, 4096
RECORDS_PER_GROUP = 64
NO_ID = bytes(16)
NO_STEP = 2**64 - 1


def round_up(value, multiple):
    return -(-value // multiple) * multiple


def padded(data, multiple):
    return data + bytes(-len(data) % multiple)


def header(kind, length, identity, tag, step, compat=0, incompat=0):
    """The first 128 bytes. `sealed` sets the digest, once all bytes that it covers are there."""
    return MAGIC + struct.pack("<4I2Q16s16s16sQ32s", kind, FORMAT_VERSION, length, 0, compat, incompat, bytes(16), identity, tag,
                               step, bytes(32))


def sealed(data):
    """The header digest, bytes 40 to 55, is over the whole header with these bytes as zero."""
    length = int.from_bytes(data[16:20], "little")
    data = bytearray(data)
    data[40:56] = bytes(16)
    data[40:56] = digest(data[:length])
    return bytes(data)


def commit_marker(attempt, step, index, blob_count, total_bytes, parent=NO_ID, sequence=1, compat=0, incompat=0):
    return sealed(header(KIND_MARKER, MARKER_BYTES, attempt, attempt, step, compat, incompat) + struct.pack(
        "<2I16s2Q16s2Q312s", MARKER_COMMIT, 0, parent, sequence, len(index), digest(index), blob_count, total_bytes,
        bytes(312)))


def void_marker(attempt, step):
    """The attempt is a fresh id, never that of the attempt that is barred."""
    return sealed(header(KIND_MARKER, MARKER_BYTES, attempt, attempt, step) + struct.pack(
        "<I380s", MARKER_VOID, bytes(380)))


def record(offset, stored, raw, ordinal, chunk, codec):
    """Describes a chunk that is stored as these bytes; the stored digest is zero without a codec."""
    return struct.pack("<Q4I2HI16s16s", offset, len(stored), len(raw), ordinal, chunk, codec, 0, 0, digest(raw),
                       digest(stored) if codec else bytes(16))
