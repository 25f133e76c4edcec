# SPDX-License-Identifier: Apache-2.0
"""Full verification (spec/reader-rules.md, sections 3 to 5)."""

from . import blob as rules_of_blob
from . import directory as files
from . import records
from .directory import read_exactly
from .fingerprint import Recomputed, wrong_sums
from .header import HEADER_BYTES
from .index import TRAILER_BYTES, open_checkpoint, round_up
from .load import open_base
from .metadata import Tensor
from .registries import COMPAT_KNOWN
from .rules import Violation, verdict

LEVELS = ("files", "structure", "full")
_PIECE_BYTES = 1 << 20


class Report:
    def __init__(self, level, recomputes_fingerprints=False):
        self.level = level
        self.manifests = {}
        self.recomputed = Recomputed() if recomputes_fingerprints else None
        self.violations = []
        self.notes = []
        self.index = self.base = None
        self.chunk_count = 0

    @property
    def verdict(self):
        return verdict(self.violations)

    def attempt(self, function, *arguments):
        """The function's result; None where it meets a violation, which is listed."""
        try:
            return function(*arguments)
        except Violation as violation:
            self.violations.append(violation)
            return None

    def as_dict(self):
        return {"verdict": self.verdict, "level": self.level,
                "violations": [violation.as_dict() for violation in self.violations], "notes": self.notes}


def verify_path(path, level="full", fingerprints=False, bases=None):
    report = Report(level)
    directory = report.attempt(files.PathDirectory, path)
    return report if directory is None else verify(directory, level, fingerprints, bases)


def verify(directory, level="full", fingerprints=False, bases=None):
    """With `fingerprints` those of the index are compared with the elements, which the level full alone reads. `bases` as of
    load.open_base."""
    report = Report(level, fingerprints)
    report.index = report.attempt(open_checkpoint, directory)
    if report.index is None:
        return report
    index = report.index
    report.notes = list(_notes(directory, index))
    report.base = report.attempt(open_base, directory, index, bases)
    declared = set()
    for blob in index.blobs:
        size = report.attempt(rules_of_blob.check_presence, directory, blob)
        if size is not None:
            report.attempt(rules_of_blob.check_length, blob, size)
        found = _BlobCheck(report, directory, blob).run() if size is not None and level != "files" else None
        if found is None:
            declared = None
        elif declared is not None:
            declared |= found
    if declared is not None:
        report.violations.extend(rules_of_blob.undeclared(index, declared))
    report.violations.extend(wrong_sums(index, report.manifests))
    if report.recomputed:
        report.violations.extend(report.recomputed.differences(index))
    return report


def _notes(directory, index):
    pinned = {files.MARKER_NAME, index.marker.index_name, *(blob.name for blob in index.blobs)}
    yield from files.notes(directory, pinned)
    unknown = index.marker.compat & ~COMPAT_KNOWN
    if unknown:
        yield f"compat features {unknown:#x} are ignored"


class _BlobCheck:
    """Steps 6 to 9 of one blob that is there, up to its pinned length."""

    def __init__(self, report, directory, blob):
        self.report, self.directory, self.blob = report, directory, blob
        self.trailer = None
        self.last_end = None
        self.bad_groups = set()
        self.good = []
        self.gaps = []

    def run(self):
        """Names that the manifest declares without a shard, or None where the manifest cannot be believed."""
        report, directory, blob = self.report, self.directory, self.blob
        self.trailer = report.attempt(rules_of_blob.read_trailer, directory, blob)
        header = report.attempt(rules_of_blob.read_header, directory, blob, report.index,
                                self.trailer) if self.trailer else None
        declared = report.attempt(self._check_manifest, header) if header else None
        table = report.attempt(records.Table, directory, blob)
        if table:
            self._check_records(table)
            self.gaps.append((blob.group_list_end, blob.records_offset))
        report.attempt(self._check_end, table)
        if report.level == "full":
            for shard, chunk in self.good:
                raw = report.attempt(records.read_chunk, directory, table, shard, chunk, report.base)
                if report.recomputed and raw and isinstance(shard.owner, Tensor):
                    report.recomputed.add(shard, chunk, raw)
        report.chunk_count += len(self.good)
        self._check_padding()
        return declared

    def _check_manifest(self, header):
        metadata, shards = rules_of_blob.read_manifest(self.directory, self.blob, self.trailer, header)
        self.report.manifests[self.blob.number] = metadata
        self.report.attempt(rules_of_blob.check_raw_bytes, self.blob, self.trailer)
        self.report.attempt(rules_of_blob.check_agreement, self.blob, self.report.index, metadata, shards)
        return rules_of_blob.empty_names(metadata)

    def _check_records(self, table):
        """If a record is bad, the end of its chunk is not known, and the place of the next is checked without it."""
        end = HEADER_BYTES
        for ordinal, shard in enumerate(self.blob.shards):
            for chunk in range(shard.count):
                begin, new_end = self._check_one(table, ordinal, shard, chunk, end)
                if chunk == 0 and None not in (begin, end):
                    self.gaps.append((end, begin))
                end = new_end
        self.last_end = end

    def _check_one(self, table, ordinal, shard, chunk, end):
        """Begin and end of the chunk, as far as they are known."""
        number = shard.first + chunk
        before = len(self.report.violations)
        if number // 64 in self.bad_groups:
            return None, None
        try:
            record = records.check_record(table, number, shard)
            records.check_place(table, shard, chunk, ordinal, end)
        except Violation as violation:
            self.report.violations.append(violation)
            if violation.rule == "R-BLB-05":
                self.bad_groups.add(number // 64)
        if len(self.report.violations) != before:
            return None, None
        self.good.append((shard, chunk))
        return record.offset, record.offset + record.stored

    def _check_end(self, table):
        """R-REC-04 and R-BLB-04 of the last chunk, as far as its record and the trailer are good."""
        end, blob = self.last_end, self.blob
        if end is not None and blob.shards and round_up(end, 64) != blob.table_offset:
            raise table.violation("R-REC-04", f"the last chunk ends at {end}, the table begins at {blob.table_offset}",
                                  blob.record_count - 1, blob.shards[-1])
        if end is not None and self.trailer:
            rules_of_blob.check_end(blob, self.trailer, end)
        if end is None and self.trailer:
            end = self.trailer.chunks_end
        if end is not None and round_up(end, 64) == blob.table_offset:
            self.gaps.append((end, blob.table_offset))

    def _check_padding(self):
        """R-BLB-08; below the full level that after the chunk area only."""
        if self.trailer:
            self.gaps.append((self.trailer.manifest_end, self.blob.file_size - TRAILER_BYTES))
        for begin, end in self.gaps:
            if self.report.level == "full" or end >= self.blob.table_offset:
                self.report.attempt(self._check_zero, begin, end)

    def _check_zero(self, begin, end):
        for at in range(begin, end, _PIECE_BYTES):
            data = read_exactly(self.directory, self.blob.name, at, min(_PIECE_BYTES, end - at))
            if any(data):
                first = len(data) - len(data.lstrip(b"\0"))
                raise Violation("R-BLB-08", "padding is not zero", self.blob.name, at + first)
