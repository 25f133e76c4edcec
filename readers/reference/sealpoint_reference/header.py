# SPDX-License-Identifier: Apache-2.0
"""The common file header (spec/container.md, section 2)."""

import struct

from . import limits
from .directory import read_exactly
from .registries import INCOMPAT_DELTAS, INCOMPAT_OF_A_DELTA, KIND_BLOB, KIND_INDEX, KIND_MARKER
from .rules import Violation
from .xxh3 import digest

MAGIC = b"\x89SPT\r\n\x1a\n"
FROZEN_PREFIX_BYTES = 56
HEADER_BYTES = 128
MARKER_BYTES = 512
_LENGTHS = {KIND_BLOB: HEADER_BYTES, KIND_INDEX: HEADER_BYTES, KIND_MARKER: MARKER_BYTES}
NO_STEP = 2**64 - 1
NO_ID = bytes(16)
_FORMAT_VERSION = 1
_DIGEST_AT = 40
_LAYOUT = struct.Struct("<8s4I2Q16s16s16sQ")


class Header:
    """The fields of a header of 128 bytes or more."""

    def __init__(self, data):
        (self.magic, self.kind, self.version, self.length, self.reserved, self.compat, self.incompat, self.digest,
         self.id, self.attempt, self.step) = _LAYOUT.unpack_from(data.ljust(_LAYOUT.size, b"\0"))
        self.reserved_at_end = data[96:min(HEADER_BYTES, self.length)]


def self_digest(data):
    return digest(data[:_DIGEST_AT] + bytes(16) + data[_DIGEST_AT + 16:])


def _read_whole(directory, name, size, kind):
    """R-HDR-01, R-HDR-02 or R-HDR-10, and R-HDR-03: all bytes of a header, whose length is still to be believed."""
    if size < FROZEN_PREFIX_BYTES:
        raise Violation("R-HDR-01", f"{size} bytes are not a header", name, 0)
    start = read_exactly(directory, name, 0, min(size, limits.HEADER_LENGTH_MAX_BYTES))
    if start[:8] != MAGIC:
        raise Violation("R-HDR-02" if kind == KIND_MARKER else "R-HDR-10", "another magic", name, 0)
    length = int.from_bytes(start[16:20], "little")
    if length % 8 or not limits.HEADER_LENGTH_MIN_BYTES <= length <= limits.HEADER_LENGTH_MAX_BYTES:
        raise Violation("R-HDR-03", f"header length {length}", name, 16)
    if size < length:
        raise Violation("R-HDR-01", f"a header of {length} bytes in a file of {size}", name, 16)
    return start[:length]


def read_header(directory, name, size, kind):
    """R-HDR-01 to 07; returns the header and its bytes."""
    data = _read_whole(directory, name, size, kind)
    header = Header(data)
    if header.digest != self_digest(data):
        raise Violation("R-HDR-04", "header digest differs", name, _DIGEST_AT)
    if header.version != _FORMAT_VERSION:
        raise Violation("R-HDR-05", f"format version {header.version}", name, 12)
    known = INCOMPAT_OF_A_DELTA if header.incompat & INCOMPAT_DELTAS else 0  # other codecs than that of deltas are not
    if header.incompat & ~known:
        raise Violation("R-HDR-05", f"incompat features {header.incompat:#x}", name, 32)
    if header.kind not in _LENGTHS:
        raise Violation("R-HDR-05", f"file kind {header.kind}", name, 8)
    if header.kind != kind:
        raise Violation("R-HDR-07", f"file kind {header.kind}", name, 8)
    if header.length != _LENGTHS[header.kind]:
        raise Violation("R-HDR-05", f"header length {header.length} in version 1", name, 16)
    if header.reserved:
        raise Violation("R-HDR-06", "reserved field is not zero", name, 20)
    if any(header.reserved_at_end):
        raise Violation("R-HDR-06", "reserved bytes are not zero", name, 96)
    return header, data


def read_index_header(directory, name, size, marker):
    """R-HDR-01 to 09 of an index."""
    header, _ = read_header(directory, name, size, KIND_INDEX)
    for at, found, pinned in ((56, header.id, marker.attempt), (72, header.attempt, marker.attempt),
                              (88, header.step, marker.step)):
        if found != pinned:
            raise Violation("R-HDR-08", "id, attempt tag or step is not the marker's", name, at)
    if (header.compat, header.incompat) != (marker.compat, marker.incompat):
        raise Violation("R-HDR-09", "feature masks are not the marker's", name, 24)
    return header


def read_blob_header(directory, name, size, pinned_digest):
    """R-BLB-03 (the digest that the trailer has), then R-HDR-01 to 07 of a blob."""
    stored = read_exactly(directory, name, _DIGEST_AT, len(pinned_digest))
    if stored != pinned_digest:
        raise Violation("R-BLB-03", f"header digest {stored.hex()}, the trailer has {pinned_digest.hex()}", name,
                        _DIGEST_AT)
    return read_header(directory, name, size, KIND_BLOB)[0]


def check_blob_header(header, name, blob_id, index_header):
    """R-HDR-08 and 09 of a blob. Its attempt tag and its step are not compared."""
    if header.id != blob_id:
        raise Violation("R-HDR-08", f"id {header.id.hex()}, expected that of the name", name, 56)
    if header.compat & ~index_header.compat or header.incompat & ~index_header.incompat:
        raise Violation("R-HDR-09", "a feature that the index does not have", name, 24)
