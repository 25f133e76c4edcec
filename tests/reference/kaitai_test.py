#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""spec/sealpoint.ksy describes the files of the corpus: what it finds in them is what the second reader finds.

    kaitai_test.py CORPUS

The compiler of Kaitai Struct is in no package of Debian, so the few words that the description needs are carried out here.
"""

import pathlib
import re
import sys
import types
import unittest

from sealpoint_reference.directory import PathDirectory
from sealpoint_reference.verify import verify
from sealpoint_reference.xxh3 import digest

try:
    import yaml
except ImportError:
    print("this Python has no yaml (Debian: python3-yaml)")
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parents[2]
CORPUS = pathlib.Path(sys.argv.pop())
KSY = yaml.safe_load((ROOT / "spec/sealpoint.ksy").read_text())


class Wrong(Exception):
    """A file that the description does not fit."""


class Reader:
    """Fields of one file."""

    def __init__(self, data):
        self.data, self.root = data, types.SimpleNamespace()
        self.fill(KSY, self.root, 0)

    def value(self, text, around):
        if isinstance(text, int):
            return text
        enums = {name: types.SimpleNamespace(**{word: word for word in words.values()}) for name, words in KSY["enums"].items()}
        names = {**enums, **vars(self.root), **vars(around), "_io": types.SimpleNamespace(size=len(self.data))}
        return eval(re.sub(r"::", ".", text).replace("/", "//"), {"__builtins__": {}}, names)  # of our own file

    def fill(self, description, into, at):
        for field in description.get("seq", ()):
            if self.is_there(field, into):
                at = self.field(field, into, at)
        for name, field in description.get("instances", {}).items():
            if self.is_there(field, into):
                self.field({"id": name, **field}, into, self.value(field["pos"], into))
        return at

    def is_there(self, field, around):
        return "if" not in field or self.value(field["if"], around)

    def field(self, field, into, at):
        count = self.value(field["repeat-expr"], into) if "repeat" in field else 1
        found = []
        for _ in range(count):
            one, at = self.one(field, into, at)
            found.append(one)
        setattr(into, field["id"], found if "repeat" in field else found[0])
        return at

    def one(self, field, into, at):
        if field.get("type") in KSY["types"]:
            one = types.SimpleNamespace()
            return one, self.fill(KSY["types"][field["type"]], one, at)
        contents = bytes(field.get("contents", ()))
        size = len(contents) or (self.value(field["size"], into) if "size" in field else int(field["type"][1:]))
        data = self.data[at:at + size]
        if at < 0 or len(data) != size or contents not in (b"", data):
            raise Wrong(field["id"])
        one = int.from_bytes(data, "little") if "type" in field else data
        return KSY["enums"][field["enum"]].get(one, one) if "enum" in field else one, at + size


class KaitaiTest(unittest.TestCase):
    def check_blob(self, data, blob):
        trailer = data.trailer
        self.assertEqual((trailer.file_size, trailer.table_offset, trailer.record_count, trailer.shard_count),
                         (blob.file_size, blob.table_offset, blob.record_count, blob.shard_count))
        self.assertEqual(digest(b"".join(data.group_list)), trailer.group_list_digest)
        self.assertEqual(digest(data.manifest), trailer.manifest_digest)
        for record in data.records:
            self.assertEqual(digest(record.payload), record.raw_digest if record.codec == "none" else record.stored_digest)

    def test_it_fits_each_good_entry(self):
        seen = 0
        for folder in sorted(CORPUS.glob("good-*")):
            directory = PathDirectory(str(folder))
            index = verify(directory).index
            marker = Reader((folder / "COMMIT").read_bytes()).root
            attempt = marker.header.attempt.hex()
            read = Reader((folder / f"{attempt}.index").read_bytes()).root
            self.assertEqual(digest((folder / f"{attempt}.index").read_bytes()), marker.marker.index_digest)
            self.assertEqual((read.header.kind, read.flat_buffer[4:8], marker.marker.kind), ("index", b"SPIX", "commit"))
            self.assertEqual(marker.marker.blob_count, len(index.blobs))
            for blob in index.blobs:
                self.check_blob(Reader((folder / f"{blob.id.hex()}.blob").read_bytes()).root, blob)
                seen += 1
        self.assertGreater(seen, 40)

    def test_another_magic_does_not_fit(self):
        with self.assertRaises(Wrong):
            Reader((CORPUS / "bad-R-HDR-02-marker_magic/COMMIT").read_bytes())


if __name__ == "__main__":
    unittest.main()
