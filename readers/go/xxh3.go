// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/binary"
	"encoding/hex"
	"math/bits"
)

// XXH3-128 with seed 0, from the public description of the algorithm (xxhash_spec.md 0.2.0).

const (
	prime32x1 = 0x9E3779B1
	prime32x2 = 0x85EBCA77
	prime32x3 = 0xC2B2AE3D
	prime64x1 = 0x9E3779B185EBCA87
	prime64x2 = 0xC2B2AE3D27D4EB4F
	prime64x3 = 0x165667B19E3779F9
	prime64x4 = 0x85EBCA77C2B2AE63
	prime64x5 = 0x27D4EB2F165667C5
	primeMix1 = 0x165667919E3779F9
	primeMix2 = 0x9FB21C651E98DF25

	stripeBytes = 64
	blockBytes  = 1024
)

var secret = fromHex("b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671f" +
	"cb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c" +
	"3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8" +
	"a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364" +
	"eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e" +
	"2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e")

func fromHex(text string) []byte {
	data, err := hex.DecodeString(text)
	if err != nil {
		panic(err)
	}
	return data
}

func u32(data []byte, at int) uint32 { return binary.LittleEndian.Uint32(data[at:]) }
func u64(data []byte, at int) uint64 { return binary.LittleEndian.Uint64(data[at:]) }

func fold(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	return high ^ low
}

func avalanche(x uint64) uint64 {
	x ^= x >> 37
	x *= primeMix1
	return x ^ x>>32
}

func avalancheXXH64(x uint64) uint64 {
	x ^= x >> 33
	x *= prime64x2
	x ^= x >> 29
	x *= prime64x3
	return x ^ x>>32
}

func hash1to3(data []byte) (low, high uint64) {
	size := len(data)
	combined := uint32(data[size-1]) | uint32(size)<<8 | uint32(data[0])<<16 | uint32(data[size>>1])<<24
	turned := bits.RotateLeft32(bits.ReverseBytes32(combined), 13)
	low = uint64(u32(secret, 0)^u32(secret, 4)) ^ uint64(combined)
	high = uint64(u32(secret, 8)^u32(secret, 12)) ^ uint64(turned)
	return avalancheXXH64(low), avalancheXXH64(high)
}

func hash4to8(data []byte) (low, high uint64) {
	size := len(data)
	both := uint64(u32(data, 0)) | uint64(u32(data, size-4))<<32
	high, low = bits.Mul64(u64(secret, 16)^u64(secret, 24)^both, prime64x1+uint64(size)<<2)
	high += low << 1
	low ^= high >> 3
	low ^= low >> 35
	low *= primeMix2
	return low ^ low>>28, avalanche(high)
}

func hash9to16(data []byte) (low, high uint64) {
	size := len(data)
	first, last := u64(data, 0), u64(data, size-8)
	second := u64(secret, 48) ^ u64(secret, 56) ^ last
	high, low = bits.Mul64(u64(secret, 32)^u64(secret, 40)^first^last, prime64x1)
	low += uint64(size-1) << 54
	high += second&^0xFFFFFFFF + (second&0xFFFFFFFF)*prime32x2
	low ^= bits.ReverseBytes64(high)
	carried, product := bits.Mul64(low, prime64x2)
	return avalanche(product), avalanche(carried + high*prime64x2)
}

type pair struct{ low, high uint64 }

func mix(data []byte, at, secretAt int) uint64 {
	return fold(u64(data, at)^u64(secret, secretAt), u64(data, at+8)^u64(secret, secretAt+8))
}

func (p *pair) mixTwo(data []byte, at1, at2, secretAt int) {
	p.low += mix(data, at1, secretAt)
	p.high += mix(data, at2, secretAt+16)
	p.low ^= u64(data, at2) + u64(data, at2+8)
	p.high ^= u64(data, at1) + u64(data, at1+8)
}

func hash17to240(data []byte) (low, high uint64) {
	size := len(data)
	p := pair{low: uint64(size) * prime64x1}
	if size <= 128 {
		for i := (size - 1) >> 5; i >= 0; i-- {
			p.mixTwo(data, 16*i, size-16*i-16, 32*i)
		}
	} else {
		for i := 0; i < 4; i++ {
			p.mixTwo(data, 32*i, 32*i+16, 32*i)
		}
		p.low, p.high = avalanche(p.low), avalanche(p.high)
		for i := 4; i < size>>5; i++ {
			p.mixTwo(data, 32*i, 32*i+16, 32*(i-4)+3)
		}
		p.mixTwo(data, size-16, size-32, 103)
	}
	return avalanche(p.low + p.high), -avalanche(p.low*prime64x1 + p.high*prime64x4 + uint64(size)*prime64x2)
}

type lanes [8]uint64

func (l *lanes) accumulate(stripe []byte, secretAt int) {
	for lane := range l {
		word := u64(stripe, 8*lane)
		value := word ^ u64(secret, secretAt+8*lane)
		l[lane^1] += word
		l[lane] += (value & 0xFFFFFFFF) * (value >> 32)
	}
}

func (l *lanes) scramble() {
	for lane := range l {
		l[lane] = (l[lane] ^ l[lane]>>47 ^ u64(secret, len(secret)-64+8*lane)) * prime32x1
	}
}

func (l *lanes) merge(start uint64, secretAt int) uint64 {
	for i := 0; i < 8; i += 2 {
		start += fold(l[i]^u64(secret, secretAt+8*i), l[i+1]^u64(secret, secretAt+8*i+8))
	}
	return avalanche(start)
}

func hashLong(data []byte) (low, high uint64) {
	size := len(data)
	l := lanes{prime32x3, prime64x1, prime64x2, prime64x3, prime64x4, prime32x2, prime64x5, prime32x1}
	for at := 0; at < size-stripeBytes; at += stripeBytes {
		l.accumulate(data[at:], at%blockBytes/8)
		if at%blockBytes == blockBytes-stripeBytes {
			l.scramble()
		}
	}
	l.accumulate(data[size-stripeBytes:], len(secret)-71)
	return l.merge(uint64(size)*prime64x1, 11), l.merge(^(uint64(size) * prime64x2), len(secret)-75)
}

type digest [16]byte

// Its 16 canonical bytes: the high half first, each half big-endian.
func hash(data []byte) digest {
	var low, high uint64
	switch size := len(data); {
	case size == 0:
		low = avalancheXXH64(u64(secret, 64) ^ u64(secret, 72))
		high = avalancheXXH64(u64(secret, 80) ^ u64(secret, 88))
	case size <= 3:
		low, high = hash1to3(data)
	case size <= 8:
		low, high = hash4to8(data)
	case size <= 16:
		low, high = hash9to16(data)
	case size <= 240:
		low, high = hash17to240(data)
	default:
		low, high = hashLong(data)
	}
	var out digest
	binary.BigEndian.PutUint64(out[:8], high)
	binary.BigEndian.PutUint64(out[8:], low)
	return out
}
