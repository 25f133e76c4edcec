// SPDX-License-Identifier: Apache-2.0

package main

import "encoding/binary"

// A checkpoint that was opened: steps 1 to 5 of reader-rules.md, section 3, hold.
type checkpoint struct {
	directory directory
	index     *index
	tables    map[uint32]*recordTable
	base      *base // nil unless this is a delta
}

func open(path string, bases namedBases) *checkpoint {
	d := openDirectory(path)
	return d.open(d.index(d.marker()), bases)
}

// Step 5, and what delta.md says of the base.
func (d directory) open(ix *index, bases namedBases) *checkpoint {
	for _, b := range ix.blobs {
		d.checkPresence(b)
		d.checkLength(b)
	}
	return &checkpoint{d, ix, map[uint32]*recordTable{}, d.openBase(ix, bases)}
}

func (d directory) checkPresence(b *blob) {
	size, isThere := d.size(b.name)
	require(isThere && size >= b.fileBytes, "R-BLB-01", b.name, "%d of %d bytes", size, b.fileBytes)
}

func (d directory) checkLength(b *blob) {
	size, _ := d.size(b.name)
	require(size <= b.fileBytes, "R-BLB-09", b.name, "%d bytes instead of %d", size, b.fileBytes)
}

// The raw bytes of a tensor in row-major order, or of an object.
func (c *checkpoint) read(it *item) []byte {
	if it.isObject() && it.rawBytes > 0 {
		return c.readShard(it, 0)
	}
	out := make([]byte, it.rawBytes)
	for n, r := range it.regions {
		data := c.readShard(it, n)
		for _, b := range runBoxes(r) {
			data = data[it.place(out, b, data):]
		}
	}
	return out
}

// Puts the elements of a box where they belong in the tensor; returns the number of their bytes.
func (it *item) place(tensor []byte, b box, data []byte) int {
	at := make([]uint64, len(it.shape)) // the element within the box
	row := it.elementBytes
	if n := len(it.shape); n > 0 {
		row *= b.extent[n-1]
	}
	boxBytes := int(product(b.extent) * it.elementBytes)
	for from := 0; from < boxBytes; from += int(row) {
		position := uint64(0)
		for d, extent := range it.shape {
			position = position*extent + b.offset[d] + at[d]
		}
		copy(tensor[position*it.elementBytes:], data[from:from+int(row)])
		for d := len(at) - 2; d >= 0; d-- { // the next row
			if at[d]++; at[d] < b.extent[d] {
				break
			}
			at[d] = 0
		}
	}
	return boxBytes
}

func (c *checkpoint) table(blob uint32) *recordTable {
	if c.tables[blob] == nil {
		c.tables[blob] = c.directory.table(c.index.blobs[blob])
	}
	return c.tables[blob]
}

func (it *item) shard(n int) shard {
	r := it.regions[n]
	return shard{owner: it, first: uint64(it.refs[n].first), rawBytes: (r.end - r.begin) * it.elementBytes, region: r}
}

// The raw bytes of a shard: all its chunks, checked as reader-rules.md, section 4, says of what a read touches.
func (c *checkpoint) readShard(it *item, n int) []byte {
	t, s := c.table(it.refs[n].blob), it.shard(n)
	var out []byte
	ordinal, end := unknown, unknown
	for chunk := uint64(0); chunk*it.chunkBytes < s.rawBytes; chunk++ {
		r := t.record(s.first+chunk, it)
		t.checkPlace(r, s, chunk, ordinal, end)
		ordinal, end = uint64(r.ordinal), r.end()
		out = append(out, t.chunk(r, s, c.base)...)
	}
	return out
}

// The content digest (content-digest.md). An item is digested as its bytes are given.

func tag(text string) []byte { return append([]byte("SPC1 "+text), make([]byte, 11-len(text))...) }

func withLength(out, text []byte) []byte {
	return append(binary.LittleEndian.AppendUint32(out, uint32(len(text))), text...)
}

func (it *item) digest(data []byte) digest {
	var head []byte
	if !it.isObject() {
		head = withLength(tag("tensor"), it.name)
		head = binary.LittleEndian.AppendUint16(head, uint16(it.dtype))
		head = binary.LittleEndian.AppendUint32(head, uint32(it.elementBytes))
		head = binary.LittleEndian.AppendUint32(head, uint32(len(it.shape)))
		for _, extent := range it.shape {
			head = binary.LittleEndian.AppendUint64(head, extent)
		}
	} else {
		head = withLength(withLength(tag("object"), it.name), it.mediaType)
		head = binary.LittleEndian.AppendUint64(head, uint64(len(data)))
	}
	for len(data) > 0 {
		block := data[:min(65536, uint64(len(data)))]
		found := hash(append(tag("block"), block...))
		head = append(head, found[:]...)
		data = data[len(block):]
	}
	return hash(head)
}

// The digest of all tensors and objects, every byte of which is read.
func (c *checkpoint) digest() digest {
	tensors := uint64(0)
	var digests []byte
	for _, it := range c.index.items {
		if !it.isObject() {
			tensors++
		}
		found := it.digest(c.read(it))
		digests = append(digests, found[:]...)
	}
	head := binary.LittleEndian.AppendUint64(tag("content"), tensors)
	head = binary.LittleEndian.AppendUint64(head, uint64(len(c.index.items))-tensors)
	return hash(append(head, digests...))
}
