# SPDX-License-Identifier: Apache-2.0
"""Tensors and objects of an index or a manifest, and the rules of both (spec/container.md, section 4).

Each check is one rule over all tensors and objects, so that a caller runs them in the order of their numbers.
"""

import collections
import functools
import math
import unicodedata

from . import geometry, limits
from .registries import DTYPES
from .rules import Violation


class BlobShard(collections.namedtuple("BlobShard", "first count raw_bytes owner region")):
    """One shard of a blob: its records are [first, first + count), its owner a tensor or an object."""

    def chunk_region(self, chunk):
        """What a chunk holds of the region of the shard."""
        elements = self.owner.chunk_size // self.owner.element_size
        begin = self.region.begin + chunk * elements
        return self.region._replace(begin=begin, end=min(begin + elements, self.region.end))


class Item:
    """What a tensor and an object have in common."""

    def __init__(self, view):
        self.view = view

    @functools.cached_property
    def name(self):
        return bytes(self.view.name)

    @property
    def text(self):
        return self.name.decode("utf-8", "backslashreplace")

    @property
    def chunk_size(self):
        return 1 << self.view.chunk_size_log2


def encoded_attributes(view):
    """The set of a table, or None: without compat bit 1 there is no such field, nor is there one in a manifest's root."""
    found = getattr(view, "attributes", None)
    return None if found is None else found.data


class Tensor(Item):
    def __init__(self, view):
        super().__init__(view)
        self.dtype, self.element_size = view.dtype, view.element_size
        self.fingerprint = getattr(view, "fingerprint", None)  # without compat bit 0 there is no such field
        self.attributes = encoded_attributes(view)

    @functools.cached_property
    def shape(self):
        return tuple(self.view.shape.decode())

    @property
    def is_empty(self):
        return 0 in self.shape

    @property
    def raw_bytes(self):
        return math.prod(self.shape) * self.element_size

    @property
    def shard_count(self):
        return len(self.view.shards)

    @property
    def refs(self):
        """Blob and first record of each shard."""
        return self.view.shards.decode()

    @property
    def grid(self):
        """The grid, or None. No vector that is longer than the shards allow is decoded: tensors may share it."""
        view = self.view.grid
        if view is None:
            return None
        if len(view.cut_counts) != len(self.shape) or len(view.cuts) >= self.shard_count:
            raise geometry.Impossible("R-IDX-14", "counts of cuts do not agree")
        if any(vector and len(vector) > self.shard_count for vector in (view.run_cut_counts, view.run_cuts)):
            raise geometry.Impossible("R-IDX-15", "counts of run cuts do not agree")
        return geometry.Grid(view.cuts.decode(), view.cut_counts.decode(), _decode(view.run_cut_counts),
                             _decode(view.run_cuts))

    @property
    def has_boxes_for_its_shards(self):
        return len(self.view.boxes.boxes) == self.shard_count * 2 * len(self.shape)

    @property
    def box_list(self):
        """The box list, or None."""
        view = self.view.boxes
        if view is None:
            return None
        if not self.has_boxes_for_its_shards:
            raise geometry.Impossible("R-IDX-16", "length of the boxes")
        runs = view.runs
        if runs is not None and len(runs) > 2 * self.shard_count:
            raise geometry.Impossible("R-IDX-17", "length of the runs")
        return geometry.BoxList(view.boxes.decode(), _decode(runs))

    @property
    def regions(self):
        """What each shard holds, once the geometry is known to be good."""
        if self.is_empty:
            return []
        if self.view.grid:
            return geometry.grid_regions(self.shape, self.grid)
        return geometry.box_list_regions(self.shape, self.box_list, self.shard_count)


class Object(Item):
    element_size = 1

    def __init__(self, view):
        super().__init__(view)
        self.raw_bytes = view.size
        self.ref = view.shard

    @property
    def media_type(self):
        return bytes(self.view.media_type)

    @property
    def region(self):
        return geometry.Region((0,), (self.raw_bytes,), 0, self.raw_bytes)


def _decode(elements):
    return None if elements is None else elements.decode()


class Metadata:
    """The tensors and objects of one file; position is where its FlatBuffer begins there."""

    def __init__(self, root, file, position, is_manifest):
        self.file, self.position, self.is_manifest = file, position, is_manifest
        self.views = root
        self.attributes = encoded_attributes(root)

    @functools.cached_property
    def tensors(self):
        return [Tensor(view) for view in self.views.tensors]

    @functools.cached_property
    def objects(self):
        return [Object(view) for view in self.views.objects]

    def violation(self, rule, message, item=None):
        offset = self.position + item.view.at if item else None
        return Violation(rule, message, self.file, offset, item.text if item else None)


def check_counts(metadata):
    """R-IDX-04, of tensors and objects; the corners of a tiling check are counted where it runs."""
    def bound(count, count_max, what):
        if count > count_max:
            raise metadata.violation("R-IDX-04", f"{count} {what}, at most {count_max}")

    views = metadata.views
    bound(len(views.tensors), limits.TENSOR_COUNT_MAX, "tensors")
    bound(len(views.objects), limits.OBJECT_COUNT_MAX, "objects")
    shards = sum(len(tensor.shards) for tensor in views.tensors) + sum(1 for item in views.objects if item.size)
    bound(shards, limits.SHARD_COUNT_MAX, "shards")
    for tensor in filter(lambda tensor: tensor.boxes, views.tensors):
        bound(len(tensor.shards), limits.BOX_LIST_SHARD_COUNT_MAX, "shards of a box list")


def text_fault(text, size_max):
    """R-IDX-05: why these bytes are not a text of at most this many bytes, or None."""
    if not 0 < len(text) <= size_max:
        return f"a text of {len(text)} bytes"
    try:
        decoded = bytes(text).decode("utf-8")
    except UnicodeDecodeError:
        return "a text that is not UTF-8"
    return "a control character" if any(unicodedata.category(c) == "Cc" for c in decoded) else None


def check_texts(metadata):
    """R-IDX-05."""
    for tensor in metadata.tensors:
        for text in (tensor.view.name, *(tensor.view.placement or ())):
            fault = text_fault(text, limits.NAME_SIZE_MAX_BYTES)
            if fault:
                raise metadata.violation("R-IDX-05", fault, tensor)
    for item in metadata.objects:
        fault = (text_fault(item.view.name, limits.NAME_SIZE_MAX_BYTES)
                 or text_fault(item.view.media_type, limits.MEDIA_TYPE_SIZE_MAX_BYTES))
        if fault:
            raise metadata.violation("R-IDX-05", fault, item)


def check_order(metadata):
    """R-IDX-06."""
    for items in (metadata.tensors, metadata.objects):
        for before, item in zip(items, items[1:]):
            if before.name >= item.name:
                raise metadata.violation("R-IDX-06", "names are not strictly ascending", item)


def check_dtypes(metadata):
    """R-IDX-09 and R-IDX-24."""
    for tensor in metadata.tensors:
        registered = DTYPES.get(tensor.dtype, (None, tensor.element_size))[1]
        is_known = tensor.element_size.bit_count() == 1 and tensor.element_size <= limits.ELEMENT_SIZE_MAX_BYTES
        text = f"dtype {tensor.dtype} of {tensor.element_size} bytes"
        if tensor.dtype == 0 or tensor.element_size != registered:
            raise metadata.violation("R-IDX-09", text, tensor)
        if not is_known:
            raise metadata.violation("R-IDX-24", text, tensor)


def check_chunk_sizes(metadata):
    """R-IDX-10."""
    for item in (*metadata.tensors, *metadata.objects):
        log2 = item.view.chunk_size_log2
        if not limits.CHUNK_SIZE_LOG2_MIN <= log2 <= limits.CHUNK_SIZE_LOG2_MAX:
            raise metadata.violation("R-IDX-10", f"chunks of 2^{log2} bytes", item)


def check_sizes(metadata):
    """R-IDX-11."""
    total = 0
    for tensor in metadata.tensors:
        if len(tensor.view.shape) > limits.NDIM_MAX:
            raise metadata.violation("R-IDX-11", f"{len(tensor.view.shape)} dimensions", tensor)
        total += tensor.raw_bytes
        if tensor.raw_bytes > limits.U64_MAX:
            raise metadata.violation("R-IDX-11", "more bytes than 64 bits can count", tensor)
    if total + sum(item.raw_bytes for item in metadata.objects) > limits.U64_MAX:
        raise metadata.violation("R-IDX-11", "more raw bytes than 64 bits can count")


def check_geometries(metadata):
    """R-IDX-12 to 18."""
    def check(rule_function):
        for tensor in metadata.tensors:
            try:
                rule_function(tensor)
            except geometry.Impossible as error:
                raise metadata.violation(error.rule, str(error), tensor) from error

    check(_check_presence)
    check(functools.partial(_check_kind, is_manifest=metadata.is_manifest))
    check(_check_grid)
    check(_check_run_cuts)
    check(_check_boxes)
    check(_check_runs)
    check(functools.partial(_check_tiling, is_manifest=metadata.is_manifest))


def _check_presence(tensor):
    geometries = (tensor.view.grid is not None) + (tensor.view.boxes is not None)
    if tensor.is_empty and (geometries or tensor.shard_count):
        raise geometry.Impossible("R-IDX-12", "an empty tensor with geometry or shards")
    if not tensor.is_empty and (geometries != 1 or not tensor.shard_count):
        raise geometry.Impossible("R-IDX-12", f"{geometries} geometries and {tensor.shard_count} shards")


def _check_kind(tensor, is_manifest):
    if is_manifest and tensor.view.grid:
        raise geometry.Impossible("R-IDX-13", "a grid in a manifest")
    if is_manifest or not tensor.view.boxes or not tensor.has_boxes_for_its_shards:
        return
    if geometry.is_a_grid(tensor.shape, tensor.box_list, tensor.shard_count):
        raise geometry.Impossible("R-IDX-13", "a box list of the shards of a grid")


def _check_grid(tensor):
    if tensor.view.grid:
        geometry.check_grid_cuts(tensor.shape, tensor.grid, tensor.shard_count)


def _check_run_cuts(tensor):
    if tensor.view.grid:
        geometry.check_run_cuts(tensor.shape, tensor.grid)


def _check_boxes(tensor):
    if tensor.view.boxes:
        geometry.check_boxes(tensor.shape, tensor.box_list, tensor.shard_count)


def _check_runs(tensor):
    if tensor.view.boxes:
        geometry.check_runs(tensor.shape, tensor.box_list, tensor.shard_count)


def _check_tiling(tensor, is_manifest):
    if tensor.view.boxes:
        geometry.check_equal_boxes(tensor.regions)
        if not is_manifest:
            geometry.check_tiling(tensor.shape, tensor.regions)


def check_references(metadata, blob_count):
    """R-IDX-19. In a manifest there is one blob, that which holds it."""
    for tensor in metadata.tensors:
        for blob, _ in tensor.refs:
            if blob >= blob_count:
                raise metadata.violation("R-IDX-19", f"blob {blob} of {blob_count}", tensor)
    for item in metadata.objects:
        if item.raw_bytes and item.ref[0] >= blob_count:
            raise metadata.violation("R-IDX-19", f"blob {item.ref[0]} of {blob_count}", item)


def blob_shards(metadata, blob_count):
    """The shards of each blob in the order of their first records."""
    found = [[] for _ in range(blob_count)]

    def add(ref, owner, region):
        raw_bytes = (region.end - region.begin) * owner.element_size
        found[ref[0]].append(BlobShard(ref[1], -(-raw_bytes // owner.chunk_size), raw_bytes, owner, region))

    for tensor in metadata.tensors:
        for ref, region in zip(tensor.refs, tensor.regions):
            add(ref, tensor, region)
    for item in metadata.objects:
        if item.raw_bytes:
            add(item.ref, item, item.region)
    for shards in found:
        shards.sort(key=lambda shard: shard.first)
    return found


def check_shard_count(metadata, record_count):
    """R-IDX-20, before anything is made for each shard: each has a record at least."""
    shards = sum(tensor.shard_count for tensor in metadata.tensors)
    if shards > record_count:
        raise metadata.violation("R-IDX-20", f"{shards} shards of tensors, {record_count} records")


def check_records(metadata, shards, record_count):
    """R-IDX-20 of one blob."""
    expected = 0
    for shard in shards:
        if shard.first != expected:
            raise metadata.violation("R-IDX-20", f"record {shard.first} where {expected} is next", shard.owner)
        expected += shard.count
    if expected != record_count:
        raise metadata.violation("R-IDX-20", f"shards of {expected} records in a table of {record_count}")


def check_empty_objects(metadata):
    """R-IDX-22."""
    for item in metadata.objects:
        if not item.raw_bytes and item.ref != (0, 0):
            raise metadata.violation("R-IDX-22", f"an object of size 0 with shard {item.ref}", item)
