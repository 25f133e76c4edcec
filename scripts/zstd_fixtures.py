#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a checkpoint whose frames one version of zstd makes, for spec/fixtures.

    scripts/zstd_fixtures.py LIBRARY FOLDER

LIBRARY: a libzstd.so of that version. FOLDER: of the checkpoint, which has a blob for each level, with a tensor of each codec and
content. The writer is that in Python (readers/reference); `zstd` of the provenance says which it was.
"""

import argparse
import ctypes
import pathlib
import random
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "readers/reference"))
from sealpoint_reference import zstd_library  # noqa: E402
from sealpoint_writer.checkpoint import Attempt  # noqa: E402
from sealpoint_writer.codec import CODEC_BYTESPLIT_ZSTD, CODEC_ZSTD  # noqa: E402
from sealpoint_writer.items import Tensor, whole  # noqa: E402

LEVELS = (-7, 1, 3, 9, 19)  # 19 searches for the best cut of blocks; negative ones leave literals as they are
F32, ELEMENTS = 12, 2048


def encoder(library, level):
    library.ZSTD_compress.restype = library.ZSTD_compressBound.restype = ctypes.c_size_t
    library.ZSTD_compress.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int]
    library.ZSTD_compressBound.argtypes = library.ZSTD_isError.argtypes = [ctypes.c_size_t]

    def encode(data):
        room = ctypes.create_string_buffer(library.ZSTD_compressBound(len(data)))
        size = library.ZSTD_compress(room, len(room), bytes(data), len(data), level)
        if library.ZSTD_isError(size):
            raise ValueError(f"zstd could not compress {len(data)} bytes at level {level}")
        return room.raw[:size]
    return encode


def contents():
    """Weights, what repeats, what is zero but for a few, and one value alone: the kinds of blocks that frames have."""
    generator = random.Random(1)
    weights = [generator.gauss(0, 0.02) for _ in range(ELEMENTS)]
    return {"weights": weights, "repeats": weights[:96] * (ELEMENTS // 96), "one_value": [0.25] * ELEMENTS,
            "sparse": [w if generator.random() < 0.02 else 0.0 for w in weights]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library")
    parser.add_argument("folder", type=pathlib.Path)
    options = parser.parse_args()
    library = ctypes.CDLL(options.library)
    library.ZSTD_versionString.restype = ctypes.c_char_p
    version = library.ZSTD_versionString().decode()
    attempt = Attempt(options.folder, step=1)
    summaries = []
    for level in LEVELS:
        zstd_library.encoder = lambda level=level: encoder(library, level)
        blob = attempt.blob()
        for name, values in contents().items():
            data = struct.pack(f"<{len(values)}f", *values)
            for codec, way in ((CODEC_ZSTD, "zstd"), (CODEC_BYTESPLIT_ZSTD, "bytesplit")):
                tensor = Tensor(f"level{level}.{way}.{name}", (len(values),), F32, 4, 2**12)
                blob.add(tensor, data, whole(tensor.shape), codec)
        summaries.append(attempt.write(blob))
    attempt.commit(summaries, [], {"zstd": version})
    print(f"{options.folder}: zstd {version}, {len(LEVELS)} levels")
    return 0


if __name__ == "__main__":
    sys.exit(main())
