// SPDX-License-Identifier: Apache-2.0

package main

// FlatBuffers (container.md, section 4, "FlatBuffers in half a page"): a verifier, and a walk over what it accepted.

type kind int

const (
	number      kind = iota // in place; elementBytes long and aligned
	structure               // in place; elementBytes long, aligned to align
	text                    // an offset to a string
	numbers                 // an offset to a vector of numbers or structs of elementBytes
	oneTable                // an offset to a table
	manyTables              // an offset to a vector of offsets to tables
	manyTexts               // an offset to a vector of offsets to strings
	unannounced             // whatever; the header of the file does not announce it, so that it is an unknown field
)

type field struct {
	kind                kind
	elementBytes, align int
	table               *schema
	required            bool
	countMax            int // of the elements; 0 is unbounded
}

// A schema has the fields of a table by their ids. In one that is strict an unknown field is never skipped (R-IDX-03).
type schema struct {
	fields []field
	strict bool
}

const tableDepthMax = 8

type verifier struct {
	data         []byte
	file         string
	tablesLeft   int
	skipsUnknown bool
	hasUnknown   bool
}

func (v *verifier) require(holds bool, format string, arguments ...any) {
	require(holds, "R-IDX-02", v.file, format, arguments...)
}

func (v *verifier) inBuffer(at, length, align int) {
	v.require(at >= 0 && length <= len(v.data) && at <= len(v.data)-length, "%d bytes at %d leave the buffer", length, at)
	v.require(at%align == 0, "%d is not a multiple of %d", at, align)
}

// Where the offset at this place leads to.
func (v *verifier) follow(at int) int {
	v.inBuffer(at, 4, 4)
	offset := u32(v.data, at)
	v.require(0 < offset && offset < 1<<31, "offset %d", offset)
	v.inBuffer(at+int(offset), 1, 1)
	return at + int(offset)
}

// The number of elements, which lie in the buffer.
func (v *verifier) vector(at, elementBytes int) int {
	v.inBuffer(at, 4, 4)
	count := int(u32(v.data, at))
	v.inBuffer(at+4, count*elementBytes, 1)
	return count
}

func (v *verifier) text(at int) {
	end := at + 4 + v.vector(at, 1)
	v.inBuffer(end, 1, 1)
	v.require(v.data[end] == 0, "a string without its zero byte at %d", at)
}

func (v *verifier) table(at int, s *schema, depth int) {
	v.inBuffer(at, 4, 4)
	vtable := at - int(int32(u32(v.data, at)))
	v.tablesLeft--
	v.require(depth <= tableDepthMax && v.tablesLeft >= 0, "too deep, or too many tables")
	v.inBuffer(vtable, 2, 2)
	v.inBuffer(vtable, int(u16(v.data, vtable)), 2)
	v.require(u16(v.data, vtable)%2 == 0, "a vtable of an odd length at %d", vtable)
	t := table{v.data, at, s}
	for id, f := range s.fields {
		place := t.place(id)
		v.require(place != 0 || !f.required, "field %d is absent", id)
		if f.kind == unannounced {
			v.hasUnknown = v.hasUnknown || place != 0 && !v.skipsUnknown
		} else if place != 0 {
			v.field(f, place, depth)
		}
	}
	for id := len(s.fields); 6+2*id <= int(u16(v.data, vtable)); id++ {
		v.hasUnknown = v.hasUnknown || t.place(id) != 0 && (s.strict || !v.skipsUnknown)
	}
}

func (v *verifier) field(f field, at, depth int) {
	switch f.kind {
	case number:
		v.inBuffer(at, f.elementBytes, f.elementBytes)
	case structure:
		v.inBuffer(at, f.elementBytes, f.align)
	case text:
		v.text(v.follow(at))
	case numbers:
		at = v.follow(at)
		count := v.vector(at, f.elementBytes)
		v.require(f.align != 8 || count == 0 || (at+4)%8 == 0, "64-bit numbers that are not aligned at %d", at)
	case oneTable:
		v.table(v.follow(at), f.table, depth+1)
	default:
		at = v.follow(at)
		count := v.vector(at, 4)
		v.require(f.countMax == 0 || count <= f.countMax, "%d elements at %d", count, at)
		for _, target := range offsetsAt(v.data, at) {
			if f.kind == manyTexts {
				v.text(target)
			} else {
				v.table(target, f.table, depth+1)
			}
		}
	}
}

// R-IDX-02 and R-IDX-03 of a whole buffer. Fields that an unknown compat bit may have announced are skipped.
func rootTable(data []byte, file, identifier string, s *schema, skipsUnknown bool) table {
	v := verifier{data: data, file: file, tablesLeft: len(data) / 8, skipsUnknown: skipsUnknown}
	v.inBuffer(0, 8, 4)
	v.require(string(data[4:8]) == identifier, "another file identifier")
	root := v.follow(0)
	v.table(root, s, 1)
	require(!v.hasUnknown, "R-IDX-03", file, "a field that this version does not define")
	return table{data, root, s}
}

func u16(data []byte, at int) uint16 { return uint16(data[at]) | uint16(data[at+1])<<8 }

// A table that was verified. What is absent is 0 or nil.
type table struct {
	data   []byte
	at     int
	schema *schema
}

// Where a field lies; 0 if it is absent.
func (t table) place(id int) int {
	vtable := t.at - int(int32(u32(t.data, t.at)))
	if 6+2*id > int(u16(t.data, vtable)) || u16(t.data, vtable+4+2*id) == 0 {
		return 0
	}
	return t.at + int(u16(t.data, vtable+4+2*id))
}

func (t table) has(id int) bool { return t.place(id) != 0 }

func (t table) number(id int) (value uint64) {
	if at := t.place(id); at != 0 {
		for i := t.schema.fields[id].elementBytes - 1; i >= 0; i-- {
			value = value<<8 | uint64(t.data[at+i])
		}
	}
	return value
}

func (t table) bits128(id int) digest { return bits128(t.data, t.place(id)) }

func (t table) ref(id int) shardRef { return refAt(t.data, t.place(id)) }

func refAt(data []byte, at int) shardRef { return shardRef{u32(data, at), u32(data, at+4)} }

// The bytes of the elements of a vector of numbers, or of a string.
func (t table) elements(id int) []byte {
	at := t.place(id)
	if at == 0 {
		return nil
	}
	at += int(u32(t.data, at))
	elementBytes := 1
	if f := t.schema.fields[id]; f.kind == numbers {
		elementBytes = f.elementBytes
	}
	return t.data[at+4 : at+4+elementBytes*int(u32(t.data, at))]
}

func (t table) count(id int) int { return len(t.elements(id)) / t.schema.fields[id].elementBytes }

func (t table) u64s(id int) []uint64 {
	data := t.elements(id)
	out := make([]uint64, len(data)/8)
	for i := range out {
		out[i] = u64(data, 8*i)
	}
	return out
}

func (t table) u32s(id int) []uint32 {
	data := t.elements(id)
	out := make([]uint32, len(data)/4)
	for i := range out {
		out[i] = u32(data, 4*i)
	}
	return out
}

func (t table) table(id int) table {
	at := t.place(id)
	return table{t.data, at + int(u32(t.data, at)), t.schema.fields[id].table}
}

// Where the offsets of a vector lead to.
func (t table) offsets(id int) []int {
	if at := t.place(id); at != 0 {
		return offsetsAt(t.data, at+int(u32(t.data, at)))
	}
	return nil
}

func offsetsAt(data []byte, at int) []int {
	out := make([]int, u32(data, at))
	for i := range out {
		place := at + 4 + 4*i
		out[i] = place + int(u32(data, place))
	}
	return out
}

func (t table) tables(id int) []table {
	var out []table
	for _, at := range t.offsets(id) {
		out = append(out, table{t.data, at, t.schema.fields[id].table})
	}
	return out
}

func (t table) texts(id int) (out [][]byte) {
	for _, at := range t.offsets(id) {
		out = append(out, t.data[at+4:at+4+int(u32(t.data, at))])
	}
	return out
}
