# SPDX-License-Identifier: Apache-2.0
"""Fingerprints of tensors and of their parts (spec/fingerprint.md). One is a pair of numbers, F(0) and F(1)."""

import functools
import operator
import struct

from .xxh3 import M64, digest

P = 2**61 - 1
BASE = 32
_BLOCK_WORDS = BASE**2  # words that the two lowest digits of their index tell apart
ZERO = (0, 0)


def add(a, b):
    return (a[0] + b[0]) % P, (a[1] + b[1]) % P


def _multiply(a, b):
    return a[0] * b[0] % P, a[1] * b[1] % P


@functools.cache
def g(d, k, v):
    """Of both sets."""
    h = int.from_bytes(digest(b"SPF1" + struct.pack("<3I", d, k, v)), "big")
    return 1 + (h & M64) % (P - 1), 1 + (h >> 64) % (P - 1)


def coefficient(d, x):
    """c(s, d, x), of both sets."""
    product, k = (1, 1), 0
    while x:
        x, v = divmod(x, BASE)
        product = _multiply(product, g(d, k, v)) if v else product
        k += 1
    return product


@functools.cache
def _block_factors():
    """Of each set the factors of the words of a block."""
    return tuple(zip(*(coefficient(0, t) for t in range(_BLOCK_WORDS))))


def _of_row(at, data):
    """Of bytes of a row, the first of which is byte `at` of it; the other dimensions are left out."""
    padded = bytes(at % 4) + data
    words = struct.unpack(f"<{-(-len(padded) // 4)}I", padded + bytes(-len(padded) % 4))
    first, total = at // 4, ZERO
    end = first + len(words)
    for begin in range(first // _BLOCK_WORDS * _BLOCK_WORDS, end, _BLOCK_WORDS):
        low, high = max(first, begin), min(end, begin + _BLOCK_WORDS)
        part = words[low - first:high - first]
        sums = (sum(map(operator.mul, part, factors[low - begin:])) for factors in _block_factors())
        total = add(total, _multiply(coefficient(0, begin), tuple(sums)))
    return total


def of_part(shape, element_size, region, data):
    """Of a part of a tensor: the elements of a region, whose bytes are `data`."""
    offset, extent = (region.offset, region.extent) if shape else ((0,), (1,))
    total = ZERO
    begin = region.begin
    while begin < region.end:
        row, column = divmod(begin, extent[-1])
        end = min(begin - column + extent[-1], region.end)
        factor = (1, 1)
        for d, (low, count) in enumerate(zip(offset[-2::-1], extent[-2::-1]), 1):
            row, index = divmod(row, count)
            factor = _multiply(factor, coefficient(d, low + index))
        piece = data[(begin - region.begin) * element_size:(end - region.begin) * element_size]
        total = add(total, _multiply(factor, _of_row((offset[-1] + column) * element_size, piece)))
        begin = end
    return total


def text(fingerprint):
    return f"spf1:{fingerprint[0]:016x}{fingerprint[1]:016x}"


def check_values(metadata):
    """R-FPR-01."""
    for tensor in metadata.tensors:
        if tensor.fingerprint and max(tensor.fingerprint) >= (1 if tensor.is_empty else P):
            raise metadata.violation("R-FPR-01", f"the fingerprint {text(tensor.fingerprint)}", tensor)


def wrong_sums(index, manifests):
    """R-FPR-02: its violations. `manifests` has the metadata of each manifest that can be believed, by the number of its blob.

    Tensors that a manifest lacks are left out: that is R-BLB-07.
    """
    parts = {number: {tensor.name: tensor.fingerprint for tensor in metadata.tensors}
             for number, metadata in manifests.items()}
    for tensor in index.tensors:
        numbers = {number for number, _ in tensor.refs} or set(range(len(index.blobs)))
        found = [parts[number][tensor.name] for number in numbers & set(parts) if tensor.name in parts[number]]
        if not numbers <= set(parts) or not found or tensor.refs and len(found) < len(numbers):
            continue
        if tensor.fingerprint != (None if None in found else functools.reduce(add, found)):
            yield index.metadata.violation("R-FPR-02", "the fingerprint is not the sum of those of the manifests", tensor)


class Recomputed:
    """R-FPR-03: the sums over the chunks of each tensor, as far as they passed their own checks."""

    def __init__(self):
        self._found = {}

    def add(self, shard, chunk, raw):
        tensor = shard.owner
        part = of_part(tensor.shape, tensor.element_size, shard.chunk_region(chunk), raw)
        total, count = self._found.get(tensor.name, (ZERO, 0))
        self._found[tensor.name] = add(total, part), count + len(raw)

    def differences(self, index):
        """Violations of the tensors of which every chunk was added."""
        for tensor in index.tensors:
            total, count = self._found.get(tensor.name, (ZERO, 0))
            if count == tensor.raw_bytes and tensor.fingerprint not in (None, total):
                yield index.metadata.violation(
                    "R-FPR-03", f"{text(tensor.fingerprint)}, and that of the elements is {text(total)}", tensor)
