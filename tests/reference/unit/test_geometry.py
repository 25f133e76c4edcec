# SPDX-License-Identifier: Apache-2.0
"""Grids, box lists and their tiling, compared with a count of every element."""

import itertools
import math
import random
import unittest

from sealpoint_reference import geometry
from sealpoint_reference.geometry import BoxList, Grid, Region


def elements(region):
    """The positions in the tensor that a region holds."""
    ranges = [range(o, o + e) for o, e in zip(region.offset, region.extent)]
    return list(itertools.product(*ranges))[region.begin:region.end]


def tiles(shape, regions):
    held = sorted(at for region in regions for at in elements(region))
    return held == sorted(itertools.product(*map(range, shape)))


def random_regions(generator):
    """A tensor cut at random, each piece into runs, some of it damaged."""
    shape = [generator.randint(1, 4) for _ in range(generator.randint(0, 3))]
    boxes = [((0,) * len(shape), tuple(shape))]
    for _ in range(generator.randint(0, 4)):
        offset, extent = boxes.pop(generator.randrange(len(boxes)))
        d = generator.randrange(len(shape)) if shape else 0
        if not shape or extent[d] == 1:
            boxes.append((offset, extent))
            continue
        cut = generator.randrange(1, extent[d])
        boxes.append((offset, (*extent[:d], cut, *extent[d + 1:])))
        boxes.append(((*offset[:d], offset[d] + cut, *offset[d + 1:]), (*extent[:d], extent[d] - cut, *extent[d + 1:])))
    regions = []
    for offset, extent in boxes:
        size = math.prod(extent)
        cuts = sorted(generator.sample(range(1, size), generator.randint(0, min(2, size - 1))))
        regions += [Region(offset, extent, a, b) for a, b in zip([0, *cuts], [*cuts, size])]
    if generator.random() < 0.5:
        victim = generator.randrange(len(regions))
        region = regions[victim]
        begin = generator.randrange(math.prod(region.extent))
        regions[victim] = region._replace(begin=begin, end=generator.randint(begin + 1, math.prod(region.extent)))
    return shape, sorted(regions)


class Geometry(unittest.TestCase):
    def rule_of(self, function, *arguments):
        try:
            function(*arguments)
        except geometry.Impossible as error:
            return error.rule
        return None

    def test_regions_of_a_grid_tile_in_cell_major_order(self):
        grid = Grid([1, 2, 4], [1, 2], [0, 0, 1, 0, 0, 0], [1])
        regions = geometry.grid_regions((2, 6), grid)
        self.assertTrue(tiles((2, 6), regions))
        self.assertEqual([(region.offset, region.begin) for region in regions],
                         [((0, 0), 0), ((0, 2), 0), ((0, 4), 0), ((0, 4), 1), ((1, 0), 0), ((1, 2), 0), ((1, 4), 0)])

    def test_a_scalar_is_one_cell(self):
        self.assertEqual(geometry.grid_regions((), Grid([], [], None, None)), [Region((), (), 0, 1)])

    def test_grid_cuts(self):
        for cuts, counts, shards, rule in (([1], [1, 0], 2, None), ([2], [1, 0], 2, "R-IDX-14"),
                                           ([0], [1, 0], 2, "R-IDX-14"), ([1], [1], 2, "R-IDX-14"),
                                           ([1], [1, 0], 3, "R-IDX-14"), ([1, 2], [0, 2], 3, None),
                                           ([2, 1], [0, 2], 3, "R-IDX-14"), ([1, 1], [0, 2], 3, "R-IDX-14")):
            grid = Grid(cuts, counts, None, None)
            self.assertEqual(self.rule_of(geometry.check_grid_cuts, (2, 3), grid, shards), rule, grid)

    def test_run_cuts(self):
        for counts, cuts, rule in (([0, 2], [1, 2], None), ([0, 2], [1, 3], "R-IDX-15"), ([0, 0], [], "R-IDX-15"),
                                   ([2], [1, 2], "R-IDX-15"), ([0, 1], [1, 2], "R-IDX-15"), (None, [1], "R-IDX-15"),
                                   ([0, 1], [0], "R-IDX-15")):
            self.assertEqual(self.rule_of(geometry.check_run_cuts, (2, 3), Grid([1], [1, 0], counts, cuts)), rule, cuts)

    def test_tiling_agrees_with_a_count_of_elements(self):
        generator = random.Random(20)
        seen = {True: 0, False: 0}
        for _ in range(600):
            shape, regions = random_regions(generator)
            expected = tiles(shape, regions)
            seen[expected] += 1
            self.assertEqual(self.rule_of(geometry.check_tiling, shape, regions) is None, expected, (shape, regions))
        self.assertGreater(min(seen.values()), 100)

    def test_a_run_becomes_boxes_of_its_elements(self):
        generator = random.Random(21)
        for _ in range(300):
            extent = tuple(generator.randint(1, 4) for _ in range(generator.randint(0, 4)))
            begin = generator.randrange(math.prod(extent))
            region = Region((5,) * len(extent), extent, begin, generator.randint(begin + 1, math.prod(extent)))
            boxes = [Region(o, e, 0, math.prod(e)) for o, e in geometry.run_boxes(*region)]
            self.assertEqual(sorted(at for box in boxes for at in elements(box)), elements(region))

    def test_a_grid_is_recognised_as_one(self):
        bricks = [0, 0, 2, 1, 0, 1, 2, 3]
        self.assertTrue(geometry.is_a_grid((2, 4), BoxList(bricks, None), 2))
        self.assertFalse(geometry.is_a_grid((2, 4), BoxList([0, 0, 2, 1, 0, 1, 1, 3, 1, 1, 1, 3], None), 3))
        self.assertTrue(geometry.is_a_grid((4,), BoxList([0, 4, 0, 4], [0, 1, 1, 4]), 2))
        self.assertFalse(geometry.is_a_grid((4,), BoxList([0, 4, 0, 4], [0, 1, 2, 4]), 2))

    def test_boxes(self):
        for boxes, shards, rule in (([0, 2, 2, 2], 2, None), ([0, 2, 2, 3], 2, "R-IDX-16"), ([0, 0], 1, "R-IDX-16"),
                                    ([2, 2, 0, 2], 2, "R-IDX-16"), ([0, 2, 2], 2, "R-IDX-16"),
                                    ([0, 2, 0, 2], 2, "R-IDX-16"), ([0, 4, 0, 2], 2, "R-IDX-16"),
                                    ([2**64 - 1, 2], 1, "R-IDX-16")):
            self.assertEqual(self.rule_of(geometry.check_boxes, (4,), BoxList(boxes, None), shards), rule, boxes)

    def test_equal_boxes_ascend_by_their_runs(self):
        for runs, rule in (([0, 1, 1, 4], None), ([1, 4, 0, 1], "R-IDX-16"), ([0, 1, 0, 4], "R-IDX-16")):
            self.assertEqual(self.rule_of(geometry.check_boxes, (4,), BoxList([0, 4, 0, 4], runs), 2), rule, runs)

    def test_runs_of_equal_boxes_do_not_overlap(self):
        regions = [Region((0,), (4,), 0, 2), Region((0,), (4,), 1, 4)]
        self.assertEqual(self.rule_of(geometry.check_equal_boxes, regions), "R-IDX-18")

    def test_runs(self):
        for runs, rule in (([0, 1, 1, 4], None), ([0, 4, 0, 4], "R-IDX-17"), ([0, 0, 1, 4], "R-IDX-17"),
                           ([0, 5, 1, 4], "R-IDX-17"), ([0, 1], "R-IDX-17")):
            self.assertEqual(self.rule_of(geometry.check_runs, (4,), BoxList([0, 4, 0, 4], runs), 2), rule, runs)

    def test_corners_are_bounded_before_they_are_made(self):
        shape = (2,) * 12
        cut = 2 ** 11 + 1
        regions = [Region((0,) * 12, shape, 0, cut), Region((0,) * 12, shape, cut, 2 ** 12)]
        self.assertEqual(self.rule_of(geometry.check_tiling, shape, regions), "R-IDX-04")


if __name__ == "__main__":
    unittest.main()
