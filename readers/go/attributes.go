// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"unicode"
	"unicode/utf8"
)

// Attributes of tensors and of the checkpoint (attributes.md). They are checked, and not returned.
const (
	setBytesMax, allSetsBytesMax, attributeNameBytesMax = 1 << 20, 1 << 26, 255
	stringType, truthType, listType                     = 1, 4, 16
)

// The elements of a vector, or nil if the header of the file does not announce the field.
func (t table) announcedElements(id int) []byte {
	if t.schema.fields[id].kind == unannounced {
		return nil
	}
	return t.elements(id)
}

// What is left of a set.
type attributeSet struct {
	file string
	left []byte
}

func (s *attributeSet) take(count int) []byte {
	require(count <= len(s.left), "R-ATT-02", s.file, "%d bytes, where a set has %d left", count, len(s.left))
	taken := s.left[:count]
	s.left = s.left[count:]
	return taken
}

// R-ATT-01 to R-ATT-05 of an index or a manifest.
func (md *metadata) checkAttributes() {
	total := 0
	check := func(set []byte) {
		total += len(set)
		require(total <= allSetsBytesMax, "R-ATT-01", md.file, "more than %d bytes of attributes", allSetsBytesMax)
		if set != nil {
			require(0 < len(set) && len(set) <= setBytesMax, "R-ATT-01", md.file, "a set of %d bytes", len(set))
			(&attributeSet{md.file, set}).check()
		}
	}
	for _, it := range md.items {
		check(it.attributes)
	}
	if !md.isManifest {
		check(md.root.announcedElements(indexAttributesField))
	}
}

func (s *attributeSet) check() {
	var before []byte
	for len(s.left) > 0 {
		name := s.take(int(u16(s.take(2), 0)))
		kind, count := s.take(1)[0], u32(s.take(4), 0)
		isName := 0 < len(name) && len(name) <= attributeNameBytesMax && utf8.Valid(name) &&
			bytes.IndexFunc(name, unicode.IsControl) < 0 && bytes.Compare(before, name) < 0
		require(isName, "R-ATT-03", s.file, "the name %q behind %q", name, before)
		isList, element := kind > listType, kind
		if isList {
			element -= listType
		}
		require(stringType <= element && element <= truthType, "R-ATT-04", s.file, "type %d of %q", kind, name)
		require(isList || count == 1, "R-ATT-05", s.file, "%d values of %q", count, name)
		for i := uint32(0); i < count; i++ {
			s.value(element, name)
		}
		before = name
	}
}

func (s *attributeSet) value(element byte, name []byte) {
	switch element {
	case stringType:
		require(utf8.Valid(s.take(int(u32(s.take(4), 0)))), "R-ATT-05", s.file, "a string of %q is not UTF-8", name)
	case truthType:
		require(s.take(1)[0] <= 1, "R-ATT-05", s.file, "a truth value of %q", name)
	default:
		s.take(8)
	}
}
