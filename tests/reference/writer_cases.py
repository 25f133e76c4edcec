# SPDX-License-Identifier: Apache-2.0
"""Random checkpoints of the writer in Python, each made from a number alone, and what must be read of each.

What a case has: tensors that are cut into grids, bricks and runs, by random cuts, over one to four ranks, some regions on
several of them; scalars and empty tensors; all dtypes; objects of no byte to several chunks; every codec; records of more
than one group; placements, mesh, provenance, fingerprints and unknown compat bits.
"""

import dataclasses
import itertools
import math
import os
import random

from sealpoint_reference import content
from sealpoint_reference.registries import COMPAT_FINGERPRINTS, DTYPES
from sealpoint_writer.checkpoint import Attempt
from sealpoint_writer.codec import CODEC_BYTESPLIT_ZSTD, CODEC_CHANGES, CODEC_NONE, CODEC_ZSTD
from sealpoint_writer.items import Object, Region, Tensor
from sealpoint_writer.ranks import hold, write_blobs

CODECS = (CODEC_NONE, CODEC_ZSTD, CODEC_BYTESPLIT_ZSTD)
PRIVATE_COMPAT_BITS = (0, 0, 0, 1 << 56, 1 << 63 | 1 << 57)
LETTERS = "abcdefgh.ABC/ _-" + "äß€𝔘"


@dataclasses.dataclass
class Case:
    ranks: list
    tensors: dict  # Tensor -> its bytes, row-major
    objects: dict  # Object -> its bytes
    compat: int
    step: int
    mesh: list
    provenance: dict
    kinds: set  # of tilings, for the counts

    @property
    def unknown_compat(self):
        return self.compat & ~COMPAT_FINGERPRINTS

    def write(self, directory, base=None, identity=None):
        attempt = Attempt(directory, self.step, compat=self.compat, identity=identity, base=base)
        attempt.commit(write_blobs(attempt, self.ranks, self.compat), self.mesh, self.provenance)

    def digest(self):
        """The content digest, of the bytes that were to be written."""
        return content.content_digest(
            {t.name.encode(): content.tensor_digest(t.name.encode(), t.dtype, t.element_size, t.shape, data)
             for t, data in self.tensors.items()},
            {o.name.encode(): content.object_digest(o.name.encode(), o.media_type.encode(), data)
             for o, data in self.objects.items()})


def noise(generator, size):
    """Bytes that a codec shrinks, or not."""
    if generator.random() < 0.4:
        return generator.randbytes(size)
    pattern = generator.randbytes(generator.choice((1, 2, 4, 12)))
    return (pattern * (size // len(pattern) + 1))[:size]


def region_bytes(shape, element_size, data, region):
    """Element by element, as the definition of a region says."""
    positions = itertools.product(*(range(o, o + e) for o, e in zip(region.offset, region.extent)))
    out = bytearray()
    for position in itertools.islice(positions, region.begin, region.end):
        at = 0
        for index, extent in zip(position, shape):
            at = at * extent + index
        out += data[at * element_size:(at + 1) * element_size]
    return bytes(out)


def cuts_of(generator, extent, count_max):
    count = generator.randint(0, min(count_max, extent - 1))
    return sorted(generator.sample(range(1, extent), count))


def run_regions(generator, offset, extent, chance):
    """A box, or with this chance its runs."""
    elements = math.prod(extent)
    cuts = cuts_of(generator, elements, 3) if generator.random() < chance else []
    return [Region(offset, extent, begin, end) for begin, end in itertools.pairwise([0, *cuts, elements])]


def grid(generator, shape):
    edges = [[0, *cuts_of(generator, extent, 3), extent] for extent in shape]
    chance = generator.choice((0, 0.5))
    for cell in itertools.product(*(itertools.pairwise(e) for e in edges)):
        yield from run_regions(generator, tuple(a for a, _ in cell), tuple(b - a for a, b in cell), chance)


def bricks(generator, offset, extent, depth=4):
    """Cut in two, and each half again."""
    long = [d for d, e in enumerate(extent) if e > 1]
    if not depth or not long or generator.random() < 0.15:
        yield from run_regions(generator, offset, extent, 0.2)
        return
    d = generator.choice(long)
    cut = generator.randrange(1, extent[d])
    for begin, end in ((0, cut), (cut, extent[d])):
        yield from bricks(generator, (*offset[:d], offset[d] + begin, *offset[d + 1:]),
                          (*extent[:d], end - begin, *extent[d + 1:]), depth - 1)


def tiling(generator, shape):
    """Its kind, and regions that hold each element once."""
    zero = (0,) * len(shape)
    kind = generator.choice(("whole", "grid", "grid", "bricks", "bricks", "runs"))
    regions = {"whole": lambda: [Region(zero, shape, 0, math.prod(shape))], "grid": lambda: list(grid(generator, shape)),
               "bricks": lambda: list(bricks(generator, zero, shape)),
               "runs": lambda: run_regions(generator, zero, shape, 1)}[kind]()
    return kind, regions


def dtype_of(generator):
    """A number and the bytes of an element; the private and the unregistered ones have any power of two."""
    if generator.random() < 0.8:
        dtype = generator.choice(list(DTYPES))
        return dtype, DTYPES[dtype][1]
    return generator.choice((300, 61440, 65535)), 2**generator.randint(0, 8)


def shape_of(generator, element_size):
    ndim = generator.choice((0, 1, 1, 2, 2, 3, 4))
    shape = tuple(generator.randint(1, (30, 12, 7, 5)[ndim - 1]) for _ in range(ndim))
    if shape and generator.random() < 0.15:  # more than a page, a chunk or a group of records
        return (generator.choice((65536, 70000, 270000)) // (math.prod(shape[1:]) * element_size) + 1, *shape[1:])
    return shape


def empty_shape(generator):
    return generator.choice(((0,), (0, 3), (2, 0, 5), (2**40, 2**40, 0)))


def name_of(generator, taken):
    while True:
        name = "".join(generator.choices(LETTERS, k=generator.randint(1, 12)))
        if name not in taken and name[0] != " ":  # what load_content is asked skips blanks
            taken.add(name)
            return name


def make(number):
    generator = random.Random(number)
    ranks = [[] for _ in range(generator.randint(1, 4))]
    taken, tensors, objects, kinds = set(), {}, {}, set()

    def some_ranks():
        return generator.sample(ranks, 1 if generator.random() < 0.7 else generator.randint(1, len(ranks)))

    def add_tensor(shape):
        dtype, element_size = dtype_of(generator)
        name = name_of(generator, taken)
        placement = tuple(f"axis {d}: shard dim {d}" for d in range(generator.choice((0, 0, 1, 32))))
        tensor = Tensor(name, shape, dtype, element_size, 2**generator.choice((12, 12, 13, 16, 22)), placement)
        data = tensors[tensor] = noise(generator, tensor.raw_bytes)
        if not data:
            for rank in some_ranks():
                rank.append(hold(tensor, b""))
            return
        kind, regions = tiling(generator, shape)
        kinds.add(kind)
        generator.shuffle(regions)
        for region in regions:
            part = region_bytes(shape, element_size, data, region)
            for rank in some_ranks():
                rank.append(hold(tensor, part, region, generator.choice(CODECS)))

    def add_object():
        name = name_of(generator, taken)
        data = noise(generator, generator.choice((0, 1, 7, 4096, 4097, 20000)))
        item = Object(name, generator.choice(("text/plain", "application/x.loader-state")), len(data),
                      2**generator.choice((12, 13, 22)))
        objects[item] = data
        for rank in some_ranks():
            rank.append(hold(item, data, codec=generator.choice(CODECS)))

    for _ in range(generator.randint(0, 5)):
        add_tensor(empty_shape(generator) if generator.random() < 0.15 else shape_of(generator, 8))
    for _ in range(generator.randint(0, 3)):
        add_object()
    compat = generator.choice(PRIVATE_COMPAT_BITS) | generator.choice((0, COMPAT_FINGERPRINTS))
    step = generator.choice((0, 42, 10**15, 2**64 - 1))
    provenance = {"metric.loss": "1.5e-3", "tag.text": "", "x.π": "line\nline"} if generator.random() < 0.5 else {}
    return Case(ranks, tensors, objects, compat, step, [("data", len(ranks)), ("tensor", 1)], provenance, kinds)


def changed(generator, data, element_size):
    """The bytes with some elements changed: none, few, many or all."""
    count = len(data) // element_size
    changed_count = generator.choice((0, min(count, 1), count // 100, count // 3, count))
    found = bytearray(data)
    for element in generator.sample(range(count), changed_count):
        at = element * element_size + generator.randrange(element_size)
        found[at] ^= generator.randrange(1, 256)
    return bytes(found)


def make_delta(number, base):
    """A case whose tensors are mostly those of another one, cut otherwise, of which some elements changed."""
    generator = random.Random(number)
    case = make(number)
    names = {item.name for item in (*case.tensors, *case.objects)}
    for tensor, data in base.tensors.items():
        if tensor.name in names or not data or generator.random() < 0.1:
            continue
        tensor = dataclasses.replace(tensor, chunk_size=2**generator.choice((12, 13, 16)))
        case.tensors[tensor] = data = changed(generator, data, tensor.element_size)
        for region in tiling(generator, tensor.shape)[1]:
            codec = generator.choice((CODEC_CHANGES, CODEC_CHANGES, CODEC_NONE))
            generator.choice(case.ranks).append(
                hold(tensor, region_bytes(tensor.shape, tensor.element_size, data, region), region, codec))
    return case


def write_cases(cases, folder):
    """Each is a delta of the one before; returns the cases and their directories."""
    paths = []
    for position, case in enumerate(cases):
        case.step, attempt = position, os.urandom(16)
        paths.append(f"{folder}/step-{position:012}-{attempt.hex()[:8]}")
        case.write(paths[-1], paths[-2] if position else None, attempt)
    return list(zip(cases, paths))


def write_chain(number, folder, length=3):
    cases = [make(number)]
    while len(cases) < length:
        cases.append(make_delta(number * 1000 + len(cases), cases[-1]))
    return write_cases(cases, folder)


def write_deep_chain(folder, depth=10):
    """A tensor that is cut by rows and by columns in turns: whoever reads the base bytes of each chunk by themselves reads a
    power of the depth."""
    generator = random.Random(0)
    tensor, data, cases = Tensor("w", (4, 500), 12, 4, 4096), generator.randbytes(8000), []
    rows = [Region((row, 0), (1, 500), 0, 500) for row in range(4)]
    columns = [Region((0, at), (4, 50), 0, 200) for at in range(0, 500, 50)]
    for position in range(depth + 1):
        parts = [hold(tensor, region_bytes((4, 500), 4, data, region), region, CODEC_CHANGES if position else CODEC_NONE)
                 for region in (rows, columns)[position % 2]]
        cases.append(Case([parts], {tensor: data}, {}, 0, 0, [], {}, set()))
        data = bytes(byte ^ (at % 40 == 0) for at, byte in enumerate(data))
    return write_cases(cases, folder)
