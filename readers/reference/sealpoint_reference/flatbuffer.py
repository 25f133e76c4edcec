# SPDX-License-Identifier: Apache-2.0
"""FlatBuffers: the verifier, and a walk over what it accepted (schema/index.fbs; R-IDX-02 and R-IDX-03).

A buffer begins with the offset of its root table and the file identifier. A table begins with the signed distance
back to its vtable: its own length, the length of the table, and for each field the distance from the table's begin,
0 where it is absent; all 16 bits. Offsets of 32 bits lead from their own place forward to a table, a vector or a
string; vectors and strings begin with their count. Positions are taken from the begin of the buffer.
"""

import struct

from . import limits

_U16 = struct.Struct("<H")
_U32 = struct.Struct("<I")
_I32 = struct.Struct("<i")


class Malformed(Exception):
    """What the verifier does not accept (R-IDX-02)."""

    def __init__(self, message, at):
        super().__init__(message)
        self.at = at


class UnknownField(Exception):
    """A table with a field that the schema does not have and that may not be skipped (R-IDX-03)."""

    def __init__(self, message, at):
        super().__init__(message)
        self.at = at


class Scalar:
    """A number in the table itself; 0 where it is absent."""

    def __init__(self, code):
        self.layout = struct.Struct("<" + code)

    def verify(self, verifier, at, _depth):
        verifier.require_range(at, self.layout.size, self.layout.size)

    def value(self, buffer, at):
        return self.layout.unpack_from(buffer, at)[0]


class Struct:
    """Bytes of a fixed layout in the table itself."""

    def __init__(self, layout, align):
        self.layout = struct.Struct("<" + layout)
        self.align = align

    def verify(self, verifier, at, _depth):
        verifier.require_range(at, self.layout.size, self.align)

    def value(self, buffer, at):
        found = self.layout.unpack_from(buffer, at)
        return found if len(found) > 1 else found[0]


class String:
    def verify(self, verifier, at, _depth):
        self.verify_at(verifier, verifier.follow(at))

    def verify_at(self, verifier, at):
        end = verifier.require_vector(at, 1)
        verifier.require_range(end, 1, 1)
        if verifier.buffer[end] != 0:
            raise Malformed("a string without its terminator", end)

    def value(self, buffer, at):
        return self.value_at(buffer, at + _U32.unpack_from(buffer, at)[0])

    def value_at(self, buffer, at):
        """A view: a string that a thousand tables share is not copied a thousand times."""
        return memoryview(buffer)[at + 4:at + 4 + _U32.unpack_from(buffer, at)[0]]


class Vector:
    """A vector of numbers, or of structs of several numbers; its value decodes only when it is asked."""

    def __init__(self, element):
        self.layout = struct.Struct("<" + element)
        self.aligned_to_8 = element == "Q"

    def verify(self, verifier, at, _depth):
        at = verifier.follow(at)
        end = verifier.require_vector(at, self.layout.size)
        if self.aligned_to_8 and (at + 4) % 8 and end != at + 4:
            raise Malformed("64-bit numbers that are not aligned", at)

    def value(self, buffer, at):
        at += _U32.unpack_from(buffer, at)[0]
        return Elements(buffer, at + 4, _U32.unpack_from(buffer, at)[0], self.layout)


class Elements:
    """A vector in place."""

    def __init__(self, buffer, at, count, layout):
        self._data = memoryview(buffer)[at:at + count * layout.size]
        self._layout = layout
        self._count = count
        self.at = at

    def __len__(self):
        return self._count

    @property
    def data(self):
        return bytes(self._data)

    def decode(self):
        """Numbers as a list of numbers, structs as a list of tuples."""
        found = list(self._layout.iter_unpack(self._data))
        return [value for value, in found] if found and len(found[0]) == 1 else found


class Schema(list):
    """The fields of a table by their ids. In one that is strict an unknown field is never skipped."""

    def __init__(self, fields, strict=False):
        super().__init__(fields)
        self.strict = strict


class Table:
    def __init__(self, schema):
        self.schema = schema

    def verify(self, verifier, at, depth):
        verifier.verify_table(verifier.follow(at), self.schema, depth + 1)

    def value(self, buffer, at):
        return TableView(buffer, at + _U32.unpack_from(buffer, at)[0], self.schema)


class VectorOfOffsets:
    """A vector of offsets, to strings or to tables."""

    def __init__(self, element):
        self.element = element

    def verify(self, verifier, at, depth):
        at = verifier.follow(at)
        verifier.require_vector(at, 4)
        for place in range(at + 4, at + 4 + 4 * _U32.unpack_from(verifier.buffer, at)[0], 4):
            target = place + _U32.unpack_from(verifier.buffer, place)[0]
            if isinstance(self.element, String):
                self.element.verify_at(verifier, target)
            else:
                verifier.verify_table(target, self.element.schema, depth + 1)

    def value(self, buffer, at):
        at += _U32.unpack_from(buffer, at)[0]
        places = range(at + 4, at + 4 + 4 * _U32.unpack_from(buffer, at)[0], 4)
        return [self.element.value(buffer, place) for place in places]


class Field:
    """A field without a kind is one that the header of the file does not announce: an unknown one."""

    def __init__(self, name, kind, required=False, count_max=None):
        self.name, self.kind, self.required, self.count_max = name, kind, required, count_max


class Verifier:
    def __init__(self, buffer, skips_unknown=False):
        self.buffer = buffer
        self.skips_unknown = skips_unknown
        self.tables_left = len(buffer) // limits.FLATBUFFER_BYTES_PER_TABLE
        self.unknown = None

    def require_range(self, at, length, align):
        if at < 0 or at + length > len(self.buffer):
            raise Malformed(f"{length} bytes outside of the buffer", at)
        if at % align:
            raise Malformed(f"not aligned to {align} bytes", at)

    def follow(self, at):
        """The place that the offset at this place leads to."""
        self.require_range(at, 4, 4)
        offset = _U32.unpack_from(self.buffer, at)[0]
        if not 0 < offset < 2**31:
            raise Malformed(f"offset {offset}", at)
        self.require_range(at + offset, 1, 1)
        return at + offset

    def require_vector(self, at, element_size):
        """Returns the end."""
        self.require_range(at, 4, 4)
        count = _U32.unpack_from(self.buffer, at)[0]
        self.require_range(at, 4 + count * element_size, 4)
        return at + 4 + count * element_size

    def verify_table(self, at, schema, depth):
        self.require_range(at, 4, 4)
        vtable = at - _I32.unpack_from(self.buffer, at)[0]
        self.tables_left -= 1
        if depth > limits.FLATBUFFER_DEPTH_MAX or self.tables_left < 0:
            raise Malformed("too deep, or too many tables", at)
        self.require_range(vtable, 2, 2)
        size = _U16.unpack_from(self.buffer, vtable)[0]
        self.require_range(vtable, size, 2)
        if size % 2:
            raise Malformed(f"a vtable of {size} bytes", vtable)
        places = struct.unpack_from(f"<{size // 2 - 2}H", self.buffer, vtable + 4) if size > 4 else ()
        for number, field in enumerate(schema):
            place = places[number] if number < len(places) else 0
            if place and field.kind:
                self.verify_field(field, at + place, depth)
            elif field.required:
                raise Malformed(f"no {field.name}", at)
        unknown = any(places[len(schema):]) or any(place for place, field in zip(places, schema) if not field.kind)
        if unknown and self.unknown is None and (schema.strict or not self.skips_unknown):
            self.unknown = at

    def verify_field(self, field, at, depth):
        field.kind.verify(self, at, depth)
        if field.count_max is not None:
            target = at + _U32.unpack_from(self.buffer, at)[0]
            if _U32.unpack_from(self.buffer, target)[0] > field.count_max:
                raise Malformed(f"more than {field.count_max} in {field.name}", target)


class TableView:
    """A verified table; its fields are attributes, None where they are absent and no number."""

    def __init__(self, buffer, at, schema):
        vtable = at - _I32.unpack_from(buffer, at)[0]
        size = _U16.unpack_from(buffer, vtable)[0]
        self.at = at
        for number, field in enumerate(schema):
            if not field.kind:
                continue
            entry = 4 + 2 * number
            place = _U16.unpack_from(buffer, vtable + entry)[0] if entry < size else 0
            absent = 0 if isinstance(field.kind, Scalar) else None
            setattr(self, field.name, field.kind.value(buffer, at + place) if place else absent)


def read_root(buffer, identifier, schema, skips_unknown=False):
    """Verifies a whole buffer and returns its root table. Skips unknown fields if a compat bit announced them."""
    verifier = Verifier(buffer, skips_unknown)
    verifier.require_range(0, 8, 4)
    if buffer[4:8] != identifier:
        raise Malformed("another file identifier", 4)
    root = verifier.follow(0)
    verifier.verify_table(root, schema, 1)
    if verifier.unknown is not None:
        raise UnknownField("a field that this version does not define", verifier.unknown)
    return TableView(buffer, root, schema)
