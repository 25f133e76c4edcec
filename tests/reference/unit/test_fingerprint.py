# SPDX-License-Identifier: Apache-2.0
"""Fingerprints (spec/fingerprint.md): the values of the text, parts of tensors, checkpoints, and the reader of 1.0.0."""

import functools
import itertools
import json
import math
import os
import pathlib
import random
import re
import struct
import subprocess
import sys
import tarfile
import tempfile
import unittest

import fingerprint_cases
from fingerprint_cases import BIT, cases, total
from sealpoint_reference import fingerprint
from sealpoint_reference.directory import MemoryDirectory, PathDirectory
from sealpoint_reference.fingerprint import P, ZERO, of_part
from sealpoint_reference.load import Checkpoint
from sealpoint_reference.verify import verify, verify_path
from sealpoint_reference.xxh3 import digest
from sealpoint_writer import checkpoint as writer
from sealpoint_writer.items import Object, Region, Tensor, whole
from sealpoint_writer.ranks import hold, write_blobs
from test_geometry import random_regions, tiles

SPEC = pathlib.Path(__file__).resolve().parents[3] / "spec"


@functools.cache
def text_of_the_page():
    return (SPEC / "fingerprint.md").read_text()


@functools.cache
def coefficient_of_the_page():
    names = {"struct": struct, "xxh3_128": digest}
    exec(re.search(r"^```python\n(.*?)^```", text_of_the_page(), re.M | re.S)[1], names)  # pylint: disable=exec-used
    return names["coefficient"]


def of_elements(shape, element_size, elements):
    """By the definition, byte by byte; (position, bytes) of each element that is not zero."""
    c, sums = coefficient_of_the_page(), [0, 0]
    for position, data in elements:
        *outer, last = position or (0,)
        for at, byte in enumerate(data, last * element_size):
            for s in (0, 1):
                factors = [c(s, 0, at // 4), *(c(s, d, x) for d, x in enumerate(reversed(outer), 1))]
                sums[s] += (byte << 8 * (at % 4)) * math.prod(factors)
    return sums[0] % P, sums[1] % P


def part(generator, shape, element_size, region):
    """The bytes of a region, which are random, and its elements."""
    ranges = (range(o, o + e) for o, e in zip(region.offset, region.extent))
    positions = list(itertools.islice(itertools.product(*ranges), region.begin, region.end))
    data = generator.randbytes(len(positions) * element_size)
    return data, [(position, data[n * element_size:][:element_size]) for n, position in enumerate(positions)]


class Values(unittest.TestCase):
    def test_the_page(self):
        data = {"f32, shape []": struct.pack("<f", 1), "f32, shape [2]": struct.pack("<2f", 1, 2),
                "bf16, shape [2, 3]": bytes(range(1, 13)), "i64, shape [3, 2]": struct.pack("<6q", *range(-3, 3)),
                "u32, shape [2, 1500]": struct.pack("<3000I", *range(3000))}
        rows = re.findall(r"^\| (\w+, shape (\[.*?\])), .* \| `(spf1:[0-9a-f]{32})` \|$", text_of_the_page(), re.M)
        self.assertEqual([name for name, _, _ in rows], list(data))
        for name, shape, expected in rows:
            shape = tuple(json.loads(shape))
            found = of_part(shape, len(data[name]) // math.prod(shape), whole(shape), data[name])
            self.assertEqual(fingerprint.text(found), expected, name)
        factors = re.findall(r"g\((\d+), (\d+), (\d+), (\d+)\) is 0x([0-9a-f]{16})", text_of_the_page())
        self.assertEqual(len(factors), 3)
        for s, d, k, v, expected in factors:
            self.assertEqual(fingerprint.g(int(d), int(k), int(v))[int(s)], int(expected, 16))

    def test_parts_of_random_tensors_add_up(self):
        generator, tiled = random.Random(30), 0
        for _ in range(250):
            shape, regions = random_regions(generator)
            element_size = generator.choice((1, 2, 4, 8, 16))
            parts = [(region, *part(generator, shape, element_size, region)) for region in regions]
            found = [of_part(shape, element_size, region, data) for region, data, _ in parts]
            for value, (_, _, elements) in zip(found, parts):
                self.assertEqual(value, of_elements(shape, element_size, elements))
            if tiles(shape, regions):
                data = b"".join(data for _, data in sorted(itertools.chain(*(elements for _, _, elements in parts))))
                self.assertEqual(of_part(shape, element_size, whole(shape), data), total(found))
                tiled += 1
        self.assertGreater(tiled, 50)

    def test_indices_of_several_digits(self):
        generator = random.Random(31)
        for shape, element_size, region in (
                ((5000,), 1, Region((7,), (4990,), 1, 4987)), ((3, 2100), 2, Region((1, 2000), (2, 100), 37, 190)),
                ((1030, 2), 4, Region((1020, 1), (10, 1), 2, 9)), ((2**40, 2), 8, Region((2**40 - 3, 0), (2, 2), 1, 4)),
                ((2, 2**33), 16, Region((0, 2**31 + 1021), (2, 9), 4, 15))):
            data, elements = part(generator, shape, element_size, region)
            self.assertEqual(of_part(shape, element_size, region, data), of_elements(shape, element_size, elements))

    def test_without_dimensions_or_elements(self):
        data = bytes(range(1, 17))
        self.assertEqual(of_part((), 16, whole(()), data), of_elements((), 16, [((), data)]))
        for shape in ((0,), (0, 3), (2, 0, 5)):
            self.assertEqual(of_part(shape, 2, whole(shape), b""), ZERO)


class Encoded(unittest.TestCase):
    def rules(self, files, *options):
        return [(violation.rule, violation.file) for violation in verify(MemoryDirectory(files), *options).violations]

    def test_every_case(self):
        for what, files, expected in cases():
            with self.subTest(what):
                self.assertEqual(self.rules(files, "full", True), expected)
                without = [(rule, file) for rule, file in expected if rule != "R-FPR-03"]
                self.assertEqual(self.rules(files), without)
                is_chunk = [rule for rule, _ in expected] == ["R-CHK-02"]
                self.assertEqual(self.rules(files, "structure", True), [] if is_chunk else without)

    def test_only_the_other_bit_is_noted(self):
        self.assertEqual(verify(MemoryDirectory(fingerprint_cases.files())).notes, [])
        both = fingerprint_cases.files(compat=BIT | fingerprint_cases.OTHER_BIT)
        self.assertEqual(verify(MemoryDirectory(both)).notes, ["compat features 0x20 are ignored"])

    def test_they_are_read(self):
        found = Checkpoint(MemoryDirectory(fingerprint_cases.files())).tensors
        self.assertEqual({tensor.name: tensor.fingerprint for tensor in found.values()}, fingerprint_cases.good()[0])
        found = Checkpoint(MemoryDirectory(fingerprint_cases.files(compat=fingerprint_cases.OTHER_BIT))).tensors
        self.assertEqual({tensor.fingerprint for tensor in found.values()}, {None})


class Written(unittest.TestCase):
    """Checkpoints of the writer in Python, of two ranks."""

    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="sealpoint-fingerprint-")
        self.addCleanup(temporary.cleanup)
        self.folder = temporary.name
        generator = random.Random(32)
        self.ranks = [[hold(Object("rng", "text/plain", 7), b"seed=42")], []]
        self.expected = {}
        for tensor, regions in (
                (Tensor("bytes", (5, 7), 6, 1, 4096), [Region((0, 0), (5, 7), *run) for run in ((0, 10), (10, 25), (25, 35))]),
                (Tensor("matrix", (60, 50), 12, 4, 4096),
                 [Region((0, 0), (60, 21), 0, 1260), Region((0, 21), (60, 29), 0, 1740)]),
                (Tensor("scalar", (), 5, 8), [whole(())]), (Tensor("empty", (3, 0), 11, 2), [whole((3, 0))] * 2)):
            parts = [part(generator, tensor.shape, tensor.element_size, region) for region in regions]
            for rank, region, (data, _) in zip(itertools.cycle(self.ranks), regions, parts):
                rank.append(hold(tensor, data, region))
            elements = itertools.chain(*(elements for _, elements in parts))
            self.expected[tensor.name] = of_elements(tensor.shape, tensor.element_size, elements)

    def commit(self, name, compat=BIT, blob_compat=BIT, link=None):
        attempt = writer.Attempt(os.path.join(self.folder, name), 1, compat=compat)
        summaries = write_blobs(attempt, self.ranks if not link else self.ranks[1:], blob_compat)
        attempt.commit(summaries + ([attempt.link(*link)] if link else []))
        return attempt.directory, summaries

    def found(self, path):
        self.assertEqual(verify_path(path, fingerprints=True).violations, [])
        return {name: tensor.fingerprint for name, tensor in Checkpoint(PathDirectory(path)).tensors.items()}

    def test_they_are_the_sums_of_what_the_ranks_hold(self):
        path, _ = self.commit("a")
        self.assertEqual(self.found(path), self.expected)
        self.assertEqual(set(self.found(self.commit("b", compat=0)[0]).values()), {None})

    def test_a_linked_blob_may_have_none(self):
        path, summaries = self.commit("old", compat=0)
        new, _ = self.commit("new", link=(summaries[0], path))
        self.assertEqual(set(self.found(new).values()), {None})
        new, summaries = self.commit("all")
        again, _ = self.commit("again", link=(summaries[0], new))
        self.assertEqual(self.found(again), self.expected)

    def test_the_command_compares_and_lists(self):
        path, _ = self.commit("a")
        command = [sys.executable, "-m", "sealpoint_reference"]
        done = subprocess.run([*command, "verify", "--fingerprints", path], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout), (0, f"{path}: committed (full)\n"))
        listed = subprocess.run([*command, "list", path], capture_output=True, text=True, check=True).stdout
        expected = [fingerprint.text(value) for _, value in sorted(self.expected.items())]
        self.assertEqual(re.findall("spf1:.*", listed), expected)

    def test_the_reader_of_1_0_0_skips_them(self):
        path, _ = self.commit("a")
        with tarfile.open(SPEC / "fixtures/corpus-1.tar.xz") as archive:
            members = [member for member in archive if re.match(r"corpus-1/(verify\.py$|sealpoint_reference/)", member.name)]
            archive.extraction_filter = getattr(tarfile, "tar_filter", None)  # not before Python 3.11.4
            archive.extractall(self.folder, members)
        done = subprocess.run([sys.executable, "verify.py", path], cwd=os.path.join(self.folder, "corpus-1"),
                              env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True, check=False)
        said = json.loads(done.stdout)
        self.assertEqual((done.returncode, said["verdict"], said["violations"]), (0, "committed", []))
        self.assertEqual(said["notes"], ["compat features 0x1 are ignored"])


if __name__ == "__main__":
    unittest.main()
