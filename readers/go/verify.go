// SPDX-License-Identifier: Apache-2.0

package main

import "fmt"

const (
	levelFiles = iota
	levelStructure
	levelFull
)

var levels = map[string]int{"files": levelFiles, "structure": levelStructure, "full": levelFull}

type report struct {
	level int
	list  []*Violation
	notes []string

	base       *base                // nil unless this is a delta, and if the base is bad
	recomputed map[*item]recomputed // nil unless fingerprints are recomputed
}

// Whether the check held; what it broke is listed.
func (r *report) holds(check func()) bool {
	violation := catch(check)
	if violation != nil {
		r.list = append(r.list, violation)
	}
	return violation == nil
}

// Steps 1 to 9 of reader-rules.md, section 3, and the lists of section 5.
func verify(path string, level int, fingerprints bool, bases namedBases) *report {
	r := &report{level: level, notes: []string{}, list: []*Violation{}}
	if fingerprints {
		r.recomputed = map[*item]recomputed{}
	}
	var d directory
	var ix *index
	if !r.holds(func() { d = openDirectory(path); ix = d.index(d.marker()) }) {
		return r
	}
	pinned := map[string]bool{markerName: true, ix.file: true}
	for _, b := range ix.blobs {
		pinned[b.name] = true
	}
	r.holds(func() { r.notes = d.notes(pinned) })
	if unknown := ix.header.unknownCompat(); unknown != 0 {
		r.notes = append(r.notes, fmt.Sprintf("compat features %#x are ignored", unknown))
	}
	r.holds(func() { r.base = d.openBase(ix, bases) })
	declared, allDeclare := map[string]bool{}, level > levelFiles // empty tensors and objects
	manifests := map[int]*metadata{}
	for number, b := range ix.blobs {
		isThere := r.holds(func() { d.checkPresence(b) })
		if isThere {
			r.holds(func() { d.checkLength(b) })
		}
		if !isThere || level == levelFiles {
			allDeclare = false
			continue
		}
		md := (&blobCheck{report: r, directory: d, blob: b}).run(ix)
		if md == nil {
			allDeclare = false
			continue
		}
		manifests[number] = md
		for name := range describeEmpty(md.items) {
			declared[name] = true
		}
	}
	for name := range describeEmpty(ix.items) {
		r.holds(func() {
			require(!allDeclare || declared[name], "R-BLB-07", ix.file, "no manifest declares %s", name)
		})
	}
	r.checkSums(ix, manifests)
	r.checkRecomputed(ix)
	return r
}

// Steps 6 to 9 of a blob that is there, up to its pinned length.
type blobCheck struct {
	report    *report
	directory directory
	blob      *blob
	padding   [][2]uint64 // that can be found
}

// The manifest, or nil if it cannot be believed.
func (c *blobCheck) run(ix *index) *metadata {
	r, d, b := c.report, c.directory, c.blob
	var t trailer
	var md *metadata
	hasTrailer := r.holds(func() { t = d.trailer(b) })
	if hasTrailer {
		md = c.checkManifest(ix, t)
		c.padding = append(c.padding, [2]uint64{t.manifestOffset + t.manifestBytes, b.fileBytes - trailerBytes})
	}
	var table *recordTable
	end := unknown // of the last chunk
	if r.holds(func() { table = d.table(b) }) {
		end = c.checkRecords(table)
		c.padding = append(c.padding, [2]uint64{b.groupListEnd, b.recordsFrom})
	}
	c.checkEnd(hasTrailer, t, end)
	for _, gap := range c.padding {
		if r.level == levelFull || gap[1] >= b.tableOffset {
			r.holds(func() {
				isClean := isZero(d.read(b.name, gap[0], gap[1]-gap[0]))
				require(isClean, "R-BLB-08", b.name, "padding at %d is not zero", gap[0])
			})
		}
	}
	return md
}

// Step 7 behind the trailer.
func (c *blobCheck) checkManifest(ix *index, t trailer) (md *metadata) {
	r, d, b := c.report, c.directory, c.blob
	var shards []shard
	isGood := r.holds(func() {
		head := d.pinnedHeader(b, t, ix)
		md, shards = d.manifest(b, t, head)
	})
	if !isGood {
		return nil
	}
	rawBytes := uint64(0)
	for _, s := range b.shards {
		rawBytes += s.rawBytes
	}
	r.holds(func() { require(t.rawBytes == rawBytes, "R-BLB-06", b.name, "raw bytes %d", t.rawBytes) })
	r.holds(func() { checkAgreement(b, ix, md, shards) })
	return md
}

// Steps 6 and 8. The end of the last chunk, unknown if its record is bad.
func (c *blobCheck) checkRecords(t *recordTable) uint64 {
	end := uint64(headerBytes)
	badGroups := map[uint64]bool{}
	for ordinal, s := range c.blob.shards {
		for chunk := uint64(0); chunk < s.count; chunk++ {
			n := s.first + chunk
			var rec record
			isGood := !badGroups[n/64] && c.report.holds(func() {
				rec = t.record(n, s.owner)
				t.checkPlace(rec, s, chunk, uint64(ordinal), end)
			})
			if !isGood {
				badGroups[n/64] = t.groups[n/64] == nil
				end = unknown
				continue
			}
			if chunk == 0 && end != unknown {
				c.padding = append(c.padding, [2]uint64{end, rec.offset})
			}
			end = rec.end()
			if c.report.level == levelFull {
				c.report.holds(func() { c.report.recompute(s, chunk, t.chunk(rec, s, c.report.base)) })
			}
		}
	}
	return end
}

// R-REC-04 and R-BLB-04 of the end of the chunk area, as far as the last record and the trailer are good.
func (c *blobCheck) checkEnd(hasTrailer bool, t trailer, end uint64) {
	b := c.blob
	if end == unknown && hasTrailer {
		end = t.chunksEnd
	}
	if end == unknown {
		return
	}
	isRight := c.report.holds(func() {
		require(len(b.shards) == 0 || roundUp(end, 64) == b.tableOffset, "R-REC-04", b.name, "the last chunk ends at %d", end)
		require(!hasTrailer || t.chunksEnd == end, "R-BLB-04", b.name, "the chunk area ends at %d", t.chunksEnd)
	})
	if isRight && roundUp(end, 64) == b.tableOffset {
		c.padding = append(c.padding, [2]uint64{end, b.tableOffset})
	}
}
