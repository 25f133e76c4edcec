# SPDX-License-Identifier: Apache-2.0
"""The index: what the blobs hold, merged by name (spec/container.md, section 4)."""

import functools

from sealpoint_reference import fingerprint

from .blob import blob_table
from .flatbuffer import List, Table, Text, bits128, flatbuffer, u16, u32, u64
from .geometry import box_list_table, check_tiling, grid_table
from .items import Object, check_text, in_order
from .layout import DIGEST_XXH3_128, HEADER_BYTES, KIND_INDEX, header, sealed

WRITER = "sealpoint_writer 1"
VALUE_BYTES_MAX = 2**16


def _merge(summaries):
    """(item, (region, blob number, first record) of its shards, what each blob says of its fingerprint) of each one."""
    found = {}
    for number, summary in enumerate(summaries):
        shards = [(shard.item, (shard.region, number, shard.first)) for shard in summary.shards]
        for item, shard in [*shards, *((item, None) for item in summary.empty)]:
            known, of_item, parts = found.setdefault((isinstance(item, Object), item.name), (item, [], {}))
            if known != item:
                raise ValueError(f"{item.name} is declared in two ways: {known} and {item}")
            of_item += [shard] if shard else []
            parts[number] = summary.fingerprints.get(item)
    return found.values()


def _item_table(item, shards, parts):
    refs = [(number, first) for _, number, first in shards]
    regions = [region for region, _, _ in shards]
    if item.raw_bytes:
        check_tiling(item, regions)
    if isinstance(item, Object):
        return item.table(refs[0] if refs else (0, 0))
    total = None if None in parts else functools.reduce(fingerprint.add, parts)  # R-FPR-02
    if not shards:
        return item.table(None, None, [], total)
    grid = grid_table(item.shape, regions)
    return item.table(grid, None if grid else box_list_table(regions), refs, total)


def _provenance(entries):
    """Keys ascend; those of the registry are the writer's own (R-CMT-24)."""
    if any(key.startswith("sealpoint.") for key in entries):
        raise ValueError("keys that begin with `sealpoint.` are the writer's")
    entries = {**entries, "sealpoint.writer": WRITER}
    for key, value in entries.items():
        check_text(key)
        if len(value.encode()) > VALUE_BYTES_MAX:
            raise ValueError(f"the value of {key} has more than {VALUE_BYTES_MAX} bytes")
    return List([Table([Text(key.encode()), Text(value.encode())])
                 for key, value in sorted(entries.items(), key=lambda entry: entry[0].encode())])


def _base_table(base):
    """What a delta pins of its base, given the index of that."""
    marker = base.marker
    return Table([bits128(marker.attempt), bits128(marker.index_digest), u64(marker.step), u32(base.depth + 1)])


def index_file(attempt, step, summaries, created_unix_ns, mesh, provenance, compat, incompat=0, base=None):
    """The bytes of the index, of blobs that are sorted by id (R-IDX-07). `base` is the index of a delta's base."""
    merged = {item: (sorted(shards), parts.values()) for item, shards, parts in _merge(summaries)}
    tensors, objects = (in_order(item for item in merged if isinstance(item, Object) == is_object)
                        for is_object in (False, True))
    axes = [Table([Text(check_text(name)), u32(size)]) for name, size in mesh]
    root = Table([
        *(List([_item_table(item, *merged[item]) for item in items]) for items in (tensors, objects)),
        List([blob_table(summary) for summary in summaries]), u16(DIGEST_XXH3_128), u64(created_unix_ns),
        u64(sum(item.raw_bytes for item in merged)), List(axes), _provenance(provenance),
        *([_base_table(base)] if base else [])])
    return sealed(header(KIND_INDEX, HEADER_BYTES, attempt, attempt, step, compat, incompat)) + flatbuffer(b"SPIX", root)
