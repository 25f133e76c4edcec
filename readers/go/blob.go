// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
)

const (
	trailerBytes = 256
	recordBytes  = 64
	trailerMagic = "\x89SPB\r\n\x1a\n"
)

// A record says where a chunk lies (container.md, section 5).
type record struct {
	offset                  uint64
	stored, raw             uint32
	ordinal, chunk          uint32
	codec, reserved         uint16
	source                  uint32
	rawDigest, storedDigest digest
}

func (r record) end() uint64 { return r.offset + uint64(r.stored) }

// The group list and the records of a blob, as far as they were asked for.
type recordTable struct {
	directory directory
	blob      *blob
	groupList []byte
	groups    map[uint64][]byte
}

// R-BLB-05 of the group list.
func (d directory) table(b *blob) *recordTable {
	list := d.read(b.name, b.tableOffset, b.groupListEnd-b.tableOffset)
	require(hash(list) == b.groupListDigest, "R-BLB-05", b.name, "digest of the group list differs")
	return &recordTable{d, b, list, map[uint64][]byte{}}
}

// R-BLB-05 of a group, then what a record says alone: R-COD-01 or R-DLT-08, R-REC-05, R-REC-03 or R-DLT-06.
func (t *recordTable) record(n uint64, owner *item) record {
	group := n / 64
	if t.groups[group] == nil {
		first := group * 64
		count := min(64, t.blob.recordCount-first)
		data := t.directory.read(t.blob.name, t.blob.recordsFrom+recordBytes*first, recordBytes*count)
		require(hash(data) == bits128(t.groupList, int(16*group)), "R-BLB-05", t.blob.name, "digest of group %d differs", group)
		t.groups[group] = data
	}
	data := t.groups[group][recordBytes*(n%64):]
	r := record{u64(data, 0), u32(data, 8), u32(data, 12), u32(data, 16), u32(data, 20), u16(data, 24), u16(data, 26),
		u32(data, 28), bits128(data, 32), bits128(data, 48)}
	require(r.codec != codecChanges || t.blob.isOfDelta, "R-DLT-08", t.blob.name, "record %d has changes, and there is no base", n)
	require(r.codec <= codecByteSplit || r.codec == codecChanges, "R-COD-01", t.blob.name, "codec %d of record %d", r.codec, n)
	require(r.reserved == 0 && r.source == 0, "R-REC-05", t.blob.name, "reserved field or source blob of record %d", n)
	isShorter := r.stored < r.raw && r.raw <= codedBytesMax
	switch r.codec {
	case codecNone:
		require(r.stored == r.raw && r.storedDigest == digest{}, "R-REC-03", t.blob.name, "record %d is not plain", n)
	case codecChanges:
		require(isShorter && !owner.isObject(), "R-DLT-06", t.blob.name, "%d bytes of %d of %q", r.stored, r.raw, owner.name)
	default:
		require(isShorter && r.stored > 0, "R-REC-03", t.blob.name, "%d bytes of %d", r.stored, r.raw)
	}
	return r
}

const unknown = ^uint64(0)

// R-REC-01, R-REC-02 and R-REC-04 of a chunk. The ordinal of its shard and the end of the chunk before it may be unknown.
func (t *recordTable) checkPlace(r record, s shard, chunk, ordinal, before uint64) {
	name := t.blob.name
	require(uint64(r.chunk) == chunk && (ordinal == unknown || uint64(r.ordinal) == ordinal), "R-REC-01", name,
		"chunk %d of shard %d", r.chunk, r.ordinal)
	require(uint64(r.raw) == min(s.owner.chunkBytes, s.rawBytes-chunk*s.owner.chunkBytes), "R-REC-02", name,
		"a raw length of %d", r.raw)
	multiple := uint64(1)
	if chunk == 0 {
		multiple = s.alignment()
	}
	isInside := headerBytes <= r.offset && r.offset <= t.blob.tableOffset && uint64(r.stored) <= t.blob.tableOffset-r.offset
	isNext := before == unknown || r.offset == roundUp(before, multiple)
	require(isInside && r.offset%multiple == 0 && isNext, "R-REC-04", name, "a chunk at %d", r.offset)
}

// R-CHK-01, R-COD-02 to 08 or R-DLT-07 and R-DLT-05, and R-CHK-02: the raw bytes of a chunk whose record is good. Without the
// base of a delta, which may be bad, nobody knows the raw bytes of changes.
func (t *recordTable) chunk(r record, s shard, b *base) []byte {
	data := t.directory.read(t.blob.name, r.offset, uint64(r.stored))
	require(r.codec == codecNone || hash(data) == r.storedDigest, "R-CHK-01", t.blob.name, "stored bytes at %d", r.offset)
	switch r.codec {
	case codecNone:
	case codecChanges:
		list := readChanges(data, uint64(r.raw)/s.owner.elementBytes, s.owner.elementBytes, t.blob.name)
		if b == nil {
			return nil
		}
		own := b.alike(s.owner)
		require(own != nil, "R-DLT-05", t.blob.name, "the base does not have %q with this dtype and shape", s.owner.name)
		data = list.apply(b.read(own, s.part(uint64(r.chunk))))
	default:
		data = decode(data, r, int(s.owner.elementBytes), t.blob.name)
	}
	require(hash(data) == r.rawDigest, "R-CHK-02", t.blob.name, "raw bytes of the chunk at %d", r.offset)
	return data
}

type trailer struct {
	chunksEnd, manifestOffset, manifestBytes, rawBytes uint64
	recordCount, shardCount                            uint64
	manifestDigest, headerDigest                       digest
	extension                                          []byte
}

// R-BLB-03 (the pin), R-BLB-02, R-IDX-08, R-HDR-06, R-BLB-02 (the record size), R-BLB-04, R-BLB-03 (the fields).
func (d directory) trailer(b *blob) trailer {
	data := d.read(b.name, b.fileBytes-trailerBytes, trailerBytes)
	require(bits128(data, 240) == b.trailer, "R-BLB-03", b.name, "not the trailer that the index pins")
	isWhole := hash(data[:240]) == b.trailer && string(data[:8]) == trailerMagic && u32(data, 8) == trailerBytes
	require(isWhole, "R-BLB-02", b.name, "digest, magic or length of the trailer")
	require(u16(data, 144) == 1, "R-IDX-08", b.name, "digest algorithm %d", u16(data, 144))
	require(isZero(data[146:224]), "R-HDR-06", b.name, "reserved bytes of the trailer are not zero")
	require(u32(data, 12) == recordBytes, "R-BLB-02", b.name, "records of %d bytes", u32(data, 12))
	t := trailer{u64(data, 40), u64(data, 72), u64(data, 80), u64(data, 88), uint64(u32(data, 56)), uint64(u32(data, 60)),
		bits128(data, 112), bits128(data, 128), data[224:240]}
	fileBytes, tableOffset, recordsFrom := u64(data, 32), u64(data, 48), u64(data, 64)
	// What lies behind the table follows from what precedes it; no sum wraps as long as the numbers before it agree.
	storesNothing := t.recordCount == 0 || b.isOfDelta && t.chunksEnd == headerBytes
	begins := t.chunksEnd > headerBytes || storesNothing && t.chunksEnd == headerBytes
	begins = begins && t.chunksEnd < 1<<63 && tableOffset == roundUp(t.chunksEnd, 64)
	groupListEnd := tableOffset + 16*((t.recordCount+63)/64)
	agrees := begins && (t.recordCount > 0 || t.chunksEnd == headerBytes) && recordsFrom == roundUp(groupListEnd, 64) &&
		t.manifestOffset == roundUp(recordsFrom+recordBytes*t.recordCount, 64) && t.manifestBytes < 1<<63 &&
		fileBytes == roundUp(t.manifestOffset+t.manifestBytes+trailerBytes, 4096)
	require(agrees, "R-BLB-04", b.name, "the offsets of the trailer do not follow from the lengths")
	isPinned := bits128(data, 16) == b.id && fileBytes == b.fileBytes && tableOffset == b.tableOffset &&
		t.recordCount == b.recordCount && t.shardCount == b.shardCount && bits128(data, 96) == b.groupListDigest
	require(isPinned, "R-BLB-03", b.name, "the fields of the trailer are not those of the index")
	return t
}

// The header that the trailer pins, which may announce the extension of the trailer.
func (d directory) pinnedHeader(b *blob, t trailer, ix *index) header {
	require(bits128(d.read(b.name, digestOffset, 16), 0) == t.headerDigest, "R-BLB-03", b.name, "another header")
	head := d.blobHeader(b.name, b.fileBytes, b.id, ix.header)
	head.checkExtension(b.name, t.extension)
	return head
}

// R-IDX-01, R-BLB-06 (the digest), R-IDX-02 to 22, R-FPR-01, R-ATT-01 to 05.
func (d directory) manifest(b *blob, t trailer, head header) (*metadata, []shard) {
	require(t.manifestBytes <= bufferMax, "R-IDX-01", b.name, "a manifest of %d bytes", t.manifestBytes)
	data := d.read(b.name, t.manifestOffset, t.manifestBytes)
	require(hash(data) == t.manifestDigest, "R-BLB-06", b.name, "digest of the manifest differs")
	root := head.rootTable(data, b.name, manifestIdentifier)
	md := &metadata{file: b.name, isManifest: true, root: root}
	md.checkNames()
	md.checkItems()
	shards := md.shards(1, t.recordCount)[0]
	md.checkRecords(shards, t.recordCount)
	require(uint64(len(shards)) == t.shardCount, "R-IDX-21", b.name, "%d shards", len(shards))
	md.checkEmptyObjects()
	md.checkFingerprints()
	md.checkAttributes()
	return md, shards
}

// What manifest and index must say alike of a tensor or an object, beside its shards.
func (it *item) description() string {
	size := it.rawBytes
	if !it.isObject() {
		size = 0 // follows from the shape
	}
	return fmt.Sprintf("%q %q %d %d %d %v %d", it.name, it.mediaType, it.dtype, it.elementBytes, it.chunkBytes, it.shape, size)
}

func describeShards(shards []shard) (out []string) {
	for _, s := range shards {
		out = append(out, fmt.Sprintf("%s %d %v", s.owner.description(), s.first, s.region))
	}
	return out
}

// Empty tensors and objects, which have no shard: their descriptions by kind and name.
func describeEmpty(items []*item) map[string]string {
	out := map[string]string{}
	for _, it := range items {
		if it.rawBytes == 0 {
			out[fmt.Sprintf("%v %q", it.isObject(), it.name)] = it.description()
		}
	}
	return out
}

// R-BLB-07 of one blob, then R-ATT-06.
func checkAgreement(b *blob, ix *index, md *metadata, shards []shard) {
	same := fmt.Sprint(describeShards(shards)) == fmt.Sprint(describeShards(b.shards))
	require(same, "R-BLB-07", b.name, "the shards of the manifest are not those of the index")
	known := describeEmpty(ix.items)
	for name, description := range describeEmpty(md.items) {
		require(known[name] == description, "R-BLB-07", b.name, "the index does not have %s", description)
	}
	pinned := map[string][]byte{}
	for _, it := range ix.items {
		if !it.isObject() {
			pinned[string(it.name)] = it.attributes
		}
	}
	for _, it := range md.items[:len(md.tensors)] {
		isSame := bytes.Equal(it.attributes, pinned[string(it.name)])
		require(isSame, "R-ATT-06", b.name, "the attributes of %q are not those of the index", it.name)
	}
}
