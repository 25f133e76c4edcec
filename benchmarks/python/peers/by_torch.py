# SPDX-License-Identifier: Apache-2.0
"""torch.save and torch.load."""

import zipfile

import torch

from peers.measure import sync_files
from peers.peer import FilePerRank


class TorchSave(FilePerRank):
    needs = ("torch",)
    suffix = ".pt"
    options = ("torch.save of a dict of tensors to a file per rank, then fsync; torch.load with weights_only=True "
               "and mmap=True, copied into the state. Its CRCs are not compared by torch.load; verification by "
               "zipfile.ZipFile.testzip")
    operations = FilePerRank.operations | {"verify"}

    @classmethod
    def version(cls):
        return torch.__version__

    def write_file(self, state, file):
        torch.save({held.tensor.name: held.local for held in state}, file)
        sync_files(file, file.parent)

    def read_file(self, file, wanted):
        loaded = torch.load(file, weights_only=True, mmap=True)
        for held, box, common in wanted:
            held.local[common.slices(held.box)].copy_(loaded[held.tensor.name][common.slices(box)])

    def verify(self, path):
        with zipfile.ZipFile(self.file(path, self.rank)) as archive:
            bad = archive.testzip()
            if bad is not None:
                raise RuntimeError(f"{archive.filename}: {bad} is damaged")


THE_PEER = TorchSave
