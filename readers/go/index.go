// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"math/bits"
	"sort"
	"unicode"
	"unicode/utf8"
)

// The tables of schema/index.fbs; a field's position is its id.
var (
	u8Field   = field{kind: number, elementBytes: 1}
	u16Field  = field{kind: number, elementBytes: 2}
	u32Field  = field{kind: number, elementBytes: 4}
	u64Field  = field{kind: number, elementBytes: 8}
	textField = field{kind: text, elementBytes: 1, required: true}
	idField   = field{kind: structure, elementBytes: 16, align: 1, required: true}

	grids = &schema{[]field{
		{kind: numbers, elementBytes: 8, align: 8, required: true}, {kind: numbers, elementBytes: 4, required: true},
		{kind: numbers, elementBytes: 4}, {kind: numbers, elementBytes: 8, align: 8}}, true}
	boxLists = &schema{[]field{
		{kind: numbers, elementBytes: 8, align: 8, required: true}, {kind: numbers, elementBytes: 8, align: 8}}, true}
	tensors = &schema{[]field{
		textField, {kind: numbers, elementBytes: 8, align: 8, required: true}, {kind: oneTable, table: grids},
		{kind: oneTable, table: boxLists}, {kind: numbers, elementBytes: 8, required: true}, u16Field, u16Field, u8Field,
		{kind: manyTexts, countMax: 32}}, false}
	objects = &schema{[]field{
		textField, textField, u64Field, {kind: structure, elementBytes: 8, align: 4, required: true}, u8Field}, false}
	blobs       = &schema{[]field{idField, u64Field, u64Field, u32Field, u32Field, idField, idField}, false}
	meshAxes    = &schema{[]field{textField, u32Field}, false}
	provenances = &schema{[]field{textField, textField}, false}

	// The fields of fingerprint.md, attributes.md and delta.md.
	fingerprintKind = field{kind: structure, elementBytes: 16, align: 1}
	attributesKind  = field{kind: numbers, elementBytes: 1}
	baseKind        = field{kind: oneTable, table: &schema{[]field{idField, idField, u64Field, u32Field}, false}}

	indexFields = []field{
		{kind: manyTables, table: blobs, required: true}, u16Field, u64Field, u64Field,
		{kind: manyTables, table: meshAxes, required: true}, {kind: manyTables, table: provenances, required: true}}
)

const fingerprintField, tensorAttributesField, baseField, indexAttributesField = 9, 10, 8, 9

// The root table of an index or a manifest in a file with this header, and what R-IDX-02 and R-IDX-03 say of it.
func (h header) rootTable(data []byte, file, identifier string) table {
	announced := func(isAnnounced bool, f field) field {
		if isAnnounced {
			return f
		}
		return field{kind: unannounced}
	}
	attributes := announced(h.compat&compatAttributes != 0, attributesKind)
	t := &schema{append(tensors.fields[:fingerprintField:fingerprintField],
		announced(h.compat&compatFingerprints != 0, fingerprintKind), attributes), false}
	fields := []field{{kind: manyTables, table: t, required: true}, {kind: manyTables, table: objects, required: true}}
	if identifier == indexIdentifier {
		fields = append(append(fields, indexFields...), announced(h.incompat&incompatDeltas != 0, baseKind), attributes)
	}
	return rootTable(data, file, identifier, &schema{fields, false}, h.unknownCompat() != 0)
}

const indexIdentifier, manifestIdentifier = "SPIX", "SPMF"

// limits.md
const (
	bufferMax         = 1 << 30
	tensorCountMax    = 1 << 22
	objectCountMax    = 1 << 20
	blobCountMax      = 1 << 20
	shardCountMax     = 1 << 26
	recordCountMax    = 1 << 28
	boxListShardMax   = 1 << 16
	blobBytesMax      = 1 << 50
	ndimMax           = 32
	nameBytesMax      = 1 << 10
	mediaTypeBytesMax = 255
	valueBytesMax     = 1 << 16
	elementBytesMax   = 256
)

var registeredBytes = map[uint64]uint64{1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 2, 8: 4, 9: 8, 10: 2, 11: 2, 12: 4, 13: 8,
	14: 8, 15: 16, 16: 1, 17: 1, 18: 1, 19: 1, 20: 1, 21: 1, 22: 4}

type shardRef struct{ blob, first uint32 }

// An item is a tensor or an object. The latter has dtype 0, and one region of one dimension unless it is empty.
type item struct {
	name, mediaType     []byte
	shape               []uint64
	dtype, elementBytes uint64
	chunkBytes          uint64
	rawBytes            uint64
	refs                []shardRef
	regions             []region
	fingerprint         *fingerprint // nil if it has none
	attributes          []byte       // nil if it has none
}

func (it *item) isObject() bool { return it.dtype == 0 }

// A shard of a blob has the records [first, first + count).
type shard struct {
	owner        *item
	first, count uint64
	rawBytes     uint64
	region       region
}

func (s shard) alignment() uint64 {
	if s.rawBytes >= 65536 {
		return 4096
	}
	return 64
}

// What the index pins of a blob.
type blob struct {
	name                      string
	id                        digest
	fileBytes, tableOffset    uint64
	recordCount, shardCount   uint64
	groupListDigest, trailer  digest
	groupListEnd, recordsFrom uint64
	shards                    []shard
	isOfDelta                 bool
}

type index struct {
	header header
	file   string
	items  []*item // tensors, then objects
	blobs  []*blob
	base   *basePin // nil unless this is a delta
}

func roundUp(value, multiple uint64) uint64 { return (value + multiple - 1) / multiple * multiple }

func min(a, b uint64) uint64 {
	if a < b {
		return a
	}
	return b
}

// Tensors and objects of an index or a manifest.
type metadata struct {
	file       string
	isManifest bool
	root       table
	tensors    []table
	objects    []table
	items      []*item
}

// Step 3 of reader-rules.md, section 3, then step 4.
func (d directory) index(m marker) *index {
	file := fmt.Sprintf("%x.index", m.id)
	require(m.indexSize <= bufferMax, "R-IDX-01", file, "%d bytes", m.indexSize)
	size, isThere := d.size(file)
	require(isThere && size >= m.indexSize, "R-MRK-05", file, "%d of %d bytes", size, m.indexSize)
	require(size == m.indexSize, "R-MRK-08", file, "%d bytes instead of %d", size, m.indexSize)
	data := d.read(file, 0, size)
	require(hash(data) == m.indexDigest, "R-MRK-06", file, "digest of the index differs")
	head := d.indexHeader(file, m)
	md := &metadata{file: file, root: head.rootTable(data[headerBytes:], file, indexIdentifier)}
	ix := &index{header: head, file: file}
	md.checkNames()
	md.checkOrigin()
	ix.readBlobs(md)
	require(md.root.number(3) == 1, "R-IDX-08", file, "digest algorithm %d", md.root.number(3))
	md.checkItems()
	ix.items = md.items
	records := uint64(0)
	for _, b := range ix.blobs {
		records += b.recordCount
	}
	for i, shards := range md.shards(len(ix.blobs), records) {
		ix.blobs[i].shards = shards
		md.checkRecords(shards, ix.blobs[i].recordCount)
	}
	for _, b := range ix.blobs {
		b.check(file)
	}
	md.checkEmptyObjects()
	require(md.root.number(5) == md.rawBytes(), "R-IDX-23", file, "raw bytes %d", md.root.number(5))
	md.checkFingerprints()
	md.checkAttributes()
	ix.readBase(md.root)
	total, carries := uint64(0), false
	for _, b := range ix.blobs {
		var carry uint64
		total, carry = bits.Add64(total, b.fileBytes, 0)
		carries = carries || carry != 0
	}
	require(m.blobCount == uint64(len(ix.blobs)) && m.totalBytes == total && !carries, "R-MRK-07", file,
		"%d blobs of %d bytes", len(ix.blobs), total)
	return ix
}

// R-IDX-04 of blobs, R-IDX-07.
func (ix *index) readBlobs(md *metadata) {
	for _, t := range md.root.tables(2) {
		b := &blob{id: t.bits128(0), fileBytes: t.number(1), tableOffset: t.number(2), recordCount: t.number(3),
			shardCount: t.number(4), groupListDigest: t.bits128(5), trailer: t.bits128(6)}
		b.name = fmt.Sprintf("%x.blob", b.id)
		b.groupListEnd = b.tableOffset + 16*((b.recordCount+63)/64)
		b.recordsFrom = roundUp(b.groupListEnd, 64)
		before := digest{}
		if len(ix.blobs) > 0 {
			before = ix.blobs[len(ix.blobs)-1].id
		}
		require(bytes.Compare(before[:], b.id[:]) < 0, "R-IDX-07", md.file, "blob %x behind %x", b.id, before)
		ix.blobs = append(ix.blobs, b)
	}
}

// R-IDX-21.
func (b *blob) check(file string) {
	fits := b.fileBytes%4096 == 0 && b.tableOffset%64 == 0 && headerBytes <= b.tableOffset && b.tableOffset <= b.fileBytes &&
		b.recordsFrom+64*b.recordCount+256 <= b.fileBytes
	require(fits && b.fileBytes >= 4096, "R-IDX-21", file, "the table of %s does not fit", b.name)
	require(b.recordCount > 0 || b.tableOffset == headerBytes, "R-IDX-21", file, "a table at %d without a record", b.tableOffset)
	require(b.shardCount == uint64(len(b.shards)), "R-IDX-21", file, "%d shards of %s", b.shardCount, b.name)
}

// R-IDX-04, R-IDX-05 and R-IDX-06.
func (md *metadata) checkNames() {
	limit := func(value, most uint64, what string) {
		require(value <= most, "R-IDX-04", md.file, "%d %s, at most %d", value, what, most)
	}
	if !md.isManifest {
		limit(uint64(len(md.root.offsets(2))), blobCountMax, "blobs")
		records := uint64(0)
		for _, t := range md.root.tables(2) {
			records += t.number(3)
			limit(t.number(1), blobBytesMax, "bytes of a blob")
		}
		limit(records, recordCountMax, "records")
	}
	limit(uint64(len(md.root.offsets(0))), tensorCountMax, "tensors")
	limit(uint64(len(md.root.offsets(1))), objectCountMax, "objects")
	md.tensors, md.objects = md.root.tables(0), md.root.tables(1)
	shards := uint64(0)
	for _, t := range md.tensors {
		shards += uint64(t.count(4))
		if t.has(3) {
			limit(uint64(t.count(4)), boxListShardMax, "shards of a box list")
		}
	}
	for _, t := range md.objects {
		if t.number(2) > 0 {
			shards++
		}
	}
	limit(shards, shardCountMax, "shards")
	for _, t := range md.tensors {
		md.checkText(t.elements(0), nameBytesMax)
		for _, placement := range t.texts(8) {
			md.checkText(placement, nameBytesMax)
		}
	}
	for _, t := range md.objects {
		md.checkText(t.elements(0), nameBytesMax)
		md.checkText(t.elements(1), mediaTypeBytesMax)
	}
	md.checkAscending(md.tensors)
	md.checkAscending(md.objects)
}

func (md *metadata) checkText(text []byte, bytesMax int) {
	require(0 < len(text) && len(text) <= bytesMax, "R-IDX-05", md.file, "a text of %d bytes", len(text))
	require(utf8.Valid(text), "R-IDX-05", md.file, "%q is not UTF-8", text)
	require(bytes.IndexFunc(text, unicode.IsControl) < 0, "R-IDX-05", md.file, "a control character in %q", text)
}

func (md *metadata) checkAscending(tables []table) {
	for i := 1; i < len(tables); i++ {
		before, name := tables[i-1].elements(0), tables[i].elements(0)
		require(bytes.Compare(before, name) < 0, "R-IDX-06", md.file, "%q behind %q", name, before)
	}
}

// R-IDX-05 and R-IDX-06 of mesh and provenance.
func (md *metadata) checkOrigin() {
	for _, axis := range md.root.tables(6) {
		md.checkText(axis.elements(0), nameBytesMax)
	}
	entries := md.root.tables(7)
	for _, entry := range entries {
		md.checkText(entry.elements(0), nameBytesMax)
		value := entry.elements(1)
		isText := len(value) <= valueBytesMax && utf8.Valid(value)
		require(isText, "R-IDX-05", md.file, "a value of %d bytes, or not of UTF-8", len(value))
	}
	md.checkAscending(entries)
}

// R-IDX-09, R-IDX-24 and R-IDX-10 to R-IDX-18, item by item.
func (md *metadata) checkItems() {
	for _, t := range md.tensors {
		it := &item{name: t.elements(0), dtype: t.number(5), elementBytes: t.number(6)}
		registered, isRegistered := registeredBytes[it.dtype]
		isPossible := it.dtype != 0 && (!isRegistered || it.elementBytes == registered)
		require(isPossible, "R-IDX-09", md.file, "dtype %d of %d bytes", it.dtype, it.elementBytes)
		isKnown := bits.OnesCount64(it.elementBytes) == 1 && it.elementBytes <= elementBytesMax
		require(isKnown, "R-IDX-24", md.file, "dtype %d of %d bytes", it.dtype, it.elementBytes)
		it.chunkBytes = md.chunkBytes(t.number(7))
		require(t.count(1) <= ndimMax, "R-IDX-11", md.file, "%d dimensions", t.count(1))
		it.shape = t.u64s(1)
		rawBytes, fits := checkedProduct(append(prepend(it.elementBytes, nil), it.shape...))
		require(fits, "R-IDX-11", md.file, "%q has more bytes than 64 bits count", it.name)
		it.rawBytes = rawBytes
		it.attributes = t.announcedElements(tensorAttributesField)
		if t.schema.fields[fingerprintField].kind != unannounced && t.has(fingerprintField) {
			at := t.place(fingerprintField)
			it.fingerprint = &fingerprint{u64(t.data, at), u64(t.data, at+8)}
		}
		md.items = append(md.items, it)
	}
	for _, t := range md.objects {
		md.items = append(md.items, &item{name: t.elements(0), mediaType: t.elements(1), elementBytes: 1,
			chunkBytes: md.chunkBytes(t.number(4)), rawBytes: t.number(2)})
	}
	md.rawBytes()
	for i, t := range md.tensors {
		md.readGeometry(t, md.items[i])
	}
}

// R-IDX-10.
func (md *metadata) chunkBytes(log2 uint64) uint64 {
	require(12 <= log2 && log2 <= 27, "R-IDX-10", md.file, "chunks of 2^%d bytes", log2)
	return 1 << log2
}

// R-IDX-11 of the sum.
func (md *metadata) rawBytes() uint64 {
	total := uint64(0)
	for _, it := range md.items {
		sum, carry := bits.Add64(total, it.rawBytes, 0)
		require(carry == 0, "R-IDX-11", md.file, "more raw bytes than 64 bits count")
		total = sum
	}
	return total
}

// R-IDX-12 to R-IDX-18 of a tensor.
func (md *metadata) readGeometry(t table, it *item) {
	shards, hasGrid, hasBoxes := t.count(4), t.has(2), t.has(3)
	if it.rawBytes == 0 {
		require(!hasGrid && !hasBoxes && shards == 0, "R-IDX-12", md.file, "%q is empty and has shards or geometry", it.name)
		return
	}
	require(hasGrid != hasBoxes && shards > 0, "R-IDX-12", md.file, "%q has two geometries, none or no shard", it.name)
	require(hasBoxes || !md.isManifest, "R-IDX-13", md.file, "%q has a grid in a manifest", it.name)
	var rule string
	if hasGrid {
		it.regions, rule = gridRegions(it.shape, t.table(2), shards)
	} else {
		it.regions, rule = boxListRegions(it.shape, t.table(3), shards)
	}
	require(rule == "", rule, md.file, "the geometry of %q", it.name)
	if hasGrid {
		return
	}
	require(!equalBoxesOverlap(it.regions), "R-IDX-18", md.file, "runs of equal boxes of %q overlap", it.name)
	if md.isManifest {
		return
	}
	require(!isGrid(it.shape, it.regions), "R-IDX-13", md.file, "a grid describes the shards of %q", it.name)
	tiles, isTooMany := tile(it.shape, it.regions)
	require(!isTooMany, "R-IDX-04", md.file, "too many corners in the tiling check of %q", it.name)
	require(tiles, "R-IDX-18", md.file, "the shards of %q do not hold each element once", it.name)
}

// R-IDX-19, and R-IDX-20 as far as nothing is made for each shard: the shards of each blob, by their first records.
func (md *metadata) shards(blobCount int, recordCount uint64) [][]shard {
	count := uint64(0)
	for _, t := range md.tensors {
		count += uint64(t.count(4))
	}
	require(count <= recordCount, "R-IDX-20", md.file, "%d shards of tensors, %d records", count, recordCount)
	found := make([][]shard, blobCount)
	for i, it := range md.items {
		if i < len(md.tensors) {
			data := md.tensors[i].elements(4)
			for at := 0; at < len(data); at += 8 {
				it.refs = append(it.refs, refAt(data, at))
			}
		} else if it.rawBytes > 0 {
			it.refs = []shardRef{md.objects[i-len(md.tensors)].ref(3)}
			it.regions = []region{{box{[]uint64{0}, []uint64{it.rawBytes}}, 0, it.rawBytes}}
		}
		for n, ref := range it.refs {
			require(int64(ref.blob) < int64(blobCount), "R-IDX-19", md.file, "%q is in blob %d", it.name, ref.blob)
			s := shard{owner: it, first: uint64(ref.first), region: it.regions[n]}
			s.rawBytes = (s.region.end - s.region.begin) * it.elementBytes
			s.count = (s.rawBytes-1)/it.chunkBytes + 1
			found[ref.blob] = append(found[ref.blob], s)
		}
	}
	for _, shards := range found {
		sort.Slice(shards, func(i, j int) bool { return shards[i].first < shards[j].first })
	}
	return found
}

// R-IDX-20 of one blob.
func (md *metadata) checkRecords(shards []shard, recordCount uint64) {
	next := uint64(0)
	for _, s := range shards {
		require(s.first == next && s.count <= recordCount-next, "R-IDX-20", md.file, "records %d, where %d is next", s.first, next)
		next += s.count
	}
	require(next == recordCount, "R-IDX-20", md.file, "%d records in a table of %d", next, recordCount)
}

// R-IDX-22.
func (md *metadata) checkEmptyObjects() {
	for _, t := range md.objects {
		require(t.number(2) > 0 || t.ref(3) == shardRef{}, "R-IDX-22", md.file, "an empty object has a record")
	}
}
