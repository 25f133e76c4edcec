// SPDX-License-Identifier: Apache-2.0

package main

import "bytes"

const (
	kindBlob, kindIndex, kindMarker = 1, 2, 3

	magic        = "\x89SPT\r\n\x1a\n"
	headerBytes  = 128
	markerBytes  = 512
	prefixBytes  = 56
	headerMax    = 4096
	digestOffset = 40
)

// Compat bits that this reader knows.
const (
	compatFingerprints = 1 << 0
	compatAttributes   = 1 << 1
	compatKnown        = compatFingerprints | compatAttributes
)

// Incompat bits of a delta. That of other codecs alone announces one that this reader does not know.
const (
	incompatCodecs = 1 << 2
	incompatDeltas = 1 << 3
)

var headerLengths = map[uint32]uint32{kindBlob: headerBytes, kindIndex: headerBytes, kindMarker: markerBytes}

// A header is that of any file of the format (container.md, section 2).
type header struct {
	compat, incompat uint64
	id, attempt      digest
	step             uint64
}

func bits128(data []byte, at int) digest { return *(*digest)(data[at : at+16]) }

func isZero(data []byte) bool { return len(bytes.Trim(data, "\x00")) == 0 }

// R-HDR-01 to 07; also returns the bytes of the header.
func (d directory) header(name string, size uint64, kind uint32) (header, []byte) {
	require(size >= prefixBytes, "R-HDR-01", name, "%d bytes", size)
	data := d.read(name, 0, min(size, headerMax))
	wrongMagic := "R-HDR-10"
	if kind == kindMarker {
		wrongMagic = "R-HDR-02"
	}
	require(string(data[:8]) == magic, wrongMagic, name, "another magic")
	length := u32(data, 16)
	require(length%8 == 0 && prefixBytes <= length && length <= headerMax, "R-HDR-03", name, "header length %d", length)
	require(uint64(length) <= size, "R-HDR-01", name, "a header of %d bytes in a file of %d", length, size)
	data = data[:length]
	sealed := append([]byte{}, data...)
	copy(sealed[digestOffset:], make([]byte, 16))
	require(bits128(data, digestOffset) == hash(sealed), "R-HDR-04", name, "header digest differs")
	require(u32(data, 12) == 1, "R-HDR-05", name, "format version %d", u32(data, 12))
	incompat := u64(data, 32)
	isKnown := incompat&^(incompatCodecs|incompatDeltas) == 0 && incompat != incompatCodecs
	require(isKnown, "R-HDR-05", name, "incompat features %#x", incompat)
	found := u32(data, 8)
	require(headerLengths[found] != 0, "R-HDR-05", name, "file kind %d", found)
	require(found == kind, "R-HDR-07", name, "file kind %d", found)
	require(headerLengths[kind] == length, "R-HDR-05", name, "header length %d in version 1", length)
	require(u32(data, 20) == 0 && isZero(data[96:headerBytes]), "R-HDR-06", name, "reserved bytes are not zero")
	return header{u64(data, 24), incompat, bits128(data, 56), bits128(data, 72), u64(data, 88)}, data
}

func (h header) unknownCompat() uint64 { return h.compat &^ compatKnown }

// R-HDR-06: an extension may hold anything if a compat bit announces it that the reader does not know.
func (h header) checkExtension(file string, extension []byte) {
	require(h.unknownCompat() != 0 || isZero(extension), "R-HDR-06", file, "an extension that no compat bit announces")
}

// A marker is what COMMIT says (container.md, section 3).
type marker struct {
	header
	parent      digest
	sequence    uint64
	indexSize   uint64
	indexDigest digest
	blobCount   uint64
	totalBytes  uint64
}

// Steps 1 and 2 of reader-rules.md, section 3.
func (d directory) marker() marker {
	size, isThere := d.size(markerName)
	if !isThere {
		d.failWithoutMarker()
	}
	require(size == markerBytes, "R-MRK-02", markerName, "%d bytes", size)
	head, data := d.header(markerName, size, kindMarker)
	require(u32(data, 132) == 0 && isZero(data[200:256]), "R-HDR-06", markerName, "reserved bytes are not zero")
	head.checkExtension(markerName, data[256:])
	require(head.id == head.attempt, "R-HDR-08", markerName, "the attempt tag is not the id")
	kind := u32(data, 128)
	require(kind == 1 || kind == 2, "R-MRK-03", markerName, "marker kind %d", kind)
	m := marker{head, bits128(data, 136), u64(data, 152), u64(data, 160), bits128(data, 168), u64(data, 184), u64(data, 192)}
	require(m.id != digest{}, "R-MRK-04", markerName, "the attempt is zero")
	if kind == 2 {
		require(isZero(data[136:200]), "R-MRK-04", markerName, "a void marker pins something")
		fail("R-MRK-09", markerName, "void: there will never be a checkpoint here")
	}
	require(m.parent != m.id, "R-MRK-04", markerName, "the attempt is its own parent")
	begins := m.parent == digest{}
	require(begins && m.sequence == 1 || !begins && m.sequence >= 2, "R-MRK-04", markerName, "sequence %d", m.sequence)
	require(m.indexSize >= headerBytes, "R-MRK-04", markerName, "an index of %d bytes", m.indexSize)
	return m
}

// R-HDR-01 to 09 of an index.
func (d directory) indexHeader(name string, m marker) header {
	head, _ := d.header(name, m.indexSize, kindIndex)
	require(head.id == m.id && head.attempt == m.id && head.step == m.step, "R-HDR-08", name, "not what the marker pins")
	require(head.compat == m.compat && head.incompat == m.incompat, "R-HDR-09", name, "not the features of the marker")
	return head
}

// R-HDR-10 to 09 of a blob, whose attempt tag and step nothing pins.
func (d directory) blobHeader(name string, size uint64, id digest, index header) header {
	head, _ := d.header(name, size, kindBlob)
	require(head.id == id, "R-HDR-08", name, "id %x", head.id)
	require(head.compat&^index.compat == 0 && head.incompat&^index.incompat == 0, "R-HDR-09", name,
		"a feature that the index does not have")
	return head
}
