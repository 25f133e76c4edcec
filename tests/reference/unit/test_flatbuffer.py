# SPDX-License-Identifier: Apache-2.0
"""The FlatBuffers verifier and the walk over what it accepts."""

import struct
import unittest

import encode
from encode import List, Table, Text, Vector
from sealpoint_reference import flatbuffer, schema

TENSOR = 0
MANIFEST = schema.root(b"SPMF", 0, 0)


def manifest(change=None):
    """A manifest of one tensor of shape [2, 3] with one full shard."""
    boxes = Table([Vector("Q", [0, 0, 2, 3])])
    tensor = Table([Text(b"w"), Vector("Q", [2, 3]), None, boxes, Vector("II", [(0, 0)]), encode.u16(6), encode.u16(1),
                    encode.u8(12), List([Text(b"x"), Text(b"y")])])
    root = Table([List([tensor]), List([])])
    if change:
        change(root, tensor)
    return encode.flatbuffer(b"SPMF", root)


def read(buffer):
    return flatbuffer.read_root(memoryview(buffer), b"SPMF", MANIFEST)


class Walk(unittest.TestCase):
    def assert_malformed(self, buffer):
        with self.assertRaises(flatbuffer.Malformed):
            read(buffer)

    def test_reads_every_kind_of_field(self):
        tensor, = read(manifest()).tensors
        self.assertEqual((bytes(tensor.name), tensor.shape.decode(), tensor.grid), (b"w", [2, 3], None))
        self.assertEqual((tensor.boxes.boxes.decode(), tensor.boxes.runs), ([0, 0, 2, 3], None))
        self.assertEqual((tensor.shards.decode(), tensor.element_size, tensor.placement), ([(0, 0)], 1, [b"x", b"y"]))

    def test_refuses_another_identifier(self):
        with self.assertRaises(flatbuffer.Malformed):
            flatbuffer.read_root(memoryview(manifest()), b"SPIX", MANIFEST)

    def test_refuses_a_missing_required_field(self):
        self.assert_malformed(manifest(lambda root, tensor: tensor.fields.__setitem__(1, None)))

    def test_refuses_an_unknown_field(self):
        buffer = manifest(lambda root, tensor: tensor.fields.append(encode.u8(0)))
        with self.assertRaises(flatbuffer.UnknownField):
            read(buffer)

    def test_ignores_an_unknown_field_that_is_absent(self):
        read(manifest(lambda root, tensor: tensor.fields.append(None)))

    def test_refuses_a_string_without_terminator(self):
        buffer = bytearray(manifest())
        buffer[buffer.index(b"\x01\0\0\0w\0") + 5] = 1
        self.assert_malformed(bytes(buffer))

    def test_refuses_more_placements_than_dimensions_can_be(self):
        read(manifest(lambda root, tensor: tensor.fields.__setitem__(8, List([Text(b"x")] * 32))))
        self.assert_malformed(manifest(lambda root, tensor: tensor.fields.__setitem__(8, List([Text(b"x")] * 33))))

    def test_refuses_64_bit_numbers_that_are_not_aligned(self):
        buffer = manifest()
        shifted = bytearray(buffer[:8] + bytes(4) + buffer[8:])
        struct.pack_into("<I", shifted, 0, struct.unpack_from("<I", buffer)[0] + 4)
        self.assert_malformed(bytes(shifted))

    def test_counts_a_table_each_time_it_is_reached(self):
        buffer = bytearray(manifest(lambda root, tensor: root.fields[TENSOR].items.append(tensor)))
        verifier = flatbuffer.Verifier(buffer)
        verifier.tables_left = 4
        with self.assertRaises(flatbuffer.Malformed):
            verifier.verify_table(struct.unpack_from("<I", buffer)[0], MANIFEST, 1)
        verifier.tables_left = 5
        verifier.verify_table(struct.unpack_from("<I", buffer)[0], MANIFEST, 1)

    def test_any_byte_may_change_without_any_other_error(self):
        buffer = manifest()
        for at in range(len(buffer)):
            for value in (0, 1, 3, 0x7F, 0xFF):
                changed = buffer[:at] + bytes([value]) + buffer[at + 1:]
                try:
                    read(changed)
                except (flatbuffer.Malformed, flatbuffer.UnknownField):
                    continue

    def test_any_prefix_is_refused_without_any_other_error(self):
        buffer = manifest()
        for size in range(len(buffer) - 4):
            self.assert_malformed(buffer[:size])


if __name__ == "__main__":
    unittest.main()
