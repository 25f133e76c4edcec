// SPDX-License-Identifier: Apache-2.0

// A reader of Sealpoint checkpoints, written from spec/ and schema/index.fbs alone. It shares no code with the library
// and none with the reference reader in Python, and has other implementations of zstd, FlatBuffers and XXH3.
//
//	sealpoint-reader [-level files|structure|full] [-fingerprints] [-base DIR]... DIR...
//
// prints a line of JSON for each directory: its verdict, violations and notes; the first violation that opening and that
// reading everything meets, null if all is well; and the content digest of what was read. -base names a base of a delta
// that does not lie beside it. The exit status is that of reader-rules.md, section 6.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
)

type line struct {
	Path       string       `json:"path"`
	Verdict    string       `json:"verdict"`
	Violations []*Violation `json:"violations"`
	Notes      []string     `json:"notes"`
	Open       *Violation   `json:"open"`
	Read       *Violation   `json:"read"`
	Content    string       `json:"content"`
}

func examine(path string, level int, fingerprints bool, bases namedBases) line {
	r := verify(path, level, fingerprints, bases)
	out := line{Path: path, Verdict: verdictOf(r.list), Violations: r.list, Notes: r.notes}
	var c *checkpoint
	out.Open = catch(func() { c = open(path, bases) })
	if out.Open == nil && level == levelFull {
		out.Read = catch(func() { out.Content = fmt.Sprintf("spc1:%x", c.digest()) })
	}
	return out
}

func main() {
	name := flag.String("level", "full", "how much is checked: files, structure or full")
	fingerprints := flag.Bool("fingerprints", false, "compare those of the index with the elements, at the level full")
	bases := namedBases{}
	flag.Func("base", "the base of a delta, if it does not lie beside it", bases.add)
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: sealpoint-reader [-level files|structure|full] [-fingerprints] [-base DIR]... DIR...")
	}
	flag.CommandLine.Init("sealpoint-reader", flag.ContinueOnError)
	err := flag.CommandLine.Parse(os.Args[1:])
	level, isKnown := levels[*name]
	if err != nil || !isKnown || flag.NArg() == 0 {
		flag.Usage()
		os.Exit(64)
	}
	status := 0
	for _, path := range flag.Args() {
		out := examine(path, level, *fingerprints, bases)
		text, err := json.Marshal(out)
		if err != nil {
			panic(err)
		}
		fmt.Println(string(text))
		status = worse(status, exitStatus[out.Verdict])
	}
	os.Exit(status)
}

// The exit status of several checkpoints: the first of 1, 5, 4, 3, 2, 0.
func worse(a, b int) int {
	for _, status := range []int{1, 5, 4, 3, 2} {
		if a == status || b == status {
			return status
		}
	}
	return 0
}
