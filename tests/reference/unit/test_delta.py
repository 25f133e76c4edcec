# SPDX-License-Identifier: Apache-2.0
"""Deltas of the writer in Python, as the reader reads them; change lists, good and hostile; bases that are not there."""

import contextlib
import io
import os
import pathlib
import random
import shutil
import sys
import tempfile
import tracemalloc
import unittest
from unittest import mock

from sealpoint_reference import __main__ as program
from sealpoint_reference import zstd_library
from sealpoint_reference.changes import ChangeList
from sealpoint_reference.codec import NotDecodable
from sealpoint_reference.content import checkpoint_digest
from sealpoint_reference.directory import PathDirectory, read_exactly
from sealpoint_reference.load import Checkpoint
from sealpoint_reference.rules import Violation
from sealpoint_reference.verify import verify_path
from sealpoint_writer import checkpoint, series
from sealpoint_writer.codec import CODEC_CHANGES, change_list, encode_changes, plain_frame
from sealpoint_writer.items import Object, Region, Tensor
from sealpoint_writer.ranks import hold, write_blobs

sys.path.append(str(pathlib.Path(__file__).parents[1]))
import writer_cases  # noqa: E402

HAS_ZSTD = zstd_library.decoder() is not None


def frame_of_runs(content, declared=None, repeat=1):
    """One segment; each byte of the content in a block of its own that repeats it."""
    blocks = b"".join((repeat << 3 | 2 | (at == len(content) - 1)).to_bytes(3, "little") + content[at:at + 1]
                      for at in range(len(content)))
    size = len(content) * repeat if declared is None else declared
    return b"\x28\xb5\x2f\xfd\xa0" + size.to_bytes(4, "little") + blocks


@unittest.skipUnless(HAS_ZSTD, "no zstd library on this machine")
class Lists(unittest.TestCase):
    def test_what_the_text_says(self):
        base, raw = bytes(2000), bytearray(2000)
        raw[0:2], raw[514:516], raw[1998:2000] = b"\1\2", b"\0\3", b"\4\0"  # elements 0, 257 and 999
        self.assertEqual(change_list(bytes(raw), base, 2),
                         [b"\3\0\0\0\6\0\0\0", b"\0\xff\1\xff\xff\xe7", b"\1\0\4", b"\2\3\0"])

    def test_a_list_makes_the_bytes_of_the_base_bytes(self):
        generator = random.Random(1)
        for size in (1, 2, 8, 16):
            for encoder in (zstd_library.encoder(), None):
                base = generator.randbytes(4096 * size)
                raw = writer_cases.changed(generator, base, size)
                with mock.patch("sealpoint_reference.zstd_library.encoder", return_value=encoder):
                    codec, stored = encode_changes(raw, base, size)
                found = ChangeList(stored, 4096, size).apply(base) if codec == CODEC_CHANGES else stored
                self.assertEqual(found, raw)

    def test_random_bytes_in_a_list_are_corrupt_or_a_list(self):
        generator = random.Random(2)
        good = b"".join(change_list(bytes(99) + b"\1" + bytes(399) + b"\2" + bytes(100), bytes(600), 1))
        for _ in range(3000):
            content = bytearray(good)
            for _ in range(generator.randint(1, 3)):
                content[generator.randrange(len(content))] = generator.choice((0, 1, 254, 255, generator.randrange(256)))
            try:
                found = ChangeList(frame_of_runs(bytes(content)), 600, 1).apply(bytes(600))
            except NotDecodable as error:
                self.assertEqual(error.rule, "R-DLT-07")
            else:
                self.assertLessEqual(len(found) - found.count(0), 2)

    def test_memory_is_bounded_by_the_chunk(self):
        """Frames of some kilobytes that claim, or have, far more than a list of 1024 elements can have."""
        tracemalloc.start()
        self.addCleanup(tracemalloc.stop)
        for frame in (frame_of_runs(b"\1" * 3, 2**32 - 1), frame_of_runs(b"\1" * 3000, 5132, 2**12),
                      frame_of_runs(b"\1" * 3000, repeat=2**17)):
            with self.assertRaises(NotDecodable):
                ChangeList(frame, 1024, 4)
        self.assertLess(tracemalloc.get_traced_memory()[1], 2**21)


class InAFolder(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="sealpoint-delta-")
        self.addCleanup(temporary.cleanup)
        self.folder = temporary.name
        self.tensor = Tensor("w", (4, 500), 12, 4, 4096)
        self.bytes = [random.Random(3).randbytes(8000)]

    def save(self, folder="s", base=None, data=None, regions=(None,)):
        """The bytes as a checkpoint of a series."""
        data = self.bytes[-1] if data is None else data
        attempt = series.begin(f"{self.folder}/{folder}", 7, base=base)
        parts = [hold(self.tensor, writer_cases.region_bytes((4, 500), 4, data, region) if region else data, region,
                      CODEC_CHANGES) for region in regions]
        attempt.commit(write_blobs(attempt, [parts + [hold(Object("o", "text/plain", 4), b"abcd", codec=CODEC_CHANGES)]]))
        return attempt.directory

    def save_delta(self, base, **options):
        """A tenth of the elements differs."""
        data = bytearray(self.bytes[-1])
        for at in range(0, 8000, 40):
            data[at] ^= 1
        self.bytes.append(bytes(data))
        return self.save(base=base, **options)

    def rules(self, path, **options):
        return [(violation.rule, violation.file) for violation in verify_path(path, **options).violations]


@unittest.skipUnless(HAS_ZSTD, "no zstd library on this machine")
class Deltas(InAFolder):
    def test_a_chain_is_read_along(self):
        columns = [Region((0, at), (4, 250), 0, 1000) for at in (0, 250)]
        runs = [Region((0, 0), (4, 500), *run) for run in ((0, 700), (700, 2000))]
        path = self.save()
        for regions in (columns, runs, columns, (None,)):
            path = self.save_delta(path, regions=regions)
            self.assertEqual(self.rules(path, fingerprints=True), [])
            opened = Checkpoint(PathDirectory(path))
            self.assertEqual(opened.tensor("w"), self.bytes[-1])
            self.assertEqual(opened.box("w", (3, 100), (1, 300)), self.bytes[-1][6400:7600])
        self.assertEqual(opened.index.depth, 4)
        sizes = [os.path.getsize(f"{path}/{blob.name}") for blob in opened.index.blobs]
        self.assertEqual(sizes, [4096])

    def test_no_chunk_of_a_base_is_decoded_twice(self):
        """Else a chain whose levels are cut by rows and by columns in turns costs a power of its depth."""
        (_, path) = writer_cases.write_deep_chain(self.folder, 6)[-1]
        with mock.patch("sealpoint_reference.records.read_exactly", wraps=read_exactly) as read:
            self.assertEqual(self.rules(path), [])
        self.assertLess(read.call_count, 120)

    def test_random_chains(self):
        for number in range(6):
            for case, path in writer_cases.write_chain(number, f"{self.folder}/{number}"):
                report = verify_path(path, fingerprints=True)
                self.assertEqual(report.violations, [], (number, path))
                self.assertEqual(checkpoint_digest(Checkpoint(PathDirectory(path))), case.digest())

    def test_a_base_elsewhere_has_to_be_named(self):
        base = self.save("other")
        path = self.save_delta(base)
        self.assertEqual([rule for rule, _ in self.rules(path)], ["R-DLT-03"])
        with contextlib.redirect_stdout(io.StringIO()) as out:
            self.assertEqual(program.main(["verify", path]), 5)
            self.assertEqual(program.main(["verify", path, "--base", base]), 0)
            self.assertEqual(program.main(["digest", path, "--base", base]), 0)
        self.assertIn("spc1:", out.getvalue())
        blob = next(name for name in os.listdir(base) if name.endswith(".blob"))
        os.truncate(f"{base}/{blob}", 4095)
        with contextlib.redirect_stdout(io.StringIO()) as out:
            self.assertEqual(program.main(["verify", path, "--base", base]), 5)
        self.assertIn(f"R-BLB-01 {base}/{blob}", out.getvalue())

    def test_a_link_finds_the_base_beside_what_it_leads_to(self):
        path = self.save_delta(self.save())
        os.symlink(path, f"{self.folder}/best")
        self.assertEqual(self.rules(f"{self.folder}/best"), [])

    def test_the_base_of_a_base_is_missing(self):
        first = self.save()
        second = self.save_delta(first)
        third = self.save_delta(second)
        shutil.rmtree(first)
        self.assertEqual(self.rules(third), [("R-DLT-03", f"../{os.path.basename(first)}")])

    def test_another_base_in_its_place(self):
        base = self.save()
        path = self.save_delta(base)
        other = self.save(data=bytes(8000))
        shutil.rmtree(base)
        os.rename(other, base)
        self.assertEqual([rule for rule, _ in self.rules(path)], ["R-DLT-04"])

    def test_what_a_read_does_not_touch_may_be_damaged(self):
        base = self.save()
        path = self.save_delta(base)
        blob = pathlib.Path(base, next(name for name in os.listdir(base) if name.endswith(".blob")))
        data = bytearray(blob.read_bytes())
        data[4100] ^= 1  # of the first chunk, behind the header
        blob.write_bytes(data)
        opened = Checkpoint(PathDirectory(path))
        self.assertEqual(opened.box("w", (3, 0), (1, 500)), self.bytes[-1][6000:])
        with self.assertRaisesRegex(Violation, "R-CHK-02 ../step-"):
            opened.tensor("w")

    def test_a_base_is_kept(self):
        base = self.save()
        self.save_delta(base)
        self.assertEqual(pathlib.Path(base, "KEEP").read_bytes(), b"delta\n")
        other = self.save("other")
        self.save_delta(other)
        self.assertEqual(pathlib.Path(other, "KEEP").read_bytes(), b"")
        self.assertEqual(self.rules(base), [])

    def test_a_keep_that_is_there_stays(self):
        base = self.save()
        pathlib.Path(base, "KEEP").write_bytes(b"mine")
        self.save_delta(base)
        self.assertEqual(pathlib.Path(base, "KEEP").read_bytes(), b"mine")

    def test_a_base_that_goes_meanwhile(self):
        base = self.save()
        publish = checkpoint.publish

        def publish_and_delete(*arguments):
            publish(*arguments)
            os.remove(f"{base}/KEEP")

        with mock.patch("sealpoint_writer.checkpoint.publish", publish_and_delete), self.assertRaisesRegex(
                checkpoint.BaseIsGone, "R-DLT-10"):
            self.save_delta(base)

    def test_a_base_that_went_before_is_no_base(self):
        base = self.save()
        attempt = series.begin(f"{self.folder}/s", 8, base=base)
        summaries = write_blobs(attempt, [[hold(self.tensor, self.bytes[-1], codec=CODEC_CHANGES)]])
        os.remove(f"{base}/COMMIT")
        with self.assertRaisesRegex(Violation, "R-DLT-03"):
            attempt.commit(summaries)
        self.assertEqual([rule for rule, _ in self.rules(attempt.directory)], ["R-MRK-01"])

    def test_without_a_changed_chunk_it_is_no_delta(self):
        base = self.save()
        self.tensor = Tensor("new", (4, 500), 12, 4, 4096)
        path = self.save(base=base)
        self.assertEqual(Checkpoint(PathDirectory(path)).index.depth, 0)
        self.assertFalse(os.path.exists(f"{base}/KEEP"))

    def test_blobs_of_deltas_are_not_linked(self):
        path = self.save_delta(self.save())
        attempt = series.begin(f"{self.folder}/s", 9)
        summary = mock.Mock(incompat=12, id=bytes(16))
        with self.assertRaisesRegex(ValueError, "changes to another checkpoint"):
            attempt.link(summary, path)


if __name__ == "__main__":
    unittest.main()
