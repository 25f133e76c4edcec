# SPDX-License-Identifier: Apache-2.0
"""The exporting side of the DLPack protocol for Python."""

from __future__ import annotations

from typing import Any, NamedTuple

from sealpoint import _sealpoint
from sealpoint._errors import ArgumentTypeError, InvalidArgumentError

HOST = (1, 0)  # kDLCPU and its only device


class Request(NamedTuple):
    """The request of a consumer. ``copy``: True to always copy, False to never copy, None to copy only if needed."""

    copy: bool | None
    is_versioned: bool


def request_of(
    stream: Any, max_version: tuple[int, int] | None, dl_device: tuple[int, int] | None, copy: bool | None
) -> Request:
    """Checks the arguments of ``__dlpack__``.

    Raises InvalidArgumentError and ArgumentTypeError. Raises BufferError if the requested device is not the CPU.
    """
    if stream is not None:
        raise InvalidArgumentError(f"stream is {stream!r:.80}, expected None: the memory is the host's")
    for name, pair in (("max_version", max_version), ("dl_device", dl_device)):
        is_pair = isinstance(pair, tuple) and len(pair) == 2 and all(isinstance(item, int) for item in pair)
        if pair is not None and not is_pair:
            raise ArgumentTypeError(f"{name} is {pair!r:.80}, expected two integers, or None")
    if copy not in (None, True, False):
        raise ArgumentTypeError(f"copy is {copy!r:.80}, expected True, False or None")
    if dl_device is not None and (int(dl_device[0]), int(dl_device[1])) != HOST:
        raise BufferError(
            f"dl_device is {tuple(map(int, dl_device))}, expected {HOST}: the memory is the host's; copy it from there"
        )
    return Request(copy, max_version is not None and max_version[0] >= 1)


def capsule(
    request: Request, memory: Any, dtype_name: str, *, shape: list[int] | None = None, owner: Any = None,
    is_read_only: bool = False, is_copied: bool = False,
) -> Any:
    """Creates a capsule for ``memory``, an object with a buffer or an address. The capsule keeps ``memory`` and ``owner`` alive.

    If ``shape`` is given, the elements are dense and have this shape. If ``shape`` is None, ``memory`` is an array, and the shape
    of this array is used. Raises BufferError if the memory is read-only and the consumer does not support read-only memory.
    """
    if is_read_only and not request.is_versioned:
        raise BufferError(
            "the memory is read-only, which DLPack before version 1.0 cannot express; expected max_version=(1, 0), or a copy"
        )
    return _sealpoint.dlpack(memory, owner, dtype_name, shape, is_read_only, is_copied, request.is_versioned)
