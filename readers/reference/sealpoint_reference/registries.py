# SPDX-License-Identifier: Apache-2.0
"""Numbers in files (spec/registries.md)."""

KIND_BLOB, KIND_INDEX, KIND_MARKER = 1, 2, 3

MARKER_COMMIT, MARKER_VOID = 1, 2

DIGEST_XXH3_128 = 1

COMPAT_FINGERPRINTS = 1 << 0
COMPAT_ATTRIBUTES = 1 << 1
COMPAT_KNOWN = COMPAT_FINGERPRINTS | COMPAT_ATTRIBUTES

INCOMPAT_CODECS, INCOMPAT_DELTAS = 1 << 2, 1 << 3
INCOMPAT_OF_A_DELTA = INCOMPAT_CODECS | INCOMPAT_DELTAS

CODEC_NONE, CODEC_ZSTD, CODEC_BYTESPLIT_ZSTD, CODEC_CHANGES = 0, 1, 2, 4
CODECS = (CODEC_NONE, CODEC_ZSTD, CODEC_BYTESPLIT_ZSTD, CODEC_CHANGES)

# dtype -> name, bytes of an element
DTYPES = {
    1: ("bool", 1), 2: ("i8", 1), 3: ("i16", 2), 4: ("i32", 4), 5: ("i64", 8),
    6: ("u8", 1), 7: ("u16", 2), 8: ("u32", 4), 9: ("u64", 8),
    10: ("f16", 2), 11: ("bf16", 2), 12: ("f32", 4), 13: ("f64", 8), 14: ("c64", 8), 15: ("c128", 16),
    16: ("f8_e4m3fn", 1), 17: ("f8_e5m2", 1), 18: ("f8_e4m3fnuz", 1), 19: ("f8_e5m2fnuz", 1),
    20: ("f8_e8m0fnu", 1), 21: ("f4_e2m1x2", 1), 22: ("c32", 4),
}


def dtype_name(dtype):
    return DTYPES[dtype][0] if dtype in DTYPES else f"dtype{dtype}"
