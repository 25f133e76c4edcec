# SPDX-License-Identifier: Apache-2.0
"""Codecs (spec/container.md, section 5, R-COD-02 to 08; registries.md, Codecs).

The frame is read here as far as the rules need it (RFC 8878, section 3.1.1); its blocks are decoded by a library.
Codec 4 is that of changes.py, which has its frames read here.
"""

from . import zstd_library
from .registries import CODEC_BYTESPLIT_ZSTD, CODEC_NONE

_MAGIC = b"\x28\xb5\x2f\xfd"
_WINDOW_MIN_BYTES = 1024
_BLOCK_SIZE_MAX_BYTES = 128 * 1024
_BLOCK_RLE, _BLOCK_RESERVED = 1, 3


class NotDecodable(Exception):
    def __init__(self, rule, message):
        super().__init__(message)
        self.rule = rule


class NoLibrary(Exception):
    """No zstd library was found: the bytes cannot be checked."""


def _require(holds, rule, message):
    if not holds:
        raise NotDecodable(rule, message)


class FrameHeader:
    """R-COD-02: magic, descriptor, window descriptor, dictionary id, content size."""

    def __init__(self, frame):
        _require(frame[:4] == _MAGIC, "R-COD-02", "not a zstd frame")
        _require(len(frame) > 4, "R-COD-02", "a frame header that is cut off")
        descriptor = frame[4]
        self.single_segment = descriptor >> 5 & 1
        self.has_checksum = descriptor >> 2 & 1
        dictionary_bytes = (0, 1, 2, 4)[descriptor & 3]
        content_size_bytes = (self.single_segment, 2, 4, 8)[descriptor >> 6]
        at_dictionary = 5 + (not self.single_segment)
        at_content_size = at_dictionary + dictionary_bytes
        self.length = at_content_size + content_size_bytes
        _require(not descriptor >> 3 & 1, "R-COD-02", "the reserved bit of the frame header is set")
        _require(len(frame) >= self.length, "R-COD-02", "a frame header that is cut off")
        self.has_dictionary = dictionary_bytes != 0
        self.content_size = None
        if content_size_bytes:
            size = int.from_bytes(frame[at_content_size:self.length], "little")
            self.content_size = size + 256 if content_size_bytes == 2 else size
        self.window = self.content_size if self.single_segment else _window(frame[5])


def _window(descriptor):
    base = 1 << 10 + (descriptor >> 3)
    return base + base // 8 * (descriptor & 7)


def _frame_end(frame, header):
    """R-COD-06: after the last block and the checksum, found by the headers of the blocks."""
    at = header.length
    size_max = min(header.window, _BLOCK_SIZE_MAX_BYTES)
    last = False
    while not last:
        _require(at + 3 <= len(frame), "R-COD-06", "the frame is cut off")
        block = int.from_bytes(frame[at:at + 3], "little")
        last, kind, size = block & 1, block >> 1 & 3, block >> 3
        _require(kind != _BLOCK_RESERVED, "R-COD-06", "a block of the reserved type")
        _require(size <= size_max, "R-COD-06", f"a block of {size} bytes, at most {size_max}")
        at += 3 + (1 if kind == _BLOCK_RLE else size)
    return at + 4 * header.has_checksum


def check_frame(frame, raw_length):
    """R-COD-02 to 06 and 08."""
    header = FrameHeader(frame)
    _require(header.content_size == raw_length, "R-COD-03", f"content size {header.content_size}, not {raw_length}")
    check_declared(frame, header)
    _require(len(frame) < raw_length, "R-COD-08", "no shorter than the raw bytes")


def check_declared(frame, header):
    """R-COD-04 to 06 of a frame that declares its content size."""
    _require(not header.has_dictionary, "R-COD-04", "a field for a dictionary")
    window_max = max(_WINDOW_MIN_BYTES, 1 << (header.content_size - 1).bit_length())
    _require(header.window <= window_max, "R-COD-05", f"a window of {header.window}, at most {window_max}")
    end = _frame_end(frame, header)
    _require(end <= len(frame), "R-COD-06", "the frame is cut off")
    _require(end == len(frame), "R-COD-06", f"{len(frame) - end} bytes after the frame")


def join_planes(data, element_size):
    """The inverse of the split: first bytes of all elements, then second bytes, ..., then the rest as it is."""
    count = len(data) // element_size
    joined = bytearray(data)
    for plane in range(element_size):
        joined[plane:count * element_size:element_size] = data[plane * count:(plane + 1) * count]
    return bytes(joined)


def decode_frame(frame, length):
    """R-COD-07: the content, of this length, of a frame that passed the other checks."""
    decompress = zstd_library.decoder()
    if decompress is None:
        raise NoLibrary
    try:
        data = decompress(bytes(frame), length)
    except zstd_library.Undecodable as error:
        raise NotDecodable("R-COD-07", str(error)) from error
    _require(len(data) == length, "R-COD-07", f"{len(data)} bytes instead of {length}")
    return data


def decode(codec, stored, raw_length, element_size):
    """The raw bytes of a chunk of codec 0, 1 or 2."""
    if codec == CODEC_NONE:
        return stored
    check_frame(stored, raw_length)
    data = decode_frame(stored, raw_length)
    return join_planes(data, element_size) if codec == CODEC_BYTESPLIT_ZSTD else data
