# SPDX-License-Identifier: Apache-2.0
"""The index (spec/container.md, section 4; order: reader-rules.md, section 3, steps 3 and 4)."""

import itertools

from . import metadata as rules_of_metadata
from . import attributes, fingerprint, limits, schema
from .metadata import Metadata, blob_shards, text_fault
from .directory import read_exactly
from .flatbuffer import Malformed, UnknownField, read_root
from .header import HEADER_BYTES, NO_ID, read_index_header
from .marker import read_marker
from .registries import COMPAT_KNOWN, DIGEST_XXH3_128, INCOMPAT_CODECS, INCOMPAT_DELTAS
from .rules import Violation
from .xxh3 import digest

DIGEST_BYTES = 16
RECORD_BYTES = 64
RECORDS_PER_GROUP = 64
TRAILER_BYTES = 256
PAGE_BYTES = 4096


def round_up(value, multiple):
    return -(-value // multiple) * multiple


def read_metadata(buffer, identifier, file, position, header):
    """R-IDX-02 and R-IDX-03 of an index or a manifest; the header is that of the file."""
    try:
        tables = schema.root(identifier, header.compat, header.incompat)
        root = read_root(buffer, identifier, tables, skips_unknown=header.compat & ~COMPAT_KNOWN != 0)
        return Metadata(root, file, position, is_manifest=identifier == schema.MANIFEST_IDENTIFIER)
    except Malformed as error:
        raise Violation("R-IDX-02", str(error), file, position + max(error.at, 0)) from error
    except UnknownField as error:
        raise Violation("R-IDX-03", str(error), file, position + error.at) from error


class Blob:
    """What the index pins of one blob."""

    def __init__(self, number, view, is_of_a_delta):
        self.number, self.is_of_a_delta = number, is_of_a_delta
        self.id, self.file_size, self.table_offset = view.id, view.file_size, view.table_offset
        self.record_count, self.shard_count = view.record_count, view.shard_count
        self.group_list_digest, self.trailer_digest = view.group_list_digest, view.trailer_digest
        self.name = f"{view.id.hex()}.blob"
        self.group_count = -(-view.record_count // RECORDS_PER_GROUP)
        self.group_list_end = view.table_offset + DIGEST_BYTES * self.group_count
        self.records_offset = round_up(self.group_list_end, 64)
        self.records_end = self.records_offset + RECORD_BYTES * view.record_count
        self.shards = []


class Index:
    def __init__(self, marker, header, metadata):
        self.marker, self.header, self.metadata = marker, header, metadata
        self.blobs = []

    @property
    def tensors(self):
        return self.metadata.tensors

    @property
    def objects(self):
        return self.metadata.objects

    @property
    def base(self):
        """The table of delta.md; None unless this is a delta."""
        return getattr(self.metadata.views, "base", None)

    @property
    def depth(self):
        return self.base.depth if self.base else 0


def open_checkpoint(directory):
    """Steps 1 to 4."""
    return read_index(directory, read_marker(directory))


def read_index(directory, marker):
    """Everything up to R-MRK-07: the index that the marker pins, or a violation."""
    name, data = _read_file(directory, marker)
    header = read_index_header(directory, name, len(data), marker)
    metadata = read_metadata(memoryview(data)[HEADER_BYTES:], schema.INDEX_IDENTIFIER, name, HEADER_BYTES, header)
    index = Index(marker, header, metadata)
    _check_meaning(index)
    if marker.blob_count != len(index.blobs):
        raise Violation("R-MRK-07", f"the marker counts {marker.blob_count} blobs, the index {len(index.blobs)}", name)
    if marker.total_bytes != sum(blob.file_size for blob in index.blobs):
        raise Violation("R-MRK-07", "the marker's total is not that of the blobs", name)
    return index


def _read_file(directory, marker):
    """R-IDX-01, R-MRK-05, R-MRK-08 and R-MRK-06."""
    name = marker.index_name
    if marker.index_size > min(limits.INDEX_SIZE_MAX_BYTES, limits.FLATBUFFER_SIZE_MAX_BYTES):
        raise Violation("R-IDX-01", f"an index of {marker.index_size} bytes", name)
    size = directory.size(name)
    if size is None or size < marker.index_size:
        raise Violation("R-MRK-05", f"{size or 0} of {marker.index_size} bytes", name)
    if size > marker.index_size:
        raise Violation("R-MRK-08", f"{size} bytes instead of {marker.index_size}", name, marker.index_size)
    data = read_exactly(directory, name, 0, size)
    if digest(data) != marker.index_digest:
        raise Violation("R-MRK-06", "digest of the index differs", name)
    return name, data


def _check_meaning(index):
    """R-IDX-04 to 24, in the order of their numbers; then R-FPR-01, R-ATT-01 to 05, R-DLT-01 and R-DLT-02."""
    metadata = index.metadata
    _check_blob_counts(metadata)
    rules_of_metadata.check_counts(metadata)
    rules_of_metadata.check_texts(metadata)
    _check_texts_of_origin(metadata)
    rules_of_metadata.check_order(metadata)
    _check_order_of_provenance(metadata)
    _check_blob_ids(metadata)
    if metadata.views.digest_algorithm != DIGEST_XXH3_128:
        raise metadata.violation("R-IDX-08", f"digest algorithm {metadata.views.digest_algorithm}")
    rules_of_metadata.check_dtypes(metadata)
    rules_of_metadata.check_chunk_sizes(metadata)
    rules_of_metadata.check_sizes(metadata)
    rules_of_metadata.check_geometries(metadata)
    rules_of_metadata.check_references(metadata, len(metadata.views.blobs))
    rules_of_metadata.check_shard_count(metadata, sum(blob.record_count for blob in metadata.views.blobs))
    index.blobs = [Blob(number, view, bool(index.base)) for number, view in enumerate(metadata.views.blobs)]
    for blob, shards in zip(index.blobs, blob_shards(metadata, len(index.blobs))):
        blob.shards = shards
        rules_of_metadata.check_records(metadata, shards, blob.record_count)
    for blob in index.blobs:
        _check_blob(metadata, blob)
    rules_of_metadata.check_empty_objects(metadata)
    raw_bytes = sum(item.raw_bytes for item in (*metadata.tensors, *metadata.objects))
    if metadata.views.raw_bytes != raw_bytes:
        raise metadata.violation("R-IDX-23", f"raw bytes {metadata.views.raw_bytes} instead of {raw_bytes}")
    fingerprint.check_values(metadata)
    attributes.check(metadata)
    _check_base(index)


def _check_base(index):
    """R-DLT-01 and R-DLT-02."""
    if index.header.incompat & INCOMPAT_DELTAS and (index.base is None or not index.header.incompat & INCOMPAT_CODECS):
        raise index.metadata.violation("R-DLT-01", f"incompat features {index.header.incompat:#x}, and "
                                       f"{'a' if index.base else 'no'} base")
    if index.base and (index.base.attempt == NO_ID or not 1 <= index.base.depth <= limits.DELTA_DEPTH_MAX):
        raise index.metadata.violation("R-DLT-02", f"the base {index.base.attempt.hex()}, a depth of {index.base.depth}")


def _check_blob_counts(metadata):
    """R-IDX-04, of blobs."""
    blobs = metadata.views.blobs
    if len(blobs) > limits.BLOB_COUNT_MAX:
        raise metadata.violation("R-IDX-04", f"{len(blobs)} blobs")
    if sum(blob.record_count for blob in blobs) > limits.RECORD_COUNT_MAX:
        raise metadata.violation("R-IDX-04", "too many records")
    for blob in blobs:
        if blob.file_size > limits.BLOB_SIZE_MAX_BYTES:
            raise metadata.violation("R-IDX-04", f"a blob of {blob.file_size} bytes")


def _check_texts_of_origin(metadata):
    """R-IDX-05, of mesh and provenance."""
    texts = [axis.name for axis in metadata.views.mesh] + [entry.key for entry in metadata.views.provenance]
    fault = next(filter(None, (text_fault(text, limits.NAME_SIZE_MAX_BYTES) for text in texts)), None)
    if fault:
        raise metadata.violation("R-IDX-05", f"{fault} in mesh or provenance")
    for entry in metadata.views.provenance:
        if len(entry.value) > limits.PROVENANCE_VALUE_SIZE_MAX_BYTES:
            raise metadata.violation("R-IDX-05", "a provenance value that is too long")
        try:
            bytes(entry.value).decode("utf-8")
        except UnicodeDecodeError as error:
            raise metadata.violation("R-IDX-05", "a provenance value that is not UTF-8") from error


def _check_order_of_provenance(metadata):
    keys = (bytes(entry.key) for entry in metadata.views.provenance)
    if any(a >= b for a, b in itertools.pairwise(keys)):
        raise metadata.violation("R-IDX-06", "provenance keys are not strictly ascending")


def _check_blob_ids(metadata):
    ids = [NO_ID] + [blob.id for blob in metadata.views.blobs]
    if any(a >= b for a, b in zip(ids, ids[1:])):
        raise metadata.violation("R-IDX-07", "blob ids are zero or not strictly ascending")


def _check_blob(metadata, blob):
    """R-IDX-21."""
    def require(holds, message):
        if not holds:
            raise metadata.violation("R-IDX-21", f"blob {blob.id.hex()}: {message}")

    require(blob.file_size % PAGE_BYTES == 0 and blob.file_size >= PAGE_BYTES, f"{blob.file_size} bytes")
    require(blob.table_offset % 64 == 0 and blob.table_offset >= HEADER_BYTES, f"table at {blob.table_offset}")
    require(blob.record_count or blob.table_offset == HEADER_BYTES, f"table at {blob.table_offset} without a record")
    require(blob.records_end + TRAILER_BYTES <= blob.file_size, "table and trailer do not fit")
    require(blob.shard_count == len(blob.shards), f"{blob.shard_count} shards, {len(blob.shards)} refer to it")
