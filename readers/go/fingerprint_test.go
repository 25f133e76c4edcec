// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/binary"
	"math"
	"os"
	"regexp"
	"testing"
)

// The values of spec/fingerprint.md, section 5.
func TestFingerprints(t *testing.T) {
	text, err := os.ReadFile("../../spec/fingerprint.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile("(?m)^\\| \\w+, shape .*`(spf1:[0-9a-f]{32})` \\|$").FindAllStringSubmatch(string(text), -1)
	var data [5][]byte
	data[0] = binary.LittleEndian.AppendUint32(nil, math.Float32bits(1))
	data[1] = binary.LittleEndian.AppendUint32(data[0], math.Float32bits(2))
	for value := byte(1); value <= 12; value++ {
		data[2] = append(data[2], value)
	}
	for value := int64(-3); value <= 2; value++ {
		data[3] = binary.LittleEndian.AppendUint64(data[3], uint64(value))
	}
	for value := uint32(0); value < 3000; value++ {
		data[4] = binary.LittleEndian.AppendUint32(data[4], value)
	}
	shapes := [5][]uint64{{}, {2}, {2, 3}, {3, 2}, {2, 1500}}
	if len(rows) != len(shapes) {
		t.Fatalf("%d values", len(rows))
	}
	for i, shape := range shapes {
		count := product(shape)
		it := &item{shape: shape, dtype: 1, elementBytes: uint64(len(data[i])) / count}
		whole := region{box{make([]uint64, len(shape)), shape}, 0, count}
		if found := it.fingerprintOf(whole, data[i]); found.String() != rows[i][1] {
			t.Errorf("%s: %v", rows[i][0], found)
		}
		first, last := whole, whole
		first.end, last.begin = count/3, count/3
		cut := count / 3 * it.elementBytes
		sum := it.fingerprintOf(first, data[i][:cut]).plus(it.fingerprintOf(last, data[i][cut:]))
		if sum.String() != rows[i][1] {
			t.Errorf("two parts of %s: %v", rows[i][0], sum)
		}
	}
}
