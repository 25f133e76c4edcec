# SPDX-License-Identifier: Apache-2.0
"""Peers: the compared libraries, their settings, and the reasons for leaving a library out."""

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
    """Describes a peer. ``options``: its settings, by side ("torch" or "numpy")."""

    title: str
    package: str
    options: dict[str, str]


INFOS = {
    OURS: Info("Sealpoint", "sealpoint", {
        "torch": "sealpoint.torch.save, save_async and load with their defaults: a save is durable on return, and a load compares "
                 "the digest of every chunk",
        "numpy": "sealpoint.save and Checkpoint.read with their defaults: a save is durable on return, and a load compares the "
                 "digest of every chunk",
    }),
    "dcp": Info("torch.distributed.checkpoint", "torch", {
        "torch": "save, async_save (on a separate gloo group) and load with their defaults: a file per rank, synced; it "
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
    """A peer on one rank. ``save`` is called only if nothing exists at its path. Collective: all ranks call each method."""

    def save(self, state: State, path: str) -> None:
        """Saves the state. The save is durable when the call has returned on all ranks."""

    def save_async(self, state: State, path: str) -> Callable[[], object] | None:
        """Saves in the background. The state may change once the call returns.

        Returns a function that waits until the save is durable, or None if the peer cannot save in the background.
        """

    def load(self, state: State, path: str, saved_ranks: int) -> None:
        """Loads into the memory of a state. ``saved_ranks`` is the number of ranks that saved the checkpoint."""

    def save_next(self, state: State, folder: str, step: int) -> None:
        """Saves as a training loop does. Writes next to the previous checkpoint, or overwrites it."""

    def load_newest(self, state: State, folder: str) -> None:
        """Loads the checkpoint that ``save_next`` saved."""


def newest_in(folder: str) -> str:
    """Returns the path of Sealpoint's newest checkpoint. Raises NotFoundError."""
    newest = Series(folder).newest()
    if newest is None:
        raise NotFoundError("the series has no checkpoint", path=folder)
    return newest.entry.path


class Side(Protocol):
    """Creates states of torch or of numpy, and provides the peers that can save these states."""

    #: Peer classes, by name.
    peers: dict[str, Callable[[], Peer]]

    def make(self, spec: Any, rank: int, ranks: int, device: str, generation: int) -> State:
        """Creates a state. Generation 0 is all zeros."""

    def generations(self, state: State) -> set[int | str]:
        """Returns the generations whose values are in a loaded state: a subset of {1, 2, "neither"}."""

    def equal(self, one: State, other: State) -> bool: ...

    def clear(self, state: State) -> None:
        """Sets all values of the state to zero."""

    def settle(self, state: State) -> None:
        """Waits until the device of the state has finished its work."""


def side_here() -> str | None:
    """Returns the available side: "torch" if installed, otherwise "numpy", or None if neither is installed."""
    return next((name for name in ("torch", "numpy") if find_spec(name) is not None), None)


def why_left_out(name: str, side: str, is_url: bool) -> str | None:
    """Returns the reason for leaving a peer out, or None."""
    info = INFOS[name]
    if find_spec(info.package) is None:
        return f"the package {info.package} is not installed"
    if is_url and name != OURS:
        return "it supports only file systems here, and PATH is a URL"
    return None if side in info.options else f"the package {info.package} is installed, but torch is not"


def version_of(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
