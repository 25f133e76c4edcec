# SPDX-License-Identifier: Apache-2.0
"""What tests of frameworks measure."""

import contextlib
import importlib.metadata
import os
import time

import sealpoint
import torch
from sealpoint.torch import TorchCommunicator
from torch.distributed.tensor import DTensor


class Traffic:
    """Bytes of messages that communicators of this process got from others or sent to them."""

    def __init__(self):
        self.byte_count = 0


@contextlib.contextmanager
def traffic():
    """Counts, also on threads of the library."""
    found, before = Traffic(), {}

    def sizes(value):
        if isinstance(value, (list, tuple)):
            return sum(map(sizes, value))
        return 0 if value is None else 8 if isinstance(value, int) else len(value)

    def counting(name):
        def call(self, message, *more):
            result = before[name](self, message, *more)
            is_own = name == "broadcast" and message is not None
            found.byte_count += sizes(message) + (0 if is_own else sizes(result))
            return result

        return call

    for name in ("broadcast", "all_gather", "gather", "all_to_all", "all_reduce_max"):
        before[name] = getattr(TorchCommunicator, name)
        setattr(TorchCommunicator, name, counting(name))
    try:
        yield found
    finally:
        for name, method in before.items():
            setattr(TorchCommunicator, name, method)


def seconds_of_copies(tensors):
    """The least time that copying what this rank has takes, into memory that is there."""
    local = [tensor.to_local() if isinstance(tensor, DTensor) else tensor.detach() for tensor in tensors]
    copies, seconds = [torch.empty_like(item) for item in local], []
    for _ in range(3):
        began = time.monotonic()
        for copy, element in zip(copies, local, strict=True):
            copy.copy_(element)
        seconds.append(time.monotonic() - began)
    return min(seconds)


def sizes_of(path):
    """Bytes of all elements of a checkpoint, each once, and those of its files."""
    with sealpoint.open(path) as checkpoint:
        unique = sum(tensor.nbytes for tensor in checkpoint.values())
    return unique, sum(entry.stat().st_size for entry in os.scandir(path))


def version_of(package):
    return importlib.metadata.version(package)


def line(what, sizes, traffic, **seconds):
    """What a test says of its saves."""
    times = ", ".join(f"{name.replace('_', ' ')} {value:.3f} s" for name, value in seconds.items())
    return (f"{what}, {sizes[0] / 1e6:.1f} MB: {times}; bytes written / unique {sizes[1] / sizes[0]:.4f}; "
            f"{traffic.byte_count} bytes of messages of rank 0")
