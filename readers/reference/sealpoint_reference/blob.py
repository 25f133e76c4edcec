# SPDX-License-Identifier: Apache-2.0
"""Trailer, header and manifest of a blob (spec/container.md, section 5; reader-rules.md, section 3, step 7)."""

import struct

from . import metadata as rules_of_metadata
from . import attributes, fingerprint, limits, schema
from .directory import read_exactly
from .header import HEADER_BYTES, check_blob_header, read_blob_header
from .index import (DIGEST_BYTES, PAGE_BYTES, RECORD_BYTES, RECORDS_PER_GROUP, TRAILER_BYTES, read_metadata,
                    round_up)
from .registries import COMPAT_KNOWN, DIGEST_XXH3_128
from .rules import Violation
from .xxh3 import digest

_MAGIC = b"\x89SPB\r\n\x1a\n"
_LAYOUT = struct.Struct("<8s2I16s3Q2I4Q16s16s16sH78s16s16s")
_EXTENSION_AT = 224


class Trailer:
    def __init__(self, data):
        (self.magic, self.length, self.record_size, self.blob_id, self.file_size, self.chunks_end, self.table_offset,
         self.record_count, self.shard_count, self.records_offset, self.manifest_offset, self.manifest_length,
         self.raw_bytes, self.group_list_digest, self.manifest_digest, self.header_digest, self.digest_algorithm,
         self.reserved, self.extension, self.digest) = _LAYOUT.unpack(data)

    @property
    def manifest_end(self):
        return self.manifest_offset + self.manifest_length


def check_presence(directory, blob):
    """Step 5: R-BLB-01. Returns the length."""
    size = directory.size(blob.name)
    if size is None or size < blob.file_size:
        raise Violation("R-BLB-01", f"{size or 0} of {blob.file_size} bytes", blob.name)
    return size


def check_length(blob, size):
    """Step 5: R-BLB-09. What is pinned can be checked all the same."""
    if size > blob.file_size:
        raise Violation("R-BLB-09", f"{size} bytes instead of {blob.file_size}", blob.name, blob.file_size)


def read_trailer(directory, blob):
    """R-BLB-03 (the pin), R-BLB-02, R-IDX-08, R-HDR-06, R-BLB-04 and R-BLB-03 (the fields)."""
    at = blob.file_size - TRAILER_BYTES
    data = read_exactly(directory, blob.name, at, TRAILER_BYTES)
    trailer = Trailer(data)

    def require(holds, rule, message, field_at):
        if not holds:
            raise Violation(rule, message, blob.name, at + field_at)

    require(trailer.digest == blob.trailer_digest, "R-BLB-03",
            f"trailer digest {trailer.digest.hex()}, the index pins {blob.trailer_digest.hex()}", 240)
    computed = digest(data[:240])
    require(trailer.digest == computed, "R-BLB-02",
            f"trailer digest mismatch: computed {computed.hex()}, recorded {trailer.digest.hex()}", 240)
    require(trailer.magic == _MAGIC, "R-BLB-02", "another trailer magic", 0)
    require(trailer.length == TRAILER_BYTES, "R-BLB-02", f"trailer length {trailer.length}", 8)
    require(trailer.digest_algorithm == DIGEST_XXH3_128, "R-IDX-08", f"algorithm {trailer.digest_algorithm}", 144)
    require(not any(trailer.reserved), "R-HDR-06", "reserved bytes are not zero", 146)
    require(trailer.record_size == RECORD_BYTES, "R-BLB-02", f"record size {trailer.record_size}", 12)
    _check_offsets(trailer, blob.is_of_a_delta, require)
    pinned = (blob.id, blob.file_size, blob.table_offset, blob.record_count, blob.shard_count,
              blob.group_list_digest)
    found = (trailer.blob_id, trailer.file_size, trailer.table_offset, trailer.record_count,
             trailer.shard_count, trailer.group_list_digest)
    require(found == pinned, "R-BLB-03", "not what the index pins", 0)
    return trailer


def _check_offsets(trailer, may_store_nothing, require):
    """R-BLB-04. Chunks of a delta may have no stored byte."""
    groups = -(-trailer.record_count // RECORDS_PER_GROUP)
    begins_right = trailer.chunks_end == HEADER_BYTES
    if trailer.record_count:
        begins_right = trailer.chunks_end > HEADER_BYTES or begins_right and may_store_nothing
    require(begins_right, "R-BLB-04", f"end of the chunk area at {trailer.chunks_end}", 40)
    for found, end_before, multiple, field_at in (
            (trailer.table_offset, trailer.chunks_end, 64, 48),
            (trailer.records_offset, trailer.table_offset + groups * DIGEST_BYTES, 64, 64),
            (trailer.manifest_offset, trailer.records_offset + trailer.record_count * RECORD_BYTES, 64, 72),
            (trailer.file_size, trailer.manifest_end + TRAILER_BYTES, PAGE_BYTES, 32)):
        require(found == round_up(end_before, multiple), "R-BLB-04", f"{found} after {end_before}", field_at)


def check_end(blob, trailer, end):
    """R-BLB-04: the chunk area ends with the last chunk."""
    if trailer.chunks_end != end:
        raise Violation("R-BLB-04", f"end of the chunk area at {trailer.chunks_end}, the last chunk ends at {end}",
                        blob.name, blob.file_size - TRAILER_BYTES + 40)


def read_header(directory, blob, index, trailer):
    """The header that the trailer pins; then R-HDR-06 for the trailer's extension."""
    header = read_blob_header(directory, blob.name, blob.file_size, trailer.header_digest)
    check_blob_header(header, blob.name, blob.id, index.header)
    if not header.compat & ~COMPAT_KNOWN and any(trailer.extension):
        raise Violation("R-HDR-06", "an extension that no compat bit announces", blob.name,
                        blob.file_size - TRAILER_BYTES + _EXTENSION_AT)
    return header


def read_manifest(directory, blob, trailer, header):
    """R-IDX-01, R-BLB-06 (the digest), R-IDX-02 to 22, R-FPR-01, R-ATT-01 to 05; returns the metadata and its shards."""
    name, at = blob.name, trailer.manifest_offset
    if trailer.manifest_length > min(limits.MANIFEST_SIZE_MAX_BYTES, limits.FLATBUFFER_SIZE_MAX_BYTES):
        raise Violation("R-IDX-01", f"a manifest of {trailer.manifest_length} bytes", name, at)
    data = read_exactly(directory, name, at, trailer.manifest_length)
    if digest(data) != trailer.manifest_digest:
        raise Violation("R-BLB-06", "digest of the manifest differs", name, at)
    metadata = read_metadata(memoryview(data), schema.MANIFEST_IDENTIFIER, name, at, header)
    rules_of_metadata.check_counts(metadata)
    rules_of_metadata.check_texts(metadata)
    rules_of_metadata.check_order(metadata)
    rules_of_metadata.check_dtypes(metadata)
    rules_of_metadata.check_chunk_sizes(metadata)
    rules_of_metadata.check_sizes(metadata)
    rules_of_metadata.check_geometries(metadata)
    rules_of_metadata.check_references(metadata, 1)
    rules_of_metadata.check_shard_count(metadata, trailer.record_count)
    shards, = rules_of_metadata.blob_shards(metadata, 1)
    rules_of_metadata.check_records(metadata, shards, trailer.record_count)
    if len(shards) != trailer.shard_count:
        raise metadata.violation("R-IDX-21", f"{len(shards)} shards, the trailer counts {trailer.shard_count}")
    rules_of_metadata.check_empty_objects(metadata)
    fingerprint.check_values(metadata)
    attributes.check(metadata)
    return metadata, shards


def check_raw_bytes(blob, trailer):
    """R-BLB-06, of the trailer's sum."""
    if sum(shard.raw_bytes for shard in blob.shards) != trailer.raw_bytes:
        raise Violation("R-BLB-06", f"raw bytes {trailer.raw_bytes}", blob.name, blob.file_size - TRAILER_BYTES + 88)


def _description(item):
    """What of a tensor or an object is the same in manifest and index, beside its shards."""
    kind = (item.dtype, item.shape) if hasattr(item, "shape") else (item.media_type, item.raw_bytes)
    return type(item).__name__, item.name, kind, item.element_size, item.chunk_size


def _placed(shards):
    return [(_description(shard.owner), shard.first, shard.region) for shard in shards]


def check_agreement(blob, index, metadata, shards):
    """R-BLB-07, then R-ATT-06."""
    if _placed(shards) != _placed(blob.shards):
        raise Violation("R-BLB-07", "the manifest's shards are not the index's", blob.name, metadata.position)
    if not set(map(_description, _empty_items(metadata))) <= set(map(_description, _empty_items(index))):
        raise Violation("R-BLB-07", "the manifest declares what the index does not have", blob.name, metadata.position)
    pinned = {tensor.name: tensor.attributes for tensor in index.tensors}
    for tensor in metadata.tensors:
        if tensor.attributes != pinned[tensor.name]:
            raise metadata.violation("R-ATT-06", "the attributes are not those of the index", tensor)


def _empty_items(metadata):
    """Tensors and objects without bytes, which therefore have no shard."""
    return [item for item in (*metadata.tensors, *metadata.objects) if not item.raw_bytes]


def empty_names(metadata):
    return {(type(item), item.name) for item in _empty_items(metadata)}


def undeclared(index, names):
    """R-BLB-07 over all blobs: empty tensors and objects that no manifest declares."""
    for item in _empty_items(index):
        if (type(item), item.name) not in names:
            yield index.metadata.violation("R-BLB-07", "no manifest declares it", item)
