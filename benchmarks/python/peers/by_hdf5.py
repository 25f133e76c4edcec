# SPDX-License-Identifier: Apache-2.0
"""HDF5 by h5py."""

import numpy as np
import torch

from peers.measure import sync_files
from peers.peer import FilePerRank

CHUNK_BYTES = 4 << 20


def bits(tensor):
    """As an array of numpy; of bf16, which HDF5 has not, the bits."""
    return tensor.view(torch.int16).numpy() if tensor.dtype == torch.bfloat16 else tensor.numpy()


class Hdf5(FilePerRank):
    needs = ("h5py",)
    suffix = ".h5"
    options = ("h5py of the package index, which is built without MPI: a file per rank, libver=\"latest\", contiguous "
               "datasets, then fsync; read_direct into the state")

    @classmethod
    def version(cls):
        import h5py

        return f"{h5py.__version__}, HDF5 {h5py.version.hdf5_version}, {'with' if h5py.get_config().mpi else 'without'} MPI"

    def dataset_options(self, array):
        return {}

    def write_file(self, state, file):
        import h5py

        with h5py.File(file, "w", libver="latest") as opened:
            for held in state:
                array = bits(held.local)
                opened.create_dataset(held.tensor.name, data=array, **self.dataset_options(array))
        sync_files(file, file.parent)

    def read_file(self, file, wanted):
        import h5py

        with h5py.File(file, "r", libver="latest") as opened:
            for held, box, common in wanted:
                into, source, dest = bits(held.local), common.slices(box), common.slices(held.box)
                opened[held.tensor.name].read_direct(into, np.s_[source], np.s_[dest])


THE_PEER = Hdf5
