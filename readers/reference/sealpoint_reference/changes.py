# SPDX-License-Identifier: Apache-2.0
"""Codec 4: the change list of a chunk, and what it makes of the base bytes (spec/delta.md, section 2; R-DLT-07)."""

import struct

from .codec import FrameHeader, NotDecodable, check_declared, decode_frame

_COUNTS = struct.Struct("<2I")
_GAP_STEP = 255


def _require(holds, message):
    if not holds:
        raise NotDecodable("R-DLT-07", message)


def _content(stored, count, element_size):
    """R-COD-02, R-COD-04 to 07: the change list. Its length is bounded by the chunk before a byte is decoded."""
    header = FrameHeader(stored)
    longest = _COUNTS.size + count + count // _GAP_STEP + count * element_size
    is_possible = header.content_size is not None and _COUNTS.size < header.content_size <= longest
    _require(is_possible, f"content size {header.content_size}, at most {longest}")
    check_declared(stored, header)
    return decode_frame(stored, header.content_size)


def _positions(gaps, count):
    """Of each entry the element that it changes."""
    at = 0
    found = []
    for gap in gaps:
        at += gap
        if gap < _GAP_STEP:
            found.append(at)
            at += 1
    _require(gaps[-1] < _GAP_STEP, "the gaps end within one")
    _require(at <= count, f"an entry for element {at - 1} of {count}")
    return found


class ChangeList:
    """The list of a chunk with `count` elements; without stored bytes it is empty."""

    def __init__(self, stored, count, element_size):
        self._element_size = element_size
        self._positions, self._changes = (), b""
        if not stored:
            return
        content = _content(stored, count, element_size)
        entry_count, gap_bytes = _COUNTS.unpack_from(content)
        _require(1 <= entry_count <= count, f"{entry_count} entries in a chunk of {count} elements")
        _require(entry_count <= gap_bytes <= entry_count + count // _GAP_STEP, f"{gap_bytes} bytes of gaps")
        changes_at = _COUNTS.size + gap_bytes
        _require(len(content) == changes_at + entry_count * element_size, f"a list of {len(content)} bytes")
        gaps = content[_COUNTS.size:changes_at]
        _require(gap_bytes - gaps.count(_GAP_STEP) == entry_count, f"gaps of another number than {entry_count}")
        self._positions, self._changes = _positions(gaps, count), content[changes_at:]

    def apply(self, base):
        """The raw bytes of the chunk, given the base bytes."""
        data = bytearray(base)
        count = len(self._positions)
        for byte in range(self._element_size):
            for position, change in zip(self._positions, self._changes[byte * count:(byte + 1) * count]):
                data[position * self._element_size + byte] ^= change
        return bytes(data)
