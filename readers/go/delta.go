// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"path/filepath"
)

// Deltas (delta.md).

const (
	depthMax = 64
	noStep   = ^uint64(0)
	gapStep  = 255
)

// What an index pins of the base.
type basePin struct {
	attempt, indexDigest digest
	step, depth          uint64
}

// R-DLT-01 and R-DLT-02.
func (ix *index) readBase(root table) {
	if ix.header.incompat&incompatDeltas == 0 {
		return
	}
	isWhole := root.has(baseField) && ix.header.incompat&incompatCodecs != 0
	require(isWhole, "R-DLT-01", ix.file, "incompat features %#x, with a base: %v", ix.header.incompat, root.has(baseField))
	t := root.table(baseField)
	pin := &basePin{t.bits128(0), t.bits128(1), t.number(2), t.number(3)}
	isPossible := pin.attempt != digest{} && 1 <= pin.depth && pin.depth <= depthMax
	require(isPossible, "R-DLT-02", ix.file, "the base %x, a depth of %d", pin.attempt, pin.depth)
	ix.base = pin
	for _, b := range ix.blobs {
		b.isOfDelta = true
	}
}

func (ix *index) depth() uint64 {
	if ix.base == nil {
		return 0
	}
	return ix.base.depth
}

// Directories of bases that the caller named, by their attempts.
type namedBases map[digest]directory

func (bases namedBases) add(path string) error {
	violation := catch(func() {
		d := openDirectory(path)
		bases[d.marker().id] = d
	})
	if violation != nil {
		return errors.New(violation.Text)
	}
	return nil
}

type chunkKey struct {
	blob   uint32
	record uint64
}

// A base is a checkpoint that a delta is read with. It keeps the chunks of one tensor, so that none is decoded twice, however
// the chunks of the delta lie in those of the base.
type base struct {
	*checkpoint
	place   string // as seen from the delta
	byName  map[string]*item
	tensor  *item
	records map[chunkKey]record
	chunks  map[chunkKey][]byte
}

// Does something in the base; files of violations are named from the directory of the delta.
func within(place string, action func()) {
	if violation := catch(action); violation != nil {
		if !path.IsAbs(violation.File) {
			violation.File = path.Join(place, violation.File)
		}
		panic(violation)
	}
}

var holdsNoCheckpoint = map[string]bool{"R-DIR-01": true, "R-DIR-05": true, "R-MRK-01": true, "R-MRK-09": true}

// R-DLT-03 and R-DLT-04; nil unless this is a delta.
func (d directory) openBase(ix *index, bases namedBases) *base {
	pin := ix.base
	if pin == nil {
		return nil
	}
	place := fmt.Sprintf("../step-%012d-%x", pin.step, pin.attempt[:4])
	found, isNamed := bases[pin.attempt]
	if isNamed {
		place = found.path
	}
	var m marker
	missing := catch(func() {
		within(place, func() {
			if !isNamed {
				require(pin.step != noStep, "R-DIR-01", "", "a base without a step has to be named")
				// Not cleaned: a link to the delta is followed.
				found = openDirectory(d.path + string(filepath.Separator) + place)
			}
			m = found.marker()
		})
	})
	if missing != nil && !holdsNoCheckpoint[missing.Rule] {
		panic(missing)
	}
	if missing != nil {
		fail("R-DLT-03", missing.File, "the base: %s", missing.Text)
	}
	isPinned := m.id == pin.attempt && m.indexDigest == pin.indexDigest
	require(isPinned, "R-DLT-04", place, "the marker is not that of the base")
	b := &base{place: place, byName: map[string]*item{}}
	within(place, func() {
		own := found.index(m)
		if own.depth()+1 == pin.depth {
			b.checkpoint = found.open(own, bases)
		}
	})
	require(b.checkpoint != nil, "R-DLT-04", place, "not a depth of %d, to which the delta adds 1", pin.depth-1)
	for _, it := range b.index.items {
		if !it.isObject() {
			b.byName[string(it.name)] = it
		}
	}
	return b
}

// R-DLT-05: the tensor of the base, nil if there is none like this one.
func (b *base) alike(it *item) *item {
	own := b.byName[string(it.name)]
	if own == nil || own.dtype != it.dtype || own.elementBytes != it.elementBytes || len(own.shape) != len(it.shape) {
		return nil
	}
	for d, extent := range own.shape {
		if extent != it.shape[d] {
			return nil
		}
	}
	return own
}

// What a chunk holds of the region of its shard.
func (s shard) part(chunk uint64) region {
	elements := s.owner.chunkBytes / s.owner.elementBytes
	begin := s.region.begin + chunk*elements
	return region{s.region.box, begin, min(begin+elements, s.region.end)}
}

// The bytes of a region of a tensor, however the base has it in its shards.
func (b *base) read(it *item, r region) (out []byte) {
	if b.tensor != it {
		b.tensor, b.records, b.chunks = it, map[chunkKey]record{}, map[chunkKey][]byte{}
	}
	within(b.place, func() {
		for _, wanted := range runBoxes(r) {
			data := make([]byte, product(wanted.extent)*it.elementBytes)
			for n := range it.regions {
				b.readCommon(it, n, wanted, data)
			}
			out = append(out, data...)
		}
	})
	return out
}

// Copies what a shard holds of a box, row by row, to where it is in the box.
func (b *base) readCommon(it *item, n int, wanted box, out []byte) {
	r := it.regions[n]
	low, count := make([]uint64, len(it.shape)), make([]uint64, len(it.shape))
	for d := range low {
		high := min(r.box.offset[d]+r.box.extent[d], wanted.offset[d]+wanted.extent[d])
		low[d] = r.box.offset[d]
		if low[d] < wanted.offset[d] {
			low[d] = wanted.offset[d]
		}
		if low[d] >= high {
			return
		}
		count[d] = high - low[d]
	}
	row := uint64(1)
	if last := len(count) - 1; last >= 0 {
		row, count[last] = count[last], 1
	}
	for i := uint64(0); i < product(count); i++ {
		from, to := uint64(0), uint64(0)
		stride := product(count)
		for d := range low {
			stride /= count[d]
			at := low[d] + i/stride%count[d]
			from = from*r.box.extent[d] + at - r.box.offset[d]
			to = to*wanted.extent[d] + at - wanted.offset[d]
		}
		begin, end := from, min(from+row, r.end)
		if begin < r.begin {
			begin = r.begin
		}
		if begin < end {
			to = (to + begin - from) * it.elementBytes
			b.readRun(it, n, (begin-r.begin)*it.elementBytes, out[to:to+(end-begin)*it.elementBytes])
		}
	}
}

// Bytes of a shard from a place on.
func (b *base) readRun(it *item, n int, from uint64, out []byte) {
	for len(out) > 0 {
		chunk := b.chunk(it, n, from/it.chunkBytes)
		copied := copy(out, chunk[from%it.chunkBytes:])
		out, from = out[copied:], from+uint64(copied)
	}
}

// The raw bytes of a chunk. Its record lies behind and before those of its neighbours, as far as they were read.
func (b *base) chunk(it *item, n int, number uint64) []byte {
	s := it.shard(n)
	key := chunkKey{it.refs[n].blob, s.first + number}
	if data, isKept := b.chunks[key]; isKept {
		return data
	}
	t := b.table(key.blob)
	r := t.record(key.record, it)
	ordinal, end := unknown, unknown
	if before, isKnown := b.records[chunkKey{key.blob, key.record - 1}]; isKnown && number > 0 {
		ordinal, end = uint64(before.ordinal), before.end()
	}
	t.checkPlace(r, s, number, ordinal, end)
	if after, isKnown := b.records[chunkKey{key.blob, key.record + 1}]; isKnown && (number+1)*it.chunkBytes < s.rawBytes {
		isNext := after.ordinal == r.ordinal && after.offset == r.end()
		require(isNext, "R-REC-04", t.blob.name, "a chunk at %d behind the end at %d", after.offset, r.end())
	}
	b.records[key] = r
	b.chunks[key] = t.chunk(r, s, b.base)
	return b.chunks[key]
}

// A change list; without an entry it says that the chunk equals the base bytes.
type changes struct {
	elementBytes uint64
	elements     []uint64 // the number of each entry's element
	planes       []byte   // the split bytes of the changes
}

// R-COD-02, R-COD-04 to 07 and R-DLT-07 of the stored bytes of a chunk with so many elements. Nothing is decoded that is longer than a list of these can be.
func readChanges(stored []byte, count, elementBytes uint64, file string) changes {
	if len(stored) == 0 {
		return changes{elementBytes: elementBytes}
	}
	holds := func(isSo bool, format string, arguments ...any) {
		require(isSo, "R-DLT-07", file, format, arguments...)
	}
	h := readFrameHeader(stored, file)
	longest := 8 + count + count/gapStep + count*elementBytes
	holds(h.hasSize && 8 < h.contentBytes && h.contentBytes <= longest, "a content size of %d", h.contentBytes)
	h.check(stored, file)
	list := decodeFrame(stored, h.contentBytes, file)
	entries, gapBytes := uint64(u32(list, 0)), uint64(u32(list, 4))
	holds(1 <= entries && entries <= count, "%d entries in %d elements", entries, count)
	holds(entries <= gapBytes && gapBytes <= entries+count/gapStep, "%d bytes of gaps", gapBytes)
	holds(uint64(len(list)) == 8+gapBytes+entries*elementBytes, "a list of %d bytes", len(list))
	gaps := list[8 : 8+gapBytes]
	isWhole := gaps[gapBytes-1] != gapStep && gapBytes-uint64(bytes.Count(gaps, []byte{gapStep})) == entries
	holds(isWhole, "the gaps are not those of %d entries", entries)
	found := changes{elementBytes, make([]uint64, 0, entries), list[8+gapBytes:]}
	next := uint64(0)
	for _, gap := range gaps {
		if next += uint64(gap); gap < gapStep {
			found.elements = append(found.elements, next)
			next++
		}
	}
	holds(next <= count, "an entry for element %d of %d", next-1, count)
	return found
}

// Changes the base bytes into the raw bytes of the chunk.
func (c changes) apply(data []byte) []byte {
	for i, element := range c.elements {
		for plane := uint64(0); plane < c.elementBytes; plane++ {
			data[element*c.elementBytes+plane] ^= c.planes[plane*uint64(len(c.elements))+uint64(i)]
		}
	}
	return data
}
