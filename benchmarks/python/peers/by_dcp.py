# SPDX-License-Identifier: Apache-2.0
"""torch.distributed.checkpoint."""

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp

from peers.peer import Peer


class Dcp(Peer):
    needs = ("torch",)
    options = ("save, async_save (in a thread, on a gloo group of its own) and load with the defaults: "
               "FileSystemWriter with one file per rank, one thread and sync_files=True, so that files are synced. "
               "It writes no checksum that it compares. One tensor by a load of a state dict with that tensor, "
               "no_dist=True; columns likewise, since it reads whole stored parts")
    operations = frozenset({"save", "stall", "background", "load", "reshard", "one", "slice"})
    _group = None

    @classmethod
    def version(cls):
        return torch.__version__

    def begin(self, state):
        # Two threads on one group of gloo exchange each other's data.
        self._group = dist.new_group(backend="gloo")

    def prepare(self, state):
        state.as_dict  # noqa: B018

    def save(self, state, path):
        dcp.save(state.as_dict, checkpoint_id=path)

    def save_async(self, state, path):
        return dcp.async_save(state.as_dict, checkpoint_id=path, process_group=self._group).result

    def load(self, state, path):
        dcp.load(state.as_dict, checkpoint_id=path)

    def read(self, held, path):
        whole = held.local if held.box == held.tensor.whole() else torch.empty(held.tensor.shape, dtype=held.tensor.dtype)
        dcp.load({held.tensor.name: whole}, checkpoint_id=path, no_dist=True)
        if whole is not held.local:
            held.local.copy_(whole[held.box.slices()])


THE_PEER = Dcp
