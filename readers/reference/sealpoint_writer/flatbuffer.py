# SPDX-License-Identifier: Apache-2.0
"""FlatBuffers, encoded by hand (spec/container.md, section 4, "FlatBuffers in half a page").

A buffer is described by nested values: numbers, structs, Text, Vector, List (of tables or texts) and Table (a list of
fields by id, None where one is absent). They are laid out front to back, because offsets lead forward: a table behind its
vtable, and what it refers to behind it. Numbers of 64 bits lie at multiples of 8, in tables and in vectors.
"""

import dataclasses
import struct


class Scalar:
    """A number or a struct, in place in its table."""

    def __init__(self, layout, *values, align=None):
        self.data = struct.pack("<" + layout, *values)
        self.align = align or len(self.data)


def u8(value):
    return Scalar("B", value)


def u16(value):
    return Scalar("H", value)


def u32(value):
    return Scalar("I", value)


def u64(value):
    return Scalar("Q", value)


def bits128(value):
    return Scalar("16s", value, align=1)


def shard_ref(blob, first):
    return Scalar("II", blob, first, align=4)


@dataclasses.dataclass
class Text:
    data: bytes


@dataclasses.dataclass
class Vector:
    """Numbers of this layout, or tuples of several."""
    layout: str
    values: list


@dataclasses.dataclass
class List:
    items: list


@dataclasses.dataclass
class Table:
    fields: list


class _Buffer:
    def __init__(self, identifier):
        self.data = bytearray(8)
        self.data[4:8] = identifier

    def pad(self, multiple, behind=0):
        self.data += bytes(-(len(self.data) + behind) % multiple)

    def put(self, value):
        """Appends what an offset leads to, and returns its place."""
        return {Text: self._text, Vector: self._vector, List: self._list, Table: self._table}[type(value)](value)

    def point(self, place, value):
        target = self.put(value)
        struct.pack_into("<I", self.data, place, target - place)

    def _text(self, text):
        self.pad(4)
        at = len(self.data)
        self.data += struct.pack("<I", len(text.data)) + text.data + b"\0"
        return at

    def _vector(self, vector):
        packed = b"".join(struct.pack("<" + vector.layout, *(v if isinstance(v, tuple) else (v,)))
                          for v in vector.values)
        self.pad(8 if "Q" in vector.layout else 4, behind=4)
        at = len(self.data)
        self.data += struct.pack("<I", len(vector.values)) + packed
        return at

    def _list(self, items):
        self.pad(4)
        at = len(self.data)
        self.data += struct.pack("<I", len(items.items)) + bytes(4 * len(items.items))
        for number, item in enumerate(items.items):
            self.point(at + 4 + 4 * number, item)
        return at

    def _table(self, table):
        self.pad(4)
        vtable = len(self.data)
        self.data += bytes(4 + 2 * len(table.fields))
        self.pad(8, behind=4)
        at = len(self.data)
        self.data += struct.pack("<i", at - vtable)
        places = {}
        for number, field in enumerate(table.fields):
            if field is None:
                continue
            self.pad(field.align if isinstance(field, Scalar) else 4)
            places[number] = len(self.data)
            self.data += field.data if isinstance(field, Scalar) else bytes(4)
        struct.pack_into("<2H", self.data, vtable, 4 + 2 * len(table.fields), len(self.data) - at)
        for number, place in places.items():
            struct.pack_into("<H", self.data, vtable + 4 + 2 * number, place - at)
        for number, place in places.items():
            if not isinstance(table.fields[number], Scalar):
                self.point(place, table.fields[number])
        return at


def flatbuffer(identifier, root):
    buffer = _Buffer(identifier)
    buffer.point(0, root)
    buffer.pad(4)
    return bytes(buffer.data)
