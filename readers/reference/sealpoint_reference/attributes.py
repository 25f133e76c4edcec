# SPDX-License-Identifier: Apache-2.0
"""Attributes of tensors and of checkpoints (spec/attributes.md)."""

import struct
import unicodedata

SET_BYTES_MAX, TOTAL_BYTES_MAX, NAME_BYTES_MAX = 1 << 20, 1 << 26, 255
STRING, INTEGER, FLOAT, TRUTH, LIST = 1, 2, 3, 4, 16
_NUMBERS = {INTEGER: struct.Struct("<q"), FLOAT: struct.Struct("<d"), TRUTH: struct.Struct("<B")}


class Wrong(Exception):
    """A set that breaks a rule."""

    def __init__(self, rule, message):
        super().__init__(message)
        self.rule = rule


class _Bytes:
    """What is left of a set."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, count):
        if count > len(self.data) - self.at:
            raise Wrong("R-ATT-02", f"{count} bytes at {self.at} leave a set of {len(self.data)}")
        self.at += count
        return bytes(self.data[self.at - count:self.at])

    def number(self, layout):
        return struct.unpack(layout, self.take(struct.calcsize(layout)))[0]


def _text(data, rule):
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise Wrong(rule, f"{data!r} is not UTF-8") from error


def _value(left, kind):
    if kind == STRING:
        return _text(left.take(left.number("<I")), "R-ATT-05")
    value = _NUMBERS[kind].unpack(left.take(_NUMBERS[kind].size))[0]
    if kind != TRUTH:
        return value
    if value > 1:
        raise Wrong("R-ATT-05", f"a truth value of {value}")
    return value == 1


def decode(data):
    """R-ATT-01 to R-ATT-05 of one set; returns a dict. Lists are lists."""
    if not 0 < len(data) <= SET_BYTES_MAX:
        raise Wrong("R-ATT-01", f"a set of {len(data)} bytes")
    left, found, before = _Bytes(data), {}, b""
    while left.at < len(data):
        name = left.take(left.number("<H"))
        kind, count = left.number("<B"), left.number("<I")
        text = _text(name, "R-ATT-03")
        if not 0 < len(name) <= NAME_BYTES_MAX or any(unicodedata.category(c) == "Cc" for c in text) or name <= before:
            raise Wrong("R-ATT-03", f"the name {text!r} behind {before!r}")
        element = kind - LIST if kind > LIST else kind
        if not STRING <= element <= TRUTH:
            raise Wrong("R-ATT-04", f"type {kind} of {text!r}")
        if kind < LIST and count != 1:
            raise Wrong("R-ATT-05", f"{count} values of {text!r}")
        values = [_value(left, element) for _ in range(count)]
        found[text], before = values if kind > LIST else values[0], name
    return found


def check(metadata):
    """R-ATT-01 to R-ATT-05 of an index or a manifest."""
    total = 0
    for tensor in (*metadata.tensors, None):
        encoded = tensor.attributes if tensor else metadata.attributes
        if encoded is None:
            continue
        total += len(encoded)
        if total > TOTAL_BYTES_MAX:
            raise metadata.violation("R-ATT-01", f"more than {TOTAL_BYTES_MAX} bytes of attributes", tensor)
        try:
            decode(encoded)
        except Wrong as error:
            raise metadata.violation(error.rule, str(error), tensor) from error
