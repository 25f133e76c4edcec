# SPDX-License-Identifier: Apache-2.0
"""Codecs (spec/registries.md, "Codecs"; container.md, R-COD-02 to 08; delta.md, section 2)."""

import struct

from sealpoint_reference import zstd_library

CODEC_NONE, CODEC_ZSTD, CODEC_BYTESPLIT_ZSTD, CODEC_CHANGES = 0, 1, 2, 4
CODED_CHUNK_BYTES_MAX = 2**24
_BLOCK_BYTES = 2**17


def split_planes(data, element_size):
    """First bytes of all elements, then second bytes, and so on."""
    return b"".join(data[byte::element_size] for byte in range(element_size))


def change_list(raw, base, element_size):
    """Its sections: counts, gaps, and the changes byte by byte. There are none if the bytes are the same."""
    gaps, changes, behind = bytearray(), [], 0
    for at in range(0, len(raw), element_size):
        here, there = raw[at:at + element_size], base[at:at + element_size]
        if here != there:
            more, rest = divmod(at // element_size - behind, 255)
            gaps += b"\xff" * more + bytes([rest])
            changes.append([a ^ b for a, b in zip(here, there)])
            behind = at // element_size + 1
    return [struct.pack("<2I", len(changes), len(gaps)), bytes(gaps), *map(bytes, zip(*changes))] if changes else []


def plain_frame(sections):
    """A zstd frame that any machine can make: each section in blocks of its own, as it is."""
    blocks = [section[at:at + _BLOCK_BYTES] for section in sections for at in range(0, len(section), _BLOCK_BYTES)]
    headers = [(len(block) << 3 | (number == len(blocks) - 1)).to_bytes(3, "little") for number, block in enumerate(blocks)]
    start = b"\x28\xb5\x2f\xfd\xa0" + sum(map(len, sections)).to_bytes(4, "little")  # one segment, a size of 4 bytes
    return start + b"".join(header + block for header, block in zip(headers, blocks))


def encode_changes(raw, base, element_size):
    """As encode, of a chunk whose base bytes are known. Bytes of a list that is no shorter are stored as without a base."""
    sections = change_list(raw, base, element_size)
    compress = zstd_library.encoder()
    stored = compress(b"".join(sections)) if sections and compress else plain_frame(sections) if sections else b""
    return (CODEC_CHANGES, stored) if len(stored) < len(raw) else (CODEC_NONE, raw)


def encode(codec, raw, element_size):
    """The codec that a chunk gets in the end, and its stored bytes: what does not shrink is stored plain (R-REC-03).

    The frame is made in one call, which tells zstd the length before it starts: so it declares its content size, and its
    window is not larger than that needs (R-COD-03, R-COD-05). No dictionary, one frame.
    """
    if codec == CODEC_NONE or len(raw) > CODED_CHUNK_BYTES_MAX:
        return CODEC_NONE, raw
    compress = zstd_library.encoder()
    if compress is None:
        raise ValueError(f"codec {codec} needs a zstd library, which this machine does not have; codec 0 needs none")
    frame = compress(split_planes(raw, element_size) if codec == CODEC_BYTESPLIT_ZSTD else raw)
    return (codec, frame) if len(frame) < len(raw) else (CODEC_NONE, raw)
