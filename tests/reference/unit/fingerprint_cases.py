# SPDX-License-Identifier: Apache-2.0
"""Checkpoints in memory with fingerprints, whole and broken, and what full verification lists of each.

Two tensors have elements, one of them in two blobs; both blobs declare the third, which is empty.
"""

import functools

import encode
from sealpoint_reference.fingerprint import P, ZERO, add, of_part
from sealpoint_reference.geometry import Region
from sealpoint_writer.flatbuffer import Scalar, Text
from test_checkpoint import state

INDEX, *BLOBS = f"{encode.ATTEMPT.hex()}.index", "01" * 16 + ".blob", "02" * 16 + ".blob"
BIT, OTHER_BIT = 1, 1 << 5


def total(parts):
    return functools.reduce(add, parts, ZERO)


def good():
    """Fingerprints by name: those of the index, and of each manifest."""
    tensors = {tensor.name: tensor for tensor in state()[1]}
    parts = [{name: total(of_part(tensor.shape, 1, Region(shard.offset, shard.extent, *shard.run), shard.data)
                          for shard in tensor.shards if shard.blob == blob)
              for name, tensor in tensors.items() if blob == 0 or name != b"long"} for blob in (0, 1)]
    return [{name: total(part.get(name, ZERO) for part in parts) for name in tensors}, *parts]


def files(*changes, more=(), edit=lambda which, tensors: None, **options):
    """A change is which file, 0 for the index, a name and a fingerprint, or None; `more` fields go behind it, and `edit`
    changes the tables."""
    values = good()
    for which, name, value in changes:
        values[which][name] = value

    def put(which, root):
        for tensor in root.fields[0].items:
            value = values[which].get(tensor.fields[0].data)
            tensor.fields += ([Scalar("QQ", *value, align=1)] if value else []) + list(more)
        edit(which, root.fields[0].items)

    manifests = iter((1, 2))
    return encode.checkpoint(*state()[1:], 2, lambda root: put(next(manifests), root), lambda root: put(0, root),
                             **{"compat": BIT, **options})


def changed(content, name, change):
    data = bytearray(content[name])
    change(data)
    return {**content, name: bytes(data)}


def broken_values():
    for name, value in ((b"long", (P, 0)), (b"long", (0, P)), (b"long", (P - 1, 2**64 - 1)), (b"empty", (0, 1))):
        for which, file in enumerate((INDEX, BLOBS[0])):
            yield f"{name} with {value} in {file}", files((which, name, value)), [("R-FPR-01", file)]
    for which, values in enumerate(good()):
        for name, value in values.items():
            yield f"no {name} in {which}", files((which, name, None)), [("R-FPR-02", INDEX)]
            if name != b"empty":
                found = [("R-FPR-02", INDEX)] + [("R-FPR-03", INDEX)] * (which == 0)
                yield f"another {name} in {which}", files((which, name, add(value, (1, 0)))), found


def missing_parts():
    """A part that is not known is no violation beside the one that says so."""
    absent = files((0, b"bricks", (1, 1)), (0, b"empty", None), (2, b"empty", None))
    del absent[BLOBS[1]]
    yield "a manifest that is not there", absent, [("R-BLB-01", BLOBS[1])]

    def rename(which, tensors):
        tensors[0].fields[0] = Text(b"bricka") if which == 2 else tensors[0].fields[0]

    def keep_shards(which, tensors):
        tensors[:] = [tensor for tensor in tensors if tensor.fields[4].values or which == 0]

    yield "a tensor that a manifest lacks", files(edit=rename), [("R-BLB-07", BLOBS[1])]
    yield "a tensor that all manifests lack", files((0, b"empty", None), edit=keep_shards), [("R-BLB-07", INDEX)]


def cases():
    """(what, files, rule and file of each violation)."""
    index, manifest, _ = good()
    yield "a good one", files(), []
    yield "a linked blob without", files((0, b"bricks", None), (2, b"bricks", None)), []
    yield from broken_values()
    for name in index:
        if name != b"empty":
            other = [(which, name, add(values[name], (0, 1))) for which, values in enumerate((index, manifest))]
            yield f"other elements of {name}", files(*other), [("R-FPR-03", INDEX)]
    damaged = changed(files(*other), BLOBS[0], lambda data: data.__setitem__(data.index(state()[0][:64]), 1))
    yield "elements that failed", damaged, [("R-CHK-02", BLOBS[0])]
    yield from missing_parts()
    yield "no bit", files(compat=0), [("R-IDX-03", INDEX)]
    yield "no bit in the blobs", files(blob_compat=0), [("R-IDX-03", blob) for blob in BLOBS]
    yield "another bit", files((0, b"long", (P, P)), compat=OTHER_BIT), []
    yield "one more field", files(more=[encode.u8(1)]), [("R-IDX-03", INDEX)]
    yield "one more field that a bit announces", files(more=[encode.u8(1)], compat=BIT | OTHER_BIT), []
    yield "extensions", files(extension=b"x" * 16), [("R-HDR-06", blob) for blob in BLOBS]
    yield "extensions that a bit announces", files(extension=b"x" * 16, compat=BIT | OTHER_BIT), []
    marker = encode.seal_header(files()["COMMIT"][:-1] + b"x")
    yield "the extension of the marker", {**files(), "COMMIT": marker}, [("R-HDR-06", "COMMIT")]
