# SPDX-License-Identifier: Apache-2.0
"""Frames of zstd: what the rules say of them before and after they are decoded."""

import unittest

from sealpoint_reference import codec, zstd_library

MAGIC = b"\x28\xb5\x2f\xfd"
SINGLE_SEGMENT = 0x20


def block(kind, size, content, last=True):
    return (size << 3 | kind << 1 | last).to_bytes(3, "little") + content


def frame(content_size=200, descriptor=SINGLE_SEGMENT, between=b"", blocks=None):
    """By default one RLE block: 200 bytes of value 9."""
    if blocks is None:
        blocks = block(1, content_size, b"\x09")
    return MAGIC + bytes([descriptor]) + between + bytes([content_size]) + blocks


class Codec(unittest.TestCase):
    def rule_of(self, stored, raw_length=200):
        try:
            codec.check_frame(stored, raw_length)
        except codec.NotDecodable as error:
            return error.rule
        return None

    def test_accepts_a_whole_frame(self):
        self.assertIsNone(self.rule_of(frame()))

    def test_needs_a_frame_header(self):
        for stored in (b"", MAGIC, frame()[:5], b"\x50\x2a\x4d\x18" + bytes(8), frame(descriptor=SINGLE_SEGMENT | 8)):
            self.assertEqual(self.rule_of(stored), "R-COD-02", stored)

    def test_needs_the_content_size(self):
        self.assertEqual(self.rule_of(frame(), 201), "R-COD-03")
        self.assertEqual(self.rule_of(MAGIC + b"\x00\x00" + block(1, 200, b"\x09")), "R-COD-03")

    def test_adds_256_to_a_content_size_of_two_bytes(self):
        stored = MAGIC + bytes([SINGLE_SEGMENT | 0x40]) + (44).to_bytes(2, "little") + block(1, 300, b"\x09")
        self.assertIsNone(self.rule_of(stored, 300))

    def test_refuses_a_dictionary(self):
        self.assertEqual(self.rule_of(frame(descriptor=SINGLE_SEGMENT | 1, between=b"\0")), "R-COD-04")

    def test_bounds_the_window(self):
        def windowed(descriptor):
            return MAGIC + b"\x40" + bytes([descriptor]) + (4096 - 256).to_bytes(2, "little") + block(1, 4096, b"\x09")

        self.assertIsNone(self.rule_of(windowed(2 << 3), 4096))
        self.assertEqual(self.rule_of(windowed(2 << 3 | 1), 4096), "R-COD-05")

    def test_needs_exactly_one_whole_frame(self):
        reserved = frame(blocks=block(3, 1, b"\x09"))
        for stored in (frame()[:-1], frame()[:-2], frame() + b"\0", frame() + frame(), reserved):
            self.assertEqual(self.rule_of(stored), "R-COD-06", stored)

    def test_bounds_blocks_by_the_window(self):
        def two_blocks(first):
            return MAGIC + b"\x40\x00" + (1500 - 256).to_bytes(2, "little") + block(1, first, b"\x09", last=False) + block(
                1, 1500 - first, b"\x09")

        def one_block(size):
            return MAGIC + bytes([SINGLE_SEGMENT | 0x80]) + size.to_bytes(4, "little") + block(1, size, b"\x09")

        self.assertIsNone(self.rule_of(two_blocks(1024), 1500))
        self.assertEqual(self.rule_of(two_blocks(1025), 1500), "R-COD-06")
        self.assertIsNone(self.rule_of(one_block(2**17), 2**17))
        self.assertEqual(self.rule_of(one_block(2**17 + 1), 2**17 + 1), "R-COD-06")

    def test_needs_to_be_shorter_than_the_raw_bytes(self):
        self.assertEqual(self.rule_of(frame(5), 5), "R-COD-08")

    def test_joins_the_planes_of_elements(self):
        self.assertEqual(codec.join_planes(b"acebdfx", 2), b"abcdefx")
        self.assertEqual(codec.join_planes(b"aebfcgdhz", 4), b"abcdefghz")
        self.assertEqual(codec.join_planes(b"abc", 1), b"abc")
        self.assertEqual(codec.join_planes(b"abc", 8), b"abc")

    @unittest.skipIf(zstd_library.decoder() is None, "no zstd library on this machine")
    def test_decodes_to_exactly_the_raw_length(self):
        self.assertEqual(codec.decode(1, frame(), 200, 1), b"\x09" * 200)
        for size in (199, 201):
            with self.assertRaises(codec.NotDecodable) as caught:
                codec.decode(1, frame(blocks=block(1, size - 1, b"\x09", last=False) + block(0, 1, b"\x09")), 200, 1)
            self.assertEqual(caught.exception.rule, "R-COD-07")


if __name__ == "__main__":
    unittest.main()
