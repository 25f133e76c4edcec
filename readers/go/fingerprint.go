// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// Fingerprints of tensors and of their parts (fingerprint.md): F(0) and F(1).
type fingerprint [2]uint64

const (
	prime      = 1<<61 - 1
	digitBase  = 32
	blockWords = digitBase * digitBase // that the two lowest digits of their index tell apart
)

func (f fingerprint) String() string { return fmt.Sprintf("spf1:%016x%016x", f[0], f[1]) }

func reduce(x uint64) uint64 { return (x>>61 + x&prime) % prime }

func (f fingerprint) plus(g fingerprint) fingerprint {
	return fingerprint{reduce(f[0] + g[0]), reduce(f[1] + g[1])}
}

func (f fingerprint) times(g fingerprint) (product fingerprint) {
	for s := range product {
		high, low := bits.Mul64(f[s], g[s])
		product[s] = reduce(low&prime + (high<<3 | low>>61))
	}
	return product
}

// g(s, d, k, v), of both sets.
func digitFactor(d, k, v uint32) fingerprint {
	text := []byte("SPF1")
	for _, number := range []uint32{d, k, v} {
		text = binary.LittleEndian.AppendUint32(text, number)
	}
	h := hash(text)
	low, high := binary.BigEndian.Uint64(h[8:]), binary.BigEndian.Uint64(h[:8])
	return fingerprint{1 + low%(prime-1), 1 + high%(prime-1)}
}

// c(s, d, x), of both sets.
func coefficient(d uint32, x uint64) fingerprint {
	product := fingerprint{1, 1}
	for k := uint32(0); x > 0; k++ {
		if digit := x % digitBase; digit > 0 {
			product = product.times(digitFactor(d, k, uint32(digit)))
		}
		x /= digitBase
	}
	return product
}

var blockFactors = func() (out [blockWords]fingerprint) {
	for t := range out {
		out[t] = coefficient(0, uint64(t))
	}
	return out
}()

// Of bytes of a row, the first of which is byte `at` of it; the other dimensions are left out.
func rowSum(at uint64, data []byte) (total fingerprint) {
	words := append(make([]byte, at%4, uint64(len(data))+8), data...)
	words = append(words, make([]byte, 3)...)
	t := at / 4
	block := coefficient(0, t/blockWords*blockWords)
	for ; len(words) >= 4; words = words[4:] {
		word := uint64(u32(words, 0))
		total = total.plus(blockFactors[t%blockWords].times(block).times(fingerprint{word, word}))
		if t++; t%blockWords == 0 {
			block = coefficient(0, t)
		}
	}
	return total
}

// Of a part of a tensor: the elements of a region, in their order.
func (it *item) fingerprintOf(r region, data []byte) (total fingerprint) {
	b := r.box
	if len(b.extent) == 0 {
		b = box{[]uint64{0}, []uint64{1}}
	}
	last := len(b.extent) - 1
	for begin := r.begin; begin < r.end; {
		row, column := begin/b.extent[last], begin%b.extent[last]
		end := min(begin-column+b.extent[last], r.end)
		factor := fingerprint{1, 1}
		for d := 1; d <= last; d++ {
			extent := b.extent[last-d]
			factor = factor.times(coefficient(uint32(d), b.offset[last-d]+row%extent))
			row /= extent
		}
		size := (end - begin) * it.elementBytes
		total = total.plus(factor.times(rowSum((b.offset[last]+column)*it.elementBytes, data[:size])))
		begin, data = end, data[size:]
	}
	return total
}

// R-FPR-01.
func (md *metadata) checkFingerprints() {
	for _, it := range md.items {
		if f := it.fingerprint; f != nil {
			isGood := f[0] < prime && f[1] < prime && (it.rawBytes > 0 || *f == fingerprint{})
			require(isGood, "R-FPR-01", md.file, "the fingerprint %v of %q", f, it.name)
		}
	}
}

// R-FPR-02, given the manifests that can be believed by the numbers of their blobs. Tensors that a manifest lacks are left
// out: that is R-BLB-07.
func (r *report) checkSums(ix *index, manifests map[int]*metadata) {
	found := map[int]map[string]*fingerprint{}
	for number, md := range manifests {
		found[number] = map[string]*fingerprint{}
		for _, it := range md.items[:len(md.tensors)] {
			found[number][string(it.name)] = it.fingerprint
		}
	}
	for _, it := range ix.items {
		holders := map[int]bool{} // an empty tensor may be declared by any blob
		for number := range ix.blobs {
			holders[number] = it.rawBytes == 0
		}
		for _, ref := range it.refs {
			holders[int(ref.blob)] = true
		}
		total, count, isKnown, hasAll := fingerprint{}, 0, !it.isObject(), true
		for number, isHolder := range holders {
			part, has := found[number][string(it.name)]
			isKnown = isKnown && (!isHolder || manifests[number] != nil && (has || it.rawBytes == 0))
			if isHolder && has {
				count++
				hasAll = hasAll && part != nil
			}
			if isHolder && part != nil {
				total = total.plus(*part)
			}
		}
		isSum := hasAll == (it.fingerprint != nil) && (!hasAll || *it.fingerprint == total)
		r.holds(func() {
			require(!isKnown || count == 0 || isSum, "R-FPR-02", ix.file, "the fingerprint of %q is not the sum", it.name)
		})
	}
}

// The sum over the chunks of a tensor that passed their own checks.
type recomputed struct {
	total    fingerprint
	rawBytes uint64
}

// R-FPR-03: adds a chunk of a shard.
func (r *report) recompute(s shard, chunk uint64, raw []byte) {
	if r.recomputed == nil || s.owner.isObject() || raw == nil {
		return
	}
	sum := r.recomputed[s.owner]
	r.recomputed[s.owner] = recomputed{sum.total.plus(s.owner.fingerprintOf(s.part(chunk), raw)), sum.rawBytes + uint64(len(raw))}
}

// R-FPR-03 of the tensors of which every chunk was added.
func (r *report) checkRecomputed(ix *index) {
	for _, it := range ix.items {
		sum := r.recomputed[it]
		isOther := r.recomputed != nil && it.fingerprint != nil && sum.rawBytes == it.rawBytes && sum.total != *it.fingerprint
		r.holds(func() {
			require(!isOther, "R-FPR-03", ix.file, "%q: %v, and that of the elements is %v", it.name, it.fingerprint, sum.total)
		})
	}
}
