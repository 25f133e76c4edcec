// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/binary"

	"github.com/klauspost/compress/zstd"
)

const codecNone, codecZstd, codecByteSplit, codecChanges = 0, 1, 2, 4

const codedBytesMax = 1 << 24 // of a chunk with a codec

var decoder = newDecoder()

func newDecoder() *zstd.Decoder {
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(4*codedBytesMax))
	if err != nil {
		panic(err)
	}
	return decoder
}

// The header of a frame (RFC 8878, section 3.1.1).
type frameHeader struct {
	length                              int
	contentBytes, window                uint64
	hasSize, hasDictionary, hasChecksum bool
}

// R-COD-02.
func readFrameHeader(frame []byte, file string) (h frameHeader) {
	require(len(frame) > 5 && string(frame[:4]) == "\x28\xb5\x2f\xfd", "R-COD-02", file, "no zstd frame")
	descriptor := frame[4]
	isSingleSegment := descriptor>>5&1 == 1
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
	h.contentBytes = binary.LittleEndian.Uint64(field[:])
	if sizeBytes == 2 {
		h.contentBytes += 256
	}
	h.length = at + sizeBytes
	h.hasSize, h.hasDictionary, h.hasChecksum = sizeBytes > 0, dictionaryBytes > 0, descriptor>>2&1 == 1
	h.window = h.contentBytes
	if !isSingleSegment {
		base := uint64(1) << (10 + frame[5]>>3)
		h.window = base + base/8*uint64(frame[5]&7)
	}
	return h
}

// R-COD-04 to R-COD-06 of a frame that declares its content size.
func (h frameHeader) check(frame []byte, file string) {
	require(!h.hasDictionary, "R-COD-04", file, "a field for a dictionary")
	windowMax := uint64(1024)
	for windowMax < h.contentBytes {
		windowMax *= 2
	}
	require(h.window <= windowMax, "R-COD-05", file, "a window of %d", h.window)
	blockMax := int(min(h.window, 128<<10))
	at := h.length
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
	if h.hasChecksum {
		at += 4
	}
	require(at == len(frame), "R-COD-06", file, "a frame of %d bytes in %d", at, len(frame))
}

// R-COD-07.
func decodeFrame(frame []byte, contentBytes uint64, file string) []byte {
	data, err := decoder.DecodeAll(frame, make([]byte, 0, contentBytes))
	require(err == nil, "R-COD-07", file, "%v", err)
	require(uint64(len(data)) == contentBytes, "R-COD-07", file, "%d bytes instead of %d", len(data), contentBytes)
	return data
}

// The raw bytes of a chunk of codec 1 or 2.
func decode(frame []byte, r record, elementBytes int, file string) []byte {
	h := readFrameHeader(frame, file)
	require(h.hasSize && h.contentBytes == uint64(r.raw), "R-COD-03", file, "a content size of %d", h.contentBytes)
	h.check(frame, file)
	require(len(frame) < int(r.raw), "R-COD-08", file, "%d bytes of %d", len(frame), r.raw)
	data := decodeFrame(frame, h.contentBytes, file)
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
