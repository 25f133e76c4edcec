# SPDX-License-Identifier: Apache-2.0
"""Whole checkpoints in memory: what is encoded is accepted and loaded, and what a read does not touch is not checked."""

import unittest

import encode
from sealpoint_reference.directory import MemoryDirectory
from sealpoint_reference.load import Checkpoint
from sealpoint_reference.rules import Violation
from sealpoint_reference.verify import verify

BLOB = "01" * 16 + ".blob"


def state():
    """A tensor of three chunks in one shard, one of bricks in two blobs, empty ones, and objects."""
    long = bytes(i * 7 % 251 for i in range(10000))
    bricks = [encode.Shard(0, (0, 0), (2, 1), b"ae"), encode.Shard(1, (0, 1), (1, 3), b"bcd"),
              encode.Shard(0, (1, 1), (1, 3), b"fgh")]
    tensors = [encode.Tensor(b"bricks", (2, 4), bricks), encode.Tensor(b"empty", (0, 2), []),
               encode.Tensor(b"long", (100, 100), [encode.Shard(0, (0, 0), (100, 100), long)],
                             grid=([], [0, 0], None, None))]
    objects = [encode.Object(b"nothing", b""), encode.Object(b"rng", b"seed=42", blob=1)]
    return long, tensors, objects


def rules(files):
    return [violation.rule for violation in verify(MemoryDirectory(files)).violations]


class Checkpoints(unittest.TestCase):
    def setUp(self):
        self.long, self.tensors, self.objects = state()
        self.files = encode.checkpoint(self.tensors, self.objects, blob_count=2)

    def damage(self, at):
        data = bytearray(self.files[BLOB])
        data[at] ^= 1
        return MemoryDirectory({**self.files, BLOB: bytes(data)})

    def chunk_offset(self, name, chunk):
        checkpoint = Checkpoint(MemoryDirectory(self.files))
        tensor = checkpoint.tensors[name]
        table = checkpoint._table(tensor.refs[0][0])
        return table.record(tensor.refs[0][1] + chunk).offset

    def test_accepts_what_was_encoded(self):
        self.assertEqual(rules(self.files), [])

    def test_loads_what_was_encoded(self):
        checkpoint = Checkpoint(MemoryDirectory(self.files))
        self.assertEqual(checkpoint.tensor("bricks"), b"abcdefgh")
        self.assertEqual(checkpoint.tensor("long"), self.long)
        self.assertEqual(checkpoint.tensor("empty"), b"")
        self.assertEqual(checkpoint.object("rng"), b"seed=42")
        self.assertEqual(checkpoint.object("nothing"), b"")

    def test_loads_any_box(self):
        checkpoint = Checkpoint(MemoryDirectory(self.files))
        self.assertEqual(checkpoint.box("bricks", (1, 0), (1, 2)), b"ef")
        for top, left, rows, columns in ((0, 0, 1, 1), (40, 90, 3, 10), (99, 0, 1, 100), (3, 5, 60, 1)):
            wanted = b"".join(self.long[row * 100 + left:row * 100 + left + columns] for row in range(top, top + rows))
            self.assertEqual(checkpoint.box("long", (top, left), (rows, columns)), wanted)

    def test_a_box_touches_only_its_chunks(self):
        damaged = Checkpoint(self.damage(self.chunk_offset("long", 1)))
        self.assertEqual(damaged.box("long", (0, 0), (40, 100)), self.long[:4000])
        self.assertEqual(damaged.box("long", (90, 0), (10, 100)), self.long[9000:])
        with self.assertRaises(Violation) as caught:
            damaged.box("long", (40, 0), (1, 100))
        self.assertEqual(caught.exception.rule, "R-CHK-02")

    def test_every_byte_of_a_blob_is_checked(self):
        size = len(self.files[BLOB])
        for at in [*range(0, 300), *range(300, size - 256, 61), *range(size - 256, size)]:
            self.assertNotEqual(verify(self.damage(at)).violations, [], at)

    def test_lists_the_violations_of_several_blobs(self):
        other = "02" * 16 + ".blob"
        files = {**self.files, BLOB: self.damage(5000)._files[BLOB], other: self.files[other][:-1]}
        self.assertEqual(sorted(rules(files)), ["R-BLB-01", "R-CHK-02"])

    def test_a_manifest_may_leave_no_empty_tensor_out(self):
        def drop_empty(root):
            tensors = root.fields[0].items
            tensors[:] = [tensor for tensor in tensors if tensor.fields[0].data != b"empty"]

        files = encode.checkpoint(*state()[1:], blob_count=2, change_manifest=drop_empty)
        self.assertEqual(rules(files), ["R-BLB-07"])

    def with_compat(self, extension=b""):
        """Compat bit 5 in index and marker; the marker ends with these bytes."""
        index_name = f"{encode.ATTEMPT.hex()}.index"
        index, marker = bytearray(self.files[index_name]), bytearray(self.files["COMMIT"])
        index[24] = marker[24] = 1 << 5
        index[:128] = encode.seal_header(bytes(index[:128]))
        marker[168:184] = encode.digest(bytes(index))
        marker[512 - len(extension):] = extension
        return {**self.files, index_name: bytes(index), "COMMIT": encode.seal_header(bytes(marker))}

    def test_only_a_compat_bit_allows_an_extension(self):
        self.assertEqual(rules(self.with_compat(b"x" * 256)), [])
        self.assertEqual(rules(self.with_compat(b"x" * 257)), ["R-HDR-06"])
        marker = self.files["COMMIT"][:-1] + b"x"
        self.assertEqual(rules({**self.files, "COMMIT": encode.seal_header(marker)}), ["R-HDR-06"])

    def test_the_kind_comes_before_the_length_of_a_header(self):
        marker = bytearray(self.files["COMMIT"])
        marker[8] = 2
        self.assertEqual(rules({**self.files, "COMMIT": encode.seal_header(bytes(marker))}), ["R-HDR-07"])

    def test_element_sizes(self):
        for dtype, size, found in ((6, 2, ["R-IDX-09"]), (0, 3, ["R-IDX-09"]), (999, 3, ["R-IDX-24"]),
                                   (999, 512, ["R-IDX-24"]), (999, 0, ["R-IDX-24"]), (999, 256, [])):
            tensor = encode.Tensor(b"w", (2,), [encode.Shard(0, (0,), (2,), bytes(2 * size) or b"x")], dtype, size,
                                   grid=([], [0], None, None))
            self.assertEqual(rules(encode.checkpoint([tensor])), found, (dtype, size))

    def test_provenance_values_are_utf_8(self):
        for value, found in ((b"", []), (b"\0\n\xc2\x80", []), (b"\xff", ["R-IDX-05"]), (b"\xed\xa0\x80", ["R-IDX-05"])):
            def add(root, value=value):
                root.fields[7] = encode.List([encode.Table([encode.Text(b"x.k"), encode.Text(value)])])

            self.assertEqual(rules(encode.checkpoint(change_index=add)), found, value)

    def test_kinds_of_files_that_are_not_known_are_noted(self):
        known, foreign = "ab" * 16 + ".sig", "ab" * 16 + ".sig.json"
        notes = verify(MemoryDirectory({**self.files, known: b"xyz", foreign: b""})).notes
        self.assertEqual(notes, [f"of an unknown kind, not checked, 3 bytes: {known}", f"foreign, not checked: {foreign}"])
        self.assertEqual(rules({known: b""}), ["R-DIR-05"])

    def test_the_table_of_no_record_begins_behind_the_header(self):
        empty = [encode.Tensor(b"w", (0,), [])]
        self.assertEqual(rules(encode.checkpoint(empty)), [])

        def move(root):
            root.fields[2].items[0].fields[2] = encode.u64(192)

        self.assertEqual(rules(encode.checkpoint(empty, change_index=move)), ["R-IDX-21"])

    def test_no_directory_and_no_checkpoint(self):
        self.assertEqual(rules({}), ["R-DIR-05"])
        self.assertEqual(rules({BLOB: b""}), ["R-MRK-01"])


if __name__ == "__main__":
    unittest.main()
