# SPDX-License-Identifier: Apache-2.0
"""The content digest (spec/content-digest.md)."""

import struct

from . import xxh3

_BLOCK_BYTES = 65536


def _tag(text):
    return f"SPC1 {text}".encode().ljust(16, b"\0")


def _blocks(data):
    return b"".join(xxh3.digest(_tag("block") + data[at:at + _BLOCK_BYTES]) for at in range(0, len(data), _BLOCK_BYTES))


def _text(data):
    return struct.pack("<I", len(data)) + data


def tensor_digest(name, dtype, element_size, shape, data):
    """`name` and `data` are bytes, those of the tensor in row-major order; `dtype` is its number."""
    head = struct.pack(f"<HII{len(shape)}Q", dtype, element_size, len(shape), *shape)
    return xxh3.digest(_tag("tensor") + _text(name) + head + _blocks(data))


def object_digest(name, media_type, data):
    head = _text(name) + _text(media_type) + struct.pack("<Q", len(data))
    return xxh3.digest(_tag("object") + head + _blocks(data))


def content_digest(tensors, objects):
    """Of digests by name, which are dicts."""
    counts = struct.pack("<QQ", len(tensors), len(objects))
    in_order = b"".join(digests[name] for digests in (tensors, objects) for name in sorted(digests))
    return "spc1:" + xxh3.digest(_tag("content") + counts + in_order).hex()


def checkpoint_digest(checkpoint):
    """Of a `load.Checkpoint`; every byte is read and verified."""
    tensors = {
        tensor.name: tensor_digest(tensor.name, tensor.dtype, tensor.element_size, tensor.shape, checkpoint.tensor(text))
        for text, tensor in checkpoint.tensors.items()
    }
    objects = {
        item.name: object_digest(item.name, item.media_type, checkpoint.object(text))
        for text, item in checkpoint.objects.items()
    }
    return content_digest(tensors, objects)
