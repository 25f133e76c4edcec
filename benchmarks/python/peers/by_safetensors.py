# SPDX-License-Identifier: Apache-2.0
"""safetensors."""

from peers.measure import sync_files
from peers.peer import FilePerRank


class Safetensors(FilePerRank):
    needs = ("safetensors",)
    suffix = ".safetensors"
    options = ("safetensors.torch.save_file to a file per rank, then fsync; safe_open with get_tensor, or get_slice "
               "for a part, copied into the state. It has no checksum")

    @classmethod
    def version(cls):
        import safetensors

        return safetensors.__version__

    def write_file(self, state, file):
        from safetensors.torch import save_file

        save_file({held.tensor.name: held.local for held in state}, file)
        sync_files(file, file.parent)

    def read_file(self, file, wanted):
        from safetensors import safe_open

        with safe_open(file, framework="pt") as opened:
            for held, box, common in wanted:
                into = held.local[common.slices(held.box)]
                if common == box:
                    into.copy_(opened.get_tensor(held.tensor.name))
                else:
                    into.copy_(opened.get_slice(held.tensor.name)[common.slices(box)])


THE_PEER = Safetensors
