# SPDX-License-Identifier: Apache-2.0
"""From the regions of a tensor to its grid or box list (spec/algorithms.md, sections 1, 3 and 4)."""

import collections
import itertools
import math

from .flatbuffer import Table, Vector

CORNER_COUNT_MAX, CORNERS_PER_SHARD_MAX, BOX_LIST_SHARD_COUNT_MAX = 2**20, 2**10, 2**16


def grid_table(shape, regions):
    """The grid that describes these regions, or None. They are sorted, so that they are in the order of its shards."""
    runs_of = collections.defaultdict(list)
    for offset, extent, begin, end in regions:
        runs_of[offset, extent].append((begin, end))
    begins = [sorted({offset[d] for offset, _ in runs_of}) for d in range(len(shape))]
    if math.prod(map(len, begins)) != len(runs_of) or any(starts[0] for starts in begins):
        return None
    ends = [dict(zip(starts, [*starts[1:], extent])) for starts, extent in zip(begins, shape)]
    run_cuts = []  # of each cell, row-major, as the boxes are
    for (offset, extent), runs in runs_of.items():
        joints = [0, *itertools.chain(*runs), math.prod(extent)]
        if joints[::2] != joints[1::2] or any(ends[d][o] != o + extent[d] for d, o in enumerate(offset)):
            return None
        run_cuts.append([begin for begin, _ in runs[1:]])
    fields = [Vector("Q", [cut for starts in begins for cut in starts[1:]]),
              Vector("I", [len(starts) - 1 for starts in begins])]
    if any(run_cuts):
        fields += [Vector("I", list(map(len, run_cuts))), Vector("Q", list(itertools.chain(*run_cuts)))]
    return Table(fields)


def box_list_table(regions):
    """Runs are absent if all are full (R-IDX-17)."""
    fields = [Vector("Q", [number for region in regions for number in (*region.offset, *region.extent)])]
    if any((region.begin, region.end) != (0, math.prod(region.extent)) for region in regions):
        fields.append(Vector("Q", [number for region in regions for number in (region.begin, region.end)]))
    return Table(fields)


def run_boxes(offset, extent, begin, end):
    """The elements of a run as disjoint boxes, in their order."""
    if not extent:
        return [((), ())]
    row = math.prod(extent[1:])
    first, last = -(-begin // row), end // row  # whole rows
    if first > last:
        return _part_of_row(offset, extent, last, begin - last * row, end - last * row)
    boxes = []
    if begin < first * row:
        boxes += _part_of_row(offset, extent, first - 1, begin - (first - 1) * row, row)
    if first < last:
        boxes.append(((offset[0] + first, *offset[1:]), (last - first, *extent[1:])))
    if last * row < end:
        boxes += _part_of_row(offset, extent, last, 0, end - last * row)
    return boxes


def _part_of_row(offset, extent, row, begin, end):
    return [((offset[0] + row, *o), (1, *e)) for o, e in run_boxes(offset[1:], extent[1:], begin, end)]


def check_tiling(tensor, regions):
    """R-IDX-18 and R-IDX-04, proven before anything is committed: each element is in one region."""
    boxes = [box for region in regions for box in run_boxes(*region)]
    divided = [d for d, whole in enumerate(tensor.shape) if any(extent[d] != whole for _, extent in boxes)]
    corner_max = min(CORNER_COUNT_MAX, CORNERS_PER_SHARD_MAX * (len(regions) + 1))
    if len(boxes) + 1 << len(divided) > corner_max or len(regions) > BOX_LIST_SHARD_COUNT_MAX:
        raise ValueError(f"{tensor.name}: its {len(regions)} regions pass a limit of box lists")
    sums = collections.Counter()
    for sign, (offset, extent) in [*((1, box) for box in boxes), (-1, ((0,) * len(tensor.shape), tensor.shape))]:
        for is_end in itertools.product((0, 1), repeat=len(divided)):
            sums[tuple(offset[d] + extent[d] * at_end for d, at_end in zip(divided, is_end))] += sign * (-1)**sum(is_end)
    wrong = min((corner for corner, total in sums.items() if total), default=None)
    if wrong is not None:
        raise ValueError(f"{tensor.name}: the element at {wrong} of dimensions {divided} is in {1 + sums[wrong]} regions")
