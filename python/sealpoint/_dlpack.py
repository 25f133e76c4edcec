# SPDX-License-Identifier: Apache-2.0
"""The side of DLPack that gives arrays out, as its specification for Python has it."""

from __future__ import annotations

from typing import Any, NamedTuple

from sealpoint import _sealpoint
from sealpoint._errors import ArgumentTypeError, InvalidArgumentError

HOST = (1, 0)  # kDLCPU, its only one


class Request(NamedTuple):
    """What a consumer asked for. ``copy``: True: a new one; False: none; None: as it comes."""

    copy: bool | None
    is_versioned: bool


def request_of(
    stream: Any, max_version: tuple[int, int] | None, dl_device: tuple[int, int] | None, copy: bool | None
) -> Request:
    """Checks the arguments of ``__dlpack__``.

    Errors: InvalidArgumentError, ArgumentTypeError; BufferError (another device).
    """
    if stream is not None:
        raise InvalidArgumentError(f"stream is {stream!r:.80}, expected None: the memory is the host's")
    for name, pair in (("max_version", max_version), ("dl_device", dl_device)):
        is_pair = isinstance(pair, tuple) and len(pair) == 2 and all(isinstance(one, int) for one in pair)
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
    """Over ``memory``, which has a buffer or an address, and is kept, and ``owner`` with it. ``shape``: of dense elements;
    None: that of the array ``memory``.

    Errors: BufferError (memory that may not be written, for a consumer that cannot be told).
    """
    if is_read_only and not request.is_versioned:
        raise BufferError(
            "the memory may not be written, which DLPack says since version 1.0, and the consumer asks for an older one; "
            "expected max_version=(1, 0), or a copy"
        )
    return _sealpoint.dlpack(memory, owner, dtype_name, shape, is_read_only, is_copied, request.is_versioned)
