# SPDX-License-Identifier: Apache-2.0
"""Sealpoint, by sealpoint.torch and, for a part of a checkpoint, by sealpoint.open."""

import sealpoint
import sealpoint.torch as sp

from peers.peer import Peer


class Sealpoint(Peer):
    needs = ("sealpoint",)
    options = ("sealpoint.torch.save, save_async and load with the defaults: durable when a save returns; replicas "
               "compared before it; digests of all chunks, compared in each load. One tensor and columns by "
               "sealpoint.open. Verification by sealpoint.verify with a thread per rank; with a cold cache past the "
               "page cache, as by default")
    operations = frozenset({"save", "stall", "background", "load", "reshard", "one", "slice", "verify"})

    @classmethod
    def version(cls):
        return sealpoint.__version__

    def prepare(self, state):
        state.as_dict  # noqa: B018

    def save(self, state, path):
        sp.save(state.as_dict, path)

    def save_async(self, state, path):
        return sp.save_async(state.as_dict, path).result

    def load(self, state, path):
        sp.load(state.as_dict, path)

    def read(self, held, path):
        with sealpoint.open(path) as checkpoint:
            checkpoint[held.tensor.name].read(held.local.numpy(), held.box.slices())

    def verify(self, path):
        if self.rank == 0:
            report = sealpoint.verify(path, threads=self.ranks, direct_io=self.is_cold)
            if not report.ok:
                raise RuntimeError(f"{path}: {report.verdict}")


THE_PEER = Sealpoint
