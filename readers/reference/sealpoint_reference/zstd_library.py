# SPDX-License-Identifier: Apache-2.0
"""Whichever zstd this machine offers: a package of Python, its own module, or the system's libzstd."""

import ctypes
import ctypes.util
import functools
import importlib


class Undecodable(Exception):
    """The library does not decode these bytes to this many."""


def _package(name, error_name, decompress):
    module = importlib.import_module(name)
    error = getattr(module, error_name)

    def decode(frame, size):
        try:
            return decompress(module, frame, size)
        except error as fault:
            raise Undecodable(str(fault)) from fault
    return decode


def _zstandard():
    return _package("zstandard", "ZstdError", lambda module, frame, size: module.ZstdDecompressor().decompress(
        frame, max_output_size=size))


def _pyzstd():
    return _package("pyzstd", "ZstdError", lambda module, frame, size: module.decompress(frame))


def _standard():
    return _package("compression.zstd", "ZstdError", lambda module, frame, size: module.decompress(frame))


def _system():
    path = ctypes.util.find_library("zstd")
    if path is None:
        raise ImportError("no libzstd")
    library = ctypes.CDLL(path)
    library.ZSTD_decompress.restype = ctypes.c_size_t
    library.ZSTD_decompress.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]
    library.ZSTD_isError.restype = ctypes.c_uint
    library.ZSTD_isError.argtypes = [ctypes.c_size_t]

    def decode(frame, size):
        room = ctypes.create_string_buffer(size + 1)
        found = library.ZSTD_decompress(room, size, frame, len(frame))
        if library.ZSTD_isError(found):
            raise Undecodable("no frame of this length")
        return room.raw[:found]
    return decode


@functools.cache
def decoder():
    """A function of a frame and the length of its content, or None."""
    for find in (_zstandard, _pyzstd, _standard, _system):
        try:
            return find()
        except (ImportError, OSError, AttributeError):
            continue
    return None
