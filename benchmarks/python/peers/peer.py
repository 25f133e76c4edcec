# SPDX-License-Identifier: Apache-2.0
"""What a peer is, and which there are."""

import importlib
import importlib.util
import pathlib
from typing import ClassVar

# Module of this package by name of the peer, in the order of the report.
MODULES = {
    "raw": "by_raw", "sealpoint": "by_sealpoint", "dcp": "by_dcp", "torch": "by_torch", "safetensors": "by_safetensors",
    "tensorstore": "by_tensorstore", "hdf5": "by_hdf5", "hdf5-fletcher32": "by_hdf5_fletcher32",
    "adios2": "by_adios2",
}
OURS = "sealpoint"


class Peer:
    """One rank's view of a peer. Paths are folders that do not exist before a save. All ranks call each method, but for
    read(), which one calls."""

    #: What it needs of Python, by the name for importing; a reason for its absence names it.
    needs: ClassVar[tuple] = ()
    #: What it is asked to do, for the report.
    options: ClassVar[str] = ""
    #: True: not a peer but what the machine allows; it need not return right bytes in other layouts.
    is_limit: ClassVar[bool] = False
    #: Of those of cell.py.
    operations: ClassVar[frozenset] = frozenset()

    def __init__(self, workload, rank, ranks):
        self.workload, self.rank, self.ranks = workload, rank, ranks
        self.saved_tensors = {tensor.name: tensor for tensor in workload.tensors}
        self.is_cold = False  # what is read next is not in the page cache

    @classmethod
    def version(cls):
        return ""

    def begin(self, state):
        """Before anything is measured, with the state that will be saved."""

    def prepare(self, state):
        """Before a state is saved or loaded into: what a program has ready anyway, such as its state dict."""

    def save(self, state, path):
        """Durable when all ranks returned."""
        raise NotImplementedError

    def save_async(self, state, path):
        """The state may change when it returns; what it returns is called to wait until the save is durable."""
        raise NotImplementedError

    def load(self, state, path):
        """Fills the memory of a state, which may lie otherwise than it was saved."""
        raise NotImplementedError

    def read(self, held, path):
        """The same for one box of one tensor, in one process."""
        raise NotImplementedError

    def verify(self, path):
        """Reads all bytes and compares all checksums that there are."""
        raise NotImplementedError


class FilePerRank(Peer):
    """A peer that knows no ranks: each writes a file of what it holds (what all hold is in rank 0's), and a load in another
    layout opens the files of all."""

    suffix: ClassVar[str] = ""
    operations = frozenset({"save", "load", "reshard", "one", "slice"})

    def file(self, path, rank):
        return pathlib.Path(path) / f"rank{rank}{self.suffix}"

    def own(self, state):
        """What this rank writes."""
        return [held for held in state if held.tensor.layout != "whole" or self.rank == 0]

    def stored_boxes(self, held):
        """(rank, stored box, box in common) of the files that have parts of a box."""
        for rank, box in self.saved_tensors[held.tensor.name].written(self.ranks):
            common = held.box.overlap(box)
            if common is not None:
                yield rank, box, common

    def save(self, state, path):
        path = pathlib.Path(path)
        path.mkdir(parents=True, exist_ok=True)
        self.write_file(self.own(state), self.file(path, self.rank))

    def load(self, state, path):
        self.read_boxes([(held, part) for held in state for part in self.stored_boxes(held)], path)

    def read(self, held, path):
        self.read_boxes([(held, part) for part in self.stored_boxes(held)], path)

    def read_boxes(self, parts, path):
        by_rank = {}
        for held, (rank, box, common) in parts:
            by_rank.setdefault(rank, []).append((held, box, common))
        for rank, wanted in by_rank.items():
            self.read_file(self.file(path, rank), wanted)

    def write_file(self, state, file):
        raise NotImplementedError

    def read_file(self, file, wanted):
        """wanted: (held, the box that the file has, the box to copy)."""
        raise NotImplementedError


def peer_class(name):
    return importlib.import_module(f"peers.{MODULES[name]}").THE_PEER


def why_absent(name):
    """None if the peer is there."""
    try:
        importlib.import_module(f"peers.{MODULES[name]}")
    except ImportError as error:
        return f"{error}"
    missing = [need for need in peer_class(name).needs if importlib.util.find_spec(need) is None]
    return f"the package {missing[0]} is not installed" if missing else None
