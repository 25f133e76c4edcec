# SPDX-License-Identifier: Apache-2.0
"""The commit marker (spec/container.md, section 3; order: reader-rules.md, section 3, steps 1 and 2)."""

import struct

from .directory import MARKER_NAME, violation_without_marker
from .header import HEADER_BYTES, MARKER_BYTES, NO_ID, read_header
from .registries import COMPAT_KNOWN, KIND_MARKER, MARKER_COMMIT, MARKER_VOID
from .rules import Violation

_LAYOUT = struct.Struct("<2I16s2Q16s2Q")
_RESERVED_AT, _EXTENSION_AT = 200, 256


class Marker:
    def __init__(self, header, data):
        self.attempt, self.step = header.id, header.step
        self.compat, self.incompat = header.compat, header.incompat
        self.tag = header.attempt
        (self.kind, self.reserved, self.parent, self.sequence, self.index_size, self.index_digest, self.blob_count,
         self.total_bytes) = _LAYOUT.unpack_from(data, HEADER_BYTES)

    @property
    def index_name(self):
        return f"{self.attempt.hex()}.index"


def _check_reserved(marker, data):
    if marker.reserved:
        raise Violation("R-HDR-06", "reserved field is not zero", MARKER_NAME, 132)
    if any(data[_RESERVED_AT:_EXTENSION_AT]):
        raise Violation("R-HDR-06", "reserved bytes are not zero", MARKER_NAME, _RESERVED_AT)
    if not marker.compat & ~COMPAT_KNOWN and any(data[_EXTENSION_AT:]):
        raise Violation("R-HDR-06", "an extension that no compat bit announces", MARKER_NAME, _EXTENSION_AT)


def _check_fields(marker):
    """R-MRK-04."""
    def require(holds, message, at):
        if not holds:
            raise Violation("R-MRK-04", message, MARKER_NAME, at)

    require(marker.attempt != NO_ID, "attempt id is zero", 56)
    if marker.kind == MARKER_VOID:
        pins = (marker.sequence, marker.index_size, marker.blob_count, marker.total_bytes)
        require(not any(pins) and marker.parent == NO_ID and marker.index_digest == NO_ID,
                "a void marker pins something", 136)
        return
    require(marker.parent != marker.attempt, "attempt is its own parent", 136)
    if marker.parent == NO_ID:
        require(marker.sequence == 1, f"sequence {marker.sequence} without a parent", 152)
    else:
        require(marker.sequence >= 2, f"sequence {marker.sequence} with a parent", 152)
    require(marker.index_size >= HEADER_BYTES, f"an index of {marker.index_size} bytes", 160)


def read_marker(directory):
    size = directory.size(MARKER_NAME)
    if size is None:
        raise violation_without_marker(directory)
    if size != MARKER_BYTES:
        raise Violation("R-MRK-02", f"{size} bytes instead of {MARKER_BYTES}", MARKER_NAME, 0)
    header, data = read_header(directory, MARKER_NAME, size, KIND_MARKER)
    marker = Marker(header, data)
    _check_reserved(marker, data)
    if marker.tag != marker.attempt:
        raise Violation("R-HDR-08", "attempt tag is not the id", MARKER_NAME, 72)
    if marker.kind not in (MARKER_COMMIT, MARKER_VOID):
        raise Violation("R-MRK-03", f"marker kind {marker.kind}", MARKER_NAME, 128)
    _check_fields(marker)
    if marker.kind == MARKER_VOID:
        raise Violation("R-MRK-09", "a void marker: there will never be a checkpoint here", MARKER_NAME, 128)
    return marker
