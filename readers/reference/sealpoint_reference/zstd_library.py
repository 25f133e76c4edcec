# SPDX-License-Identifier: Apache-2.0
"""Whichever zstd this machine offers: a package of Python, its own module, or the system's libzstd.

Frames are made in one call of a whole chunk (sealpoint_writer); the reader only decodes.
"""

import ctypes
import ctypes.util
import functools
import importlib

_LEVEL = 3


class Undecodable(Exception):
    """The library does not decode these bytes to this many."""


def _package(name, decompress, compress):
    module = importlib.import_module(name)

    def decode(frame, size):
        try:
            return decompress(module, frame, size)
        except module.ZstdError as fault:
            raise Undecodable(str(fault)) from fault
    return decode, lambda data: compress(module, data)


def _zstandard():
    return _package("zstandard", lambda module, frame, size: module.ZstdDecompressor().decompress(
        frame, max_output_size=size), lambda module, data: module.ZstdCompressor().compress(data))


def _pyzstd():
    return _package("pyzstd", lambda module, frame, size: module.decompress(frame),
                    lambda module, data: module.compress(data))


def _standard():
    return _package("compression.zstd", lambda module, frame, size: module.decompress(frame),
                    lambda module, data: module.compress(data))


def _system():
    path = ctypes.util.find_library("zstd")
    if path is None:
        raise ImportError("no libzstd")
    library = ctypes.CDLL(path)
    library.ZSTD_decompress.restype = ctypes.c_size_t
    library.ZSTD_decompress.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]
    library.ZSTD_compress.restype = ctypes.c_size_t
    library.ZSTD_compress.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int]
    library.ZSTD_compressBound.restype = ctypes.c_size_t
    library.ZSTD_compressBound.argtypes = [ctypes.c_size_t]
    library.ZSTD_isError.restype = ctypes.c_uint
    library.ZSTD_isError.argtypes = [ctypes.c_size_t]

    def decode(frame, size):
        room = ctypes.create_string_buffer(size + 1)
        found = library.ZSTD_decompress(room, size, frame, len(frame))
        if library.ZSTD_isError(found):
            raise Undecodable("no frame of this length")
        return room.raw[:found]

    def encode(data):
        room = ctypes.create_string_buffer(library.ZSTD_compressBound(len(data)))
        found = library.ZSTD_compress(room, len(room), bytes(data), len(data), _LEVEL)
        if library.ZSTD_isError(found):
            raise MemoryError("zstd could not encode a chunk")
        return room.raw[:found]
    return decode, encode


@functools.cache
def _functions():
    for find in (_zstandard, _pyzstd, _standard, _system):
        try:
            return find()
        except (ImportError, OSError, AttributeError):
            continue
    return None, None


def decoder():
    """A function of a frame and the length of its content, or None."""
    return _functions()[0]


def encoder():
    """A function of bytes, which returns one frame that declares their number, or None."""
    return _functions()[1]
