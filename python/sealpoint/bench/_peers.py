# SPDX-License-Identifier: Apache-2.0
"""Who saves and loads, what each is asked to do, and why one is left out."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, NamedTuple, Protocol

from sealpoint._errors import NotFoundError
from sealpoint._series import Series
from sealpoint.bench._state import State

OURS = "sealpoint"


class Info(NamedTuple):
    """``package``: what it is part of; ``options``: what it is asked to do, by the side that does it."""

    title: str
    package: str
    options: dict[str, str]


INFOS = {
    OURS: Info("Sealpoint", "sealpoint", {
        "torch": "sealpoint.torch.save, save_async and load with their defaults: it is durable when a save returns, and a load "
                 "compares the digest of every chunk",
        "numpy": "sealpoint.save and Checkpoint.read with their defaults: it is durable when a save returns, and a load "
                 "compares the digest of every chunk",
    }),
    "dcp": Info("torch.distributed.checkpoint", "torch", {
        "torch": "save, async_save (on a group of gloo of its own) and load with their defaults: a file per rank, synced; it "
                 "has no checksum that a load compares",
    }),
    "torch": Info("torch.save", "torch", {
        "torch": "a file per rank, then fsync of file and folder; torch.load with weights_only and mmap, copied into the "
                 "state; a load does not compare the CRCs of its archive",
    }),
    "safetensors": Info("safetensors", "safetensors", {
        "torch": "save_file to a file per rank, then fsync of file and folder; safe_open, and get_slice for a part, copied "
                 "into the state; it has no checksum",
        "numpy": "save_file, then fsync of file and folder; safe_open, copied into the state; it has no checksum",
    }),
}  # fmt: skip


class Peer(Protocol):
    """One rank's view. Paths are folders that are not there before a save. All ranks call each function."""

    def save(self, state: State, path: str) -> None:
        """Durable when all ranks returned."""

    def save_async(self, state: State, path: str) -> Callable[[], object] | None:
        """The state may change when it returns; what it returns waits until the save is durable. None: it has no such save."""

    def load(self, state: State, path: str, saved_ranks: int) -> None:
        """Fills the memory of a state that so many ranks saved."""

    def save_next(self, state: State, folder: str, step: int) -> None:
        """As a training saves again and again: beside the one before, or over it."""

    def load_newest(self, state: State, folder: str) -> None:
        """What ``save_next`` left."""


def newest_in(folder: str) -> str:
    """The path of the newest checkpoint of Sealpoint. Errors: NotFoundError."""
    newest = Series(folder).newest()
    if newest is None:
        raise NotFoundError("the series has no checkpoint", path=folder)
    return newest.entry.path


class Side(Protocol):
    """What makes states, of torch or of numpy, and the peers that save them."""

    #: Classes by name.
    peers: dict[str, Callable[[], Peer]]

    def make(self, spec: Any, rank: int, ranks: int, device: str, generation: int) -> State:
        """A new state. Generation 0 is all zeros."""

    def generations(self, state: State) -> set[int | str]:
        """Which ones a loaded state has bytes of, of {1, 2, "neither"}."""

    def equal(self, one: State, other: State) -> bool: ...

    def clear(self, state: State) -> None:
        """Zeros."""

    def settle(self, state: State) -> None:
        """Waits for the device that it is on."""


def side_here() -> str | None:
    """What makes states: "torch", without it "numpy"; None: neither is installed."""
    return next((name for name in ("torch", "numpy") if find_spec(name) is not None), None)


def why_left_out(name: str, side: str, is_url: bool) -> str | None:
    """None if it can be measured."""
    info = INFOS[name]
    if find_spec(info.package) is None:
        return f"the package {info.package} is not installed"
    if is_url and name != OURS:
        return "it is given a folder of a file system here, and PATH is a URL"
    return None if side in info.options else f"the package {info.package} is there, but torch is not"


def version_of(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
