# SPDX-License-Identifier: Apache-2.0
"""Codecs (spec/registries.md, "Codecs"; container.md, R-COD-02 to 08)."""

from sealpoint_reference import zstd_library

CODEC_NONE, CODEC_ZSTD, CODEC_BYTESPLIT_ZSTD = 0, 1, 2
_CODED_CHUNK_BYTES_MAX = 2**24


def split_planes(data, element_size):
    """First bytes of all elements, then second bytes, and so on."""
    return b"".join(data[byte::element_size] for byte in range(element_size))


def encode(codec, raw, element_size):
    """The codec that a chunk gets in the end, and its stored bytes: what does not shrink is stored plain (R-REC-03).

    The frame is made in one call, which tells zstd the length before it starts: so it declares its content size, and its
    window is not larger than that needs (R-COD-03, R-COD-05). No dictionary, one frame.
    """
    if codec == CODEC_NONE or len(raw) > _CODED_CHUNK_BYTES_MAX:
        return CODEC_NONE, raw
    compress = zstd_library.encoder()
    if compress is None:
        raise ValueError(f"codec {codec} needs a zstd library, which this machine does not have; codec 0 needs none")
    frame = compress(split_planes(raw, element_size) if codec == CODEC_BYTESPLIT_ZSTD else raw)
    return (codec, frame) if len(frame) < len(raw) else (CODEC_NONE, raw)
