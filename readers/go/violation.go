// SPDX-License-Identifier: Apache-2.0

package main

import "fmt"

// A Violation is a broken rule of the specification, or an error of the storage, which breaks none.
type Violation struct {
	Code string `json:"code"`
	Rule string `json:"rule"`
	File string `json:"file"` // "" is the directory
	Text string `json:"text"`
}

// What is not Corrupt (reader-rules.md, section 1).
var codes = map[string]string{
	"R-DIR-01": "NotFound", "R-DIR-05": "NotACheckpoint", "R-HDR-02": "NotACheckpoint",
	"R-MRK-01": "Uncommitted", "R-MRK-09": "Uncommitted", "R-MRK-05": "Incomplete", "R-BLB-01": "Incomplete",
	"R-HDR-05": "Unsupported", "R-HDR-06": "Unsupported", "R-MRK-03": "Unsupported", "R-IDX-03": "Unsupported",
	"R-IDX-08": "Unsupported", "R-IDX-24": "Unsupported", "R-REC-05": "Unsupported", "R-COD-01": "Unsupported",
	"R-DLT-03": "Incomplete", "R-DLT-08": "Unsupported", "R-ATT-04": "Unsupported", "R-IDX-01": "LimitExceeded", "R-IDX-04": "LimitExceeded", "": "Io",
}

// Verdicts of codes (reader-rules.md, section 6); every other code is unreadable.
var verdicts = map[string]string{"Corrupt": "corrupt", "Uncommitted": "uncommitted", "Unsupported": "unsupported",
	"LimitExceeded": "unsupported", "Incomplete": "incomplete"}

var worstFirst = []string{"corrupt", "incomplete", "unreadable", "unsupported", "uncommitted"}

var exitStatus = map[string]int{"committed": 0, "corrupt": 1, "uncommitted": 2, "unsupported": 3, "unreadable": 4,
	"incomplete": 5}

// Checks end at the first broken rule: fail panics with it, and catch makes it a value again, wherever a list goes on.
func fail(rule, file, format string, arguments ...any) {
	code, known := codes[rule]
	if !known {
		code = "Corrupt"
	}
	panic(&Violation{code, rule, file, fmt.Sprintf(format, arguments...)})
}

func require(holds bool, rule, file, format string, arguments ...any) {
	if !holds {
		fail(rule, file, format, arguments...)
	}
}

func catch(check func()) (found *Violation) {
	defer func() {
		switch caught := recover().(type) {
		case nil:
		case *Violation:
			found = caught
		default:
			panic(caught)
		}
	}()
	check()
	return nil
}

func verdictOf(list []*Violation) string {
	found := map[string]bool{}
	for _, violation := range list {
		verdict, known := verdicts[violation.Code]
		if !known {
			verdict = "unreadable"
		}
		found[verdict] = true
	}
	for _, verdict := range worstFirst {
		if found[verdict] {
			return verdict
		}
	}
	return "committed"
}
