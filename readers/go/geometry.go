// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/binary"
	"math/bits"
	"sort"
)

// A box of a tensor, in elements.
type box struct{ offset, extent []uint64 }

// A region is a box, and of its elements in row-major order those of the run [begin, end) (algorithms.md).
type region struct {
	box
	begin, end uint64
}

func product(extents []uint64) uint64 {
	p := uint64(1)
	for _, e := range extents {
		p *= e
	}
	return p
}

// The product, and whether it fits 64 bits. That of extents with a 0 among them is 0.
func checkedProduct(extents []uint64) (uint64, bool) {
	p, fits := uint64(1), true
	for _, e := range extents {
		if e == 0 {
			return 0, true
		}
		high, low := bits.Mul64(p, e)
		p, fits = low, fits && high == 0
	}
	return p, fits
}

// Section 1: the elements of a run as disjoint boxes.
func runBoxes(r region) []box {
	if len(r.extent) == 0 {
		return []box{{}}
	}
	row := product(r.extent[1:])
	first, last := r.begin/row, r.end/row // whole rows are [first, last)
	if r.begin%row != 0 {
		first++
	}
	if first > last {
		return partOfRow(r.box, last, r.begin-last*row, r.end-last*row)
	}
	var boxes []box
	if r.begin < first*row {
		boxes = partOfRow(r.box, first-1, r.begin-(first-1)*row, row)
	}
	if first < last {
		boxes = append(boxes, box{prepend(r.offset[0]+first, r.offset[1:]), prepend(last-first, r.extent[1:])})
	}
	if last*row < r.end {
		boxes = append(boxes, partOfRow(r.box, last, 0, r.end-last*row)...)
	}
	return boxes
}

func partOfRow(b box, row, begin, end uint64) []box {
	boxes := runBoxes(region{box{b.offset[1:], b.extent[1:]}, begin, end})
	for i, inner := range boxes {
		boxes[i] = box{prepend(b.offset[0]+row, inner.offset), prepend(1, inner.extent)}
	}
	return boxes
}

func prepend(first uint64, rest []uint64) []uint64 { return append([]uint64{first}, rest...) }

func ascendWithin(cuts []uint64, end uint64) bool {
	before := uint64(0)
	for _, cut := range cuts {
		if cut <= before {
			return false
		}
		before = cut
	}
	return before < end
}

// Section 2, with R-IDX-14 and R-IDX-15: the regions of a grid, or the rule that is broken.
func gridRegions(shape []uint64, grid table, shards int) ([]region, string) {
	counts := grid.u32s(1)
	if len(counts) != len(shape) || grid.count(0) >= shards {
		return nil, "R-IDX-14"
	}
	cuts := grid.u64s(0)
	var edges [][]uint64 // of each dimension: 0, the cuts, the extent
	cells := uint64(1)
	for d, count := range counts {
		if uint64(count) > uint64(len(cuts)) || !ascendWithin(cuts[:count], shape[d]) {
			return nil, "R-IDX-14"
		}
		edges = append(edges, append(prepend(0, cuts[:count]), shape[d]))
		cuts = cuts[count:]
		if cells *= uint64(count) + 1; cells > uint64(shards) {
			return nil, "R-IDX-14"
		}
	}
	if len(cuts) != 0 {
		return nil, "R-IDX-14"
	}
	runCounts := make([]uint32, cells)
	var runCuts []uint64
	if grid.has(2) || grid.has(3) {
		if !grid.has(2) || !grid.has(3) || grid.count(2) != int(cells) || grid.count(3) > shards {
			return nil, "R-IDX-15"
		}
		runCounts, runCuts = grid.u32s(2), grid.u64s(3)
		if len(runCuts) == 0 || sum(runCounts) != uint64(len(runCuts)) {
			return nil, "R-IDX-15"
		}
	}
	if cells+uint64(len(runCuts)) != uint64(shards) {
		return nil, "R-IDX-14"
	}
	var regions []region
	at := make([]int, len(shape)) // the cell, in each dimension
	for _, count := range runCounts {
		b := box{make([]uint64, len(shape)), make([]uint64, len(shape))}
		for d, i := range at {
			b.offset[d], b.extent[d] = edges[d][i], edges[d][i+1]-edges[d][i]
		}
		if !ascendWithin(runCuts[:count], product(b.extent)) {
			return nil, "R-IDX-15"
		}
		begin := uint64(0)
		for _, end := range append(append([]uint64{}, runCuts[:count]...), product(b.extent)) {
			regions = append(regions, region{b, begin, end})
			begin = end
		}
		runCuts = runCuts[count:]
		for d := len(at) - 1; d >= 0; d-- {
			if at[d]++; at[d]+1 < len(edges[d]) {
				break
			}
			at[d] = 0
		}
	}
	return regions, ""
}

func sum(values []uint32) (total uint64) {
	for _, value := range values {
		total += uint64(value)
	}
	return total
}

// R-IDX-16 and R-IDX-17: the regions of a box list, or the rule that is broken.
func boxListRegions(shape []uint64, list table, shards int) ([]region, string) {
	n := len(shape)
	if list.count(0) != shards*2*n {
		return nil, "R-IDX-16"
	}
	numbers, runs := list.u64s(0), []uint64(nil)
	if list.has(1) && list.count(1) == 2*shards {
		runs = list.u64s(1)
	}
	regions := make([]region, shards)
	for i := range regions {
		b := box{numbers[2*n*i : 2*n*i+n], numbers[2*n*i+n : 2*n*i+2*n]}
		for d, whole := range shape {
			if b.extent[d] == 0 || b.extent[d] > whole || b.offset[d] > whole-b.extent[d] {
				return nil, "R-IDX-16"
			}
		}
		regions[i] = region{b, 0, product(b.extent)}
		if runs != nil {
			regions[i].begin = runs[2*i]
		}
		if i > 0 {
			before := regions[i-1]
			order := compare(before.box, b)
			if order > 0 || order == 0 && before.begin >= regions[i].begin {
				return nil, "R-IDX-16"
			}
		}
	}
	if !list.has(1) {
		return regions, ""
	}
	if runs == nil {
		return nil, "R-IDX-17"
	}
	allFull := true
	for i := range regions {
		full := regions[i].end
		regions[i].end = runs[2*i+1]
		if regions[i].begin >= regions[i].end || regions[i].end > full {
			return nil, "R-IDX-17"
		}
		allFull = allFull && regions[i].begin == 0 && regions[i].end == full
	}
	if allFull {
		return nil, "R-IDX-17"
	}
	return regions, ""
}

func compare(a, b box) int {
	for _, pair := range [][2][]uint64{{a.offset, b.offset}, {a.extent, b.extent}} {
		for d, value := range pair[0] {
			if value != pair[1][d] {
				if value < pair[1][d] {
					return -1
				}
				return 1
			}
		}
	}
	return 0
}

// R-IDX-18, of runs of equal boxes. The regions ascend.
func equalBoxesOverlap(regions []region) bool {
	for i := 1; i < len(regions); i++ {
		if compare(regions[i-1].box, regions[i].box) == 0 && regions[i-1].end > regions[i].begin {
			return true
		}
	}
	return false
}

// Section 3 (R-IDX-13). The regions are good, ascend, and runs of equal boxes do not overlap.
func isGrid(shape []uint64, regions []region) bool {
	var boxes []box
	for i, r := range regions {
		isNew := i == 0 || compare(regions[i-1].box, r.box) != 0
		if isNew {
			boxes = append(boxes, r.box)
		}
		if isNew != (r.begin == 0) || !isNew && r.begin != regions[i-1].end {
			return false
		}
		isLast := i+1 == len(regions) || compare(r.box, regions[i+1].box) != 0
		if isLast && r.end != product(r.extent) {
			return false
		}
	}
	cells := uint64(1)
	ends := make([]map[uint64]uint64, len(shape)) // of each dimension, where the interval that begins here ends
	for d, whole := range shape {
		ends[d] = map[uint64]uint64{}
		for _, b := range boxes {
			ends[d][b.offset[d]] = 0
		}
		var begins []uint64
		for begin := range ends[d] {
			begins = append(begins, begin)
		}
		sort.Slice(begins, func(i, j int) bool { return begins[i] < begins[j] })
		for i, begin := range begins {
			ends[d][begin] = append(begins, whole)[i+1]
		}
		if cells *= uint64(len(begins)); begins[0] != 0 || cells > uint64(len(boxes)) {
			return false
		}
	}
	for _, b := range boxes {
		for d := range shape {
			if ends[d][b.offset[d]] != b.offset[d]+b.extent[d] {
				return false
			}
		}
	}
	return cells == uint64(len(boxes))
}

// Section 4 (R-IDX-18): whether the regions tile the tensor, and whether the corners that this takes are too many (R-IDX-04).
func tile(shape []uint64, regions []region) (tiles, isTooMany bool) {
	cornerMax := 1 << 20
	if perShard := (len(regions) + 1) << 10; perShard < cornerMax {
		cornerMax = perShard
	}
	boxes := []box{{make([]uint64, len(shape)), shape}}
	for _, r := range regions {
		if boxes = append(boxes, runBoxes(r)...); len(boxes) > cornerMax {
			return false, true
		}
	}
	var divided []int
	for d, whole := range shape {
		for _, b := range boxes {
			if b.extent[d] != whole {
				divided = append(divided, d)
				break
			}
		}
	}
	if len(boxes)<<len(divided) > cornerMax {
		return false, true
	}
	sums := map[string]int{}
	for i, b := range boxes {
		for corner := 0; corner < 1<<len(divided); corner++ {
			key := make([]byte, 8*len(divided))
			for n, d := range divided {
				binary.LittleEndian.PutUint64(key[8*n:], b.offset[d]+b.extent[d]*uint64(corner>>n&1))
			}
			weight := 1 - 2*(bits.OnesCount(uint(corner))&1)
			if i == 0 { // the tensor itself
				weight = -weight
			}
			sums[string(key)] += weight
		}
	}
	for _, sum := range sums {
		if sum != 0 {
			return false, false
		}
	}
	return true, false
}
