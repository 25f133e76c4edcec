# SPDX-License-Identifier: Apache-2.0
"""The reader against the text: its table of rules, the worked examples, the algorithms and the vectors."""

import itertools
import math
import pathlib
import random
import re
import unittest

from sealpoint_reference import geometry, records, rules
from sealpoint_reference.directory import MemoryDirectory
from sealpoint_reference.load import Checkpoint
from sealpoint_reference.rules import Violation
from sealpoint_reference.verify import verify
from sealpoint_reference.xxh3 import digest

SPEC = pathlib.Path(__file__).resolve().parents[3] / "spec"


def dumped_files(document):
    """The files that a document shows in hex."""
    text = (SPEC / document).read_text()
    for name, dump in re.findall(r"^```hex (\S+)\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        data, line = b"", b""
        for row in dump.splitlines():
            if row == "*":
                continue
            at, *digits = row.split()
            while len(data) < int(at, 16):
                data += line
            line = bytes.fromhex("".join(digits))
            data += line
        yield name, data


class Specification(unittest.TestCase):
    def test_each_rule_has_the_code_of_its_row(self):
        text = "".join((SPEC / page).read_text() for page in ("reader-rules.md", "fingerprint.md", "attributes.md", "delta.md"))
        rows = re.findall(r"^\| (R-\w{3}-\d\d) \| (\w+) \|", text, re.MULTILINE)
        of_series = {"R-FPR-04", "R-ATT-07", "R-DLT-10", "R-DLT-11"}  # what no reader of a checkpoint meets
        self.assertEqual({rule: code for rule, code in rows if code != "Ok" and rule not in of_series}, rules.CODES)

    def test_digests_the_vectors(self):
        rows = re.findall(r"^\| (\d+) \| ([0-9a-f]{32}) \|$", (SPEC / "registries.md").read_text(), re.MULTILINE)
        self.assertGreater(len(rows), 10)
        for length, expected in rows:
            self.assertEqual(digest(bytes(i % 251 for i in range(int(length)))).hex(), expected, length)

    def test_reads_the_worked_example(self):
        files = dict(dumped_files("container.md"))
        self.assertEqual(len(files), 3)
        self.assertEqual(verify(MemoryDirectory(files)).violations, [])
        checkpoint = Checkpoint(MemoryDirectory(files))
        self.assertEqual(checkpoint.tensor("w").hex(), "0000803f000000c00000003f00004040")
        self.assertEqual(checkpoint.box("w", (0, 1), (2, 1)).hex(), "000000c000004040")
        self.assertEqual(checkpoint.object("rng"), b"seed=42")


def algorithms():
    """What the code of algorithms.md defines."""
    names = {}
    for block in re.findall(r"^```python\n(.*?)^```", (SPEC / "algorithms.md").read_text(), re.MULTILINE | re.DOTALL):
        exec(block, names)  # pylint: disable=exec-used
    return names


def accepts(function, *arguments):
    """Whether a check of the reader passes; a check of the text says so itself."""
    try:
        return function(*arguments) is not False
    except geometry.Impossible as error:
        return error.rule


class LenientReader(unittest.TestCase):
    """What the rules marked "must" are for: damage of a byte, or a cut, never yields wrong bytes."""

    def setUp(self):
        text = (SPEC / "reader-rules.md").read_text()
        self.kept = set(re.findall(r"^\| (R-\w{3}-\d\d) \| .* \| must \|$", text, re.MULTILINE))
        files = dict(dumped_files("example.md"))
        self.files = {name: data for name, data in files.items() if not name.startswith("void/")}
        self.content = self.load(self.files)

    def load(self, files):
        checkpoint = Checkpoint(MemoryDirectory(files))
        tensors = {name: checkpoint.tensor(name) for name in checkpoint.tensors}
        return tensors, {name: checkpoint.object(name) for name in checkpoint.objects}

    def assert_found_or_harmless(self, name, data):
        try:
            content = self.load({**self.files, name: data})
        except Violation as violation:
            self.assertIn(violation.rule, self.kept, f"{name}: {violation}")
        else:
            self.assertEqual(content, self.content, name)

    def test_finds_damage_of_the_storage(self):
        self.assertLess(len(self.kept), 30)
        for name, data in self.files.items():
            step = max(1, len(data) // 150)
            for at in range(0, len(data), step):
                flipped = bytearray(data)
                flipped[at] ^= 1 << at % 8
                self.assert_found_or_harmless(name, bytes(flipped))
            for size in (0, 1, len(data) // 2, len(data) - 1):
                self.assert_found_or_harmless(name, data[:size])


class Algorithms(unittest.TestCase):
    """The code in the text computes what the reader does, which was not made from it."""

    def setUp(self):
        self.text = algorithms()
        self.random = random.Random(7)

    def box(self, shape):
        offset = tuple(self.random.randrange(extent) for extent in shape)
        return offset, tuple(self.random.randint(1, e - o) for o, e in zip(offset, shape))

    def shape(self):
        return tuple(self.random.randint(1, 5) for _ in range(self.random.randint(0, 4)))

    def test_run_boxes(self):
        for _ in range(500):
            offset, extent = self.box(self.shape())
            begin = self.random.randrange(math.prod(extent))
            end = self.random.randint(begin + 1, math.prod(extent))
            boxes = self.text["run_boxes"](offset, extent, begin, end)
            self.assertEqual(boxes, list(geometry.run_boxes(offset, extent, begin, end)))
            self.assertLessEqual(len(boxes), max(1, 2 * len(extent) - 1))
            elements = list(itertools.product(*(range(o, o + e) for o, e in zip(offset, extent))))[begin:end]
            covered = [at for o, e in boxes for at in itertools.product(*(range(a, a + b) for a, b in zip(o, e)))]
            self.assertEqual(covered, elements)

    def grid(self, shape):
        cuts = [sorted(self.random.sample(range(1, e), self.random.randint(0, min(2, e - 1)))) for e in shape]
        counts = [len(of_dimension) for of_dimension in cuts]
        flat = list(itertools.chain(*cuts))
        cells = self.text["grid_regions"](shape, flat, counts)
        runs = [sorted(self.random.sample(range(1, end), min(end - 1, self.random.choice((0, 0, 1, 2)))))
                for _, _, _, end in cells]
        if not any(runs):
            return flat, counts, None, None
        return flat, counts, [len(of_cell) for of_cell in runs], list(itertools.chain(*runs))

    def test_grids(self):
        for _ in range(150):
            shape = self.shape()
            cuts, counts, run_counts, run_cuts = self.grid(shape)
            regions = self.text["grid_regions"](shape, cuts, counts, run_counts, run_cuts)
            self.assertEqual(regions, geometry.grid_regions(shape, geometry.Grid(cuts, counts, run_counts, run_cuts)))
            self.assertTrue(self.text["is_grid"](shape, regions))
            self.assertEqual(self.text["grid_of_regions"](shape, self.random.sample(regions, len(regions))),
                             (cuts, counts, run_counts, run_cuts))
            self.assertTrue(self.text["tile"](shape, regions))
            self.assert_same_checks(shape, regions)
            self.assert_same_checks(shape, self.spoil(regions))

    def spoil(self, regions):
        """One region of another box or run, or cut in two."""
        regions = list(regions)
        number = self.random.randrange(len(regions))
        offset, extent, begin, end = regions[number]
        if end - begin > 1:
            middle = self.random.randint(begin + 1, end - 1)
            regions[number] = (offset, extent, begin, middle)
            if self.random.random() < 0.5:
                regions.insert(number + 1, (offset, extent, middle, end))
        return regions

    def assert_same_checks(self, shape, regions):
        flat = [number for offset, extent, _, _ in regions for number in (*offset, *extent)]
        runs = [number for _, _, begin, end in regions for number in (begin, end)]
        box_list = geometry.BoxList(flat, runs)
        self.assertEqual(self.text["is_grid"](shape, regions), geometry.is_a_grid(shape, box_list, len(regions)))
        found = accepts(geometry.check_tiling, shape, [geometry.Region(*region) for region in regions])
        if self.text["corner_count"](shape, regions) > self.text["corner_count_max"](len(regions)):
            self.assertEqual(found, "R-IDX-04")
        else:
            self.assertEqual(found, True if self.text["tile"](shape, regions) else "R-IDX-18")

    def test_a_run_counts_the_boxes_of_the_recursion_and_not_the_fewest(self):
        self.assertEqual(len(self.text["run_boxes"]((0, 0), (5, 8), 3, 35)), 3)

    def test_reads_the_second_example_by_the_text(self):
        files = dict(dumped_files("example.md"))
        directory = MemoryDirectory({name: data for name, data in files.items() if not name.startswith("void/")})
        self.assertEqual(verify(directory).violations, [])
        checkpoint = Checkpoint(directory)
        for name, tensor in checkpoint.tensors.items():
            whole = checkpoint.tensor(name)
            for number, position in enumerate(itertools.product(*map(range, tensor.shape))):
                if number % 997 == 0 or math.prod(tensor.shape) < 100:
                    element = self.element(checkpoint, directory, tensor, position)
                    begin = number * tensor.element_size
                    self.assertEqual(element, whole[begin:begin + tensor.element_size], (name, position))

    def element(self, checkpoint, directory, tensor, position):
        """One element, found by the code of the text."""
        for region, (number, first) in zip(tensor.regions, tensor.refs):
            place = self.text["find_element"](region, position, tensor.element_size, tensor.chunk_size)
            if place is None:
                continue
            blob, record = checkpoint.index.blobs[number], first + place[0]
            self.check_record_group(directory, blob, record)
            shard = next(shard for shard in blob.shards if shard.first == first)
            raw = records.read_chunk(directory, records.Table(directory, blob), shard, place[0], None)
            self.assertEqual(len(raw), self.text["chunk_bytes"](shard.raw_bytes, tensor.chunk_size, place[0]))
            return raw[place[1]:place[1] + tensor.element_size]
        return self.fail("no region holds the element")

    def check_record_group(self, directory, blob, record):
        first, end = self.text["group_records"](blob, record)
        begin = self.text["record_offset"](blob, first)
        group = directory.read(blob.name, begin, self.text["record_offset"](blob, end) - begin)
        self.assertEqual(directory.read(blob.name, self.text["group_digest_offset"](blob, record), 16), digest(group))


if __name__ == "__main__":
    unittest.main()
