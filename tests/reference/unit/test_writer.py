# SPDX-License-Identifier: Apache-2.0
"""The writer in Python: the worked examples, what README says, what it refuses, and its publication."""

import os
import pathlib
import re
import tempfile
import unittest
from unittest import mock

import in_memory
from sealpoint_reference.directory import PathDirectory
from sealpoint_reference.load import Checkpoint
from sealpoint_reference.rules import Violation
from sealpoint_reference.verify import verify_path
from sealpoint_writer import checkpoint, codec, layout, series
from sealpoint_writer.blob import Blob
from sealpoint_writer.items import Object, Region, Tensor
from sealpoint_writer.ranks import hold, write_blobs
from test_specification import dumped_files

README = pathlib.Path(__file__).resolve().parents[3] / "readers/reference/README.md"


class Examples(unittest.TestCase):
    """All bytes that the text shows, but for the FlatBuffers, whose fields a writer may put in any order."""

    def test_the_blob_up_to_its_manifest(self):
        shown = dict(dumped_files("container.md"))["01" * 16 + ".blob"]
        blob = Blob(b"\xa7" * 16, 42, identity=b"\1" * 16)
        blob.add(Tensor("w", (2, 2), 12, 4), bytes.fromhex("0000803f000000c00000003f00004040"))
        blob.add(Object("rng", "text/plain; charset=utf-8", 7), b"seed=42")
        data, summary = blob.finish()
        self.assertEqual(data[:0x1c0], shown[:0x1c0])
        self.assertEqual((data[0xf00:0xf50], summary.group_list_digest), (shown[0xf00:0xf50], shown[0xf60:0xf70]))

    def test_the_marker(self):
        files = dict(dumped_files("container.md"))
        attempt = b"\xa7" * 16
        self.assertEqual(layout.commit_marker(attempt, 42, files[attempt.hex() + ".index"], 1, 4096), files["COMMIT"])

    def test_the_void_marker(self):
        self.assertEqual(layout.void_marker(b"\xc9" * 16, 44), dict(dumped_files("example.md"))["void/COMMIT"])


class InAFolder(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="sealpoint-writer-")
        self.addCleanup(temporary.cleanup)
        self.folder = temporary.name
        self.path = os.path.join(self.folder, "made", "below")

    def rules(self, path):
        return [violation.rule for violation in verify_path(path).violations]


class Written(InAFolder):
    def test_what_readme_says(self):
        example, = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
        exec(example.replace('"runs/a"', repr(self.path)), {})  # pylint: disable=exec-used
        path, = (entry.path for entry in os.scandir(self.path))
        self.assertRegex(path, "/step-000000000042-[0-9a-f]{8}$")
        self.assertEqual(self.rules(path), [])
        self.assertEqual(Checkpoint(PathDirectory(path)).tensor("layers.0.weight"), bytes(4 * 8 * 2))

    def test_a_chunk_that_does_not_shrink_is_plain(self):
        self.assertEqual(codec.encode(codec.CODEC_ZSTD, b"abcdefgh", 1), (codec.CODEC_NONE, b"abcdefgh"))
        self.assertEqual(codec.encode(codec.CODEC_ZSTD, bytes(2**24 + 1), 1)[0], codec.CODEC_NONE)

    def test_without_zstd_a_codec_is_refused(self):
        with mock.patch("sealpoint_reference.zstd_library.encoder", return_value=None), self.assertRaisesRegex(
                ValueError, "codec 1 needs a zstd library"):
            codec.encode(codec.CODEC_ZSTD, bytes(100), 1)

    def test_a_replica_is_stored_by_the_rank_with_the_least(self):
        attempt = checkpoint.Attempt(self.path)
        large, small = in_memory.u8_tensor("large", 9), in_memory.u8_tensor("small", 2)
        first, second = write_blobs(attempt, [[hold(large, b"123456789"), hold(small, b"ab")], [hold(small, b"ab")]])
        self.assertEqual(([s.item for s in first.shards], [s.item for s in second.shards]), ([large], [small]))

    def test_the_newest_is_the_parent(self):
        first = series.begin(self.path, 10)
        first.commit([])
        second = series.begin(self.path, 5)
        second.commit([])
        third = series.begin(self.path, 7)
        self.assertEqual((first.parent, first.sequence), (bytes(16), 1))
        self.assertEqual((second.parent, second.sequence), (first.id, 2))
        self.assertEqual((third.parent, third.sequence), (second.id, 3))


class Refused(InAFolder):
    def commit(self, *blobs, **options):
        attempt = checkpoint.Attempt(self.path)
        attempt.commit([attempt.write(blob) for blob in blobs], **options)

    def halves(self, *regions):
        blob = Blob()
        for begin, end in regions:
            blob.add(in_memory.u8_tensor("w", 4), bytes(end - begin), Region((begin,), (end - begin,), 0, end - begin))
        return blob

    def test_regions_that_do_not_tile(self):
        for regions in (((0, 2),), ((0, 3), (2, 4))):
            with self.assertRaisesRegex(ValueError, "w: the element at .* is in [02] regions"):
                self.commit(self.halves(*regions))
        self.assertEqual(self.rules(self.path), ["R-MRK-01"])

    def test_too_many_corners(self):
        tensor = in_memory.u8_tensor("w", *[2] * 32)
        blob = Blob()
        blob.add(tensor, b"a", Region((0,) * 32, (2,) * 32, 0, 1))
        with self.assertRaisesRegex(ValueError, "limit of box lists"):
            self.commit(blob)

    def test_two_declarations(self):
        first, second = self.halves((0, 2)), Blob()
        second.add(in_memory.u8_tensor("w", 5), b"ab", Region((2,), (2,), 0, 2))
        with self.assertRaisesRegex(ValueError, "declared in two ways"):
            self.commit(first, second)

    def test_replicas_that_differ(self):
        tensor = in_memory.u8_tensor("w", 2)
        with self.assertRaisesRegex(ValueError, "w: ranks hold different bytes"):
            write_blobs(checkpoint.Attempt(self.path), [[hold(tensor, b"ab")], [hold(tensor, b"ac")]])

    def test_bytes_that_are_not_those_of_the_region(self):
        with self.assertRaisesRegex(ValueError, "w: 3 bytes of a region of 2 elements"):
            Blob().add(in_memory.u8_tensor("w", 2), b"abc")

    def test_declarations_that_no_reader_takes(self):
        for wrong in ({"name": ""}, {"name": "a\n"}, {"name": "é" * 513}, {"placement": ("",)}, {"dtype": 0},
                      {"element_size": 2}, {"dtype": 300, "element_size": 3}, {"shape": (1,) * 33},
                      {"shape": (2**62,), "element_size": 4, "dtype": 12}, {"chunk_size": 2**11}, {"chunk_size": 5000},
                      {"placement": ("x",) * 33}):
            with self.subTest(wrong), self.assertRaises(ValueError):
                Tensor(**{"name": "w", "shape": (2,), "dtype": 6, "element_size": 1, **wrong})
        for media_type in ("", "a" * 256):
            with self.subTest(media_type), self.assertRaises(ValueError):
                Object("o", media_type, 1)

    def test_provenance(self):
        for wrong in ({"sealpoint.x": ""}, {"": ""}, {"a": "b" * 65537}):
            with self.subTest(wrong), self.assertRaises(ValueError):
                self.commit(provenance=wrong)

    def test_a_blob_that_is_not_as_long_as_it_was_written(self):
        attempt = checkpoint.Attempt(self.path)
        summary = attempt.write(attempt.blob())
        os.truncate(os.path.join(self.path, f"{summary.id.hex()}.blob"), 100)
        with self.assertRaisesRegex(ValueError, "R-CMT-02"):
            attempt.commit([summary])

    def test_a_blob_with_features_that_the_attempt_lacks(self):
        with self.assertRaisesRegex(ValueError, "R-HDR-09"):
            self.commit(Blob(compat=1 << 60))

    def test_an_index_that_no_reader_takes(self):
        with mock.patch("sealpoint_writer.index.check_tiling"), self.assertRaisesRegex(Violation, "R-IDX-18"):
            self.commit(self.halves((0, 2), (1, 4)))
        self.assertEqual(self.rules(self.path), ["R-MRK-01"])

    def test_a_directory_with_a_marker(self):
        self.commit()
        with self.assertRaisesRegex(FileExistsError, "R-CMT-01"):
            checkpoint.Attempt(self.path)

    def test_a_series_with_a_marker_that_is_not_read(self):
        attempt = series.begin(self.path, 1)
        attempt.commit([])
        marker = os.path.join(attempt.directory, "COMMIT")
        for at, value, rule in ((12, 9, "R-HDR-05"), (0, 0, "R-HDR-02")):  # of another version; not a marker at all
            data = bytearray(pathlib.Path(marker).read_bytes())
            data[at] = value
            pathlib.Path(marker).write_bytes(layout.sealed(bytes(data)))
            with self.assertRaisesRegex(ValueError, f"{rule} .*nothing can be saved behind it"):
                series.begin(self.path, 2)

    def test_the_last_sequence(self):
        checkpoint.Attempt(os.path.join(self.path, "a"), 1, b"\1" * 16, 2**64 - 1).commit([])
        with self.assertRaisesRegex(ValueError, "the last one"):
            series.begin(self.path, 2)


class Publication(InAFolder):
    """Section 2.1 of commit.md: what COMMIT holds decides, and not the answer of the call."""

    def setUp(self):
        super().setUp()
        self.attempt = checkpoint.Attempt(self.path)

    def commit_with(self, link, unlink=os.unlink):
        with mock.patch("os.link", link), mock.patch("os.unlink", unlink):
            self.attempt.commit([])

    def fail(self, *_arguments):
        raise OSError("the request failed")

    def test_a_lost_reply_is_success(self):
        link = os.link

        def linked_and_lost(source, target):
            link(source, target)
            raise FileExistsError("sent again")

        self.commit_with(linked_and_lost)
        self.assertEqual((self.rules(self.path), len(os.listdir(self.path))), ([], 2))

    def test_nothing_there_is_failure(self):
        with self.assertRaisesRegex(OSError, "the request failed"):
            self.commit_with(self.fail)
        self.assertEqual(self.rules(self.path), ["R-MRK-01"])
        self.assertEqual([name[32:] for name in os.listdir(self.path)], [".index"])

    def test_another_marker_is_failure(self):
        checkpoint.publish_void(self.path)
        with self.assertRaisesRegex(FileExistsError, "R-CMT-01"):
            self.attempt.commit([])
        self.assertEqual(self.rules(self.path), ["R-MRK-09"])

    def test_it_is_unknown_while_the_request_may_still_find_the_marker(self):
        with self.assertRaises(checkpoint.OutcomeIsUnknown):
            self.commit_with(self.fail, self.fail)

    def test_it_is_unknown_without_the_sync(self):
        sync = checkpoint._sync

        def fail_behind_the_marker(path):
            if os.path.exists(os.path.join(path, "COMMIT")):
                raise OSError("no sync")
            sync(path)

        with mock.patch("sealpoint_writer.checkpoint._sync", fail_behind_the_marker), self.assertRaises(
                checkpoint.OutcomeIsUnknown):
            self.attempt.commit([])


if __name__ == "__main__":
    unittest.main()
