# SPDX-License-Identifier: Apache-2.0
"""TensorStore with arrays of Zarr 3."""

import pathlib

import torch
import torch.distributed as dist

from peers.peer import Peer

NAMES = {torch.bfloat16: "bfloat16", torch.float32: "float32"}


class TensorStore(Peer):
    needs = ("tensorstore",)
    options = ("zarr3 on the driver file, an array per tensor, a chunk per rank's part, codecs bytes and crc32c, "
               "which is compared in each read; file_io_sync and concurrency as by default; all writes and reads of "
               "a rank are queued before it waits. Verification by reading all of them")
    operations = frozenset({"save", "load", "reshard", "one", "slice", "verify"})

    @classmethod
    def version(cls):
        from importlib.metadata import version

        return version("tensorstore")

    def spec(self, tensor, path):
        chunk = tensor.written(self.ranks)[0][1].shape
        metadata = {
            "shape": list(tensor.shape), "data_type": NAMES[tensor.dtype],
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(chunk)}},
            "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}],
        }
        place = {"driver": "file", "path": str(pathlib.Path(path) / tensor.name)}
        return {"driver": "zarr3", "kvstore": place, "metadata": metadata}

    def array(self, tensor, dtype):
        """numpy's view of the memory."""
        return (tensor.view(torch.int16) if tensor.dtype == torch.bfloat16 else tensor).numpy().view(dtype)

    def save(self, state, path):
        import tensorstore as ts

        pathlib.Path(path).mkdir(parents=True, exist_ok=True)
        if self.rank == 0:
            made = [ts.open(self.spec(tensor, path), create=True, open=False) for tensor in self.workload.tensors]
            for future in made:
                future.result()
        dist.barrier()
        own = [held for held in state if held.tensor.layout != "whole" or self.rank == 0]
        # Rank 0 has just written this metadata.
        opened = [ts.open(self.spec(held.tensor, path), open=True, assume_metadata=True) for held in own]
        written = []
        for held, future in zip(own, opened, strict=True):
            store = future.result()
            written.append(store[held.box.slices()].write(self.array(held.local, store.dtype.numpy_dtype)))
        for future in written:
            future.result()

    def load(self, state, path):
        import tensorstore as ts

        saved = {tensor.name: tensor for tensor in self.workload.tensors}
        opened = [ts.open(self.spec(saved[held.tensor.name], path), open=True) for held in state]
        copies = []
        for held, future in zip(state, opened, strict=True):
            store = future.result()
            into = ts.array(self.array(held.local, store.dtype.numpy_dtype))
            copies.append(into.write(store[held.box.slices()][ts.d[:].translate_to[0]]))
        for future in copies:
            future.result()

    def read(self, held, path):
        self.load([held], path)

    def verify(self, path):
        mine = [tensor for i, tensor in enumerate(self.workload.tensors) if i % self.ranks == self.rank]
        import tensorstore as ts

        for tensor in mine:
            ts.open(self.spec(tensor, path), open=True).result().read().result()


THE_PEER = TensorStore
