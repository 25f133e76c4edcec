# SPDX-License-Identifier: Apache-2.0
"""The tables of schema/index.fbs. A field's position in its list is its id."""

from . import limits
from .flatbuffer import Field, Scalar, Schema, String, Struct, Table, Vector, VectorOfOffsets
from .registries import COMPAT_ATTRIBUTES, COMPAT_FINGERPRINTS, INCOMPAT_DELTAS

_BITS128 = Struct("16s", 1)
_SHARD_REF = Struct("II", 4)

GRID = Schema([
    Field("cuts", Vector("Q"), required=True),
    Field("cut_counts", Vector("I"), required=True),
    Field("run_cut_counts", Vector("I")),
    Field("run_cuts", Vector("Q")),
], strict=True)

BOX_LIST = Schema([
    Field("boxes", Vector("Q"), required=True),
    Field("runs", Vector("Q")),
], strict=True)

TENSOR = Schema([
    Field("name", String(), required=True),
    Field("shape", Vector("Q"), required=True),
    Field("grid", Table(GRID)),
    Field("boxes", Table(BOX_LIST)),
    Field("shards", Vector("II"), required=True),
    Field("dtype", Scalar("H")),
    Field("element_size", Scalar("H")),
    Field("chunk_size_log2", Scalar("B")),
    Field("placement", VectorOfOffsets(String()), count_max=limits.PLACEMENT_COUNT_MAX),
])

OBJECT = Schema([
    Field("name", String(), required=True),
    Field("media_type", String(), required=True),
    Field("size", Scalar("Q")),
    Field("shard", _SHARD_REF, required=True),
    Field("chunk_size_log2", Scalar("B")),
])

BLOB = Schema([
    Field("id", _BITS128, required=True),
    Field("file_size", Scalar("Q")),
    Field("table_offset", Scalar("Q")),
    Field("record_count", Scalar("I")),
    Field("shard_count", Scalar("I")),
    Field("group_list_digest", _BITS128, required=True),
    Field("trailer_digest", _BITS128, required=True),
])

MESH_AXIS = Schema([
    Field("name", String(), required=True),
    Field("size", Scalar("I")),
])

PROVENANCE_ENTRY = Schema([
    Field("key", String(), required=True),
    Field("value", String(), required=True),
])

_INDEX_FIELDS = [
    Field("blobs", VectorOfOffsets(Table(BLOB)), required=True),
    Field("digest_algorithm", Scalar("H")),
    Field("created_unix_ns", Scalar("Q")),
    Field("raw_bytes", Scalar("Q")),
    Field("mesh", VectorOfOffsets(Table(MESH_AXIS)), required=True),
    Field("provenance", VectorOfOffsets(Table(PROVENANCE_ENTRY)), required=True),
]

# The field of spec/delta.md.
BASE = Schema([
    Field("attempt", _BITS128, required=True),
    Field("index_digest", _BITS128, required=True),
    Field("step", Scalar("Q")),
    Field("depth", Scalar("I")),
])

INDEX_IDENTIFIER = b"SPIX"
MANIFEST_IDENTIFIER = b"SPMF"


def root(identifier, compat, incompat):
    """The root table of an index or a manifest, in a file whose header has these masks."""
    fingerprint = Struct("QQ", 1) if compat & COMPAT_FINGERPRINTS else None
    attributes = Vector("B") if compat & COMPAT_ATTRIBUTES else None
    base = Table(BASE) if incompat & INCOMPAT_DELTAS else None
    tensor = Schema(TENSOR + [Field("fingerprint", fingerprint), Field("attributes", attributes)])
    return Schema([
        Field("tensors", VectorOfOffsets(Table(tensor)), required=True),
        Field("objects", VectorOfOffsets(Table(OBJECT)), required=True),
        *((*_INDEX_FIELDS, Field("base", base), Field("attributes", attributes)) if identifier == INDEX_IDENTIFIER else ()),
    ])
