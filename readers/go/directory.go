// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
)

// A directory is that of one checkpoint (container.md, sections 1 and 6).
type directory struct{ path string }

const markerName = "COMMIT"

var (
	ofTheFormat      = regexp.MustCompile(`^[0-9a-f]{32}\.(index|blob|commit|probe[a-z0-9.-]*)$`)
	ofAnUnknownKind  = regexp.MustCompile(`^[0-9a-f]{32}\.[a-z0-9-]{1,16}$`)
	holdsACheckpoint = regexp.MustCompile(`^[0-9a-f]{32}\.(index|blob|commit)$`)
)

func openDirectory(path string) directory {
	status, err := os.Stat(path)
	require(err == nil || errors.Is(err, fs.ErrNotExist), "", "", "%v", err)
	require(err == nil && status.IsDir(), "R-DIR-01", "", "not a directory that exists")
	return directory{path}
}

// Length of a regular file, links being followed; false without one.
func (d directory) size(name string) (uint64, bool) {
	status, err := os.Stat(filepath.Join(d.path, name))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, false
	}
	require(err == nil, "", name, "%v", err)
	return uint64(status.Size()), status.Mode().IsRegular()
}

// Exactly so many bytes. The caller knows that the file is as long, so that no more is allocated than there is.
func (d directory) read(name string, offset, length uint64) []byte {
	file, err := os.Open(filepath.Join(d.path, name))
	require(err == nil, "", name, "%v", err)
	defer file.Close()
	data := make([]byte, length)
	_, err = file.ReadAt(data, int64(offset))
	require(err == nil, "", name, "%v", err)
	return data
}

func (d directory) entries() []fs.DirEntry {
	entries, err := os.ReadDir(d.path)
	require(err == nil, "", "", "%v", err)
	return entries
}

// Links count without being followed.
func isFileOrLink(entry fs.DirEntry) bool {
	return entry.Type().IsRegular() || entry.Type()&fs.ModeSymlink != 0
}

// R-MRK-01 or R-DIR-05: an attempt that was not committed, or no checkpoint at all.
func (d directory) failWithoutMarker() {
	for _, entry := range d.entries() {
		if isFileOrLink(entry) && holdsACheckpoint.MatchString(entry.Name()) {
			fail("R-MRK-01", markerName, "no marker was published")
		}
	}
	fail("R-DIR-05", "", "no file of a checkpoint")
}

// R-DIR-03 and R-DIR-04: what is there and not checked.
func (d directory) notes(pinned map[string]bool) []string {
	notes := []string{}
	for _, entry := range d.entries() {
		name := entry.Name()
		size := func() uint64 { size, _ := d.size(name); return size }
		switch {
		case isFileOrLink(entry) && (pinned[name] || name == "KEEP"):
		case isFileOrLink(entry) && ofTheFormat.MatchString(name):
			notes = append(notes, fmt.Sprintf("leftover of %d bytes: %s", size(), name))
		case isFileOrLink(entry) && ofAnUnknownKind.MatchString(name):
			notes = append(notes, fmt.Sprintf("of an unknown kind, not checked, %d bytes: %s", size(), name))
		default:
			notes = append(notes, "foreign, not checked: "+name)
		}
	}
	return notes
}
