// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/binary"
	"runtime"
	"testing"
)

// A frame of one segment that declares a length, and has runs of the byte 1.
func frameOfRuns(declared uint32, runs int, repeat uint32) []byte {
	frame := binary.LittleEndian.AppendUint32([]byte("\x28\xb5\x2f\xfd\xa0"), declared)
	for run := 1; run <= runs; run++ {
		block := repeat<<3 | 1<<1
		if run == runs {
			block |= 1
		}
		frame = append(frame, byte(block), byte(block>>8), byte(block>>16), 1)
	}
	return frame
}

// What a frame claims, or has, beyond a list of the chunk is not decoded.
func TestMemoryIsBoundedByTheChunk(t *testing.T) {
	for _, frame := range [][]byte{frameOfRuns(1<<32-1, 3, 1), frameOfRuns(5132, 3000, 4096), frameOfRuns(1<<28, 3000, 1<<17)} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		violation := catch(func() { readChanges(frame, 1024, 4, "x") })
		runtime.ReadMemStats(&after)
		if violation == nil {
			t.Errorf("it is accepted")
		}
		if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 1<<20 {
			t.Errorf("%d bytes allocated", allocated)
		}
	}
}

func TestNoStoredByteIsNoChange(t *testing.T) {
	if data := readChanges(nil, 2, 1, "x").apply([]byte{3, 4}); string(data) != "\x03\x04" {
		t.Errorf("%v", data)
	}
}
