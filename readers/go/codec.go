// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/binary"

	"github.com/klauspost/compress/zstd"
)

const codecNone, codecZstd, codecByteSplit = 0, 1, 2

var decoder = newDecoder()

func newDecoder() *zstd.Decoder {
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(1<<24))
	if err != nil {
		panic(err)
	}
	return decoder
}

// R-COD-02 to R-COD-06 and R-COD-08; a frame is that of RFC 8878, section 3.1.1.
func checkFrame(frame []byte, rawBytes uint64, file string) {
	require(len(frame) > 5 && string(frame[:4]) == "\x28\xb5\x2f\xfd", "R-COD-02", file, "no zstd frame")
	descriptor := frame[4]
	isSingleSegment, hasChecksum := descriptor>>5&1 == 1, descriptor>>2&1 == 1
	dictionaryBytes := []int{0, 1, 2, 4}[descriptor&3]
	sizeBytes := []int{0, 2, 4, 8}[descriptor>>6]
	at := 5
	if isSingleSegment {
		if sizeBytes == 0 {
			sizeBytes = 1
		}
	} else {
		at++
	}
	at += dictionaryBytes
	require(descriptor>>3&1 == 0 && len(frame) >= at+sizeBytes, "R-COD-02", file, "a frame header with a reserved bit, or cut off")
	var field [8]byte
	copy(field[:], frame[at:at+sizeBytes])
	contentBytes := binary.LittleEndian.Uint64(field[:])
	if sizeBytes == 2 {
		contentBytes += 256
	}
	at += sizeBytes
	require(sizeBytes > 0 && contentBytes == rawBytes, "R-COD-03", file, "a content size of %d", contentBytes)
	require(dictionaryBytes == 0, "R-COD-04", file, "a field for a dictionary")
	window := contentBytes
	if !isSingleSegment {
		base := uint64(1) << (10 + frame[5]>>3)
		window = base + base/8*uint64(frame[5]&7)
	}
	windowMax := uint64(1024)
	for windowMax < rawBytes {
		windowMax *= 2
	}
	require(window <= windowMax, "R-COD-05", file, "a window of %d", window)
	blockMax := int(min(window, 128<<10))
	for isLast := false; !isLast; {
		require(at+3 <= len(frame), "R-COD-06", file, "the frame is cut off")
		block := int(frame[at]) | int(frame[at+1])<<8 | int(frame[at+2])<<16
		kind, size := block>>1&3, block>>3
		isLast = block&1 == 1
		require(kind != 3 && size <= blockMax, "R-COD-06", file, "a block of the reserved type, or of %d bytes", size)
		if kind == 1 {
			size = 1
		}
		at += 3 + size
	}
	if hasChecksum {
		at += 4
	}
	require(at == len(frame), "R-COD-06", file, "a frame of %d bytes in %d", at, len(frame))
	require(uint64(len(frame)) < rawBytes, "R-COD-08", file, "%d bytes of %d", len(frame), rawBytes)
}

// The raw bytes of a chunk with a codec.
func decode(frame []byte, r record, elementBytes int, file string) []byte {
	checkFrame(frame, uint64(r.raw), file)
	data, err := decoder.DecodeAll(frame, make([]byte, 0, r.raw))
	require(err == nil, "R-COD-07", file, "%v", err)
	require(len(data) == int(r.raw), "R-COD-07", file, "%d bytes instead of %d", len(data), r.raw)
	if r.codec == codecZstd {
		return data
	}
	joined := make([]byte, len(data))
	count := len(data) / elementBytes
	for i := range data {
		joined[i%count*elementBytes+i/count] = data[i]
	}
	return joined
}
