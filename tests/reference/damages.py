# SPDX-License-Identifier: Apache-2.0
"""Random damages of a checkpoint, with the digests over them made right again up to a random one.

Bytes change in marker, index or blob, mostly where they mean something; then each digest that would show it is made anew,
from the records' groups up to the marker, until a random place in that order. So rules behind the digests are reached.
"""

import random
import struct

from sealpoint_reference.xxh3 import digest

WORDS = (0, 1, 2, 4, 8, 2**31 - 1, 2**32 - 1)
TRAILER_BYTES, GROUP_BYTES = 256, 4096
MARKER_NAME = "COMMIT"


def _trailer(data, layout, offset):
    return struct.unpack_from(layout, data, len(data) - TRAILER_BYTES + offset)


def _areas(name, data):
    """Ranges of a file, of which one is chosen."""
    if name == MARKER_NAME:
        return (0, 136), (128, 512)
    if name.endswith(".index"):
        return (0, 128), *[(128, len(data))] * 4
    table, = _trailer(data, "<Q", 48)
    records, manifest, manifest_bytes = _trailer(data, "<3Q", 64)
    end = manifest + manifest_bytes
    return ((0, 128), (128, table), (table, records), *[(records, manifest)] * 2, *[(manifest, end)] * 3,
            (end, len(data) - TRAILER_BYTES), (len(data) - TRAILER_BYTES, len(data)))


def _change(generator, name, data, whole):
    begin, end = generator.choice([area for area in _areas(name, whole) if area[0] < area[1]])
    at = generator.randrange(begin, end)
    kind = generator.randrange(4)
    if kind == 0:
        data[at] ^= 1 << generator.randrange(8)
    elif kind == 1:
        data[at] = generator.choice((0, 1, 2, 128, 255, (data[at] + 1) % 256, (data[at] - 1) % 256))
    elif kind == 2:
        at -= at % 4
        data[at:at + 4] = struct.pack("<I", generator.choice(WORDS))
    else:
        at -= at % 8
        near = int.from_bytes(data[at:at + 8], "little") + generator.choice((1, -1, 64, -64, 4096))
        value = struct.pack("<Q", generator.choice((0, 1, 2**64 - 1, 2**63, near % 2**64)))
        data[at:at + 8] = value[:len(data) - at]


def _seal_header(data):
    length = int.from_bytes(data[16:20], "little")
    if 56 <= length <= len(data):
        data[40:56] = bytes(16)
        data[40:56] = digest(data[:length])


def _seal_blob(data, whole, index, level):
    """The table lies where it did before the damage; the index gets the new digests in the place of the old ones."""
    at = len(data) - TRAILER_BYTES
    table, records_count = *_trailer(whole, "<Q", 48), *_trailer(whole, "<I", 56)
    records, manifest, manifest_bytes = _trailer(whole, "<3Q", 64)
    groups = -(-records_count // 64)

    def replace(place, new):
        old = bytes(data[place:place + 16])
        data[place:place + 16] = new
        return bytes(index).replace(old, new)

    if level >= 1:
        for group in range(groups):
            end = min(records + GROUP_BYTES * (group + 1), records + 64 * records_count)
            data[table + 16 * group:table + 16 * group + 16] = digest(data[records + GROUP_BYTES * group:end])
    if level >= 2 and groups:
        index[:] = replace(at + 96, digest(data[table:table + 16 * groups]))
    if level >= 3:
        data[at + 112:at + 128] = digest(data[manifest:manifest + manifest_bytes])
    if level >= 4:
        _seal_header(data)
        data[at + 128:at + 144] = data[40:56]
    if level >= 5:
        index[:] = replace(at + 240, digest(data[at:at + 240]))


def damaged(number, files):
    """The files, by name, with the damage of this number."""
    generator = random.Random(number)
    files = {name: bytearray(data) for name, data in files.items()}
    index = next(name for name in files if name.endswith(".index"))
    blobs = sorted(name for name in files if name.endswith(".blob"))
    name = generator.choice([MARKER_NAME, *[index] * 4, *(generator.choice(blobs) for _ in range(6) if blobs)])
    whole = bytes(files[name])
    for _ in range(generator.choice((1, 1, 1, 2))):
        _change(generator, name, files[name], whole)
    level = generator.choice((0, 9, 9, 9, 9, generator.randrange(9)))
    if name in blobs:
        _seal_blob(files[name], whole, files[index], level)
    if level >= 6:
        _seal_header(files[index])
    if level >= 7:
        files[MARKER_NAME][168:184] = digest(files[index])
    if level >= 8:
        _seal_header(files[MARKER_NAME])
    return {name: bytes(data) for name, data in files.items()}
