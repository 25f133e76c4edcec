# SPDX-License-Identifier: Apache-2.0
"""Grids and box lists: which elements a shard holds (schema/index.fbs, Grid and BoxList; R-IDX-13 to 18).

A region is a box and a run of its row-major elements. The functions know no files: what is wrong with the numbers
they say as Impossible, with the rule.
"""

import collections
import itertools
import math

from . import limits

Region = collections.namedtuple("Region", "offset extent begin end")
Grid = collections.namedtuple("Grid", "cuts cut_counts run_cut_counts run_cuts")
BoxList = collections.namedtuple("BoxList", "boxes runs")


class Impossible(Exception):
    def __init__(self, rule, message):
        super().__init__(message)
        self.rule = rule


def _require(holds, rule, message):
    if not holds:
        raise Impossible(rule, message)


def _ascending_within(cuts, end):
    return all(a < b for a, b in zip([0, *cuts], [*cuts, end]))


def _split(values, counts):
    """The values in parts of these lengths."""
    values = iter(values)
    return [list(itertools.islice(values, count)) for count in counts]


def check_grid_cuts(shape, grid, shard_count):
    """R-IDX-14, and the counts of R-IDX-15."""
    _require(len(grid.cut_counts) == len(shape) and sum(grid.cut_counts) == len(grid.cuts), "R-IDX-14",
             "counts of cuts do not agree")
    for extent, cuts in zip(shape, _split(grid.cuts, grid.cut_counts)):
        _require(_ascending_within(cuts, extent), "R-IDX-14", "cuts do not ascend within the extent")
    cells = math.prod(count + 1 for count in grid.cut_counts)
    _check_run_counts(cells, grid)
    shards = cells + sum(grid.run_cut_counts or ())
    _require(shards == shard_count, "R-IDX-14", f"{shard_count} shards of a grid of {shards}")


def _check_run_counts(cells, grid):
    """The part of R-IDX-15 that comes before the number of shards of R-IDX-14."""
    if grid.run_cut_counts is None and grid.run_cuts is None:
        return
    _require(None not in (grid.run_cut_counts, grid.run_cuts), "R-IDX-15", "run cuts without counts, or counts alone")
    _require(len(grid.run_cut_counts) == cells and sum(grid.run_cut_counts) == len(grid.run_cuts), "R-IDX-15",
             "counts of run cuts do not agree")
    _require(any(grid.run_cut_counts), "R-IDX-15", "no cell has a run cut")


def check_run_cuts(shape, grid):
    """R-IDX-15; the cuts of the grid are good."""
    _check_run_counts(math.prod(count + 1 for count in grid.cut_counts), grid)
    if grid.run_cuts is None:
        return
    for (_, extent), cuts in zip(_cells(shape, grid), _split(grid.run_cuts, grid.run_cut_counts)):
        _require(_ascending_within(cuts, math.prod(extent)), "R-IDX-15", "run cuts do not ascend within the cell")


def _cells(shape, grid):
    """Offset and extent of each cell, row-major."""
    intervals = []
    for extent, cuts in zip(shape, _split(grid.cuts, grid.cut_counts)):
        intervals.append(list(zip([0, *cuts], [*cuts, extent])))
    for cell in itertools.product(*intervals):
        yield tuple(begin for begin, _ in cell), tuple(end - begin for begin, end in cell)


def grid_regions(shape, grid):
    """The regions of a good grid in the order of its shards."""
    counts = grid.run_cut_counts or itertools.repeat(0)
    run_cuts = iter(grid.run_cuts or ())
    regions = []
    for (offset, extent), count in zip(_cells(shape, grid), counts):
        cuts = list(itertools.islice(run_cuts, count))
        for begin, end in zip([0, *cuts], [*cuts, math.prod(extent)]):
            regions.append(Region(offset, extent, begin, end))
    return regions


def check_boxes(shape, box_list, shard_count):
    """R-IDX-16."""
    ndim = len(shape)
    _require(len(box_list.boxes) == shard_count * 2 * ndim, "R-IDX-16", "length of the boxes")
    boxes = _boxes(ndim, box_list, shard_count)
    begins = (box_list.runs or ())[::2]
    if len(begins) != shard_count:
        begins = [0] * shard_count
    for offset, extent in boxes:
        _require(all(e > 0 and o + e <= whole for o, e, whole in zip(offset, extent, shape)), "R-IDX-16",
                 "a box that is empty or not within the shape")
    keys = list(zip(boxes, begins))
    _require(all(a < b for a, b in itertools.pairwise(keys)), "R-IDX-16", "boxes do not ascend")


def _boxes(ndim, box_list, shard_count):
    flat = box_list.boxes
    return [(tuple(flat[at:at + ndim]), tuple(flat[at + ndim:at + 2 * ndim]))
            for at in range(0, shard_count * 2 * ndim, 2 * ndim)] if ndim else [((), ())] * shard_count


def check_runs(shape, box_list, shard_count):
    """R-IDX-17; the boxes are good."""
    if box_list.runs is None:
        return
    _require(len(box_list.runs) == 2 * shard_count, "R-IDX-17", "length of the runs")
    regions = box_list_regions(shape, box_list, shard_count)
    for region in regions:
        _require(region.begin < region.end <= math.prod(region.extent), "R-IDX-17", "a run is empty or leaves its box")
    _require(any(region.end - region.begin < math.prod(region.extent) for region in regions), "R-IDX-17",
             "all runs are full")


def box_list_regions(shape, box_list, shard_count):
    boxes = _boxes(len(shape), box_list, shard_count)
    if box_list.runs is None:
        return [Region(offset, extent, 0, math.prod(extent)) for offset, extent in boxes]
    runs = zip(box_list.runs[::2], box_list.runs[1::2])
    return [Region(offset, extent, begin, end) for (offset, extent), (begin, end) in zip(boxes, runs)]


def is_a_grid(shape, box_list, shard_count):
    """R-IDX-13: whether a grid describes the same shards. Nothing is known of the numbers yet."""
    ndim = len(shape)
    runs_fit = box_list.runs is None or len(box_list.runs) == 2 * shard_count
    if len(box_list.boxes) != shard_count * 2 * ndim or not runs_fit:
        return False
    runs_of = collections.defaultdict(list)
    for region in box_list_regions(shape, box_list, shard_count):
        runs_of[region.offset, region.extent].append((region.begin, region.end))
    begins = [sorted({offset[d] for offset, _ in runs_of}) for d in range(ndim)]
    if math.prod(map(len, begins)) != len(runs_of) or any(b[0] != 0 or b[-1] >= e for b, e in zip(begins, shape)):
        return False
    cells = [dict(zip(b, [*b[1:], extent])) for b, extent in zip(begins, shape)]
    return all(_is_cell(cells, box) and _tile_their_box(box[1], sorted(runs)) for box, runs in runs_of.items())


def _is_cell(cells, box):
    return all(ends[o] == o + e for ends, o, e in zip(cells, *box))


def _tile_their_box(extent, runs):
    joints = [(0, 0), *runs, (math.prod(extent),) * 2]
    return all(a[1] == b[0] for a, b in itertools.pairwise(joints)) and all(begin < end for begin, end in runs)


def check_equal_boxes(regions):
    """R-IDX-18, as far as it holds for a manifest too."""
    for a, b in itertools.pairwise(regions):
        if (a.offset, a.extent) == (b.offset, b.extent):
            _require(a.end <= b.begin, "R-IDX-18", "runs of equal boxes overlap")


def check_tiling(shape, regions):
    """R-IDX-18: each element once, by the signed corners of boxes (decisions/0003); their number is R-IDX-04's."""
    corner_max = min(limits.TILING_CORNER_COUNT_MAX, limits.TILING_CORNERS_PER_SHARD_MAX * (len(regions) + 1))
    boxes = [((0,) * len(shape), tuple(shape), -1)]
    parts = ((*box, 1) for region in regions for box in run_boxes(*region))
    boxes.extend(itertools.islice(parts, corner_max))
    kept = [d for d, whole in enumerate(shape) if any(e[d] != whole for _, e, _ in boxes)]
    _require(len(boxes) << len(kept) <= corner_max, "R-IDX-04", f"more than {corner_max} corners in the tiling check")
    sums = collections.Counter()
    for offset, extent, weight in boxes:
        ends = [((offset[d], 1), (offset[d] + extent[d], -1)) for d in kept]
        for corner in itertools.product(*ends):
            sums[tuple(at for at, _ in corner)] += weight * math.prod(sign for _, sign in corner)
    wrong = min((corner for corner, total in sums.items() if total), default=None)
    _require(wrong is None, "R-IDX-18", f"elements around {wrong} are not held exactly once")


def run_boxes(offset, extent, begin, end):
    """The run of a box as boxes (spec/algorithms.md, section 1)."""
    if begin >= end:
        return
    if len(extent) == 1:
        yield (offset[0] + begin,), (end - begin,)
        return
    if not extent:
        yield (), ()
        return
    row = math.prod(extent[1:])
    first, last = -(-begin // row), end // row
    if first > last:
        yield from _rows(offset, extent, first - 1, begin - (first - 1) * row, end - (first - 1) * row)
        return
    yield from _rows(offset, extent, first - 1, begin - (first - 1) * row, row if begin % row else 0)
    if first < last:
        yield (offset[0] + first, *offset[1:]), (last - first, *extent[1:])
    yield from _rows(offset, extent, last, 0, end - last * row)


def _rows(offset, extent, row, begin, end):
    """A run within one row of a box."""
    for inner_offset, inner_extent in run_boxes(offset[1:], extent[1:], begin, end):
        yield (offset[0] + row, *inner_offset), (1, *inner_extent)
